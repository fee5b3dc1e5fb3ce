//! Finite elements: diffusion and linear elasticity on triangles and tetrahedra of first and second order.
//!
//! ```
//! use declive::fem::{Condition, Mesh, Physics, Problem};
//! use declive::{Setup, Solver, Stop};
//!
//! # fn main() -> declive::Result<()> {
//! let mesh = Mesh::unit_square([16, 16])?;
//! let problem = Problem::new(&mesh, Physics::Diffusion { conductivity: vec![1.0] })?
//!     .with_condition("left", Condition::Value { component: 0, value: Box::new(|_| 0.0) })?
//!     .with_condition("right", Condition::Value { component: 0, value: Box::new(|_| 48.0) })?;
//! let system = problem.assemble()?;
//! let mut solver = Solver::new(system.matrix, &Setup::default().with_devices("host".parse()?))?;
//! let outcome = solver.solve(&system.rhs, None, &Stop::default(), Default::default())?;
//! // u = 48 x
//! assert!(outcome.x.iter().zip(mesh.points()).all(|(u, p)| (u - 48.0 * p[0]).abs() < 1e-5));
//! # Ok(())
//! # }
//! ```
//!
//! | module | its part |
//! |---|---|
//! | `cell` | shape functions, and points of integrals |
//! | `mesh`, `grid`, `capacitor` | nodes, elements and named sides; the unit square and the unit cube; the air round two plates |
//! | `gmsh`, `conforming` | meshes from files of Gmsh; whether their elements meet side to side |
//! | `local`, `side` | matrices of single elements; integrals over parts of the boundary |
//! | `assembly` | a problem with its conditions, and its matrix |
//! | `operator` | the same without a matrix: products by elements, on the host and on devices |
//! | `order`, `colour` | neighbours with neighbouring numbers; elements that share no node |
//! | `file`, `template` | problems as files, with the feature `cli`; one to start from |
//! | `vtu`, `picture` | files for ParaView and pictures, with the feature `picture` |
//! | `field`, `locate`, `quality` | what a solution says; which element a place is in; what a mesh is like |

mod adjacency;
mod assembly;
mod capacitor;
mod cell;
mod colour;
mod conforming;
mod field;
#[cfg(test)]
mod field_tests;
#[cfg(feature = "cli")]
mod file;
mod gmsh;
mod grid;
mod local;
mod locate;
mod mesh;
mod operator;
mod order;
#[cfg(feature = "picture")]
mod picture;
mod quality;
mod side;
#[cfg(feature = "cli")]
mod template;
#[cfg(test)]
mod tests;
#[cfg(feature = "picture")]
mod vtu;

pub use assembly::{Condition, Field, Problem, System};
pub use cell::Cell;
pub use colour::{Colouring, ColouringFacts};
pub use field::{Gradient, Reaction, Sample, Stress, von_mises};
#[cfg(feature = "cli")]
pub use file::{Kind, Plan, Probe, Source};
pub use local::Physics;
pub use mesh::{Mesh, Parts};
pub use operator::{ElementOperator, Summation};
#[cfg(feature = "picture")]
pub use picture::Picture;
pub use quality::Quality;
