//! Diagonal dominance: |a_ii| against Σ |a_ij| over j ≠ i.

use std::collections::VecDeque;

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::stats::Tally;
use super::{Csr, Scalar};

/// How the diagonal entries of a square matrix compare with the other entries of their rows.
///
/// The sums are rounded. Where one is not exact (it is for integers, say), a row counts as strictly dominant, or as not
/// dominant, only if that is certain in spite of the rounding; other rows are `close`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dominance {
    /// Rows with |a_ii| > Σ |a_ij|.
    pub strict: usize,
    /// Rows with |a_ii| = Σ |a_ij|, exactly.
    pub equal: usize,
    /// Rows where the two are equal up to rounding.
    pub close: usize,
    /// Rows with |a_ii| < Σ |a_ij|.
    pub violated: Tally,
    /// The row, from 0, with the largest Σ |a_ij| / |a_ii|, and that ratio: infinite if a_ii is 0 and another entry is
    /// not, 1 if all are 0. None for a matrix without rows.
    #[serde(flatten, serialize_with = "named")]
    pub worst: Option<(usize, f64)>,
}

/// Serialises the worst row, from 1, and its ratio.
fn named<S: Serializer>(worst: &Option<(usize, f64)>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Worst {
        worst_row: Option<usize>,
        worst_ratio: Option<f64>,
    }
    Worst { worst_row: worst.map(|(row, _)| row + 1), worst_ratio: worst.map(|(_, ratio)| ratio) }.serialize(serializer)
}

/// How a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Strict,
    Equal,
    Close,
    Violated,
}

impl Dominance {
    /// Looks at every entry, rows in parallel: O(nnz). None if the matrix is not square.
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Option<Self> {
        if a.n_rows() != a.n_cols() {
            return None;
        }
        let row = |i: usize| {
            let (kind, ratio) = classify(a, i);
            Self {
                strict: usize::from(kind == Row::Strict),
                equal: usize::from(kind == Row::Equal),
                close: usize::from(kind == Row::Close),
                violated: Tally::of(i, kind == Row::Violated),
                worst: Some((i, ratio)),
            }
        };
        Some((0..a.n_rows()).into_par_iter().map(row).reduce(Self::default, Self::and))
    }

    fn and(self, after: Self) -> Self {
        let worst = match (self.worst, after.worst) {
            (Some(here), Some(there)) if there.1 > here.1 => Some(there),
            (here, there) => here.or(there),
        };
        Self {
            strict: self.strict + after.strict,
            equal: self.equal + after.equal,
            close: self.close + after.close,
            violated: self.violated.and(after.violated),
            worst,
        }
    }

    /// Whether |a_ii| > Σ |a_ij| in every row, for certain. Such a matrix is regular.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.equal == 0 && self.close == 0 && self.violated.count == 0
    }

    /// Whether |a_ii| ≥ Σ |a_ij| in every row, for certain, and paths of entries other than 0 lead from every row to
    /// one that is strictly dominant. Such a matrix is regular, too: each of its irreducible parts is irreducibly
    /// dominant (O. Taussky 1949, A recurring theorem on determinants, doi
    /// [10.2307/2305561](https://doi.org/10.2307/2305561)).
    ///
    /// For a matrix with a symmetric pattern; O(nnz), and up to 9 bytes a row of memory.
    #[must_use]
    pub fn is_chained<T: Scalar>(&self, a: &Csr<T>) -> bool {
        if self.close > 0 || self.violated.count > 0 {
            return false;
        }
        let mut reached: Vec<bool> = (0..a.n_rows()).into_par_iter().map(|i| classify(a, i).0 == Row::Strict).collect();
        let mut queue: VecDeque<u32> = (0..a.n_rows() as u32).filter(|&i| reached[i as usize]).collect();
        let mut count = queue.len();
        while let Some(i) = queue.pop_front() {
            let (cols, values) = a.row(i as usize);
            for (&j, &v) in cols.iter().zip(values) {
                if v != T::default() && !std::mem::replace(&mut reached[j as usize], true) {
                    count += 1;
                    queue.push_back(j);
                }
            }
        }
        count == a.n_rows()
    }
}

/// How row `i` is, and Σ |a_ij| / |a_ii|.
fn classify<T: Scalar>(a: &Csr<T>, i: usize) -> (Row, f64) {
    let (mut diagonal, mut sum, mut exact) = (0.0, 0.0, true);
    let (cols, values) = a.row(i);
    for (&j, v) in cols.iter().zip(values) {
        let modulus = v.modulus();
        exact &= v.re() == 0.0 || v.im() == 0.0; // else the modulus itself is rounded
        if j as usize == i {
            diagonal = modulus;
        } else {
            let next = sum + modulus;
            // what the addition rounded off (Knuth's TwoSum)
            let added = next - sum;
            exact &= (sum - (next - added)) + (modulus - added) == 0.0;
            sum = next;
        }
    }
    // k terms lose at most (k − 1) u of their sum, moduli some u more each; twice that covers the products below
    let slack = if exact { 0.0 } else { (cols.len() + 4) as f64 * f64::EPSILON };
    let kind = if diagonal > sum * (1.0 + slack) {
        Row::Strict
    } else if diagonal < sum * (1.0 - slack) {
        Row::Violated
    } else if exact {
        Row::Equal
    } else {
        Row::Close
    };
    (kind, if diagonal == sum { 1.0 } else { sum / diagonal })
}

