//! How a solve ended.

use std::time::Duration;

use serde::Serialize;

use super::chain::Candidate;
use crate::krylov::{Method, Reason};
use crate::precond::Precond;
use crate::timeline::{Split, Timeline};
use crate::timing::in_seconds;
use crate::verify::Residual;

/// Rows that were moved in the course of a solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// Iterations that were done before.
    #[serde(rename = "iterations")]
    pub iteration: u64,
    /// Seconds of each rank's kernels an iteration before.
    #[serde(rename = "kernel_seconds")]
    pub kernels: Vec<f64>,
    /// The share of each of these ranks afterwards, from 0 to 1. One with 0 is no rank any more, unless it had none before.
    pub shares: Vec<f64>,
    /// The time that it took.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub time: Duration,
}

/// A method that took over from another in the course of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Switch {
    /// Iterations that were done before, those of a former solve among them.
    pub iteration: u64,
    /// The method before.
    pub from: Method,
    /// The method that went on from its iterate.
    pub to: Method,
    /// Its preconditioner.
    pub precond: Precond,
    /// Why the method before has ended: not converged.
    #[serde(rename = "reason", serialize_with = "by_text")]
    pub why: Reason,
}

impl Switch {
    /// What went on.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate { method: self.to, precond: self.precond }
    }
}

fn by_text<S: serde::Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(reason)
}

/// What a solve gives, converged or not.
///
/// [`Solver::solve_into`](super::Solver::solve_into) leaves x in the caller's memory: then `X` is `()`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome<X = Vec<f64>> {
    /// The solution, or the best approximation reached.
    pub x: X,
    /// Why the solve ended.
    pub reason: Reason,
    /// Iterations of a former solve: [`Control::done`](super::Control::done).
    pub done: u64,
    /// Iterations of the Krylov method in all, those of a former solve among them.
    pub iterations: u64,
    /// How often the recurrence met the test, or lost all its digits, the recomputed residual was still above the test, and the
    /// iteration went on from x; or other devices went on after a failure. In mixed precision, also how often the residual was formed anew on the way.
    pub restarts: u32,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence: before the first iteration of this solve, then after each.
    pub history: Vec<f64>,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence at the end.
    pub recurrence_rel_residual_2: f64,
    /// b − A x recomputed on the host in compensated arithmetic: the true residual.
    pub residual: Residual,
    /// Time to build kernels of the method, the first time that they are needed.
    pub compile: Duration,
    /// Time to take b and the first guess to the ranks.
    pub upload: Duration,
    /// Time to set a preconditioner up in the course of the solve, where [`Method::Auto`] goes on by another one.
    pub precond: Duration,
    /// Time in the iteration, with its restarts.
    pub solve: Duration,
    /// Time to bring x back.
    pub gather: Duration,
    /// Time to recompute b − A x.
    pub verify: Duration,
    /// If x is what [`Control::early`](super::Control::early) got last: how long the solve waited for it when b − A x was known.
    pub early: Option<Duration>,
    /// For each rank, where the time of the iteration went.
    pub split: Vec<Split>,
    /// For each rank, what it did when: empty unless [`Control::timeline`](super::Control::timeline) asks for it.
    pub timelines: Vec<Timeline>,
    /// How many right-hand sides were solved for at a time, this one among them: see
    /// [`Solver::solve_columns`](super::Solver::solve_columns).
    pub side_by_side: usize,
    /// When other methods took over, with [`Method::Auto`]: where the matrix was found not to be definite, or a method came to nothing.
    pub switches: Vec<Switch>,
    /// When rows were moved, as the ranks' kernels took uneven times.
    pub moves: Vec<Move>,
    /// Seconds of each rank's kernels an iteration, as the ranks compared them last; empty if they did not.
    pub kernel_seconds: Vec<f64>,
    /// Seconds of an iteration, the median over windows of some of them, so that the first ones do not count;
    /// none if they were few.
    pub iteration_seconds: Option<f64>,
    /// Bytes that an iteration moves over all ranks, each array counted once. In mixed precision, the residuals in
    /// double precision are beside that.
    pub bytes_per_iteration: u64,
}

impl<X> Outcome<X> {
    /// The same with another x, made of this.
    #[must_use]
    pub fn map_x<Y>(self, map: impl FnOnce(X) -> Y) -> Outcome<Y> {
        Outcome {
            x: map(self.x),
            reason: self.reason,
            done: self.done,
            iterations: self.iterations,
            restarts: self.restarts,
            history: self.history,
            recurrence_rel_residual_2: self.recurrence_rel_residual_2,
            residual: self.residual,
            compile: self.compile,
            upload: self.upload,
            precond: self.precond,
            solve: self.solve,
            gather: self.gather,
            verify: self.verify,
            early: self.early,
            split: self.split,
            timelines: self.timelines,
            side_by_side: self.side_by_side,
            switches: self.switches,
            moves: self.moves,
            kernel_seconds: self.kernel_seconds,
            iteration_seconds: self.iteration_seconds,
            bytes_per_iteration: self.bytes_per_iteration,
        }
    }
}
