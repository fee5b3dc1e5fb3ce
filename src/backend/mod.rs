//! How methods run on a rank.
//!
//! ```text
//! text       what a method says: vectors, scalars, products, sums
//! program    the same as few passes over the vectors, fused; what of it concerns halos; its bytes
//! machine    runs a program on a rank: starts it, iterates, meets other ranks
//!   ├ opencl   passes on a device, from `source`, ahead of the host if the device works alone
//!   └ host     passes on the host's threads
//! ```

pub(crate) mod host;
pub(crate) mod machine;
pub(crate) mod opencl;
pub(crate) mod program;
pub(crate) mod scalar;
pub(crate) mod source;
pub(crate) mod text;

#[cfg(test)]
mod tests;
