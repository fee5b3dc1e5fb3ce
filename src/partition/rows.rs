//! Blocks of rows of equal work.

use std::ops::Range;

use crate::matrix::Csr;

/// What the vector operations of a row cost beside its entries, in entries: an iteration of conjugate gradients moves
/// 12 bytes an entry and 76 bytes a row, 84 where the system is scaled.
const ROW_COST: usize = 7;

/// Cuts the rows of `a` into `parts` contiguous ranges of equal cost, Σ (nnz of the row + 7), up to one row. Ranges may be
/// empty when there are few rows.
///
/// # Panics
/// If `parts` is 0.
#[must_use]
pub fn row_ranges(a: &Csr, parts: usize) -> Vec<Range<usize>> {
    assert!(parts > 0, "there must be at least one part");
    let n = a.n_rows();
    let cost_before = |row: usize| a.row_ptr()[row] + ROW_COST * row;
    let cut = |k: usize| {
        let target = (cost_before(n) as u128 * k as u128 / parts as u128) as usize;
        // the first row with cost_before(row) >= target
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if cost_before(middle) < target { low = middle + 1 } else { high = middle }
        }
        low
    };
    (0..parts).map(|k| cut(k)..cut(k + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_evenly() {
        let n = 1000;
        let a = Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), vec![1.0; n]).unwrap();
        for parts in [1, 2, 3, 5, 7] {
            let ranges = row_ranges(&a, parts);
            assert_eq!((ranges[0].start, ranges[parts - 1].end), (0, n));
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
            assert!(ranges.iter().all(|r| r.len().abs_diff(n / parts) <= 1), "{ranges:?}");
        }
    }

    #[test]
    fn a_heavy_row_weighs() {
        // row 0 holds 900 entries, rows 1..=100 one each
        let row_ptr: Vec<usize> = (0..=101).map(|i| if i == 0 { 0 } else { 899 + i }).collect();
        let mut cols: Vec<u32> = (0..900).collect();
        cols.extend([0; 100]);
        let a = Csr::new(101, 1000, row_ptr, cols, vec![1.0; 1000]).unwrap();
        assert_eq!(row_ranges(&a, 2), [0..1, 1..101]);
    }

    #[test]
    fn fewer_rows_than_parts_leaves_some_empty() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1.0]).unwrap();
        let ranges = row_ranges(&a, 5);
        assert_eq!(ranges.iter().map(Range::len).sum::<usize>(), 2);
        let empty = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert_eq!(row_ranges(&empty, 3), [0..0, 0..0, 0..0]);
    }
}
