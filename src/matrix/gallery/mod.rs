//! Generators of test systems, from grids with known spectra to graphs with very long rows.
//!
//! Every generator fills the arrays of a [`Csr`](crate::Csr) in parallel, row by row and without triplets, and gives
//! the same bits for any number of threads. Most matrices are symmetric to the bit and positive definite; others are
//! indefinite, singular, unsymmetric, rectangular or complex, as [`Problem::class`] tells.
//!
//! ```
//! use declive::matrix::gallery::{self, Spec};
//!
//! let a = "poisson3d:10x20x30".parse::<Spec>()?.build()?;
//! assert_eq!(a, gallery::poisson3d([10, 20, 30])?);
//! # Ok::<(), declive::Error>(())
//! ```
//!
//! [`reservoir()`], [`circuit()`] and [`elasticity3d_jumps`] are what preconditioners are for: with the diagonal alone, conjugate gradients
//! take thousands of iterations for 10⁶ rows.
//!
//! Singular systems have solutions for some right-hand sides only: A times any vector is one of them.
//!
//! To add a problem, write its function and give it a row in [`Problem::ALL`].

mod arrow;
mod banded;
mod circuit;
mod class;
mod convection;
mod elasticity;
mod fit;
mod gauge;
mod graph;
mod grid;
mod helmholtz;
mod markov;
mod materials;
mod problem;
mod random;
mod reservoir;
mod spec;
mod star;
mod stencil;
mod stokes;
mod tetrahedra;

pub use arrow::dense_rows;
pub use banded::{band, tridiagonal};
pub use circuit::circuit;
pub use class::Class;
pub use convection::convection3d;
pub use elasticity::{elasticity3d, elasticity3d_coordinates, elasticity3d_jumps};
pub use fit::fit2d;
pub use gauge::gauge2d;
pub use graph::{graph_laplacian, random_spd};
pub use helmholtz::{helmholtz3d, helmholtz3d_absorbing};
pub use markov::markov;
pub use problem::{Parameter, Problem};
pub(crate) use random::random_part;
pub use random::{random_element, random_permutation, random_vector};
pub use reservoir::reservoir;
pub use spec::Spec;
pub use stencil::{anisotropic, jumps, neumann2d, poisson2d, poisson3d, poisson3d27, variable};
pub use stokes::stokes2d;
pub use tetrahedra::{tetrahedra, tetrahedra_coordinates};
