//! Preconditioners M ≈ A, symmetric and positive definite, whose inverse is cheap to apply.

use crate::error::Result;
use crate::ops::Ops;
use crate::real::Real;

/// A preconditioner on a rank, with vectors `V`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Preconditioner<V> {
    /// M = 1.
    Identity,
    /// M⁻¹ is the diagonal matrix with these elements.
    Diagonal(V),
}

impl<V> Preconditioner<V> {
    /// Jacobi: M is the diagonal of A, given as this rank's part. Takes one vector of memory.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn jacobi<O: Ops<Vector = V>>(ops: &O, diagonal: &[f64]) -> Result<Self> {
        let inverse: Vec<O::Real> = diagonal.iter().map(|&d| O::Real::from_f64(1.0 / d)).collect();
        let mut v = ops.vector(0, "the inverse diagonal")?;
        ops.write(&inverse, &mut v)?;
        Ok(Self::Diagonal(v))
    }

    /// The diagonal of M⁻¹, if that is all there is: kernels multiply by it in passing.
    pub fn diagonal(&self) -> Option<&V> {
        match self {
            Self::Identity => None,
            Self::Diagonal(d) => Some(d),
        }
    }
}
