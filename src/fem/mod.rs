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
//! | `mesh`, `grid` | nodes, elements and named sides; the unit square and the unit cube |
//! | `local`, `side` | matrices of single elements; integrals over parts of the boundary |
//! | `assembly` | a problem with its conditions, and its matrix |
//! | `operator` | the same without a matrix: products by elements, on the host and on devices |
//! | `order`, `colour` | neighbours with neighbouring numbers; elements that share no node |

mod assembly;
mod cell;
mod colour;
mod grid;
mod local;
mod mesh;
mod operator;
mod order;
mod side;
#[cfg(test)]
mod tests;

pub use assembly::{Condition, Field, Problem, System};
pub use cell::Cell;
pub use colour::{Colouring, ColouringFacts};
pub use local::Physics;
pub use mesh::{Mesh, Parts};
pub use operator::{ElementOperator, Summation};
