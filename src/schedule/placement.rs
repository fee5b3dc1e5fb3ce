//! Which devices had better work, and with what shares: decided from numbers alone.
//!
//! An iteration of several ranks takes
//!
//! ```text
//! T = 0.4 m + max(0.6 m + halo, kernels of the slowest rank)
//! ```
//!
//! where m is their synchronisation latency, whatever they compute: the time of an iteration with next to nothing to do.
//! Six tenths of it pass beside kernels, if these take as long: the halo is on its way while they run. A device alone
//! synchronises with nobody. Kernels that meet while they run wait for sums and halos themselves:
//!
//! ```text
//! T = max(m, 0.6 m + kernels of the slowest rank + halo)
//! ```
//!
//! On two NVIDIA H100 (m was 19 µs; `poisson3d`, but for the last two, which are `variable:215` and `tetrahedra:100`):
//!
//! | | 64³ | 100³ | 120³ | 150³ | 215³ | 320³ | | |
//! |---|---|---|---|---|---|---|---|---|
//! | one | 11.7 | 23.1 | 44.6 | 85.2 | 239 | 773 | 452 | 578 |
//! | two: measured | 19–22 | 26–30 | 33–36 | 57–60 | 141–144 | 420–446 | 244 | 308 |
//! | two: by the rule | 19 | 26 | 38 | 61 | 145 | 429 | 251 | 310 |
//!
//! By the host, on four NVIDIA H200 (7-point operators, µs an iteration; m was about 80 of two, 120 of four):
//!
//! | | 64³ | 100³ | 215³ | 464³ |
//! |---|---|---|---|---|
//! | one | 11.8 | 24.6 | 213 | 2032 |
//! | two: measured | 61–89 | 83–90 | 140–152 | 1075 |
//! | two: by the rule | 80 | 80 | 139 | 1048 |
//! | four: measured | 98–132 | 114–142 | 126–156 | 566–579 |
//! | four: by the rule | 120 | 120 | 133 | 556 |

use crate::partition::ENTRY_BYTES;

/// The part of a latency in which no kernel runs; if kernels meet, that in which they wait.
const EXPOSED: f64 = 0.4;
const EXPOSED_LIVE: f64 = 0.6;

/// What the element of a halo takes in seconds: 8 bytes in each direction at 10 GB/s, the most that a link between devices takes;
/// between kernels that meet what the update takes longer for it.
const HALO: f64 = 1.6e-9;
const HALO_LIVE: f64 = 0.3e-9;

/// How ranks synchronise, with the latency in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Synchronization {
    /// A rank alone does not.
    Alone,
    /// By the host,
    Host(f64),
    /// or while kernels run.
    Live(f64),
}

/// No latency takes less, in seconds: a sum of kernels that run, and two barriers of their groups.
pub(crate) const LEAST_LATENCY: f64 = 14e-6;

/// The same where the host does it, between launches: two H200 take 50 µs or more, an H200 and the processor beside it 300.
pub(crate) const LEAST_BY_HOST: f64 = 40e-6;

/// Bytes that a GPU moves in each cycle of each of its units, at least, as far as one can tell beforehand: an NVIDIA H200
/// moves 18, an RTX 4090 3. To take a slower one for that fast costs little, as what it decides is about systems that are
/// small.
const LEAST_BYTES_A_CYCLE: f64 = 3.0;

/// Seconds of an iteration on ranks of which the slowest one takes `kernels` for its rows, and which have halos of so many elements.
pub(crate) fn seconds(kernels: f64, halo: f64, by: Synchronization) -> f64 {
    match by {
        Synchronization::Alone => kernels,
        Synchronization::Host(m) => EXPOSED * m + ((1.0 - EXPOSED) * m + HALO * halo).max(kernels),
        Synchronization::Live(m) => m.max(EXPOSED_LIVE * m + kernels + HALO_LIVE * halo),
    }
}

/// Whether ranks that share what takes one of them `alone` seconds at most can't be faster than it, whatever their latency.
pub(crate) fn is_enough(alone: f64, ranks: usize) -> bool {
    let least = LEAST_LATENCY.max(EXPOSED * LEAST_LATENCY + alone / ranks as f64);
    alone <= least
}

/// About the most seconds of an iteration of `work` on a GPU of so many units and MHz.
pub(crate) fn most_seconds(work: f64, units: u32, clock_mhz: u32) -> f64 {
    ENTRY_BYTES * work / (LEAST_BYTES_A_CYCLE * f64::from(units.max(1)) * f64::from(clock_mhz.max(1)) * 1e6)
}

