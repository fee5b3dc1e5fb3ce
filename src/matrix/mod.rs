//! Sparse matrices on the host.

mod any;
mod csr;
pub mod gallery;
mod scalar;
pub mod stats;

pub use any::AnyCsr;
pub use csr::Csr;
pub use scalar::{Complex64, Scalar};
