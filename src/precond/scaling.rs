//! Jacobi's preconditioner as a symmetric scaling of the system: in place of A x = b, a method solves
//! (S A S) (S⁻¹ x) = S b with S = D^(−1/2), D the diagonal of A, or what stands for it. The iterates are the same as with M = D in exact arithmetic
//! (Saad, *Iterative Methods for Sparse Linear Systems*, section 9.2), but an iteration multiplies by no diagonal: the scaling
//! is done once, when the matrix is moved to its device.
//!
//! Where a diagonal that need not be positive is negative, its row is multiplied by −1 besides: the eigenvalues of what is
//! dominated by its diagonal then lie about 1, and not about ±1. For that, A must not be meant to stay symmetric.
//!
//! What remains is the test, which is about the residual of the system itself: ‖b − A x‖₂² = Σ d_i s_i² for the residual s of
//! the scaled system. So an iteration reads the 8 bytes a row of d.

use std::ops::Range;

use rayon::prelude::*;

use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Csr;
use crate::memory;
use crate::real::Real;

/// The scaling of a whole system.
pub(crate) struct Scaling {
    /// √|d| of each row with the sign of d; 1 where d is 0, which methods for definite matrices never see.
    roots: Vec<f64>,
    /// What squares of residuals are multiplied by besides, if rows are in units of their own.
    units: Option<Vec<f64>>,
}

impl Scaling {
    /// The scaling by the diagonal of `factor` A; `None` if all its elements are the same, so that it would change nothing.
    pub(crate) fn of(diagonal: &[f64], factor: f64) -> Option<Self> {
        if diagonal.par_iter().all(|d| *d == diagonal[0]) {
            return None;
        }
        Some(Self::by(diagonal, factor, None))
    }

    /// The same for rows in units of their own: squares of residuals count so many times. It changes something in any case. Rows whose
    /// diagonal is small in spite of their units stay as they are: they are beyond the range of these.
    pub(crate) fn in_units(mut diagonal: Vec<f64>, units: Vec<f64>) -> Self {
        diagonal.iter_mut().filter(|d| d.abs() < SMALL).for_each(|d| *d = 1f64.copysign(*d));
        Self::by(&diagonal, 1.0, Some(units))
    }

    /// The scaling by the diagonal of `factor` A, with rows in these units, even if it changes nothing.
    pub(crate) fn by(diagonal: &[f64], factor: f64, units: Option<Vec<f64>>) -> Self {
        let root = |&d: &f64| if d == 0.0 { 1.0 } else { (d.abs().sqrt() * factor.sqrt()).copysign(d) };
        Self { roots: diagonal.par_iter().map(root).collect(), units }
    }

    /// √|d| of each row with the sign of d.
    pub(crate) fn roots(&self) -> &[f64] {
        &self.roots
    }

    /// The values of some rows of S A S, but for the factor.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn values(&self, a: &Csr, rows: Range<usize>) -> Result<Vec<f64>> {
        let len = a.row_ptr()[rows.end] - a.row_ptr()[rows.start];
        let mut values = memory::zeros(len).map_err(|e| e.into_error("the values of the scaled matrix"))?;
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
                let given = a.col_idx()[entries.clone()].iter().zip(&a.values()[entries.clone()]);
                for (to, (&col, value)) in values[entries.start - base..entries.end - base].iter_mut().zip(given) {
                    // the same bits for (i, j) and (j, i); the product of two roots may be out of range
                    let (one, other) = (self.roots[row].abs(), self.roots[col as usize].abs());
                    let scaled = *value / one.max(other) / one.min(other).copysign(self.roots[row]);
                    // where the sign makes −0 of it, formats would not know again what they store in less
                    *to = scaled + 0.0;
                }
            }
        });
        Ok(values)
    }

    /// A rank's share, on its device.
    pub(crate) fn share<O: Backend>(&self, backend: &O, rows: Range<usize>) -> Result<RankScaling<O>> {
        let roots = memory::copied(&self.roots[rows.clone()]);
        let unit = |row: usize| self.units.as_ref().map_or(1.0, |units| units[row]);
        let weight = |(row, root): (usize, &f64)| O::Real::from_f64(root * root * unit(rows.start + row));
        let weights: Vec<O::Real> = roots.par_iter().enumerate().map(weight).collect();
        let weights = backend.shared_vector(&weights, 0, "the diagonal")?;
        Ok(RankScaling { roots, weights })
    }
}

/// A diagonal that is about 1 is not below this.
const SMALL: f64 = 0.25;

/// Rows that a thread scales at a time.
const PIECE: usize = 1 << 12;

/// The scaling of a rank's rows.
pub(crate) struct RankScaling<O: Backend> {
    roots: Vec<f64>,
    /// The diagonal, in units of the rows: weights of the squares of the scaled residual in ‖b − A x‖₂².
    pub(crate) weights: O::Vector,
}

impl<O: Backend> RankScaling<O> {
    /// √|d| of each row with the sign of d.
    pub(crate) fn roots(&self) -> &[f64] {
        &self.roots
    }

