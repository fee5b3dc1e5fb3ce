//! When an iteration ends, and why.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::control::{Control, Progress, Stop};
use super::iteration_time::IterationTime;
use super::patience::Patience;
use super::rebalance::{self, Balance, IterationTimes};
use super::snapshot::Snapshots;
use crate::backend::{Backend, Record};
use crate::comm::Communicator;
use crate::error::Result;
use crate::krylov::{Indefinite, Iterate, Judge, Reason, Verdict, Workspace};
use crate::precond::scaling::RankScaling;
use crate::real::{Precision, Real};

/// Requests that all ranks agree on in their sums: see [`Communicator::request_stop`].
pub(super) const INTERRUPT: u32 = 3;
pub(super) const TIME_OUT: u32 = 2;
const SNAPSHOT: u32 = 1;

/// ‖r‖₂ beyond this multiple of what it was, or of ‖b‖₂, is divergence. In exact arithmetic ‖r‖₂ of conjugate gradients can grow
/// by the square root of the condition number.
pub(super) const DIVERGED: f64 = 1e10;

/// A run that met the test by recurrence, but left more than this part of the true residual that it began with, shows that the
/// precision is exhausted.
const REPLACED: f64 = 0.5;

/// In mixed precision, a run ends when the recurrence has reduced the residual to this part, and the next one goes on
/// from the true residual. Seldom enough to cost little, and early enough that the two hardly differ: what they differ by
/// is smooth, which conjugate gradients take longest to reduce. To 10⁻¹⁰, 7-point 215³ takes 890 iterations, and 1014
/// with 0.01; in double precision 883.
const RUN_REDUCTION: f64 = 0.1;

/// The same for a method whose runs begin from the residual alone: what the former one knew of the matrix is lost, so that runs
/// had better be few. Products with `minres` to 10⁻¹⁰ are the fewest with 10⁻⁴ to 10⁻⁵: see `docs/measurements.md`.
const ANEW_REDUCTION: f64 = 1e-4;

/// In mixed precision, a run that is to be the last goes so far below the limit for ‖r‖₂² that the true residual,
/// which differs a little, meets it, too.
const MARGIN: f64 = 0.98;

/// In mixed precision, a true residual ‖r‖₂ beyond this multiple of the recurrence's is another one: the direction
/// that goes with the latter leads nowhere.
const SAME: f64 = 2.0;

/// The part by which a true residual ‖r‖₂² may differ from that of the recurrence to take its place: beyond, it is one of rounding
/// errors in b − A x, and the recurrence had better come to its end.
const VISIBLE: f64 = 1e-4;

