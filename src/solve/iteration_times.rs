//! How fast ranks were, kept for later solves.

use super::statistics::Statistics;
use crate::runtime::{Ranks, Whole};
use crate::tune::Tune;
use crate::tune::store::{Device, IterationTimeEntry};

/// Iterations that tell how long one takes.
const ENOUGH: u64 = 20;

/// A part by which what is remembered may differ from what was measured.
const SAME: f64 = 0.05;

/// Keeps how fast the ranks were at the end of a solve, if others could have been chosen, and it may be measured.
pub(crate) fn remember(whole: &Whole, ranks: &Ranks, statistics: &Statistics) {
    let iterations = statistics.iterations - statistics.done;
    if iterations < ENOUGH || !statistics.moves.is_empty() {
        return; // of what was moved, the next solve will tell
    }
    let kernels = match statistics.split.as_slice() {
        [alone] => vec![alone.kernels.as_secs_f64() / iterations as f64],
        // kernels that do several iterations in a launch are not timed
        ranks => {
            statistics.iteration_times.as_ref().map_or_else(|| vec![0.0; ranks.len()], |times| times.kernels.clone())
        }
    };
    let mean = statistics.solve.as_secs_f64() / iterations as f64;
    keep(whole, ranks, kernels, statistics.iteration_seconds.unwrap_or(mean));
}

/// The same from what is measured in the course of it.
pub(crate) fn keep(whole: &Whole, ranks: &Ranks, mut kernels: Vec<f64>, seconds: f64) {
    let devices = &ranks.placement.devices;
    let is_usual = whole.setup.shares.is_none() && !whole.setup.applies_given();
    let measures = matches!(whole.setup.tune, Tune::Quick | Tune::Full) && is_usual;
    let Some(owner) = devices.iter().flatten().next().map(Device::from) else { return };
    let Some(key) = whole.known_iteration_time_key(devices).filter(|_| measures && kernels.len() == devices.len())
    else {
        return;
    };
    kernels.iter_mut().filter(|seconds| !seconds.is_finite()).for_each(|seconds| *seconds = 0.0);
    let shares: Vec<f64> = ranks.infos.iter().map(|info| info.share).collect();
    let is_near = |one: f64, other: f64| (one - other).abs() <= SAME * one.abs().max(other.abs());
    let is_known = whole.store.load(&owner).iteration_time(&key).is_some_and(|known| {
        is_near(known.whole, seconds) && known.shares.iter().zip(&shares).all(|(&one, &other)| is_near(one, other))
    });
    if !is_known {
        whole.store.insert_iteration_time(&owner, IterationTimeEntry::new(key, shares, kernels, seconds));
    }
}