/// How long a device takes for some work: a straight line through two measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed {
    /// Work and seconds, of next to nothing, of less and of more work; those that were not measured are like their
    /// neighbours.
    pub(crate) measured: [(f64, f64); 3],
}

impl Speed {
    /// In proportion to one measurement.
    pub(crate) fn proportional(work: f64, seconds: f64) -> Self {
        Self { measured: [(0.0, 0.0), (work, seconds), (work, seconds)] }
    }

    /// Seconds for `work`: on the line through what was measured on both sides of it, and beyond on that through the least
    /// and the most, which has the time of kernels that have nothing to do apart from that of the rows.
    pub(crate) fn seconds(&self, work: f64) -> f64 {
        if work <= 0.0 {
            return 0.0;
        }
        let [least, less, more] = self.measured;
        let line = |(w, short): (f64, f64), (v, long): (f64, f64)| {
            if v > w { short + (long - short) * (work - w) / (v - w) } else { long * work / v }
        };
        if work > more.0 {
            line(least, more)
        } else if work > less.0 {
            line(less, more)
        } else {
            line(least, less)
        }
    }
}

/// What a device takes at least: lines through measurements that other work disturbed may lead to 0 and below.
const LEAST_SECONDS: f64 = 1e-9;

/// What parts of `work` devices get so that all end at about the same time, and when the last one does.
pub(crate) fn shared(work: f64, speeds: &[Speed]) -> (Vec<f64>, f64) {
    let mut shares = vec![1.0 / speeds.len() as f64; speeds.len()];
    // what a device does in a second depends a little on its share
    for _ in 0..3 {
        let rates: Vec<f64> = shares
            .iter()
            .zip(speeds)
            .map(|(share, speed)| share * work / speed.seconds(share * work).max(LEAST_SECONDS))
            .collect();
        let all: f64 = rates.iter().sum();
        shares = rates.iter().map(|rate| rate / all).collect();
    }
    let slowest = shares.iter().zip(speeds).map(|(share, speed)| speed.seconds(share * work)).fold(0.0, f64::max);
    (shares, slowest)
}

/// What devices would take together for `work` if each took for its part of what it takes for all in proportion: what a launch takes besides, and
/// barriers among the groups of a small system, is in the latency of kernels that meet.
pub(crate) fn in_proportion(work: f64, speeds: &[Speed]) -> f64 {
    speeds.iter().map(|speed| speed.seconds(work).max(LEAST_SECONDS).recip()).sum::<f64>().recip()
}

/// Speeds of the same kind of device differ by more than that for a reason, and not as measurements do.
const DIFFERENT: f64 = 0.1;

/// Speeds that were measured in one solve, as the rows of others are to be cut by them: those of a kind, or of several ranks
/// of a device, are the same but for a reason. Rows that are cut as before are stored as before, without a new measurement.
pub(crate) fn steadied<K: PartialEq>(speeds: &[f64], kinds: &[K], devices: &[Option<usize>]) -> Vec<f64> {
    let mean = |speeds: &[f64], is_one: &dyn Fn(usize) -> bool| {
        let of_these: Vec<f64> = (0..speeds.len()).filter(|&k| is_one(k)).map(|k| speeds[k]).collect();
        of_these.iter().sum::<f64>() / of_these.len() as f64
    };
    let of_devices: Vec<f64> = devices.iter().map(|device| mean(speeds, &|k| devices[k] == *device)).collect();
    let of_kinds: Vec<f64> = kinds.iter().map(|kind| mean(&of_devices, &|k| kinds[k] == *kind)).collect();
    let differs = |k: usize| (of_devices[k] - of_kinds[k]).abs() > DIFFERENT * of_kinds[k];
    let is_alike = |kind: &K| !(0..kinds.len()).any(|k| kinds[k] == *kind && differs(k));
    (0..kinds.len()).map(|k| if is_alike(&kinds[k]) { of_kinds[k] } else { of_devices[k] }).collect()
}

