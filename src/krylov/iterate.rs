//! What a method asks of whoever has the right-hand side and the iterate.

use super::workspace::Workspace;
use crate::backend::Backend;
use crate::backend::LinearOperator;
use crate::comm::Links;
use crate::error::Result;
use crate::partition::NewValues;

/// What a run of a method starts from, and adds to.
pub(crate) trait Iterate<O: Backend>: Send {
    /// Takes over the communicators of a solve.
    fn connect(&mut self, backend: &mut O, links: Links);

    /// Sets the right-hand side and the iterate.
    fn write(&mut self, backend: &O, w: &mut Workspace<O>, b: &[f64], x: &[f64]) -> Result<()>;

    /// r = b − A x in `w.r`, rounded to the precision of the iteration. `w.q` may be used up. If there is Aᵀ in more precision than that,
    /// Aᵀ r is in `w.p`, and its ‖Aᵀ r‖² over all ranks comes back.
    fn residual(&mut self, backend: &O, a: &impl LinearOperator<O>, w: &mut Workspace<O>) -> Result<Option<f64>>;

    /// Keeps the iterate that the last residual was of: the best so far.
    fn keep(&mut self, backend: &O, w: &Workspace<O>) -> Result<()>;

    /// Goes back to the iterate that was kept.
    fn restore(&mut self, backend: &O, w: &mut Workspace<O>) -> Result<()>;

    /// Gets the iterate.
    fn read(&mut self, backend: &O, w: &mut Workspace<O>, x: &mut [f64]) -> Result<()>;

    /// A look at the iterate, of which so much is [deferred](crate::backend::deferred), that leaves everything as it is.
    fn look(&self, backend: &O, w: &Workspace<O>, deferred: f64, x: &mut [f64]) -> Result<()>;

    /// p·A p for the direction in `w.p`, over all ranks, if the matrix is there in more precision than that of the
    /// iteration, which may have lost its sign. Then the direction is used up, and the iterate is the one that was
    /// kept.
    fn curvature(&mut self, backend: &O, w: &mut Workspace<O>) -> Result<Option<f64>>;

    /// Whether all of it is in the precision of the iteration, so that it may as well be that of several right-hand sides.
    fn takes_columns(&self) -> bool {
        false
    }

    /// Takes other values, if it has the matrix in another precision, as [`LinearOperator::take_values`] does.
    fn take_values(&mut self, _values: &NewValues<'_>) -> Result<bool> {
        Ok(true)
    }

    /// Memory of rows beside those of the iteration, in bytes.
    fn stored(&self) -> u64;
}
