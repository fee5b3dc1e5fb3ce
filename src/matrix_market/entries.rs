//! The lines after the size line.

use std::io::BufRead;

use super::error::{ErrorKind, quote};
use super::header::{Field, Header, Layout, Symmetry};
use super::lines::Lines;
use super::token::{Tokens, index, integer, real};

/// How many entries lie between two calls of the progress hook.
pub(super) const PROGRESS: u64 = 1 << 20;

/// Entries that are kept together: memory grows by 1 MiB at a time, and what is there never moves.
const CHUNK: usize = 1 << 16;

/// An entry as stored in the file, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) row: u32,
    pub(super) col: u32,
    pub(super) value: f64,
}

/// The entries in the file's order.
#[derive(Debug, Default)]
pub(super) struct Entries {
    chunks: Vec<Vec<Entry>>,
    count: usize,
    /// Wherever lines and entries get out of step: (index of an entry, its line), from which both count on.
    steps: Vec<(usize, u64)>,
    /// The line of the next entry if nothing comes between.
    next_line: u64,
    above_diagonal: bool,
    below_diagonal: bool,
}

/// Why an entry can't be taken.
pub(super) enum Fault {
    /// What the file says is wrong.
    Text(ErrorKind),
    /// It does not fit into memory.
    Memory(NoMemory),
}

/// There is no memory for so many bytes.
pub(super) struct NoMemory(pub(super) u64);

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self::Text(kind)
    }
}

impl From<NoMemory> for Fault {
    fn from(bytes: NoMemory) -> Self {
        Self::Memory(bytes)
    }
}

impl NoMemory {
    pub(super) fn into_error(self, what: &str) -> crate::Error {
        crate::Error::OutOfMemory { what: what.into(), bytes: self.0 }
    }
}

/// Makes room for exactly `more` elements, without bringing the program down if there is none.
pub(super) fn reserve<T>(to: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    to.try_reserve_exact(more).map_err(|_| NoMemory((to.len().saturating_add(more) * size_of::<T>()) as u64))
}

impl Entries {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flatten()
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether there are entries in both triangles.
    pub(super) fn in_both_triangles(&self) -> bool {
        self.above_diagonal && self.below_diagonal
    }

    /// The line that holds entry `k`.
    pub(super) fn line_of(&self, k: usize) -> u64 {
        let step = self.steps.partition_point(|&(first, _)| first <= k);
        match step.checked_sub(1).and_then(|step| self.steps.get(step)) {
            Some(&(first, line)) => line + (k - first) as u64,
            None => 1,
        }
    }

    #[inline]
    fn push(&mut self, line: u64, entry: Entry) -> Result<(), Fault> {
        if line != self.next_line {
            self.steps.push((self.count, line));
        }
        self.next_line = line + 1;
        self.above_diagonal |= entry.row < entry.col;
        self.below_diagonal |= entry.row > entry.col;
        self.count += 1;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(entry),
            last => {
                // twice the last one's size up to the full one, so that a small file takes little memory
                let room = last.map_or(64, |chunk| (2 * chunk.len()).min(CHUNK));
                let mut chunk = Vec::new();
                reserve(&mut chunk, room)?;
                chunk.push(entry);
                self.chunks.push(chunk);
            }
        }
        Ok(())
    }
}

/// Reads the entries of a matrix in either layout; zeros of an array are left out.
pub(super) fn read_entries<R: BufRead>(
    lines: &mut Lines<R>,
    header: &Header,
    progress: &mut dyn FnMut(u64, u64),
) -> crate::Result<Entries> {
    let mut entries = Entries::default();
    match header.layout {
        Layout::Coordinate => each_line(lines, header, progress, |number, line| {
            let entry = coordinate_entry(line, header)?;
            if header.symmetry == Symmetry::SkewSymmetric && entry.row == entry.col && entry.value != 0.0 {
                let (index, found) = (entry.row as usize + 1, entry.value.to_string());
                return Err(ErrorKind::SkewDiagonal { index, found }.into());
            }
            entries.push(number, entry)
        })?,
        Layout::Array => {
            let mut place = ArrayPlace::new(header);
            each_line(lines, header, progress, |number, line| {
                let value = array_value(line, header)?;
                let (row, col) = place.next();
                if value == 0.0 { Ok(()) } else { entries.push(number, Entry { row, col, value }) }
            })?;
        }
    }
    Ok(entries)
}

/// Reads a general array as its columns.
pub(super) fn read_columns<R: BufRead>(lines: &mut Lines<R>, header: &Header) -> crate::Result<Vec<Vec<f64>>> {
    if header.rows == 0 {
        each_line(lines, header, &mut |_, _| {}, |_, _| Ok(()))?;
        return Ok(vec![Vec::new(); header.cols]);
    }
    let mut columns: Vec<Vec<f64>> = Vec::new();
    each_line(lines, header, &mut |_, _| {}, |_, line| {
        let value = array_value(line, header)?;
        match columns.last_mut() {
            Some(column) if column.len() < header.rows => {
                if column.len() == column.capacity() {
                    reserve(column, column.len().min(header.rows - column.len()))?;
                }
                column.push(value);
            }
            last => {
                // a full column shows how long the next one may get; the first one's length is hearsay
                let room = if last.is_some() { header.rows } else { header.rows.min(CHUNK) };
                let mut column = Vec::new();
                reserve(&mut column, room)?;
                column.push(value);
                columns.push(column);
            }
        }
        Ok(())
    })?;
    Ok(columns)
}