/// Watches one rank's iteration. All ranks see the same numbers and so come to the same verdict.
pub(crate) struct Monitor<'a> {
    /// ‖r‖₂² that meets the test.
    limit: f64,
    /// ‖r‖₂² by the recurrence that ends the run.
    run_limit: f64,
    precision: Precision,
    /// ‖Aᵀ r‖ / ‖r‖ at which a method that minimises ‖r‖ is done,
    tolerance: f64,
    /// and at which its run ends.
    run_tolerance: f64,
    /// What part of its first residual a run may reach before the recurrence says nothing of the true one any more.
    reach: f64,
    rhs_norm: f64,
    stop: &'a Stop,
    max_iters: u64,
    /// When the run had better be left for another.
    patience: Option<Patience>,
    control: Control<'a>,
    started: Instant,
    /// Iterations of former runs.
    before: u64,
    /// Runs that had something to do.
    runs: u32,
    /// Whether the method can go on in the direction that a former run has left,
    can_go_on: bool,
    /// and whether this run does.
    keeps_direction: bool,
    /// ‖r‖₂² at the start of this run.
    first_rr: f64,
    /// ‖r‖₂² after the last iteration seen.
    last_rr: f64,
    /// The same when the method last [started anew](Self::starts_anew).
    anew_rr: f64,
    /// The least true ‖r‖₂² of all starts of runs.
    least_rr: f64,
    /// ‖Aᵀ r‖₂² at the start of this run, where it is formed, and of the former one; else no numbers.
    first_ss: f64,
    former_ss: f64,
    /// The least of all starts of runs.
    least_ss: f64,
    /// Iterations in all.
    iterations: u64,
    /// ‖r‖₂ / ‖b‖₂, by the recurrence.
    history: Vec<f64>,
    last_progress: Option<Duration>,
    /// Where snapshots are left, if they are taken.
    snapshots: Option<&'a Snapshots>,
    /// When that was last asked for.
    last_snapshot: Duration,
    /// What this rank has asked for.
    requested: u32,
    /// Whether all ranks have agreed to take a snapshot.
    takes_snapshot: bool,
    /// The iterations of the last snapshot, and of the last progress that was told: where each counts, none comes twice.
    taken: u64,
    told: u64,
    /// The ranks, if they are watched, and what they did.
    balance: Option<Balance>,
    /// Since when iterations count for these times, and the first of them.
    measured_since: (Instant, u64),
    iteration_times: Option<IterationTimes>,
    /// How long iterations take, by rank 0's clock.
    iteration_time: IterationTime,
    shares: Option<Vec<f64>>,
    /// Whether the next run, the first, goes on in a direction that other ranks have left.
    goes_on: bool,
    /// Whether the next run goes on with this one, but for a residual that is replaced,
    replaces: bool,
    /// and whether that would be of use again.
    may_replace: bool,
    /// Iterations before those runs.
    before_all: u64,
    /// Whether the method itself lets each run begin with the true residual.
    restarts: bool,
}

/// What a monitor has seen.
pub(crate) struct Seen {
    pub(crate) iterations: u64,
    pub(crate) runs: u32,
    pub(crate) history: Vec<f64>,
    pub(crate) rel_residual_2: f64,
    /// What the ranks measured last, if they were watched.
    pub(crate) iteration_times: Option<IterationTimes>,
    /// Seconds of an undisturbed iteration, if rank 0 has seen enough of them.
    pub(crate) iteration_seconds: Option<f64>,
    /// What part of the rows each rank had better have.
    pub(crate) shares: Option<Vec<f64>>,
}

/// `limit`, or a little less, as a number that every rank can compare with: sums may be in single precision on a device.
fn comparable(limit: f64, precision: Precision) -> f64 {
    match precision {
        Precision::F64 | Precision::Mixed => limit,
        Precision::F32 => {
            let single = limit as f32;
            f64::from(if f64::from(single) > limit { single.next_down() } else { single })
        }
    }
}

impl<'a> Monitor<'a> {
    /// A monitor that ends the iteration at ‖r‖₂ ≤ `target`, for a right-hand side of norm `rhs_norm` > 0 and order `n`, when
    /// `before` iterations were done since `started`.
    pub(crate) fn new(
        n: usize,
        target: f64,
        rhs_norm: f64,
        precision: Precision,
        stop: &'a Stop,
        control: Control<'a>,
        (before, started): (u64, Instant),
    ) -> Self {
        let reach = match precision {
            Precision::F64 => f64::EPSILON / 2.0,
            Precision::F32 => f64::from(f32::EPSILON) / 2.0,
            Precision::Mixed => RUN_REDUCTION,
        };
        let limit = comparable(target * target, precision);
        Self {
            limit,
            run_limit: limit,
            precision,
            tolerance: 0.0,
            run_tolerance: 0.0,
            reach,
            rhs_norm,
            stop,
            max_iters: stop.max_iters.unwrap_or_else(|| Stop::default_max_iters(n)),
            patience: control.patience.map(|iterations| Patience::new(iterations, before)),
            control,
            started,
            before,
            runs: 0,
            can_go_on: true,
            keeps_direction: false,
            first_rr: f64::NAN,
            last_rr: f64::NAN,
            anew_rr: f64::NAN,
            least_rr: f64::INFINITY,
            first_ss: f64::NAN,
            former_ss: f64::NAN,
            least_ss: f64::INFINITY,
            iterations: before,
            history: Vec::new(),
            last_progress: None,
            snapshots: None,
            last_snapshot: started.elapsed(),
            requested: 0,
            takes_snapshot: false,
            taken: before,
            told: before,
            balance: None,
            measured_since: (Instant::now(), 1),
            iteration_times: None,
            iteration_time: IterationTime::default(),
            shares: None,
            goes_on: false,
            replaces: false,
            may_replace: true,
            before_all: before,
            restarts: false,
        }
    }

