//! Diffusion on boxes: finite differences and finite volumes with 5, 7 and 27 points.

use std::ops::Range;

use rayon::prelude::*;

use super::grid::Grid;
use super::materials::Materials;
use super::random::Stream;
use super::star::star;
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble_rows, zeroed};

/// The 5-point Laplacian on an mx × my grid: −Δu = f in the unit square, u = 0 on its boundary.
///
/// Row: `4 u(x,y) − u(x−1,y) − u(x+1,y) − u(x,y−1) − u(x,y+1)`, times h² of the differential equation; points
/// outside the grid are boundary values and drop out. n = mx·my, nnz = 5n − 2(mx + my). Symmetric positive definite;
/// on an m × m grid the condition number is cot²(π / 2(m+1)) ≈ 4 (m+1)² / π².
///
/// R. J. LeVeque, *Finite Difference Methods for Ordinary and Partial Differential Equations*, SIAM 2007, chapter 3.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn poisson2d([mx, my]: [usize; 2]) -> Result<Csr> {
    let grid = Grid::new([mx, my, 1], 1)?;
    constant(grid, grid.all(), PLANE)
}

/// The 7-point Laplacian on a grid of points: −Δu = f in the unit cube, u = 0 on its boundary.
///
/// Row: `6 u − Σ u(neighbour)` over the neighbours along the three axes, times h² of the differential equation;
/// points outside the grid are boundary values and drop out. For sides mx, my, mz: n = mx·my·mz,
/// nnz = 7n − 2(mx·my + my·mz + mz·mx). Symmetric positive definite; for m × m × m points the condition number is
/// cot²(π / 2(m+1)) ≈ 4 (m+1)² / π².
///
/// R. J. LeVeque, *Finite Difference Methods for Ordinary and Partial Differential Equations*, SIAM 2007, chapter 3.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn poisson3d(sides: [usize; 3]) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    constant(grid, grid.all(), [1.0; 3])
}

/// The 27-point operator of the HPCG benchmark on a grid of points, with zero boundary values.
///
/// Row: `26 u − Σ u(neighbour)` over the up to 26 points at most one away along every axis; points outside the grid
/// drop out. It approximates −9 h² Δu. For sides mx, my, mz: n = mx·my·mz,
/// nnz = (3mx − 2)(3my − 2)(3mz − 2). Symmetric positive definite; the condition number grows as m².
///
/// M. A. Heroux, J. Dongarra, P. Luszczek, *HPCG Technical Specification*, Sandia report SAND2013-8752.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn poisson3d27(sides: [usize; 3]) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    poisson3d27_rows(grid, grid.all())
}

/// Some rows of [`poisson3d27`].
pub(super) fn poisson3d27_rows(grid: Grid, rows: Range<usize>) -> Result<Csr> {
    assemble_rows(
        rows,
        grid.points,
        |i| grid.count_around(grid.place(i)),
        |i, row| {
            let [xs, ys, zs] = grid.around(grid.place(i));
            for z in zs {
                for y in ys.clone() {
                    for x in xs.clone() {
                        let j = grid.number([x, y, z]);
                        row.push(j, if j == i { 26.0 } else { -1.0 });
                    }
                }
            }
        },
    )
}

/// Anisotropic diffusion on a grid of points: −u_xx − u_yy − ε u_zz = f in the unit cube, u = 0 on its boundary.
///
/// Row: `(4 + 2ε) u − Σ u(x, y neighbours) − ε Σ u(z neighbours)`, times h² of the differential equation. n and nnz
/// as for [`poisson3d`]. Symmetric positive definite. The condition number is that of [`poisson3d`], whatever ε, but
/// the coupling is not: point smoothers and preconditioners that ignore its direction gain little.
///
/// U. Trottenberg, C. W. Oosterlee, A. Schüller, *Multigrid*, Academic Press 2001, section 5.1.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn anisotropic(sides: [usize; 3], epsilon: f64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    constant(grid, grid.all(), [1.0, 1.0, epsilon])
}

