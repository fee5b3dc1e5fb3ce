//! What is kept of solves: how long each method took for a system, by its preconditioner.

use serde::{Deserialize, Serialize};

use super::now;
use super::ranks::{Kept, is_time};

/// The most methods and preconditioners of a system.
pub(crate) const MOST_TIMES: usize = 16;

/// A system, and all else that the time of a solve depends on, but for method and preconditioner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SolveKey {
    /// A hash of the matrix, by a sample of its rows.
    pub system: String,
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix.
    pub entries: u64,
    /// Precision, format and order of the rows by their names, a model of exchange that is not the usual one, and a hash of near-null
    /// vectors.
    pub options: String,
    /// Devices that could be chosen from, as in [`LatencyKey`](super::LatencyKey).
    pub devices: Vec<String>,
    /// Version of declive.
    pub declive: String,
}

/// How long a method took with a preconditioner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolveTime {
    /// Name of the method. It comes from a file, as the next one does: whoever uses it checks that there is such a thing.
    pub method: String,
    /// Name of the preconditioner.
    pub precond: String,
    /// Seconds to set the preconditioner up.
    pub set_up: f64,
    /// Seconds of the iterations.
    pub solve: f64,
    /// How many there were.
    pub iterations: u64,
    /// log₁₀ of how much smaller they have made ‖b − A x‖.
    pub decades: f64,
    /// Whether nobody has tried it: it is expected to take that.
    #[serde(default)]
    pub is_forecast: bool,
}

/// How long solves of a system took that met their test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolveEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: SolveKey,
    /// log₁₀ of how much smaller the last solve has made ‖b − A x‖.
    pub decades: f64,
    /// What is known, one for each method and preconditioner, the newest last; none where all were forgotten.
    pub times: Vec<SolveTime>,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl SolveEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: SolveKey, decades: f64, times: Vec<SolveTime>) -> Self {
        Self { key, decades, times, inserted: now() }
    }
}

impl SolveTime {
    /// Iterations and seconds of a solve that makes ‖b − A x‖ smaller by so many decades.
    #[must_use]
    pub fn scaled_to(&self, decades: f64) -> (u64, f64) {
        let part = decades / self.decades;
        ((self.iterations as f64 * part).round() as u64, self.set_up + self.solve * part)
    }
}

impl Kept for SolveEntry {
    type Key = SolveKey;
    const MOST: usize = 256;

    fn key(&self) -> &SolveKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        let are_decades = |decades: f64| decades.is_finite() && decades > 0.0;
        let is_sound = |time: &SolveTime| is_time(time.set_up) && is_time(time.solve) && are_decades(time.decades);
        are_decades(self.decades) && self.times.len() <= MOST_TIMES && self.times.iter().all(is_sound)
    }
}
