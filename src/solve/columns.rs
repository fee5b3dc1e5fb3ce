//! Several right-hand sides: the ranks bring them to the test side by side, or in turns, and each is then checked by itself. What is left
//! to do for one is done for that one alone.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Instant;

use rayon::prelude::*;

use super::dense_columns;
use super::outcome::Outcome;
use super::reach::Reach;
use super::rounds;
use super::session::{Solver, check_tolerances, check_vector};
use super::statistics::{Answer, Statistics};
use super::subject::Subject;
use crate::error::{Error, Result};
use crate::krylov::Reason;
use crate::runtime::{Control, End, Goal, OnFailure, Stop, Watch};
use crate::schedule::columns::Iteration;
use crate::timeline::stages::stage;
use crate::verify::Residual;

/// How often columns that the host's check does not confirm are brought together again.
const ROUNDS: u32 = 3;

/// The part of an iteration's bytes that is to be saved for columns side by side to be worth while,
const LEAST_SAVED: f64 = 0.1;
/// unless there are so many on GPUs, which then wait less for launches and sums: `docs/measurements.md`.
const MANY: usize = 8;

/// Entries of a matrix below which columns are checked side by side, each by a thread: all threads at one take longer to start.
const FEW_ENTRIES: usize = 1 << 20;

/// A round that leaves more than this part of a residual is the last for its column.
const GAIN: f64 = 0.1;

/// How far each of several right-hand sides is.
pub(super) struct Columns<'d> {
    outcomes: Vec<Option<Outcome<()>>>,
    /// What is known of those that were begun.
    before: Vec<Option<Statistics>>,
    /// Those to be solved for alone.
    alone: VecDeque<usize>,
    done: &'d mut dyn FnMut(usize, &Outcome<()>),
    /// Iterations of a former solve.
    former: u64,
}

impl<'d> Columns<'d> {
    /// So many, of which some are to be solved for alone, after `former` iterations of a former solve. `done` is told of each.
    pub(super) fn new(
        count: usize,
        alone: VecDeque<usize>,
        done: &'d mut dyn FnMut(usize, &Outcome<()>),
        former: u64,
    ) -> Self {
        let outcomes = (0..count).map(|_| None).collect();
        let before = (0..count).map(|_| None).collect();
        Self { outcomes, before, alone, done, former }
    }

    /// What is known of column `k` before it is gone on with.
    pub(super) fn begun(&mut self, k: usize) -> Statistics {
        self.before[k].take().unwrap_or_else(|| Statistics::after(self.former))
    }

    /// Takes note of what became of it, at so many bytes an iteration: without an answer it is to be solved for alone.
    pub(super) fn ended(&mut self, k: usize, (statistics, answer): (Statistics, Option<Answer>), bytes: u64) {
        match answer {
            Some(answer) => {
                let outcome = statistics.outcome((), answer, bytes);
                (self.done)(k, &outcome);
                self.outcomes[k] = Some(outcome);
            }
            None => {
                self.before[k] = Some(statistics);
                self.alone.push_back(k);
            }
        }
    }
}

