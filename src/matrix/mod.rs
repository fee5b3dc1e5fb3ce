//! Sparse matrices on the host.

mod any;
mod csr;
pub mod gallery;
pub mod interchange;
mod scalar;
pub mod stats;

pub use any::AnyCsr;
pub use csr::Csr;
pub use scalar::{Complex64, Scalar};
