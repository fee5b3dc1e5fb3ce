//! What can be said about positive definiteness without a factorisation.

use rayon::prelude::*;

use super::dominance::Dominance;
use super::symmetry::{Pair, Symmetries};
use super::values::MainDiagonal;
use super::{Csr, Scalar};

/// Whether a square matrix is symmetric (hermitian, if it is complex) and positive definite: xᴴ A x > 0 for all x ≠ 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Definiteness<T> {
    /// It is.
    Proven(Proof),
    /// Neither is shown: what is necessary holds, what would be sufficient does not.
    Possible,
    /// It is not.
    Impossible(Obstacle<T>),
}

/// Why a matrix is positive definite. In each case it is hermitian to the last bit and its diagonal is positive, so
/// that by Gershgorin's theorem no eigenvalue is negative, and by the dominance none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Every row is [strictly dominant](Dominance::is_strict).
    StrictlyDominant,
    /// Every row is dominant, and [chained](Dominance::is_chained) to one that strictly is.
    ChainedDominant,
}

/// Why a matrix is not positive definite: the first of the necessary conditions that fails. Rows are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Obstacle<T> {
    /// a_ij is not the conjugate of a_ji, by more than rounding.
    NotHermitian(Pair<T>),
    /// A diagonal entry that is not a positive real number.
    Diagonal {
        /// Its row.
        row: usize,
        /// The entry; none if it is not stored.
        value: Option<T>,
    },
    /// A row without entries, so that the matrix is singular.
    EmptyRow {
        /// The row.
        row: usize,
    },
    /// |a_ij|² ≥ a_ii a_jj, although every 2 × 2 minor about the diagonal is positive in a positive definite matrix.
    Minor {
        /// Row of the entry.
        row: usize,
        /// Column of the entry, greater than `row`.
        col: usize,
        /// a_ij.
        value: T,
        /// a_ii.
        diagonal_row: f64,
        /// a_jj.
        diagonal_col: f64,
    },
}

impl<T: Scalar> Definiteness<T> {
    /// Judges by the facts already known about `a`, and looks at the 2 × 2 minors of its stored entries, rows in
    /// parallel: O(nnz).
    #[must_use]
    pub fn of(a: &Csr<T>, symmetries: &Symmetries<T>, diagonal: &MainDiagonal, dominance: &Dominance) -> Self {
        if let Some(pair) = symmetries.hermitian.first {
            return Self::Impossible(Obstacle::NotHermitian(pair));
        }
        if let Some(row) = diagonal.first_not_positive() {
            return Self::Impossible(match a.row(row).0 {
                [] => Obstacle::EmptyRow { row },
                _ => Obstacle::Diagonal { row, value: a.get(row, row) },
            });
        }
        let exactly_hermitian = symmetries.hermitian.largest == 0.0;
        if exactly_hermitian && dominance.is_strict() {
            return Self::Proven(Proof::StrictlyDominant);
        }
        let entries: Vec<f64> = a.diagonal().into_par_iter().map(T::re).collect();
        let minor = (0..a.n_rows()).into_par_iter().find_map_first(|i| minor_in_row(a, &entries, i));
        match minor {
            Some(obstacle) => Self::Impossible(obstacle),
            None if exactly_hermitian && dominance.is_chained(a) => Self::Proven(Proof::ChainedDominant),
            None => Self::Possible,
        }
    }
}

/// The first entry of row `i` above the diagonal with a 2 × 2 minor that is not positive.
fn minor_in_row<T: Scalar>(a: &Csr<T>, diagonal: &[f64], i: usize) -> Option<Obstacle<T>> {
    let (cols, values) = a.row(i);
    let above = cols.partition_point(|&j| j as usize <= i);
    for (&j, &value) in cols[above..].iter().zip(&values[above..]) {
        let j = j as usize;
        let too_large = |v: T| not_below(v, diagonal[i], diagonal[j]);
        // of two entries that differ by rounding, both must be too large
        if too_large(value) && a.get(j, i).is_some_and(too_large) {
            return Some(Obstacle::Minor {
                row: i,
                col: j,
                value,
                diagonal_row: diagonal[i],
                diagonal_col: diagonal[j],
            });
        }
    }
    None
}

/// Whether |v|² ≥ d e for certain, where d and e are positive.
fn not_below<T: Scalar>(v: T, d: f64, e: f64) -> bool {
    let (modulus, root) = (v.modulus(), d.sqrt() * e.sqrt()); // square roots neither overflow nor underflow
    const SLACK: f64 = 4.0 * f64::EPSILON; // more than the rounding of both
    if modulus < root * (1.0 - SLACK) {
        return false;
    }
    if modulus > root * (1.0 + SLACK) {
        return true;
    }
    // Too near to tell by rounded numbers: [[1, 1], [1, 1]] is singular. The products as sums of two numbers are exact.
    let exact = v.re() == 0.0 || v.im() == 0.0;
    let (square, product) = (modulus * modulus, d * e);
    let in_range = |p: f64| (1e-290..1e290).contains(&p);
    exact
        && in_range(square)
        && in_range(product)
        && (square, modulus.mul_add(modulus, -square)) >= (product, d.mul_add(e, -product))
}

#[cfg(test)]
mod tests {
    use super::super::{Complex64, gallery};
    use super::*;

