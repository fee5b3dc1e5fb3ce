//! The lines after the size line.

use std::ops::Range;

use super::super::Symmetry;
use super::super::header;
use super::text::{Index, Line, Spelling, Text};
use crate::Csr;
use crate::matrix::Scalar;

/// How an entry's value is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values {
    /// Not at all.
    None,
    /// As one number.
    Real(Spelling),
    /// As two.
    Complex(Spelling),
}

impl Values {
    #[inline]
    fn put<T: Scalar>(self, line: &mut Line, value: T) {
        match self {
            Self::None => {}
            Self::Real(spelling) => line.number(value.re(), spelling),
            Self::Complex(spelling) => {
                line.number(value.re(), spelling);
                line.byte(b' ');
                line.number(value.im(), spelling);
            }
        }
    }

    #[inline]
    fn put_after_blank<T: Scalar>(self, line: &mut Line, value: T) {
        if !matches!(self, Self::None) {
            line.byte(b' ');
            self.put(line, value);
        }
    }
}

/// The entries numbered `entries`, row by row.
pub(super) fn rows<T: Scalar>(a: &Csr<T>, values: Values, entries: Range<usize>, text: &mut Text) {
    for (i, cols, row) in parts_of_rows(a, entries) {
        let i = Index::new(i);
        for (&j, &value) in cols.iter().zip(row) {
            text.line(|line| {
                line.kept_index(&i);
                line.byte(b' ');
                line.index(j);
                values.put_after_blank(line, value);
            });
        }
    }
}

/// Of the entries numbered `entries` the mirror images of those on and above the diagonal: the lower triangle column by
/// column.
pub(super) fn lower_columns<T: Scalar>(
    a: &Csr<T>,
    symmetry: Symmetry,
    values: Values,
    entries: Range<usize>,
    text: &mut Text,
) {
    for (i, cols, row) in parts_of_rows(a, entries) {
        let from = cols.partition_point(|&j| (j as usize) < i);
        let col = Index::new(i);
        for (&j, &value) in cols[from..].iter().zip(&row[from..]) {
            let value = if j as usize == i { value } else { header::mirrored(symmetry, value) };
            text.line(|line| {
                line.index(j);
                line.byte(b' ');
                line.kept_index(&col);
                values.put_after_blank(line, value);
            });
        }
    }
}

/// Rows with their numbers, columns and values, the first and the last one cut to the range of entries.
fn parts_of_rows<T: Scalar>(a: &Csr<T>, entries: Range<usize>) -> impl Iterator<Item = (usize, &[u32], &[T])> {
    let row_ptr = a.row_ptr();
    let first = row_ptr.partition_point(|&start| start <= entries.start).saturating_sub(1);
    row_ptr[first..].windows(2).take_while(move |row| row[0] < entries.end).enumerate().map(move |(k, row)| {
        let part = row[0].max(entries.start)..row[1].min(entries.end);
        (first + k, &a.col_idx()[part.clone()], &a.values()[part])
    })
}

/// The elements numbered `elements` of vectors of `len` elements, one vector after the other.
pub(super) fn vectors<T: Scalar>(
    columns: &[&[T]],
    len: usize,
    values: Values,
    elements: Range<usize>,
    text: &mut Text,
) {
    for (j, part) in parts_of_columns(len, elements) {
        for &value in &columns[j][part] {
            text.line(|line| values.put(line, value));
        }
    }
}

/// The elements numbered `elements` of a matrix in full, column by column, without those that follow from the symmetry.
pub(super) fn dense<T: Scalar>(
    a: &Csr<T>,
    symmetry: Symmetry,
    values: Values,
    elements: Range<usize>,
    text: &mut Text,
) {
    for (j, part) in parts_of_columns(a.n_rows(), elements) {
        let from = match symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => j,
            Symmetry::SkewSymmetric => j + 1,
        };
        for i in part.start.max(from)..part.end {
            text.line(|line| values.put(line, a.get(i, j).unwrap_or_default()));
        }
    }
}

/// Columns of `rows` rows each, the first and the last one cut to the range of elements.
fn parts_of_columns(rows: usize, elements: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut at = elements.start;
    std::iter::from_fn(move || {
        let j = at.checked_div(rows).filter(|_| at < elements.end)?;
        let from = at % rows;
        let to = rows.min(from + (elements.end - at));
        at += to - from;
        Some((j, from..to))
    })
}
