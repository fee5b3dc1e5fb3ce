//! The lines after the size line: cut into blocks, which all threads read at once.

use std::io::{ErrorKind as IoErrorKind, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memrchr;
use rayon::prelude::*;

use super::block::{self, BadLine, Found, Room};
use super::fault::{Fault, reading};
use super::header::{Field, Header, Layout, Object};
use super::line::Value;
use super::lines::{MAX_LINE, is_comment};
use crate::error::matrix_market::{Error, ErrorKind, quote};
use crate::memory::{NoMemory, zeros};

/// Text of a mapped file that is read at a time.
const MAPPED: usize = 256 << 20;

/// Text of a stream that is read at a time, while the next arrives: little at first, as the file may be small, and then
/// twice as much each time.
const STREAMED: std::ops::RangeInclusive<usize> = 256 << 10..=1 << 20;

/// The size of blocks: several for each thread, but not so small that their number matters.
const BLOCK: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 20;

/// Called with the numbers of entries read and claimed, by any thread.
pub(super) type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Called after each wave; it may take what was read.
pub(super) type Each<'a, T> = &'a mut dyn FnMut(&mut Entries<T>) -> crate::Result<()>;

/// The entries in the file's order.
pub(super) struct Entries<T> {
    pub(super) waves: Vec<Wave<T>>,
    pub(super) count: usize,
}

/// Entries that were read at a time. Arrays have room between blocks where lines hold no entry.
pub(super) struct Wave<T> {
    /// Rows from 0; empty for an array file.
    pub(super) rows: Vec<u32>,
    /// Columns from 0; empty for an array file.
    pub(super) cols: Vec<u32>,
    /// Values; empty for a pattern.
    pub(super) values: Vec<T>,
    pub(super) blocks: Vec<Block>,
}

/// A block's share of a wave.
pub(super) struct Block {
    /// Where its entries begin.
    pub(super) start: usize,
    /// The line of the file, from 1, where it begins.
    line: u64,
    pub(super) found: Found,
}

impl<T> Entries<T> {
    pub(super) fn none() -> Self {
        Self { waves: Vec::new(), count: 0 }
    }

    /// All blocks, each with its wave.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (&Wave<T>, &Block)> + Clone {
        self.waves.iter().flat_map(|wave| wave.blocks.iter().map(move |block| (wave, block)))
    }

    /// Whether there are entries in both triangles.
    pub(super) fn in_both_triangles(&self) -> bool {
        let any = |of: fn(&Found) -> bool| self.blocks().any(|(_, block)| of(&block.found));
        any(|found| found.above) && any(|found| found.below)
    }
}

impl Block {
    /// Where its entries are in the arrays of its wave.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.found.entries
    }

    /// The line of the file, from 1, that holds its entry `k`.
    pub(super) fn line_of(&self, k: usize) -> u64 {
        self.line + self.found.line_of(k) as u64
    }
}

/// Reads the body of a file.
pub(super) struct Body<'a> {
    name: &'a str,
    header: &'a Header,
    progress: Progress<'a>,
    /// The line, from 1, that comes next.
    line: u64,
    /// Entries read so far, by any thread; for the progress only.
    read: AtomicU64,
}

impl<'a> Body<'a> {
    /// `line` is the number of the body's first line.
    pub(super) fn new(name: &'a str, header: &'a Header, line: u64, progress: Progress<'a>) -> Self {
        Self { name, header, progress, line, read: AtomicU64::new(0) }
    }

    /// Reads all of a text in memory.
    pub(super) fn read_text<T: Value>(self, text: &[u8]) -> crate::Result<Entries<T>> {
        self.text_in_waves(text, MAPPED, &mut |_| Ok(()))
    }

    /// The same, about `size` bytes at a time.
    pub(super) fn text_in_waves<T: Value>(
        mut self,
        text: &[u8],
        size: usize,
        each: Each<T>,
    ) -> crate::Result<Entries<T>> {
        let mut entries = Entries::none();
        for text in block::split(text, size) {
            self.read_wave(text, &mut entries)?;
            each(&mut entries)?;
        }
        self.end(entries)
    }

    /// Reads a stream to its end, behind `first`, what was read of it already. The next wave's text arrives while
    /// the threads read this one's.
    pub(super) fn read_stream<T: Value>(self, first: Vec<u8>, input: impl Read + Send) -> crate::Result<Entries<T>> {
        self.stream_in_waves(first, input, &mut |_| Ok(()))
    }

