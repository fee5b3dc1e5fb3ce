//! What is watched of right-hand sides that are solved for side by side: each has limits of its own, and ends by itself.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::control::{Control, Progress};
use super::monitor::{DIVERGED, INTERRUPT, TIME_OUT};
use crate::backend::Record;
use crate::comm::Communicator;
use crate::krylov::Reason;

/// What a right-hand side is to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// ‖r‖₂ that meets the test.
    pub(crate) target: f64,
    /// ‖b‖₂.
    pub(crate) rhs_norm: f64,
    /// At most so many iterations.
    pub(crate) max_iters: u64,
}

/// How the run of a column has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// The residual by recurrence met the test.
    Presumed,
    /// A limit, or the caller, has ended it.
    Limit(Reason),
    /// It came to what a solve for this right-hand side alone has to look into: a breakdown, a curvature that is not positive, numbers that
    /// are not finite.
    Unusual,
}

/// A right-hand side, as it is watched.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    goal: Goal,
    /// ‖r‖₂² that ends its run, and that it began with.
    limit: f64,
    first_rr: f64,
    /// Iterations of this run.
    pub(crate) iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence, before the first iteration and after each.
    pub(crate) history: Vec<f64>,
    /// How it has ended, if it has.
    pub(crate) end: Option<End>,
}

impl Watched {
    fn new(goal: Goal) -> Self {
        let limit = goal.target * goal.target;
        Self { goal, limit, first_rr: f64::NAN, iterations: 0, history: Vec::new(), end: None }
    }

    /// Takes note of ‖r‖₂² before the first iteration, of which a run can reach the part `reach`.
    fn begin(&mut self, rr: f64, reach: f64) {
        self.first_rr = rr;
        self.note(rr);
        self.end = if !rr.is_finite() {
            Some(End::Unusual)
        } else if rr <= self.limit {
            Some(End::Presumed)
        } else if self.goal.max_iters == 0 {
            Some(End::Limit(Reason::MaxIters))
        } else {
            None
        };
        self.limit = self.limit.max(reach * reach * rr);
    }

    fn note(&mut self, rr: f64) {
        self.history.push(rr.sqrt() / self.goal.rhs_norm);
    }

    fn see(&mut self, record: &Record) -> Option<End> {
        self.end = match *record {
            Record::Curvature { pq: value, .. } | Record::Breakdown { value, .. } | Record::Minimum { value, .. } => {
                (value <= 0.0 || !value.is_finite()).then_some(End::Unusual)
            }
            Record::Residual { iteration, rr } => {
                self.iterations = iteration;
                self.note(rr);
                let beyond = DIVERGED * DIVERGED * self.first_rr.max(self.goal.rhs_norm * self.goal.rhs_norm);
                if rr <= self.limit {
                    Some(End::Presumed)
                } else if !rr.is_finite() || rr > beyond {
                    Some(End::Unusual)
                } else {
                    (iteration >= self.goal.max_iters).then_some(End::Limit(Reason::MaxIters))
                }
            }
        };
        self.end
    }

    /// ‖r‖₂ / ‖b‖₂ by the recurrence.
    pub(crate) fn rel_residual_2(&self) -> f64 {
        self.history.last().copied().unwrap_or(f64::NAN)
    }
}

/// Watches one rank's iterations for several right-hand sides. All ranks see the same numbers.
pub(crate) struct Watch<'a> {
    pub(crate) columns: Vec<Watched>,
    /// What part of its first residual a run may reach before the recurrence says nothing of the true one any more.
    reach: f64,
    control: Control<'a>,
    time_limit: Option<Duration>,
    started: Instant,
    last_progress: Option<Duration>,
    /// Iterations of this run.
    pub(crate) iterations: u64,
}

impl<'a> Watch<'a> {
    /// A watch over these right-hand sides, since `started`; `epsilon` is that of the precision.
    pub(crate) fn new(
        goals: &[Goal],
        epsilon: f64,
        control: Control<'a>,
        (time_limit, started): (Option<Duration>, Instant),
    ) -> Self {
        let columns = goals.iter().map(|goal| Watched::new(*goal)).collect();
        Self { columns, reach: epsilon / 2.0, control, time_limit, started, last_progress: None, iterations: 0 }
    }

    /// Takes note of ‖r‖₂² of each before the first iteration.
    pub(crate) fn begin(&mut self, rr: &[f64]) {
        self.columns.iter_mut().zip(rr).for_each(|(column, rr)| column.begin(*rr, self.reach));
    }

    /// ‖r‖₂² that ends the run of each.
    pub(crate) fn limits(&self) -> Vec<f64> {
        self.columns.iter().map(|column| column.limit).collect()
    }

    /// Which have ended.
    pub(crate) fn over(&self) -> Vec<bool> {
        self.columns.iter().map(|column| column.end.is_some()).collect()
    }

    /// How many iterations from this one on are allowed to all that have not.
    pub(crate) fn allowed_from(&self, next: u64) -> u64 {
        let left = self.columns.iter().filter(|column| column.end.is_none());
        left.map(|column| (column.goal.max_iters + 1).saturating_sub(next)).min().unwrap_or(0)
    }

