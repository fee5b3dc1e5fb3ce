//! What is kept of blocks of rows: their fastest formats.

use serde::{Deserialize, Serialize};

use super::now;
use super::ranks::Kept;
use crate::timing::Timing;

/// The most blocks of rows whose formats are kept of a device.
const MAX_FORMATS: usize = 256;

/// A block of rows, and all else that the times of its formats depend on, beside the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FormatKey {
    /// Type of the elements in OpenCL C.
    pub element: String,
    /// Type of the sums in OpenCL C.
    pub sum: String,
    /// Rows of the block.
    pub rows: u64,
    /// Entries of the block.
    pub entries: u64,
    /// A hash of the block, by a sample of its rows.
    pub block: String,
    /// Version of the device's driver.
    pub driver: String,
    /// [`source_hash`](super::source_hash) of what the products are compiled from.
    pub sources: String,
    /// Options of the compiler, but for those that set launch parameters.
    pub options: String,
}

/// A format that was considered for a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormatTime {
    /// Name of the format.
    pub format: String,
    /// Bytes that a product reads and writes.
    pub bytes: u64,
    /// The time of a product, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// The format of a block of rows, as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormatEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: FormatKey,
    /// Name of the format that was taken. It comes from a file: whoever uses it checks that the rows fit it.
    pub format: String,
    /// What it was compared with, itself among them.
    pub candidates: Vec<FormatTime>,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl FormatEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: FormatKey, format: &str, candidates: Vec<FormatTime>) -> Self {
        Self { key, format: format.into(), candidates, inserted: now() }
    }
}

impl Kept for FormatEntry {
    type Key = FormatKey;
    const MOST: usize = MAX_FORMATS;

    fn key(&self) -> &FormatKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        let is_time = |t: &Timing| [t.low, t.median, t.high].iter().all(|time| time.is_finite() && *time >= 0.0);
        self.candidates.iter().any(|candidate| candidate.format == self.format)
            && self.candidates.iter().filter_map(|candidate| candidate.timing.as_ref()).all(is_time)
    }
}
