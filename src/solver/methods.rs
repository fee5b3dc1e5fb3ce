//! Which method several ranks had better follow: decided from numbers alone.
//!
//! Methods that have A p by recurrence move more than `cg`, and may need less to meet. What an iteration of one takes longer
//! than one of `cg` is, by the model of [`placement`],
//!
//! ```text
//! T(q kernels, halo, m) − T(kernels, halo, m of cg)
//! ```
//!
//! with the kernels of `cg`, the bytes q that an iteration moves in proportion to one of `cg`, and what ranks need to meet in
//! either. So another method may pay where kernels are short beside meetings. On two NVIDIA H200 (7-point operators, µs an
//! iteration):
//!
//! | | 64³ | 150³ | 215³ |
//! |---|---|---|---|
//! | `cg` | 56–73 | 66–73 | 122–128 |
//! | `cg-single-reduction` | 66–68 | 80 | 158 |
//! | `cg-pipelined` | 64–100 | 97 | 205 |

use super::placement::{self, LEAST_MEETING};
use super::{Method, Precision};

/// The part of the time by `cg` that another method has to save: less may be noise, and `cg` is the most robust.
const WORTH: f64 = 0.05;

/// Iterations of `cg-pipelined` for one of `cg`, at most: see docs/architecture.md.
const PIPELINED: f64 = 1.1;

/// A method that was considered, and the time of an iteration that it was expected to take.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MethodTime {
    /// The method.
    pub method: Method,
    /// Seconds of an iteration.
    pub seconds: f64,
    /// Whether a former solve took so long, so that nothing had to be predicted.
    pub is_remembered: bool,
}

impl MethodTime {
    pub(super) fn new(method: Method, seconds: f64, is_remembered: bool) -> Self {
        Self { method, seconds, is_remembered }
    }

    /// Seconds for what one iteration of `cg` gains.
    fn cost(&self) -> f64 {
        iterations(self.method) * self.seconds
    }
}

/// Methods that several ranks may follow in place of `cg`. With true residuals in between, as mixed precision has them, those
/// that have A p by recurrence may take many times the iterations; in single precision, `cg-pipelined` may not converge.
pub(super) fn others(precision: Precision) -> &'static [Method] {
    match precision {
        Precision::F64 => &[Method::CgSingleReduction, Method::CgPipelined],
        Precision::F32 => &[Method::CgSingleReduction],
        Precision::Mixed => &[],
    }
}

/// Iterations for one of `cg`.
pub(super) fn iterations(method: Method) -> f64 {
    if method == Method::CgPipelined { PIPELINED } else { 1.0 }
}

/// An iteration of `cg` on several ranks, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Iteration {
    /// The slowest rank's kernels.
    pub(super) kernels: f64,
    pub(super) halo: f64,
    /// What the ranks need to meet.
    pub(super) meeting: f64,
    /// All of it, as it was predicted or measured.
    pub(super) seconds: f64,
}

impl Iteration {
    /// As the model has it.
    pub(super) fn predicted(kernels: f64, halo: f64, meeting: f64) -> Self {
        Self { kernels, halo, meeting, seconds: placement::seconds(kernels, halo, Some(meeting)) }
    }

    /// The same by a method that moves `moved` times as much, and whose ranks need `meeting` to meet.
    pub(super) fn by(&self, moved: f64, meeting: f64) -> f64 {
        let model = |kernels, meeting| Self::predicted(kernels, self.halo, meeting).seconds;
        let longer = model(moved * self.kernels, meeting) - model(self.kernels, self.meeting);
        (self.seconds + longer).max(moved * self.kernels)
    }

    /// Whether a method that moves `moved` times as much would pay if its ranks met as fast as any.
    pub(super) fn may_gain(&self, method: Method, moved: f64) -> bool {
        let least = self.by(moved, LEAST_MEETING.min(self.meeting));
        iterations(method) * least < (1.0 - WORTH) * self.seconds
    }
}