    fn of<T: Scalar>(a: &Csr<T>) -> Definiteness<T> {
        let (symmetries, dominance) = (Symmetries::of(a).unwrap(), Dominance::of(a).unwrap());
        Definiteness::of(a, &symmetries, &MainDiagonal::of(a), &dominance)
    }

    fn dense<T: Scalar>(rows: &[&[T]]) -> Csr<T> {
        let n = rows.len() as u32;
        let (is, js): (Vec<u32>, Vec<u32>) = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).unzip();
        Csr::from_triplets(rows.len(), rows.len(), &is, &js, &rows.concat()).unwrap()
    }

    #[test]
    fn proofs() {
        assert_eq!(of(&dense(&[&[2.0, -1.0], &[-1.0, 2.0]])), Definiteness::Proven(Proof::StrictlyDominant));
        let poisson = gallery::poisson2d([9, 7]).unwrap();
        assert_eq!(of(&poisson), Definiteness::Proven(Proof::ChainedDominant));
        let c = Complex64::new;
        let hermitian = dense(&[&[c(2.0, 0.0), c(0.0, 1.0)], &[c(0.0, -1.0), c(2.0, 0.0)]]);
        assert_eq!(of(&hermitian), Definiteness::Proven(Proof::StrictlyDominant));
        let empty = Csr::new(0, 0, vec![0], vec![], Vec::<f64>::new()).unwrap();
        assert_eq!(of(&empty), Definiteness::Proven(Proof::StrictlyDominant));
    }

    #[test]
    fn nothing_is_proven_of_a_matrix_symmetric_up_to_rounding() {
        assert_eq!(of(&dense(&[&[2.0, 1.0 + 1e-15], &[1.0, 2.0]])), Definiteness::Possible);
    }

    #[test]
    fn neither_shown() {
        // determinant 1 − 3 · 0.81 + 2 · 0.729 > 0, though not dominant
        let a = dense(&[&[1.0, 0.9, 0.9], &[0.9, 1.0, 0.9], &[0.9, 0.9, 1.0]]);
        assert_eq!(of(&a), Definiteness::Possible);
        // indefinite, which minors of order 2 don't see
        let a = dense(&[&[1.0, 0.9, -0.9], &[0.9, 1.0, 0.9], &[-0.9, 0.9, 1.0]]);
        assert_eq!(of(&a), Definiteness::Possible);
    }

    #[test]
    fn obstacles_in_their_order() {
        let pair = Pair { row: 0, col: 1, upper: 1.0, lower: 3.0 };
        let a = dense(&[&[-1.0, 1.0], &[3.0, 1.0]]);
        assert_eq!(of(&a), Definiteness::Impossible(Obstacle::NotHermitian(pair)));
        let a = dense(&[&[1.0, 4.0], &[4.0, -1.0]]);
        assert_eq!(of(&a), Definiteness::Impossible(Obstacle::Diagonal { row: 1, value: Some(-1.0) }));
        let a = Csr::new(2, 2, vec![0, 1, 1], vec![0], vec![1.0]).unwrap();
        assert_eq!(of(&a), Definiteness::Impossible(Obstacle::EmptyRow { row: 1 }));
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0; 3]).unwrap();
        assert_eq!(of(&a), Definiteness::Impossible(Obstacle::Diagonal { row: 1, value: None }));
        let a = dense(&[&[4.0, 0.0, 0.0], &[0.0, 2.0, 3.0], &[0.0, 3.0, 4.0]]);
        let minor = Obstacle::Minor { row: 1, col: 2, value: 3.0, diagonal_row: 2.0, diagonal_col: 4.0 };
        assert_eq!(of(&a), Definiteness::Impossible(minor));
        let i = Complex64::new(0.0, 1.0);
        let a = dense(&[&[i, i], &[i, i]]);
        assert!(matches!(of(&a), Definiteness::Impossible(Obstacle::NotHermitian(p)) if p.row == 0 && p.col == 0));
    }

    #[test]
    fn minors_at_the_limit_are_decided_exactly() {
        assert!(not_below(1.0, 1.0, 1.0) && not_below(-6.0, 4.0, 9.0));
        let above = 1.0 + f64::EPSILON;
        assert!(!not_below(1.0, 1.0, above) && not_below(above, 1.0, above) && not_below(above, above, above));
        assert!(!not_below(3.0, 3.0, 3.0 * above));
        // products out of range: certain answers only
        assert!(not_below(2e200, 1e200, 1e200) && !not_below(1e200, 1e200, 1e200) && !not_below(1e199, 1e200, 1e200));
        assert!(not_below(1e-200, 1e-300, 1e-300) && !not_below(1e-300, 1e-200, 1e-200));
        assert!(not_below(Complex64::new(3.0, 4.1), 5.0, 5.0) && !not_below(Complex64::new(3.0, 4.0), 5.0, 5.0));
        assert!(not_below(Complex64::new(0.0, 5.0), 5.0, 5.0));
    }

    #[test]
    fn the_gallery_is_never_called_indefinite() {
        for a in [
            gallery::elasticity3d([3, 2, 2]).unwrap(),
            gallery::jumps([5, 6, 7], 1e6, 1).unwrap(),
            gallery::graph_laplacian(300, 4, 2, 1e-9, 2).unwrap(),
            gallery::anisotropic([6, 5, 4], 1e-4).unwrap(),
            gallery::random_spd(200, 5, 3).unwrap(),
        ] {
            assert!(!matches!(of(&a), Definiteness::Impossible(_)));
        }
    }
}
