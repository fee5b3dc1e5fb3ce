//! A file being read.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crc32fast::Hasher;

use super::{Column, HEADER, Identity, MAGIC, MAX_NOTE, PIECE, VERSION};
use crate::cache::Digest;
use crate::error::{Error, Result};

/// What may be wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum Bad {
    /// Where it is not the end of the file that came too early, this is no error of its content.
    #[error("it ends too early: truncated")]
    Io(#[from] io::Error),
    #[error("this is no checkpoint of declive")]
    Foreign,
    #[error("a checkpoint in version {0} of the format; this program knows version {VERSION}")]
    Version(u32),
    #[error(
        "it has {found} bytes in place of {expected}: {}",
        if u128::from(*found) < *expected { "truncated" } else { "something follows" }
    )]
    Length { expected: u128, found: u64 },
    #[error("the file is damaged: {0}")]
    Content(&'static str),
}

impl Bad {
    /// What is wrong with this file.
    pub(super) fn of(self, path: &Path) -> Error {
        match self {
            Self::Io(e) if e.kind() != io::ErrorKind::UnexpectedEof => Error::io(path, e),
            other => Error::Checkpoint { path: path.into(), reason: other.to_string() },
        }
    }
}

/// A file being read: [`head`](Self::head) first, then all [elements](Self::elements), and the [end](Self::end).
pub(super) struct Source<R> {
    file: R,
    crc: Hasher,
    /// Its bytes.
    found: u64,
    bytes: Vec<u8>,
    is_finite: bool,
}

/// What comes before the columns of x.
pub(super) struct Head {
    pub(super) identity: Identity,
    /// Iterations and residual of each column that follows.
    pub(super) facts: Vec<(u64, f64)>,
    note: Vec<u8>,
}

impl Source<BufReader<File>> {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if meta.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self::of(BufReader::with_capacity(1 << 20, file), meta.len()))
    }
}

impl<R: Read> Source<R> {
    /// Of so many bytes.
    pub(super) fn of(file: R, found: u64) -> Self {
        Self { file, crc: Hasher::new(), found, bytes: Vec::new(), is_finite: true }
    }

    /// All of it.
    pub(super) fn read(mut self) -> std::result::Result<(Identity, String, Vec<Column>), Bad> {
        let head = self.head()?;
        let mut all = Vec::new();
        for &(iterations, rel_residual_2) in &head.facts {
            // in pieces, as the file may be shorter than it was
            let (mut x, unknowns) = (Vec::new(), head.identity.unknowns as usize);
            while x.len() < unknowns {
                let (begin, end) = (x.len(), unknowns.min(x.len() + PIECE));
                x.resize(end, 0.0);
                self.elements(&mut x[begin..])?;
            }
            all.push(Column { iterations, rel_residual_2, x });
        }
        let identity = head.identity;
        Ok((identity, self.end(head)?, all))
    }

    /// What comes before the columns of x.
    pub(super) fn head(&mut self) -> std::result::Result<Head, Bad> {
        let magic =
            self.array().map_err(|e| if e.kind() == io::ErrorKind::UnexpectedEof { Bad::Foreign } else { e.into() })?;
        if magic != MAGIC {
            return Err(Bad::Foreign);
        }
        let version = u32::from_le_bytes(self.array()?);
        if version != VERSION {
            return Err(Bad::Version(version));
        }
        let [unknowns, entries, columns] = [self.number()?, self.number()?, self.number()?];
        let [a, b] = [Digest(self.array()?), Digest(self.array()?)];
        let [count, note_len] = [self.number()?, self.number()?];
        // what the header claims is believed only if it is there
        let [wide_rows, wide_count] = [unknowns, count].map(u128::from);
        let of_columns = wide_rows.saturating_mul(8).saturating_add(16).saturating_mul(wide_count);
        let expected = of_columns.saturating_add(u128::from(note_len)).saturating_add(HEADER as u128 + 4);
        if expected != u128::from(self.found) {
            return Err(Bad::Length { expected, found: self.found });
        }
        if note_len > MAX_NOTE as u64 || count > columns {
            return Err(Bad::Content("its header contradicts itself"));
        }
        let mut facts = Vec::new();
        for _ in 0..count {
            facts.push((self.number()?, f64::from_le_bytes(self.array()?)));
        }
        let mut note = vec![0; note_len as usize];
        self.fill(&mut note)?;
        Ok(Head { identity: Identity { unknowns, entries, columns, a, b }, facts, note })
    }

    /// The next elements of x.
    pub(super) fn elements(&mut self, to: &mut [f64]) -> io::Result<()> {
        for to in to.chunks_mut(PIECE) {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.resize(8 * to.len(), 0);
            self.fill(&mut bytes)?;
            for (to, bytes) in to.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *to = f64::from_le_bytes(*bytes);
                self.is_finite &= to.is_finite();
            }
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Behind the last element: the note, if all was as it was written.
    pub(super) fn end(mut self, head: Head) -> std::result::Result<String, Bad> {
        let sum = self.crc.clone().finalize();
        if u32::from_le_bytes(self.array()?) != sum {
            return Err(Bad::Content("its checksum is another one"));
        }
        let note = String::from_utf8(head.note).map_err(|_| Bad::Content("its note is no text"))?;
        if !self.is_finite {
            return Err(Bad::Content("x is not finite"));
        }
        Ok(note)
    }

    fn fill(&mut self, to: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(to)?;
        self.crc.update(to);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
