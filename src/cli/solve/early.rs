//! x that is written while it is checked.

use std::sync::{Mutex, PoisonError};

use declive::Outcome;
use declive::timeline::stages::stage;

use super::plan::Plan;
use super::results;
use super::system::System;
use crate::cli::failure::Failure;
use crate::cli::output::{Beside, Target};

/// Writes the only column of x beside its place, which it takes if it is the answer.
pub(super) struct Early<'a> {
    target: &'a Target,
    system: &'a System,
    written: Mutex<Option<Result<Beside, Failure>>>,
}

impl<'a> Early<'a> {
    /// For a plan whose solution can be written before all is known of it: a Matrix Market file begins with how it was found.
    pub(super) fn new(plan: &'a Plan, system: &'a System) -> Option<Self> {
        let target = plan.output.as_ref().filter(|_| results::is_npy(plan) && system.b.len() == 1)?;
        Some(Self { target, system, written: Mutex::default() })
    }

    /// Writes x, in place of one that was not the answer.
    pub(super) fn write(&self, x: &[f64]) {
        let _writing = stage("write");
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = None;
        *written = self.target.write_beside(|out| results::npy(out, self.system.complex.is_some(), &[x]));
    }

    /// Puts what was written last in its place, if that is the answer; else nothing has come of it.
    pub(super) fn place(&self, outcomes: &[Outcome]) -> Option<Result<(), Failure>> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_answer = outcomes.iter().all(|outcome| outcome.early.is_some());
        is_answer.then(|| written.and_then(|written| self.target.place(written)))
    }
}
