//! Files that are read part by part, and entries that are handed on wave by wave, so that nobody has to hold all of them.

use std::path::Path;

use memchr::memchr;

use super::archive::Role;
use super::block;
use super::body::{Block, Body, Entries, Wave};
use super::header::{Field, Header, Layout, mirrored};
use super::lines::Lines;
use super::read::{Text, begin, no_member, read_members};
use super::source::Source;
use crate::Result;
use crate::memory::Map;

/// Text that is looked through at a time.
const CHECKED: usize = 16 << 20;

/// Entries of a stream that are handed on at a time, at the least.
const HANDED_ON: usize = 1 << 18;

/// A file whose lines are to be read.
pub(crate) enum Opened {
    /// Text in memory, of which any part can be read.
    Mapped(Mapped),
    /// What can only be read from its beginning to its end: compressed, or no file.
    Streamed(Streamed),
}

impl Opened {
    /// Opens a file, and reads the header of one that is mapped.
    ///
    /// # Errors
    /// As [`read_matrix`](super::read_matrix).
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy().into_owned();
        Ok(match Source::open(path)? {
            Source::Mapped(map) => match begin(Source::Mapped(map), &name)? {
                (header, Text::Mapped(map, body, line)) => Self::Mapped(Mapped { name, header, map, body, line }),
                (_, Text::Streamed(..)) => unreachable!("text stays where it is"),
            },
            source => Self::Streamed(Streamed { name, source }),
        })
    }
}

/// Whether the entries of a file can be read in parts: real ones, each with its place.
pub(crate) fn has_parts(header: &Header) -> bool {
    header.layout == Layout::Coordinate && header.field != Field::Complex
}

/// A mapped file.
pub(crate) struct Mapped {
    name: String,
    header: Header,
    map: Map,
    /// Where the lines of entries begin.
    body: usize,
    /// The number of the first of them, from 1.
    line: u64,
}

impl Mapped {
    /// The file's name, as errors have it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the file says about itself.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The number of the first line behind the header, from 1.
    pub(crate) fn first_line(&self) -> u64 {
        self.line
    }

    /// The lines that begin in part `k` of `count` of the bytes behind the header; `line` is the number of the first.
    pub(crate) fn part(&self, k: usize, count: usize, line: u64) -> Part<'_> {
        let text = &self.map[self.body..];
        let cut = |k: usize| {
            let at = (text.len() as u128 * k as u128 / count as u128) as usize;
            // a line that begins right here is preceded by an end
            match at.checked_sub(1) {
                None => 0,
                Some(before) => memchr(b'\n', &text[before..]).map_or(text.len(), |end| before + end + 1),
            }
        };
        let text = if count == 1 { text } else { &text[cut(k)..cut(k + 1)] };
        Part { text, body: Body::new(&self.name, &self.header, line, &|_, _| {}), entries: Entries::none() }
    }

    /// Looks for what is wrong with the lines, one after another: the first of it.
    ///
    /// # Errors
    /// As [`read_matrix`](super::read_matrix) has for lines and their number.
    pub(crate) fn check(&self) -> Result<()> {
        let body = Body::new(&self.name, &self.header, self.line, &|_, _| {});
        let forget = &mut |entries: &mut Entries<f64>| {
            entries.waves.clear();
            Ok(())
        };
        body.text_in_waves(&self.map[self.body..], CHECKED, forget).map(|_| ())
    }
}

/// Some lines of a file, read from the first to the last.
pub(crate) struct Part<'a> {
    /// What is not yet read.
    text: &'a [u8],
    body: Body<'a>,
    entries: Entries<f64>,
}

impl Part<'_> {
    /// The number of lines that are not yet read.
    pub(crate) fn count_lines(&self) -> u64 {
        block::count_lines(self.text) as u64
    }

    /// The number of entries read.
    pub(crate) fn count(&self) -> u64 {
        self.entries.count as u64
    }

    /// Reads the next lines, about `size` bytes; nothing is left if none come.
    ///
    /// # Errors
    /// A line that is wrong. There may be wrong ones in parts before this one, and lines are counted from that given.
    pub(crate) fn next(&mut self, size: usize) -> Result<Option<Batch>> {
        if self.text.is_empty() {
            return Ok(None);
        }
        let end = self.text.get(size..).and_then(|rest| memchr(b'\n', rest)).map(|end| size + end + 1);
        let (text, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest;
        self.body.read_wave(text, &mut self.entries)?;
        Ok(Some(Batch(std::mem::take(&mut self.entries.waves))))
    }
}

/// A file that is read from its beginning to its end.
pub(crate) struct Streamed {
    name: String,
    source: Source<'static>,
}

/// What is told of a stream.
pub(crate) trait Listener {
    /// The header has arrived, of what errors call `name`. Whether entries are wanted.
    ///
    /// # Errors
    /// End the reading.
    fn header(&mut self, name: &str, header: &Header) -> Result<bool>;

