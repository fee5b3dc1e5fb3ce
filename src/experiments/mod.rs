//! Where the time of solves goes: the kernels of a method's iterations, how long several devices take to synchronise,
//! and what set-up is made of.

pub mod blas;
pub mod block_tridiagonal;
pub mod elements;
pub mod exchange;
mod experiment;
pub mod live;
pub mod primitives;
pub mod studies;
pub mod tridiagonal;

pub use experiment::{Experiment, KernelTime, experiment};
