//! Dense systems: factors kept for many right-hand sides, on the host or on several devices at once.
//!
//! | kind | factors | of |
//! |---|---|---|
//! | [`Kind::Lu`] | A = Pᵀ L U, partial pivoting | any square matrix: 2 n³ / 3 flops |
//! | [`Kind::Cholesky`] | A = L Lᵀ | symmetric positive definite ones: n³ / 3 |
//! | [`Kind::Ldlt`] | A = Pᵀ L D Lᵀ P, Bunch and Kaufman's pivots; on devices Uᵀ A U = L D Lᵀ without exchanges, U random butterflies | symmetric ones: n³ / 3 |
//!
//! ```
//! use declive::dense::{Factor, Kind, Matrix};
//!
//! # fn main() -> declive::Result<()> {
//! let a = Matrix::from_columns(2, vec![0.0, 2.0, 1.0, 1.0])?; // [0 1; 2 1]
//! # let devices = "host".parse()?;
//! # #[cfg(any())]
//! let devices = "gpu".parse()?;
//! let mut factor = Factor::new(a, Kind::Lu, &devices)?;
//! let mut x = vec![1.0, 3.0, 2.0, 4.0]; // two right-hand sides, one after the other
//! factor.solve(&mut x)?;
//! assert_eq!(x, [1.0, 1.0, 1.0, 2.0]);
//! # Ok(())
//! # }
//! ```
//!
//! On devices, blocks of columns are dealt out in turn. Each is factorised, by the device that has it (`cl/lu_panel.cl`) or on the host
//! (`panel`), while products by the one before go on (S. Tomov, J. Dongarra, M. Baboulin 2010, doi 10.1016/j.parco.2009.12.005), and
//! goes to all devices; so the factors have the same bits on any number of like ones.
//!
//! | module | its part |
//! |---|---|
//! | `matrix`, `element` | a matrix by columns; `f32` and `f64` |
//! | `panel`, `tall` | a block of columns, and inverses of triangles, on the host |
//! | `butterfly` | what makes exchanges of rows superfluous |
//! | `room` | a block of columns with what travels with it |
//! | `host`, `devices` with `columns` and `rank` | factors of each place |
//! | `factor`, `condition`, `refine` | the API; how far a solution may be off, and steps to a better one |

mod butterfly;
mod columns;
mod condition;
mod devices;
mod element;
mod factor;
mod host;
mod matrix;
mod panel;
mod pool;
mod rank;
mod refine;
mod room;
mod tall;
#[cfg(test)]
mod tests;

pub(crate) use devices::Blocks;
pub use element::Element;
pub use factor::{Factor, Kind, Times};
pub use matrix::Matrix;
pub use refine::Refinement;
