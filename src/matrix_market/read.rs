//! Whole files.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::assemble::assemble;
use super::entries::{read_columns, read_entries};
use super::header::{Header, Layout, Symmetry};
use super::lines::Lines;
use crate::{Csr, Result};

/// A matrix and what its file said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The matrix in full: symmetric files are expanded.
    pub a: Csr,
    /// What the file says about itself.
    pub header: Header,
    /// How many of the file's entries were added to an earlier one at the same place.
    pub duplicates: usize,
}

/// Reads a matrix from a file.
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
/// [`Error::MatrixMarket`](crate::Error::MatrixMarket) if it is malformed,
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the matrix is too large for the machine.
pub fn read_matrix(path: &Path) -> Result<Matrix> {
    read_matrix_from(open(path)?, &path.to_string_lossy())
}

/// Reads a matrix from any input, called `name` in errors.
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
/// assert_eq!(error.to_string(), r#"<stdin>:4: expected "row column value", found only "2""#);
/// ```
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_from(input: impl BufRead, name: &str) -> Result<Matrix> {
    read_matrix_with(input, name, &mut |_, _| {})
}

/// Reads a matrix as [`read_matrix_from`] does and calls `progress` with the numbers of entries read and claimed,
/// about every million entries and at the end.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_with(input: impl BufRead, name: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<Matrix> {
    let mut lines = Lines::new(input, name);
    let header = Header::read(&mut lines)?;
    read_body(&mut lines, header, progress)
}

/// Reads the columns of an n×k file as k vectors of n elements.
///
/// Elements that a coordinate file leaves out are 0.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_vectors(path: &Path) -> Result<Vec<Vec<f64>>> {
    read_vectors_from(open(path)?, &path.to_string_lossy())
}

/// Reads the columns of an n×k file from any input, called `name` in errors, as k vectors of n elements.
///
/// ```
/// let text = "%%MatrixMarket matrix array real general\n3 1\n1\n2.5\n-4e-3\n";
/// let vectors = declive::matrix_market::read_vectors_from(text.as_bytes(), "<stdin>").unwrap();
/// assert_eq!(vectors, [[1.0, 2.5, -0.004]]);
/// ```
///
/// # Errors
/// As [`read_matrix`].
pub fn read_vectors_from(input: impl BufRead, name: &str) -> Result<Vec<Vec<f64>>> {
    let mut lines = Lines::new(input, name);
    let header = Header::read(&mut lines)?;
    if header.layout == Layout::Array && header.symmetry == Symmetry::General {
        return read_columns(&mut lines, &header);
    }
    header.check_dense().map_err(|kind| lines.error(kind))?;
    let a = read_body(&mut lines, header, &mut |_, _| {})?.a;
    let (rows, cols, row_ptr, col_idx, values) = a.into_raw_parts();
    let mut columns = vec![vec![0.0; rows]; cols];
    for (i, range) in row_ptr.windows(2).enumerate() {
        for k in range[0]..range[1] {
            columns[col_idx[k] as usize][i] = values[k];
        }
    }
    Ok(columns)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    // the lines have a buffer of their own; this one only serves the trait
    File::open(path).map(|file| BufReader::with_capacity(512, file)).map_err(|e| crate::Error::io(path, e))
}

fn read_body<R: BufRead>(lines: &mut Lines<R>, header: Header, progress: &mut dyn FnMut(u64, u64)) -> Result<Matrix> {
    let entries = read_entries(lines, &header, progress)?;
    let (a, duplicates) = assemble(&header, &entries, |line, kind| lines.error_at(line, kind))?;
    if duplicates > 0 {
        log::warn!("{}: {duplicates} entries share a place with an earlier one and were added to it", lines.name());
    }
    Ok(Matrix { a, header, duplicates })
}

#[cfg(test)]
mod tests {
    use super::super::{Error, ErrorKind, Field};
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

    #[test]
    fn sparse_vectors_that_would_fill_the_memory() {
        let text = "%%MatrixMarket matrix coordinate real general\n60000 60000 1\n1 1 1\n";
        assert_eq!(read_matrix_from(text.as_bytes(), "test").unwrap().a.nnz(), 1);
        let kind = ErrorKind::Implausible { rows: 60_000, cols: 60_000, entries: 1 };
        match read_vectors_from(text.as_bytes(), "test") {
            Err(crate::Error::MatrixMarket(error)) => assert_eq!(error, Error { file: "test".into(), line: 2, kind }),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn progress_is_reported() {
        let n = 2_500_000;
        let text = format!("%%MatrixMarket matrix array integer general\n1 {n}\n") + &"1\n".repeat(n);
        let mut calls = Vec::new();
        let matrix =
            read_matrix_with(text.as_bytes(), "test", &mut |read, claimed| calls.push((read, claimed))).unwrap();
        assert_eq!(matrix.a.nnz(), n);
        assert_eq!(calls, [(1 << 20, n as u64), (2 << 20, n as u64), (n as u64, n as u64)]);
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
        let error = read_matrix_from(BufReader::new(Failing(false)), "test").unwrap_err();
        assert!(matches!(error, crate::Error::Io { .. }));
        assert_eq!(error.to_string(), "test: the disk is gone");
    }
}
