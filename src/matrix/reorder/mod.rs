//! Renumbering of rows and columns: permutations, the one that makes the band narrow, and what there is to gain by it.

mod adjacency;
mod locality;
mod permutation;
mod rcm;

pub use locality::Locality;
pub(crate) use locality::growth;
pub use permutation::{Permutation, permuted};
pub use rcm::rcm;
pub(crate) use rcm::rcm_of_symmetric;
