//! Preconditioners M ≈ A, symmetric and positive definite, whose inverse is cheap to apply.

pub(crate) mod scaling;

use rayon::prelude::*;

use crate::error::Result;
use crate::named::named;
use crate::ops::Ops;
use crate::real::Real;

named! {
    /// The preconditioner.
    Precond, "preconditioner":
    None = "none", "No preconditioner.";
    Jacobi = "jacobi", "The inverse of the diagonal: the system is scaled by it; cg-classic multiplies by it.";
}

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
    /// Jacobi: M is the diagonal of the scaled matrix, given as this rank's part of A's and the factor. Takes one vector of
    /// memory.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn jacobi<O: Ops<Vector = V>>(ops: &O, diagonal: &[f64], factor: f64) -> Result<Self> {
        let inverse: Vec<O::Real> = diagonal.par_iter().map(|&d| O::Real::from_f64(1.0 / (d * factor))).collect();
        let mut v = ops.vector(0, "the inverse diagonal")?;
        ops.write(&inverse, &mut v)?;
        Ok(Self::Diagonal(v))
    }

    /// z = M⁻¹ r.
    ///
    /// # Errors
    /// A failing device.
    pub fn apply<O: Ops<Vector = V>>(&self, ops: &O, r: &V, z: &mut V) -> Result<()> {
        match self.diagonal() {
            Some(d) => ops.multiply(d, r, z),
            None => ops.copy(r, z),
        }
    }

    /// The diagonal of M⁻¹, if that is all there is.
    pub fn diagonal(&self) -> Option<&V> {
        match self {
            Self::Identity => None,
            Self::Diagonal(d) => Some(d),
        }
    }
}