/// Diffusion through blocks of two materials: −∇·(k ∇u) = f in a box of unit cells, u = 0 on its boundary.
///
/// The box is cut into 8 × 8 × 8 blocks (or single cells where a side has fewer than 8); the seed makes k either 1 or
/// `contrast` in each, with even odds. Cell-centred finite volumes: `Σ t_f (u − u(neighbour))` over the six faces,
/// where t_f is the harmonic mean 2 k₁ k₂ / (k₁ + k₂) of the cells on either side, and 2k on the boundary, which is
/// only half a cell away. n and nnz as for [`poisson3d`]. Symmetric positive definite; the condition number grows as
/// m² · max(contrast, 1/contrast).
///
/// S. V. Patankar, *Numerical Heat Transfer and Fluid Flow*, Hemisphere 1980, section 4.2.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the coefficients don't fit.
pub fn jumps(sides: [usize; 3], contrast: f64, seed: u64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    jumps_rows(grid, grid.all(), contrast, seed)
}

/// Some rows of [`jumps`].
pub(super) fn jumps_rows(grid: Grid, rows: Range<usize>, contrast: f64, seed: u64) -> Result<Csr> {
    let materials = Materials::new(grid.sides, contrast, seed);
    finite_volumes(grid, rows, |i| materials.at(grid.place(i)))
}

/// Diffusion with another coefficient in every cell: −∇·(k ∇u) = f in a box of unit cells, u = 0 on its boundary.
///
/// k = exp(σ g) with g standard normal and independent from cell to cell, so that no value of the matrix repeats but
/// across the diagonal. Finite volumes as in [`jumps`]; n and nnz as for [`poisson3d`]. Symmetric positive definite;
/// the condition number grows as m², times at most max k / min k.
///
/// The bits depend on the platform's `exp`, `ln` and `cos`. Random permeability of this kind is the usual model of
/// flow in porous ground: R. A. Freeze (1975), doi 10.1029/WR011i005p00725.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the coefficients don't fit;
/// [`Error::NotFinite`](crate::Error::NotFinite) if σ takes them out of range.
pub fn variable(sides: [usize; 3], sigma: f64, seed: u64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    variable_rows(grid, grid.all(), sigma, seed)
}

/// Some rows of [`variable`].
pub(super) fn variable_rows(grid: Grid, rows: Range<usize>, sigma: f64, seed: u64) -> Result<Csr> {
    let stream = Stream::new(seed);
    finite_volumes(grid, rows, |i| (sigma * stream.normal(i as u64)).exp())
}

/// Cell-centred finite volumes on unit cells with the coefficient `k(cell)` and zero boundary values.
fn finite_volumes(grid: Grid, rows: Range<usize>, k: impl Fn(usize) -> f64 + Sync) -> Result<Csr> {
    // neighbours are at most a layer away
    let layer = grid.strides()[2];
    let first = rows.start.saturating_sub(layer);
    let end = grid.points.min(rows.end + layer);
    let mut cells: Vec<f64> = zeroed(end - first, "the coefficients of the cells")?;
    cells.par_iter_mut().with_min_len(1 << 12).enumerate().for_each(|(i, cell)| *cell = k(first + i));
    let k = |i: usize| cells[i - first];
    seven_point(grid, rows, |_, i, j| harmonic_mean(k(i), k(j)), |_, i| 2.0 * k(i))
}

/// 2ab / (a + b), the same bits for (b, a), exact for a = b, and without overflow of the product.
pub(super) fn harmonic_mean(a: f64, b: f64) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    low * (2.0 * high / (low + high))
}

