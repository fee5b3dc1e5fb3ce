//! Bands of constant entries.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::assemble;

/// The second difference on n points: −u″ = f on (0, 1), u(0) = u(1) = 0.
///
/// Row: `−u(i−1) + 2 u(i) − u(i+1)`, times h² of the differential equation. nnz = 3n − 2. Symmetric positive definite
/// with eigenvalues 4 sin²(kπ / 2(n+1)), k = 1 … n; the condition number is cot²(π / 2(n+1)) ≈ 4 (n+1)² / π².
///
/// R. J. LeVeque, *Finite Difference Methods for Ordinary and Partial Differential Equations*, SIAM 2007, chapter 2.
///
/// # Errors
/// [`Error::Usage`] if n is 0 or too large.
pub fn tridiagonal(n: usize) -> Result<Csr> {
    band(n, 1)
}

/// A dense band: 2w on the diagonal and −1 on the w diagonals to either side of it.
///
/// The Laplacian of n points on a line of which each is tied to the w nearest on either side, with zeros beyond the
/// ends; w = 1 is [`tridiagonal`]. n rows and, for w < n, nnz = n (2w + 1) − w (w + 1). Symmetric and, as an
/// irreducible diagonally dominant matrix (R. S. Varga, *Matrix Iterative Analysis*, Prentice-Hall 1962, theorem
/// 1.8), positive definite; the condition number grows as (n / w)².
///
/// # Errors
/// [`Error::Usage`] if n or w is 0 or n is too large.
pub fn band(n: usize, width: usize) -> Result<Csr> {
    if n == 0 || width == 0 {
        return Err(Error::Usage(format!("a band of half-width {width} in {n} rows is empty")));
    }
    let reach = |i: usize| i.saturating_sub(width)..i.saturating_add(width).saturating_add(1).min(n);
    let diagonal = 2.0 * width as f64;
    assemble(n, |i| reach(i).len(), |i, row| reach(i).for_each(|j| row.push(j, if j == i { diagonal } else { -1.0 })))
}
