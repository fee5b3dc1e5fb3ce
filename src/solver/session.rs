//! The solver as its callers see it: it checks the input, sets up the ranks, runs them, and verifies what they bring back.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::monitor::Monitor;
use super::rank::{Ended, Opened, Rank};
use super::{Control, Criterion, Indefinite, Method, Outcome, Precision, Precond, Reason, Setup, Stop};
use crate::comm::{Alone, Communicator, Failure, Outbox, Threads};
use crate::device::{self, Info, Kind, Rejected, Selection};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::stats::Stats;
use crate::partition::{Part, row_ranges, split};
use crate::real::Real;
use crate::verify::{self, Residual};

/// How often an answer that the host's check does not confirm is handed back to the ranks with a tighter target.
const MAX_ROUNDS: u32 = 5;

/// One rank: a device and its share of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankInfo {
    /// The device's name.
    pub device: String,
    /// What it is.
    pub kind: Kind,
    /// Its number in `declive devices`; none for the host.
    pub index: Option<usize>,
    /// Rows that it owns.
    pub rows: usize,
    /// Entries in those rows.
    pub nnz: usize,
    /// Elements of a vector that it receives from other ranks for each product.
    pub halo: usize,
    /// Memory that the rank takes on its device.
    pub bytes: u64,
}

/// Where the time before the first iteration went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SetupTimes {
    /// Checks, partition, halo plans, building kernels.
    pub prepare: Duration,
    /// Moving the matrix to the devices.
    pub upload: Duration,
    /// Finding launch parameters.
    pub tune: Duration,
}

/// A system's matrix on its ranks, ready to solve for many right-hand sides.
///
/// Solvers are independent of each other: several may work in several threads.
pub struct Solver {
    a: Arc<Csr>,
    stats: Stats,
    setup: Setup,
    infos: Vec<RankInfo>,
    rejected: Vec<Rejected>,
    note: Option<String>,
    times: SetupTimes,
    team: Team,
}

enum Team {
    F64(Ranks<f64>),
    F32(Ranks<f32>),
}

/// The ranks of one precision. Empty after a failure, which leaves devices in no known state.
struct Ranks<T: Real> {
    ranks: Vec<Rank<T>>,
    outboxes: Vec<(Outbox<T>, usize)>,
    rows: Vec<std::ops::Range<usize>>,
    /// What their matrix is multiplied by.
    factor: f64,
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("setup", &self.setup).field("ranks", &self.infos).finish_non_exhaustive()
    }
}

impl Solver {
    /// Distributes `a` over the devices that `setup` asks for. The matrix stays in memory for the check of each answer.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::NotSymmetric`] unless `setup` says to assume it; [`Error::BeyondSingle`] if single
    /// precision can't hold the matrix; [`Error::NoDevice`], [`Error::KernelBuild`], [`Error::OutOfDeviceMemory`],
    /// [`Error::OpenCl`] for devices.
    pub fn new(a: impl Into<Arc<Csr>>, setup: &Setup) -> Result<Self> {
        let start = Instant::now();
        let a = a.into();
        let stats = check(&a, setup)?;
        let factor = matrix_factor(&a, &stats, setup.precision)?;
        let selection = device::select(&setup.devices, setup.precision == Precision::F64)?;
        let ranges = row_ranges(&a, selection.ranks.len());
        let parts = split(&a, &ranges);
        super::fit::check(&parts, &selection, setup)?;
        let diagonal = if setup.precond == Precond::Jacobi { a.diagonal() } else { Vec::new() };
        let info = |(device, part): (&Option<Info>, &Part<'_>)| RankInfo {
            device: device.as_ref().map_or_else(host_name, |d| d.name.clone()),
            kind: device.as_ref().map_or(Kind::Host, |d| d.kind),
            index: device.as_ref().map(|d| d.index),
            rows: part.n_owned(),
            nnz: part.nnz(),
            halo: part.halo.len,
            bytes: super::fit::bytes(part, device.is_none(), setup),
        };
        let infos = selection.ranks.iter().zip(&parts).map(info).collect();
        let prepare = start.elapsed();
        log::debug!("checks and partition took {prepare:?}");

        let mut times = SetupTimes { prepare, ..SetupTimes::default() };
        let devices = &selection.ranks;
        let team = match setup.precision {
            Precision::F64 => Team::F64(Ranks::open(&a, devices, parts, &diagonal, factor, setup, &mut times)?),
            Precision::F32 => Team::F32(Ranks::open(&a, devices, parts, &diagonal, factor, setup, &mut times)?),
        };
        let Selection { rejected, note, .. } = selection;
        Ok(Self { a, stats, setup: setup.clone(), infos, rejected, note, times, team })
    }