/// Diffusion in a rectangle that nothing enters or leaves: −Δu = f in the unit square, ∂u/∂n = 0 on its boundary.
///
/// Cell-centred finite volumes on mx × my cells: `Σ (u − u(neighbour))` over the sides of a cell that are within the
/// rectangle, times h² of the differential equation. n = mx·my, nnz = 5n − 2(mx + my). Symmetric and positive
/// semidefinite: all rows add up to exactly 0, and the null space is that of the constants. So A x = b has solutions
/// just if the elements of b add up to 0, as those of A times any vector do; they differ by a constant. On an m × m grid
/// the largest eigenvalue is 8 cos²(π / 2m) and the smallest but 0 is 4 sin²(π / 2m).
///
/// R. J. LeVeque, *Finite Difference Methods for Ordinary and Partial Differential Equations*, SIAM 2007, section 2.13;
/// E. F. Kaasschieter, "Preconditioned conjugate gradients for solving singular systems" (1988),
/// doi 10.1016/0377-0427(88)90358-5.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn neumann2d([mx, my]: [usize; 2]) -> Result<Csr> {
    let grid = Grid::new([mx, my, 1], 1)?;
    neumann2d_rows(grid, grid.all())
}

/// Some rows of [`neumann2d`].
pub(super) fn neumann2d_rows(grid: Grid, rows: Range<usize>) -> Result<Csr> {
    seven_point(grid, rows, |_, _, _| 1.0, |_, _| 0.0)
}

/// The coefficients of [`poisson2d`].
pub(super) const PLANE: [f64; 3] = [1.0, 1.0, 0.0];

/// Some rows with the same coefficient for every face across an axis, boundary included.
pub(super) fn constant(grid: Grid, rows: Range<usize>, along: [f64; 3]) -> Result<Csr> {
    seven_point(grid, rows, |axis, _, _| along[axis], |axis, _| along[axis])
}

/// Some rows of `Σ t_f (u − u(neighbour))` over the six faces f of every cell, with zero beyond the boundary.
///
/// `inner(axis, i, j)` is t between cells i and j and must not depend on their order; `boundary(axis, i)` is t
/// between cell i and the boundary.
pub(super) fn seven_point(
    grid: Grid,
    rows: Range<usize>,
    inner: impl Fn(usize, usize, usize) -> f64 + Sync,
    boundary: impl Fn(usize, usize) -> f64 + Sync,
) -> Result<Csr> {
    star(grid, rows, 0.0, |i, _, face| {
        let t = match face.neighbour {
            Some(j) => inner(face.axis, i, j),
            None => boundary(face.axis, i),
        };
        (-t, t)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmonic_means() {
        assert_eq!(harmonic_mean(1e4, 1e4), 1e4);
        assert_eq!(harmonic_mean(1.0, 3.0), 1.5);
        assert_eq!(harmonic_mean(1e300, 1e300), 1e300);
        assert_eq!(harmonic_mean(0.1, 0.7).to_bits(), harmonic_mean(0.7, 0.1).to_bits());
    }

    #[test]
    fn both_materials_of_the_jumps_occur_in_blocks() {
        // 16 cells a side make blocks of 2 × 2 × 2: cells 0 and 1 of a row always agree, so 1 or contrast between them
        let a = jumps([16; 3], 1e4, 3).unwrap();
        let between: Vec<f64> = (0..a.n_rows()).step_by(2).filter_map(|i| a.get(i, i + 1)).collect();
        assert_eq!(between.len(), 2048);
        let soft = between.iter().filter(|t| **t == -1.0).count();
        let hard = between.iter().filter(|t| **t == -1e4).count();
        assert_eq!(soft + hard, between.len());
        assert!(soft.min(hard) > 600, "{soft} {hard}");
        let mixed = 2e4 / 10001.0;
        assert!(a.values().iter().any(|v| (v + mixed).abs() < 1e-12));
    }

    #[test]
    fn no_value_of_the_variable_coefficient_repeats() {
        let a = variable([9, 8, 7], 1.0, 1).unwrap();
        let mut upper: Vec<f64> = (0..a.n_rows())
            .flat_map(|i| {
                let (cols, values) = a.row(i);
                cols.iter().zip(values).filter(move |(j, _)| **j as usize >= i).map(|(_, v)| *v).collect::<Vec<_>>()
            })
            .collect();
        let entries = upper.len();
        upper.sort_by(f64::total_cmp);
        upper.dedup();
        assert_eq!(upper.len(), entries);
    }
}
