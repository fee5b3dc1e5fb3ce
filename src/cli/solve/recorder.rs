//! When the command did what.

use std::time::{Duration, Instant};

use declive::solve::Outcome;
use declive::tune::DeviceFacts;
use declive::{Solver, device};

use crate::report::recording::{Column, Phase, Recording};

/// Takes the times of a command that begins now or began a moment ago.
#[derive(Debug)]
pub(super) struct Recorder {
    start: Instant,
    phases: Vec<Phase>,
}

impl Recorder {
    /// Of a command that began at `start`.
    pub(super) fn new(start: Instant) -> Self {
        Self { start, phases: Vec::new() }
    }

    /// Takes the time of making the solver, which began at `start`.
    pub(super) fn set_up(&mut self, start: Duration, solver: &Solver) {
        self.phases.push(Phase::set_up(start, self.start.elapsed(), &solver.times()));
    }

    /// Solves for a column of b, and takes the time with that of its parts.
    pub(super) fn solve<E>(&mut self, column: usize, solve: impl FnOnce() -> Result<Outcome, E>) -> Result<Outcome, E> {
        let start = self.start.elapsed();
        let outcome = solve()?;
        self.phases.push(Phase::solve(column, start, self.start.elapsed(), &outcome));
        Ok(outcome)
    }

    /// All of it, with what the ranks did.
    pub(super) fn finish<'a>(&self, solver: &Solver, outcomes: &'a [Outcome]) -> Recording<'a> {
        let devices = device::list().devices;
        let facts = |index| devices.iter().find(|info| Some(info.index) == index).map(DeviceFacts::from);
        Recording {
            drivers: solver.ranks().iter().map(|rank| facts(rank.index)).collect(),
            phases: self.phases.clone(),
            columns: outcomes.iter().map(|outcome| Column::new(outcome, self.start)).collect(),
        }
    }
}
