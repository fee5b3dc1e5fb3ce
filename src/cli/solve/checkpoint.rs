//! Checkpoints: the files that `--checkpoint` writes, and what `--resume` finds in one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use declive::checkpoint::{Column, Identity, Saved};
use declive::solve::{Checkpoint, Method};
use declive::{Error, Outcome};

use super::plan::Plan;
use super::system::System;
use crate::cli::failure::Failure;
use crate::cli::output::Target;
use crate::report::DECLIVE;

/// How often, if nothing was said.
const EVERY: Duration = Duration::from_secs(60);

/// Writes checkpoints of a system.
pub(super) struct Saver<'a> {
    target: &'a Target,
    identity: Identity,
    note: String,
    every: Duration,
    last: Mutex<Instant>,
}

impl<'a> Saver<'a> {
    /// The checkpoints that `plan` asks for, of iterations by `method`.
    pub(super) fn new(plan: &'a Plan, identity: Option<Identity>, method: Method) -> Option<Self> {
        let (target, identity) = (plan.checkpoint.as_ref()?, identity?);
        Some(Self { target, identity, note: note(plan, method), every: every(plan), last: Mutex::new(Instant::now()) })
    }

    /// How often.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// Writes the columns that are done, and one that is not.
    pub(super) fn save(&self, done: &[Outcome], current: Option<&Checkpoint<'_>>) -> Result<(), Failure> {
        let columns: Vec<Checkpoint<'_>> = done.iter().map(of_outcome).chain(current.copied()).collect();
        let written = self.target.write_durably(|out| self.identity.write(out, &self.note, &columns));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        written
    }

    /// The same on the way, where a file that can't be written is no reason to end: the next one may be.
    pub(super) fn try_to_save(&self, done: &[Outcome], current: Option<&Checkpoint<'_>>) {
        if let Err(failure) = self.save(done, current) {
            log::warn!("no checkpoint: {failure}");
        }
    }

    /// Writes the columns that are done, if the file is old enough.
    pub(super) fn save_if_due(&self, done: &[Outcome]) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= self.every {
            self.try_to_save(done, None);
        }
    }
}

/// How often they are to be written.
pub(super) fn every(plan: &Plan) -> Duration {
    plan.checkpoint_every.unwrap_or(EVERY)
}

/// What they say of themselves.
pub(super) fn note(plan: &Plan, method: Method) -> String {
    let (setup, stop) = (&plan.setup, &plan.stop);
    format!(
        "declive {DECLIVE}: A {}, b {}; method {}, preconditioner {}, precision {}, rtol {:e}, atol {:e}, backward error {:e}",
        plan.source, plan.rhs, method, setup.precond, setup.precision, stop.rtol, stop.atol, stop.backward_error
    )
}

pub(super) fn of_outcome(outcome: &Outcome) -> Checkpoint<'_> {
    let Outcome { x, iterations, residual, .. } = outcome;
    Checkpoint::new(x, *iterations, residual.relative_2)
}

/// What tells the system from others, if a file needs it.
pub(super) fn identity(plan: &Plan, system: &System) -> Option<Identity> {
    (plan.checkpoint.is_some() || plan.resume.is_some()).then(|| Identity::of(&system.a, &system.b))
}

/// The columns of x to go on from.
pub(super) fn columns(saved: Option<Saved>, identity: Option<&Identity>) -> Result<Vec<Column>, Error> {
    let (Some(saved), Some(identity)) = (saved, identity) else { return Ok(Vec::new()) };
    log::info!("going on from a checkpoint by {}", saved.note);
    saved.of(identity)
}
