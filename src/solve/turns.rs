//! Several right-hand sides one after the other: the host checks one while the ranks iterate for the next.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::columns::Columns;
use super::reach::Reach;
use super::recovery::DeviceFailure;
use super::session::Solver;
use super::statistics::{Answer, Statistics};
use super::subject::Subject;
use super::{iteration_times, rounds};
use crate::alongside::alongside;
use crate::error::Result;
use crate::krylov::{Method, Reason};
use crate::runtime::{Control, OnFailure, Ranks, Stop};
use crate::timeline::stages::stage;
use crate::verify::Residual;

impl Solver {
    /// Whether columns can be solved in turns: nobody watches a single one, and all that a check has to find out is whether x solves the
    /// system.
    pub(super) fn takes_turns(&self, stop: &Stop, control: Control<'_>) -> bool {
        let is_watched = control.checkpoint.is_some() || control.timeline || control.early.is_some();
        !is_watched
            && stop.backward_error == 0.0
            && self.method() != Method::Direct
            && self.singular.is_none()
            && self.whole.setup.on_failure != OnFailure::Continue
    }

    /// Solves for columns `open` in turns, until one ends unusually, or the solve is cancelled: tells whether none ended so. What had its turn
    /// is no longer open; without an answer it is to be solved for alone, from an x that is near, or from its first one.
    pub(super) fn in_turns(
        &mut self,
        open: &mut VecDeque<usize>,
        columns: &mut Columns<'_>,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        (stop, control): (&Stop, Control<'_>),
    ) -> Result<bool> {
        log::info!("{} right-hand sides in turns", open.len());
        let bytes = self.bytes_per_iteration();
        let (whole, ranks, failures) = (&self.whole, &mut self.ranks, &mut self.failures);
        let subject = Subject::Matrix(whole, self.null_space.as_ref());
        let mut are_usual = true;
        let mut last: Option<Turn<'_, '_>> = None;
        loop {
            let is_cancelled = control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
            let is_over = is_cancelled || last.as_ref().is_some_and(|turn| !turn.is_usual());
            let next = if is_over { None } else { open.pop_front() };
            let next = next.map(|k| (k, std::mem::take(&mut x[k]), columns.begun(k)));
            let check = || last.as_ref().and_then(|turn| turn.check(subject));
            let (checked, ran) = alongside(check, || {
                let (k, x, statistics) = next?;
                let reach = Reach::of(subject.null_space(), b[k], x, stop);
                let mut turn = Turn { k, x, before: None, reach, statistics, reached: Ok(None) };
                turn.run(subject, ranks, failures, control);
                Some(turn)
            });
            if let Some(mut turn) = last.take() {
                are_usual &= turn.is_usual();
                let answer = checked.and_then(|checked| turn.answer(checked, subject));
                x[turn.k] = turn.x;
                turn.reached?;
                if answer.is_some() {
                    iteration_times::remember(whole, ranks, &turn.statistics);
                }
                columns.ended(turn.k, (turn.statistics, answer), bytes);
            }
            if ran.is_none() {
                return Ok(are_usual);
            }
            last = ran;
        }
    }
}

/// A column that the ranks have run for.
struct Turn<'x, 'a> {
    k: usize,
    x: &'x mut [f64],
    /// The first x, where it may be better than what the ranks came to.
    before: Option<Vec<f64>>,
    reach: Reach<'a>,
    statistics: Statistics,
    /// Why the ranks ended, unless x is the solution as they see it.
    reached: Result<Option<Reason>>,
}

impl Turn<'_, '_> {
    /// Runs the ranks to x; what ends unusually leaves x as it was.
    fn run(
        &mut self,
        subject: Subject<'_>,
        ranks: &mut Ranks<'_>,
        failures: &mut Vec<DeviceFailure>,
        control: Control<'_>,
    ) {
        let of_solve = (&mut self.statistics, Instant::now());
        let ran = rounds::once(subject, ranks, failures, &self.reach, self.x, control, of_solve);
        self.reached = ran.map(|(reached, y)| {
            if is_usual(reached) {
                let gathering = stage("gather");
                self.before = rounds::kept_beside(subject, self.x);
                rounds::give(subject, self.reach.scale, &y, self.x);
                self.reach.settle(self.x);
                self.statistics.gather += gathering.end();
            }
            reached
        });
    }

    fn is_usual(&self) -> bool {
        self.reached.as_ref().is_ok_and(|reached| is_usual(*reached))
    }

    /// Checks x, if there is a new one; tells how long that took, too.
    fn check(&self, subject: Subject<'_>) -> Option<(Residual, Duration)> {
        self.is_usual().then(|| {
            let verifying = stage("verify");
            let residual = subject.residual(self.reach.checked().0, self.x);
            (residual, verifying.end())
        })
    }

    /// The answer, if the check allows one.
    fn answer(&mut self, (found, took): (Residual, Duration), subject: Subject<'_>) -> Option<Answer> {
        let (b, stop) = self.reach.checked();
        self.statistics.verify += took;
        let reached = self.reached.as_ref().ok().copied().flatten();
        let Some(reason) = rounds::met(stop, &found).or(reached) else {
            // the ranks' own check, in working precision, was too kind
            self.statistics.restarts += 1;
            return None;
        };
        let (answer, by_recurrence) = ((reason, found), self.statistics.recurrence_rel_residual_2);
        let better = self
            .before
            .take()
            .and_then(|before| rounds::restored(before, self.x, &answer, by_recurrence, |x| subject.residual(b, x)));
        Some(self.reach.answer(better.unwrap_or(answer), |b| subject.residual(b, self.x)))
    }
}

/// Whether a run has come to the test, as far as ranks can tell, or to a limit.
fn is_usual(reached: Option<Reason>) -> bool {
    matches!(reached, None | Some(Reason::MaxIters | Reason::TimeLimit | Reason::Interrupted))
}