    /// Solves `A x = b` from `x0`, or from zero.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] and [`Error::NotFinite`] for `b` and `x0`; errors of devices, after which the solver can't be used
    /// any more. Not converging is not an error: see [`Outcome::reason`].
    pub fn solve(&mut self, b: &[f64], x0: Option<&[f64]>, stop: &Stop, control: Control<'_>) -> Result<Outcome> {
        for (what, v) in [("b", Some(b)), ("x0", x0)] {
            let Some(v) = v else { continue };
            if v.len() != self.a.n_rows() {
                return Err(Error::SizeMismatch { what: what.into(), expected: self.a.n_rows(), found: v.len() });
            }
            if let Some(k) = v.iter().position(|e| !e.is_finite()) {
                return Err(Error::NotFinite { what: what.into(), index: k + 1, value: v[k] });
            }
        }
        let x0 = x0.map_or_else(|| vec![0.0; b.len()], <[f64]>::to_vec);
        if let Some(reason) = self.settled(b, stop, control) {
            let x = if reason.converged() { vec![0.0; b.len()] } else { x0 };
            return Ok(self.outcome(b, x, reason));
        }
        match &mut self.team {
            Team::F64(ranks) => ranks.solve(&self.a, &self.setup, b, x0, stop, control),
            Team::F32(ranks) => ranks.solve(&self.a, &self.setup, b, x0, stop, control),
        }
    }

    /// What is known without an iteration: b = 0, a diagonal that no positive definite matrix has, or no time.
    fn settled(&self, b: &[f64], stop: &Stop, control: Control<'_>) -> Option<Reason> {
        if b.iter().all(|&v| v == 0.0) {
            return Some(Reason::Converged(Criterion::ZeroRhs));
        }
        if control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Some(Reason::Interrupted);
        }
        if stop.time_limit.is_some_and(|limit| limit.is_zero()) {
            return Some(Reason::TimeLimit);
        }
        let diagonal = &self.stats.diagonal;
        let first = [diagonal.missing_or_zero, diagonal.negative].into_iter().flatten().min()?;
        let value = self.a.get(first, first).unwrap_or(0.0);
        Some(Reason::IndefiniteOperator(Indefinite::Diagonal { row: first + 1, value }))
    }

    fn outcome(&self, b: &[f64], x: Vec<f64>, reason: Reason) -> Outcome {
        let start = Instant::now();
        let residual = verify::residual(&self.a, b, &x);
        Outcome {
            x,
            reason,
            iterations: 0,
            restarts: 0,
            history: vec![residual.relative_2],
            recurrence_rel_residual_2: residual.relative_2,
            residual,
            upload: Duration::ZERO,
            solve: Duration::ZERO,
            gather: Duration::ZERO,
            verify: start.elapsed(),
            split: vec![Default::default(); self.infos.len()],
            bytes_per_iteration: self.bytes_per_iteration(),
        }
    }

    fn bytes_per_iteration(&self) -> u64 {
        match &self.team {
            Team::F64(ranks) => ranks.bytes_per_iteration(&self.setup),
            Team::F32(ranks) => ranks.bytes_per_iteration(&self.setup),
        }
    }

    /// The ranks, in order of their rows.
    #[must_use]
    pub fn ranks(&self) -> &[RankInfo] {
        &self.infos
    }

    /// Devices that were looked at and not used, with the reason.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// A line for the user when the devices are not what one expects.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Facts about the matrix.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Where the time of [`Solver::new`] went.
    #[must_use]
    pub fn times(&self) -> SetupTimes {
        self.times
    }
}

/// The host in reports.
fn host_name() -> String {
    format!("host, {} threads", rayon::current_num_threads())
}

