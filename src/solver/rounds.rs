//! A solve: the ranks run, and the host checks what they bring back, until it agrees.

use std::borrow::Cow;
use std::time::Instant;

use rayon::prelude::*;

use super::account::Account;
use super::monitor::Monitor;
use super::team::{Position, Ranks};
use super::whole::Whole;
use super::{Control, Criterion, Outcome, Reason, Stop};
use crate::error::Result;
use crate::real::Real;
use crate::verify::{self, Residual};

/// How often an answer that the host's check does not confirm is handed back to the ranks with a tighter target.
const MAX_ROUNDS: u32 = 5;

/// Solves the system for `b` from `x`.
pub(super) fn solve(
    whole: &Whole,
    ranks: &mut Ranks,
    b: &[f64],
    mut x: Vec<f64>,
    stop: &Stop,
    control: Control<'_>,
) -> Result<Outcome> {
    let (a, setup) = (&whole.a, &whole.setup);
    // A power of two, so that nothing is rounded: sums of squares then stay in range whatever the units of b are.
    let largest =
        b.par_chunks(1 << 14).map(|c| c.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).reduce(|| 0.0, f64::max);
    let scale = power_of_two_near(largest);
    let unscaled_b = b;
    let b = f64::scaled(b, 1.0 / scale);
    let rhs_norm = verify::norm_2(&b);
    let b = whole.in_ranks_order(b);
    let confirmed = |r: &Residual| r.relative_2 <= stop.rtol || r.norm_2 <= stop.atol;

    let mut account = Account::default();
    let mut target = (stop.rtol * rhs_norm).max(stop.atol / scale);
    let started = Instant::now();
    for round in 1.. {
        let before = account.iterations;
        let monitor = || Monitor::new(a.n_rows(), target, rhs_norm, setup.precision, stop, control, (before, started));
        // (factor A) y = b / scale, so that x = factor scale y
        let y = whole.in_ranks_order(rescaled(&x, 1.0 / whole.factor, 1.0 / scale)).into_owned();
        let mut position = Position::at(y);
        let ended = ranks.run(setup.method, &b, &mut position, &monitor)?;
        let reached = ended[0].reason;
        account.add(ended);

        let start = Instant::now();
        x = whole.in_given_order(rescaled(&position.x, whole.factor, scale)).into_owned();
        account.gather += start.elapsed();
        let start = Instant::now();
        let residual = verify::residual(a, unscaled_b, &x);
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
        if round == MAX_ROUNDS || !excess.is_finite() {
            return Ok(outcome(account, x, Reason::Stagnation));
        }
        log::info!("the ranks' residual is {excess:.3} times too large by the host's check; iterating on");
        target *= 0.5 / excess;
        account.restarts += 1;
    }
    unreachable!("the rounds end")
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
