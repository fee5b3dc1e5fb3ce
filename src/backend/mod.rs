//! How methods run on a rank.
//!
//! ```text
//! text       what a method says: vectors, scalars, products, sums
//! program    the same as few passes over the vectors, fused; what of it concerns halos; its bytes
//! deferred   half of an update of x that the next iteration makes
//! barriers   where the groups of a persistent kernel wait for each other
//! machine    runs a program on a rank: starts it, iterates, meets other ranks
//!   ├ opencl   passes on a device, from `source`, ahead of the host if the device works alone: `log` then tells what is done
//!   └ host     passes on the host's threads
//! ```

mod barriers;
pub(crate) mod deferred;
pub(crate) mod host;
mod log;
pub(crate) mod machine;
pub(crate) mod opencl;
pub(crate) mod program;
pub(crate) mod scalar;
pub(crate) mod source;
pub(crate) mod text;

#[cfg(test)]
mod tests;
