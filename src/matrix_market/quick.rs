//! Lines of the usual kind, read without a detour: words divided by single blanks, nothing before and behind them.
//!
//! What is unusual in any way is left to `line`, which also finds the words for what is wrong. Both agree on
//! every line that is read here.

use super::header::{Field, Header, Layout, Symmetry};
use super::line::{Entry, Value};

/// What a quick look at a line has to know about the file.
#[derive(Clone, Copy)]
pub(super) struct Quick {
    layout: Layout,
    field: Field,
    rows: u64,
    cols: u64,
    /// Entries of the diagonal have rules of their own.
    special_diagonal: bool,
}

impl Quick {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            layout: header.layout,
            field: header.field,
            rows: header.rows as u64,
            cols: header.cols as u64,
            special_diagonal: matches!(header.symmetry, Symmetry::SkewSymmetric | Symmetry::Hermitian),
        }
    }

    /// The entry in the line that begins at `text`, and the length of the line with its end.
    #[inline(always)]
    pub(super) fn entry<T: Value>(self, text: &[u8]) -> Option<(Entry<T>, usize)> {
        let mut cursor = Cursor { text, at: 0 };
        let (row, col) = match self.layout {
            Layout::Coordinate => {
                let row = cursor.index(self.rows)?;
                cursor.blank()?;
                let col = cursor.index(self.cols)?;
                if self.field != Field::Pattern {
                    cursor.blank()?;
                }
                (row, col)
            }
            Layout::Array => (0, 0),
        };
        if self.special_diagonal && row == col {
            return None;
        }
        let value = match self.field {
            Field::Pattern => T::ONE,
            Field::Real => T::of(cursor.real()?),
            Field::Integer | Field::UnsignedInteger => T::of(cursor.integer(self.field)?),
            Field::Complex => return None,
        };
        cursor.line_end()?;
        Some((Entry { row, col, value }, cursor.at))
    }
}

/// A place in the text.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Digits that are read: at most 19, which can't overflow.
    #[inline(always)]
    fn digits(&mut self) -> Option<u64> {
        let mut n = 0u64;
        let start = self.at;
        loop {
            let digit = self.text.get(self.at)?.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            n = n.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        matches!(self.at - start, 1..=18).then_some(n)
    }

    /// An index from 1 to `max`, counted from 0.
    #[inline(always)]
    fn index(&mut self, max: u64) -> Option<u32> {
        let n = self.digits()?.wrapping_sub(1);
        // dimensions are held to 32 bits by the header
        (n < max).then_some(n as u32)
    }

    #[inline(always)]
    fn blank(&mut self) -> Option<()> {
        let is_blank = *self.text.get(self.at)? == b' ';
        self.at += 1;
        is_blank.then_some(())
    }

    #[inline(always)]
    fn real(&mut self) -> Option<f64> {
        let (value, length) = fast_float2::parse_partial::<f64, _>(self.text.get(self.at..)?).ok()?;
        self.at += length;
        value.is_finite().then_some(value)
    }

    #[inline(always)]
    fn integer(&mut self, field: Field) -> Option<f64> {
        let negative = field == Field::Integer && *self.text.get(self.at)? == b'-';
        self.at += usize::from(negative);
        let value = self.digits()? as f64;
        Some(if negative { -value } else { value })
    }

    #[inline(always)]
    fn line_end(&mut self) -> Option<()> {
        match *self.text.get(self.at)? {
            b'\n' => self.at += 1,
            b'\r' if self.text.get(self.at + 1) == Some(&b'\n') => self.at += 2,
            _ => return None,
        }
        Some(())
    }
}
