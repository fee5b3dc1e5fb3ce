//! Where the time of solves goes: the kernels of a method's iterations, and what several devices need to meet.

pub mod exchange;
mod experiment;

pub use experiment::{Experiment, KernelTime, experiment};