    /// More entries have arrived.
    ///
    /// # Errors
    /// End the reading.
    fn entries(&mut self, batch: Batch) -> Result<()>;
}

impl Streamed {
    /// Reads all of it; of an archive, each member that is the matrix.
    ///
    /// # Errors
    /// As [`read_matrix`](super::read_matrix), and those of the listener.
    pub(crate) fn read(self, listener: &mut dyn Listener) -> Result<()> {
        let Self { name, source } = self;
        let Source::Archive(input) = source else { return read_source(source, &name, listener) };
        let mut is_there = false;
        let files = read_members(input, &name, |role, content, name| {
            if role == Role::Matrix {
                is_there = true;
                read_source(Source::Stream(Box::new(content)), name, listener)?;
            }
            Ok(())
        })?;
        if is_there { Ok(()) } else { Err(no_member(&name, "NAME/NAME.mtx", &files)) }
    }
}

fn read_source(source: Source, name: &str, listener: &mut dyn Listener) -> Result<()> {
    let (header, text) = begin(source, name)?;
    if !listener.header(name, &header)? {
        return Ok(());
    }
    let mut hand_on = |entries: &mut Entries<f64>| {
        let waiting: usize = entries.blocks().map(|(_, block)| block.range().len()).sum();
        if waiting < HANDED_ON { Ok(()) } else { listener.entries(Batch(std::mem::take(&mut entries.waves))) }
    };
    let body = |line| Body::new(name, &header, line, &|_, _| {});
    let rest = match text {
        Text::Mapped(map, start, line) => body(line).text_in_waves(&map[start..], CHECKED, &mut hand_on),
        Text::Streamed(first, rest, line) => body(line).stream_in_waves(first, rest, &mut hand_on),
    }?;
    listener.entries(Batch(rest.waves))
}

/// Entries that were read together.
pub(crate) struct Batch(Vec<Wave<f64>>);

impl Batch {
    /// No entries.
    pub(crate) fn empty() -> Self {
        Self(Vec::new())
    }

    /// Its entries, block by block in the order of the file.
    pub(crate) fn blocks(&self) -> Vec<Given<'_>> {
        self.0.iter().flat_map(Wave::given).collect()
    }
}

impl Wave<f64> {
    fn given(&self) -> impl Iterator<Item = Given<'_>> {
        self.blocks.iter().map(|block| Given {
            rows: &self.rows[block.range()],
            columns: &self.cols[block.range()],
            values: self.values.get(block.range()).unwrap_or_default(),
            block,
        })
    }
}

/// Entries as the lines of a block give them, counted from 0.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    rows: &'a [u32],
    columns: &'a [u32],
    /// Empty for a pattern.
    values: &'a [f64],
    block: &'a Block,
}

impl Given<'_> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Row and column of entry `k`.
    #[inline]
    pub(crate) fn place(&self, k: usize) -> (u32, u32) {
        (self.rows[k], self.columns[k])
    }

    /// Its value.
    #[inline]
    pub(crate) fn value(&self, k: usize) -> f64 {
        self.values.get(k).copied().unwrap_or(1.0)
    }

    /// The line that gives it, counted as its part does.
    pub(crate) fn line(&self, k: usize) -> u64 {
        self.block.line_of(k)
    }

    /// Whether there are entries above the diagonal, and below it.
    pub(crate) fn triangles(&self) -> [bool; 2] {
        [self.block.found.above, self.block.found.below]
    }
}

/// The value of the mirror image of an entry.
#[inline]
pub(crate) fn mirror(header: &Header, value: f64) -> f64 {
    mirrored(header.symmetry, value)
}

/// What another process needs to know of a header, see [`from_text`].
pub(crate) fn to_text(header: &Header) -> String {
    let Header { object, layout, field, symmetry, rows, cols, entries, ref comments } = *header;
    let size = match (object.word(), layout) {
        ("vector", Layout::Coordinate) => format!("{rows} {entries}"),
        ("vector", Layout::Array) => format!("{rows}"),
        (_, Layout::Coordinate) => format!("{rows} {cols} {entries}"),
        (_, Layout::Array) => format!("{rows} {cols}"),
    };
    let comments: String = comments.iter().map(|comment| format!("{comment}\n")).collect();
    format!("%%MatrixMarket {object} {layout} {field} {symmetry}\n{size}\n{comments}")
}

/// The header of which [`to_text`] gave this.
///
/// # Errors
/// Text that is no header.
pub(crate) fn from_text(text: &[u8], name: &str) -> Result<Header> {
    let header = Header::read(&mut Lines::new(text, name))?;
    let comments = text.splitn(3, |&byte| byte == b'\n').nth(2).unwrap_or_default();
    let comments = String::from_utf8_lossy(comments).split_terminator('\n').map(String::from).collect();
    Ok(Header { comments, ..header })
}
