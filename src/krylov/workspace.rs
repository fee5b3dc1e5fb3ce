//! The vectors of a rank that outlive a run, allocated once.

use crate::backend::LinearOperator;
use crate::backend::Ops;
use crate::error::Result;

/// Vectors that every method has; a text has others beside. An [`Iterate`](super::iterate::Iterate) has its own.
pub struct Workspace<O: Ops> {
    /// The iterate, or what is to be added to it.
    pub x: O::Vector,
    /// The residual b − A x, with room for its halo.
    pub r: O::Vector,
    /// The direction, with room for its halo.
    pub p: O::Vector,
    /// What the last product has left, with room for its halo.
    pub q: O::Vector,
}

impl<O: Ops> Workspace<O> {
    /// Allocates it.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn new(ops: &O, a: &impl LinearOperator<O>) -> Result<Self> {
        Ok(Self {
            x: ops.vector(0, "x")?,
            r: ops.vector(a.halo(), "r")?,
            p: ops.vector(a.halo(), "p")?,
            q: ops.vector(a.halo(), "q")?,
        })
    }
}
