//! When a solve stops, and how a caller watches and ends it.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;

use crate::krylov::Criterion;
use crate::setters::setters;
use crate::timing::in_seconds;
use crate::verify::Residual;

/// When to stop: ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), or a small backward error, or one of the limits.
///
/// ```
/// use std::time::Duration;
///
/// use declive::Stop;
///
/// let stop = Stop::default().with_rtol(1e-10).with_time_limit(Duration::from_secs(60));
/// # assert_eq!((stop.rtol, stop.max_iters), (1e-10, None));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stop {
    /// Relative to ‖b‖₂.
    pub rtol: f64,
    /// Absolute, in the units of b.
    pub atol: f64,
    /// [Normwise backward error](Residual::backward_error) that is small enough, too; 0 if it doesn't count. It says what rounding lets one
    /// ask for where the relative residual is out of reach, as x is large beside b; then set `rtol` to 0.
    pub backward_error: f64,
    /// At most so many iterations; `None` stands for [`Stop::default_max_iters`].
    pub max_iters: Option<u64>,
    /// At most so much time in the iteration.
    #[serde(serialize_with = "in_seconds")]
    pub time_limit: Option<Duration>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { rtol: 1e-8, atol: 0.0, backward_error: 0.0, max_iters: None, time_limit: None }
    }
}

setters! { Stop:
    with_rtol = rtol: f64;
    with_atol = atol: f64;
    with_backward_error = backward_error: f64;
    with_max_iters = max_iters: u64 as Some;
    with_time_limit = time_limit: Duration as Some;
}

impl Stop {
    /// Which part of the test a residual meets, if one.
    pub(crate) fn met(&self, residual: &Residual) -> Option<Criterion> {
        [
            (residual.relative_2 <= self.rtol, Criterion::Rtol),
            (residual.norm_2 <= self.atol, Criterion::Atol),
            (self.backward_error > 0.0 && residual.backward_error <= self.backward_error, Criterion::BackwardError),
        ]
        .into_iter()
        .find_map(|(is_met, criterion)| is_met.then_some(criterion))
    }

    /// The limit on iterations for a system of order `n`, unless one is given: 10 n, between 1 000 and 200 000. In exact
    /// arithmetic n would do; rounding delays convergence on ill-conditioned systems by several times that.
    #[must_use]
    pub fn default_max_iters(n: usize) -> u64 {
        (10 * n as u64).clamp(1_000, 200_000)
    }
}

/// How a caller watches and ends a running solve.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Control<'a> {
    /// Set to true from anywhere, it ends the solve at its next check with [`Reason::Interrupted`](crate::Reason::Interrupted).
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then, from the thread of rank 0; it should return quickly.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// Let the caller see each iteration but the last, whose x is the answer: [`progress`](Self::progress) is called after each, and
    /// [`checkpoint`](Self::checkpoint) gets each iterate, whatever its interval; of `gmres`, which has none within a cycle, one for each cycle. Devices then
    /// wait for the host in every iteration, and for whoever takes the iterates. Right-hand sides are solved for one by one.
    pub each_iteration: bool,
    /// Record what each rank does when, for [`Outcome::timelines`](crate::Outcome::timelines).
    pub timeline: bool,
    /// Hand out iterates on the way.
    pub checkpoint: Option<Checkpoints<'a>>,
    /// Called with x when the ranks say that it solves the system, from a thread of its own, while the host checks that: to write it
    /// meanwhile, say. The solve waits for it to come back. If the check does not agree, it may be called again, with another x, and
    /// x may become another one without; [`Outcome::early`](crate::Outcome::early) tells whether the last one is the answer.
    pub early: Option<Early<'a>>,
    /// Iterations of a former solve that ended at the first guess: they count.
    pub done: u64,
    /// Iterations that something else takes as long as: see [`Patience`](super::patience::Patience).
    pub(crate) patience: Option<u64>,
}

setters! { Control<'a>:
    with_cancel = cancel: &'a AtomicBool as Some;
    with_progress = progress: &'a (dyn Fn(&Progress) + Sync) as Some;
    with_timeline = timeline: bool;
    with_each_iteration = each_iteration: bool;
    with_checkpoint = checkpoint: Checkpoints<'a> as Some;
    with_early = early: Early<'a> as Some;
    with_done = done: u64;
}

/// Who gets x before it is checked: see [`Control::early`].
pub type Early<'a> = &'a (dyn Fn(&[f64]) + Sync);

/// To whom iterates go while a solve runs. See [`crate::checkpoint`] for files of them.
///
/// Ranks only read their iterate, at one and the same iteration: a solve has the same residuals with it as without.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Checkpoints<'a> {
    /// How long the iteration goes on, at least, between two of them.
    pub every: Duration,
    /// Called from a thread of its own, while the ranks go on. There is no next one before it comes back.
    pub take: &'a (dyn Fn(&Checkpoint<'_>) + Sync),
}

impl<'a> Checkpoints<'a> {
    /// Iterates that go to `take`, at least so long after each other.
    #[must_use]
    pub fn new(every: Duration, take: &'a (dyn Fn(&Checkpoint<'_>) + Sync)) -> Self {
        Self { every, take }
    }
}

/// An iterate on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Checkpoint<'a> {
    /// The iterate, in the order and the units of the system as it was given; of several processes, the rows of this one, which may be not
    /// finite.
    pub x: &'a [f64],
    /// Iterations done.
    pub iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ then, by the recurrence.
    pub rel_residual_2: f64,
}

impl<'a> Checkpoint<'a> {
    /// The iterate `x` after so many iterations, with ‖r‖₂ / ‖b‖₂.
    #[must_use]
    pub fn new(x: &'a [f64], iterations: u64, rel_residual_2: f64) -> Self {
        Self { x, iterations, rel_residual_2 }
    }
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("cancel", &self.cancel)
            .field("timeline", &self.timeline)
            .field("each_iteration", &self.each_iteration)
            .field("checkpoint", &self.checkpoint.map(|checkpoint| checkpoint.every))
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

/// Where a running solve is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Iterations done.
    pub iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence.
    pub rel_residual_2: f64,
    /// Where ‖r‖₂ / ‖b‖₂ has to arrive.
    pub target: f64,
    /// Since the start of the iteration.
    pub elapsed: Duration,
}
