//! An entry's line, read with all care. Lines of the usual kind don't come here: see `quick`.

use super::fault::Fault;
use super::header::{Field, Header, Layout, Object, Symmetry};
use super::lines::{MAX_LINE, is_comment};
use super::token::{Tokens, index, integer, real, unsigned};
use crate::error::matrix_market::{ErrorKind, quote};
use crate::matrix::{Complex64, Scalar};

/// An entry as stored in the file, counted from 0. In an array file, whose lines name no place, it is always (0, 0).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry<T> {
    pub(super) row: u32,
    pub(super) col: u32,
    pub(super) value: T,
}

/// What a value is made of.
pub(super) trait Value: Scalar {
    /// Makes the value of real numbers that `next` reads.
    fn read(next: impl FnMut() -> Result<f64, Fault>) -> Result<Self, Fault>;

    /// A real number.
    fn of(real: f64) -> Self;
}

impl Value for f64 {
    #[inline]
    fn read(mut next: impl FnMut() -> Result<f64, Fault>) -> Result<Self, Fault> {
        next()
    }

    #[inline]
    fn of(real: f64) -> Self {
        real
    }
}

impl Value for Complex64 {
    #[inline]
    fn read(mut next: impl FnMut() -> Result<f64, Fault>) -> Result<Self, Fault> {
        Ok(Self::new(next()?, next()?))
    }

    #[inline]
    fn of(real: f64) -> Self {
        Self::new(real, 0.0)
    }
}

/// A line without its end.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let mut line = line.strip_suffix(b"\n").unwrap_or(line);
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    line
}

/// Whether there is nothing to read in a line: it is blank or a comment.
pub(super) fn is_empty(line: &[u8]) -> bool {
    Tokens::new(line).next().is_none_or(|word| word[0] == b'%')
}

/// The entry in a line; `None` for a blank line and a comment.
pub(super) fn entry<T: Value>(line: &[u8], header: &Header) -> Result<Option<Entry<T>>, Fault> {
    if line.len() > MAX_LINE {
        if is_comment(line) {
            return Ok(None);
        }
        return Err(ErrorKind::LineTooLong { max: MAX_LINE, found: quote(line) }.into());
    }
    if is_empty(line) {
        return Ok(None);
    }
    let mut words = Tokens::new(line);
    let (row, col) = match header.layout {
        Layout::Coordinate => {
            let row = next(&mut words, line, header, |word| index(word, "row", header.rows))?;
            let col = match header.object {
                Object::Matrix => next(&mut words, line, header, |word| index(word, "column", header.cols))?,
                Object::Vector => 0,
            };
            (row, col)
        }
        Layout::Array => (0, 0),
    };
    let number = match header.field {
        Field::Real | Field::Complex => real,
        Field::Integer => integer,
        Field::UnsignedInteger => unsigned,
        Field::Pattern => |_: &[u8]| Ok(1.0),
    };
    let value = match header.field {
        Field::Pattern => T::ONE,
        _ => T::read(|| next(&mut words, line, header, number))?,
    };
    if let Some(word) = words.next() {
        let kind = ErrorKind::SurplusText { expected: header.entry_line(), found: quote(word) };
        return Err(Fault::at(words.column(), kind));
    }
    // the places of an array are known later
    if row == col && header.layout == Layout::Coordinate {
        diagonal(header.symmetry, row, value)?;
    }
    Ok(Some(Entry { row, col, value }))
}

/// The next word as a number of some kind.
fn next<N>(
    words: &mut Tokens,
    line: &[u8],
    header: &Header,
    number: impl Fn(&[u8]) -> Result<N, ErrorKind>,
) -> Result<N, Fault> {
    match words.next() {
        Some(word) => number(word).map_err(|kind| Fault::at(words.column(), kind)),
        None => {
            let kind = ErrorKind::MissingField { expected: header.entry_line(), found: quote(line) };
            Err(Fault::at(words.column(), kind))
        }
    }
}

/// What a symmetry says of an entry on the diagonal.
pub(super) fn diagonal(symmetry: Symmetry, row: u32, value: impl Scalar) -> Result<(), ErrorKind> {
    let index = row as usize + 1;
    match symmetry {
        Symmetry::SkewSymmetric if value.modulus() != 0.0 => {
            Err(ErrorKind::SkewDiagonal { index, found: shown(value) })
        }
        Symmetry::Hermitian if value.im() != 0.0 => Err(ErrorKind::HermitianDiagonal { index, found: shown(value) }),
        _ => Ok(()),
    }
}

fn shown(value: impl Scalar) -> String {
    if value.im() == 0.0 { value.re().to_string() } else { format!("{}{:+}i", value.re(), value.im()) }
}
