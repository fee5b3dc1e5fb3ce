//! Sets of devices: what was expected of them, and what is said of those that were not taken.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use super::placement::LEAST_LATENCY;
use crate::device::Info;
use crate::matrix::Csr;
use crate::partition::row_ranges_by;
use crate::runtime::ShareSource;
use crate::timing::in_microseconds;

/// Entries of a sample on which a device's speed is measured, at most.
const SAMPLE: usize = 32 << 20;

/// A set of devices that was considered, and the time of an iteration that it was expected to take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceSet {
    /// Numbers of the devices in `declive devices`; none for the host.
    pub devices: Vec<Option<usize>>,
    /// Seconds of an iteration. In JSON, microseconds.
    #[serde(rename = "microseconds_per_iteration", serialize_with = "in_microseconds")]
    pub seconds: f64,
    /// Whether a former solve took so long, so that nothing had to be predicted.
    #[serde(rename = "remembered")]
    pub is_remembered: bool,
}

/// What was expected of a solve before it began.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// Seconds of an iteration, if anything is known. In JSON, microseconds.
    #[serde(rename = "microseconds_per_iteration", serialize_with = "in_microseconds")]
    pub seconds: Option<f64>,
    /// The sets of devices that were compared, if there was a choice.
    pub considered: Vec<DeviceSet>,
    /// Time that it took to measure what the decision needs.
    #[serde(skip)]
    pub time: Duration,
}

/// A set of devices, its shares and its time.
pub(crate) struct Prediction {
    pub(crate) devices: Vec<Option<Info>>,
    pub(crate) shares: Vec<f64>,
    pub(crate) source: ShareSource,
    /// Seconds of the slowest rank's kernels.
    pub(crate) kernels: f64,
    pub(crate) latency: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) is_remembered: bool,
}

pub(crate) fn uses(prediction: &Prediction, device: &Info) -> bool {
    prediction.devices.iter().flatten().any(|used| used.index == device.index)
}

pub(crate) fn set_of(prediction: &Prediction) -> DeviceSet {
    DeviceSet {
        devices: prediction.devices.iter().map(|device| device.as_ref().map(|device| device.index)).collect(),
        seconds: prediction.seconds,
        is_remembered: prediction.is_remembered,
    }
}

pub(crate) fn micros(seconds: f64) -> String {
    let digits = if seconds < 100e-6 { 1 } else { 0 };
    format!("{:.digits$} µs", 1e6 * seconds)
}

/// Why others are not used where one device is enough.
pub(crate) fn small_reason() -> String {
    format!("an iteration takes one device less than several take to synchronise: {} at least", micros(LEAST_LATENCY))
}

/// Why a set that has a device is not taken.
pub(crate) fn why_not(chosen: &Prediction, with: Option<&Prediction>) -> String {
    let Some(with) = with else {
        return format!("the others take {} an iteration, which more could hardly save", micros(chosen.seconds));
    };
    let saved = micros((chosen.kernels - with.kernels).max(0.0));
    let so = format!("{} with it in place of {}", micros(with.seconds), micros(chosen.seconds));
    match with.latency {
        Some(latency) => format!(
            "an iteration would take {so}: kernels take {saved} less, but {} ranks take {} to synchronise",
            with.devices.len(),
            micros(latency)
        ),
        None => format!("an iteration takes {so}, as a former solve showed"),
    }
}

/// Rows from the middle that have a part of the work, but no more entries than a sample needs.
pub(crate) fn sample(a: &Csr, parts: f64) -> Range<usize> {
    let parts = parts.max(a.nnz() as f64 / SAMPLE as f64).max(1.0);
    let beside = (1.0 - 1.0 / parts) / 2.0;
    row_ranges_by(a, &[beside, 1.0 / parts, beside]).swap_remove(1)
}
