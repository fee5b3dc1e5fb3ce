//! What is kept of several devices together: how long they take to synchronise, and how fast each was in a solve.

use serde::{Deserialize, Serialize};

use super::now;
use crate::device::Info;
use crate::krylov::Method;
use crate::operator::Exchange;

/// Devices that synchronise in an iteration of `cg`, how, and by whom it was measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LatencyKey {
    /// Kind of each: see [`kinds`].
    pub devices: Vec<String>,
    /// `cg`, and the name of the model of exchange, if it is not the usual one. Older files may lack it, or have other methods.
    #[serde(default = "cg")]
    pub method: String,
    /// Version of declive, whose iterations these were.
    pub declive: String,
}

impl LatencyKey {
    /// For ranks of these devices, by a model of exchange; `None` is the host.
    #[must_use]
    pub fn new(exchange: Exchange, devices: &[Option<Info>]) -> Self {
        let method = format!("{}{}", cg(), unusual(exchange));
        Self { devices: kinds(devices), method, declive: env!("CARGO_PKG_VERSION").into() }
    }
}

/// A model of exchange as keys tell it: the usual one goes without saying.
pub(crate) fn unusual(exchange: Exchange) -> String {
    if exchange == Exchange::HostStaged { String::new() } else { format!(", {exchange}") }
}

fn cg() -> String {
    Method::Cg.name().into()
}

/// How long ranks take to synchronise in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyEntry {
    /// Who.
    #[serde(flatten)]
    pub key: LatencyKey,
    /// Seconds of an iteration with next to nothing to compute.
    pub seconds: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl LatencyEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: LatencyKey, seconds: f64) -> Self {
        Self { key, seconds, inserted: now() }
    }
}

/// A system, its method, and the devices that solved it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IterationTimeKey {
    /// A hash of the matrix, by a sample of its rows.
    pub system: String,
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix.
    pub entries: u64,
    /// Method, preconditioner, precision and format, and a model of exchange that is not the usual one, by their names.
    pub method: String,
    /// As in [`LatencyKey`].
    pub devices: Vec<String>,
    /// Version of declive.
    pub declive: String,
}

/// How fast the ranks of a solve were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationTimeEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: IterationTimeKey,
    /// The share of the work that each rank had, from 0 to 1.
    pub shares: Vec<f64>,
    /// Seconds of each rank's kernels an iteration with that share; 0 where it is not known.
    pub kernels: Vec<f64>,
    /// Seconds of an iteration; 0 where only kernels were timed.
    pub whole: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl IterationTimeEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: IterationTimeKey, shares: Vec<f64>, kernels: Vec<f64>, whole: f64) -> Self {
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

/// The kinds of the devices of ranks. A device that is a rank once more is of a kind of its own: two ranks synchronise otherwise on one
/// device than on two.
#[must_use]
pub fn kinds(devices: &[Option<Info>]) -> Vec<String> {
    let index = |device: &Option<Info>| device.as_ref().map(|device| device.index);
    let again = |k: usize| devices[..k].iter().any(|device| index(device) == index(&devices[k]));
    let named = |k| if again(k) { format!("again {}", kind(&devices[k])) } else { kind(&devices[k]) };
    (0..devices.len()).map(named).collect()
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

pub(super) fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

impl Kept for LatencyEntry {
    type Key = LatencyKey;
    const MOST: usize = 64;

    fn key(&self) -> &LatencyKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        is_time(self.seconds)
    }
}

impl Kept for IterationTimeEntry {
    type Key = IterationTimeKey;
    const MOST: usize = 256;

    fn key(&self) -> &IterationTimeKey {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn ranks_of_one_device_are_not_those_of_two() {
        let device = list().devices.remove(0);
        let mut other = device.clone();
        other.index += 1;
        let [one, two] = [Some(device), Some(other)];
        let alike = kinds(&[one.clone(), two.clone()]);
        assert!(alike[0] == alike[1] && alike[0] == kind(&one));
        let same = kinds(&[one.clone(), one.clone(), two]);
        assert_eq!([&same[0], &same[2]], [&alike[0]; 2]);
        assert_eq!(same[1], format!("again {}", alike[0]));
        let of = |exchange| LatencyKey::new(exchange, &[one.clone(), None]);
        assert_eq!(of(Exchange::HostStaged).method, "cg");
        assert_eq!(of(Exchange::HostCopied).method, "cg, host-copied");
    }
}
