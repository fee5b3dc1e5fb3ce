//! Banded systems on the host, by Gaussian elimination with partial pivoting.
//!
//! | module | its one job |
//! |---|---|
//! | `band` | a [`Band`]: the diagonals of a matrix |
//! | `lu` | its [`BandFactor`] P A = L U, as LAPACK's `gbtrf` and `gbtrs` have it |
//! | `tridiagonal` | one tridiagonal system without factors, as LAPACK's `gtsv` |
//! | `blocks` | [`BlockTridiagonal`] systems of small dense blocks |
//!
//! ```
//! use declive::banded::Band;
//!
//! # fn main() -> declive::Result<()> {
//! // 6 on the diagonal, −4 beside it, 1 beside that: a beam
//! let (n, one) = (8, 1.0);
//! let mut band = Band::zeros(n, 2, 2);
//! for (i, j) in (0..n).flat_map(|i| (i.saturating_sub(2)..n.min(i + 3)).map(move |j| (i, j))) {
//!     band.set(i, j, [6.0, -4.0, one][i.abs_diff(j)]);
//! }
//! let factor = band.factorise()?;
//! let mut x = band.times(&[1.0; 8]);
//! factor.solve(&mut x);
//! assert!(x.iter().all(|x| (x - 1.0_f64).abs() < 1e-12));
//! # Ok(())
//! # }
//! ```

mod band;
mod blocks;
mod lu;
#[cfg(test)]
mod tests;
mod tridiagonal;

pub use band::{Band, solve_all};
pub use blocks::{BlockTridiagonal, LARGEST_BLOCK};
pub use lu::BandFactor;
pub(crate) use tridiagonal::{Work, eliminate};

use crate::real::Real;

/// The absolute value; a NaN is larger than any number, so that it is a pivot, and is seen.
fn size<T: Real>(v: T) -> f64 {
    let v = v.to_f64().abs();
    if v.is_nan() { f64::INFINITY } else { v }
}
