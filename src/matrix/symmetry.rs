//! Symmetries of a square matrix: of its pattern and of its values.

use rayon::prelude::*;
use serde::Serialize;

use super::stats::{Tally, from_one};
use super::{Csr, Scalar};

/// What the entries of a pair may differ by, relative to their [scale](Likeness).
pub const TOLERANCE: f64 = 1e-12;

/// Two entries across the diagonal, at least one of them stored; one that is not is 0. Rows and columns are counted
/// from 0; in JSON, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pair<T> {
    /// Row of the entry above the diagonal.
    #[serde(serialize_with = "from_one")]
    pub row: usize,
    /// Column of the entry above the diagonal; not below `row`, and equal to it on the diagonal.
    #[serde(rename = "column", serialize_with = "from_one")]
    pub col: usize,
    /// The entry at (`row`, `col`).
    pub upper: T,
    /// The entry at (`col`, `row`).
    pub lower: T,
}

impl<T: Scalar> Pair<T> {
    /// What a difference of the two is compared with: √|a_ii a_jj|, or max(|a_ij|, |a_ji|) where that is 0.
    pub(super) fn scale(&self, diagonal: &[T]) -> f64 {
        scale([self.upper, self.lower], [diagonal[self.row], diagonal[self.col]])
    }
}

/// What a difference of two entries across the diagonal is compared with, in rows with these diagonal entries.
pub(crate) fn scale<T: Scalar>(pair: [T; 2], diagonal: [T; 2]) -> f64 {
    let [row, column] = diagonal.map(|d| d.modulus().sqrt());
    if row * column == 0.0 { pair[0].modulus().max(pair[1].modulus()) } else { row * column }
}

/// Visits the pairs of row `i` of a square matrix, and says for each whether both entries are stored. A pair of stored
/// entries is visited once, in the row of the one above the diagonal; an entry without its mirror where it is stored.
#[inline]
pub(super) fn pairs_of_row<T: Scalar>(a: &Csr<T>, i: usize, mut visit: impl FnMut(Pair<T>, bool)) {
    let (cols, values) = a.row(i);
    for (&j, &here) in cols.iter().zip(values) {
        let j = j as usize;
        let mirror = if i == j { Some(here) } else { a.get(j, i) };
        if i > j && mirror.is_some() {
            continue;
        }
        let there = mirror.unwrap_or_default();
        let (upper, lower) = if i <= j { (here, there) } else { (there, here) };
        visit(Pair { row: i.min(j), col: i.max(j), upper, lower }, mirror.is_some());
    }
}

/// How far the values of a matrix have one kind of symmetry.
///
/// The difference of a pair is taken relative to √|a_ii a_jj|, which means after scaling the diagonal to 1, and, where
/// either diagonal entry is zero, relative to max(|a_ij|, |a_ji|). Assembled matrices that were stored in full differ
/// across the diagonal by the rounding of sums in another order, which is small against the diagonal but not always
/// against the entries themselves: those that nearly cancelled may share no digit. So up to 10⁻¹² counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Likeness<T> {
    /// Whether all differences are within 10⁻¹².
    pub holds: bool,
    /// The largest relative difference, exactly 0 if there is none.
    #[serde(rename = "largest_difference")]
    pub largest: f64,
    /// The first pair beyond 10⁻¹², by the row where the scan meets it.
    pub first: Option<Pair<T>>,
}

/// The symmetries of a square matrix. For real numbers `hermitian` and `symmetric` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Symmetries<T> {
    /// Stored entries whose mirror image is not stored, and the first row with one. None: the pattern is symmetric.
    pub unmatched: Tally,
    /// a_ij = a_ji.
    pub symmetric: Likeness<T>,
    /// a_ij = −a_ji, so that the diagonal is zero.
    #[serde(rename = "skew_symmetric")]
    pub skew: Likeness<T>,
    /// a_ij is the conjugate of a_ji, so that the diagonal is real.
    pub hermitian: Likeness<T>,
}

