//! Whole files.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use super::archive::{Failed, Role, for_each_member};
use super::array::{check_diagonal, columns, with_places};
use super::assemble::{Zeros, assemble};
use super::body::{Body, Entries, Progress};
use super::fault::reading;
use super::header::{Field, Header, Layout, Symmetry};
use super::line::Value;
use super::lines::Lines;
use super::source::{Input, Source};
use crate::error::matrix_market::{Error, ErrorKind, quote};
use crate::matrix::{AnyCsr, AnyVectors, Complex64};
use crate::memory::Map;
use crate::{Csr, Result};

/// A matrix and what its file said about it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Matrix<A = Csr> {
    /// The matrix in full: symmetric files are expanded.
    pub a: A,
    /// What the file says about itself.
    pub header: Header,
    /// How many of the file's entries were added to an earlier one at the same place.
    pub duplicates: u64,
}

/// A matrix, real or complex, and the right-hand sides that an archive has beside it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct System {
    /// The matrix.
    pub matrix: Matrix<AnyCsr>,
    /// The columns of `NAME_b.mtx`, if the file is an archive that holds one.
    pub b: Option<AnyVectors>,
}

/// How to read: what becomes of zeros, and who is told of the progress.
///
/// ```
/// use declive::matrix_market::{Reader, Zeros};
///
/// let text = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4\n1 2 0\n2 2 5\n";
/// let kept = Reader::new().matrix_from(text.as_bytes(), "<stdin>").unwrap();
/// let dropped = Reader::new().with_zeros(Zeros::Drop).matrix_from(text.as_bytes(), "<stdin>").unwrap();
/// assert_eq!((kept.a.nnz(), dropped.a.nnz()), (3, 2));
/// ```
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    zeros: Zeros,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Default for Reader<'_> {
    fn default() -> Self {
        Self { zeros: Zeros::default(), progress: &|_, _| {} }
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("zeros", &self.zeros).finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// A reader that keeps zeros and tells nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What becomes of zeros that a coordinate file stores. Those of an array file never become entries.
    #[must_use]
    pub fn with_zeros(self, zeros: Zeros) -> Self {
        Self { zeros, ..self }
    }

    /// Calls `progress` now and then with the numbers of entries read and claimed, from any thread, and once at the
    /// end of the file.
    #[must_use]
    pub fn with_progress(self, progress: &'a (dyn Fn(u64, u64) + Sync)) -> Self {
        Self { progress, ..self }
    }

    /// Reads a real matrix from a file, see [`read_matrix`].
    ///
    /// # Errors
    /// As [`read_matrix`].
    pub fn matrix(self, path: &Path) -> Result<Matrix> {
        let name = path.to_string_lossy();
        real(self.open(Source::open(path)?, &name, Want::REAL)?.matrix, &name)
    }

    /// Reads a real matrix from any input, called `name` in errors, see [`read_matrix_from`].
    ///
    /// # Errors
    /// As [`read_matrix`].
    pub fn matrix_from(self, input: impl Read + Send, name: &str) -> Result<Matrix> {
        real(self.open(source_of(input, name)?, name, Want::REAL)?.matrix, name)
    }

    /// Reads a matrix, real or complex, from a file.
    ///
    /// # Errors
    /// As [`read_matrix`], but complex files are fine.
    pub fn any_matrix(self, path: &Path) -> Result<Matrix<AnyCsr>> {
        Ok(self.open(Source::open(path)?, &path.to_string_lossy(), Want::ANY)?.matrix)
    }

    /// Reads a matrix, real or complex, from any input, called `name` in errors.
    ///
    /// # Errors
    /// As [`read_matrix`], but complex files are fine.
    pub fn any_matrix_from(self, input: impl Read + Send, name: &str) -> Result<Matrix<AnyCsr>> {
        Ok(self.open(source_of(input, name)?, name, Want::ANY)?.matrix)
    }

    /// Reads a matrix from a file, and the right-hand sides if it is an archive that has some.
    ///
    /// # Errors
    /// As [`read_matrix`], but complex matrices are fine.
    pub fn system(self, path: &Path) -> Result<System> {
        self.open(Source::open(path)?, &path.to_string_lossy(), Want::SYSTEM)
    }

    /// Reads a matrix from any input, called `name` in errors, and the right-hand sides if it is an archive that has
    /// some.
    ///
    /// # Errors
    /// As [`read_matrix`], but complex matrices are fine.
    pub fn system_from(self, input: impl Read + Send, name: &str) -> Result<System> {
        self.open(source_of(input, name)?, name, Want::SYSTEM)
    }

    fn open(self, source: Source, name: &str, want: Want) -> Result<System> {
        match source {
            Source::Archive(input) => self.archive(input, name, want),
            source => {
                let (header, text) = begin(source, name)?;
                Ok(System { matrix: self.any(header, text, name, want)?, b: None })
            }
        }
    }

    fn archive(self, input: Input, name: &str, want: Want) -> Result<System> {
        let (mut matrix, mut b) = (None, None);
        let files = read_members(input, name, |role, content, name| {
            match role {
                Role::Matrix => {
                    let (header, text) = begin(Source::Stream(Box::new(content)), name)?;
                    matrix = Some(self.any(header, text, name, want)?);
                }
                Role::Rhs if want.rhs => b = Some(any_vectors(Source::Stream(Box::new(content)), name, false)?),
                Role::Rhs | Role::Other => {}
            }
            Ok(())
        })?;
        let matrix = matrix.ok_or_else(|| no_member(name, "NAME/NAME.mtx", &files))?;
        Ok(System { matrix, b })
    }

    fn any(self, header: Header, text: Text, name: &str, want: Want) -> Result<Matrix<AnyCsr>> {
        if header.field == Field::Complex {
            if want.real {
                return Err(is_complex(name));
            }
            let Matrix { a, header, duplicates } = self.read::<Complex64>(header, text, name)?;
            Ok(Matrix { a: a.into(), header, duplicates })
        } else {
            let Matrix { a, header, duplicates } = self.read::<f64>(header, text, name)?;
            Ok(Matrix { a: a.into(), header, duplicates })
        }
    }

    fn read<T: Value>(self, header: Header, text: Text, name: &str) -> Result<Matrix<Csr<T>>> {
        let start = Instant::now();
        let (mut entries, text): (Entries<T>, _) = text.entries(&header, name, self.progress)?;
        if header.layout == Layout::Array {
            check_diagonal(name, &header, &entries)?;
            entries = with_places(&header, entries).map_err(|bytes| bytes.into_error("the file's entries"))?;
        }
        let parsed = start.elapsed();
        // a file takes a while to unmap
        let (made, ()) = rayon::join(|| assemble(name, &header, entries, self.zeros), || drop(text));
        let (a, duplicates) = made?;
        log::debug!("{name}: lines read in {parsed:.3?}, rows made in {:.3?}", start.elapsed() - parsed);
        if duplicates > 0 {
            log::warn!("{name}: {duplicates} entries share a place with an earlier one and were added to it");
        }
        Ok(Matrix { a, header, duplicates })
    }
}

