//! What is kept of several devices together: what it costs them to meet, and how fast each was in a solve.

use serde::{Deserialize, Serialize};

use super::now;
use crate::device::Info;
use crate::solver::Method;

/// Devices that meet, in which method, and by whom it was measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MeetingKey {
    /// Kind of each: see [`kind`].
    pub devices: Vec<String>,
    /// Name of the method; where an older file lacks it, that of `cg`.
    #[serde(default = "cg")]
    pub method: String,
    /// Version of declive, whose iterations these were.
    pub declive: String,
}

impl MeetingKey {
    /// For ranks of these devices, by a method that ranks know; `None` is the host.
    #[must_use]
    pub fn new(method: Method, devices: &[Option<Info>]) -> Self {
        let (method, declive) = (method.name().into(), env!("CARGO_PKG_VERSION").into());
        Self { devices: devices.iter().map(kind).collect(), method, declive }
    }
}

fn cg() -> String {
    Method::Cg.name().into()
}

/// What ranks need to meet in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeetingEntry {
    /// Who.
    #[serde(flatten)]
    pub key: MeetingKey,
    /// Seconds of an iteration with next to nothing to compute.
    pub seconds: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl MeetingEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: MeetingKey, seconds: f64) -> Self {
        Self { key, seconds, inserted: now() }
    }
}

/// A system, its method, and the devices that solved it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PaceKey {
    /// A hash of the matrix, by a sample of its rows.
    pub system: String,
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix.
    pub entries: u64,
    /// Method, preconditioner, precision and format, by their names.
    pub method: String,
    /// As in [`MeetingKey`].
    pub devices: Vec<String>,
    /// Version of declive.
    pub declive: String,
}

/// How fast the ranks of a solve were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaceEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: PaceKey,
    /// The share of the work that each rank had, from 0 to 1.
    pub shares: Vec<f64>,
    /// Seconds of each rank's kernels an iteration with that share; 0 where it is not known.
    pub kernels: Vec<f64>,
    /// Seconds of an iteration; 0 where only kernels were timed.
    pub whole: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl PaceEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: PaceKey, shares: Vec<f64>, kernels: Vec<f64>, whole: f64) -> Self {
        Self { key, shares, kernels, whole, inserted: now() }
    }

    /// The speed of each rank, in parts of the system a second; `None` if it is not known of all that worked.
    #[must_use]
    pub fn speeds(&self) -> Option<Vec<f64>> {
        let speed = |(share, seconds): (&f64, &f64)| match (*share > 0.0, *seconds > 0.0) {
            (true, true) => Some(share / seconds),
            (true, false) => None,
            (false, _) => Some(0.0),
        };
        self.shares.iter().zip(&self.kernels).map(speed).collect()
    }
}

/// The kind of a device: those of one kind are equally fast.
#[must_use]
pub fn kind(device: &Option<Info>) -> String {
    match device {
        Some(device) => {
            let Info { name, driver, platform, compute_units, kind, .. } = device;
            format!("{name}; {kind}, {compute_units} units; {platform}; driver {driver}")
        }
        None => format!("host, {} threads", rayon::current_num_threads()),
    }
}

/// An entry that belongs to a key, and makes sense or not: files can be edited.
pub(super) trait Kept: for<'de> Deserialize<'de> + Clone {
    type Key: Ord + Clone;
    /// The most of a device.
    const MOST: usize;

    fn key(&self) -> &Self::Key;
    fn inserted(&mut self) -> &mut u64;
    fn makes_sense(&self) -> bool;
}

fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

impl Kept for MeetingEntry {
    type Key = MeetingKey;
    const MOST: usize = 64;

    fn key(&self) -> &MeetingKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        is_time(self.seconds)
    }
}

impl Kept for PaceEntry {
    type Key = PaceKey;
    const MOST: usize = 256;

    fn key(&self) -> &PaceKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        let count = self.key.devices.len();
        let whole: f64 = self.shares.iter().sum();
        (self.shares.len(), self.kernels.len()) == (count, count)
            && self.shares.iter().chain(&self.kernels).all(|part| is_time(*part))
            && is_time(self.whole)
            && whole > 0.0
            && whole.is_finite()
    }
}
