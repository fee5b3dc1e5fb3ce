//! What a solve amounts to, over all stretches that its ranks ran.

use std::time::Duration;

use super::chain::Candidate;
use super::outcome::{Move, Outcome, Switch};
use crate::krylov::{Method, Reason};
use crate::runtime::rebalance::IterationTimes;
use crate::runtime::snapshot::Snapshot;
use crate::runtime::{ColumnsEnded, Ended, Position};
use crate::timeline::{Split, Timeline};
use crate::verify::Residual;

/// Why a solve ended, and b − A x then.
pub(crate) type Answer = (Reason, Residual);

/// Sums over stretches, each of which goes on from where the former one ended.
#[derive(Default)]
pub(crate) struct Statistics {
    /// Iterations of a former solve.
    pub(crate) done: u64,
    /// Those, and what came after.
    pub(crate) iterations: u64,
    pub(crate) restarts: u32,
    history: Vec<f64>,
    pub(crate) recurrence_rel_residual_2: f64,
    pub(crate) compile: Duration,
    pub(crate) upload: Duration,
    pub(crate) precond: Duration,
    pub(crate) solve: Duration,
    pub(crate) gather: Duration,
    pub(crate) verify: Duration,
    /// If somebody got x early: how long the check waited for that.
    pub(crate) early: Option<Duration>,
    /// For each rank, as `timelines`.
    pub(crate) split: Vec<Split>,
    timelines: Vec<Timeline>,
    /// When rows were moved.
    pub(crate) moves: Vec<Move>,
    /// The methods that took over, in order.
    pub(crate) switches: Vec<Switch>,
    /// Right-hand sides that were solved for together with it, at the most.
    pub(crate) side_by_side: usize,
    /// How often ranks were opened anew.
    pub(crate) reopened: u32,
    /// What the ranks measured last.
    pub(crate) iteration_times: Option<IterationTimes>,
    /// Seconds of an iteration of these ranks, undisturbed.
    pub(crate) iteration_seconds: Option<f64>,
}

impl Statistics {
    /// Of a solve that goes on after so many iterations.
    pub(crate) fn after(done: u64) -> Self {
        Self { done, iterations: done, ..Self::default() }
    }

    /// Adds a stretch that failed after `time`, of which the iterations up to `kept` count. What the ranks did is not
    /// known: others go on, from the position that is given.
    pub(crate) fn add_failed(&mut self, kept: Snapshot, time: Duration) -> Position {
        self.solve += time;
        self.restarts += u32::from(kept.p.is_none());
        self.iterations = kept.iterations;
        self.recurrence_rel_residual_2 = kept.rel_residual_2;
        self.extend_history(&kept.history);
        self.forget_ranks();
        Position { x: kept.x, p: kept.p }
    }

    /// What ranks did so far is no part of what the next ones do.
    pub(crate) fn forget_ranks(&mut self) {
        self.split.clear();
        self.timelines.clear();
        self.iteration_times = None;
        self.iteration_seconds = None;
    }

    /// ‖r‖₂ / ‖b‖₂ before the first iteration, then after each.
    pub(crate) fn history(&self) -> &[f64] {
        &self.history
    }

    /// The first residual is the last one of the stretch before.
    fn extend_history(&mut self, history: &[f64]) {
        let known = usize::from(!self.history.is_empty());
        self.history.extend(history.iter().skip(known));
    }

    /// Adds a stretch of all ranks.
    pub(crate) fn add(&mut self, ended: Vec<Ended>) {
        let longest = |time: fn(&Ended) -> Duration| ended.iter().map(time).max().unwrap_or_default();
        self.compile += longest(|e| e.compile);
        self.upload += longest(|e| e.upload);
        self.solve += longest(|e| e.solve);
        self.gather += longest(|e| e.gather);
        self.split.resize(ended.len(), Split::default());
        self.timelines.resize(ended.len(), Timeline::default());
        for (k, Ended { split, timeline, seen, .. }) in ended.into_iter().enumerate() {
            self.split[k] = self.split[k] + split;
            join(&mut self.timelines[k], timeline);
            if k == 0 {
                self.iteration_times = seen.iteration_times.or(self.iteration_times.take());
                self.iteration_seconds = seen.iteration_seconds.or(self.iteration_seconds);
                self.iterations = seen.iterations;
                self.restarts += seen.runs.saturating_sub(1);
                self.extend_history(&seen.history);
                self.recurrence_rel_residual_2 = seen.rel_residual_2;
            }
        }
    }