impl Solver {
    /// Solves `A X = B` for several right-hand sides, from and to `x`: both are arrays, column by column, `b` of the rows of A and `x` of its
    /// columns. Methods whose
    /// iterations are texts take 2, 4, 8 or 16 columns through the same iterations, in which the matrix is read once for all of them; each
    /// has scalars, limits and an outcome of its own. By factors of a [dense](crate::krylov::Method::Dense) matrix up to 64 are solved and refined
    /// together, once these are made for the first. Others are solved one after the other: one is checked while the ranks iterate for the next. What
    /// is left to do for one of them then is done for it alone.
    ///
    /// So many columns take as many times the memory of a method's vectors; where that is not there, fewer are taken at a time
    /// ([`Setup::columns`](super::Setup::columns)). Times in the outcomes are shares of the time of all that were solved together. A time
    /// limit is one for those. With [`Control::checkpoint`] or [`Control::timeline`], columns are solved one after the other.
    ///
    /// # Errors
    /// As [`solve_into`](Self::solve_into); [`Error::SizeMismatch`] if `b` and `x` have not as many elements.
    pub fn solve_columns(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Vec<Outcome<()>>> {
        let [n_rows, n_cols] = [self.whole.a.n_rows(), self.whole.a.n_cols()].map(|n| n.max(1));
        if !b.len().is_multiple_of(n_rows) {
            let expected = b.len().next_multiple_of(n_rows);
            return Err(Error::SizeMismatch { what: "b".into(), expected, found: b.len() });
        }
        let expected = b.len() / n_rows * n_cols;
        if x.len() != expected {
            return Err(Error::SizeMismatch { what: "x".into(), expected, found: x.len() });
        }
        let b: Vec<&[f64]> = b.chunks(n_rows).collect();
        let mut x: Vec<&mut [f64]> = x.chunks_mut(n_cols).collect();
        self.solve_each(&b, &mut x, stop, control, &mut |_, _| ())
    }

    /// The same for columns that are vectors of their own. `done` is called with each outcome, and the number of its column, when it is there.
    ///
    /// # Errors
    /// As [`solve_columns`](Self::solve_columns).
    ///
    /// # Panics
    /// If there are not as many `x` as `b`.
    pub fn solve_each(
        &mut self,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        stop: &Stop,
        control: Control<'_>,
        done: &mut dyn FnMut(usize, &Outcome<()>),
    ) -> Result<Vec<Outcome<()>>> {
        assert_eq!(b.len(), x.len(), "columns of b and of x");
        for (b, x) in b.iter().zip(&*x) {
            check_vector("b", b, self.whole.a.n_rows())?;
            check_vector("x", x, self.whole.a.n_cols())?;
        }
        check_tolerances(stop)?;
        // what is known without an iteration would only fill the vectors
        let is_open = |k: &usize| self.settled(b[*k], stop, control).is_none();
        let (mut open, alone): (VecDeque<usize>, VecDeque<usize>) = (0..b.len()).partition(is_open);
        let mut columns = Columns::new(b.len(), alone, done, control.done);
        let mut turns_are_usual = true;
        loop {
            let (count, in_batch) = self.columns_at_once(open.len(), stop, control);
            let bytes = self.bytes_per_iteration();
            if count > 1 {
                let which: Vec<usize> = open.drain(..count).collect();
                let begun = which.iter().map(|k| columns.begun(*k)).collect();
                let solved = self.together(&which, begun, b, x, (stop, control), in_batch)?;
                let bytes = if in_batch { bytes } else { self.bytes_per_column(count) };
                which.into_iter().zip(solved).for_each(|(k, solved)| columns.ended(k, solved, bytes));
            } else if open.len() > 1 && self.takes_dense_columns(control) {
                let most = self.whole.setup.columns.clamp(1, dense_columns::MOST);
                let which: Vec<usize> = open.drain(..open.len().min(most)).collect();
                let begun = which.iter().map(|k| columns.begun(*k)).collect();
                let solved = self.by_dense_factors(&which, begun, b, x, (stop, control))?;
                which.into_iter().zip(solved).for_each(|(k, solved)| columns.ended(k, solved, bytes));
            } else if columns.alone.is_empty() && open.len() > 1 && turns_are_usual && self.takes_turns(stop, control) {
                turns_are_usual = self.in_turns(&mut open, &mut columns, b, x, (stop, control))?;
            }
            let method = self.method();
            let Some(k) = columns.alone.pop_front().or_else(|| open.pop_front()) else { break };
            let (statistics, answer) = self.run(b[k], x[k], stop, control, columns.begun(k))?;
            columns.ended(k, (statistics, Some(answer)), self.bytes_per_iteration());
            if self.method() != method {
                turns_are_usual = true;
                // what another method has to do may be done side by side again
                let alone = std::mem::take(&mut columns.alone);
                let (again, rest): (VecDeque<usize>, _) = alone.into_iter().partition(|k| columns.before[*k].is_some());
                open.extend(again);
                columns.alone = rest;
            }
        }
        Ok(columns.outcomes.into_iter().flatten().collect())
    }

    /// How many of so many right-hand sides the ranks take at a time, 1 if they are to be solved one by one; and whether a work-group has
    /// one each.
    fn columns_at_once(&mut self, count: usize, stop: &Stop, control: Control<'_>) -> (usize, bool) {
        let one_by_one = control.each_iteration
            || control.checkpoint.is_some()
            || control.timeline
            || stop.backward_error > 0.0
            || self.method().factorises()
            || self.singular.is_some()
            || !self.ranks.take_columns()
            || self.whole.setup.on_failure == OnFailure::Continue;
        if one_by_one {
            return (1, false);
        }
        let width = self.ranks.most_columns(&self.whole.setup);
        let in_batch = self.ranks.most_in_batch(count, &self.whole.setup);
        let is_for_groups =
            in_batch > 1 && self.iteration_for(width.min(count)).is_for_groups(in_batch, self.ranks.compute_units());
        if is_for_groups && self.ranks.has_batch(in_batch) {
            return (in_batch, true);
        }
        let mut count = count.min(width);
        if count < 2 {
            return (1, false);
        }
        // vectors have as many columns as the next power of two: not if too many of them were only there to fill these
        if 4 * count < 3 * count.next_power_of_two() {
            count = count.next_power_of_two() / 2;
        }
        let filled = count.next_power_of_two() as f64 / count as f64;
        let saved = 1.0 - filled * self.bytes_per_column(count) as f64 / self.bytes_per_iteration() as f64;
        let is_worthwhile = if self.ranks.are_on_gpus() && self.ranks().len() == 1 {
            self.iteration_for(count).is_better_side_by_side(count)
        } else {
            saved >= LEAST_SAVED || count >= MANY && self.ranks.are_on_gpus()
        };
        (if is_worthwhile { count } else { 1 }, false)
    }

    /// What an iteration of a GPU alone is, for one or for so many side by side.
    fn iteration_for(&self, width: usize) -> Iteration {
        Iteration {
            entries: self.whole.a.nnz(),
            format: self.ranks.infos[0].format,
            alone: self.bytes_per_iteration(),
            beside: self.bytes_per_column(width),
            width,
        }
    }

    /// Bytes of an iteration for one of several columns: its share of those of the matrix.
    fn bytes_per_column(&self, count: usize) -> u64 {
        self.ranks.bytes_per_column(&self.whole.setup, self.whole.a.n_rows(), count)
    }

    /// Brings columns `which` to the test together, after what is known from the statistics of each. Those that have no answer then are to
    /// be solved alone.
    fn together(
        &mut self,
        which: &[usize],
        begun: Vec<Statistics>,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        (stop, control): (&Stop, Control<'_>),
        in_batch: bool,
    ) -> Result<Vec<(Statistics, Option<Answer>)>> {
        let started = Instant::now();
        let how = if in_batch { "by a work-group each" } else { "side by side" };
        log::info!("{} right-hand sides {how}", which.len());
        let (whole, ranks) = (&self.whole, &mut self.ranks);
        let subject = Subject::Matrix(whole, self.null_space.as_ref());
        let are_small = whole.a.nnz() <= FEW_ENTRIES;
        let reach = |k: &usize| Reach::of(subject.null_space(), b[*k], x[*k], stop);
        let reach: Vec<Reach<'_>> =
            if are_small { which.par_iter().map(reach).collect() } else { which.iter().map(reach).collect() };
        let of_ranks: Vec<_> = reach.iter().map(|reach| subject.rhs_of_ranks(Cow::Borrowed(&*reach.b))).collect();
        let mut targets: Vec<f64> = reach.iter().map(Reach::target).collect();
        // each method has as many iterations as it would have alone, unless the caller has set a limit
        let most = |of: &Statistics| {
            stop.max_iters.unwrap_or_else(|| of.iterations + Stop::default_max_iters(whole.a.n_rows()))
        };
        let most: Vec<u64> = begun.iter().map(most).collect();
        let mut solved: Vec<(Statistics, Option<Answer>)> = begun.into_iter().map(|begun| (begun, None)).collect();
        let mut left: Vec<usize> = (0..which.len()).collect();
        for _ in 0..ROUNDS {
            if left.is_empty() {
                break;
            }
            let goal = |c: &usize| Goal {
                target: targets[*c],
                rhs_norm: reach[*c].rhs_norm,
                max_iters: most[*c].saturating_sub(solved[*c].0.iterations),
            };
            let goals: Vec<Goal> = left.iter().map(goal).collect();
            let start = Instant::now();
            let of: Vec<&[f64]> = left.iter().map(|c| &*of_ranks[*c]).collect();
            let mut y: Vec<Vec<f64>> =
                left.iter().map(|c| rounds::own(subject, reach[*c].scale, x[which[*c]])).collect();
            let prepared = start.elapsed();
            let epsilon = whole.setup.precision.epsilon();
            let watch = || Watch::new(&goals, epsilon, control, (stop.time_limit, started));
            let ended = ranks.run_columns(&of, &mut y, in_batch, &watch)?;
            let mut ready = Vec::new();
            for (place, (c, y)) in left.iter().copied().zip(&y).enumerate() {
                let statistics = &mut solved[c].0;
                statistics.add_column(&ended, place, prepared);
                if ended[0].columns[place].end == Some(End::Unusual) {
                    continue; // from where it began
                }
                let gathering = stage("gather");
                rounds::give(subject, reach[c].scale, y, x[which[c]]);
                reach[c].settle(x[which[c]]);
                statistics.gather += gathering.end();
                ready.push((place, c));
            }
            let verifying = stage("verify");
            let check = |&(_, c): &(usize, usize)| subject.residual_alone(reach[c].checked().0, x[which[c]]);
            let residuals: Vec<Residual> =
                if are_small { ready.par_iter().map(check).collect() } else { ready.iter().map(check).collect() };
            let verify = verifying.end() / ready.len().max(1) as u32;
            let mut again = Vec::new();
            for ((place, c), residual) in ready.into_iter().zip(residuals) {
                let (statistics, answer) = &mut solved[c];
                let (column, k) = (&ended[0].columns[place], which[c]);
                let first = column.history.first().copied().unwrap_or(f64::NAN);
                let stop = reach[c].checked().1;
                statistics.verify += verify;
                *answer = match (stop.met(&residual), column.end) {
                    (Some(met), _) => Some((Reason::Converged(met), residual)),
                    (None, Some(End::Limit(reason))) => Some((reason, residual)),
                    (None, _) => None,
                }
                .map(|answer| reach[c].answer(answer, |b| subject.residual_alone(b, x[k])));
                let excess = (residual.relative_2 / stop.rtol).min(residual.norm_2 / stop.atol);
                let gains = residual.relative_2 <= GAIN * first && excess.is_finite();
                if answer.is_none() && gains {
                    targets[c] *= 0.5 / excess;
                    statistics.restarts += 1;
                    again.push(c);
                }
            }
            left = again;
        }
        Ok(solved)
    }
}
