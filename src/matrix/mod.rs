//! Sparse matrices on the host.

mod any;
pub mod band;
mod csr;
pub mod definiteness;
pub mod dominance;
pub mod gallery;
pub mod histogram;
pub mod reorder;
mod scalar;
pub mod spy;
pub mod stats;
pub mod symmetry;
pub mod values;

pub use any::AnyCsr;
pub use csr::Csr;
pub use scalar::{Complex64, Scalar};
