//! How long the rows are, and which rows and columns are empty.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::stats::Tally;
use super::{Csr, Scalar};

/// Lengths of rows by powers of two: 0, 1, 2, 3–4, 5–8, 9–16, …
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowLengths {
    /// Entries of the shortest row; 0 for a matrix without rows.
    pub min: usize,
    /// Entries of the longest row; 0 for a matrix without rows.
    pub max: usize,
    /// Rows in each bucket; the last one holds the longest row.
    counts: Vec<usize>,
}

impl RowLengths {
    /// Looks at the row pointers only: O(rows).
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let lengths = || a.row_ptr().windows(2).map(|w| w[1] - w[0]);
        let mut counts = Vec::new();
        for length in lengths() {
            let bucket = bucket(length);
            if bucket >= counts.len() {
                counts.resize(bucket + 1, 0);
            }
            counts[bucket] += 1;
        }
        Self { min: lengths().min().unwrap_or(0), max: lengths().max().unwrap_or(0), counts }
    }

    /// The buckets from that of the shortest row to that of the longest, with the number of rows in each.
    pub fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<usize>, usize)> {
        self.counts.iter().enumerate().skip(bucket(self.min)).map(|(k, &rows)| (lengths(k), rows))
    }
}

/// Number of the bucket of rows with `length` entries.
fn bucket(length: usize) -> usize {
    if length == 0 { 0 } else { length.next_power_of_two().ilog2() as usize + 1 }
}

/// Lengths in a bucket.
fn lengths(bucket: usize) -> RangeInclusive<usize> {
    match bucket {
        0 | 1 => bucket..=bucket,
        _ => (1 << (bucket - 2)) + 1..=1 << (bucket - 1),
    }
}

/// Rows without a stored entry. O(rows).
#[must_use]
pub fn empty_rows<T: Scalar>(a: &Csr<T>) -> Tally {
    Tally::among(a.n_rows(), |i| a.row_ptr()[i] == a.row_ptr()[i + 1])
}

/// Columns without a stored entry; `first` is a column. O(nnz), and a byte a column of memory.
#[must_use]
pub fn empty_columns<T: Scalar>(a: &Csr<T>) -> Tally {
    let used: Vec<AtomicBool> = (0..a.n_cols()).into_par_iter().map(|_| AtomicBool::new(false)).collect();
    a.col_idx().par_chunks(1 << 14).flatten_iter().for_each(|&j| {
        // a cache line that is only read is not taken from other cores
        if !used[j as usize].load(Ordering::Relaxed) {
            used[j as usize].store(true, Ordering::Relaxed);
        }
    });
    Tally::among(a.n_cols(), |j| !used[j].load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix with rows of these lengths.
    fn rows(lengths: &[usize], n_cols: usize) -> Csr {
        let mut row_ptr = vec![0];
        let mut cols = Vec::new();
        for &length in lengths {
            cols.extend(0..length as u32);
            row_ptr.push(cols.len());
        }
        let values = vec![1.0; cols.len()];
        Csr::new(lengths.len(), n_cols, row_ptr, cols, values).unwrap()
    }

    fn buckets(lengths: &[usize]) -> Vec<(usize, usize, usize)> {
        RowLengths::of(&rows(lengths, 40)).buckets().map(|(r, n)| (*r.start(), *r.end(), n)).collect()
    }

    #[test]
    fn powers_of_two() {
        let all: Vec<usize> = (0..=17).collect();
        let expected = [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 4), (9, 16, 8), (17, 32, 1)];
        assert_eq!(buckets(&all), expected);
        assert_eq!(buckets(&[5, 7, 33, 5]), [(5, 8, 3), (9, 16, 0), (17, 32, 0), (33, 64, 1)]);
        assert_eq!(buckets(&[]), []);
        let lengths = RowLengths::of(&rows(&[5, 0, 3], 9));
        assert_eq!((lengths.min, lengths.max), (0, 5));
        assert_eq!(RowLengths::of(&rows(&[], 9)).max, 0);
    }

    #[test]
    fn empty_rows_and_columns() {
        let a = rows(&[1, 0, 3, 0], 5);
        assert_eq!(empty_rows(&a), Tally { count: 2, first: Some(1) });
        assert_eq!(empty_columns(&a), Tally { count: 2, first: Some(3) });
        assert_eq!(empty_rows(&rows(&[], 2)), Tally::default());
        assert_eq!(empty_columns(&rows(&[], 2)), Tally { count: 2, first: Some(0) });
        assert_eq!(empty_columns(&rows(&[0, 0], 0)), Tally::default());
    }
}
