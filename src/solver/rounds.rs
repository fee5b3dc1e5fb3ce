//! A solve: the ranks run, and the host checks what they bring back, until it agrees.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::account::Account;
use super::aside::{self, Aside, Shelf};
use super::monitor::Monitor;
use super::rank::Ended;
use super::survivors::{open, without_failed};
use super::team::{Position, Ranks};
use super::whole::Whole;
use super::{Checkpoint, Checkpoints, Control, Criterion, DeviceFailure, OnFailure, Outcome, Reason, Stop};
use crate::error::Result;
use crate::real::Real;
use crate::verify::{self, Residual};

/// How often an answer that the host's check does not confirm is handed back to the ranks with a tighter target.
const MAX_ROUNDS: u32 = 5;

/// How often iterates are set aside to go on from after a failure, if nothing else was said.
const ASIDE_EVERY: Duration = Duration::from_secs(10);

/// Solves the system for `b` from `x`. Devices that fail are told in `failures`; others may then take the place of the ranks.
pub(super) fn solve(
    whole: &Whole,
    ranks: &mut Ranks,
    failures: &mut Vec<DeviceFailure>,
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
    let b = &*whole.in_ranks_order(b);
    let confirmed = |r: &Residual| r.relative_2 <= stop.rtol || r.norm_2 <= stop.atol;

    let target = (stop.rtol * rhs_norm).max(stop.atol / scale);
    let mut round = Round { whole, b, rhs_norm, scale, target, stop, control, started: Instant::now() };
    let mut account = Account::after(control.done);
    for count in 1.. {
        let (ended, position) = round.run(ranks, failures, &mut account, &x)?;
        let reached = ended[0].reason;
        account.add(ended);

        let start = Instant::now();
        x = round.given(&position.x);
        account.gather += start.elapsed();
        let start = Instant::now();
        let residual = verify::residual(&whole.a, unscaled_b, &x);
        account.verify += start.elapsed();

        let criterion = if residual.relative_2 <= stop.rtol { Criterion::Rtol } else { Criterion::Atol };
        let reason = match reached {
            None => Reason::Converged(criterion),
            // The last iterate of a solve that ended for another reason may meet the test all the same.
            Some(Reason::MaxIters | Reason::TimeLimit | Reason::Stagnation) if confirmed(&residual) => {
                Reason::Converged(criterion)
            }
            Some(reason) => reason,
        };
        let outcome =
            |account: Account, x, reason| account.outcome(x, reason, residual, ranks.bytes_per_iteration(whole));
        if !reason.converged() || confirmed(&residual) {
            return Ok(outcome(account, x, reason));
        }
        // The ranks' own check, in working precision, was too kind.
        let excess = (residual.relative_2 / stop.rtol).min(residual.norm_2 / stop.atol);
        if count == MAX_ROUNDS || !excess.is_finite() {
            return Ok(outcome(account, x, Reason::Stagnation));
        }
        log::info!("the ranks' residual is {excess:.3} times too large by the host's check; iterating on");
        round.target *= 0.5 / excess;
        account.restarts += 1;
    }
    unreachable!("the rounds end")
}

/// What the ranks are asked for: (factor A) y = b / scale, so that x = factor scale y.
struct Round<'a> {
    whole: &'a Whole,
    /// In the order and scale of the ranks.
    b: &'a [f64],
    rhs_norm: f64,
    scale: f64,
    /// ‖r‖₂ to be reached.
    target: f64,
    stop: &'a Stop,
    control: Control<'a>,
    /// When the first round began.
    started: Instant,
}

impl Round<'_> {
    /// y in the order and scale of the ranks.
    fn own(&self, x: &[f64]) -> Vec<f64> {
        self.whole.in_ranks_order(rescaled(x, 1.0 / self.whole.factor, 1.0 / self.scale)).into_owned()
    }

    /// And back.
    fn given(&self, y: &[f64]) -> Vec<f64> {
        self.whole.in_given_order(rescaled(y, self.whole.factor, self.scale)).into_owned()
    }

    /// Runs ranks from `x` to their end: those that are there or, if devices fail and others may go on without them, new
    /// ones from the last iterate that was set aside.
    fn run(
        &self,
        ranks: &mut Ranks,
        failures: &mut Vec<DeviceFailure>,
        account: &mut Account,
        x: &[f64],
    ) -> Result<(Vec<Ended>, Position)> {
        let goes_on = self.whole.setup.on_failure == OnFailure::Continue;
        let every = self.control.checkpoint.map(|checkpoint| checkpoint.every).or(goes_on.then_some(ASIDE_EVERY));
        let mut from = Aside::first(self.own(x), account.iterations);
        loop {
            let before = from.iterations;
            let mut position = Position::at(if goes_on { from.x.clone() } else { std::mem::take(&mut from.x) });
            let rows = ranks.placement.rows.clone();
            let take = |aside: Aside| self.take(aside, goes_on, &mut from);
            let started = Instant::now();
            let (ended, iterations) = aside::beside(every, &rows, before, take, |shelf| {
                ranks.run(self.whole.setup.method, self.b, &mut position, &|| self.monitor(before, shelf))
            });
            let failed = match ended {
                Ok(ended) => return Ok((ended, position)),
                Err(failed) => failed,
            };
            let during = Some((iterations, iterations.saturating_sub(from.iterations)));
            if !goes_on {
                return Err(failed.into());
            }
            account.add_failed(&mut from, started.elapsed());
            let rows = self.whole.rows()?;
            let left = without_failed(self.whole, &rows, &ranks.placement, failed, during, failures)?;
            *ranks = open(self.whole, rows, left, failures, self.control.cancel)?;
        }
    }

    /// Takes what the ranks have set aside, unless it is useless: for the caller, and to go on from.
    fn take(&self, aside: Aside, is_kept: bool, last: &mut Aside) {
        if !aside.x.par_iter().all(|v| v.is_finite()) {
            return;
        }
        if let Some(Checkpoints { take, .. }) = self.control.checkpoint {
            let Aside { iterations, rel_residual_2, .. } = aside;
            take(&Checkpoint { x: &self.given(&aside.x), iterations, rel_residual_2 });
        }
        if is_kept {
            *last = aside;
        }
    }

    /// A rank's monitor, after so many iterations.
    fn monitor<'m>(&'m self, before: u64, shelf: Option<&'m Shelf>) -> Monitor<'m> {
        let Self { rhs_norm, target, stop, control, started, .. } = *self;
        let (n, precision) = (self.whole.a.n_rows(), self.whole.setup.precision);
        Monitor::new(n, target, rhs_norm, precision, stop, control, (before, started)).with_shelf(shelf)
    }
}

impl Whole {
    /// A vector from the order given to that of the ranks.
    fn in_ranks_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.apply(&v)),
            None => v,
        }
    }

    /// And back.
    fn in_given_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.undo(&v)),
            None => v,
        }
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
