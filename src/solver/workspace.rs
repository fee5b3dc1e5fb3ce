//! The vectors and sums of a method on a rank, allocated once.

use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::Ops;
use crate::solver::Method;
use crate::solver::recurrence::Former;

/// Vectors of conjugate gradients: 4 of them, 5 for a method that stores z or s. An [`Iterate`](super::iterate::Iterate)
/// has others.
pub struct Workspace<O: Ops> {
    /// The iterate, or what is to be added to it.
    pub x: O::Vector,
    /// The residual b − A x, with room for its halo.
    pub r: O::Vector,
    /// M⁻¹ r, for methods that store it.
    pub z: Option<O::Vector>,
    /// A p, for methods that have it by recurrence, with room for its halo.
    pub s: Option<O::Vector>,
    /// The direction, with room for its halo.
    pub p: O::Vector,
    /// What the matrix was multiplied with last, that is A p or A r, with room for its halo.
    pub q: O::Vector,
    /// p·q and q·q.
    pub dots: O::Sum,
    /// r·r, and what the test looks at.
    pub rho: O::Sum,
    /// The same after the next step.
    pub rho_next: O::Sum,
    /// The last step, for methods whose next one follows from it.
    pub(super) former: Option<Former>,
    /// One sum, for methods that form each by itself.
    pub dot: O::Sum,
}

impl<O: Ops> Workspace<O> {
    /// Allocates it.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn new(ops: &O, a: &impl LinearOperator<O>, method: Method, stores_z: bool) -> Result<Self> {
        let stores_s = method.recurrences() > 0;
        Ok(Self {
            x: ops.vector(0, "x")?,
            r: ops.vector(a.halo(), "r")?,
            z: stores_z.then(|| ops.vector(0, "z")).transpose()?,
            s: stores_s.then(|| ops.vector(a.halo(), "s")).transpose()?,
            p: ops.vector(a.halo(), "p")?,
            q: ops.vector(a.halo(), "q")?,
            dots: ops.sum(2)?,
            rho: ops.sum(2)?,
            rho_next: ops.sum(2)?,
            former: None,
            dot: ops.sum(1)?,
        })
    }
}
