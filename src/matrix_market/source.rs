//! Where text comes from: a mapped file, a stream, or either one compressed, perhaps as a member of an archive.
//!
//! What a file is is told by its first bytes, not by its name.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use super::fault::reading;
use super::header::begins_with_mark;
use super::unpack::unpack;
use crate::memory::Map;

/// Bytes of text, or the archive that holds them.
pub(super) enum Source<'a> {
    /// A file in memory.
    Mapped(Map),
    /// Anything else.
    Stream(Input<'a>),
    /// A tar archive.
    Archive(Input<'a>),
}

/// A stream that another thread may read.
pub(super) type Input<'a> = Box<dyn Read + Send + 'a>;

impl Source<'static> {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> crate::Result<Self> {
        let open = || {
            let file = File::open(path)?;
            match Map::of(&file)? {
                Some(map) if !is_packed(&map) => Ok(Self::Mapped(map)),
                Some(map) => Source::of(Box::new(Cursor::new(map))),
                None => Source::of(Box::new(BufReader::new(file))),
            }
        };
        open().map_err(|e| reading(&path.to_string_lossy(), 1, e))
    }
}

impl<'a> Source<'a> {
    /// Looks into a stream.
    pub(super) fn of(input: Input<'a>) -> io::Result<Self> {
        let (start, input) = peek(input, 6)?;
        let mut input: Input<'a> = match Packing::of(&start) {
            None => input,
            Some(packing) => unpack(packing, input)?,
        };
        let (start, rest) = peek(input, TAR_MARK.end)?;
        input = rest;
        Ok(if is_tar(&start) { Self::Archive(input) } else { Self::Stream(input) })
    }
}

/// All bytes of a file of any kind, decompressed if it is compressed.
pub(crate) fn unpacked(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match Source::of(Box::new(BufReader::new(File::open(path)?)))? {
        Source::Mapped(map) => bytes.extend_from_slice(&map),
        Source::Stream(mut input) | Source::Archive(mut input) => {
            input.read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// Whether the bytes are anything but text.
fn is_packed(bytes: &[u8]) -> bool {
    Packing::of(bytes).is_some() || is_tar(bytes)
}

/// Where a tar archive has its mark.
const TAR_MARK: std::ops::Range<usize> = 257..262;

/// Whether a tar archive begins here. A comment of a Matrix Market file may happen to have its mark in the same place.
fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(TAR_MARK) == Some(b"ustar") && !begins_with_mark(bytes)
}

/// The first bytes of a stream, and the stream with them.
fn peek<'a>(mut input: Input<'a>, count: usize) -> io::Result<(Vec<u8>, Input<'a>)> {
    let mut start = Vec::with_capacity(count);
    input.by_ref().take(count as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(Cursor::new(start).chain(input))))
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// `.gz`
    Gzip,
    /// `.bz2`
    Bzip2,
    /// `.xz`
    Xz,
    /// `.zst`
    Zstd,
}

impl Packing {
    /// What the first bytes of a file say.
    fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name of the compression, and of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// Compressed data that can't be decompressed: damaged or cut off.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{format}: {cause}")]
pub(super) struct Corrupt {
    pub(super) format: &'static str,
    pub(super) cause: String,
}

impl Corrupt {
    /// What is behind an error of reading, if it is this.
    pub(super) fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}
