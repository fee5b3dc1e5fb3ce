//! Blocks of two materials.

use super::random::Stream;

/// Blocks along each axis.
const BLOCKS: usize = 8;

/// A box cut into 8 × 8 × 8 blocks, or single cells where a side has fewer than 8, of either of two materials each, with even
/// odds.
pub(super) struct Materials {
    /// Cells along each axis.
    sides: [usize; 3],
    /// The coefficient of the second; that of the first is 1.
    contrast: f64,
    stream: Stream,
}

impl Materials {
    pub(super) fn new(sides: [usize; 3], contrast: f64, seed: u64) -> Self {
        Self { sides, contrast, stream: Stream::new(seed) }
    }

    /// The coefficient in the cell at `place`.
    pub(super) fn at(&self, place: [usize; 3]) -> f64 {
        let block = (0..3).fold(0, |block, axis| {
            let along = place[axis] * BLOCKS.min(self.sides[axis]) / self.sides[axis];
            block * BLOCKS + along
        });
        if self.stream.bits(block as u64) & 1 == 0 { 1.0 } else { self.contrast }
    }
}
