//! A run of whole lines, which one thread reads.

use memchr::{memchr, memchr_iter};

use super::fault::Fault;
use super::header::{Header, Layout};
use super::line::{self, Entry, Value};
use super::quick::Quick;
use crate::error::matrix_market::{ErrorKind, quote};

/// Where the entries of a block go: as much room as the block may need.
pub(super) struct Room<'a, T> {
    pub(super) rows: &'a mut [u32],
    pub(super) cols: &'a mut [u32],
    /// Empty for a pattern.
    pub(super) values: &'a mut [T],
}

/// What a block was found to hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its entries.
    pub(super) entries: usize,
    /// Wherever lines and entries get out of step: (index of an entry, its line within the block), from which both
    /// count on.
    steps: Vec<(usize, usize)>,
    /// The smallest and the largest row, from 0; of no meaning without entries.
    pub(super) rows: (u32, u32),
    /// The same of columns.
    pub(super) cols: (u32, u32),
    /// Whether an entry lies above the diagonal.
    pub(super) above: bool,
    /// Whether one lies below it.
    pub(super) below: bool,
}

/// The first line of a block that can't be read.
#[derive(Debug)]
pub(super) struct BadLine {
    /// The line within the block, from 0.
    pub(super) line: usize,
    /// The entries before it.
    pub(super) entries: usize,
    pub(super) fault: Fault,
}

/// The number of lines, the last one perhaps without an end.
pub(super) fn count_lines(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count() + usize::from(!text.is_empty() && !text.ends_with(b"\n"))
}

/// Divides text at line ends into blocks of about `size` bytes.
pub(super) fn split(mut text: &[u8], size: usize) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while !text.is_empty() {
        let end = match text.get(size..).and_then(|rest| memchr(b'\n', rest)) {
            Some(more) => size + more + 1,
            None => text.len(),
        };
        let (block, rest) = text.split_at(end);
        blocks.push(block);
        text = rest;
    }
    blocks
}

/// Reads the entries of a block.
pub(super) fn read<T: Value>(text: &[u8], header: &Header, room: &mut Room<T>) -> Result<Found, BadLine> {
    let quick = Quick::new(header);
    let mut found = Found::default();
    let (mut at, mut line, mut next_line) = (0, 0, 0);
    let mut note = |found: &mut Found, line: usize, entries: usize| {
        if entries > 0 && line != next_line {
            found.steps.push((found.entries, line));
        }
        found.entries += entries;
        next_line = if entries > 0 { line + entries } else { next_line };
    };
    loop {
        let (lines, next) = quick.lines(text, at, room.from(found.entries));
        note(&mut found, line, lines);
        (at, line) = (next, line + lines);
        if at == text.len() {
            break;
        }
        let next = memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
        let entry = line::entry(line::without_end(&text[at..next]), header);
        let bad = |fault| BadLine { line, entries: found.entries, fault };
        if let Some(entry) = entry.map_err(bad)? {
            if found.entries == room.len() {
                let found = quote(&text[at..next]);
                return Err(bad(ErrorKind::TooManyEntries { expected: header.entries, found }.into()));
            }
            room.put(found.entries, header.layout, entry);
            note(&mut found, line, 1);
        }
        (at, line) = (next, line + 1);
    }
    if header.layout == Layout::Coordinate {
        found.look_at(&room.rows[..found.entries], &room.cols[..found.entries]);
    }
    Ok(found)
}

impl<T: Value> Room<'_, T> {
    /// The number of entries it has room for.
    fn len(&self) -> usize {
        self.rows.len().max(self.values.len())
    }

    /// The room behind the first `k` entries.
    fn from(&mut self, k: usize) -> Room<'_, T> {
        Room {
            rows: self.rows.get_mut(k..).unwrap_or_default(),
            cols: self.cols.get_mut(k..).unwrap_or_default(),
            values: self.values.get_mut(k..).unwrap_or_default(),
        }
    }

    /// Puts entry `k` to its place.
    fn put(&mut self, k: usize, layout: Layout, entry: Entry<T>) {
        if layout == Layout::Coordinate {
            (self.rows[k], self.cols[k]) = (entry.row, entry.col);
        }
        // a pattern has no values
        if let Some(value) = self.values.get_mut(k) {
            *value = entry.value;
        }
    }
}

impl Found {
    /// Notes where the entries lie.
    fn look_at(&mut self, rows: &[u32], cols: &[u32]) {
        let range = |indices: &[u32]| indices.iter().fold((u32::MAX, 0), |(low, high), &i| (low.min(i), high.max(i)));
        (self.rows, self.cols) = (range(rows), range(cols));
        for (&i, &j) in rows.iter().zip(cols) {
            self.above |= i < j;
            self.below |= i > j;
        }
    }

    /// Only the first `kept` entries are left, at these places.
    pub(super) fn keep(&mut self, kept: usize, rows: &[u32], cols: &[u32]) {
        self.entries = kept;
        self.look_at(rows, cols);
    }

    /// The line of entry `k` within the block, from 0.
    pub(super) fn line_of(&self, k: usize) -> usize {
        let step = self.steps.partition_point(|&(first, _)| first <= k);
        match step.checked_sub(1).and_then(|step| self.steps.get(step)) {
            Some(&(first, line)) => line + (k - first),
            None => k,
        }
    }
}

