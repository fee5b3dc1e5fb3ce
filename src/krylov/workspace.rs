//! The vectors and sums of a method on a rank, allocated once.

use super::method::Method;
use super::recurrence::Former;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::Ops;

/// Vectors of conjugate gradients: 4 of them, and those that a method has beside. An
/// [`Iterate`](super::iterate::Iterate) has others.
pub struct Workspace<O: Ops> {
    /// The iterate, or what is to be added to it.
    pub x: O::Vector,
    /// The residual b − A x, with room for its halo.
    pub r: O::Vector,
    /// The direction, with room for its halo.
    pub p: O::Vector,
    /// What the last product has left, with room for its halo.
    pub q: O::Vector,
    /// A p, for methods that have it by recurrence, with room for its halo.
    pub s: Option<O::Vector>,
    /// A r, likewise.
    pub t: Option<O::Vector>,
    /// A s, likewise; or M⁻¹ r, for methods that store it.
    pub z: Option<O::Vector>,
    /// The two that a product leaves: p·q and q·q.
    pub dots: O::Sum,
    /// r·r, and what the test looks at.
    pub rho: O::Sum,
    /// One sum, for methods that form each by itself.
    pub dot: O::Sum,
    /// r·r, what the test looks at and r·t, for methods that form them together.
    pub sums: O::Sum,
    /// The last step, for methods whose next one follows from it.
    pub(crate) former: Option<Former>,
}

impl<O: Ops> Workspace<O> {
    /// Allocates it.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub fn new(ops: &O, a: &impl LinearOperator<O>, method: Method, stores_z: bool) -> Result<Self> {
        let recurrences = method.facts().recurrences;
        let recurrence = |k, name| (recurrences >= k).then(|| ops.vector(a.halo(), name)).transpose();
        Ok(Self {
            x: ops.vector(0, "x")?,
            r: ops.vector(a.halo(), "r")?,
            p: ops.vector(a.halo(), "p")?,
            q: ops.vector(a.halo(), "q")?,
            s: recurrence(1, "s")?,
            t: recurrence(2, "t")?,
            z: if stores_z { Some(ops.vector(0, "z")?) } else { recurrence(3, "z")? },
            dots: ops.sum(2)?,
            rho: ops.sum(2)?,
            dot: ops.sum(1)?,
            sums: ops.sum(4)?,
            former: None,
        })
    }
}
