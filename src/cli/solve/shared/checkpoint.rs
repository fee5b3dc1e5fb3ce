//! Checkpoints of several processes: the first one writes and reads them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use declive::checkpoint::{Column, Identity};
use declive::distributed::{Columns, Processes, Rows};
use declive::solve::{Checkpoint, Method};
use declive::{Error, Outcome};

use crate::cli::failure::Failure;
use crate::cli::output::Target;
use crate::cli::solve::checkpoint::{every, note, of_outcome};
use crate::cli::solve::plan::Plan;

/// Writes checkpoints of a system. All processes call it with their parts.
pub(super) struct Saver<'a> {
    processes: &'a dyn Processes,
    starts: &'a [u64],
    target: &'a Target,
    identity: Identity,
    note: String,
    every: Duration,
    last: Mutex<Instant>,
}

impl<'a> Saver<'a> {
    /// The checkpoints that `plan` asks for, of iterations by `method`.
    pub(super) fn new(
        plan: &'a Plan,
        (processes, starts): (&'a dyn Processes, &'a [u64]),
        identity: Option<Identity>,
        method: Method,
    ) -> Option<Self> {
        let (target, identity) = (plan.checkpoint.as_ref()?, identity?);
        let (note, every, last) = (note(plan, method), every(plan), Mutex::new(Instant::now()));
        Some(Self { processes, starts, target, identity, note, every, last })
    }

    /// How often.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// Writes the columns that are done, and one that is not.
    pub(super) fn save(&self, done: &[Outcome], current: Option<&Checkpoint<'_>>) -> Result<(), Failure> {
        let all: Vec<Checkpoint<'_>> = done.iter().map(of_outcome).chain(current.copied()).collect();
        let facts: Vec<(u64, f64)> = all.iter().map(|one| (one.iterations, one.rel_residual_2)).collect();
        let mut columns = Columns::new(self.processes, self.starts, all.iter().map(|one| one.x).collect());
        let mut written = Ok(());
        if self.processes.process() == 0 {
            let write =
                |out: &mut dyn std::io::Write| self.identity.write_columns(out, &self.note, &facts, &mut columns);
            written = self.target.write_durably(write);
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        columns.finish()?;
        written
    }

    /// The same on the way, where a file that can't be written is no reason to end: the next one may be.
    pub(super) fn try_to_save(&self, done: &[Outcome], current: Option<&Checkpoint<'_>>) {
        match self.save(done, current) {
            // which all learn of
            Err(failure) if !failure.is_of_other_process() => log::warn!("no checkpoint: {failure}"),
            _ => {}
        }
    }

    /// Writes the columns that are done, if the file is old enough by the clock of the first process.
    pub(super) fn save_if_due(&self, done: &[Outcome]) -> Result<(), Error> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_due = vec![0; self.processes.count()];
        self.processes.gather(&[u64::from(last.elapsed() >= self.every)], &mut is_due)?;
        if is_due[0] == 1 {
            self.try_to_save(done, None);
        }
        Ok(())
    }
}

/// What tells the system from others, if a file needs it.
pub(super) fn identity(
    plan: &Plan,
    processes: &dyn Processes,
    rows: &Rows,
    b: &[Vec<f64>],
) -> Result<Option<Identity>, Error> {
    let is_needed = plan.checkpoint.is_some() || plan.resume.is_some();
    is_needed.then(|| Identity::among(processes, rows, b)).transpose()
}

/// This process's rows of the columns of x to go on from.
pub(super) fn columns(
    plan: &Plan,
    processes: &dyn Processes,
    starts: &[u64],
    identity: Option<&Identity>,
) -> Result<Vec<Column>, Error> {
    let (Some(path), Some(identity)) = (&plan.resume, identity) else { return Ok(Vec::new()) };
    let (note, columns) = identity.saved_among(processes, starts, path)?;
    if !note.is_empty() {
        log::info!("going on from a checkpoint by {note}");
    }
    Ok(columns)
}
