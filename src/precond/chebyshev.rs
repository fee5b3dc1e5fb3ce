//! A polynomial as preconditioner: M⁻¹ = p(D⁻¹ A) D⁻¹ with the diagonal D and Chebyshev's polynomials of the fourth kind (Lottes 2023, doi
//! 10.1002/nla.2479), which need the largest eigenvalue of D⁻¹ A alone. It is symmetric and positive definite if A is.
//!
//! An iteration has more products and fewer sums for them: as many ranks wait for each other less often.

use std::sync::Arc;

use rayon::prelude::*;

use super::Rows;
use crate::backend::text::{Preconditioner, Recorder, Vector};
use crate::comm::Communicator;
use crate::error::Result;
use crate::matrix::Csr;
use crate::memory::copy;

/// The degree of p, which takes one product less.
const DEGREE: u32 = 3;

/// Elements that are worth a thread's while.
const CHUNK: usize = 1 << 14;

/// M⁻¹, as a rank has it.
#[derive(Debug)]
pub(crate) struct Chebyshev {
    /// The diagonal of D⁻¹.
    inverse: Arc<Vec<f64>>,
    /// No eigenvalue of D⁻¹ A is larger.
    largest: f64,
}

impl Default for Chebyshev {
    fn default() -> Self {
        Self { inverse: Arc::default(), largest: 1.0 }
    }
}

impl Chebyshev {
    /// For the rows of a rank, together with the others. The bound is Gershgorin's: the largest Σ |a_ij| / |a_ii|.
    ///
    /// # Errors
    /// A failing rank.
    pub(super) fn set_up<T>(rows: &Rows, comm: &dyn Communicator<T>) -> Result<Self> {
        let diagonal = rows.diagonal();
        let sum = |row: usize| match rows {
            Rows::Matrix(a, of, factor) => factor * a.row(of.start + row).1.iter().map(|v| v.abs()).sum::<f64>(),
            Rows::Function(diagonal, bound) => bound * diagonal[row].abs(),
        };
        let bound = |(row, d): (usize, &f64)| sum(row) / d.abs();
        let own = diagonal.par_iter().enumerate().map(bound).reduce(|| 0.0, f64::max);
        let largest = comm.gather(own)?.into_iter().fold(0.0, f64::max);
        let inverse = Arc::new(diagonal.par_iter().map(|d| d.recip()).collect());
        Ok(Self { inverse, largest: if largest > 0.0 { largest } else { 1.0 } })
    }
}

impl Chebyshev {
    /// What the next step has of the step before, and of D⁻¹ (r − A z).
    fn weights(&self, degree: u32) -> [f64; 2] {
        let twice = f64::from(2 * degree);
        [(twice - 3.0) / (twice + 1.0), (4.0 * twice - 4.0) / (twice + 1.0) / self.largest]
    }

    /// z = M⁻¹ r on the host, for the matrix that it was set up for.
    pub(super) fn apply_on_host(&self, a: &Csr, r: &[f64], z: &mut [f64]) {
        let mut rest: Vec<f64> = r.par_iter().zip(&*self.inverse).map(|(r, d)| d * r).collect();
        let mut step: Vec<f64> = rest.par_iter().map(|rest| 4.0 / 3.0 / self.largest * rest).collect();
        copy(&step, z);
        for degree in 2..=DEGREE {
            let [kept, new] = self.weights(degree);
            let a_step = a.mul_vec(&step);
            let all = z.par_iter_mut().zip(&mut step).zip(&mut rest).zip(&a_step).zip(&*self.inverse);
            all.with_min_len(CHUNK).for_each(|((((z, step), rest), a_step), d)| {
                *rest -= d * a_step;
                *step = kept * *step + new * *rest;
                *z += *step;
            });
        }
    }
}

impl Preconditioner for Chebyshev {
    fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
        vec![("d", Arc::clone(&self.inverse))]
    }

    fn between(&self) -> Vec<&'static str> {
        vec!["rest", "step", "a_step"]
    }

    fn apply<'k>(&self, k: &'k Recorder, vectors: &[Vector<'k>], r: Vector<'k>, mut z: Vector<'k>) {
        let [d, mut rest, step, a_step] = *vectors else { return };
        rest.set(d.times(r)); // D⁻¹ (r − A z)
        step.set(k.number(4.0 / 3.0 / self.largest) * rest);
        z.set(step);
        for degree in 2..=DEGREE {
            let [kept, new] = self.weights(degree);
            a_step.set(k.a() * step);
            rest -= d.times(a_step);
            step.set(k.number(kept) * step + k.number(new) * rest);
            z += step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Alone;

    /// Rows of [2 −1; −1 4] have sums of 3/2 and 5/4 of their diagonal; of a rank alone they are the bound.
    #[test]
    fn the_bound_by_hand() {
        let a = Arc::new(Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -1.0, -1.0, 4.0]).unwrap());
        let of = |rows| Chebyshev::set_up::<f64>(&Rows::Matrix(Arc::clone(&a), rows, 2.0), &Alone::default()).unwrap();
        assert_eq!((of(0..2).largest, of(1..2).largest), (1.5, 1.25));
        assert_eq!(*of(0..2).inverse, [0.25, 0.125]);
    }
}
