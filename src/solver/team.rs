//! The ranks of a solver: set up, run to their end, and made to agree with the host's check.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::monitor::Monitor;
use super::rank::{self, Ended, Opened, Place, Rank, Stored, System};
use super::scaling::Scaling;
use super::{Control, Criterion, Method, Outcome, Precond, Reason, Setup, SetupTimes, Split, Stop};
use crate::comm::{Failure, Links, in_threads};
use crate::device::Info;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::reorder::Permutation;
use crate::partition::Part;
use crate::real::Real;
use crate::timeline::Timeline;
use crate::tune::store::Known;
use crate::verify::{self, Residual};

/// How often an answer that the host's check does not confirm is handed back to the ranks with a tighter target.
const MAX_ROUNDS: u32 = 5;

/// The ranks of a solver. Empty after a failure, which leaves devices in no known state.
pub(super) struct Ranks {
    ranks: Vec<Box<dyn Rank>>,
    /// How many ranks receive from each.
    receivers: Vec<usize>,
    rows: Vec<std::ops::Range<usize>>,
    /// What their matrix is multiplied by.
    factor: f64,
    /// Whether it is scaled by its diagonal, too.
    is_scaled: bool,
    /// The order of their rows, if it is not that given.
    pub(super) order: Option<Permutation>,
}

impl Ranks {
    pub(super) fn open(
        a: &Arc<Csr>,
        devices: Vec<(Option<&Info>, Option<Known>)>,
        parts: Vec<Part<'_>>,
        diagonal: &[f64],
        factor: f64,
        setup: &Setup,
        times: &mut SetupTimes,
    ) -> Result<Self> {
        let failure = Failure::default();
        let rows = parts.iter().map(|p| p.rows.clone()).collect();
        let receivers = parts.iter().map(|p| p.halo.receivers).collect();
        let indices: Vec<_> = devices.iter().map(|(device, _)| device.map(|device| device.index)).collect();
        let sharers = |device: Option<&Info>| indices.iter().filter(|&&i| i == device.map(|d| d.index)).count() as u64;
        let places = devices.into_iter().map(|(device, known)| Place { device, known, sharers: sharers(device) });
        let jobs = places.zip(parts).collect();
        let scales = setup.method.scales() && setup.precond == Precond::Jacobi;
        let scaling = scales.then(|| Scaling::of(diagonal, factor)).flatten();
        let system = System { a, diagonal, scaling: scaling.as_ref(), factor };
        let opened: Vec<Opened> = in_threads(&failure, jobs, |(place, part)| rank::open(&place, part, &system, setup))?;
        let longest = |time: fn(&Opened) -> Duration| opened.iter().map(time).max().unwrap_or_default();
        times.prepare += longest(|o| o.prepare);
        times.upload = longest(|o| o.upload);
        times.tune += longest(|o| o.tune);
        let ranks = opened.into_iter().map(|opened| opened.rank).collect();
        Ok(Self { ranks, receivers, rows, factor, is_scaled: scaling.is_some(), order: None })
    }

    /// Of each rank, how its rows are stored.
    pub(super) fn stored(&self) -> Vec<Stored> {
        self.ranks.iter().map(|rank| rank.stored()).collect()
    }

    /// The byte rule: each array that an operation reads counts once, and each that it writes. What replaces residuals
    /// in mixed precision is not counted, as it is not part of every iteration.
    pub(super) fn bytes_per_iteration(&self, setup: &Setup) -> u64 {
        let n = self.rows.last().map_or(0, |r| r.end) as u64;
        let jacobi = setup.precond == Precond::Jacobi;
        let vectors = match setup.method {
            Method::Cg => 7 + u64::from(self.is_scaled),
            Method::CgPipelined => 13 + u64::from(self.is_scaled),
            Method::CgSingleReduction => 9 + u64::from(self.is_scaled),
            Method::CgClassic => 13 + if jacobi { 5 } else { 0 },
        };
        let products: u64 = self.ranks.iter().map(|rank| rank.product_bytes()).sum();
        products + vectors * n * setup.precision.bytes()
    }

