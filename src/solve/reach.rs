//! What of a right-hand side any x can reach, where null vectors of the matrix are known.

use std::borrow::Cow;
use std::convert::Infallible;

use rayon::prelude::*;

use super::null_space::NullSpace;
use super::statistics::Answer;
use crate::distributed::share::Share;
use crate::error::Result;
use crate::krylov::{Reason, Singularity};
use crate::real::Real;
use crate::runtime::Stop;
use crate::verify::{self, Residual};

/// A right-hand side for the ranks, and how the answer is checked.
///
/// If zᵀ A = 0 for known orthonormal z, no b − A x is less than Z Zᵀ b, and the ranks get the rest, b − Z Zᵀ b. If that is enough, the
/// test is that of b; or else x is to be the one with the least residual: the same test, for the rest. If A z = 0, too, x has
/// the Z Zᵀ x of the first guess: of all solutions it is the nearest to it along Z, and of least norm if that is 0.
pub(super) struct Reach<'a> {
    null_space: Option<&'a NullSpace>,
    /// b and the test, as given.
    given: (&'a [f64], &'a Stop),
    /// The power of two near max |b| that the ranks' b is divided by, so that nothing is rounded: sums of squares then stay in
    /// range whatever the units of b are.
    pub(super) scale: f64,
    /// ‖b‖, divided by that,
    pub(super) rhs_norm: f64,
    /// and what the ranks get.
    pub(super) b: Cow<'a, [f64]>,
    /// ‖Z Zᵀ b‖ / ‖b‖.
    least: f64,
    /// The rest of b and the test for it, if b can't be reached.
    rest: Option<(Vec<f64>, Stop)>,
    /// The means of the first guess over the parts of the null space.
    of_x: Vec<f64>,
}

impl<'a> Reach<'a> {
    /// For `b` ≠ 0, from the first guess `x`.
    pub(super) fn of(null_space: Option<&'a NullSpace>, b: &'a [f64], x: &[f64], stop: &'a Stop) -> Self {
        let given = (b, stop);
        let scale = power_of_two_near(largest(b));
        let b = f64::scaled(b, 1.0 / scale);
        let rhs_norm = verify::norm_2(&b);
        let reach = Self { null_space, given, scale, rhs_norm, b, least: 0.0, rest: None, of_x: Vec::new() };
        let Some(null_space) = null_space else { return reach };
        let means = null_space.means(&reach.b);
        let least = null_space.norm(&means);
        reach.without(null_space, &means, least, null_space.means(x))
    }

    /// The same for the parts of `b` ≠ 0 and `x` that one of several processes has. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn among(
        share: &Share,
        null_space: Option<&'a NullSpace>,
        b: &'a [f64],
        x: &[f64],
        stop: &'a Stop,
    ) -> Result<Self> {
        let (given, processes) = ((b, stop), &*share.processes);
        let scale = power_of_two_near(share.largest(largest(b))?);
        let b = f64::scaled(b, 1.0 / scale);
        let rhs_norm = verify::norm_2_among(processes, &b)?;
        let reach = Self { null_space, given, scale, rhs_norm, b, least: 0.0, rest: None, of_x: Vec::new() };
        let Some(null_space) = null_space else { return Ok(reach) };
        let means = null_space.means_among(processes, &reach.b)?;
        let least = null_space.norm_among(processes, &means)?;
        Ok(reach.without(null_space, &means, least, null_space.means_among(processes, x)?))
    }

    /// The same with what is out of reach taken from b: its means, and ‖Z Zᵀ b‖; and the means of the first guess.
    fn without(self, null_space: &NullSpace, means: &[f64], least: f64, of_x: Vec<f64>) -> Self {
        let (scale, stop) = (self.scale, self.given.1);
        let mut b = self.b.into_owned();
        null_space.subtract(means, &mut b);
        let mut reach = Self { b: b.into(), least: least / self.rhs_norm, of_x, ..self };
        // which x has a small backward error is known once ‖x‖ is
        if reach.is_beyond() && stop.backward_error == 0.0 {
            let atol = reach.allowed() * scale;
            reach.rest = Some((f64::scaled(&reach.b, scale).into_owned(), Stop { rtol: 0.0, atol, ..stop.clone() }));
        }
        reach
    }

    /// The residual that the test allows by its norm, divided by the scale.
    fn allowed(&self) -> f64 {
        (self.given.1.rtol * self.rhs_norm).max(self.given.1.atol / self.scale)
    }

    /// Whether no x has a residual that is allowed. What may be rounding in Z Zᵀ b shows nothing.
    fn is_beyond(&self) -> bool {
        self.least * self.rhs_norm > self.allowed() && self.least > f64::EPSILON
    }

    /// What is allowed of the ranks' residual.
    pub(super) fn target(&self) -> f64 {
        let allowed = self.allowed();
        let part = self.least * self.rhs_norm / allowed; // orthogonal to it
        if part < 1.0 { allowed * (1.0 - part * part).sqrt() } else { allowed }
    }

    /// The right-hand side and the test that x is checked by.
    pub(super) fn checked(&self) -> (&[f64], &Stop) {
        self.rest.as_ref().map_or(self.given, |(b, stop)| (b, stop))
    }

    /// Takes from x what it has gained along the null space.
    pub(super) fn settle(&self, x: &mut [f64]) {
        if let Some(null_space) = self.null_space.filter(|known| known.is_symmetric()) {
            self.take(null_space, &null_space.means(x), x);
        }
    }

    /// The same where x may be the part of one of several processes. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn settle_in(&self, share: Option<&Share>, x: &mut [f64]) -> Result<()> {
        match (self.null_space.filter(|known| known.is_symmetric()), share) {
            (Some(null_space), Some(share)) => {
                self.take(null_space, &null_space.means_among(&*share.processes, x)?, x);
            }
            _ => self.settle(x),
        }
        Ok(())
    }

    fn take(&self, null_space: &NullSpace, means: &[f64], x: &mut [f64]) {
        let gained: Vec<f64> = means.iter().zip(&self.of_x).map(|(now, first)| now - first).collect();
        null_space.subtract(&gained, x);
    }

    /// The answer for b as given, of one that was checked; `residual` measures that of b.
    pub(super) fn answer(&self, answer: Answer, residual: impl FnOnce(&[f64]) -> Residual) -> Answer {
        let Ok(answer) = self.try_answer(answer, |b| Ok::<_, Infallible>(residual(b)));
        answer
    }

    /// The same where it may not be possible to measure it.
    ///
    /// # Errors
    /// Those of `residual`.
    pub(super) fn try_answer<E>(
        &self,
        (reason, checked): Answer,
        residual: impl FnOnce(&[f64]) -> std::result::Result<Residual, E>,
    ) -> std::result::Result<Answer, E> {
        let Some(null_space) = self.null_space.filter(|_| self.is_beyond()) else { return Ok((reason, checked)) };
        let residual = if self.rest.is_some() { residual(self.given.0)? } else { checked };
        if self.rest.is_some() && reason.converged() || reason == Reason::Stagnation {
            let (parts, least) = (null_space.dimension(), self.least);
            return Ok((Reason::Singular(Singularity::Inconsistent { parts, least }), residual));
        }
        Ok((reason, residual))
    }
}