fn check(a: &Csr, setup: &Setup) -> Result<Stats> {
    if a.n_rows() != a.n_cols() {
        return Err(Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() });
    }
    let stats = Stats::of(a);
    if let Some(found) = &stats.asymmetry
        && !setup.assume_symmetric
    {
        return Err(Error::NotSymmetric {
            row: found.row + 1,
            col: found.col + 1,
            upper: found.upper,
            lower: found.lower,
        });
    }
    Ok(stats)
}

/// The power of two that the ranks' matrix is multiplied by, so that its entries and sums are well inside the range of the
/// precision. Powers of two round nothing.
fn matrix_factor(a: &Csr, stats: &Stats, precision: Precision) -> Result<f64> {
    let largest =
        a.values().par_chunks(1 << 14).map(|c| c.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).reduce(|| 0.0, f64::max);
    let factor = 1.0 / power_of_two_near(largest);
    match precision {
        Precision::F64 if (2f64.powi(-400)..2f64.powi(400)).contains(&largest) => Ok(1.0),
        Precision::F64 => Ok(factor),
        Precision::F32 => {
            let smallest = stats.diagonal.missing_or_zero.is_none().then(|| a.diagonal());
            let lost = |d: &f64| *d > 0.0 && ((d * factor) as f32) < f32::MIN_POSITIVE;
            match smallest.and_then(|d| d.iter().position(lost).map(|i| (i, d[i]))) {
                Some((i, value)) => Err(Error::BeyondSingle { row: i + 1, value, largest }),
                None => Ok(factor),
            }
        }
    }
}

impl<T: Real> Ranks<T> {
    fn open(
        a: &Arc<Csr>,
        devices: &[Option<Info>],
        parts: Vec<Part<'_>>,
        diagonal: &[f64],
        factor: f64,
        setup: &Setup,
        times: &mut SetupTimes,
    ) -> Result<Self> {
        let failure = Failure::default();
        let rows = parts.iter().map(|p| p.rows.clone()).collect();
        let receivers: Vec<usize> = parts.iter().map(|p| p.halo.receivers).collect();
        let jobs = devices.iter().zip(parts).collect();
        let opened: Vec<Opened<T>> = in_threads(&failure, jobs, |(device, part)| {
            let diagonal = diagonal.get(part.rows.clone()).unwrap_or_default();
            Rank::open(device.as_ref(), a, part, diagonal, factor, setup)
        })?;
        let longest = |time: fn(&Opened<T>) -> Duration| opened.iter().map(time).max().unwrap_or_default();
        times.prepare += longest(|o| o.prepare);
        times.upload = longest(|o| o.upload);
        let (ranks, outboxes) =
            opened.into_iter().zip(receivers).map(|(o, receivers)| (o.rank, (o.outbox, receivers))).unzip();
        Ok(Self { ranks, outboxes, rows, factor })
    }

    /// The byte rule: each array that an operation reads counts once, and each that it writes.
    fn bytes_per_iteration(&self, setup: &Setup) -> u64 {
        let n = self.rows.last().map_or(0, |r| r.end) as u64;
        let jacobi = setup.precond == Precond::Jacobi;
        let vectors = match setup.method {
            Method::Cg => 9 + if jacobi { 2 } else { 0 },
            Method::CgClassic => 13 + if jacobi { 5 } else { 0 },
        };
        let products: u64 = self.ranks.iter().map(Rank::product_bytes).sum();
        products + vectors * n * size_of::<T>() as u64
    }

