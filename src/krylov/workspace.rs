//! The vectors of a rank that outlive a run, allocated once.

use crate::backend::Backend;
use crate::backend::LinearOperator;
use crate::backend::machine::largest_halo;
use crate::error::Result;

/// Vectors that every method has; a text has others beside. An [`Iterate`](super::iterate::Iterate) has its own.
pub struct Workspace<O: Backend> {
    /// The iterate, or what is to be added to it.
    pub x: O::Vector,
    /// The residual b − A x, with room for its halo.
    pub r: O::Vector,
    /// The direction, with room for its halo.
    pub p: O::Vector,
    /// What the last product has left, with room for its halo.
    pub q: O::Vector,
}

impl<O: Backend> Workspace<O> {
    /// Allocates it.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn new(backend: &O, operators: &[impl LinearOperator<O>]) -> Result<Self> {
        let halo = largest_halo(operators);
        Ok(Self {
            x: backend.vector(0, "x")?,
            r: backend.vector(halo, "r")?,
            p: backend.vector(halo, "p")?,
            q: backend.vector(halo, "q")?,
        })
    }
}
