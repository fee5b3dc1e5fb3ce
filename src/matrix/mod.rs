//! Sparse matrices on the host.

mod any;
pub mod band;
mod csr;
pub mod gallery;
pub mod reorder;
mod scalar;
pub mod stats;

pub use any::AnyCsr;
pub use csr::Csr;
pub use scalar::{Complex64, Scalar};
