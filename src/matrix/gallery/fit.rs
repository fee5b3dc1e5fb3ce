//! Surfaces through scattered points.

use super::grid::Grid;
use super::random::Stream;
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::assemble::assemble_rectangle;

/// Bilinear interpolation from the nodes of a grid of w × h cells to `points` random points in each cell: a rectangular matrix, whose
/// least squares fit heights at the nodes to heights at the points.
///
/// Row of a point at (s, t) in its cell, 0 ≤ s, t < 1: `(1−s)(1−t)`, `s(1−t)`, `(1−s)t`, `st` at the corners. Rows go cell by cell: w h
/// `points` of them, nnz = 4 w h `points`; columns are the (w + 1)(h + 1) nodes, x fastest. Rows add up to 1. With 4 points a cell or
/// more the columns are independent for all but a few seeds; with one there are more columns than rows.
///
/// Å. Björck, *Numerical Methods for Least Squares Problems*, SIAM 1996, chapter 1, doi 10.1137/1.9781611971484.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) if a side is 0, or the grid too large.
pub fn fit2d([w, h]: [usize; 2], points: usize, seed: u64) -> Result<Csr> {
    let cells = Grid::new([w, h, 1], 1)?;
    let nodes = Grid::new([w.saturating_add(1), h.saturating_add(1), 1], 1)?;
    let stream = Stream::new(seed);
    assemble_rectangle(
        [cells.points.saturating_mul(points), nodes.points],
        |_| 4,
        |i, row| {
            let [s, t] = [0, 1].map(|axis| stream.unit(2 * i as u64 + axis));
            let corner = nodes.number(cells.place(i / points));
            for (above, of_y) in [(corner, 1.0 - t), (corner + w + 1, t)] {
                row.push(above, (1.0 - s) * of_y);
                row.push(above + 1, s * of_y);
            }
        },
    )
}
