//! Blocks of rows of equal work.

use std::ops::Range;

use crate::matrix::Csr;

/// Bytes that an iteration in double precision moves for an entry.
pub(crate) const ENTRY_BYTES: f64 = 12.0;

/// What the vector operations of a row cost beside its entries, in entries.
const ROW_COST: usize = 7;

/// What an iteration costs on some rows, in the unit that shares are measured in: their entries, and 7 for each row.
#[must_use]
pub fn cost(a: &Csr, rows: &Range<usize>) -> usize {
    cost_of(rows.len(), a.row_ptr()[rows.end] - a.row_ptr()[rows.start])
}

/// The same of so many rows and entries.
pub(crate) fn cost_of(rows: usize, entries: usize) -> usize {
    entries + ROW_COST * rows
}

/// Bytes of rows that are compressed with columns and pointers of four bytes, where an element has `real`.
pub(crate) fn compressed_bytes(rows: u64, nnz: u64, real: u64) -> u64 {
    nnz * (4 + real) + 4 * (rows + 1)
}

/// Cuts the rows of `a` into `parts` contiguous ranges of equal cost, Σ (nnz of the row + 7), up to one row. Ranges may be
/// empty when there are few rows.
///
/// # Panics
/// If `parts` is 0.
#[must_use]
pub fn row_ranges(a: &Csr, parts: usize) -> Vec<Range<usize>> {
    row_ranges_by(a, &vec![1.0; parts])
}

/// Cuts the rows of `a` into contiguous ranges whose costs are as `shares`, up to one row; a share of 0 has no rows.
///
/// # Panics
/// If there is no share, or none above 0, or one that is negative or not finite.
#[must_use]
pub fn row_ranges_by(a: &Csr, shares: &[f64]) -> Vec<Range<usize>> {
    assert!(shares.iter().all(|share| share.is_finite() && *share >= 0.0), "shares {shares:?}");
    row_ranges_of(a.n_rows(), |row| cost(a, &(0..row)), shares)
}

/// The same of `n` rows, of which those before a row cost so much.
pub(crate) fn row_ranges_of(n: usize, cost_before: impl Fn(usize) -> usize, shares: &[f64]) -> Vec<Range<usize>> {
    let whole: f64 = shares.iter().sum();
    assert!(whole > 0.0 && whole.is_finite(), "there must be a share above 0 in {shares:?}");
    let cut = |before: f64| {
        // of all shares, the product and the quotient need not give all
        let all = cost_before(n);
        let target = if before < whole { (all as f64 * before / whole) as usize } else { all };
        // the first row with cost_before(row) >= target
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if cost_before(middle) < target { low = middle + 1 } else { high = middle }
        }
        low
    };
    let (mut begin, mut before) = (0, 0.0);
    let range = |share: &f64| {
        before += share;
        let end = cut(before);
        std::mem::replace(&mut begin, end)..end
    };
    shares.iter().map(range).collect()
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

    /// 30 w / w may be less than 30.
    #[test]
    fn no_row_is_lost_to_rounding() {
        for k in 1..2000 {
            let shares = [1e9 / f64::from(k), 3e7 + f64::from(k).sqrt(), f64::from(k % 3)];
            for n in [1, 30, 31, 12_345] {
                let ranges = row_ranges_of(n, |row| row, &shares);
                assert_eq!((ranges[0].start, ranges[2].end), (0, n), "{shares:?}");
                assert!(ranges.windows(2).all(|w| w[0].end == w[1].start), "{ranges:?}");
            }
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

    /// `n` rows of one entry: a cost of 8 each.
    fn diagonal(n: usize) -> Csr {
        Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), vec![1.0; n]).unwrap()
    }

    #[test]
    fn shares_by_hand() {
        let a = diagonal(100);
        assert_eq!((cost(&a, &(10..20)), cost(&a, &(7..7))), (80, 0));
        assert_eq!(row_ranges_by(&a, &[3.0, 1.0]), [0..75, 75..100]);
        assert_eq!(row_ranges_by(&a, &[1.0, 2.0, 1.0]), [0..25, 25..75, 75..100]);
        // nothing at either end, or between
        assert_eq!(row_ranges_by(&a, &[0.0, 1.0, 0.0, 1.0, 0.0]), [0..0, 0..50, 50..50, 50..100, 100..100]);
        // far less than a row is none, or one
        let uneven = row_ranges_by(&a, &[1e-9, 1.0, 1e-9]);
        assert_eq!((uneven[0].clone(), uneven[1].len() + uneven[2].len()), (0..0, 100));
        // more ranks than rows: all rows are somewhere, in order
        let few = row_ranges_by(&diagonal(3), &[5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!((few.iter().map(Range::len).sum::<usize>(), few[6].clone()), (3, 3..3));
        assert!(few.windows(2).all(|w| w[0].end == w[1].start), "{few:?}");
    }

    #[test]
    fn a_huge_row_is_not_cut() {
        // row 0 costs 907, the other 100 cost 8 each
        let row_ptr: Vec<usize> = (0..=101).map(|i| if i == 0 { 0 } else { 899 + i }).collect();
        let mut cols: Vec<u32> = (0..900).collect();
        cols.extend([0; 100]);
        let a = Csr::new(101, 1000, row_ptr, cols, vec![1.0; 1000]).unwrap();
        // it is the first one's, whose share is far less; the second has nothing left
        assert_eq!(row_ranges_by(&a, &[1.0, 2.0, 7.0]), [0..1, 1..1, 1..101]);
        assert_eq!(row_ranges_by(&a, &[0.0, 1.0, 1.0]), [0..0, 0..1, 1..101]);
    }

    #[test]
    fn equal_shares_are_the_even_cut() {
        let a = diagonal(1001);
        for parts in [1, 2, 3, 7] {
            assert_eq!(
                row_ranges_by(&a, &vec![0.1; parts]).iter().map(Range::len).max(),
                row_ranges(&a, parts).iter().map(Range::len).max()
            );
        }
    }
}
