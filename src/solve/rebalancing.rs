//! Rows that go to other ranks in the course of a solve.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::iteration_times;
use super::recovery::{DeviceFailure, open};
use super::statistics::Statistics;
use crate::device::Rejected;
use crate::error::{Error, Result};
use crate::runtime::{Placement, Ranks, ShareSource, Whole};

/// Opens the ranks anew, with shares of the rows as given. Those that have none any more are left out.
pub(crate) fn share_anew(
    whole: &Whole,
    ranks: &mut Ranks,
    failures: &mut Vec<DeviceFailure>,
    shares: &[f64],
    statistics: &mut Statistics,
) -> Result<()> {
    let start = Instant::now();
    let former = ranks.placement.clone();
    let had_rows = |k: usize| !former.rows[k].is_empty();
    let several = shares.iter().filter(|share| **share > 0.0).count() > 1;
    let kept: Vec<usize> = (0..shares.len()).filter(|&k| shares[k] > 0.0 || several && !had_rows(k)).collect();
    let all: f64 = shares.iter().sum();
    let shares: Vec<f64> = shares.iter().map(|share| share / all).collect();
    let devices: Vec<_> = kept.iter().map(|&k| former.devices[k].clone()).collect();
    let of_kept: Vec<f64> = kept.iter().map(|&k| shares[k]).collect();
    log::info!("after {} iterations, rows are shared as {shares:?}", statistics.iterations);

    let mut left_out = std::mem::take(&mut ranks.left_out);
    let known = left_out.len();
    for device in (0..shares.len()).filter(|k| !kept.contains(k)).filter_map(|k| former.devices[k].clone()) {
        let reason =
            format!("the others are faster without it, as the first {} iterations showed", statistics.iterations);
        left_out.push(Rejected { device, reason });
    }
    if let Some(known) = statistics.iteration_times.clone() {
        iteration_times::keep(whole, ranks, known.kernels, known.whole);
    }
    #[cfg(test)]
    let altered = ranks.altered;
    ranks.close(); // what is on the devices now would be in the way
    let rows = whole.rows()?;
    let ranges = whole.row_ranges(&rows, &of_kept, &devices);
    let placement = Placement { devices, rows: ranges, source: ShareSource::Measured };
    let count = former.devices.len();
    let is_tuned = AtomicBool::new(true); // for blocks of about this size, if at all
    let moved = Ranks::open(whole, Some(Arc::clone(&rows)), placement, Some(&is_tuned));
    let is_moved = moved.is_ok();
    *ranks = match moved {
        Ok(moved) => moved,
        Err(failed) => {
            log::warn!("rows stay where they were: {}", Error::from(failed));
            left_out.truncate(known);
            open(whole, rows, former, failures, Some(&is_tuned))?
        }
    };
    ranks.left_out = left_out;
    #[cfg(test)]
    {
        ranks.altered = altered;
    }
    statistics.reopened(is_moved.then_some((shares, &kept)), start.elapsed());
    if !is_moved && ranks.placement.devices.len() < count {
        statistics.forget_ranks(); // a device has failed, and others go on
    }
    Ok(())
}
