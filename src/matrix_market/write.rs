//! The writer.

use std::io::{BufWriter, Error, ErrorKind, Result, Write};

use super::header::Symmetry;
use crate::Csr;

/// How many characters of a comment go on a line; the format allows 1024.
const COMMENT: usize = 1000;

/// Writes a matrix in the coordinate layout, each value with as few digits as give back the same bits.
///
/// A symmetric or skew-symmetric matrix is written as its lower triangle, column by column; that it is one is the
/// caller's word, checked in debug builds only. A general matrix is written row by row.
///
/// ```
/// use declive::matrix_market::{Symmetry, write_matrix};
///
/// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![4.0, 0.1, 0.1]).unwrap();
/// let mut text = Vec::new();
/// write_matrix(&mut text, &a, Symmetry::Symmetric, &["an example"]).unwrap();
/// assert_eq!(text, b"%%MatrixMarket matrix coordinate real symmetric\n% an example\n2 2 2\n1 1 4\n2 1 0.1\n");
/// ```
///
/// # Errors
/// What `out` gives.
pub fn write_matrix(out: impl Write, a: &Csr, symmetry: Symmetry, comments: &[&str]) -> Result<()> {
    debug_assert!(has_symmetry(a, symmetry), "the matrix is not {symmetry}");
    let mut out = BufWriter::new(out);
    write_head(&mut out, "coordinate", symmetry, comments)?;
    // row i from the diagonal on is column i of the lower triangle
    let first = |i: usize, cols: &[u32]| {
        if symmetry.mirrors() { cols.partition_point(|&j| (j as usize) < i) } else { 0 }
    };
    let entries: usize =
        (0..a.n_rows()).map(|i| a.row(i).0).enumerate().map(|(i, cols)| cols.len() - first(i, cols)).sum();
    writeln!(out, "{} {} {entries}", a.n_rows(), a.n_cols())?;
    for i in 0..a.n_rows() {
        let (cols, values) = a.row(i);
        for k in first(i, cols)..cols.len() {
            let j = cols[k] as usize;
            let (row, col, value) = match symmetry {
                Symmetry::General => (i, j, values[k]),
                _ if i == j => (i, j, values[k]),
                _ => (j, i, symmetry.mirrored(values[k])),
            };
            write!(out, "{} {} ", row + 1, col + 1)?;
            write_number(&mut out, value)?;
        }
    }
    out.flush()
}

/// Writes vectors as the columns of an array file, each value with as few digits as give back the same bits.
///
/// ```
/// let mut text = Vec::new();
/// declive::matrix_market::write_vectors(&mut text, &[[0.1, -3e-9]], &[]).unwrap();
/// assert_eq!(text, b"%%MatrixMarket matrix array real general\n2 1\n0.1\n-3e-9\n");
/// ```
///
/// # Errors
/// What `out` gives; of the kind `InvalidData`, before anything is written, if a value is infinite or NaN, which the
/// format has no words for.
///
/// # Panics
/// If the vectors differ in length.
pub fn write_vectors(out: impl Write, columns: &[impl AsRef<[f64]>], comments: &[&str]) -> Result<()> {
    let rows = columns.first().map_or(0, |column| column.as_ref().len());
    for (j, column) in columns.iter().enumerate() {
        let column = column.as_ref();
        assert_eq!(column.len(), rows, "the vectors must have the same length");
        if let Some(i) = column.iter().position(|v| !v.is_finite()) {
            let what = format!("element {} of vector {} is {}, not a finite number", i + 1, j + 1, column[i]);
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
    }
    let mut out = BufWriter::new(out);
    write_head(&mut out, "array", Symmetry::General, comments)?;
    writeln!(out, "{rows} {}", columns.len())?;
    for &value in columns.iter().flat_map(|column| column.as_ref()) {
        write_number(&mut out, value)?;
    }
    out.flush()
}

fn write_head(out: &mut impl Write, layout: &str, symmetry: Symmetry, comments: &[&str]) -> Result<()> {
    writeln!(out, "%%MatrixMarket matrix {layout} real {symmetry}")?;
    for line in comments.iter().flat_map(|comment| comment.split('\n')) {
        let chars: Vec<char> = line.trim_end().chars().collect();
        if chars.is_empty() {
            writeln!(out, "%")?;
        }
        for part in chars.chunks(COMMENT) {
            writeln!(out, "% {}", part.iter().collect::<String>())?;
        }
    }
    Ok(())
}

/// The shorter of both notations, more or less; either gives back the same bits.
fn write_number(out: &mut impl Write, value: f64) -> Result<()> {
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        writeln!(out, "{value}")
    } else {
        writeln!(out, "{value:e}")
    }
}

fn has_symmetry(a: &Csr, symmetry: Symmetry) -> bool {
    let same = |i: usize, j: usize, value: f64| match symmetry {
        Symmetry::General => true,
        Symmetry::SkewSymmetric if i == j => value == 0.0,
        _ => a.get(j, i).is_some_and(|mirror| mirror == symmetry.mirrored(value)),
    };
    (!symmetry.mirrors() || a.n_rows() == a.n_cols())
        && (0..a.n_rows()).all(|i| {
            let (cols, values) = a.row(i);
            cols.iter().zip(values).all(|(&j, &value)| same(i, j as usize, value))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(a: &Csr, symmetry: Symmetry, comments: &[&str]) -> String {
        let mut text = Vec::new();
        write_matrix(&mut text, a, symmetry, comments).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lower_triangle_column_by_column() {
        let values = vec![0.0, -1.0, -3.0, 1.0, 2.0, 3.0, -2.0];
        let a = Csr::new(3, 3, vec![0, 3, 5, 7], vec![0, 1, 2, 0, 2, 0, 1], values).unwrap();
        assert_eq!(
            written(&a, Symmetry::SkewSymmetric, &[]),
            "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 4\n1 1 0\n2 1 1\n3 1 3\n3 2 -2\n"
        );
        assert!(
            written(&a, Symmetry::General, &[])
                .ends_with("\n3 3 7\n1 1 0\n1 2 -1\n1 3 -3\n2 1 1\n2 3 2\n3 1 3\n3 2 -2\n")
        );
    }

    #[test]
    #[should_panic(expected = "the matrix is not symmetric")]
    #[cfg(debug_assertions)]
    fn symmetry_is_checked_in_debug_builds() {
        let a = Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap();
        written(&a, Symmetry::Symmetric, &[]);
    }

    #[test]
    fn numbers() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-0.1, "-0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-5"),
            (123456789012345.0, "123456789012345"),
            (1e15, "1e15"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
        ] {
            let mut out = Vec::new();
            write_number(&mut out, value).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}\n"));
        }
    }

    #[test]
    fn comments_stay_comments() {
        let a = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let long = "x".repeat(2500);
        let text = written(&a, Symmetry::General, &["two\r\nlines", "", &long]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..4], ["% two", "% lines", "%"]);
        assert_eq!(lines[4..7].iter().map(|l| l.len()).collect::<Vec<_>>(), [1002, 1002, 502]);
        assert_eq!(lines[7..], ["0 0 0"]);
    }

    #[test]
    fn vectors_that_no_reader_could_read() {
        let mut out = Vec::new();
        let error = write_vectors(&mut out, &[[1.0, 2.0], [3.0, f64::NAN]], &[]).unwrap_err();
        assert_eq!(error.to_string(), "element 2 of vector 2 is NaN, not a finite number");
        assert!(out.is_empty());
    }
}