    pub(super) fn solve(
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
        let b = f64::scaled(b, 1.0 / scale);
        let rhs_norm = verify::norm_2(&b);
        let b = self.in_ranks_order(b);
        let confirmed = |r: &Residual| r.relative_2 <= stop.rtol || r.norm_2 <= stop.atol;

        let mut outcome: Option<Outcome> = None;
        let mut target = (stop.rtol * rhs_norm).max(stop.atol / scale);
        let started = Instant::now();
        for round in 1.. {
            let before = outcome.as_ref().map_or(0, |o| o.iterations);
            let monitor =
                || Monitor::new(a.n_rows(), target, rhs_norm, setup.precision, stop, control, (before, started));
            // (factor A) y = b / scale, so that x = factor scale y
            let mut y = self.in_ranks_order(rescaled(&x, 1.0 / self.factor, 1.0 / scale)).into_owned();
            let ended = self.run(setup.method, &b, &mut y, &monitor)?;

            let start = Instant::now();
            x = rescaled(&y, self.factor, scale).into_owned();
            if let Some(order) = &self.order {
                x = order.undo(&x);
            }
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

    /// A vector from the order given to that of the ranks.
    fn in_ranks_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.apply(&v)),
            None => v,
        }
    }

    /// Runs all ranks to their end.
    fn run<'m>(
        &mut self,
        method: Method,
        b: &[f64],
        x: &mut [f64],
        monitor: &(dyn Fn() -> Monitor<'m> + Sync),
    ) -> Result<Vec<Ended>> {
        if self.ranks.is_empty() {
            return Err(Error::SolverBroken);
        }
        let failure = Arc::new(Failure::default());
        let links = Links::new(&self.receivers, &failure);
        let mut rest = x;
        let mut jobs = Vec::new();
        for ((rank, links), rows) in self.ranks.iter_mut().zip(links).zip(&self.rows) {
            let (own, others) = rest.split_at_mut(rows.len());
            rest = others;
            jobs.push((rank, links, &b[rows.clone()], own));
        }
        let ended = in_threads(&failure, jobs, |(rank, links, b, x)| rank.run(links, method, b, x, monitor()));
        if ended.is_err() {
            self.ranks.clear();
        }
        ended
    }
}

/// The power of two next below `v` > 0, within a range whose ends have finite reciprocals.
pub(super) fn power_of_two_near(v: f64) -> f64 {
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
    mut ended: Vec<Ended>,
    x: Vec<f64>,
    reason: Reason,
    residual: Residual,
    times: CheckTimes,
    bytes_per_iteration: u64,
) -> Outcome {
    let longest = |time: fn(&Ended) -> Duration| ended.iter().map(time).max().unwrap_or_default();
    let (upload, solve, read) = (longest(|e| e.upload), longest(|e| e.solve), longest(|e| e.gather));
    let (split, timelines) = ended.iter_mut().map(|e| (e.split, std::mem::take(&mut e.timeline))).unzip();
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
        timelines,
        bytes_per_iteration,
    }
}

/// A solve that went on from where a former one ended.
fn add(before: Outcome, after: Outcome) -> Outcome {
    let mut history = before.history;
    history.extend(after.history.into_iter().skip(1));
    let add = |(a, b): (&Split, &Split)| Split {
        kernels: a.kernels + b.kernels,
        sums: a.sums + b.sums,
        halos: a.halos + b.halos,
        host_wait: a.host_wait + b.host_wait,
    };
    let join = |(mut a, b): (Timeline, Timeline)| {
        a.spans.extend(b.spans);
        a.runs.extend(b.runs);
        a.spans.sort_by_key(|span| (span.lane, span.start));
        a
    };
    Outcome {
        restarts: before.restarts + after.restarts,
        history,
        upload: before.upload + after.upload,
        solve: before.solve + after.solve,
        gather: before.gather + after.gather,
        verify: before.verify + after.verify,
        split: before.split.iter().zip(&after.split).map(add).collect(),
        timelines: before.timelines.into_iter().zip(after.timelines).map(join).collect(),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!([1.0, 3.0, 0.3, 1e300].map(power_of_two_near), [1.0, 2.0, 0.25, 2f64.powi(996)]);
        assert!(power_of_two_near(f64::MIN_POSITIVE / 4.0) > 0.0);
        assert!((1.0 / power_of_two_near(f64::MAX)).is_normal());
    }
}
