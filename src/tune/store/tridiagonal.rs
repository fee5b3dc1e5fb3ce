//! What is kept of batches of tridiagonal systems: the fastest method.

use serde::{Deserialize, Serialize};

use super::now;
use super::ranks::{Kept, is_time};

/// All that the fastest method depends on, beside the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TridiagonalKey {
    /// Type of the elements in OpenCL C.
    pub element: String,
    /// Version of the device's driver.
    pub driver: String,
    /// [`source_hash`](super::source_hash) of what the kernels are compiled from.
    pub sources: String,
    /// How systems lie in memory.
    pub layout: String,
    /// ⌊log₂⌋ of the number of systems,
    pub systems: u32,
    /// and of the rows of each.
    pub size: u32,
}

/// The method that was fastest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TridiagonalEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: TridiagonalKey,
    /// Its name. It comes from a file: whoever uses it looks whether the device can have it.
    pub method: String,
    /// What it took, in seconds.
    pub seconds: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl TridiagonalEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: TridiagonalKey, method: &str, seconds: f64) -> Self {
        Self { key, method: method.into(), seconds, inserted: now() }
    }
}

impl Kept for TridiagonalEntry {
    type Key = TridiagonalKey;
    const MOST: usize = 256;

    fn key(&self) -> &TridiagonalKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        is_time(self.seconds)
    }
}
