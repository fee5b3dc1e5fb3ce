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
use crate::krylov::Reason;
use crate::runtime::{Control, OnFailure, Ranks, Stop};
use crate::timeline::stages::stage;
use crate::verify::Residual;

impl Solver {
    /// Whether columns can be solved in turns: nobody watches a single one, and all that a check has to find out is whether x solves the
    /// system.
    pub(super) fn takes_turns(&self, stop: &Stop, control: Control<'_>) -> bool {
        let is_watched =
            control.each_iteration || control.checkpoint.is_some() || control.timeline || control.early.is_some();
        !is_watched
            && stop.backward_error == 0.0
            && !self.method().factorises()
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
        let Self { whole, ranks, failures, rejected, null_space, .. } = self;
        let (whole, subject) = (&*whole, Subject::Matrix(whole, null_space.as_ref()));
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
            rejected.append(&mut ranks.left_out);
            if let Some(mut turn) = last.take() {
                are_usual &= turn.is_usual();
                let answer = checked.and_then(|checked| turn.answer(checked, subject));
                x[turn.k] = turn.x;
                turn.reached?;
                // rows that have moved meanwhile are no longer those that took the times
                let has_moved = ran.as_ref().is_some_and(|turn: &Turn<'_, '_>| !turn.statistics.moves.is_empty());
                if answer.is_some() && !has_moved {
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
            let residual = subject.residual_alone(self.reach.checked().0, self.x);
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
        let before = self.before.take().filter(|_| rounds::may_be_restored(&answer, by_recurrence));
        let better = before.and_then(|x| rounds::restored(&x, subject.residual_alone(b, &x), self.x, &answer));
        Some(self.reach.answer(better.unwrap_or(answer), |b| subject.residual_alone(b, self.x)))
    }
}

/// Whether a run has come to the test, as far as ranks can tell, or to a limit.
fn is_usual(reached: Option<Reason>) -> bool {
    matches!(reached, None | Some(Reason::MaxIters | Reason::TimeLimit | Reason::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::krylov::Method;
    use crate::matrix::gallery;
    use crate::runtime::Setup;
    use crate::solve::Outcome;

    /// How many of three columns have had their turn, each with an outcome, and whether all have ended as usual.
    fn in_turns(a: crate::Csr, b: &[Vec<f64>]) -> (usize, Vec<usize>, bool) {
        let setup = Setup::default().with_method(Method::Cg).with_devices("host".parse().unwrap());
        let mut solver = Solver::new(a, &setup).unwrap();
        let (stop, control) = (Stop::default(), Control::default());
        assert!(solver.takes_turns(&stop, control));
        let b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
        let mut x = vec![vec![0.0; b[0].len()]; b.len()];
        let mut x: Vec<&mut [f64]> = x.iter_mut().map(|x| &mut x[..]).collect();
        let (mut ended, mut open) = (Vec::new(), (0..b.len()).collect());
        let mut done = |k: usize, outcome: &Outcome<()>| {
            assert!(outcome.reason.converged());
            ended.push(k);
        };
        let mut columns = Columns::new(b.len(), VecDeque::new(), &mut done, 0);
        let are_usual = solver.in_turns(&mut open, &mut columns, &b, &mut x, (&stop, control)).unwrap();
        assert!(x.iter().all(|x| x.len() == b[0].len()), "all have their x again");
        (open.len(), ended, are_usual)
    }

    #[test]
    fn each_has_its_turn() {
        let b: Vec<Vec<f64>> = (0..3).map(|k| gallery::random_vector(400, k)).collect();
        assert_eq!(in_turns(gallery::poisson2d([20, 20]).unwrap(), &b), (0, vec![0, 1, 2], true));
    }

    /// The second meets the negative eigenvalue, before the third has its turn.
    #[test]
    fn what_ends_unusually_is_the_last() {
        let (rows, cols) = ([0, 1, 2, 3, 2, 3], [0, 1, 2, 3, 3, 2]);
        let a = crate::Csr::from_triplets(4, 4, &rows, &cols, &[2.0, 3.0, 1.0, 4.0, 3.0, 3.0]).unwrap();
        let b = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]].map(|b| b.to_vec());
        assert_eq!(in_turns(a, &b), (1, vec![0], false));
    }
}