impl<T: Scalar> Symmetries<T> {
    /// Compares every entry with its mirror image, rows in parallel: O(nnz log(longest row)), and one number a row of
    /// memory. None if the matrix is not square.
    #[must_use]
    pub fn of(a: &Csr<T>) -> Option<Self> {
        if a.n_rows() != a.n_cols() {
            return None;
        }
        let diagonal = a.diagonal();
        let row = |i| Self::of_row(a, &diagonal, i);
        Some((0..a.n_rows()).into_par_iter().map(row).reduce(Self::whole, Self::and))
    }

    /// Whether for every stored (i, j) there is a stored (j, i), zeros included.
    #[must_use]
    pub fn structural(&self) -> bool {
        self.unmatched.count == 0
    }

    fn whole() -> Self {
        let whole = Likeness { holds: true, largest: 0.0, first: None };
        Self { unmatched: Tally::default(), symmetric: whole, skew: whole, hermitian: whole }
    }

    fn of_row(a: &Csr<T>, diagonal: &[T], i: usize) -> Self {
        let mut row = Self::whole();
        pairs_of_row(a, i, |pair, both| {
            if !both {
                row.unmatched.add(i);
            }
            let scale = pair.scale(diagonal);
            row.symmetric.compare(pair, pair.lower, scale);
            row.skew.compare(pair, -pair.lower, scale);
            row.hermitian.compare(pair, pair.lower.conj(), scale);
        });
        row
    }

    fn and(self, after: Self) -> Self {
        Self {
            unmatched: self.unmatched.and(after.unmatched),
            symmetric: self.symmetric.and(after.symmetric),
            skew: self.skew.and(after.skew),
            hermitian: self.hermitian.and(after.hermitian),
        }
    }
}

impl<T: Scalar> Likeness<T> {
    /// The upper entry ought to be `image`.
    #[inline]
    fn compare(&mut self, pair: Pair<T>, image: T, scale: f64) {
        if pair.upper == image {
            return;
        }
        let mut difference = pair.upper;
        difference += -image;
        let relative = difference.modulus() / scale;
        self.largest = self.largest.max(relative);
        if relative > TOLERANCE {
            self.holds = false;
            self.first = self.first.or(Some(pair));
        }
    }

