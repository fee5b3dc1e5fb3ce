//! Waves of one frequency.

use std::ops::Range;

use super::grid::Grid;
use super::star::star;
use crate::error::Result;
use crate::matrix::{Complex64, Csr};

/// The 7-point Helmholtz operator on a grid of points: −Δu − k² u = f in a box, u = 0 on its boundary.
///
/// Row: `(6 − κ²) u − Σ u(neighbour)`, times h² of the differential equation, where κ = k h is `wavenumber`, so that
/// a wave has 2π/κ points. n and nnz are those of [`poisson3d`](super::poisson3d). Symmetric, with the eigenvalues
///
/// ```text
/// 4 sin²(aπ / 2(mx+1)) + 4 sin²(bπ / 2(my+1)) + 4 sin²(cπ / 2(mz+1)) − κ²,   a = 1 … mx, b = 1 … my, c = 1 … mz
/// ```
///
/// It is indefinite as soon as the first of them, a = b = c = 1, is negative: on m × m × m points if m + 1 > 5.4/κ, about.
/// On large grids some n κ³ / 6π² eigenvalues are negative. Singular if one is 0, which takes a κ made for it.
///
/// A. Bayliss, C. I. Goldstein, E. Turkel, "An iterative method for the Helmholtz equation" (1983),
/// doi 10.1016/0021-9991(83)90139-0.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn helmholtz3d(sides: [usize; 3], wavenumber: f64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    helmholtz3d_rows(grid, grid.all(), wavenumber)
}

/// Some rows of [`helmholtz3d`].
pub(super) fn helmholtz3d_rows(grid: Grid, rows: Range<usize>, wavenumber: f64) -> Result<Csr> {
    star(grid, rows, -wavenumber * wavenumber, |_, _, _| (-1.0, 1.0))
}

/// The 7-point Helmholtz operator in a box whose faces absorb waves: −Δu − (1 + iδ) k² u = f, ∂u/∂n = i k u.
///
/// Row: `Σ (u − u(neighbour))` over the faces within the box, plus for each face on the boundary
/// `u · −iκ / (1 − iκ/2)`, minus `(1 + iδ) κ² u`, times h² of the differential equation, where κ = k h is `wavenumber`
/// and δ is `damping`. The boundary condition (of Sommerfeld, first order, waves as e^−iωt) holds half a cell outside of
/// the last points: (u′ − u) / h = i k (u′ + u) / 2 with the point u′ beyond. n and nnz are those of
/// [`poisson3d`](super::poisson3d). Complex symmetric, not Hermitian; complex numbers occur on the diagonal only.
///
/// Nonsingular for κ > 0: the imaginary part of xᴴ A x is −Σ |x|² κ / (1 + κ²/4) over the faces on the boundary
/// − δ κ² ‖x‖², which is negative unless x is 0 on the boundary; and if A x = 0, too, then layer by layer all of x is. All
/// eigenvalues have negative imaginary parts.
///
/// A. Bayliss, C. I. Goldstein, E. Turkel, "An iterative method for the Helmholtz equation" (1983),
/// doi 10.1016/0021-9991(83)90139-0; on damping, Y. A. Erlangga, C. Vuik, C. W. Oosterlee (2004),
/// doi 10.1016/j.apnum.2004.01.009.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn helmholtz3d_absorbing(sides: [usize; 3], wavenumber: f64, damping: f64) -> Result<Csr<Complex64>> {
    let square = wavenumber * wavenumber;
    // −iκ / (1 − iκ/2)
    let scale = 1.0 + square / 4.0;
    let boundary = Complex64::new(square / 2.0 / scale, -wavenumber / scale);
    let one = Complex64::new(1.0, 0.0);
    let grid = Grid::new(sides, 1)?;
    star(grid, grid.all(), Complex64::new(-square, -square * damping), |_, _, face| {
        (-one, if face.neighbour.is_some() { one } else { boundary })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery::poisson3d;

    #[test]
    fn the_shift_is_on_the_diagonal() {
        let (a, plain) = (helmholtz3d([3, 4, 2], 0.5).unwrap(), poisson3d([3, 4, 2]).unwrap());
        for i in 0..a.n_rows() {
            for j in 0..a.n_rows() {
                let shifted = plain.get(i, j).map(|v| if i == j { v - 0.25 } else { v });
                assert_eq!(a.get(i, j), shifted);
            }
        }
        assert_eq!(helmholtz3d([3; 3], 0.0).unwrap(), poisson3d([3; 3]).unwrap());
    }

    #[test]
    fn entries_by_hand() {
        // κ = 2: −2i / (1 − i) = 1 − i for each of the four open sides of a line's inner points, five at its ends
        let a = helmholtz3d_absorbing([3, 1, 1], 2.0, 0.5).unwrap();
        let z = Complex64::new;
        assert_eq!(a.row(0), (&[0, 1][..], &[z(2.0, -7.0), z(-1.0, 0.0)][..]));
        assert_eq!(a.row(1), (&[0, 1, 2][..], &[z(-1.0, 0.0), z(2.0, -6.0), z(-1.0, 0.0)][..]));
    }

    #[test]
    fn a_plane_wave_leaves_without_an_echo() {
        // e^{ikx} on a line solves the equations of a discrete wave number but at the ends, where κ differs from it by
        // O(κ³); without sides, as if the line were a whole plane
        let (m, kappa) = (30, 0.1f64);
        let line = [m, 1, 1];
        let a = helmholtz3d_absorbing(line, kappa, 0.0).unwrap();
        let sides = Complex64::new(0.0, -kappa) / Complex64::new(1.0, -kappa / 2.0) * 4.0;
        let wave: Vec<Complex64> = (0..m).map(|x| Complex64::from_polar(1.0, kappa * x as f64)).collect();
        let residual: Vec<Complex64> = a.mul_vec(&wave).iter().zip(&wave).map(|(r, u)| r - sides * u).collect();
        assert!(residual[1..m].iter().all(|r| r.norm() < kappa.powi(3)), "{residual:?}");
        assert!(residual[0].norm() > kappa, "the wave comes from here");
    }
}