#[cfg(test)]
mod tests {
    use super::super::{Complex64, gallery};
    use super::*;

    fn of<T: Scalar>(n: usize, entries: &[(u32, u32, T)]) -> (Dominance, bool) {
        let rows: Vec<u32> = entries.iter().map(|e| e.0).collect();
        let cols: Vec<u32> = entries.iter().map(|e| e.1).collect();
        let values: Vec<T> = entries.iter().map(|e| e.2).collect();
        let a = Csr::from_triplets(n, n, &rows, &cols, &values).unwrap();
        let dominance = Dominance::of(&a).unwrap();
        (dominance, dominance.is_chained(&a))
    }

    #[test]
    fn rows_by_hand() {
        let (d, chained) =
            of(4, &[(0, 0, -3.0), (0, 1, 1.0), (0, 3, 1.0), (1, 1, 2.0), (1, 0, -2.0), (2, 2, 1.0), (2, 0, 4.0)]);
        assert_eq!((d.strict, d.equal, d.close), (1, 2, 0)); // the empty row 3 has 0 = 0
        assert_eq!(d.violated, Tally { count: 1, first: Some(2) });
        assert_eq!(d.worst, Some((2, 4.0)));
        assert!(!d.is_strict() && !chained);
    }

    #[test]
    fn no_diagonal_entry() {
        let (d, _) = of(2, &[(0, 1, 1.0), (1, 1, 1.0)]);
        assert_eq!((d.worst, d.violated.first), (Some((0, f64::INFINITY)), Some(0)));
        let (d, chained) = of::<f64>(1, &[]);
        assert_eq!((d.worst, d.equal, chained), (Some((0, 1.0)), 1, false));
        let (d, chained) = of::<f64>(0, &[]);
        assert_eq!((d.worst, d.is_strict(), chained), (None, true, true));
    }

    #[test]
    fn rounded_sums_are_not_decided_by_their_rounding() {
        // 0.1 + 0.2 is rounded to more than 0.3
        let (d, _) = of(3, &[(0, 0, 0.3), (0, 1, 0.1), (0, 2, 0.2), (1, 1, 1.0), (2, 2, 1.0)]);
        assert_eq!((d.close, d.violated.count, d.strict), (1, 0, 2));
        let (d, _) = of(3, &[(0, 0, 0.31), (0, 1, 0.1), (0, 2, 0.2), (1, 1, 1.0), (2, 2, 1.0)]);
        assert!(d.is_strict());
        let (d, _) = of(3, &[(0, 0, 0.29), (0, 1, 0.1), (0, 2, 0.2), (1, 1, 1.0), (2, 2, 1.0)]);
        assert_eq!(d.violated.count, 1);
        // sums beyond the range are beyond any diagonal
        let (d, _) = of(3, &[(0, 0, f64::MAX), (0, 1, f64::MAX), (0, 2, f64::MAX)]);
        assert_eq!(d.violated.first, Some(0));
    }

    #[test]
    fn complex_moduli() {
        let c = Complex64::new;
        let (d, _) = of(2, &[(0, 0, c(0.0, 5.1)), (0, 1, c(3.0, 4.0)), (1, 1, c(1.0, 0.0)), (1, 0, c(0.0, 1.0))]);
        assert_eq!((d.strict, d.equal), (1, 1));
        let (d, _) = of(2, &[(0, 0, c(5.0, 0.0)), (0, 1, c(3.0, 4.0)), (1, 1, c(1.0, 0.0))]);
        assert_eq!((d.strict, d.close), (1, 1));
    }

    #[test]
    fn chains_end_at_a_strict_row() {
        let a = gallery::poisson3d([4, 5, 6]).unwrap();
        let d = Dominance::of(&a).unwrap();
        assert_eq!((d.equal, d.violated.count, d.close), (2 * 3 * 4, 0, 0));
        assert!(!d.is_strict() && d.is_chained(&a));
        // two parts, of which one is a Laplacian without boundary
        let ring = [(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0), (2, 2, 1.0)];
        let (d, chained) = of(3, &ring);
        assert_eq!((d.equal, d.strict, chained), (2, 1, false));
        // a stored zero leads nowhere
        let (_, chained) = of(3, &[&ring[..], &[(0, 2, 0.0), (2, 0, 0.0)]].concat());
        assert!(!chained);
        // an entry does
        let (_, chained) = of(2, &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0)]);
        assert!(chained);
    }

    #[test]
    fn rectangles_have_none() {
        assert_eq!(Dominance::of(&Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap()), None);
    }
}
