//! A file that several threads read at once, each where it wants.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::sync::Arc;

/// Reads the bytes from `offset` on, as many as `to` has room for, if the file has them.
#[cfg(unix)]
fn read_exact_at(file: &File, to: &mut [u8], offset: u64) -> Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, to, offset)
}

#[cfg(not(unix))]
use seeking::read_exact_at;

/// For systems without positional reads: one reader at a time moves the file's only position.
#[cfg(any(not(unix), test))]
mod seeking {
    use std::fs::File;
    use std::io::{Read, Result, Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};

    static POSITION: Mutex<()> = Mutex::new(());

    pub(super) fn read_exact_at(mut file: &File, to: &mut [u8], offset: u64) -> Result<()> {
        let _mine = POSITION.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(to)
    }
}

/// A file, with a position of its own for each clone.
#[derive(Debug, Clone)]
pub(super) struct Source {
    file: Arc<File>,
    len: u64,
    position: u64,
}

impl Source {
    pub(super) fn new(file: File) -> Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), len, position: 0 })
    }

    /// How many bytes the file has.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads the bytes from `offset` on, as many as `to` has room for, if the file has them.
    pub(super) fn read_exact_at(&self, to: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, to, offset)
    }
}

impl Read for Source {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let left = self.len.saturating_sub(self.position);
        let count = to.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.read_exact_at(&mut to[..count], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a position before the file"))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_in_any_way() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"0123456789").unwrap();
        let mut two = [0; 2];
        for read in [read_exact_at, seeking::read_exact_at] {
            read(&file, &mut two, 7).unwrap();
            assert_eq!(&two, b"78");
            assert_eq!(read(&file, &mut two, 9).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
        let mut source = Source::new(file).unwrap();
        let mut other = source.clone();
        assert_eq!(source.seek(SeekFrom::End(-3)).unwrap(), 7);
        source.read_exact(&mut two).unwrap();
        other.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"01");
        assert_eq!(source.read(&mut two).unwrap(), 1);
        assert_eq!((two[0], source.read(&mut two).unwrap()), (b'9', 0));
        assert_eq!(source.seek(SeekFrom::Start(99)).unwrap(), 99);
        assert_eq!(source.read(&mut two).unwrap(), 0);
        assert!(source.seek(SeekFrom::Current(-100)).is_err());
    }
}