    /// The same for a method that minimises ‖r‖: it ends at ‖Aᵀ r‖ ≤ `tolerance` ‖r‖, too.
    pub(crate) fn minimising(self, tolerance: f64) -> Self {
        Self { tolerance, run_tolerance: tolerance, ..self }
    }

    /// The same for a method that restarts by itself, or does not.
    pub(crate) fn of_cycles(self, restarts: bool) -> Self {
        Self { restarts, ..self }
    }

    /// Lets the ranks take snapshots.
    pub(crate) fn with_snapshots(self, snapshots: Option<&'a Snapshots>) -> Self {
        Self { snapshots, ..self }
    }

    /// Where to leave the snapshot that is to be taken now, if one is.
    fn takes_snapshot(&self) -> Option<&'a Snapshots> {
        let is_next = self.control.each_iteration && self.iterations > self.taken;
        self.snapshots.filter(|_| self.takes_snapshot || is_next)
    }

    /// That is done.
    fn has_taken_snapshot<T>(&mut self, comm: &dyn Communicator<T>) {
        (self.takes_snapshot, self.taken) = (false, self.iterations);
        if self.requested == SNAPSHOT {
            self.request(comm, 0);
        }
    }

    fn request<T>(&mut self, comm: &dyn Communicator<T>, request: u32) {
        self.requested = request;
        comm.request_stop(request);
    }

    /// The same, for ranks that are to be watched.
    pub(crate) fn watching(self, balance: Option<Balance>) -> Self {
        Self { balance, ..self }
    }

    /// The same, for a run that goes on in the direction that others have left, at ‖r‖₂ / ‖b‖₂ = `rel_residual_2`.
    pub(crate) fn going_on(self, rel_residual_2: f64) -> Self {
        let norm = rel_residual_2 * self.rhs_norm;
        Self { goes_on: true, last_rr: norm * norm, ..self }
    }

    /// The same, for a method that can't go on in a former direction.
    pub(crate) fn starting_anew(self) -> Self {
        let reach = if self.is_mixed() { ANEW_REDUCTION } else { self.reach };
        Self { can_go_on: false, reach, ..self }
    }

    /// The next run is one with this, and goes on in its direction; only the residual is replaced by the true one.
    pub(crate) fn replaces(&mut self) {
        self.replaces = true;
    }

    /// Whether a run that led nowhere may be undone and made anew: not if nothing would be different.
    pub(crate) fn may_try_anew(&self) -> bool {
        self.is_mixed() || self.keeps_direction
    }

    /// Whether steps are in less precision than the residuals that they start from.
    pub(crate) fn is_mixed(&self) -> bool {
        self.precision == Precision::Mixed
    }

    /// Whether a run has begun with a smaller residual than the present one.
    pub(crate) fn is_worse(&self) -> bool {
        self.last_rr > self.least_rr
    }

    /// After a run that led nowhere: whether it went in a direction that a former one had left, so that it is worth a
    /// trial to start anew, from the residual.
    pub(crate) fn gives_up_direction(&mut self) -> bool {
        (self.first_rr, self.last_rr) = (f64::NAN, f64::NAN); // the next run is compared with none
        std::mem::take(&mut self.keeps_direction)
    }

    /// After a breakdown, or where a difference of rounding errors was taken for p·A p: whether the next run, from the residual, may be of use. It is not if
    /// nothing was gained since the last time.
    pub(crate) fn starts_anew(&mut self) -> bool {
        let has_moved = self.run_iterations() > 0 || self.keeps_direction;
        let has_gained = self.anew_rr.is_nan() || self.last_rr <= REPLACED * REPLACED * self.anew_rr;
        self.anew_rr = self.last_rr;
        self.gives_up_direction();
        has_moved && has_gained
    }

    /// Where the time axis of a timeline begins, if one is asked for.
    pub(crate) fn timeline(&self) -> Option<Instant> {
        self.control.timeline.then_some(self.started)
    }

    /// Iterations in all.
    pub(crate) fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The last iteration that was seen, counted within this run.
    pub(crate) fn run_iterations(&self) -> u64 {
        self.iterations - self.before
    }

    fn judge_curvature(iteration: u64, curvature: f64) -> Option<Verdict> {
        if !curvature.is_finite() {
            return Some(Verdict::Ended(Reason::NonFinite("p·Ap")));
        }
        let direction = Indefinite::Direction { iteration, curvature };
        (curvature <= 0.0).then_some(Verdict::Ended(Reason::IndefiniteOperator(direction)))
    }

    fn judge_residual(&mut self, iteration: u64, rr: f64) -> Option<Verdict> {
        let ended = |reason| Some(Verdict::Ended(reason));
        if !rr.is_finite() {
            return ended(Reason::NonFinite("the residual"));
        }
        self.iterations = iteration;
        self.last_rr = rr;
        self.history.push(self.relative(rr));
        if rr <= self.run_limit {
            return Some(Verdict::Presumed);
        }
        if rr > DIVERGED * DIVERGED * self.first_rr.max(self.rhs_norm * self.rhs_norm) {
            return ended(Reason::Divergence);
        }
        if iteration >= self.max_iters {
            return ended(Reason::MaxIters);
        }
        let target = self.limit.sqrt() / self.rhs_norm;
        let is_slow = |patience: &mut Patience| iteration >= patience.next() && patience.is_over(&self.history, target);
        if self.patience.as_mut().is_some_and(is_slow) {
            return ended(Reason::Slow);
        }
        None
    }

    /// Rank 0 minds the clock and the caller, and tells the others in the next sum.
    fn attend<T>(&mut self, comm: &dyn Communicator<T>) {
        let elapsed = self.started.elapsed();
        self.iteration_time.see(elapsed, self.iterations);
        if self.control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            self.request(comm, INTERRUPT);
        } else if self.stop.time_limit.is_some_and(|limit| elapsed >= limit) {
            self.request(comm, TIME_OUT);
        }
        if let Some(snapshots) = self.snapshots {
            snapshots.reach(self.iterations);
            let may_ask = self.requested == 0 && !self.control.each_iteration;
            if may_ask && snapshots.is_due(elapsed - self.last_snapshot) {
                self.last_snapshot = elapsed;
                self.request(comm, SNAPSHOT);
            }
        }
        if let Some(progress) = self.control.progress
            && self.is_to_tell(elapsed)
        {
            (self.last_progress, self.told) = (Some(elapsed), self.iterations);
            progress(&Progress {
                iterations: self.iterations,
                rel_residual_2: self.relative(self.last_rr),
                target: self.limit.sqrt() / self.rhs_norm,
                elapsed,
            });
        }
    }

    /// Whether the caller is to hear of the progress now.
    fn is_to_tell(&self, elapsed: Duration) -> bool {
        if self.control.each_iteration {
            return self.iterations > self.told;
        }
        self.last_progress.is_none_or(|last| elapsed - last >= Duration::from_millis(50))
    }

    fn relative(&self, rr: f64) -> f64 {
        rr.sqrt() / self.rhs_norm
    }

    /// ‖r‖₂ / ‖b‖₂ after the last iteration seen.
    pub(crate) fn rel_residual_2(&self) -> f64 {
        self.relative(self.last_rr)
    }

    /// The same after each, and before the first.
    pub(crate) fn history(&self) -> &[f64] {
        &self.history
    }

    /// What was seen.
    pub(crate) fn into_seen(self) -> Seen {
        let rel_residual_2 = self.relative(self.last_rr);
        let Self { iterations, runs, history, iteration_times, iteration_time, shares, .. } = self;
        let iteration_seconds = iteration_time.seconds();
        Seen { iterations, runs, history, rel_residual_2, iteration_times, iteration_seconds, shares }
    }
}