/// The line, from 0, that holds entry `k` of a block, and its text.
pub(super) fn find_entry(text: &[u8], k: usize) -> (usize, &[u8]) {
    let lines = text.split_inclusive(|&b| b == b'\n').map(line::without_end).enumerate();
    lines.filter(|(_, line)| !line::is_empty(line)).nth(k).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::header::Field;
    use super::super::lines::Lines;
    use super::*;

    fn header(banner: &str, size: &str) -> Header {
        let text = format!("%%MatrixMarket matrix {banner}\n{size}\n");
        Header::read(&mut Lines::new(text.as_bytes(), "test")).unwrap()
    }

    #[test]
    fn lines_of_entries() {
        let text = b"\n1 1\n1 2\n% comment\n\n1 3\n1 4\n\n1 5\n";
        let lines = count_lines(text);
        let (mut rows, mut cols) = (vec![0; lines], vec![0; lines]);
        let mut room = Room::<f64> { rows: &mut rows, cols: &mut cols, values: &mut [] };
        let found = read(text, &header("coordinate pattern general", "9 9 5"), &mut room).unwrap();
        assert_eq!((0..5).map(|k| found.line_of(k)).collect::<Vec<_>>(), [1, 2, 5, 6, 8]);
        assert_eq!((0..5).map(|k| find_entry(text, k).0).collect::<Vec<_>>(), [1, 2, 5, 6, 8]);
        assert_eq!((found.rows, found.cols, found.above, found.below), ((0, 0), (0, 4), true, false));
        assert_eq!(cols[..5], [0, 1, 2, 3, 4]);
    }

    #[test]
    fn blocks_end_at_line_ends() {
        let text = b"ab\ncdef\n\ng";
        assert_eq!(split(text, 1), [&b"ab\n"[..], b"cdef\n", b"\ng"]);
        assert_eq!(split(text, 100), [text]);
        assert!(split(b"", 1).is_empty());
        assert_eq!([&b""[..], b"a", b"a\n", b"a\n\n", text].map(count_lines), [0, 1, 1, 2, 4]);
    }

    /// The quick look gives what the careful one gives, or leaves the line to it.
    #[test]
    fn quick_and_careful_agree() {
        let words = ["1", "007", "12", "+3", "0", "99999999999999999999", "-1", "x", ""];
        let values = [
            "1.5",
            "-2",
            "1e5",
            "1.0D+05",
            "nan",
            "1e999",
            ".5",
            "5.",
            "-",
            "+1",
            "1 2",
            "0x1",
            "9007199254740993",
            "18446744073709551616",
            "123456789012345678",
            "1234567.25",
            "12345678.5",
            "0.30847120540870487",
            "-6.7899909572274035e+00",
            "6.02214076e23",
            "1.5e-7",
            "1e-05",
            "3E2",
            "1.25e+100",
            "1.e5",
            "1.5e",
            "1.5e+",
            "1.5e5e5",
            "1.5.5",
            "0.0",
            "-0",
            "0.00000000000000000012345",
        ];
        let mut quick_ones = 0;
        for banner in [
            "coordinate real general",
            "coordinate integer general",
            "coordinate unsigned-integer general",
            "coordinate pattern general",
            "coordinate real skew-symmetric",
            "array real general",
            "array integer general",
        ] {
            let header = header(banner, if banner.starts_with("array") { "20 20" } else { "20 20 9" });
            for row in words {
                for value in values {
                    for end in ["", "\n", "\r\n", " \n", "\r"] {
                        for line in [
                            format!("{row} 7 {value}{end}"),
                            format!("{row} 7\t{value}{end}"),
                            format!("{row} 7\0{value}{end}"),
                            format!("{row}\x1f7 {value}{end}"),
                            format!("{row} 7{end}"),
                            format!("{row}\t7{end}"),
                            format!("{value}{end}"),
                        ] {
                            // a quick look needs some bytes before the line, and behind it
                            let before = "1".repeat(31) + " ";
                            let text = format!("{before}{line}{}", "x".repeat(64));
                            let careful = line::entry::<f64>(line::without_end(line.as_bytes()), &header);
                            for quick in [Quick::new(&header), Quick::new(&header).portable()] {
                                let (mut row, mut col, mut value) = ([0], [0], [0.0]);
                                let is_array = header.layout == Layout::Array;
                                let room = Room {
                                    rows: if is_array { &mut [] } else { &mut row },
                                    cols: if is_array { &mut [] } else { &mut col },
                                    values: if header.field == Field::Pattern { &mut [] } else { &mut value },
                                };
                                let (lines, next) = quick.lines(text.as_bytes(), before.len(), room);
                                if lines == 1 {
                                    let value = if header.field == Field::Pattern { 1.0 } else { value[0] };
                                    let entry = Entry { row: row[0], col: col[0], value };
                                    let end = before.len() + line.len();
                                    assert_eq!((&careful, next), (&Ok(Some(entry)), end), "{banner}: {line:?}");
                                    quick_ones += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(quick_ones > 1000, "{quick_ones}");
    }
}
