//! Where results go: standard output, or a file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use declive::Error;
use serde::Serialize;

use super::failure::Failure;
use crate::report::json;

/// Temporary files being written, to be removed if the process is killed meanwhile.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A place for a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(FileTarget),
}

/// A file that was found writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileTarget {
    /// As it was given, for messages.
    shown: PathBuf,
    /// With links resolved, so that replacing the file doesn't replace a link to it.
    real: PathBuf,
    /// Whether to write a new file and rename it. Devices, pipes, and files in a directory where none can be created
    /// are written in place.
    replace: bool,
}

impl Target {
    /// Makes sure, before long work, that `path` can be written; `-` is standard output. An existing file stays as it
    /// is until [`Target::write`].
    pub(crate) fn probe(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        FileTarget::probe(path).map(Self::File).map_err(|e| Error::io(path, e))
    }

    /// Writes the result. A reader of standard output that has gone away is not an error: it has what it wanted.
    pub(crate) fn write(&self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Stdout => write_stdout(fill),
            Self::File(file) => self.described(file.write(|file| filled(file, fill))),
        }
    }

    /// Writes a result that may turn out not to be one: the target stays as it is until [`place`](Self::place). None where that can't be, as
    /// on standard output.
    pub(crate) fn write_beside(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Option<Result<Beside, Failure>> {
        let Self::File(file) = self else { return None };
        file.replace.then(|| self.described(file.write_beside(|file| filled(file, fill))))
    }

    /// Puts in its place what was written beside.
    pub(crate) fn place(&self, written: Beside) -> Result<(), Failure> {
        self.described(written.take_place())
    }

    /// Writes what must be there after anything that may happen: it is on the disk before it takes the place of what was
    /// there, and that is on the disk, too, before this comes back.
    pub(crate) fn write_durably(&self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let Self::File(file) = self else { return self.write(fill) };
        let written = file.write(|content| {
            filled(&content, fill)?;
            if file.replace { content.sync_all() } else { Ok(()) } // pipes and devices keep nothing
        });
        self.described(written.and_then(|()| file.sync_name()))
    }

    /// Writes a result whose parts do not come in order, in pieces that need no buffer. Standard output can't take it.
    pub(crate) fn write_seekable<F>(&self, fill: F) -> Result<(), Failure>
    where
        F: FnOnce(&mut dyn WriteSeek) -> io::Result<()>,
    {
        self.described(match self {
            Self::Stdout => Err(ErrorKind::NotSeekable.into()),
            Self::File(file) => file.write(|mut file| fill(&mut file)),
        })
    }

    fn described<T>(&self, written: io::Result<T>) -> Result<T, Failure> {
        written.map_err(|source| Failure::Write { name: self.name(), source })
    }

    /// Whether it is a file whose name ends so.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        let Self::File(file) = self else { return false };
        file.shown.extension().is_some_and(|of_file| of_file.eq_ignore_ascii_case(extension))
    }

    /// Whether writing here would change the file `path`, by whatever name.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let Self::File(file) = self else { return false };
        // a new file in the place of one with several names leaves the others alone
        resolved(path).is_ok_and(|p| p == file.real) || !file.replace && is_same_file(path, &file.real)
    }

    /// Refuses to change the file `input`, if there is one, `which` is needed, for an option.
    pub(crate) fn keeps(&self, option: &str, input: Option<&Path>, which: &str) -> Result<(), Failure> {
        match input.filter(|path| self.is_file(path)) {
            Some(path) => Err(Failure::usage(format!("{option} would overwrite {}, {which}", path.display()))),
            None => Ok(()),
        }
    }

    /// How large the file is now; standard output, pipes and devices have no size.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let Self::File(file) = self else { return None };
        fs::metadata(&file.real).ok().filter(fs::Metadata::is_file).map(|meta| meta.len())
    }

    /// The path as it was given, `-` for standard output.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "-".into(),
            Self::File(file) => file.shown.display().to_string(),
        }
    }
}

/// A file that is not written from its beginning to its end.
pub(crate) trait WriteSeek: Write + Seek {}

impl<F: Write + Seek> WriteSeek for F {}