    /// The same, telling of each wave.
    pub(super) fn stream_in_waves<T: Value>(
        mut self,
        first: Vec<u8>,
        input: impl Read + Send,
        each: Each<T>,
    ) -> crate::Result<Entries<T>> {
        let mut entries = Entries::none();
        let mut text = Text::new(first, input);
        let mut wave = text.next().map_err(|e| self.reading(e))?;
        while !wave.is_empty() {
            let (done, next) = rayon::join(|| self.read_wave(&wave, &mut entries), || text.next());
            let next = match (done, next) {
                // damaged data may look like a malformed line before it is found out
                (_, Err(e)) => return Err(self.reading(e)),
                (done, Ok(next)) => done.map(|()| next)?,
            };
            each(&mut entries)?;
            text.spare = std::mem::replace(&mut wave, next);
        }
        self.end(entries)
    }

    fn end<T>(self, entries: Entries<T>) -> crate::Result<Entries<T>> {
        let (expected, found) = (self.header.entries, entries.count as u64);
        if found < expected {
            return Err(self.error((self.line - 1).max(1), ErrorKind::TooFewEntries { expected, found }.into()));
        }
        (self.progress)(found, expected);
        Ok(entries)
    }

    fn error(&self, line: u64, fault: Fault) -> crate::Error {
        Error { file: self.name.into(), line, column: fault.column, kind: fault.kind }.into()
    }

    /// An error of the input after the lines that were read so far.
    fn reading(&self, error: std::io::Error) -> crate::Error {
        reading(self.name, self.line - 1, error)
    }

    /// Reads whole lines.
    pub(super) fn read_wave<T: Value>(&mut self, text: &[u8], to: &mut Entries<T>) -> crate::Result<()> {
        let size = (text.len() / (8 * rayon::current_num_threads())).clamp(*BLOCK.start(), *BLOCK.end());
        let texts = block::split(text, size);
        let lines: Vec<usize> = texts.par_iter().map(|text| block::count_lines(text)).collect();
        let out_of_memory = |bytes: NoMemory| bytes.into_error("the file's entries");
        // as many entries as fit into the text, the last one perhaps without an end, and one more than there may be: a
        // block that needs more room has a surplus
        let wanted = (self.header.entries - to.count as u64).saturating_add(1).try_into().unwrap_or(usize::MAX);
        let fitting = |text: &[u8]| ((text.len() + 1) / shortest_line(self.header)).min(wanted);
        let room: Vec<usize> = texts.iter().zip(&lines).map(|(text, &lines)| lines.min(fitting(text))).collect();
        let mut wave = Wave::with_room(room.iter().sum(), self.header).map_err(out_of_memory)?;
        let results: Vec<Result<Found, BadLine>> = {
            let rooms = wave.rooms(&room);
            rooms.into_par_iter().zip(&texts).map(|(mut room, text)| self.read_block(text, &mut room)).collect()
        };
        let mut start = 0;
        for (((result, text), &lines), &room) in results.into_iter().zip(texts).zip(&lines).zip(&room) {
            // the first surplus line comes before anything that is wrong behind it
            let left = (self.header.entries - to.count as u64).try_into().unwrap_or(usize::MAX);
            let entries = result.as_ref().map_or_else(|bad| bad.entries + 1, |found| found.entries);
            if entries > left && !matches!(&result, Err(bad) if matches!(bad.fault.kind, ErrorKind::LineTooLong { .. }))
            {
                let (line, text) = block::find_entry(text, left);
                let kind = ErrorKind::TooManyEntries { expected: self.header.entries, found: quote(text) };
                return Err(self.error(self.line + line as u64, kind.into()));
            }
            let found = result.map_err(|bad| self.error(self.line + bad.line as u64, bad.fault))?;
            to.count += found.entries;
            wave.blocks.push(Block { start, line: self.line, found });
            start += room;
            self.line += lines as u64;
        }
        if wave.blocks.iter().any(|block| block.found.entries > 0) {
            to.waves.push(wave);
        }
        Ok(())
    }

    fn read_block<T: Value>(&self, text: &[u8], room: &mut Room<T>) -> Result<Found, BadLine> {
        let found = block::read(text, self.header, room)?;
        let read = self.read.fetch_add(found.entries as u64, Ordering::Relaxed) + found.entries as u64;
        (self.progress)(read.min(self.header.entries), self.header.entries);
        Ok(found)
    }
}

impl<T: Value> Wave<T> {
    fn with_room(entries: usize, header: &Header) -> Result<Self, NoMemory> {
        let places = if header.layout == Layout::Coordinate { entries } else { 0 };
        let values = if header.field == Field::Pattern { 0 } else { entries };
        Ok(Self { rows: zeros(places)?, cols: zeros(places)?, values: zeros(values)?, blocks: Vec::new() })
    }

