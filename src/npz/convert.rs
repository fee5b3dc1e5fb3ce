//! From entries in any order to compressed rows.

use std::collections::BTreeMap;

use crate::error::npz::ErrorKind;
use crate::matrix::Scalar;

/// Entries that come one by one, all within the matrix.
#[derive(Default)]
pub(super) struct Triplets<T> {
    pub(super) rows: Vec<u32>,
    pub(super) cols: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Scalar> Triplets<T> {
    pub(super) fn push(&mut self, row: usize, col: usize, value: T) {
        // dimensions have at most 32 bits
        self.rows.push(row as u32);
        self.cols.push(col as u32);
        self.values.push(value);
    }
}

/// The first place whose entries, each of them finite, add up to something infinite.
pub(super) fn infinite_sum<T: Scalar>(rows: &[u32], cols: &[u32], values: &[T]) -> ErrorKind {
    let mut sums = BTreeMap::new();
    for ((&row, &col), &value) in rows.iter().zip(cols).zip(values) {
        *sums.entry((row as usize, col as usize)).or_insert_with(T::default) += value;
    }
    let place = sums.into_iter().find(|(_, sum)| !sum.is_finite()).map(|(place, _)| place);
    let (row, col) = place.unwrap_or_default();
    ErrorKind::SumNotFinite { row, col }
}

/// The row of each entry, given where rows start; of columns likewise.
pub(super) fn expand(starts: &[usize]) -> Vec<u32> {
    let mut expanded = Vec::with_capacity(starts.last().copied().unwrap_or(0));
    for (i, w) in starts.windows(2).enumerate() {
        expanded.resize(expanded.len() + w[1] - w[0], i as u32);
    }
    expanded
}

/// Whether columns rise strictly within each row: those of `chunk`, which begins with entry `at`, among each other. A
/// chunk has less than 2³² entries; the first row starts at 0.
pub(super) fn is_rising(starts: &[usize], at: usize, chunk: &[u32]) -> bool {
    // two counts that are the same if columns fall at the starts of rows only; the first needs no row, so is vectorised
    let falls: u32 = chunk.iter().zip(&chunk[chunk.len().min(1)..]).map(|(a, b)| u32::from(a >= b)).sum();
    let begin = starts.partition_point(|&start| start <= at);
    let end = begin + starts[begin..].partition_point(|&start| start < at + chunk.len());
    let falls_at_starts = starts[begin - 1..end].windows(2).map(|w| {
        let k = w[1] - at;
        // empty rows start where the next one does
        u32::from((chunk[k - 1] >= chunk[k]) & (w[0] < w[1]))
    });
    falls == falls_at_starts.sum::<u32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn starts_of_rows() {
        assert_eq!(expand(&[0, 2, 2, 3]), [0, 0, 2]);
        assert!(expand(&[0]).is_empty());
        let starts = [0, 0, 2, 2, 2, 3, 5, 5];
        for (cols, rises) in [
            ([0, 1, 0, 0, 9], true),
            ([0, 0, 0, 0, 9], false),
            ([1, 0, 0, 0, 9], false),
            ([0, 1, 2, 3, 3], false),
            ([5, 6, 6, 5, 6], true),
        ] {
            assert_eq!(is_rising(&starts, 0, &cols), rises, "{cols:?}");
        }
        assert!(is_rising(&starts, 1, &[7, 3, 4, 5]) && !is_rising(&starts, 3, &[7, 3]) && is_rising(&starts, 4, &[7]));
        assert!(is_rising(&starts, 5, &[]) && is_rising(&[0], 0, &[]));
    }

    proptest! {
        #[test]
        fn rising_as_plainly_seen(lens in prop::collection::vec(0usize..5, 0..12), from in 0usize..30, seed: u64) {
            let starts: Vec<usize> = (0..=lens.len()).map(|i| lens[..i].iter().sum()).collect();
            let nnz = starts[lens.len()];
            let from = from.min(nnz);
            let cols: Vec<u32> = (0..nnz).map(|k| (k as u32 * 3 + (seed >> (k % 60)) as u32 % 7) % 11).collect();
            let plainly = starts.windows(2).all(|w| {
                let row = &cols[w[0].max(from)..w[1].max(from)];
                row.is_sorted_by(|a, b| a < b)
            });
            prop_assert_eq!(is_rising(&starts, from, &cols[from..]), plainly);
        }
    }

    #[test]
    fn sums_beyond_all_bounds() {
        let max = f64::MAX;
        let found = infinite_sum(&[2, 0, 2, 0, 2], &[1, 3, 1, 3, 1], &[max, max, 1e300, max, max]);
        assert_eq!(found, ErrorKind::SumNotFinite { row: 0, col: 3 });
    }
}
