//! How far entries lie from the diagonal.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use super::reorder::Permutation;
use super::{Csr, Scalar};

/// The band and the envelope that hold all stored entries.
///
/// The envelope (or skyline) has what lies between the first stored entry of a row and the diagonal, and between the
/// first stored entry of a column and the diagonal. Its size is what a direct factorisation without pivoting would fill
/// at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Band {
    /// The largest i − j of an entry, 0 if none lies below the diagonal.
    pub lower: usize,
    /// The largest j − i of an entry, 0 if none lies above the diagonal.
    pub upper: usize,
    /// The profile below the diagonal: Σ over rows i of i − (the first column stored in it), where that lies below.
    pub lower_profile: u64,
    /// The profile above the diagonal: Σ over columns j of j − (the first row stored in it), where that lies above.
    pub upper_profile: u64,
}

impl Band {
    /// Looks at every entry, rows in parallel: O(nnz), and 4 bytes a column of memory.
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        Self::at(a, |k| k)
    }

    /// The band of P A Pᵀ, without making it: O(nnz), and 8 bytes a row of memory.
    ///
    /// # Panics
    /// If A is not square or `p` has another size.
    #[must_use]
    pub fn reordered<T: Scalar>(a: &Csr<T>, p: &Permutation) -> Self {
        assert!(a.n_rows() == a.n_cols() && p.len() == a.n_rows(), "one place a row and a column");
        let places = p.inverse();
        Self::at(a, |k| places.order()[k as usize])
    }

    /// The larger of the two: max |i − j|.
    #[must_use]
    pub fn bandwidth(&self) -> usize {
        self.lower.max(self.upper)
    }

    /// With row and column `k` at place `place(k)`.
    fn at<T: Scalar>(a: &Csr<T>, place: impl Fn(u32) -> u32 + Sync) -> Self {
        let tops: Vec<AtomicU32> = (0..a.n_cols()).into_par_iter().map(|_| AtomicU32::new(u32::MAX)).collect();
        let row = |i: usize| {
            let (mut upper, mut first, here) = (0, u32::MAX, place(i as u32));
            for &j in a.row(i).0 {
                let there = place(j);
                first = first.min(there);
                if there > here {
                    upper = upper.max(there - here);
                    let top = &tops[j as usize];
                    // most entries are not their column's first: a look is cheaper than the exchange
                    if top.load(Ordering::Relaxed) > here {
                        top.fetch_min(here, Ordering::Relaxed);
                    }
                }
            }
            let lower = here.saturating_sub(first);
            Self { lower: lower as usize, upper: upper as usize, lower_profile: lower.into(), upper_profile: 0 }
        };
        let rows = (0..a.n_rows()).into_par_iter().map(row).reduce(Self::default, Self::and);
        let height = |j: usize| u64::from(place(j as u32).saturating_sub(tops[j].load(Ordering::Relaxed)));
        Self { upper_profile: (0..a.n_cols()).into_par_iter().map(height).sum(), ..rows }
    }

    fn and(self, other: Self) -> Self {
        Self {
            lower: self.lower.max(other.lower),
            upper: self.upper.max(other.upper),
            lower_profile: self.lower_profile + other.lower_profile,
            upper_profile: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::gallery;
    use super::super::reorder::permuted;
    use super::*;

    #[test]
    fn by_hand() {
        // x . x
        // . . .
        // x . .   rows: 0 + 0 + 2
        // . x x   rows: 2; columns: 0 + 0 + 2
        let a = Csr::new(4, 3, vec![0, 2, 2, 3, 5], vec![0, 2, 0, 1, 2], vec![1.0; 5]).unwrap();
        assert_eq!(Band::of(&a), Band { lower: 2, upper: 2, lower_profile: 4, upper_profile: 2 });
        assert_eq!(Band::of(&a).bandwidth(), 2);
    }

    #[test]
    fn one_sided_and_empty() {
        let lower = Csr::new(2, 2, vec![0, 0, 1], vec![0], vec![1.0]).unwrap();
        assert_eq!(Band::of(&lower), Band { lower: 1, lower_profile: 1, ..Band::default() });
        let upper = Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap();
        assert_eq!(Band::of(&upper), Band { upper: 1, upper_profile: 1, ..Band::default() });
        assert_eq!(Band::of(&Csr::new(0, 0, vec![0], vec![], Vec::<f64>::new()).unwrap()), Band::default());
        assert_eq!(Band::of(&Csr::new(0, 3, vec![0], vec![], Vec::<f64>::new()).unwrap()), Band::default());
    }

    #[test]
    fn a_symmetric_matrix_has_equal_sides() {
        let band = Band::of(&gallery::poisson2d([7, 4]).unwrap());
        assert_eq!((band.lower, band.upper), (7, 7));
        // rows of the first line reach back to the one before, all others a line of 7
        assert_eq!((band.lower_profile, band.upper_profile), (6 + 21 * 7, 6 + 21 * 7));
    }

    proptest! {
        #[test]
        fn a_new_order_is_that_of_the_permuted_matrix(
            places in prop::collection::vec((0u32..20, 0u32..20), 0..60),
            order in Just((0u32..20).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (rows, cols): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
            let a = Csr::from_triplets(20, 20, &rows, &cols, &vec![1.0; rows.len()]).unwrap();
            let p = Permutation::new(order).unwrap();
            prop_assert_eq!(Band::reordered(&a, &p), Band::of(&permuted(&a, &p).unwrap()));
        }
    }
}
