//! Rows with an entry for each face of a cell.

use std::ops::Range;

use super::grid::Grid;
use crate::error::Result;
use crate::matrix::assemble::assemble_rows;
use crate::matrix::{Csr, Scalar};

/// A face of a cell of a grid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    /// The axis that it lies across.
    pub(super) axis: usize,
    /// Whether it is on the side of the higher coordinate.
    pub(super) forward: bool,
    /// The cell beyond; none if the face is on the boundary of the box.
    pub(super) neighbour: Option<usize>,
}

/// Rows of a matrix that has one for each cell of a box, and entries for the cell itself and those across its six faces.
///
/// `face(i, place, face)` gives two numbers for each face of cell `i`: the entry for the cell beyond, of no consequence on
/// the boundary, and what the face adds to the diagonal, which begins at `centre`.
pub(super) fn star<T: Scalar>(
    grid: Grid,
    rows: Range<usize>,
    centre: T,
    face: impl Fn(usize, [usize; 3], Face) -> (T, T) + Sync,
) -> Result<Csr<T>> {
    let (strides, sides) = (grid.strides(), grid.sides);
    assemble_rows(
        rows,
        grid.points,
        |i| {
            let place = grid.place(i);
            (0..3).fold(1, |n, axis| n + usize::from(place[axis] > 0) + usize::from(place[axis] + 1 < sides[axis]))
        },
        |i, row| {
            let place = grid.place(i);
            let mut diagonal = centre;
            let mut entry = |axis: usize, forward: bool, neighbour: Option<usize>| {
                let (value, share) = face(i, place, Face { axis, forward, neighbour });
                diagonal += share;
                neighbour.map(|j| (j, value))
            };
            let before = [2, 1, 0].map(|axis| entry(axis, false, (place[axis] > 0).then(|| i - strides[axis])));
            let after =
                [0, 1, 2].map(|axis| entry(axis, true, (place[axis] + 1 < sides[axis]).then(|| i + strides[axis])));
            before.into_iter().flatten().for_each(|(j, value)| row.push(j, value));
            row.push(i, diagonal);
            after.into_iter().flatten().for_each(|(j, value)| row.push(j, value));
        },
    )
}
