//! What is kept of the product of dense matrices: its best tiles.

use serde::{Deserialize, Serialize};

use super::now;
use super::ranks::Kept;
use crate::kernels::gemm::Tiles;

/// All that the best tiles depend on, beside the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProductKey {
    /// Type of the elements in OpenCL C.
    pub element: String,
    /// Version of the device's driver.
    pub driver: String,
    /// [`source_hash`](super::source_hash) of what the kernel is compiled from.
    pub sources: String,
    /// Options of the compiler, but for those that set tiles.
    pub options: String,
}

/// The tiles that were fastest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProductEntry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: ProductKey,
    /// The tiles. They come from a file: whoever uses them checks them against the device's limits.
    pub tiles: Tiles,
    /// Multiplications and additions a second.
    pub flops_per_second: f64,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl ProductEntry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: ProductKey, tiles: Tiles, flops_per_second: f64) -> Self {
        Self { key, tiles, flops_per_second, inserted: now() }
    }
}

impl Kept for ProductEntry {
    type Key = ProductKey;
    const MOST: usize = 16;

    fn key(&self) -> &ProductKey {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        self.flops_per_second.is_finite() && self.flops_per_second > 0.0
    }
}
