//! Diffusion and convection.

use std::f64::consts::PI;
use std::ops::Range;

use super::grid::Grid;
use super::star::star;
use crate::error::Result;
use crate::matrix::Csr;

/// Heat that spreads and is carried round in a closed box: −∇·(∇u) + v·∇u = f in the unit cube, u = 0 on its boundary.
///
/// The velocity v = curl (s, s, s) with s ∝ sin πx sin πy sin πz goes round the diagonal x = y = z. It is free of
/// divergence and nothing flows through the boundary. Finite volumes on mx × my × mz cells, with upwind differences for
/// the convection: with F the flow out of the cell through a face, in units of diffusion,
///
/// ```text
/// Σ over faces within the box (1 + max(−F, 0)) (u − u(neighbour))  +  2 u for each face on the boundary
/// ```
///
/// so that n and nnz are those of [`poisson3d`](super::poisson3d). Through a face across x between cells at (ξ, η, ζ),
/// F ∝ sin πξ · sin π(ζ − η), and likewise in turn: the flows of a cell add up to 0 but for rounding. `peclet` is the cell
/// Péclet number: a bound of |F| = |v| h for cells of side h, which the flow comes near to if sides are long.
///
/// Unsymmetric for `peclet` > 0, with a symmetric pattern. Hardly two rows are alike; values repeat along the lines where
/// the flow does, so that m³ cells have about 2 m² of them. An M-matrix: off the diagonal no entry is positive, and rows
/// dominate their diagonals, strictly at the boundary; so it is nonsingular, all eigenvalues have positive real parts, and
/// the inverse has no negative entry. Upwind differences don't oscillate at any `peclet`, and are of first order.
///
/// H. C. Elman, D. J. Silvester, A. J. Wathen, *Finite Elements and Fast Iterative Solvers*, 2nd edition, Oxford 2014,
/// chapter 6, on the recirculating wind; S. V. Patankar, *Numerical Heat Transfer and Fluid Flow*, Hemisphere 1980,
/// section 5.2, on upwind differences.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid.
pub fn convection3d(sides: [usize; 3], peclet: f64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    convection3d_rows(grid, grid.all(), peclet)
}

/// Some rows of [`convection3d`].
pub(super) fn convection3d_rows(grid: Grid, rows: Range<usize>, peclet: f64) -> Result<Csr> {
    let flow = Flow::new(grid.sides, peclet);
    star(grid, rows, 0.0, |_, place, face| {
        if face.neighbour.is_none() {
            return (0.0, 2.0);
        }
        let along = flow.through(place, face.axis, face.forward);
        let inwards = if face.forward { -along } else { along };
        let t = 1.0 + inwards.max(0.0);
        (-t, t)
    })
}

/// The flow through the faces of cells.
struct Flow {
    /// For each axis and coordinate of a face, the largest flow through such faces.
    faces: [Vec<f64>; 3],
    /// For each axis and coordinate c of a cell, sin πc and cos πc.
    cells: [Vec<(f64, f64)>; 3],
}

impl Flow {
    fn new(sides: [usize; 3], peclet: f64) -> Self {
        // what makes the flows of a cell add up to 0: those through faces across an axis are proportional to the product of
        // these numbers of the other two
        let steps = sides.map(|m| 2.0 * (PI / (2.0 * m as f64)).sin());
        let products = [0, 1, 2].map(|axis| steps[(axis + 1) % 3] * steps[(axis + 2) % 3]);
        let largest = products.into_iter().fold(0.0, f64::max);
        Self {
            faces: [0, 1, 2].map(|axis| {
                let strength = peclet * (products[axis] / largest);
                (0..=sides[axis]).map(|k| strength * (PI * (k as f64 / sides[axis] as f64)).sin()).collect()
            }),
            cells: sides.map(|m| (0..m).map(|k| (PI * ((k as f64 + 0.5) / m as f64)).sin_cos()).collect()),
        }
    }

