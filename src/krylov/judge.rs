//! What a method asks of whoever watches it.

use super::iterate::Iterate;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::backend::{Backend, Record};
use crate::comm::Communicator;
use crate::error::Result;
use crate::precond::scaling::RankScaling;

/// Judges the iterations of a rank. All ranks see the same numbers and so come to the same verdict.
pub(crate) trait Judge {
    /// Takes note of ‖Aᵀ r‖² of the true residual at the start of a run, if that is formed, before [`begin`](Self::begin).
    fn see_descent(&mut self, ss: f64);

    /// Takes note of ‖r‖² of the true residual at the start of a run.
    fn begin(&mut self, rr: f64) -> Option<Verdict>;

    /// Whether this run goes on in the direction that the former one has left: in mixed precision, or where rows were
    /// moved, if the true residual is about that of the recurrence. To start anew with the residual would cost many
    /// iterations.
    fn keeps_direction(&self) -> bool;

    /// ‖Aᵀ r‖ / ‖r‖ at or below this ends the run, which has begun, of a method that minimises ‖r‖, for the matrix that the ranks have.
    fn run_tolerance(&self) -> f64;

    /// r·r at or below this ends the run.
    fn run_limit(&self) -> f64;

    /// Whether no run has begun with a smaller residual than this one, which has just begun.
    fn is_best(&self) -> bool;

    /// Whether a run goes on in the direction that the former one would have had next, though that has come to the test: in mixed precision.
    fn resumes(&self) -> bool;

    /// Whether a residual that is replaced gets more accurate by that.
    fn may_replace(&self) -> bool;

    /// How many iterations may be made before the judge has to hear of them.
    fn at_once(&self) -> u64;

    /// How many iterations are allowed from `iteration` of this run on.
    fn allowed_from(&self, iteration: u64) -> u64;

    /// Judges a number that has become known in the middle of an iteration.
    fn see(&mut self, record: &Record) -> Option<Verdict>;

    /// Judges what has become known, in order; then the clock and the caller.
    fn judge<T>(&mut self, records: &[Record], comm: &dyn Communicator<T>) -> Option<Verdict>;

    /// Now and then, in the middle of iteration `iteration` of a run: compares what the ranks' kernels take, and whether
    /// rows had better be shared otherwise.
    fn compare<O: Backend>(&mut self, backend: &O, iteration: u64) -> Result<Option<Verdict>>;

    /// Whether all ranks have agreed to take a snapshot of the iterate now.
    fn is_snapshot_due(&self) -> bool;

    /// Takes a snapshot of the iterate, if all ranks have agreed to do that now. To be called where `w` and `iterate` have the iterate
    /// of the last iteration that was judged, and `w` the direction of the next; `deferred` tells what is
    /// [deferred](crate::backend::deferred) of x.
    fn take_snapshot<O: Backend>(
        &mut self,
        backend: &O,
        iterate: &impl Iterate<O>,
        scaling: Option<&RankScaling<O>>,
        w: &Workspace<O>,
        deferred: f64,
    ) -> Result<()>;
}