impl Judge for Monitor<'_> {
    fn see_descent(&mut self, ss: f64) {
        self.former_ss = std::mem::replace(&mut self.first_ss, ss);
    }

    fn begin(&mut self, rr: f64) -> Option<Verdict> {
        self.before = self.iterations;
        let is_same = rr <= SAME * SAME * self.last_rr; // not so at first, where there is none
        let [goes_on, replaces] = [&mut self.goes_on, &mut self.replaces].map(std::mem::take);
        self.keeps_direction = self.can_go_on && (self.is_mixed() || goes_on || replaces) && is_same;
        let mut former_rr = f64::NAN;
        self.may_replace = !replaces || self.may_replace && (rr / self.last_rr - 1.0).abs() <= VISIBLE;
        if !replaces {
            former_rr = std::mem::replace(&mut self.first_rr, rr);
            self.before_all = self.iterations;
            self.measured_since = (Instant::now(), 1);
            self.iteration_time.pause();
        }
        self.last_rr = rr;
        if self.history.is_empty() {
            self.history.push(self.relative(rr));
        }
        if !rr.is_finite() {
            return Some(Verdict::Ended(Reason::NonFinite("the residual b − A x")));
        }
        if rr <= self.limit {
            return Some(Verdict::Converged);
        }
        let ss = self.first_ss;
        if ss <= self.tolerance * self.tolerance * rr {
            return Some(Verdict::Minimised);
        }
        // where the least ‖r‖ is not 0, it is Aᵀ r that becomes smaller
        let has_less = ss <= REPLACED * REPLACED * self.former_ss;
        if rr > REPLACED * REPLACED * former_rr && !has_less {
            return Some(Verdict::Stalled { worse: !self.is_best() });
        }
        (self.least_rr, self.least_ss) = (self.least_rr.min(rr), self.least_ss.min(ss));
        let margin = if self.is_mixed() { MARGIN } else { 1.0 };
        self.run_limit = (margin * self.limit).max(comparable(self.reach * self.reach * rr, self.precision));
        self.run_tolerance = (margin * self.tolerance).max(self.reach * (ss / rr).sqrt());
        if self.iterations >= self.max_iters {
            return Some(Verdict::Ended(Reason::MaxIters));
        }
        self.runs += u32::from(!replaces || self.is_mixed() || self.restarts);
        None
    }

    fn keeps_direction(&self) -> bool {
        self.keeps_direction
    }

    fn resumes(&self) -> bool {
        self.is_mixed()
    }

    fn run_tolerance(&self) -> f64 {
        self.run_tolerance
    }

    fn run_limit(&self) -> f64 {
        self.run_limit
    }

    fn may_replace(&self) -> bool {
        self.may_replace
    }

    fn is_best(&self) -> bool {
        self.last_rr <= self.least_rr || self.first_ss <= self.least_ss
    }

    fn at_once(&self) -> u64 {
        if self.control.each_iteration { 1 } else { u64::MAX }
    }

    fn allowed_from(&self, iteration: u64) -> u64 {
        // not beyond where it is looked next
        let most = self.patience.map_or(self.max_iters, |patience| self.max_iters.min(patience.next()));
        most.saturating_add(1).saturating_sub(self.before + iteration)
    }

    fn see(&mut self, record: &Record) -> Option<Verdict> {
        match *record {
            Record::Curvature { iteration, pq } => Self::judge_curvature(self.before + iteration, pq),
            Record::Breakdown { value, .. } => (value <= 0.0 || value.is_nan()).then_some(Verdict::BreaksDown),
            Record::Minimum { value, .. } if value.is_nan() => Some(Verdict::Ended(Reason::NonFinite("‖Aᵀ r‖"))),
            Record::Minimum { value, .. } if value > 0.0 => None,
            // what single precision presumes, double precision decides
            Record::Minimum { .. } => Some(if self.is_mixed() { Verdict::Presumed } else { Verdict::Minimised }),
            Record::Residual { iteration, rr } => self.judge_residual(self.before + iteration, rr),
        }
    }

    fn judge<T>(&mut self, records: &[Record], comm: &dyn Communicator<T>) -> Option<Verdict> {
        for record in records {
            if let Some(verdict) = self.see(record) {
                return Some(verdict);
            }
        }
        match comm.stop_request() {
            INTERRUPT => return Some(Verdict::Ended(Reason::Interrupted)),
            TIME_OUT => return Some(Verdict::Ended(Reason::TimeLimit)),
            request => self.takes_snapshot = request == SNAPSHOT,
        }
        if comm.rank() == 0 {
            self.attend(comm);
        } else if self.control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            self.request(comm, INTERRUPT); // perhaps rank 0 is in another process, and has not heard of it
        }
        None
    }

    fn compare<O: Backend>(&mut self, backend: &O, iteration: u64) -> Result<Option<Verdict>> {
        let Some(balance) = &self.balance else { return Ok(None) };
        let of_all = self.before - self.before_all + iteration;
        if !rebalance::is_time(of_all) {
            return Ok(None);
        }
        let now = (Instant::now(), of_all);
        let (since, first) = std::mem::replace(&mut self.measured_since, now);
        let whole = (now.0 - since).as_secs_f64() / (of_all - first) as f64;
        let [own, waiting] = backend.kernel_seconds(iteration)?.unwrap_or([f64::NAN; 2]);
        let [own, waiting] = [backend.comm().gather(own)?, backend.comm().gather(waiting)?];
        let kernels = rebalance::without_waits(&own, &waiting);
        #[cfg(test)]
        let kernels = match &balance.injected {
            Some(all) => balance.costs.iter().zip(all).map(|(cost, each)| cost * each).collect(),
            None => kernels,
        };
        let whole = backend.comm().gather(whole)?[0];
        let times = IterationTimes { kernels, whole };
        log::debug!("iteration {iteration}: {times:?}");
        self.shares = balance.better_shares(&times, of_all);
        self.iteration_times = Some(times);
        Ok(self.shares.is_some().then_some(Verdict::Moves))
    }

    fn is_snapshot_due(&self) -> bool {
        self.takes_snapshot().is_some()
    }

    fn take_snapshot<O: Backend>(
        &mut self,
        backend: &O,
        iterate: &impl Iterate<O>,
        scaling: Option<&RankScaling<O>>,
        w: &Workspace<O>,
        deferred: f64,
    ) -> Result<()> {
        let Some(snapshots) = self.takes_snapshot() else { return Ok(()) };
        let mut x = vec![0.0; backend.n_owned()];
        iterate.look(backend, w, deferred, &mut x)?;
        let mut p = snapshots.has_directions.then(|| vec![0.0; x.len()]);
        if let Some(p) = &mut p {
            O::Real::fill(p, |p| backend.read(&w.p, p))?;
        }
        if let Some(scaling) = scaling {
            scaling.undo(&mut x);
            p.iter_mut().for_each(|p| scaling.undo(p));
        }
        let reached = (self.iterations, self.rel_residual_2(), self.history());
        snapshots.put(backend.comm().rank(), &x, p.as_deref(), reached);
        self.has_taken_snapshot(backend.comm());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Alone;

    fn judge(records: &[Record]) -> (Option<Verdict>, u64) {
        let stop = Stop { max_iters: Some(5), ..Stop::default() };
        let mut monitor = Monitor::new(10, 1e-3, 1.0, Precision::F64, &stop, Control::default(), (0, Instant::now()));
        assert_eq!(monitor.begin(1.0), None);
        let verdict = monitor.judge::<f64>(records, &Alone::default());
        (verdict, monitor.into_seen().iterations)
    }

    fn curvature(iteration: u64, pq: f64) -> Record {
        Record::Curvature { iteration, pq }
    }

    fn residual(iteration: u64, rr: f64) -> Record {
        Record::Residual { iteration, rr }
    }

    #[test]
    fn each_ending_is_recognised() {
        let ended = |reason| Some(Verdict::Ended(reason));
        let direction =
            |iteration, curvature| ended(Reason::IndefiniteOperator(Indefinite::Direction { iteration, curvature }));
        assert_eq!(judge(&[curvature(1, 1.0), residual(1, 0.5)]), (None, 1));
        assert_eq!(judge(&[residual(1, 0.5), residual(2, 1e-7)]), (Some(Verdict::Presumed), 2));
        assert_eq!(judge(&[curvature(1, -2.0), residual(1, 0.0)]), (direction(1, -2.0), 0));
        assert_eq!(judge(&[curvature(1, 0.0)]), (direction(1, 0.0), 0));
        assert_eq!(judge(&[residual(1, 0.5), curvature(2, -1.0)]), (direction(2, -1.0), 1));
        assert_eq!(judge(&[curvature(1, f64::NAN)]), (ended(Reason::NonFinite("p·Ap")), 0));
        assert_eq!(judge(&[residual(1, f64::INFINITY)]), (ended(Reason::NonFinite("the residual")), 0));
        assert_eq!(judge(&[residual(1, 1e30)]), (ended(Reason::Divergence), 1));
        assert_eq!(judge(&[residual(5, 0.5)]), (ended(Reason::MaxIters), 5));
        let minimum = |iteration, value| Record::Minimum { iteration, value };
        assert_eq!(judge(&[minimum(1, 1.0), residual(1, 0.5), minimum(2, 0.0)]), (Some(Verdict::Minimised), 1));
        assert_eq!(judge(&[minimum(1, f64::NAN)]), (ended(Reason::NonFinite("‖Aᵀ r‖")), 0));
    }

    #[test]
    fn mixed_precision_goes_on_from_true_residuals_in_the_same_direction() {
        let stop = Stop::default();
        let mut monitor = Monitor::new(10, 1e-3, 1.0, Precision::Mixed, &stop, Control::default(), (0, Instant::now()));
        assert_eq!(monitor.begin(1.0), None);
        assert!(!monitor.keeps_direction);
        assert_eq!(monitor.run_limit, RUN_REDUCTION * RUN_REDUCTION);
        let record = Record::Residual { iteration: 1, rr: 0.9e-4 };
        assert_eq!(monitor.judge::<f32>(&[record], &Alone::default()), Some(Verdict::Presumed));
        assert_eq!(monitor.begin(0.9e-4), None);
        assert!(monitor.keeps_direction);
        // the last run goes a little beyond the limit
        assert_eq!(monitor.run_limit, MARGIN * (1e-3 * 1e-3));
        assert_eq!(monitor.begin(0.999e-6), Some(Verdict::Converged));
    }

    #[test]
    fn what_starts_anew_keeps_no_direction_and_has_longer_runs() {
        let stop = Stop::default();
        for (precision, reach) in [(Precision::Mixed, ANEW_REDUCTION), (Precision::F64, f64::EPSILON / 2.0)] {
            let new = Monitor::new(10, 1e-20, 1.0, precision, &stop, Control::default(), (0, Instant::now()));
            let mut monitor = new.starting_anew();
            assert_eq!(monitor.begin(1.0), None);
            assert_eq!(monitor.run_limit, reach * reach, "{precision}");
            let record = Record::Residual { iteration: 1, rr: monitor.run_limit };
            assert_eq!(monitor.judge::<f64>(&[record], &Alone::default()), Some(Verdict::Presumed));
            assert_eq!(monitor.begin(reach * reach), None);
            assert!(!monitor.keeps_direction, "{precision}");
        }
    }

    #[test]
    fn a_direction_is_worth_what_its_residual_is() {
        let stop = Stop::default();
        let mut monitor = Monitor::new(10, 1e-5, 1.0, Precision::Mixed, &stop, Control::default(), (0, Instant::now()));
        assert_eq!(monitor.begin(1.0), None);
        // the recurrence has found zero at once, the true residual is one of rounding
        let record = Record::Residual { iteration: 1, rr: 0.0 };
        assert_eq!(monitor.judge::<f32>(&[record], &Alone::default()), Some(Verdict::Presumed));
        assert_eq!(monitor.begin(1e-8), None);
        assert!(!monitor.keeps_direction && !monitor.gives_up_direction());
        assert_eq!(monitor.begin(1e-8), None);
    }

    #[test]
    fn less_of_the_gradient_is_a_gain_beside_a_residual_that_stays() {
        let stop = Stop::default();
        let monitor = || {
            let new = Monitor::new(10, 1e-12, 1.0, Precision::Mixed, &stop, Control::default(), (0, Instant::now()));
            new.starting_anew().minimising(1e-6)
        };
        let begin = |monitor: &mut Monitor<'_>, rr: f64, s: f64| {
            monitor.see_descent(s * s);
            monitor.begin(rr)
        };
        let mut least = monitor();
        assert_eq!(begin(&mut least, 1.0, 1e-1), None);
        assert!((least.run_tolerance - ANEW_REDUCTION * 1e-1).abs() < 1e-20 && least.is_best());
        let found = Record::Minimum { iteration: 3, value: 0.0 };
        assert_eq!(least.judge::<f32>(&[found], &Alone::default()), Some(Verdict::Presumed));
        // r may be a little larger by rounding
        assert_eq!(begin(&mut least, 1.0 + 1e-15, 1e-5), None);
        assert!(least.is_best() && (least.run_tolerance - MARGIN * 1e-6).abs() < 1e-20);
        assert_eq!(begin(&mut least, 1.0 + 1e-15, 0.9e-6), Some(Verdict::Minimised));
        let mut stalled = monitor();
        assert_eq!([begin(&mut stalled, 1.0, 1e-1), begin(&mut stalled, 0.9, 0.9e-2)], [None; 2]);
        assert_eq!(begin(&mut stalled, 0.9, 0.8e-2), Some(Verdict::Stalled { worse: false }));
        let mut worse = monitor();
        assert_eq!(begin(&mut worse, 1.0, 1e-1), None);
        assert_eq!(begin(&mut worse, 1.1, 0.2), Some(Verdict::Stalled { worse: true }));
        // where r becomes smaller, Aᵀ r need not
        let mut falls = monitor();
        assert_eq!([begin(&mut falls, 1.0, 1e-1), begin(&mut falls, 1e-8, 1e-1)], [None; 2]);
    }

    #[test]
    fn limits_are_what_a_device_compares_with() {
        for limit in [0.0, 1e-60, 1e-16, 0.1, 1.0 / 3.0, 0.7, 1e30] {
            let single = comparable(limit, Precision::F32);
            assert!(single <= limit && f64::from(single as f32) == single, "{limit:e}");
            assert_eq!(comparable(limit, Precision::F64), limit);
        }
    }

    #[test]
    fn a_run_that_gains_nothing_is_the_last() {
        let stop = Stop::default();
        let mut monitor = Monitor::new(10, 1e-3, 1.0, Precision::F64, &stop, Control::default(), (0, Instant::now()));
        assert_eq!(monitor.begin(1.0), None);
        assert_eq!(monitor.begin(0.2), None);
        assert_eq!(monitor.begin(0.1), Some(Verdict::Stalled { worse: false }));
        let mut monitor = Monitor::new(10, 1e-3, 1.0, Precision::F64, &stop, Control::default(), (0, Instant::now()));
        assert_eq!((monitor.begin(1.0), monitor.begin(2.0)), (None, Some(Verdict::Stalled { worse: true })));
    }
}