/// What a file is read for.
#[derive(Clone, Copy)]
struct Want {
    /// Only a real matrix will do.
    real: bool,
    /// The right-hand sides of an archive, too.
    rhs: bool,
}

impl Want {
    const REAL: Self = Self { real: true, rhs: false };
    const ANY: Self = Self { real: false, rhs: false };
    const SYSTEM: Self = Self { real: false, rhs: true };
}

/// Reads a real matrix from a file.
///
/// The file may be compressed (gzip, bzip2, xz, zstd), or a tar archive with a member `NAME/NAME.mtx`, compressed or
/// not; its first bytes tell.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.mtx");
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4.5\n2 1 -1\n")?;
/// let matrix = declive::matrix_market::read_matrix(&path)?;
/// assert_eq!(matrix.a.get(1, 0), Some(-1.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file can't be opened or read,
/// [`Error::MatrixMarket`](crate::Error::MatrixMarket) if it is malformed or complex,
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the matrix is too large for the machine.
pub fn read_matrix(path: &Path) -> Result<Matrix> {
    Reader::new().matrix(path)
}

/// Reads a real matrix from any input, called `name` in errors, compressed or not as in [`read_matrix`].
///
/// ```
/// use declive::matrix_market::{Symmetry, read_matrix_from};
///
/// let text = "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 4\n2 1 -1\n";
/// let matrix = read_matrix_from(text.as_bytes(), "<stdin>").unwrap();
/// assert_eq!(matrix.header.symmetry, Symmetry::Symmetric);
/// assert_eq!(matrix.a.get(0, 1), Some(-1.0));
///
/// let error = read_matrix_from(&text.as_bytes()[..text.len() - 5], "<stdin>").unwrap_err();
/// assert_eq!(error.to_string(), r#"<stdin>:4:3: expected "row column value", found only "2""#);
/// ```
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_from(input: impl Read + Send, name: &str) -> Result<Matrix> {
    Reader::new().matrix_from(input, name)
}

