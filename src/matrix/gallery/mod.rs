//! Generators of test systems, from grids with known spectra to graphs with very long rows.
//!
//! Every generator fills the arrays of a [`Csr`](crate::Csr) in parallel, row by row and without triplets, and gives
//! the same bits for any number of threads. All matrices are symmetric to the bit and positive definite.
//!
//! ```
//! use declive::matrix::gallery::{self, Spec};
//!
//! let a = "poisson3d:10x20x30".parse::<Spec>()?.build()?;
//! assert_eq!(a, gallery::poisson3d([10, 20, 30])?);
//! # Ok::<(), declive::Error>(())
//! ```
//!
//! To add a problem, write its function and give it a row in [`Problem::ALL`].

mod arrow;
mod assemble;
mod banded;
mod elasticity;
mod graph;
mod grid;
mod random;
mod spec;
mod stencil;
mod tetrahedra;

pub use arrow::dense_rows;
pub use banded::{band, tridiagonal};
pub use elasticity::elasticity3d;
pub use graph::{graph_laplacian, random_spd};
pub(crate) use random::random_part;
pub use random::{random_permutation, random_vector};
pub use spec::{Parameter, Problem, Spec};
pub use stencil::{anisotropic, jumps, poisson2d, poisson3d, poisson3d27, variable};
pub use tetrahedra::tetrahedra;