    fn solve(
        &mut self,
        a: &Csr,
        setup: &Setup,
        b: &[f64],
        mut x: Vec<f64>,
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Outcome> {
        // A power of two, so that nothing is rounded: sums of squares then stay in range whatever the units of b are.
        let largest =
            b.par_chunks(1 << 14).map(|c| c.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).reduce(|| 0.0, f64::max);
        let scale = power_of_two_near(largest);
        let unscaled_b = b;
        let b = T::scaled(b, 1.0 / scale);
        let rhs_norm = verify::norm_2(&f64::scaled(unscaled_b, 1.0 / scale));
        let confirmed = |r: &Residual| r.relative_2 <= stop.rtol || r.norm_2 <= stop.atol;

        let mut outcome: Option<Outcome> = None;
        let mut target = (stop.rtol * rhs_norm).max(stop.atol / scale);
        let started = Instant::now();
        for round in 1.. {
            let before = outcome.as_ref().map_or(0, |o| o.iterations);
            let monitor =
                || Monitor::new(a.n_rows(), target, rhs_norm, setup.precision, stop, control, (before, started));
            // (factor A) y = b / scale, so that x = factor scale y
            let mut y = T::scaled(&rescaled(&x, 1.0 / self.factor, 1.0 / scale), 1.0).into_owned();
            let ended = self.run(setup.method, &b, &mut y, &monitor)?;

            let start = Instant::now();
            let y: Vec<f64> = y.into_par_iter().map(T::to_f64).collect();
            x = rescaled(&y, self.factor, scale).into_owned();
            let gather = start.elapsed();
            let start = Instant::now();
            let residual = verify::residual(a, unscaled_b, &x);
            let verify = start.elapsed();

            let criterion = if residual.relative_2 <= stop.rtol { Criterion::Rtol } else { Criterion::Atol };
            let reason = match ended[0].reason {
                None => Reason::Converged(criterion),
                // The last iterate of a solve that ended for another reason may meet the test all the same.
                Some(Reason::MaxIters | Reason::TimeLimit | Reason::Stagnation) if confirmed(&residual) => {
                    Reason::Converged(criterion)
                }
                Some(reason) => reason,
            };
            let times = CheckTimes { gather, verify };
            let now = collect(ended, x, reason, residual, times, self.bytes_per_iteration(setup));
            let now = match outcome.take() {
                Some(before) => add(before, now),
                None => now,
            };
            if !reason.converged() || confirmed(&residual) {
                return Ok(now);
            }
            // The ranks' own check, in working precision, was too kind.
            let excess = (residual.relative_2 / stop.rtol).min(residual.norm_2 / stop.atol);
            if round == MAX_ROUNDS || !excess.is_finite() {
                return Ok(Outcome { reason: Reason::Stagnation, ..now });
            }
            log::info!("the ranks' residual is {excess:.3} times too large by the host's check; iterating on");
            target *= 0.5 / excess;
            x = now.x.clone();
            outcome = Some(Outcome { restarts: now.restarts + 1, ..now });
        }
        unreachable!("the rounds end")
    }

    /// Runs all ranks to their end.
    fn run<'m>(
        &mut self,
        method: Method,
        b: &[T],
        x: &mut [T],
        monitor: &(dyn Fn() -> Monitor<'m> + Sync),
    ) -> Result<Vec<Ended>> {
        if self.ranks.is_empty() {
            return Err(Error::SolverBroken);
        }
        let failure = Arc::new(Failure::default());
        let comms: Vec<Box<dyn Communicator<T>>> = if self.ranks.len() == 1 {
            vec![Box::new(Alone::default())]
        } else {
            let boxed = |c| Box::new(c) as Box<dyn Communicator<T>>;
            Threads::new(self.outboxes.clone(), &failure).into_iter().map(boxed).collect()
        };
        let mut rest = x;
        let mut jobs = Vec::new();
        for ((rank, comm), rows) in self.ranks.iter_mut().zip(comms).zip(&self.rows) {
            let (own, others) = rest.split_at_mut(rows.len());
            rest = others;
            jobs.push((rank, comm, &b[rows.clone()], own));
        }
        let ended = in_threads(&failure, jobs, |(rank, comm, b, x)| rank.run(comm, method, b, x, monitor()));
        if ended.is_err() {
            self.ranks.clear();
        }
        ended
    }
}

/// Runs `body` on each job in a thread of its own, and waits for all. A panic becomes an error; the first error ends all.
fn in_threads<J: Send, R: Send>(
    failure: &Failure,
    jobs: Vec<J>,
    body: impl Fn(J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let results: Vec<Option<R>> = std::thread::scope(|scope| {
        let body = &body;
        let run = |(rank, job): (usize, J)| {
            scope.spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| body(job))).unwrap_or_else(|panic| {
                    let message = panic
                        .downcast_ref::<&str>()
                        .map(ToString::to_string)
                        .or_else(|| panic.downcast_ref::<String>().cloned())
                        .unwrap_or_else(|| "a panic without words".into());
                    Err(Error::RankPanicked { rank, message })
                });
                result.map_err(|e| failure.report(e)).ok()
            })
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(run).collect();
        threads.into_iter().map(|t| t.join().unwrap_or(None)).collect()
    });
    match failure.take() {
        Some(error) => Err(error),
        None => results.into_iter().collect::<Option<_>>().ok_or(Error::PeerFailed),
    }
}