    /// Judges what has become known of a column, which may end its run.
    pub(crate) fn see(&mut self, column: usize, record: &Record) -> Option<End> {
        self.columns[column].see(record)
    }

    /// Minds the clock and the caller, after an iteration; says whether they end all runs.
    pub(crate) fn attend<T>(&mut self, iteration: u64, comm: &dyn Communicator<T>) -> bool {
        self.iterations = iteration;
        if comm.rank() == 0 {
            let elapsed = self.started.elapsed();
            if self.control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                comm.request_stop(INTERRUPT);
            } else if self.time_limit.is_some_and(|limit| elapsed >= limit) {
                comm.request_stop(TIME_OUT);
            }
            self.tell(elapsed);
        }
        let reason = match comm.stop_request() {
            INTERRUPT => Reason::Interrupted,
            TIME_OUT => Reason::TimeLimit,
            _ => return false,
        };
        for column in self.columns.iter_mut().filter(|column| column.end.is_none()) {
            column.end = Some(End::Limit(reason));
        }
        true
    }

    /// Tells the caller of the column that has farthest to go.
    fn tell(&mut self, elapsed: Duration) {
        let is_due = self.last_progress.is_none_or(|last| elapsed - last >= Duration::from_millis(50));
        let Some(progress) = self.control.progress.filter(|_| is_due) else { return };
        self.last_progress = Some(elapsed);
        let left = self.columns.iter().filter(|column| column.end.is_none());
        let way = |column: &Watched| column.rel_residual_2() * column.goal.rhs_norm / column.goal.target;
        if let Some(last) = left.max_by(|a, b| way(a).total_cmp(&way(b))) {
            progress(&Progress {
                iterations: self.control.done + self.iterations,
                rel_residual_2: last.rel_residual_2(),
                target: last.goal.target / last.goal.rhs_norm,
                elapsed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Alone;

    fn goal(target: f64, max_iters: u64) -> Goal {
        Goal { target, rhs_norm: 1.0, max_iters }
    }

    fn residual(iteration: u64, rr: f64) -> Record {
        Record::Residual { iteration, rr }
    }

    #[test]
    fn each_ends_by_itself() {
        let goals = [goal(1e-2, 9), goal(1e-3, 9), goal(1e-3, 2), goal(1e-3, 9), goal(1e-3, 0), goal(1e-20, 9)];
        let control = Control::default();
        let mut watch = Watch::new(&goals, f64::EPSILON, control, (None, Instant::now()));
        watch.begin(&[1e-4, 1.0, 1.0, f64::NAN, 1.0, 1.0]);
        let max_iters = Some(End::Limit(Reason::MaxIters));
        let ends = |watch: &Watch<'_>| watch.columns.iter().map(|column| column.end).collect::<Vec<_>>();
        assert_eq!(ends(&watch), [Some(End::Presumed), None, None, Some(End::Unusual), max_iters, None]);
        assert_eq!(watch.see(1, &residual(1, 0.25)), None);
        assert_eq!(watch.see(1, &Record::Curvature { iteration: 2, pq: 1.0 }), None);
        assert_eq!(watch.see(1, &residual(2, 1e-6)), Some(End::Presumed));
        assert_eq!((watch.columns[1].iterations, &watch.columns[1].history[..]), (2, &[1.0, 0.5, 1e-3][..]));
        assert_eq!(watch.see(2, &residual(2, 0.5)), max_iters);
        // a run reaches no more than the precision lets it
        assert_eq!(watch.see(5, &residual(1, 1e-30)), None);
        assert_eq!(watch.see(5, &residual(2, 1e-33)), Some(End::Presumed));
    }

    #[test]
    fn what_is_looked_into_alone() {
        let see = |record| {
            let mut watch = Watch::new(&[goal(1e-3, 9)], f64::EPSILON, Control::default(), (None, Instant::now()));
            watch.begin(&[1.0]);
            watch.see(0, &record)
        };
        let (iteration, unusual) = (1, Some(End::Unusual));
        assert_eq!(see(Record::Curvature { iteration, pq: -1.0 }), unusual);
        assert_eq!(see(Record::Breakdown { iteration, value: 0.0 }), unusual);
        assert_eq!(see(Record::Breakdown { iteration, value: f64::INFINITY }), unusual);
        assert_eq!(see(residual(1, f64::NAN)), unusual);
        assert_eq!(see(residual(1, 1e21)), unusual);
    }

    #[test]
    fn the_clock_ends_all() {
        let limits = (Some(Duration::ZERO), Instant::now());
        let mut watch = Watch::new(&[goal(1e-3, 9), goal(2.0, 9)], f64::EPSILON, Control::default(), limits);
        watch.begin(&[1.0, 1.0]);
        assert!(watch.attend::<f64>(1, &Alone::default()));
        assert_eq!(watch.columns[0].end, Some(End::Limit(Reason::TimeLimit)));
        assert_eq!(watch.columns[1].end, Some(End::Presumed));
    }
}