    /// Adds column `place` of those that all ranks have solved for together, in time of which it has its share.
    pub(crate) fn add_column(&mut self, ended: &[ColumnsEnded], place: usize, prepared: Duration) {
        let count = ended[0].columns.len() as u32;
        let longest = |time: fn(&ColumnsEnded) -> Duration| ended.iter().map(time).max().unwrap_or_default() / count;
        self.compile += longest(|e| e.compile);
        self.upload += longest(|e| e.upload) + prepared / count;
        self.solve += longest(|e| e.solve);
        self.gather += longest(|e| e.gather);
        self.split.resize(ended.len(), Split::default());
        self.timelines.resize(ended.len(), Timeline::default());
        self.split.iter_mut().zip(ended).for_each(|(split, ended)| *split = *split + ended.split / count);
        let column = &ended[0].columns[place];
        self.iterations += column.iterations;
        self.extend_history(&column.history);
        self.recurrence_rel_residual_2 = column.rel_residual_2();
        self.side_by_side = self.side_by_side.max(count as usize);
    }

    /// Takes note that ranks were opened anew in so much time. If rows were moved: the shares of the former ranks now, and
    /// which of them are still there.
    pub(crate) fn reopened(&mut self, moved: Option<(Vec<f64>, &[usize])>, time: Duration) {
        self.upload += time;
        self.reopened += 1;
        self.iteration_seconds = None;
        let kernels = self.iteration_times.take().map_or_else(Vec::new, |times| times.kernels);
        if let Some((shares, kept)) = moved {
            self.split = kept.iter().map(|&k| self.split[k]).collect();
            self.timelines = kept.iter().map(|&k| std::mem::take(&mut self.timelines[k])).collect();
            self.moves.push(Move { iteration: self.iterations, kernels, shares, time });
        }
    }

    /// Takes note that ranks were made ready, in so much time, to go on by another method; what of it compilers took, and its preconditioner.
    pub(crate) fn switched(
        &mut self,
        from: Method,
        to: Candidate,
        why: Reason,
        (time, [compile, precond]): (Duration, [Duration; 2]),
    ) {
        self.compile += compile;
        self.precond += precond;
        self.reopened(None, time.saturating_sub(compile + precond));
        self.switches.push(Switch { iteration: self.iterations, from, to: to.method, precond: to.precond, why });
    }

    /// The first ranks, so many of them, have gone on; others were left out.
    pub(crate) fn keep_ranks(&mut self, count: usize) {
        self.split.truncate(count);
        self.timelines.truncate(count);
    }

    /// Adds what a factorisation has done: steps of refinement, and ‖r‖₂ / ‖b‖₂ before and after.
    pub(crate) fn add_factorised(&mut self, steps: u64, [before, after]: [f64; 2], ranks: usize, time: Duration) {
        self.solve += time;
        self.iterations += steps;
        self.extend_history(&[before]);
        self.history.extend(std::iter::repeat_n(after, steps as usize));
        self.recurrence_rel_residual_2 = after;
        self.split.resize(ranks, Split::default());
        self.timelines.resize(ranks, Timeline::default());
    }

    /// Of a solve by so many ranks that ended before their first iteration, at `residual`, which was found in `verify`.
    pub(crate) fn of_none(done: u64, ranks: usize, residual: &Residual, verify: Duration) -> Self {
        let found = residual.relative_2;
        Self {
            history: vec![found],
            recurrence_rel_residual_2: found,
            verify,
            split: vec![Split::default(); ranks],
            timelines: vec![Timeline::default(); ranks],
            ..Self::after(done)
        }
    }

    /// The outcome, if this was all, with x unless the caller has it.
    pub(crate) fn outcome<X>(self, x: X, (reason, residual): Answer, bytes_per_iteration: u64) -> Outcome<X> {
        let Self { done, iterations, restarts, history, recurrence_rel_residual_2, .. } = self;
        Outcome {
            x,
            reason,
            done,
            iterations,
            restarts,
            history,
            recurrence_rel_residual_2,
            residual,
            compile: self.compile,
            upload: self.upload,
            precond: self.precond,
            solve: self.solve,
            gather: self.gather,
            verify: self.verify,
            early: self.early,
            split: self.split,
            timelines: self.timelines,
            side_by_side: self.side_by_side.max(1),
            switches: self.switches,
            moves: self.moves,
            iteration_seconds: self.iteration_seconds,
            kernel_seconds: self.iteration_times.map_or_else(Vec::new, |times| times.kernels),
            bytes_per_iteration,
        }
    }
}

fn join(all: &mut Timeline, more: Timeline) {
    all.origin = all.origin.or(more.origin);
    all.spans.extend(more.spans);
    all.runs.extend(more.runs);
    all.spans.sort_by_key(|span| (span.lane, span.start));
}