/// max |v|.
fn largest(v: &[f64]) -> f64 {
    v.par_chunks(1 << 14).map(|c| c.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).reduce(|| 0.0, f64::max)
}

/// The power of two next below `v` > 0, within a range whose ends have finite reciprocals.
pub(crate) fn power_of_two_near(v: f64) -> f64 {
    // exponents at the ends of the range would make 1 / scale overflow
    2f64.powi((v.log2().floor() as i32).clamp(-1000, 1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!([1.0, 3.0, 0.3, 1e300].map(power_of_two_near), [1.0, 2.0, 0.25, 2f64.powi(996)]);
        assert!(power_of_two_near(f64::MIN_POSITIVE / 4.0) > 0.0);
        assert!((1.0 / power_of_two_near(f64::MAX)).is_normal());
    }

    /// b = (6, 2) with the null vector (1, 1): (4, 4) and (2, −2).
    #[test]
    fn by_hand() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![3.0, -3.0, -3.0, 3.0]).unwrap();
        let null_space = NullSpace::of(&a, true);
        let b = [6.0, 2.0];
        let stop = |atol: f64| Stop { rtol: 0.0, atol, ..Stop::default() };
        let residual = |b: &[f64], x: &[f64]| verify::residual(&a, b, x);
        let met = Reason::Converged(crate::krylov::Criterion::Atol);
        // ‖(4, 4)‖ = √32 < 6: what is left for the rest is 2
        let allowed = stop(6.0);
        let reach = Reach::of(null_space.as_ref(), &b, &[5.0, 3.0], &allowed);
        assert_eq!((reach.scale, &reach.b[..]), (4.0, &[0.5, -0.5][..]));
        assert!((reach.target() * 4.0 - 2.0).abs() < 1e-14);
        assert_eq!(reach.checked().0, b);
        let mut x = [9.0, 8.0];
        reach.settle(&mut x);
        assert_eq!(x, [4.5, 3.5]); // the mean is 4 again
        let answer = reach.answer((met, residual(&b, &x)), |_| panic!("that of b is known"));
        assert_eq!(answer.0, met);
        // no x has less than √32
        let allowed = stop(5.0);
        let reach = Reach::of(null_space.as_ref(), &b, &[0.0; 2], &allowed);
        assert_eq!((reach.target() * 4.0, reach.checked().0), (5.0, &[2.0, -2.0][..]));
        let x = [1.0 / 3.0, -1.0 / 3.0];
        let (reason, found) = reach.answer((met, residual(&[2.0, -2.0], &x)), |b| residual(b, &x));
        assert!((found.norm_2 - 32f64.sqrt()).abs() < 1e-14);
        let Reason::Singular(Singularity::Inconsistent { parts: 1, least }) = reason else { panic!("{reason}") };
        assert!((least - 32f64.sqrt() / 40f64.sqrt()).abs() < 1e-15);
        // what has ended otherwise says so
        assert_eq!(reach.answer((Reason::MaxIters, found), |_| found).0, Reason::MaxIters);
    }
}