    fn and(self, after: Self) -> Self {
        Self {
            holds: self.holds && after.holds,
            largest: self.largest.max(after.largest),
            first: self.first.or(after.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Complex64;
    use super::super::stats::Stats;
    use super::*;

    fn of<T: Scalar>(n: usize, entries: &[(u32, u32, T)]) -> Symmetries<T> {
        let rows: Vec<u32> = entries.iter().map(|e| e.0).collect();
        let cols: Vec<u32> = entries.iter().map(|e| e.1).collect();
        let values: Vec<T> = entries.iter().map(|e| e.2).collect();
        Symmetries::of(&Csr::from_triplets(n, n, &rows, &cols, &values).unwrap()).unwrap()
    }

    fn kinds<T: Scalar>(s: &Symmetries<T>) -> (bool, bool, bool, bool) {
        (s.structural(), s.symmetric.holds, s.skew.holds, s.hermitian.holds)
    }

    #[test]
    fn real_kinds() {
        let symmetric = of(2, &[(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0)]);
        assert_eq!(kinds(&symmetric), (true, true, false, true));
        assert_eq!((symmetric.symmetric.largest, symmetric.symmetric.first), (0.0, None));
        let skew = of(2, &[(0, 1, 3.0), (1, 0, -3.0), (1, 1, 0.0)]);
        assert_eq!(kinds(&skew), (true, false, true, false));
        assert_eq!(skew.symmetric.first, Some(Pair { row: 0, col: 1, upper: 3.0, lower: -3.0 }));
        assert_eq!(skew.symmetric.largest, 2.0);
        let neither = of(2, &[(0, 0, 4.0), (1, 1, 1.0), (1, 0, 1.0)]);
        assert_eq!(kinds(&neither), (false, false, false, false));
        assert_eq!(neither.unmatched, Tally { count: 1, first: Some(1) });
        assert_eq!(neither.symmetric.largest, 0.5); // 1 / √(4 · 1)
        assert_eq!(neither.skew.first, Some(Pair { row: 0, col: 0, upper: 4.0, lower: 4.0 }));
    }

    #[test]
    fn complex_kinds() {
        let c = Complex64::new;
        let hermitian = of(2, &[(0, 0, c(2.0, 0.0)), (0, 1, c(1.0, 1.0)), (1, 0, c(1.0, -1.0))]);
        assert_eq!(kinds(&hermitian), (true, false, false, true));
        let symmetric = of(2, &[(0, 0, c(2.0, 1.0)), (0, 1, c(1.0, 1.0)), (1, 0, c(1.0, 1.0))]);
        assert_eq!(kinds(&symmetric), (true, true, false, false));
        assert_eq!(symmetric.hermitian.first.unwrap().col, 0); // the diagonal is not real
        let skew = of(2, &[(0, 1, c(1.0, 1.0)), (1, 0, c(-1.0, -1.0))]);
        assert_eq!(kinds(&skew), (true, false, true, false));
    }

    #[test]
    fn nothing_has_every_symmetry_and_rectangles_none() {
        assert_eq!(kinds(&of::<f64>(0, &[])), (true, true, true, true));
        assert_eq!(kinds(&of::<Complex64>(3, &[])), (true, true, true, true));
        assert_eq!(Symmetries::of(&Csr::new(0, 1, vec![0], vec![], Vec::<f64>::new()).unwrap()), None);
    }

    #[test]
    fn rounding_is_measured_and_forgiven() {
        let s = of(2, &[(0, 0, 100.0), (0, 1, 1.0), (1, 0, 1.0 + 1e-13), (1, 1, 1.0)]);
        assert!(s.symmetric.holds && s.symmetric.largest > 9e-15 && s.symmetric.largest < 1.1e-14);
        let s = of(2, &[(0, 0, f64::MIN_POSITIVE), (0, 1, f64::MAX), (1, 0, -f64::MAX), (1, 1, f64::MIN_POSITIVE)]);
        assert!(!s.symmetric.holds && s.symmetric.largest.is_infinite());
    }

    proptest! {
        #[test]
        fn agrees_with_the_quick_look_of_a_solve(
            entries in prop::collection::vec((0u32..6, 0u32..6, -2i8..3), 0..12),
            mirrored: bool,
        ) {
            let mut entries: Vec<_> = entries.into_iter().map(|(i, j, v)| (i, j, f64::from(v))).collect();
            if mirrored {
                entries.extend(entries.clone().into_iter().map(|(i, j, v)| (j, i, v)));
            }
            let rows: Vec<_> = entries.iter().map(|e| e.0).collect();
            let cols: Vec<_> = entries.iter().map(|e| e.1).collect();
            let values: Vec<_> = entries.iter().map(|e| e.2).collect();
            let a = Csr::from_triplets(6, 6, &rows, &cols, &values).unwrap();
            let (s, quick) = (Symmetries::of(&a).unwrap(), Stats::of(&a));
            prop_assert_eq!(s.structural(), quick.structurally_symmetric);
            prop_assert_eq!(s.symmetric, s.hermitian);
            prop_assert_eq!(s.symmetric.holds, quick.numerically_symmetric);
            prop_assert_eq!(s.symmetric.first.map(|p| (p.row, p.col)), quick.asymmetry.map(|p| (p.row, p.col)));
            prop_assert!(!mirrored || s.symmetric.largest == 0.0);
            let negated = |i: usize, j: usize| a.get(i, j).unwrap_or(0.0) == -a.get(j, i).unwrap_or(0.0);
            prop_assert_eq!(s.skew.holds, (0..6).all(|i| (0..6).all(|j| negated(i, j))));
        }
    }
}
