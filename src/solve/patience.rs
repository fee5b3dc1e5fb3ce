//! Iterations by the diagonal that multigrid takes as long as, with its set-up.
//!
//! Of constants and numbers of the matrix alone, so that equal runs decide alike. Both sides are as fast as the memory is, so that their ratio
//! holds for slower devices, too; the constants are those of an H200, and of two cores of a server.

use crate::device::Kind;
use crate::operator::Format;
use crate::runtime::{RankInfo, Setup};

/// Iterations that multigrid should take at the most: with more to come, the diagonal goes on.
pub(super) const OF_TRIAL: u64 = 200;

/// Rows below which anything will do.
const FEW_ROWS: usize = 2000;

/// What decides.
struct Rates {
    /// Seconds to leave one and set the other up, and 25 iterations of that: at least, and for each entry.
    start: f64,
    entry: f64,
    /// Seconds of an iteration by the diagonal at least, and for each byte.
    iteration: f64,
    byte: f64,
}

const OF_GPU: Rates = Rates { start: 0.04, entry: 1.2e-9, iteration: 11e-6, byte: 1.0 / 4.2e12 };
const OF_PROCESSOR: Rates = Rates { start: 0.005, entry: 480e-9, iteration: 20e-6, byte: 1.0 / 20e9 };

/// Whether none is a GPU.
pub(super) fn are_processors(ranks: &[RankInfo]) -> bool {
    ranks.iter().all(|rank| rank.kind != Kind::Gpu)
}

/// That number, if these ranks can have multigrid at its best: a GPU that works alone, or processors.
pub(super) fn of(setup: &Setup, ranks: &[RankInfo]) -> Option<u64> {
    let rates = match ranks {
        [alone] if alone.kind == Kind::Gpu => OF_GPU,
        all if are_processors(all) => OF_PROCESSOR,
        _ => return None,
    };
    let sum = |of: fn(&RankInfo) -> usize| ranks.iter().map(of).sum::<usize>();
    let (n, nnz) = (sum(|rank| rank.rows), sum(|rank| rank.nnz));
    if n < FEW_ROWS || setup.is_complex {
        return None;
    }
    let of_entry = match ranks[0].format {
        Format::Dictionary => 0.0,
        Format::Pattern => 8.0,
        Format::Sell => 10.0,
        Format::Csr | Format::Auto => 12.0,
    };
    let bytes = of_entry * nnz as f64 + setup.method.row_bytes(setup.precond, setup.restart) * n as f64;
    let iterations = (rates.start + rates.entry * nnz as f64) / (rates.iteration + rates.byte * bytes);
    Some(iterations.ceil() as u64)
}
