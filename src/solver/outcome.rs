//! How a solve ended.

use std::fmt;
use std::time::Duration;

use crate::timeline::Timeline;
use crate::verify::Residual;

/// Which part of the stop test max(rtol ‖b‖₂, atol) was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Criterion {
    /// ‖b − A x‖₂ ≤ rtol ‖b‖₂.
    Rtol,
    /// ‖b − A x‖₂ ≤ atol.
    Atol,
    /// b = 0, so that x = 0 is the solution.
    ZeroRhs,
}

/// What showed that the matrix is not positive definite.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Indefinite {
    /// A diagonal entry that is not positive; the row counts from 1.
    Diagonal {
        /// Row, from 1.
        row: usize,
        /// The diagonal entry, 0 if none is stored.
        value: f64,
    },
    /// A row without entries, so that the matrix is singular.
    EmptyRow {
        /// Row, from 1.
        row: usize,
    },
    /// A direction p with p·Ap ≤ 0.
    Direction {
        /// The iteration, from 1.
        iteration: u64,
        /// p·Ap.
        curvature: f64,
    },
}

/// Why a solve ended. Only [`Reason::Converged`] is a success, and it is said only after b − A x has been recomputed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The stop test holds for the recomputed residual.
    Converged(Criterion),
    /// The limit on iterations.
    MaxIters,
    /// The limit on time.
    TimeLimit,
    /// The true residual no longer falls: the precision is exhausted, or the system is singular.
    Stagnation,
    /// The residual has grown beyond all bounds.
    Divergence,
    /// The matrix is not positive definite.
    IndefiniteOperator(Indefinite),
    /// The preconditioner is not positive definite; the iteration that showed it.
    IndefinitePreconditioner {
        /// The iteration, from 1.
        iteration: u64,
    },
    /// The recurrence can't go on.
    Breakdown(&'static str),
    /// An infinity or a NaN turned up.
    NonFinite(&'static str),
    /// The caller asked for the end.
    Interrupted,
}

impl Reason {
    /// Whether the solve succeeded.
    #[must_use]
    pub fn converged(&self) -> bool {
        matches!(self, Self::Converged(_))
    }

    /// The variant's name, for machines: `Converged`, `MaxIters`, …
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Converged(_) => "Converged",
            Self::MaxIters => "MaxIters",
            Self::TimeLimit => "TimeLimit",
            Self::Stagnation => "Stagnation",
            Self::Divergence => "Divergence",
            Self::IndefiniteOperator(_) => "IndefiniteOperator",
            Self::IndefinitePreconditioner { .. } => "IndefinitePreconditioner",
            Self::Breakdown(_) => "Breakdown",
            Self::NonFinite(_) => "NonFinite",
            Self::Interrupted => "Interrupted",
        }
    }
}

impl fmt::Display for Reason {
    /// `Name: explanation`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Self::Converged(Criterion::Rtol) => f.write_str("the relative residual is below rtol"),
            Self::Converged(Criterion::Atol) => f.write_str("the residual is below atol"),
            Self::Converged(Criterion::ZeroRhs) => f.write_str("the right-hand side is zero, and so is x"),
            Self::MaxIters => f.write_str("the limit on iterations was reached"),
            Self::TimeLimit => f.write_str("the limit on time was reached"),
            Self::Stagnation => {
                f.write_str("the true residual no longer falls; the precision is exhausted, or the system is singular")
            }
            Self::Divergence => f.write_str("the residual has grown beyond all bounds"),
            Self::IndefiniteOperator(Indefinite::Diagonal { row, value }) => {
                write!(f, "the matrix is not positive definite: a({row},{row}) = {value:e}")
            }
            Self::IndefiniteOperator(Indefinite::EmptyRow { row }) => {
                write!(f, "row {row} has no entries: the matrix is singular")
            }
            Self::IndefiniteOperator(Indefinite::Direction { iteration, curvature }) => {
                write!(f, "the matrix is not positive definite: p·Ap = {curvature:e} in iteration {iteration}")
            }
            Self::IndefinitePreconditioner { iteration } => {
                write!(f, "the preconditioner is not positive definite: r·z ≤ 0 in iteration {iteration}")
            }
            Self::Breakdown(what) => f.write_str(what),
            Self::NonFinite(what) => write!(f, "an infinity or a NaN in {what}"),
            Self::Interrupted => f.write_str("stopped on request"),
        }
    }
}

/// Where the time of one rank's iteration went. The kernels' time overlaps with the others: it is the device's, and they are
/// the host's; the rest of the solve is the host's own work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Split {
    /// Kernels running on the device (sampled iterations, scaled up) or the host rank's own arithmetic.
    pub kernels: Duration,
    /// Global sums: the wait for the other ranks.
    pub sums: Duration,
    /// Halo exchange: the wait for what was enqueued before, transfers, and the wait for the neighbours.
    pub halos: Duration,
    /// The host waiting for its device elsewhere: for partial sums, or the log of the iteration.
    pub host_wait: Duration,
}

/// Rows that were moved in the course of a solve.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    /// Iterations that were done before.
    pub iteration: u64,
    /// Seconds of each rank's kernels an iteration before.
    pub kernels: Vec<f64>,
    /// The share of each of these ranks afterwards, from 0 to 1. One with 0 is no rank any more, unless it had none before.
    pub shares: Vec<f64>,
    /// The time that it took.
    pub time: Duration,
}

/// What a solve gives, converged or not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The solution, or the best approximation reached.
    pub x: Vec<f64>,
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
    /// Time to take b and the first guess to the ranks.
    pub upload: Duration,
    /// Time in the iteration, with its restarts.
    pub solve: Duration,
    /// Time to bring x back.
    pub gather: Duration,
    /// Time to recompute b − A x.
    pub verify: Duration,
    /// For each rank, where the time of the iteration went.
    pub split: Vec<Split>,
    /// For each rank, what it did when: empty unless [`Control::timeline`](super::Control::timeline) asks for it.
    pub timelines: Vec<Timeline>,
    /// When rows were moved, as the ranks' kernels took uneven times.
    pub moves: Vec<Move>,
    /// Seconds of each rank's kernels an iteration, as the ranks compared them last; empty if they did not.
    pub kernel_seconds: Vec<f64>,
    /// Seconds of an iteration, the median over windows of some of them, so that neither the first ones count nor what is tried
    /// now and then; none if they were few.
    pub iteration_seconds: Option<f64>,
    /// Bytes that an iteration moves over all ranks, each array counted once. In mixed precision, the residuals in
    /// double precision are beside that.
    pub bytes_per_iteration: u64,
}
