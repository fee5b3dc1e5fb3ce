//! Steps to a better solution, with residuals in twice double precision.

use super::element::Element;
use super::factor::Factor;
use super::matrix::Matrix;
pub use crate::direct::Refinement;
use crate::direct::refine_by;
use crate::error::Result;
use crate::matrix::power::nearest;

impl<T: Element> Factor<T> {
    /// Improves `x` by x += A⁻¹ (b − A x), where A⁻¹ is what the factors make of it, as long as a step halves ‖b − A x‖₂ and for 10 steps at
    /// most. Factors in single precision so serve for solutions in double precision, unless A is too near to a singular matrix. x = 0 is a
    /// start as good as any. A product with A and a solve a step.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a vector has not n elements.
    pub fn refine(&mut self, a: &Matrix<f64>, b: &[f64], x: &mut [f64]) -> Result<Refinement> {
        refine_by(|x, r| a.residual(b, x, r), |r, d| self.correction(r, d), x)
    }

    /// d = A⁻¹ r by the factors, in their precision: r is scaled by a power of two, so that small ones are not lost there.
    pub(crate) fn correction(&mut self, r: &[f64], d: &mut [f64]) -> Result<()> {
        d.copy_from_slice(&self.corrections(&[r])?.concat());
        Ok(())
    }

    /// The same of several r of n elements at once.
    pub(crate) fn corrections(&mut self, r: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        let scales: Vec<f64> = r.iter().map(|r| scale_of(r)).collect();
        let scaled = |(r, scale): (&&[f64], &f64)| r.iter().map(|r| T::from_f64(r * scale)).collect::<Vec<_>>();
        let mut work: Vec<T> = r.iter().zip(&scales).flat_map(scaled).collect();
        self.solve(&mut work)?;
        let columns = work.chunks_exact(self.order().max(1)).zip(scales);
        Ok(columns.map(|(column, scale)| column.iter().map(|w| w.to_f64() / scale).collect()).collect())
    }
}

/// The power of two that brings the largest element near 1.
fn scale_of(r: &[f64]) -> f64 {
    let largest = r.iter().fold(0.0_f64, |most, r| most.max(r.abs()));
    if largest > 0.0 && largest.is_finite() { f64::powi(2.0, -nearest(largest.log2())) } else { 1.0 }
}
