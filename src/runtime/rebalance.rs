//! Whether the ranks of a running solve had better share the rows otherwise: decided from the seconds that each rank's
//! kernels take an iteration, which all ranks compare now and then, and so decide alike.
//!
//! To move rows costs about what setting up the ranks did. So they are moved once what uneven shares have cost so far is
//! more than that (the rule of who may rent or buy, and doesn't know for how long: at most twice the cost of the best
//! decision, Karlin et al. 1988, doi 10.1007/BF01762111).

/// Iterations after those whose kernels are timed, when the ranks compare: 6, 70, 134, 262 and so on.
const FIRST: u64 = 6;
const EVERY: u64 = 64;

/// The part of an iteration's time that other shares must save.
const WORTH: f64 = 0.1;

/// The part by which a device alone must be faster than all together.
const WORTH_ALONE: f64 = 0.03;

/// Seconds that moving rows is taken to cost, at least: so little may be lost to noise.
pub(crate) const LEAST_MOVING: f64 = 0.02;

/// How often rows are moved in a solve, at most.
pub(crate) const MOVES: u32 = 3;

/// What is known of the ranks when they are watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Balance {
    /// The work of each rank's rows: see [`cost`](crate::partition::cost).
    pub(crate) costs: Vec<f64>,
    /// Which ranks may be left alone with the whole system, as they can hold it and others need not be used.
    pub(crate) can_be_alone: Vec<bool>,
    /// Seconds that it takes to move rows.
    pub(crate) moving: f64,
    /// Seconds of each rank's kernels for each unit of its work, in place of those that are measured.
    #[cfg(test)]
    pub(crate) injected: Option<Vec<f64>>,
}

/// What the ranks have measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IterationTimes {
    /// Seconds of each rank's kernels an iteration.
    pub(crate) kernels: Vec<f64>,
    /// Seconds of an iteration.
    pub(crate) whole: f64,
}

/// Seconds of each rank's kernels, from those of its kernels that do not wait for other ranks, and of those that do: of these there is
/// as much for each second of the former as with the rank that waits least.
pub(crate) fn without_waits(own: &[f64], waiting: &[f64]) -> Vec<f64> {
    let least = own.iter().zip(waiting).filter(|(own, _)| **own > 0.0).map(|(own, waiting)| waiting / own);
    let least = least.fold(f64::INFINITY, f64::min);
    own.iter().map(|own| if *own > 0.0 { own * (1.0 + least) } else { *own }).collect()
}

/// Whether ranks compare in this iteration of a run.
pub(crate) fn is_time(iteration: u64) -> bool {
    match iteration.checked_sub(FIRST) {
        Some(0) => true,
        Some(later) => later.is_multiple_of(EVERY) && (later / EVERY).is_power_of_two(),
        None => false,
    }
}

