//! Jacobi's preconditioner as a symmetric scaling of the system: in place of A x = b, conjugate gradients solve
//! (S A S) (S⁻¹ x) = S b with S = D^(−1/2), D the diagonal of A. The iterates are the same as with M = D in exact arithmetic
//! (Saad, *Iterative Methods for Sparse Linear Systems*, section 9.2), but an iteration multiplies by no diagonal: the scaling
//! is done once, when the matrix is moved to its device.
//!
//! What remains is the test, which is about the residual of the system itself: ‖b − A x‖₂² = Σ d_i s_i² for the residual s of
//! the scaled system. So an iteration reads the 8 bytes a row of d.

use std::ops::Range;

use rayon::prelude::*;

use super::workspace::Workspace;
use crate::error::Result;
use crate::matrix::Csr;
use crate::ops::Ops;
use crate::real::Real;

/// The scaling of a whole system.
pub(super) struct Scaling {
    /// √d of each row; 1 where d is not positive, which no iteration ever sees.
    roots: Vec<f64>,
}

impl Scaling {
    /// The scaling by the diagonal of `factor` A; `None` if all its elements are the same, so that it would change nothing.
    pub(super) fn of(diagonal: &[f64], factor: f64) -> Option<Self> {
        if diagonal.par_iter().all(|d| *d == diagonal[0]) {
            return None;
        }
        let root = |&d: &f64| if d > 0.0 { d.sqrt() * factor.sqrt() } else { 1.0 };
        Some(Self { roots: diagonal.par_iter().map(root).collect() })
    }

    /// The values of some rows of S A S, but for the factor.
    pub(super) fn values(&self, a: &Csr, rows: Range<usize>) -> Vec<f64> {
        let first = a.row_ptr()[rows.start];
        let mut values = a.values()[first..a.row_ptr()[rows.end]].to_vec();
        let mut rest = values.as_mut_slice();
        let mut pieces = Vec::new();
        for begin in rows.clone().step_by(PIECE) {
            let piece = begin..rows.end.min(begin + PIECE);
            let (values, others) = rest.split_at_mut(a.row_ptr()[piece.end] - a.row_ptr()[begin]);
            pieces.push((piece, values));
            rest = others;
        }
        pieces.into_par_iter().for_each(|(rows, values)| {
            let base = a.row_ptr()[rows.start];
            for row in rows {
                let entries = a.row_ptr()[row]..a.row_ptr()[row + 1];
                let columns = &a.col_idx()[entries.clone()];
                for (value, &col) in values[entries.start - base..entries.end - base].iter_mut().zip(columns) {
                    // the same bits for (i, j) and (j, i); the product of two roots may be out of range
                    let (one, other) = (self.roots[row], self.roots[col as usize]);
                    *value = *value / one.max(other) / one.min(other);
                }
            }
        });
        values
    }

    /// A rank's share, on its device.
    pub(super) fn share<O: Ops>(&self, ops: &O, rows: Range<usize>) -> Result<Share<O>> {
        let roots = self.roots[rows].to_vec();
        let weights: Vec<O::Real> = roots.par_iter().map(|t| O::Real::from_f64(t * t)).collect();
        let mut on_device = ops.vector(0, "the diagonal")?;
        ops.write(&weights, &mut on_device)?;
        Ok(Share { roots, weights: on_device })
    }
}

/// Rows that a thread scales at a time.
const PIECE: usize = 1 << 12;

/// The scaling of a rank's rows.
pub(super) struct Share<O: Ops> {
    roots: Vec<f64>,
    /// The diagonal: weights of the squares of the scaled residual in ‖b − A x‖₂².
    pub(super) weights: O::Vector,
}

impl<O: Ops> Share<O> {
    /// S b.
    pub(super) fn of_rhs(&self, b: &[f64]) -> Vec<f64> {
        self.map(b, |b, root| b / root)
    }

    /// S⁻¹ x.
    pub(super) fn of_iterate(&self, x: &[f64]) -> Vec<f64> {
        self.map(x, |x, root| x * root)
    }

    /// x from S⁻¹ x, in place.
    pub(super) fn undo(&self, x: &mut [f64]) {
        x.par_iter_mut().zip(&self.roots).for_each(|(x, root)| *x /= root);
    }

    fn map(&self, v: &[f64], f: impl Fn(f64, f64) -> f64 + Sync) -> Vec<f64> {
        v.par_iter().zip(&self.roots).map(|(&v, &root)| f(v, root)).collect()
    }
}

/// ‖b − A x‖₂² of the residual in `w.r`, into the second component of `w.rho`.
pub(super) fn weighted_norm<O: Ops>(ops: &O, share: &Share<O>, w: &mut Workspace<O>) -> Result<()> {
    ops.multiply(&share.weights, &w.r, &mut w.q)?;
    ops.dot_product(&w.r, &w.q, &mut w.rho, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    #[test]
    fn by_hand() {
        // [[4, 2], [2, 16]]: roots 2 and 4
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 2.0, 2.0, 16.0]).unwrap();
        let scaling = Scaling::of(&a.diagonal(), 1.0).unwrap();
        assert_eq!(scaling.values(&a, 0..2), [1.0, 0.25, 0.25, 1.0]);
        assert_eq!(scaling.values(&a, 1..2), [0.25, 1.0]);
        assert_eq!(scaling.values(&a, 1..1), [0.0; 0]);
        // a quarter of the matrix has half the roots
        let scaling = Scaling::of(&a.diagonal(), 0.25).unwrap();
        assert_eq!(scaling.values(&a, 0..1), [4.0, 1.0]);
    }

    #[test]
    fn equal_diagonals_need_none() {
        assert!(Scaling::of(&gallery::poisson2d([9, 9]).unwrap().diagonal(), 1.0).is_none());
        assert!(Scaling::of(&[], 1.0).is_none());
        assert!(Scaling::of(&[1.0, 2.0], 1.0).is_some());
    }

    #[test]
    fn far_out_of_range() {
        let values = vec![1e300, 1.0, 1.0, 1e-300];
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values).unwrap();
        let factor = 2f64.powi(-996);
        let scaling = Scaling::of(&a.diagonal(), factor).unwrap();
        for (value, expected) in scaling.values(&a, 0..2).iter().zip([1.0; 4]) {
            assert!((value * factor - expected).abs() < 1e-12, "{value}");
        }
    }
}
