//! Files mapped into memory.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a file, read by the operating system as they are looked at.
#[derive(Debug)]
pub(crate) struct Map(memmap2::Mmap);

impl Map {
    /// Maps a file; `None` for what can't be mapped: pipes, devices, files of a kernel that have no length.
    ///
    /// A file that another program shortens meanwhile ends this program with a bus error.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let meta = file.metadata()?;
        if !meta.is_file() || meta.len() == 0 {
            return Ok(None);
        }
        // SAFETY: bytes that another program changes meanwhile are read either way; whoever parses them checks every
        // index and every length against what it has found itself, and relies on no second look. Arrays that are used
        // where they lie (`Elements`) go through checked indexing only, and to devices as a copy that was checked.
        match unsafe { memmap2::Mmap::map(file) } {
            Ok(map) => Ok(Some(Self(map))),
            // a file system without mapping
            Err(_) => Ok(None),
        }
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
