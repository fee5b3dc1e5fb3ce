//! The zip archive and its directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::array::Array;
use super::header::{self, Header};
use super::source::Source;
use crate::Result;
use crate::error::npz::{Error, ErrorKind, quote};
use crate::memory::Map;

/// An open file.
pub(super) struct Archive<'a> {
    path: &'a Path,
    pub(super) source: Source,
    pub(super) zip: ZipArchive<Source>,
    /// The file in memory, if its arrays may be used there.
    pub(super) map: Option<Arc<Map>>,
}

impl<'a> Archive<'a> {
    /// Opens a file, and with `in_place` maps it, if the file system can.
    pub(super) fn open(path: &'a Path, in_place: bool) -> Result<Self> {
        let io = |e| crate::Error::io(path, e);
        let file = File::open(path).map_err(io)?;
        let map = if in_place { Map::of(&file).map_err(io)?.map(Arc::new) } else { None };
        let source = Source::new(file).map_err(io)?;
        let mut start = Vec::new();
        source.clone().take(8).read_to_end(&mut start).map_err(io)?;
        // an archive's directory may stand anywhere: without this, all of a large file of another kind is searched
        if !start.starts_with(b"PK") {
            return Err(error(path, None, ErrorKind::NotZip { found: quote(&start) }));
        }
        let zip = ZipArchive::new(source.clone()).map_err(|e| zip_error(path, None, e))?;
        if zip.has_duplicate_names() {
            return Err(error(path, None, ErrorKind::DuplicateMembers));
        }
        Ok(Self { path, source, zip, map })
    }

    /// An error in a member, or in none in particular.
    pub(super) fn error(&self, member: Option<&str>, kind: ErrorKind) -> crate::Error {
        error(self.path, member, kind)
    }

    /// An error in reading a member: of the system, or of what decompresses and finds nonsense.
    pub(super) fn read_error(&self, member: &str, source: std::io::Error) -> crate::Error {
        if source.raw_os_error().is_some() {
            return crate::Error::io(self.path, source);
        }
        self.error(Some(member), ErrorKind::Deflate { what: source.to_string() })
    }

    /// An error of the `zip` crate in a member.
    pub(super) fn zip_error(&self, member: &str, source: ZipError) -> crate::Error {
        zip_error(self.path, Some(member), source)
    }

    /// The file's size.
    pub(super) fn bytes(&self) -> u64 {
        self.source.len()
    }

    /// The file's name.
    pub(super) fn name(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Whether there is an array of that name.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// Looks an array up and reads its header.
    pub(super) fn array(&self, name: &str) -> Result<Array<'_>> {
        let name = format!("{name}.npy");
        let error = |kind| self.error(Some(&name), kind);
        let mut zip = self.zip.clone();
        let index = zip.index_for_name(&name).ok_or_else(|| error(ErrorKind::Missing))?;
        let mut member = zip.by_index_raw(index).map_err(|e| self.zip_error(&name, e))?;
        if member.encrypted() {
            return Err(error(ErrorKind::Encrypted));
        }
        let (start, bytes, size) = (member.data_start().unwrap_or(0), member.compressed_size(), member.size());
        let (crc, method) = (member.crc32(), member.compression());
        if start.checked_add(bytes).is_none_or(|end| end > self.bytes()) {
            return Err(error(ErrorKind::Truncated { start, bytes, file_bytes: self.bytes() }));
        }
        let stored_at = match method {
            CompressionMethod::Stored if bytes == size => Some(start),
            CompressionMethod::Stored => {
                let what = format!("a stored member of {bytes} bytes claims to hold {size}");
                return Err(error(ErrorKind::Archive { what }));
            }
            CompressionMethod::DEFLATE if cfg!(feature = "compression") => None,
            CompressionMethod::DEFLATE => {
                let what = format!("compressed arrays ({name})");
                return Err(crate::Error::MissingFeature { path: self.path.into(), what, feature: "compression" });
            }
            other => return Err(error(ErrorKind::Compression { found: other.to_string().to_lowercase() })),
        };
        let mut head = Vec::new();
        if stored_at.is_none() {
            drop(member);
            member = zip.by_index(index).map_err(|e| self.zip_error(&name, e))?;
        }
        member.take(header::MAX as u64).read_to_end(&mut head).map_err(|e| self.read_error(&name, e))?;
        let header = Header::parse(&head).map_err(error)?;
        head.truncate(header.len);
        let found = size.saturating_sub(header.len as u64);
        let expected = header.elements().saturating_mul(header.dtype.bytes() as u128);
        if expected != u128::from(found) {
            return Err(error(ErrorKind::Size { expected, found }));
        }
        let no_memory = |_| crate::Error::OutOfMemory { what: format!("{name} of {}", self.name()), bytes: found };
        let len = usize::try_from(header.elements()).map_err(no_memory)?;
        Ok(Array { archive: self, name, index, stored_at, crc, header, head, len })
    }
}

fn error(path: &Path, member: Option<&str>, kind: ErrorKind) -> crate::Error {
    let file = path.to_string_lossy().into_owned();
    crate::Error::Npz(Error { file, member: member.map(String::from), kind })
}

fn zip_error(path: &Path, member: Option<&str>, source: ZipError) -> crate::Error {
    let what = match source {
        ZipError::Io(source) if source.raw_os_error().is_some() => return crate::Error::io(path, source),
        ZipError::Io(source) => source.to_string(),
        ZipError::InvalidArchive(what) => what.into_owned(),
        other => other.to_string(),
    };
    error(path, member, ErrorKind::Archive { what: quote(what.as_bytes()) })
}
