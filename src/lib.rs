//! Solves large sparse linear systems `A x = b` on every OpenCL device of a machine at once.

pub mod error;
pub mod matrix;
pub mod matrix_market;
pub mod verify;

pub use error::{Error, ErrorKind, Result};
pub use matrix::Csr;

/// Placeholder so that `error.rs` links resolve until the solver lands.
pub mod solver {
    /// Why a solve ended.
    pub struct Reason;
    /// What a solve gives.
    pub struct Outcome;
}
