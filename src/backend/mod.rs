//! How methods run on a rank.
//!
//! ```text
//! text       what a method says: vectors, scalars, products, sums
//! program    the same as few passes over the vectors, fused; what of it concerns halos; its bytes
//! deferred   half of an update of x that the next iteration makes
//! barriers   where the groups of a persistent kernel wait for each other
//! machine    runs a program on a rank: starts it, iterates, synchronises with other ranks; column, the scalars of a right-hand side
//! pass_backend   what it asks of whoever does the passes
//! together   how several ranks iterate: with the host, or without
//! batch      many columns of a small system, each by a work-group of its own
//! basis      columns of a Krylov basis, and what is done with all of them at once
//! vectors    of a rank, and what is done with them beside passes; linear_operator, what its rows do
//!   ├ opencl   on a device: passes from `source`, ahead of the host if the device works alone: `log` then tells what is done
//!   └ host     on the host's threads
//! ```

mod barriers;
pub(crate) mod basis;
pub(crate) mod batch;
mod column;
pub(crate) mod deferred;
pub(crate) mod host;
pub(crate) mod linear_operator;
mod log;
pub(crate) mod machine;
pub(crate) mod opencl;
pub(crate) mod pass_backend;
pub(crate) mod program;
pub(crate) mod scalar;
pub(crate) mod source;
pub(crate) mod text;
mod together;
pub(crate) mod vectors;

pub(crate) use linear_operator::{Arriving, LinearOperator, pair};
pub(crate) use vectors::{Backend, Record, Widens};

#[cfg(test)]
mod tests;