    /// Room for so many entries in each block.
    fn rooms(&mut self, room: &[usize]) -> Vec<Room<'_, T>> {
        let (mut rows, mut cols, mut values) = (&mut self.rows[..], &mut self.cols[..], &mut self.values[..]);
        let take = |&room: &usize| Room {
            rows: split_off(&mut rows, room),
            cols: split_off(&mut cols, room),
            values: split_off(&mut values, room),
        };
        room.iter().map(take).collect()
    }
}

/// The bytes of an entry's shortest line, its end included: digits and what divides them.
fn shortest_line(header: &Header) -> usize {
    let places = match (header.layout, header.object) {
        (Layout::Array, _) => 0,
        (Layout::Coordinate, Object::Vector) => 1,
        (Layout::Coordinate, Object::Matrix) => 2,
    };
    let numbers = match header.field {
        Field::Pattern => 0,
        Field::Complex => 2,
        Field::Real | Field::Integer | Field::UnsignedInteger => 1,
    };
    2 * (places + numbers)
}

/// Takes the first `len` elements, or what there is.
pub(super) fn split_off<'a, E>(from: &mut &'a mut [E], len: usize) -> &'a mut [E] {
    let all = std::mem::take(from);
    let (taken, rest) = all.split_at_mut(len.min(all.len()));
    *from = rest;
    taken
}

/// Whole lines of a stream.
struct Text<R> {
    /// What follows the last whole line that was given out.
    rest: Vec<u8>,
    input: R,
    /// What ended the input behind the lines that were given out last.
    failed: Option<std::io::Error>,
    /// How much to give out next.
    size: usize,
    /// Memory for it.
    spare: Vec<u8>,
}

/// The length of the whole lines that a text begins with.
fn whole_lines(text: &[u8]) -> usize {
    memrchr(b'\n', text).map_or(0, |end| end + 1)
}

impl<R: Read> Text<R> {
    fn new(rest: Vec<u8>, input: R) -> Self {
        Self { rest, input, failed: None, size: *STREAMED.start(), spare: Vec::new() }
    }

    /// The next lines, up to a megabyte of them; nothing at the end.
    fn next(&mut self) -> std::io::Result<Vec<u8>> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        text.append(&mut self.rest);
        let size = self.size;
        self.size = (2 * size).min(*STREAMED.end());
        text.reserve_exact((size + MAX_LINE).saturating_sub(text.len()));
        loop {
            // a line that doesn't end is too long anyway
            let wanted = size.max(text.len() + MAX_LINE) - text.len();
            let arrived = match self.input.by_ref().take(wanted as u64).read_to_end(&mut text) {
                Ok(arrived) => arrived,
                Err(e) if e.kind() == IoErrorKind::Interrupted => continue,
                Err(e) => {
                    // the lines before it come first, so that the error tells where it is
                    text.truncate(whole_lines(&text));
                    self.failed = Some(e);
                    0
                }
            };
            if arrived == 0 {
                return match self.failed.take_if(|_| text.is_empty()) {
                    Some(e) => Err(e),
                    None => Ok(text),
                };
            }
            let end = whole_lines(&text);
            if end == 0 && text.len() > 2 * MAX_LINE && is_comment(&text) {
                text.truncate(MAX_LINE); // enough to know it by
                continue;
            }
            if end > 0 || text.len() > 2 * MAX_LINE {
                let end = if end > 0 { end } else { text.len() };
                self.rest.extend_from_slice(&text[end..]);
                text.truncate(end);
                return Ok(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time, and an interruption now and then.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(IoErrorKind::Interrupted.into());
            }
            let n = to.len().min(self.0.len()).min(1 + self.1 * 7919 % 5000);
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn a_stream_is_cut_at_line_ends() {
        let lines: String = (0..300_000).map(|i| format!("{i} some words to fill the line {}\n", i * 7)).collect();
        let mut text = Text::new(b"begun ".to_vec(), Drip(lines.as_bytes(), 0));
        let mut all = Vec::new();
        let mut waves = 0;
        loop {
            let wave = text.next().unwrap();
            if wave.is_empty() {
                break;
            }
            assert!(wave.ends_with(b"\n"));
            all.extend(wave);
            waves += 1;
        }
        assert!(waves > 1);
        assert_eq!(all, [b"begun ", lines.as_bytes()].concat());
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let mut text = Text::new(Vec::new(), &b"a\nb"[..]);
        assert_eq!(
            (text.next().unwrap(), text.next().unwrap(), text.next().unwrap()),
            (b"a\n".to_vec(), b"b".to_vec(), vec![])
        );
    }
}
