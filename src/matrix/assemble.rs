//! Matrices built row by row, in parallel.

use std::ops::Range;

use bytemuck::Zeroable;
use rayon::prelude::*;

use super::csr::{are_finite, rise_below};
use super::{Csr, Scalar};
use crate::error::{Error, Result};
use crate::memory::zeros;

/// Rows that one task counts.
const ROWS: usize = 1 << 14;
/// Entries below which a block of rows is not split further.
const ENTRIES: usize = 1 << 15;

/// One row being written, its columns in rising order.
pub(super) struct Row<'a, T> {
    cols: &'a mut [u32],
    values: &'a mut [T],
    next: usize,
}

impl<T> Row<'_, T> {
    /// Appends the entry in column `j`, which must be below 2³².
    pub(super) fn push(&mut self, j: usize, value: T) {
        self.cols[self.next] = j as u32;
        self.values[self.next] = value;
        self.next += 1;
    }
}

/// Builds an `n` × `n` matrix: `count(i)` is the number of entries of row `i`, and `fill(i, row)` pushes as many.
///
/// Both are called from many threads, once a row. Costs O(n + nnz) and no memory beyond the result.
pub(super) fn assemble<T: Scalar>(
    n: usize,
    count: impl Fn(usize) -> usize + Sync,
    fill: impl Fn(usize, &mut Row<'_, T>) + Sync,
) -> Result<Csr<T>> {
    assemble_rectangle([n, n], count, fill)
}

/// Some rows of such a matrix, as one of as many rows and of all columns; `count` and `fill` are given numbers of the whole.
pub(super) fn assemble_rows<T: Scalar>(
    rows: Range<usize>,
    columns: usize,
    count: impl Fn(usize) -> usize + Sync,
    fill: impl Fn(usize, &mut Row<'_, T>) + Sync,
) -> Result<Csr<T>> {
    let first = rows.start;
    assemble_rectangle([rows.len(), columns], |i| count(first + i), |i, row| fill(first + i, row))
}

/// The same as [`assemble`] of `n` rows and `columns` columns.
pub(super) fn assemble_rectangle<T: Scalar>(
    [n, columns]: [usize; 2],
    count: impl Fn(usize) -> usize + Sync,
    fill: impl Fn(usize, &mut Row<'_, T>) + Sync,
) -> Result<Csr<T>> {
    if n > Csr::MAX_DIM {
        return Err(too_large(format_args!("{n} rows")));
    }
    let row_ptr = offsets(n, &count)?;
    let nnz = row_ptr[n];
    let mut cols: Vec<u32> = zeroed(nnz, "the column indices")?;
    let mut values: Vec<T> = zeroed(nnz, "the values")?;
    if fill_rows(0, &row_ptr, columns, &mut cols, &mut values, &fill) {
        Ok(Csr::assembled(n, columns, row_ptr, cols, values))
    } else {
        Csr::new(n, columns, row_ptr, cols, values) // says what is wrong
    }
}

/// The prefix sum of `count`, in blocks: within each, and then all of them from where it begins.
fn offsets(n: usize, count: &(impl Fn(usize) -> usize + Sync)) -> Result<Vec<usize>> {
    let mut row_ptr: Vec<usize> = zeroed(n + 1, "the row pointers")?;
    let within = |(b, ends): (usize, &mut [usize])| {
        let mut at = 0usize;
        for (i, end) in (b * ROWS..).zip(ends) {
            at = at.saturating_add(count(i));
            *end = at;
        }
        at
    };
    let mut begins: Vec<usize> = row_ptr[1..].par_chunks_mut(ROWS).enumerate().map(within).collect();
    let mut total = 0usize;
    for begin in &mut begins {
        let entries = std::mem::replace(begin, total);
        total = total.checked_add(entries).ok_or_else(|| too_large(format_args!("{n} rows")))?;
    }
    row_ptr[1..]
        .par_chunks_mut(ROWS)
        .zip(begins)
        .for_each(|(ends, begin)| ends.iter_mut().for_each(|end| *end += begin));
    Ok(row_ptr)
}

/// Fills the rows from `first` on, one for each window of `row_ptr`, by halves until a task is small; tells whether they are valid, which
/// is checked while they are in a cache.
fn fill_rows<T: Scalar>(
    first: usize,
    row_ptr: &[usize],
    columns: usize,
    cols: &mut [u32],
    values: &mut [T],
    fill: &(impl Fn(usize, &mut Row<'_, T>) + Sync),
) -> bool {
    let rows = row_ptr.len() - 1;
    if rows > 1 && cols.len() > ENTRIES {
        let half = rows / 2;
        let at = row_ptr[half] - row_ptr[0];
        let (cols, more_cols) = cols.split_at_mut(at);
        let (values, more_values) = values.split_at_mut(at);
        let (here, there) = rayon::join(
            || fill_rows(first, &row_ptr[..=half], columns, cols, values, fill),
            || fill_rows(first + half, &row_ptr[half..], columns, more_cols, more_values, fill),
        );
        return here && there;
    }
    let mut are_valid = true;
    for (k, bounds) in row_ptr.windows(2).enumerate() {
        let range = bounds[0] - row_ptr[0]..bounds[1] - row_ptr[0];
        let mut row = Row { cols: &mut cols[range.clone()], values: &mut values[range], next: 0 };
        fill(first + k, &mut row);
        debug_assert_eq!(row.next, row.cols.len(), "row {} has fewer entries than were counted", first + k);
        are_valid &= rise_below(row.cols, columns);
    }
    are_valid && are_finite(values)
}

/// `len` zeros, or [`Error::OutOfMemory`].
pub(super) fn zeroed<T: Zeroable>(len: usize, what: &str) -> Result<Vec<T>> {
    zeros(len).map_err(|e| e.into_error(what))
}

/// The error for a system that 32-bit column indices can't address.
pub(super) fn too_large(what: impl std::fmt::Display) -> Error {
    Error::Usage(format!("a system of {what} is too large: at most {} rows can be addressed", Csr::MAX_DIM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_length_across_the_splits() {
        // a lower triangle: row i has i % 700 + 1 entries, many blocks, some rows alone above the limit of a task
        let length = |i: usize| if i % 9000 == 8999 { i + 1 } else { i % 7 + 1 };
        let n = 3 * ROWS + 5;
        let a = assemble(
            n,
            |i| length(i).min(i + 1),
            |i, row| {
                for j in i + 1 - length(i).min(i + 1)..=i {
                    row.push(j, (i + j) as f64);
                }
            },
        )
        .unwrap();
        assert!(a.row_ptr().windows(2).enumerate().all(|(i, w)| w[1] - w[0] == length(i).min(i + 1)));
        assert!((0..n).all(|i| a.row(i).0.iter().zip(a.row(i).1).all(|(&j, &v)| v == (i + j as usize) as f64)));
        assert!((0..n).all(|i| a.row(i).0.last() == Some(&(i as u32))));
    }

    #[test]
    fn nothing_at_all() {
        assert_eq!(assemble::<f64>(0, |_| 1, |_, _| ()).unwrap().nnz(), 0);
    }

    #[test]
    fn too_many_rows_and_too_much_memory() {
        let err = assemble::<f64>(Csr::MAX_DIM + 1, |_| 1, |_, _| ()).unwrap_err();
        assert!(matches!(err, Error::Usage(_)), "{err}");
        let err = zeroed::<f64>(usize::MAX / 64, "much").unwrap_err();
        assert!(matches!(err, Error::OutOfMemory { .. }), "{err}");
    }
}
