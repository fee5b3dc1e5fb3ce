//! Sparse matrices on the host.

mod csr;
pub mod gallery;
pub mod stats;

pub use csr::Csr;
