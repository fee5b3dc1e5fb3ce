//! Sparse matrices on the host.
//!
//! | module | what it tells or makes |
//! |---|---|
//! | [`stats`] | what a solve has to know beforehand |
//! | [`histogram`], [`band`], [`values`] | lengths of rows; bandwidth and profile; sizes of values, the diagonal |
//! | [`symmetry`], [`dominance`], [`definiteness`] | what kind of matrix it is, and how far that is proven |
//! | [`reorder`] | permutations, reverse Cuthill–McKee |
//! | [`spy`] | a picture of the pattern (feature `picture`) |
//! | [`interchange`] | matrices from and to other crates' types (feature `interchange`) |
//! | [`equivalent`] | complex systems as real ones |
//! | `blocks` | unknowns that a node has |
//! | `transversal` | large entries for the diagonal, structural rank |
//! | [`gallery`] | generated systems |

mod any;
mod assemble;
pub mod band;
pub(crate) mod blocks;
mod csr;
pub mod definiteness;
pub mod dominance;
pub mod equivalent;
pub mod gallery;
pub mod histogram;
#[cfg(feature = "interchange")]
pub mod interchange;
pub(crate) mod patterns;
pub(crate) mod power;
pub mod reorder;
mod scalar;
pub(crate) mod search;
#[cfg(feature = "picture")]
pub mod spy;
pub mod stats;
pub mod symmetry;
mod transpose;
mod transversal;
pub mod values;

pub use any::{AnyCsr, AnyVectors};
pub use csr::Csr;
pub use scalar::{Complex64, Scalar};
pub(crate) use transversal::{Deficiency, Equilibration, Transversal, shortage};
pub use transversal::{Equilibrated, Shortage};