impl FileTarget {
    fn probe(path: &Path) -> io::Result<Self> {
        let shown = path.to_path_buf();
        let existing = match fs::metadata(path) {
            Ok(meta) => Some(meta),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        match existing {
            Some(meta) if meta.is_dir() => Err(ErrorKind::IsADirectory.into()),
            // opening a pipe would wait for its reader
            Some(meta) if !meta.is_file() => Ok(Self { real: shown.clone(), shown, replace: false }),
            existing => {
                if existing.is_some() {
                    OpenOptions::new().write(true).open(path)?; // renaming would get around its protection
                }
                let real = resolved(path)?;
                let temporary = Temporary::create(&real);
                if existing.is_none() {
                    temporary?;
                    return Ok(Self { shown, real, replace: true });
                }
                Ok(Self { shown, real, replace: temporary.is_ok() })
            }
        }
    }

    fn write(&self, fill: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
        if !self.replace {
            return fill(File::create(&self.real)?);
        }
        self.write_beside(fill)?.take_place()
    }

    fn write_beside(&self, fill: impl FnOnce(File) -> io::Result<()>) -> io::Result<Beside> {
        let (temporary, file) = Temporary::create(&self.real)?;
        fill(file)?;
        Ok(Beside { temporary, real: self.real.clone() })
    }
}

impl FileTarget {
    /// Brings the directory's entry of the file to the disk. Only Unix has a way to do that.
    fn sync_name(&self) -> io::Result<()> {
        match self.real.parent() {
            Some(dir) if cfg!(unix) && self.replace => File::open(dir)?.sync_all(),
            _ => Ok(()),
        }
    }
}

/// A file that is complete, but is not in its place yet. Goes away when dropped.
#[derive(Debug)]
pub(crate) struct Beside {
    temporary: Temporary,
    real: PathBuf,
}

impl Beside {
    fn take_place(self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.real) {
            fs::set_permissions(&self.temporary.0, old.permissions())?;
        }
        fs::rename(&self.temporary.0, &self.real) // after which there is nothing for the guard to remove
    }
}

/// A file beside the final one that goes away when dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    fn create(beside: &Path) -> io::Result<(Self, File)> {
        let mut name = OsString::from(".");
        name.push(beside.file_name().ok_or(ErrorKind::InvalidFilename)?);
        name.push(format!(".{}.tmp", std::process::id()));
        let path = beside.with_file_name(name);
        let _ = fs::remove_file(&path); // of a killed process that had this number
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        unfinished().push(path.clone());
        Ok((Self(path), file))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        unfinished().retain(|path| *path != self.0);
    }
}

/// Removes what is half-written, as the process is about to be killed.
pub(crate) fn remove_unfinished() {
    for path in unfinished().drain(..) {
        let _ = fs::remove_file(path);
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path without links, also of a file that doesn't exist yet.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let parent = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            Ok(fs::canonicalize(parent)?.join(path.file_name().ok_or(ErrorKind::InvalidFilename)?))
        }
        other => other,
    }
}

/// Whether two names are those of one file; a pipe or a terminal is none.
#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|meta| (meta.dev(), meta.ino()));
    id(one).is_some_and(|one| id(other) == Some(one))
}

/// Where files have no numbers, names with links resolved must do.
#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

fn filled(file: impl Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    fill(&mut out)?;
    out.flush()
}

/// Writes to standard output; a reader that has gone away is not an error.
fn write_stdout(fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    match filled(io::stdout().lock(), fill) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|source| Failure::Write { name: "standard output".into(), source }),
    }
}

/// What becomes of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Text,
    /// Standard output belongs to the result.
    TextToStderr,
    Nothing,
}

impl Form {
    /// As the options of a command say, whose result may go to standard output.
    pub(crate) fn of(is_json: bool, is_quiet: bool, to_stdout: bool) -> Self {
        match (is_json, is_quiet, to_stdout) {
            (true, ..) => Self::Json,
            (_, true, _) => Self::Nothing,
            (.., true) => Self::TextToStderr,
            _ => Self::Text,
        }
    }

    /// Writes a report.
    pub(crate) fn publish(self, report: &(impl Serialize + ToString)) -> Result<(), Failure> {
        match self {
            Self::Json => write_stdout(|out| out.write_all(json(report).as_bytes())),
            Self::Text => write_stdout(|out| out.write_all(report.to_string().as_bytes())),
            Self::TextToStderr => {
                let _ = io::stderr().write_all(report.to_string().as_bytes());
                Ok(())
            }
            Self::Nothing => Ok(()),
        }
    }
}