/// The best of `cg` and others.
pub(super) fn best(cg: MethodTime, others: &[MethodTime]) -> MethodTime {
    let best = others.iter().min_by(|one, other| one.cost().total_cmp(&other.cost()));
    best.filter(|best| best.cost() < (1.0 - WORTH) * cg.cost()).copied().unwrap_or(cg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::Precond;

    const SINGLE: Method = Method::CgSingleReduction;
    const PIPE: Method = Method::CgPipelined;

    /// What a 7-point operator moves in proportion to `cg`, where no entry is stored: 18 bytes a row in the product.
    fn moved(method: Method) -> f64 {
        let of = |method: Method| (18 + 8 * method.vectors_moved(Precond::None, false)) as f64;
        of(method) / of(Method::Cg)
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-3 * other
    }

    #[test]
    fn bytes_by_hand() {
        assert!(near(moved(SINGLE), 90.0 / 66.0) && near(moved(PIPE), 122.0 / 66.0));
        let of = |method: Method| [false, true].map(|scaled| method.vectors_moved(Precond::Jacobi, scaled));
        assert_eq!([Method::Cg, SINGLE, PIPE, Method::CgClassic].map(of), [[6, 7], [9, 10], [13, 14], [18, 18]]);
    }

    /// Two H200s, that need 71 µs to meet by `cg`, 66 by `cg-single-reduction` and 90 by `cg-pipelined`.
    #[test]
    fn the_best_method_of_h200s() {
        let (cg, single, pipe) = (71e-6, 66e-6, 90e-6);
        let choose = |kernels: f64, seconds: Option<f64>| {
            let predicted = Iteration::predicted(1e-6 * kernels, 0.0, cg);
            let one = Iteration { seconds: seconds.map_or(predicted.seconds, |micros| 1e-6 * micros), ..predicted };
            let time = |(method, meeting)| MethodTime::new(method, one.by(moved(method), meeting), false);
            let others = [(SINGLE, single), (PIPE, pipe)].map(time);
            let gains = [SINGLE, PIPE].map(|method| one.may_gain(method, moved(method)));
            let times = [one.seconds, others[0].seconds, others[1].seconds].map(|seconds| 1e6 * seconds);
            (times, gains, best(MethodTime::new(Method::Cg, one.seconds, seconds.is_some()), &others).method)
        };
        // 64³: meetings alone
        let (times, gains, method) = choose(6.0, None);
        assert!(near(times[0], 71.0) && near(times[1], 66.0) && near(times[2], 90.0), "{times:?}");
        assert_eq!((gains, method), ([true, true], SINGLE));
        // 150³: 0.4 · 66 + 1.364 · 39.5; what cg took beyond the model, others take, too
        let (times, gains, method) = choose(39.5, None);
        assert!(near(times[0], 71.0) && near(times[1], 80.26), "{times:?}");
        assert_eq!((gains, method), ([false, false], Method::Cg));
        let (times, _, method) = choose(39.5, Some(81.0));
        assert!(near(times[1], 90.26), "{times:?}");
        assert_eq!(method, Method::Cg);
        // 215³: nothing that meetings could save is as much as the bytes
        let (times, gains, method) = choose(106.5, None);
        assert!(near(times[0], 134.9) && near(times[1], 171.63) && near(times[2], 232.86), "{times:?}");
        assert_eq!((gains, method), ([false, false], Method::Cg));
    }

    #[test]
    fn little_is_not_worth_it() {
        let time = |method, seconds| MethodTime::new(method, seconds, true);
        let choose = |cg: f64, single: f64, pipe: f64| {
            best(time(Method::Cg, cg), &[time(SINGLE, single), time(PIPE, pipe)]).method
        };
        assert_eq!(choose(100.0, 95.1, 100.0), Method::Cg);
        assert_eq!(choose(100.0, 94.9, 100.0), SINGLE);
        // a tenth more iterations
        assert_eq!(choose(100.0, 94.9, 86.3), SINGLE);
        assert_eq!(choose(100.0, 100.0, 86.4), Method::Cg);
        assert_eq!(choose(100.0, 94.9, 86.0), PIPE);
        assert_eq!(best(time(Method::Cg, 1.0), &[]), time(Method::Cg, 1.0));
    }

    #[test]
    fn meetings_that_are_fast_leave_nothing_to_gain() {
        assert!(!Iteration::predicted(1e-6, 0.0, 30e-6).may_gain(SINGLE, 1.0));
        assert!(!Iteration::predicted(1e-6, 0.0, 41e-6).may_gain(SINGLE, 1.0));
        assert!(Iteration::predicted(1e-6, 0.0, 60e-6).may_gain(SINGLE, 1.0));
        // halos are the same by all
        assert!(!Iteration::predicted(1e-6, 1e-3, 60e-6).may_gain(SINGLE, 1.0));
    }
}
