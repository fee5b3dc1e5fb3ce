//! Where the time of solves goes: the kernels of a method's iterations, and how long several devices take to synchronise.

pub mod exchange;
mod experiment;
pub mod live;

pub use experiment::{Experiment, KernelTime, experiment};
