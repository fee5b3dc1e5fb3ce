//! Solves large sparse linear systems `A x = b` on every OpenCL device of a machine at once.

pub mod device;
pub mod error;
pub mod matrix;
pub mod matrix_market;
pub mod solver;
pub mod verify;

pub use error::{Error, ErrorKind, Result};
pub use matrix::Csr;
pub use solver::{Outcome, Reason, Setup, Solver, Stop};
