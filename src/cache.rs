//! What is kept between runs: where it lies, and how a file of it is written, named and complained about.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use etcetera::BaseStrategy;
use sha2::{Digest as _, Sha256};

/// What a temporary file's name ends in.
const TEMPORARY: &str = ".tmp";

/// The age at which a temporary file is one of a killed process.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// The directory for what is kept: `DECLIVE_CACHE_DIR`, else `declive` in the user's cache directory (`$XDG_CACHE_HOME` or
/// `~/.cache`, `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows). `None` if `DECLIVE_CACHE_DIR` is empty, or the
/// user has no home: then nothing is kept.
pub(crate) fn directory() -> Option<PathBuf> {
    match std::env::var_os("DECLIVE_CACHE_DIR") {
        Some(dir) if dir.is_empty() => None,
        Some(dir) => Some(dir.into()),
        None => Some(etcetera::base_strategy::choose_native_strategy().ok()?.cache_dir().join("declive")),
    }
}

/// Writes a file that appears whole or not at all, in the place of an older one if there is one; makes its directory. What
/// killed processes left half-written there an hour ago goes.
///
/// # Errors
/// The system's.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    fs::create_dir_all(dir)?;
    remove_left_over(dir);
    let mut file = tempfile::Builder::new().prefix(".").suffix(TEMPORARY).tempfile_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn remove_left_over(dir: &Path) {
    let old = |file: &fs::DirEntry| {
        let changed = file.metadata().and_then(|meta| meta.modified()).ok()?;
        Some(SystemTime::now().duration_since(changed).ok()? > LEFT_OVER)
    };
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().ends_with(TEMPORARY) && old(&file) == Some(true) {
            let _ = fs::remove_file(file.path()); // another process may be faster
        }
    }
}

/// A SHA-256 hash; shown in hexadecimal digits, the first so many of them with a precision: `{:.8}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

impl Digest {
    /// Of some texts in this order. Equal texts that are divided otherwise give another hash.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = String::new();
        for byte in self.0 {
            write!(digits, "{byte:02x}")?;
        }
        f.write_str(&digits[..f.precision().unwrap_or(digits.len()).min(digits.len())])
    }
}

/// Warns of `path`, once in this process.
pub(crate) fn warn_once(path: &Path, message: impl fmt::Display) {
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into()) {
        log::warn!("{}: {message}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256_of_lengths_and_parts() {
        let of = |parts: &[&str]| Digest::of(parts.iter().map(|part| part.as_bytes())).to_string();
        // of no bytes at all: FIPS 180-4's well-known value
        assert_eq!(of(&[]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(format!("{:.8}", Digest::of([])), "e3b0c442");
        // of eight zero bytes
        assert_eq!(of(&[""]), "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
        let different = [of(&["ab", "c"]), of(&["a", "bc"]), of(&["abc"]), of(&["abc", ""]), of(&["", "abc"])];
        assert_eq!(BTreeSet::from(different).len(), 5);
    }

    #[test]
    fn a_file_is_written_with_its_directories_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        for content in [&b"one"[..], b"", b"three"] {
            write(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_killed_processes_left_goes_when_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["old.tmp", "new.tmp", "old.json"].map(|name| dir.path().join(name));
        for name in &names {
            let file = fs::File::create(name).unwrap();
            if name.to_string_lossy().contains("old") {
                file.set_modified(SystemTime::now() - 2 * LEFT_OVER).unwrap();
            }
        }
        write(&dir.path().join("file"), b"").unwrap();
        assert_eq!(names.map(|name| name.exists()), [false, true, true]);
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(write(&file.path().join("x"), b"").is_err());
    }
}