fn power_of_two_near(v: f64) -> f64 {
    // exponents at the ends of the range would make 1 / scale overflow
    2f64.powi((v.log2().floor() as i32).clamp(-1000, 1000))
}

/// `v` times two powers of two, whose product may be out of range.
fn rescaled(v: &[f64], first: f64, second: f64) -> Cow<'_, [f64]> {
    let both = first * second;
    if both.is_normal() {
        return f64::scaled(v, both);
    }
    Cow::Owned(f64::scaled(&f64::scaled(v, first), second).into_owned())
}

/// Time of what follows the iteration.
struct CheckTimes {
    gather: Duration,
    verify: Duration,
}

fn collect(
    ended: Vec<Ended>,
    x: Vec<f64>,
    reason: Reason,
    residual: Residual,
    times: CheckTimes,
    bytes_per_iteration: u64,
) -> Outcome {
    let longest = |time: fn(&Ended) -> Duration| ended.iter().map(time).max().unwrap_or_default();
    let (upload, solve, read) = (longest(|e| e.upload), longest(|e| e.solve), longest(|e| e.gather));
    let split = ended.iter().map(|e| e.split).collect();
    let (mut iterations, mut restarts, mut history, mut recurrence) = (0, 0, Vec::new(), f64::NAN);
    if let Some(first) = ended.into_iter().next() {
        (iterations, restarts) = (first.seen.iterations, first.seen.runs.saturating_sub(1));
        (history, recurrence) = (first.seen.history, first.seen.rel_residual_2);
    }
    Outcome {
        x,
        reason,
        iterations,
        restarts,
        history,
        recurrence_rel_residual_2: recurrence,
        residual,
        upload,
        solve,
        gather: read + times.gather,
        verify: times.verify,
        split,
        bytes_per_iteration,
    }
}

/// A solve that went on from where a former one ended.
fn add(before: Outcome, after: Outcome) -> Outcome {
    let mut history = before.history;
    history.extend(after.history.into_iter().skip(1));
    let add = |(a, b): (&super::Split, &super::Split)| super::Split {
        kernels: a.kernels + b.kernels,
        sums: a.sums + b.sums,
        halos: a.halos + b.halos,
        host_wait: a.host_wait + b.host_wait,
    };
    Outcome {
        restarts: before.restarts + after.restarts,
        history,
        upload: before.upload + after.upload,
        solve: before.solve + after.solve,
        gather: before.gather + after.gather,
        verify: before.verify + after.verify,
        split: before.split.iter().zip(&after.split).map(add).collect(),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;

    use super::*;

    fn comms(size: usize, failure: &Arc<Failure>) -> Vec<Threads<f64>> {
        let outbox = || (Arc::new(RwLock::new(Vec::new())) as Outbox<f64>, 0);
        Threads::new((0..size).map(|_| outbox()).collect(), failure)
    }

    /// Three ranks sum without end; rank 1 does `what` in its fifth round.
    fn run(what: impl Fn() -> Result<()> + Sync) -> Error {
        let failure = Arc::new(Failure::default());
        let jobs = comms(3, &failure);
        in_threads(&failure, jobs, |comm| -> Result<()> {
            for round in 0.. {
                if comm.rank() == 1 && round == 5 {
                    what()?;
                }
                comm.sum(&mut [1.0])?;
            }
            Ok(())
        })
        .unwrap_err()
    }

    #[test]
    fn an_error_on_one_rank_ends_all_with_that_error() {
        let error = run(|| Err(Error::OpenCl { device: "gpu 1".into(), call: "clFinish", code: "LOST".into() }));
        assert_eq!(error.to_string(), "gpu 1: clFinish failed: LOST");
    }

    #[test]
    fn a_panic_on_one_rank_ends_all_with_its_words() {
        let error = run(|| panic!("a defect"));
        assert_eq!(error.to_string(), "internal error on rank 1: a defect");
    }

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!([1.0, 3.0, 0.3, 1e300].map(power_of_two_near), [1.0, 2.0, 0.25, 2f64.powi(996)]);
        assert!(power_of_two_near(f64::MIN_POSITIVE / 4.0) > 0.0);
        assert!((1.0 / power_of_two_near(f64::MAX)).is_normal());
    }
}
