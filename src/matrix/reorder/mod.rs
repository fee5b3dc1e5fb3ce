//! Renumbering of rows and columns: permutations, and the one that makes the band narrow.

mod adjacency;
mod permutation;
mod rcm;

pub use permutation::{Permutation, permuted};
pub use rcm::rcm;