/// Calls `each` with every line that holds an entry and its number, as often as the header announces.
fn each_line<R: BufRead>(
    lines: &mut Lines<R>,
    header: &Header,
    progress: &mut dyn FnMut(u64, u64),
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> crate::Result<()> {
    let expected = header.entries;
    let mut found = 0;
    while let Some((number, line)) = lines.next_data()? {
        if found == expected {
            let found = quote(line);
            return Err(lines.error(ErrorKind::TooManyEntries { expected, found }));
        }
        each(number, line).map_err(|fault| match fault {
            Fault::Text(kind) => lines.error(kind),
            Fault::Memory(bytes) => bytes.into_error("the file's entries"),
        })?;
        found += 1;
        if found.is_multiple_of(PROGRESS) {
            progress(found, expected);
        }
    }
    if found < expected {
        return Err(lines.error(ErrorKind::TooFewEntries { expected, found }));
    }
    progress(found, expected);
    Ok(())
}

/// The entry in a line of a coordinate file.
#[inline]
fn coordinate_entry(line: &[u8], header: &Header) -> Result<Entry, ErrorKind> {
    let mut words = Tokens::new(line);
    let missing = || ErrorKind::MissingField { expected: header.entry_line(), found: quote(line) };
    let row = index(words.next().ok_or_else(missing)?, "row", header.rows)?;
    let col = index(words.next().ok_or_else(missing)?, "column", header.cols)?;
    let value = match header.field {
        Field::Pattern => 1.0,
        _ => number(words.next().ok_or_else(missing)?, header.field)?,
    };
    nothing_more(words, header)?;
    Ok(Entry { row, col, value })
}

/// The value in a line of an array file.
#[inline]
fn array_value(line: &[u8], header: &Header) -> Result<f64, ErrorKind> {
    let mut words = Tokens::new(line);
    let missing = || ErrorKind::MissingField { expected: header.entry_line(), found: quote(line) };
    let value = number(words.next().ok_or_else(missing)?, header.field)?;
    nothing_more(words, header)?;
    Ok(value)
}

#[inline]
fn number(word: &[u8], field: Field) -> Result<f64, ErrorKind> {
    if field == Field::Integer { integer(word) } else { real(word) }
}

#[inline]
fn nothing_more(mut words: Tokens, header: &Header) -> Result<(), ErrorKind> {
    match words.next() {
        None => Ok(()),
        Some(word) => Err(ErrorKind::SurplusText { expected: header.entry_line(), found: quote(word) }),
    }
}

/// Where the next value of an array belongs: down the columns, from the diagonal on if the rest is mirrored.
struct ArrayPlace {
    rows: u32,
    symmetry: Symmetry,
    row: u32,
    col: u32,
}

impl ArrayPlace {
    fn new(header: &Header) -> Self {
        // dimensions are held to 32 bits by the header
        let mut place = Self { rows: header.rows as u32, symmetry: header.symmetry, row: 0, col: 0 };
        place.row = place.first_row();
        place
    }

    fn first_row(&self) -> u32 {
        match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => self.col,
            Symmetry::SkewSymmetric => self.col + 1,
        }
    }

    #[inline]
    fn next(&mut self) -> (u32, u32) {
        let place = (self.row, self.col);
        self.row += 1;
        if self.row == self.rows {
            self.col += 1;
            self.row = self.first_row();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_entries() {
        let text =
            "%%MatrixMarket matrix coordinate pattern general\n9 9 5\n\n1 1\n1 2\n% comment\n\n1 3\n1 4\n\n1 5\n";
        let mut lines = Lines::new(text.as_bytes(), "test");
        let header = Header::read(&mut lines).unwrap();
        let entries = read_entries(&mut lines, &header, &mut |_, _| {}).unwrap();
        assert_eq!((0..5).map(|k| entries.line_of(k)).collect::<Vec<_>>(), [4, 5, 8, 9, 11]);
        assert_eq!((entries.len(), entries.in_both_triangles()), (5, false));
    }

    #[test]
    fn chunks_keep_order() {
        let mut entries = Entries::default();
        for k in 0..200_000 {
            assert!(entries.push(u64::from(k) + 3, Entry { row: k, col: 0, value: 1.0 }).is_ok());
        }
        assert!(entries.iter().map(|e| e.row).eq(0..200_000));
        assert_eq!((entries.steps.len(), entries.line_of(199_999)), (1, 200_002));
    }
}