impl Balance {
    /// The shares that the ranks should have, if the time of so many iterations would have paid for the move.
    pub(crate) fn better_shares(&self, times: &IterationTimes, iterations: u64) -> Option<Vec<f64>> {
        let works = |k: &usize| self.costs[*k] > 0.0;
        let ranks: Vec<usize> = (0..self.costs.len()).filter(works).collect();
        let is_known = |k: &usize| times.kernels[*k].is_finite() && times.kernels[*k] > 0.0;
        if !times.whole.is_finite() || !ranks.iter().all(is_known) {
            return None;
        }
        let slowest = ranks.iter().map(|&k| times.kernels[k]).fold(0.0, f64::max);
        let now = times.whole.max(slowest); // a device's clock may differ from the host's
        let is_paid = |saved: f64, least: f64| saved > least * now && saved * iterations as f64 > self.moving;
        let whole: f64 = self.costs.iter().sum();
        let speed = |k: usize| if works(&k) { self.costs[k] / times.kernels[k] } else { 0.0 };
        let speeds: Vec<f64> = (0..self.costs.len()).map(speed).collect();

        let alone = ranks.iter().copied().filter(|&k| self.can_be_alone[k]);
        if let Some(fastest) = alone.max_by(|&one, &other| speeds[one].total_cmp(&speeds[other]))
            && ranks.len() > 1
            && is_paid(times.whole - whole / speeds[fastest], WORTH_ALONE)
        {
            return Some((0..self.costs.len()).map(|k| f64::from(u8::from(k == fastest))).collect());
        }
        let balanced = whole / speeds.iter().sum::<f64>();
        is_paid(slowest - balanced, WORTH).then_some(speeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_compare_after_samples() {
        let times: Vec<u64> = (0..1100).filter(|&iteration| is_time(iteration)).collect();
        assert_eq!(times, [6, 70, 134, 262, 518, 1030]);
    }

    #[test]
    fn waits_are_not_work() {
        assert_eq!(without_waits(&[2.0, 1.0], &[0.0, 0.0]), [2.0, 1.0]);
        // both take 6 s in all, as the second waits for the first
        assert_eq!(without_waits(&[2.0, 1.0], &[4.0, 5.0]), [6.0, 3.0]);
        // whose kernels all wait, or who has none, is not known
        assert_eq!(without_waits(&[0.0, 1.0], &[4.0, 2.0]), [0.0, 3.0]);
        assert!(without_waits(&[f64::NAN, 1.0], &[f64::NAN, 2.0])[0].is_nan());
    }

    fn balance(costs: &[f64], moving: f64, can_be_alone: bool) -> Balance {
        let alone = vec![can_be_alone; costs.len()];
        Balance { costs: costs.to_vec(), can_be_alone: alone, moving, injected: None }
    }

    #[test]
    fn uneven_ranks_by_hand() {
        // the second is three times as slow: 3 s an iteration in place of 1.5
        let two = balance(&[100.0, 100.0], 60.0, false);
        let times = IterationTimes { kernels: vec![1.0, 3.0], whole: 3.2 };
        assert_eq!(two.better_shares(&times, 40), None, "40 × 1.5 s are not more than 60 s");
        assert_eq!(two.better_shares(&times, 41), Some(vec![100.0, 100.0 / 3.0]));
        // a tenth of the iteration is the least
        assert_eq!(two.better_shares(&IterationTimes { whole: 16.0, ..times.clone() }, 10_000), None);
        let even = IterationTimes { kernels: vec![1.0, 1.1], whole: 1.2 };
        assert_eq!(two.better_shares(&even, 1_000_000), None);
        // whoever has no rows has no speed, and gets none
        let idle = balance(&[100.0, 0.0, 100.0], 0.0, false);
        let times = IterationTimes { kernels: vec![1.0, f64::NAN, 3.0], whole: 3.2 };
        assert_eq!(idle.better_shares(&times, 1), Some(vec![100.0, 0.0, 100.0 / 3.0]));
        // nothing is decided without a number of each
        for kernels in [vec![f64::NAN, 3.0], vec![0.0, 3.0]] {
            assert_eq!(two.better_shares(&IterationTimes { kernels, whole: 3.0 }, 1_000_000), None);
        }
    }

    #[test]
    fn a_device_that_is_faster_alone() {
        // each takes 10 µs, and to synchronise 90: alone, either would take 20
        let times = IterationTimes { kernels: vec![1e-5, 1e-5], whole: 1e-4 };
        let two = balance(&[5.0, 5.0], 8e-3, true);
        assert_eq!(two.better_shares(&times, 100), None);
        assert_eq!(two.better_shares(&times, 101).unwrap().iter().filter(|share| **share > 0.0).count(), 1);
        assert_eq!(balance(&[5.0, 5.0], 8e-3, false).better_shares(&times, 101), None);
        // by less than 3 %: all stay
        let near = IterationTimes { kernels: vec![1e-5, 1e-5], whole: 2.05e-5 };
        assert_eq!(two.better_shares(&near, 1_000_000), None);
        // the faster of the two
        let times = IterationTimes { kernels: vec![2e-5, 1e-5], whole: 1e-4 };
        assert_eq!(two.better_shares(&times, 1000), Some(vec![0.0, 1.0]));
        // one that is alone stays
        let one = balance(&[5.0], 0.0, true);
        assert_eq!(one.better_shares(&IterationTimes { kernels: vec![1e-5], whole: 1.0 }, 1000), None);
    }
}