/// How many of `all` devices may be worth a look: 1, 2, 3, 4, 6, 8, 12 and so on, and all.
pub(crate) fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2), |count| Some(2 * count));
    let smaller = [1].into_iter().chain(powers.flat_map(|count| [count, count + count / 2]));
    smaller.take_while(|&count| count < all).chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was measured on H200s: points along an edge, seconds on one, and with two and four the range in µs.
    const FACTS: [(f64, [f64; 2], [f64; 2]); 4] = [
        (11.8, [61.0, 89.0], [98.0, 132.0]),
        (24.6, [83.0, 90.0], [114.0, 142.0]),
        (213.0, [140.0, 152.0], [126.0, 156.0]),
        (2032.0, [1075.0, 1078.0], [566.0, 579.0]),
    ];

    #[test]
    fn disturbed_measurements_still_give_shares() {
        let falling = || Speed { measured: [(0.0, 1e-3), (1e5, 5e-4), (2e5, 1e-4)] };
        let (shares, seconds) = shared(1e6, &[falling(), falling()]);
        assert_eq!((shares, seconds), (vec![0.5; 2], 0.0));
        let (shares, _) = shared(1e6, &[falling(), Speed::proportional(1e6, 1e-2)]);
        assert!(shares.iter().all(|share| share.is_finite()) && shares[0] > 0.99, "{shares:?}");
    }

    #[test]
    fn the_model_on_h200s() {
        for (alone, two, four) in FACTS {
            // kernels of a quarter of 215³ took 85 µs rather than 53
            let quarter = if alone == 213.0 { 85.0 } else { alone / 4.0 };
            for (kernels, latency, [low, high]) in [(alone / 2.0, 80.0, two), (quarter, 120.0, four)] {
                let predicted = 1e6 * seconds(kernels * 1e-6, 0.0, Synchronization::Host(latency * 1e-6));
                assert!(predicted > 0.92 * low && predicted < 1.08 * high, "{predicted} in place of {low} to {high}");
            }
        }
    }

    #[test]
    fn the_best_number_of_h200s() {
        for ((alone, ..), best) in FACTS.into_iter().zip([1, 1, 4, 4]) {
            let quarter = if alone == 213.0 { 85.0 } else { alone / 4.0 };
            let of = |count: usize| match count {
                1 => seconds(alone * 1e-6, 0.0, Synchronization::Alone),
                2 => seconds(alone * 0.5e-6, 0.0, Synchronization::Host(80e-6)),
                _ => seconds(quarter * 1e-6, 0.0, Synchronization::Host(120e-6)),
            };
            let found = [1, 2, 4].into_iter().min_by(|&one, &other| of(one).total_cmp(&of(other)));
            assert_eq!(found, Some(best), "{alone} µs alone");
        }
        // kernels that meet on four devices may be worth it from some 20 µs on
        assert!(is_enough(11.8e-6, 4) && !is_enough(24.6e-6, 4) && !is_enough(213e-6, 2));
    }

    #[test]
    fn what_no_gpu_is_slower_than() {
        // 7-point 64³ on an H200: 3.6 million units of work in 11.8 µs
        let work = 6.95 * 262_144.0 + 7.0 * 262_144.0;
        assert!(most_seconds(work, 132, 1980) > 11.8e-6);
        assert!(is_enough(most_seconds(1000.0 * 12.0, 132, 1980), 8));
        assert!(most_seconds(1e6, 0, 0).is_finite());
    }

    #[test]
    fn halos_beyond_what_hides_count() {
        let of = |kernels: f64, halo| 1e6 * seconds(kernels * 1e-6, halo, Synchronization::Host(100e-6));
        assert!((of(10.0, 0.0) - 100.0).abs() < 1e-6);
        assert!((of(10.0, 18750.0) - 130.0).abs() < 1e-6);
        assert!((of(500.0, 18750.0) - 540.0).abs() < 1e-6);
    }

    /// Microseconds of one H100, elements of the halo, microseconds of two, of kernels that meet.
    const MET: [(f64, f64, [f64; 2]); 11] = [
        (11.7, 4096.0, [19.0, 22.0]),
        (23.1, 10_000.0, [26.0, 30.0]),
        (33.0, 12_100.0, [28.4, 28.4]),
        (44.6, 14_400.0, [33.0, 36.0]),
        (56.9, 16_900.0, [39.6, 41.3]),
        (85.2, 22_500.0, [56.6, 60.0]),
        (239.0, 46_225.0, [140.0, 147.0]),
        (773.0, 102_400.0, [420.0, 446.0]),
        (53.0, 10_000.0, [39.4, 40.7]),    // variable:100
        (452.0, 46_225.0, [244.0, 244.0]), // variable:215
        (50.6, 13_225.0, [39.7, 39.7]),    // jumps:115
    ];

    #[test]
    fn the_model_of_kernels_that_meet_on_h100s() {
        for (alone, halo, [low, high]) in MET {
            let of = |kernels: f64, by| 1e6 * seconds(kernels * 1e-6, halo, by);
            let (one, two) = (of(alone, Synchronization::Alone), of(alone / 2.0, Synchronization::Live(19e-6)));
            assert!(two > 0.9 * low && two < 1.15 * high, "{two} in place of {low} to {high}");
            // the better of both, or nearly
            assert!(low.min(alone) > 0.95 * if two < one { low } else { alone }, "{alone}: {one}, {two}");
        }
    }

    /// Two H200: µs of one on all rows, on half of them alone, elements of the halo, and what two took.
    #[test]
    fn kernels_that_meet_take_their_part() {
        for (alone, half, halo, two) in [
            (20.8, 13.3, 10_000.0, 26.3),
            (27.3, 17.6, 12_100.0, 28.7),
            (36.2, 22.4, 14_400.0, 32.1),
            (67.0, 28.7, 22_500.0, 52.4),
        ] {
            let speed = Speed { measured: [(0.0, 8e-6), (50.0, half * 1e-6), (100.0, alone * 1e-6)] };
            let speeds = [speed, speed];
            let kernels = shared(100.0, &speeds).1.min(in_proportion(100.0, &speeds));
            let predicted = 1e6 * seconds(kernels, halo, Synchronization::Live(19.5e-6));
            assert!((predicted - two).abs() < 0.12 * two, "{predicted} in place of {two}");
            assert_eq!(predicted < alone, two < alone, "{alone}: {predicted}");
        }
        assert_eq!(in_proportion(60.0, &[Speed::proportional(60.0, 3.0), Speed::proportional(60.0, 1.5)]), 1.0);
    }

    #[test]
    fn speeds_by_hand() {
        let speed = Speed { measured: [(0.0, 0.0), (100.0, 2.0), (200.0, 3.0)] };
        for (work, seconds) in [(50.0, 1.0), (100.0, 2.0), (150.0, 2.5), (200.0, 3.0), (400.0, 6.0), (0.0, 0.0)] {
            assert_eq!(speed.seconds(work), seconds, "{work}");
        }
        assert_eq!(Speed::proportional(10.0, 1.0).seconds(5.0), 0.5);
        // kernels that have nothing to do take 1
        let speed = Speed { measured: [(0.0, 1.0), (100.0, 3.0), (200.0, 5.0)] };
        for (work, seconds) in [(0.0, 0.0), (50.0, 2.0), (150.0, 4.0), (1000.0, 21.0)] {
            assert_eq!(speed.seconds(work), seconds, "{work}");
        }
        let three = [(1.0, 1.0), (1.0, 1.0), (1.0, 2.0)].map(|(work, seconds)| Speed::proportional(work, seconds));
        let (shares, last) = shared(100.0, &three);
        assert!(shares.iter().zip([0.4, 0.4, 0.2]).all(|(share, expected)| (share - expected).abs() < 1e-12));
        assert!((last - 40.0).abs() < 1e-9);
        assert_eq!(shared(7.0, &three[..1]), (vec![1.0], 7.0));
    }

    #[test]
    fn speeds_of_a_kind_are_the_same_but_for_a_reason() {
        let devices = [Some(1), Some(2), Some(0), Some(0), None];
        let kinds = ["gpu", "gpu", "cpu", "cpu", "host"];
        assert_eq!(steadied(&[9.5, 10.5, 1.0, 3.0, 4.0], &kinds, &devices), [10.0, 10.0, 2.0, 2.0, 4.0]);
        assert_eq!(steadied(&[6.0, 10.0, 1.0, 3.0, 4.0], &kinds, &devices), [6.0, 10.0, 2.0, 2.0, 4.0]);
        assert_eq!(steadied(&[], &[""; 0], &[]), [0.0; 0]);
    }

    #[test]
    fn numbers_of_devices() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(3), [1, 2, 3]);
        assert_eq!(counts(4), [1, 2, 3, 4]);
        assert_eq!(counts(5), [1, 2, 3, 4, 5]);
        assert_eq!(counts(17), [1, 2, 3, 4, 6, 8, 12, 16, 17]);
    }
}