/// Writes a report to standard output.
pub(crate) fn print(report: &(impl Serialize + ToString), is_json: bool) -> Result<(), Failure> {
    Form::of(is_json, false, false).publish(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_appears_with_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.mtx");
        let target = Target::probe(&path).unwrap();
        assert!(entries(dir.path()).is_empty(), "the probe leaves nothing");
        target.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!((target.bytes(), Target::Stdout.bytes()), (Some(3), None));
        assert_eq!(entries(dir.path()), ["x.mtx"]);
    }

    #[test]
    fn what_must_stay_is_written_in_full_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.ckpt");
        let target = Target::probe(&path).unwrap();
        for content in ["one", "another"] {
            target.write_durably(|out| out.write_all(content.as_bytes())).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content.as_bytes());
        }
        assert!(target.write_durably(|_| Err(io::Error::other("disk full"))).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"another");
        assert_eq!(entries(dir.path()), ["x.ckpt"]);
    }

    #[test]
    fn a_failing_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.mtx");
        fs::write(&path, "old").unwrap();
        let target = Target::probe(&path).unwrap();
        let failed = target.write(|out| {
            out.write_all(b"ha")?;
            Err(io::Error::other("disk full"))
        });
        assert!(matches!(failed, Err(Failure::Write { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(entries(dir.path()), ["x.mtx"]);
    }

    #[test]
    fn what_was_written_beside_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        fs::write(&path, "old").unwrap();
        let target = Target::probe(&path).unwrap();
        let write = |content: &'static [u8]| target.write_beside(|out| out.write_all(content)).unwrap().unwrap();
        drop(write(b"no result"));
        assert_eq!((fs::read(&path).unwrap(), entries(dir.path()).len()), (b"old".to_vec(), 1));
        let new = write(b"new");
        assert_eq!((fs::read(&path).unwrap(), unfinished().is_empty()), (b"old".to_vec(), false));
        target.place(new).unwrap();
        assert_eq!((fs::read(&path).unwrap(), entries(dir.path()).len()), (b"new".to_vec(), 1));
        let failed = target.write_beside(|_| Err(io::Error::other("disk full"))).unwrap();
        assert!(matches!(failed, Err(Failure::Write { .. })));
        assert_eq!((fs::read(&path).unwrap(), entries(dir.path()).len()), (b"new".to_vec(), 1));
        assert!(Target::Stdout.write_beside(|_| Ok(())).is_none());
    }

    #[test]
    fn parts_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let target = Target::probe(&path).unwrap();
        let fill = |out: &mut dyn WriteSeek| {
            out.write_all(b"12")?;
            out.rewind()?;
            out.write_all(b"0")
        };
        target.write_seekable(fill).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"02");
        assert!(target.write_seekable(|_| Err(io::Error::other("disk full"))).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"02");
        assert_eq!(entries(dir.path()), ["x.npz"]);
        assert!(matches!(Target::Stdout.write_seekable(fill), Err(Failure::Write { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Target::probe(&link).unwrap().write(|out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_in_place() {
        let target = Target::probe(Path::new("/dev/null")).unwrap();
        target.write(|out| out.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn directories_and_what_lies_in_none_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Target::probe(dir.path()).is_err());
        let missing = dir.path().join("no/x.mtx");
        assert!(Target::probe(&missing).unwrap_err().to_string().contains("x.mtx"));
    }

    #[test]
    fn the_same_file_is_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.mtx");
        let target = Target::probe(&path).unwrap();
        assert!(target.is_file(&dir.path().join(".").join("x.mtx")));
        assert!(!target.is_file(&dir.path().join("y.mtx")));
        assert!(!Target::Stdout.is_file(Path::new("-")));
    }

    #[cfg(unix)]
    #[test]
    fn another_name_of_a_file_matters_where_it_is_written_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        fs::write(&one, "old").unwrap();
        fs::hard_link(&one, &other).unwrap();
        let target = |path: &Path, replace| {
            Target::File(FileTarget { shown: path.into(), real: fs::canonicalize(path).unwrap(), replace })
        };
        assert!(target(&one, false).is_file(&other) && !target(&one, true).is_file(&other));
        target(&one, true).write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"old");
        assert!(!target(&one, false).is_file(&other));
        assert!(!is_same_file(Path::new("/dev/null"), Path::new("/dev/null")));
    }
}