/// Reads the columns of a real n×k file as k vectors of n elements.
///
/// Elements that a coordinate file leaves out are 0. The file may be compressed as in [`read_matrix`]; of an archive,
/// the member `NAME/NAME_b.mtx` is read.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_vectors(path: &Path) -> Result<Vec<Vec<f64>>> {
    vectors(Source::open(path)?, &path.to_string_lossy())
}

/// Reads the columns of a real n×k file from any input, called `name` in errors, as [`read_vectors`] does.
///
/// ```
/// let text = "%%MatrixMarket matrix array real general\n3 1\n1\n2.5\n-4e-3\n";
/// let vectors = declive::matrix_market::read_vectors_from(text.as_bytes(), "<stdin>").unwrap();
/// assert_eq!(vectors, [[1.0, 2.5, -0.004]]);
/// ```
///
/// # Errors
/// As [`read_matrix`].
pub fn read_vectors_from(input: impl Read + Send, name: &str) -> Result<Vec<Vec<f64>>> {
    vectors(source_of(input, name)?, name)
}

/// Reads the columns of an n×k file, real or complex, as [`read_vectors`] does.
///
/// # Errors
/// As [`read_matrix`], but complex files are fine.
pub fn read_any_vectors(path: &Path) -> Result<AnyVectors> {
    any_vectors(Source::open(path)?, &path.to_string_lossy(), false)
}

/// Reads the columns of an n×k file, real or complex, from any input, called `name` in errors.
///
/// # Errors
/// As [`read_matrix`], but complex files are fine.
pub fn read_any_vectors_from(input: impl Read + Send, name: &str) -> Result<AnyVectors> {
    any_vectors(source_of(input, name)?, name, false)
}

fn vectors(source: Source, name: &str) -> Result<Vec<Vec<f64>>> {
    any_vectors(source, name, true)?.into_real().ok_or_else(|| is_complex(name))
}

/// Only real ones will do if they are to be `real`.
fn any_vectors(source: Source, name: &str, real: bool) -> Result<AnyVectors> {
    if let Source::Archive(input) = source {
        let mut b = None;
        let files = read_members(input, name, |role, content, name| {
            if role == Role::Rhs {
                b = Some(any_vectors(Source::Stream(Box::new(content)), name, real)?);
            }
            Ok(())
        })?;
        return b.ok_or_else(|| no_member(name, "NAME/NAME_b.mtx", &files));
    }
    let (header, text) = begin(source, name)?;
    match header.field {
        Field::Complex if real => Err(is_complex(name)),
        Field::Complex => dense(header, text, name).map(AnyVectors::Complex),
        _ => dense(header, text, name).map(AnyVectors::Real),
    }
}

fn dense<T: Value>(header: Header, text: Text, name: &str) -> Result<Vec<Vec<T>>> {
    if header.layout == Layout::Array && header.symmetry == Symmetry::General {
        return Ok(columns(&header, &text.entries(&header, name, &|_, _| {})?.0));
    }
    header.check_dense().map_err(|kind| Error::whole(name, text.line() - 1, kind))?;
    let a = Reader::new().read::<T>(header, text, name)?.a;
    Ok(a.to_columns())
}

fn real(matrix: Matrix<AnyCsr>, name: &str) -> Result<Matrix> {
    let Matrix { a, header, duplicates } = matrix;
    let a = a.into_real().ok_or_else(|| is_complex(name))?;
    Ok(Matrix { a, header, duplicates })
}

/// The banner says that a file is complex.
fn is_complex(name: &str) -> crate::Error {
    Error::whole(name, 1, ErrorKind::Complex)
}

fn source_of<'a>(input: impl Read + Send + 'a, name: &str) -> Result<Source<'a>> {
    Source::of(Box::new(input)).map_err(|e| reading(name, 1, e))
}