    /// The flow towards higher coordinates through a face of the cell at `place`: the same bits from both sides.
    fn through(&self, place: [usize; 3], axis: usize, forward: bool) -> f64 {
        let (one, other) = ((axis + 2) % 3, (axis + 1) % 3);
        let ((sin_a, cos_a), (sin_b, cos_b)) = (self.cells[one][place[one]], self.cells[other][place[other]]);
        self.faces[axis][place[axis] + usize::from(forward)] * (sin_a * cos_b - cos_a * sin_b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery::poisson3d;

    #[test]
    fn entries_by_hand() {
        // two cells a side: across x at ξ = 1/2 between (·, 0, 0) and its neighbour ζ − η = 0, so no flow; with η = 1/4 and
        // ζ = 3/4 it is sin(π/2) sin(π/2) = 1, times the Péclet number
        let a = convection3d([2; 3], 0.5).unwrap();
        let close = |i: usize, j: usize, v: f64| (a.get(i, j).unwrap() - v).abs() < 1e-15;
        assert!(close(0, 1, -1.0) && close(1, 0, -1.0));
        // z = 1, y = 0: from cell 4 towards cell 5
        assert!(close(5, 4, -1.5) && close(4, 5, -1.0));
        // y = 1, z = 0: the other way
        assert!(close(2, 3, -1.5) && close(3, 2, -1.0));
        // three faces on the boundary, one face within the box through which something comes in
        assert!(close(0, 0, 9.0) && close(5, 5, 9.5), "{:?}", a.row(5));
    }

    #[test]
    fn what_comes_in_goes_out() {
        for sides in [[7; 3], [4, 9, 6], [1, 5, 8], [5, 1, 1]] {
            let (grid, flow) = (Grid::new(sides, 1).unwrap(), Flow::new(sides, 30.0));
            let mut largest = 0.0f64;
            for i in 0..grid.points {
                let place = grid.place(i);
                let flows = [0, 1, 2].map(|axis| [true, false].map(|forward| flow.through(place, axis, forward)));
                let sum: f64 = flows.iter().map(|[out, into]| out - into).sum();
                assert!(sum.abs() < 1e-13, "{sides:?} {place:?} {sum}");
                largest = flows.into_iter().flatten().fold(largest, |m, f| m.max(f.abs()));
                for axis in 0..3 {
                    if place[axis] == 0 {
                        assert_eq!(flows[axis][1], 0.0);
                    }
                    if place[axis] + 1 == sides[axis] {
                        assert!(flows[axis][0].abs() < 1e-14);
                    }
                }
            }
            assert!(largest <= 30.0, "{largest}");
        }
        assert!(Flow::new([40; 3], 1.0).through([19, 10, 29], 0, true) > 0.95);
    }

    #[test]
    fn rows_and_columns_add_up_to_what_leaves_through_the_boundary() {
        let sides = [5, 6, 4];
        let a = convection3d(sides, 20.0).unwrap();
        let grid = Grid::new(sides, 1).unwrap();
        let (rows, cols, values) = a.to_triplets();
        let transpose = Csr::from_triplets(a.n_rows(), a.n_rows(), &cols, &rows, &values).unwrap();
        let ones = vec![1.0; a.n_rows()];
        for (i, (row, column)) in a.mul_vec(&ones).into_iter().zip(transpose.mul_vec(&ones)).enumerate() {
            let place = grid.place(i);
            let open =
                (0..3).map(|k| usize::from(place[k] == 0) + usize::from(place[k] + 1 == sides[k])).sum::<usize>();
            let expected = 2.0 * open as f64;
            assert!((row - expected).abs() < 1e-12 && (column - expected).abs() < 1e-12, "{i} {row} {column}");
        }
        assert!(values.iter().zip(rows.iter().zip(&cols)).all(|(v, (i, j))| if i == j {
            *v > 0.0
        } else {
            *v <= -1.0
        }));
    }

    #[test]
    fn without_flow_it_is_diffusion() {
        let (still, moving) = (convection3d([4, 3, 5], 0.0).unwrap(), convection3d([4, 3, 5], 1.0).unwrap());
        let plain = poisson3d([4, 3, 5]).unwrap();
        assert_eq!((still.row_ptr(), still.col_idx()), (plain.row_ptr(), plain.col_idx()));
        assert!(still.values().iter().all(|v| *v == -1.0 || *v >= 6.0));
        assert_ne!(still, moving);
    }
}