    /// ‖b − A x‖₂² for the residual r of the scaled system. Uses up `spare`.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn norm2(&self, backend: &O, r: &O::Vector, spare: &mut O::Vector) -> Result<f64> {
        backend.multiply(&self.weights, r, spare)?;
        backend.dot(r, spare)
    }

    /// S b, with the signs of rows.
    pub(crate) fn of_rhs(&self, b: &[f64]) -> Vec<f64> {
        self.map(b, |b, root| b / root)
    }

    /// S⁻¹ x.
    pub(crate) fn of_iterate(&self, x: &[f64]) -> Vec<f64> {
        self.map(x, |x, root| x * root.abs())
    }

    /// x from S⁻¹ x, in place.
    pub(crate) fn undo(&self, x: &mut [f64]) {
        x.par_iter_mut().zip(&self.roots).for_each(|(x, root)| *x /= root.abs());
    }

    fn map(&self, v: &[f64], f: impl Fn(f64, f64) -> f64 + Sync) -> Vec<f64> {
        v.par_iter().zip(&self.roots).map(|(&v, &root)| f(v, root)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::gallery;

    #[test]
    fn by_hand() {
        // [[4, 2], [2, 16]]: roots 2 and 4
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 2.0, 2.0, 16.0]).unwrap();
        let scaling = Scaling::of(&a.diagonal(), 1.0).unwrap();
        assert_eq!(scaling.values(&a, 0..2).unwrap(), [1.0, 0.25, 0.25, 1.0]);
        assert_eq!(scaling.values(&a, 1..2).unwrap(), [0.25, 1.0]);
        assert_eq!(scaling.values(&a, 1..1).unwrap(), [0.0; 0]);
        // a quarter of the matrix has half the roots
        let scaling = Scaling::of(&a.diagonal(), 0.25).unwrap();
        assert_eq!(scaling.values(&a, 0..1).unwrap(), [4.0, 1.0]);
    }

    /// [[−4, 2], [6, 16]]: roots −2 and 4. Row 1 is multiplied by −1, and nothing is changed of x.
    #[test]
    fn signs_by_hand() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![-4.0, 2.0, 6.0, 16.0]).unwrap();
        let scaling = Scaling::of(&a.diagonal(), 1.0).unwrap();
        assert_eq!(scaling.values(&a, 0..2).unwrap(), [1.0, -0.25, 0.75, 1.0]);
        let backend = crate::backend::host::HostBackend::<f64>::new(2, Box::new(crate::comm::Alone::default()));
        let share = scaling.share(&backend, 0..2).unwrap();
        assert_eq!(share.of_rhs(&[6.0, 8.0]), [-3.0, 2.0]);
        let mut x = share.of_iterate(&[5.0, 7.0]);
        assert_eq!(x, [10.0, 28.0]);
        share.undo(&mut x);
        assert_eq!(x, [5.0, 7.0]);
    }

    #[test]
    fn zeros_stay_positive() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![-4.0, 0.0, 0.0, 16.0]).unwrap();
        let values = Scaling::of(&a.diagonal(), 1.0).unwrap().values(&a, 0..2).unwrap();
        assert_eq!(values.into_iter().map(f64::to_bits).collect::<Vec<_>>(), [1.0, 0.0, 0.0, 1.0].map(f64::to_bits));
    }

    #[test]
    fn equal_diagonals_need_none() {
        assert!(Scaling::of(&gallery::poisson2d([9, 9]).unwrap().diagonal(), 1.0).is_none());
        assert!(Scaling::of(&[], 1.0).is_none());
        assert!(Scaling::of(&[1.0, 2.0], 1.0).is_some());
    }

    proptest! {
        /// S A S has the symmetry of A to the last bit, and ones on the diagonal, in any block of rows.
        #[test]
        fn scaled_matrices(
            n in 1usize..30,
            entries in prop::collection::vec((0usize..30, 0usize..30, -1e3..1e3, -200i32..200), 0..90),
            diagonal in prop::collection::vec((1.0..2.0, -400i32..400), 30),
            cut in 0usize..=30,
        ) {
            let mut triplets = (Vec::new(), Vec::new(), Vec::new());
            let mut push = |i: usize, j: usize, v: f64| {
                triplets.0.push(i as u32);
                triplets.1.push(j as u32);
                triplets.2.push(v);
            };
            let mut places = std::collections::BTreeSet::new();
            for (i, j, v, exponent) in entries {
                let (i, j) = (i % n, j % n);
                if i != j && places.insert((i.min(j), i.max(j))) {
                    push(i, j, v * 2f64.powi(exponent));
                    push(j, i, v * 2f64.powi(exponent));
                }
            }
            for (i, &(v, exponent)) in diagonal[..n].iter().enumerate() {
                push(i, i, v * 2f64.powi(exponent));
            }
            let a = Csr::from_triplets(n, n, &triplets.0, &triplets.1, &triplets.2).unwrap();
            let Some(scaling) = Scaling::of(&a.diagonal(), 1.0) else {
                prop_assert_eq!(n, 1);
                return Ok(());
            };
            let values = scaling.values(&a, 0..n).unwrap();
            let scaled = Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values.clone()).unwrap();
            let at = |i: usize, j: usize| {
                let row = scaled.row_ptr()[i]..scaled.row_ptr()[i + 1];
                row.clone().find(|&e| scaled.col_idx()[e] as usize == j).map(|e| scaled.values()[e].to_bits())
            };
            for i in 0..n {
                for j in 0..i {
                    prop_assert_eq!(at(i, j), at(j, i));
                }
            }
            for one in scaled.diagonal() {
                prop_assert!((one - 1.0).abs() <= 2.0 * f64::EPSILON, "{one:e}");
            }
            let cut = cut.min(n);
            prop_assert_eq!([scaling.values(&a, 0..cut).unwrap(), scaling.values(&a, cut..n).unwrap()].concat(), values);
        }
    }

    #[test]
    fn far_out_of_range() {
        let values = vec![1e300, 1.0, 1.0, 1e-300];
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values).unwrap();
        let factor = 2f64.powi(-996);
        let scaling = Scaling::of(&a.diagonal(), factor).unwrap();
        for (value, expected) in scaling.values(&a, 0..2).unwrap().iter().zip([1.0; 4]) {
            assert!((value * factor - expected).abs() < 1e-12, "{value}");
        }
    }
}