/// The body of a file, and the number of its first line.
pub(super) enum Text<'a> {
    /// A mapped file and where the body begins in it.
    Mapped(Map, usize, u64),
    /// What was read of a stream together with the header, and the rest.
    Streamed(Vec<u8>, Input<'a>, u64),
}

/// Reads the header.
pub(super) fn begin<'a>(source: Source<'a>, name: &str) -> Result<(Header, Text<'a>)> {
    match source {
        Source::Mapped(map) => {
            let mut lines = Lines::new(&map[..], name);
            let header = Header::read(&mut lines)?;
            let line = lines.line() + 1;
            let (read, rest) = lines.into_rest();
            let body = map.len() - rest.len() - read.len();
            Ok((header, Text::Mapped(map, body, line)))
        }
        Source::Stream(input) | Source::Archive(input) => {
            let mut lines = Lines::new(input, name);
            let header = Header::read(&mut lines)?;
            let line = lines.line() + 1;
            let (read, rest) = lines.into_rest();
            Ok((header, Text::Streamed(read, rest, line)))
        }
    }
}

impl Text<'_> {
    fn line(&self) -> u64 {
        match self {
            Self::Mapped(.., line) | Self::Streamed(.., line) => *line,
        }
    }

    /// Reads the entries, and gives back the file that they are read from.
    fn entries<T: Value>(self, header: &Header, name: &str, progress: Progress) -> Result<(Entries<T>, Option<Map>)> {
        let body = Body::new(name, header, self.line(), progress);
        Ok(match self {
            Self::Mapped(map, start, _) => (body.read_text(&map[start..])?, Some(map)),
            Self::Streamed(first, rest, _) => (body.read_stream(first, rest)?, None),
        })
    }
}

/// As many files of an archive as an error could name.
const LISTED: usize = 32;

/// Calls `read` with every file of an archive and its name; gives the paths of the first ones.
pub(super) fn read_members(
    input: Input,
    name: &str,
    mut read: impl FnMut(Role, &mut (dyn Read + Send), &str) -> Result<()>,
) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let ended = for_each_member(input, |member, content| {
        read(member.role(name), content, &format!("{name}:{}", member.path))?;
        if files.len() < LISTED {
            files.push(member.path);
        }
        Ok(())
    });
    match ended {
        Ok(()) => Ok(files),
        Err(Failed::Archive(e)) => Err(reading(name, 1, e)),
        Err(Failed::Member(e)) => Err(e),
    }
}

pub(super) fn no_member(name: &str, expected: &'static str, files: &[String]) -> crate::Error {
    Error::whole(name, 1, ErrorKind::NoMember { expected, found: quote(files.join(", ").as_bytes()) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::super::Field;
    use super::*;

    /// The matrix of `text` in full, row by row, `.` where no entry is stored.
    fn read(banner: &str, body: &str) -> String {
        let text = format!("%%MatrixMarket matrix {banner}\n{body}");
        let a = read_matrix_from(text.as_bytes(), "test").unwrap().a;
        let entry = |i, j| a.get(i, j).map_or(".".to_string(), |v| v.to_string());
        let row = |i| (0..a.n_cols()).map(|j| entry(i, j)).collect::<Vec<_>>().join(" ");
        (0..a.n_rows()).map(row).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn coordinate_files() {
        assert_eq!(read("coordinate real general", "2 3 3\n2 3 -1.5\n1 1 4\n2 1 0\n"), "4 . .; 0 . -1.5");
        assert_eq!(read("coordinate double general", "1 2 1\n1 2 1.0D+05"), ". 100000");
        assert_eq!(read("coordinate integer general", "2 2 2\n1 2 +7\n2 1 -3\n"), ". 7; -3 .");
        assert_eq!(read("coordinate pattern general", "2 2 2\n1 2\n2 1\n"), ". 1; 1 .");
        assert_eq!(read("coordinate real general", "0 0 0\n"), "");
    }

    #[test]
    fn coordinate_files_with_symmetry() {
        let body = "3 3 4\n1 1 4\n2 1 -1\n3 2 2\n3 3 0\n";
        assert_eq!(read("coordinate real symmetric", body), "4 -1 .; -1 . 2; . 2 0");
        assert_eq!(read("coordinate integer symmetric", body), "4 -1 .; -1 . 2; . 2 0");
        let upper = "3 3 4\n1 1 4\n1 2 -1\n2 3 2\n3 3 0\n";
        assert_eq!(read("coordinate real symmetric", upper), "4 -1 .; -1 . 2; . 2 0");
        let both = "3 3 4\n3 3 0\n1 2 -1\n3 2 2\n1 1 4\n";
        assert_eq!(read("coordinate real symmetric", both), "4 -1 .; -1 . 2; . 2 0");
        assert_eq!(read("coordinate pattern symmetric", "2 2 2\n1 1\n2 1\n"), "1 1; 1 .");
        let skew = "3 3 3\n2 1 -1\n3 2 2\n3 3 0\n";
        assert_eq!(read("coordinate real skew-symmetric", skew), ". 1 .; -1 . -2; . 2 0");
        assert_eq!(read("coordinate integer skew-symmetric", "2 2 1\n1 2 5\n"), ". 5; -5 .");
    }

    #[test]
    fn array_files() {
        assert_eq!(read("array real general", "2 3\n1\n0\n3\n-0\n5e-1\n6\n"), "1 3 0.5; . . 6");
        assert_eq!(read("array integer general", "1 2\n1\n-2\n"), "1 -2");
        assert_eq!(read("array real symmetric", "3 3\n1\n2\n0\n4\n5\n6\n"), "1 2 .; 2 4 5; . 5 6");
        assert_eq!(read("array real skew-symmetric", "3 3\n2\n3\n-5\n"), ". -2 -3; 2 . 5; 3 -5 .");
        assert_eq!(read("array real general", "0 0\n"), "");
        assert_eq!(read("array real skew-symmetric", "1 1\n"), ".");
    }

    #[test]
    fn blanks_comments_and_line_ends() {
        let body = "\r\n% a comment\r\n \t\r\n2\t2   2 \r\n\r\n  1 \t1 1\r\n % within the body\r\n2 2 2\t\r\n\r\n%end";
        assert_eq!(read("coordinate real general\r", body), "1 .; . 2");
    }

    #[test]
    fn duplicates_are_added_and_counted() {
        let read = |banner: &str, body: &str| {
            let text = format!("%%MatrixMarket matrix coordinate {banner}\n{body}");
            let matrix = read_matrix_from(text.as_bytes(), "test").unwrap();
            (matrix.a.values().to_vec(), matrix.duplicates)
        };
        let general = read("real general", "2 2 5\n1 2 1\n1 1 2\n1 2 3\n2 2 4\n1 2 5\n");
        assert_eq!(general, (vec![2.0, 9.0, 4.0], 2));
        let symmetric = read("pattern symmetric", "2 2 5\n1 1\n1 1\n2 1\n2 1\n2 1\n");
        assert_eq!(symmetric, (vec![2.0, 3.0, 3.0], 3));
        let skew = read("real skew-symmetric", "2 2 2\n1 2 1\n1 2 0.5\n");
        assert_eq!(skew, (vec![1.5, -1.5], 1));
        // one triangle each is no contradiction, although both occur
        let mixed = read("real symmetric", "3 3 3\n2 1 1\n1 3 2\n1 3 2\n");
        assert_eq!(mixed, (vec![1.0, 4.0, 1.0, 4.0], 1));
    }

    #[test]
    fn header_is_handed_on() {
        let text = "%%MatrixMarket matrix coordinate integer general\n% made by hand\n1 2 1\n1 2 7\n";
        let header = read_matrix_from(text.as_bytes(), "test").unwrap().header;
        assert_eq!(
            (header.layout, header.field, header.symmetry),
            (Layout::Coordinate, Field::Integer, Symmetry::General)
        );
        assert_eq!((header.rows, header.cols, header.entries), (1, 2, 1));
        assert_eq!(header.comments, ["made by hand"]);
    }

    #[test]
    fn vectors() {
        let read = |text: &str| read_vectors_from(format!("%%MatrixMarket matrix {text}").as_bytes(), "test").unwrap();
        assert_eq!(read("array real general\n3 2\n1\n2\n3\n4\n5\n6\n"), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(read("coordinate real general\n3 2 2\n2 2 5\n1 1 4\n"), [[4.0, 0.0, 0.0], [0.0, 5.0, 0.0]]);
        assert_eq!(read("array integer symmetric\n2 2\n1\n2\n3\n"), [[1.0, 2.0], [2.0, 3.0]]);
        assert_eq!(read("array real general\n0 2\n"), [[0.0; 0]; 2]);
        assert!(read("array real general\n7 0\n").is_empty());
    }

    /// As the library fast_matrix_market writes them.
    #[test]
    fn objects_that_are_vectors() {
        for (text, expected) in [
            ("array real general\n3\n1.5\n0\n-2\n", [1.5, 0.0, -2.0]),
            ("coordinate real general\n3 2\n3 -2\n1 1.5\n", [1.5, 0.0, -2.0]),
            ("coordinate integer general\n3 3\n1 1\n2 5\n1 1\n", [2.0, 5.0, 0.0]),
            ("coordinate pattern general\n3 1\n2\n", [0.0, 1.0, 0.0]),
        ] {
            let text = format!("%%MatrixMarket vector {text}");
            assert_eq!(read_vectors_from(text.as_bytes(), "test").unwrap(), [expected], "{text}");
            let a = read_matrix_from(text.as_bytes(), "test").unwrap().a;
            assert_eq!((a.n_rows(), a.n_cols(), a.to_columns()), (3, 1, vec![expected.to_vec()]));
        }
        let text = "%%MatrixMarket vector coordinate complex general\n2 1\n2 3 -4\n";
        let a = Reader::new().any_matrix_from(text.as_bytes(), "test").unwrap().a;
        assert!(matches!(a, AnyCsr::Complex(a) if a.get(1, 0) == Some(Complex64::new(3.0, -4.0))));
    }

    #[test]
    fn comments_of_any_length_among_the_entries() {
        for length in [65_535, 65_537, 2 << 20, 5 << 20] {
            let comment = format!(" %{}", "-".repeat(length));
            let text =
                format!("%%MatrixMarket matrix array real general\n2 1\n{comment}\n1\n{comment}\r\n2\n{comment}");
            let columns = [[1.0, 2.0]];
            assert_eq!(read_vectors_from(text.as_bytes(), "test").unwrap(), columns, "{length}");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.mtx");
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read_vectors(&path).unwrap(), columns, "{length}");
            let error = read_vectors_from(format!("{text}\n3 4").as_bytes(), "test").unwrap_err().to_string();
            assert!(error.starts_with("test:8: expected 2 entries, found more"), "{error}");
        }
    }

    #[test]
    fn sparse_vectors_that_would_fill_the_memory() {
        let text = "%%MatrixMarket matrix coordinate real general\n10000 10000 1\n1 1 1\n";
        assert_eq!(read_matrix_from(text.as_bytes(), "test").unwrap().a.nnz(), 1);
        let kind = ErrorKind::Implausible { rows: 10_000, cols: 10_000, entries: 1 };
        match read_vectors_from(text.as_bytes(), "test") {
            Err(crate::Error::MatrixMarket(error)) => {
                assert_eq!(error, Error { file: "test".into(), line: 2, column: None, kind })
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn progress_is_reported() {
        let n = 2_500_000;
        let text = format!("%%MatrixMarket matrix array integer general\n1 {n}\n") + &"1\n".repeat(n);
        let (calls, last) = (AtomicU64::new(0), AtomicU64::new(0));
        let progress = |read: u64, claimed: u64| {
            assert!(read <= claimed && claimed == n as u64);
            calls.fetch_add(1, Relaxed);
            last.store(read, Relaxed);
        };
        let matrix = Reader::new().with_progress(&progress).matrix_from(text.as_bytes(), "test").unwrap();
        assert_eq!(matrix.a.nnz(), n);
        assert!(calls.into_inner() > 10);
        assert_eq!(last.into_inner(), n as u64);
    }

    #[test]
    fn a_failing_input_is_an_io_error() {
        struct Failing(bool);
        impl std::io::Read for Failing {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(std::io::Error::other("the disk is gone"));
                }
                (&b"%%MatrixMarket matrix array real general\n2 1\n1\n"[..]).read(to)
            }
        }
        let error = read_matrix_from(Failing(false), "test").unwrap_err();
        assert!(matches!(error, crate::Error::Io { .. }));
        assert_eq!(error.to_string(), "test: the disk is gone");
    }
}
