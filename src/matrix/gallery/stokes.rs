//! Slow flow of a fluid that can't be compressed.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble, too_large};

/// Slow flow in a closed square on a staggered grid: −Δu + ∇p = f, −∇·u = g, u = 0 on the boundary.
///
/// On mx × my cells, pressures are in the cells, and the flow across a side of a cell is on its middle (the grid of
/// Harlow and Welch, also called MAC). With pressures in units of 1/h, times h² of the first equation and h of the second:
///
/// ```text
/// across x:  4 u − Σ u(neighbour) + p(right) − p(left),     5 u in place of 4 u for each wall beside it
/// across y:  4 v − Σ v(neighbour) + p(above) − p(below),    likewise
/// in a cell: u(left) − u(right) + v(below) − v(above)
/// ```
///
/// The walls across the flow are neighbours with the flow 0, and those beside it are half a cell away. Unknowns are in the
/// order of the cells, for each cell that of its right side, that of its upper side and its pressure, less those on walls.
/// Pressures are known up to a constant: that of the last cell is 0, and neither it nor its equation, which
/// follows from the others, is among the unknowns. So the matrix is nonsingular, with
/// n = (mx − 1) my + mx (my − 1) + mx my − 1.
///
/// Symmetric and indefinite, [K, G; Gᵀ, 0] in another order: as many eigenvalues are positive as there are flows, and as
/// many negative as pressures, mx my − 1. Rows of pressures have no entry on the diagonal. On m × m cells the
/// condition number is about 22 m².
///
/// F. H. Harlow, J. E. Welch (1965), doi 10.1063/1.1761178; M. Benzi, G. H. Golub, J. Liesen, "Numerical solution of
/// saddle point problems" (2005), doi 10.1017/S0962492904000212.
///
/// # Errors
/// [`Error::Usage`] for a grid of less than two cells, or with too many.
pub fn stokes2d(cells: [usize; 2]) -> Result<Csr> {
    let unknowns = Unknowns::new(cells)?;
    assemble(
        unknowns.count,
        |i| unknowns.row(i).1,
        |i, row| {
            let (entries, count) = unknowns.row(i);
            entries[..count].iter().for_each(|(j, value)| row.push(*j, *value));
        },
    )
}

/// What an unknown is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The flow through the right side of its cell.
    Right,
    /// The flow through the upper side of its cell.
    Up,
    /// The pressure of its cell.
    Pressure,
}

/// The numbers of the unknowns.
struct Unknowns {
    cells: [usize; 2],
    count: usize,
}

/// Columns and values in rising order, and how many they are.
type Entries = ([(usize, f64); 7], usize);

impl Unknowns {
    fn new([mx, my]: [usize; 2]) -> Result<Self> {
        if mx == 0 || my == 0 || mx.max(my) == 1 {
            return Err(Error::Usage(format!("a grid of {mx} × {my} cells is too small: nothing flows")));
        }
        let all = mx.checked_mul(my).and_then(|cells| cells.checked_mul(3)).filter(|all| *all <= Csr::MAX_DIM);
        let all = all.ok_or_else(|| too_large(format_args!("{mx} × {my} cells with 3 unknowns each")))?;
        Ok(Self { cells: [mx, my], count: all - mx - my - 1 })
    }

    /// The number of an unknown of the cell at (x, y); none if it is on a wall, or the pressure that is fixed.
    fn number(&self, x: usize, y: usize, kind: Kind) -> Option<usize> {
        let [mx, my] = self.cells;
        let (last_column, last_row) = (x + 1 == mx, y + 1 == my);
        let (rights, ups) = (usize::from(!last_column), usize::from(!last_row));
        let begin = y * (3 * mx - 1) + x * (2 + ups);
        match kind {
            Kind::Right => (!last_column).then_some(begin),
            Kind::Up => (!last_row).then_some(begin + rights),
            Kind::Pressure => (!(last_column && last_row)).then_some(begin + rights + ups),
        }
    }

    /// The cell of unknown `i`, and what it is.
    fn of(&self, i: usize) -> ([usize; 2], Kind) {
        let [mx, my] = self.cells;
        let y = (i / (3 * mx - 1)).min(my - 1);
        let in_row = i - y * (3 * mx - 1);
        let of_cell: &[Kind] =
            if y + 1 < my { &[Kind::Right, Kind::Up, Kind::Pressure] } else { &[Kind::Right, Kind::Pressure] };
        let x = (in_row / of_cell.len()).min(mx - 1);
        // the last cell of a row has no right side
        (([x, y]), of_cell[in_row - x * of_cell.len() + usize::from(x + 1 == mx)])
    }

    fn row(&self, i: usize) -> Entries {
        let mut row = ([(0, 0.0); 7], 0);
        let mut add = |entry: Option<(usize, f64)>| {
            if let Some(entry) = entry {
                row.0[row.1] = entry;
                row.1 += 1;
            }
        };
        let ([x, y], kind) = self.of(i);
        let at = |x: usize, y: usize, kind: Kind, value: f64| self.number(x, y, kind).map(|j| (j, value));
        if kind == Kind::Pressure {
            add(x.checked_sub(1).and_then(|x| at(x, y, Kind::Right, 1.0)));
            add(y.checked_sub(1).and_then(|y| at(x, y, Kind::Up, 1.0)));
            add(at(x, y, Kind::Right, -1.0));
            add(at(x, y, Kind::Up, -1.0));
        } else {
            let [mx, my] = self.cells;
            let inside = |x: Option<usize>, y: Option<usize>| Some((x.filter(|x| *x < mx)?, y.filter(|y| *y < my)?));
            let around = [
                inside(Some(x), y.checked_sub(1)),
                inside(x.checked_sub(1), Some(y)),
                inside(Some(x + 1), Some(y)),
                inside(Some(x), Some(y + 1)),
            ];
            let beside = if kind == Kind::Right { [around[0], around[3]] } else { [around[1], around[2]] };
            let walls = beside.iter().filter(|cell| cell.is_none()).count();
            add(Some((i, 4.0 + walls as f64)));
            around.into_iter().flatten().for_each(|(x, y)| add(at(x, y, kind, -1.0)));
            let (beyond_x, beyond_y) = if kind == Kind::Right { (x + 1, y) } else { (x, y + 1) };
            add(at(x, y, Kind::Pressure, -1.0));
            add(at(beyond_x, beyond_y, Kind::Pressure, 1.0));
        }
        row.0[..row.1].sort_unstable_by_key(|(j, _)| *j);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_hand() {
        // two cells side by side: one flow between walls above and below, the pressure on its left
        let a = stokes2d([2, 1]).unwrap();
        assert_eq!(a.to_columns(), [[6.0, -1.0], [-1.0, 0.0]]);
        assert_eq!(stokes2d([1, 2]).unwrap(), a);
        // 2 × 2 cells, in order: u, v, p; v, p; u, p
        let a = stokes2d([2, 2]).unwrap();
        let columns = [
            [5.0, 0.0, -1.0, 0.0, 1.0, -1.0, 0.0],
            [0.0, 5.0, -1.0, -1.0, 0.0, 0.0, 1.0],
            [-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, -1.0, 0.0, 5.0, -1.0, 0.0, 0.0],
            [1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0],
            [-1.0, 0.0, 0.0, 0.0, 0.0, 5.0, -1.0],
            [0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0],
        ];
        assert_eq!(a.to_columns(), columns);
        assert_eq!(a.nnz(), 20);
    }

    #[test]
    fn numbers_and_unknowns_are_inverse() {
        for cells in [[2, 1], [1, 4], [3, 3], [5, 2], [4, 7]] {
            let unknowns = Unknowns::new(cells).unwrap();
            let mut next = 0;
            for y in 0..cells[1] {
                for x in 0..cells[0] {
                    for kind in [Kind::Right, Kind::Up, Kind::Pressure] {
                        if let Some(i) = unknowns.number(x, y, kind) {
                            assert_eq!((i, unknowns.of(i)), (next, ([x, y], kind)), "{cells:?}");
                            next += 1;
                        }
                    }
                }
            }
            assert_eq!(next, unknowns.count);
        }
    }

    #[test]
    fn fluid_at_rest_and_fluid_that_turns() {
        // a pressure that rises by 1 from cell to cell pushes on every flow across x alike
        let cells = [6, 5];
        let (unknowns, a) = (Unknowns::new(cells).unwrap(), stokes2d(cells).unwrap());
        let field = |value: &dyn Fn(usize, usize, Kind) -> f64| -> Vec<f64> {
            (0..unknowns.count).map(unknowns.of_each(value)).collect()
        };
        let pressure = field(&|x, _, kind| if kind == Kind::Pressure { x as f64 - 5.0 } else { 0.0 });
        let push = field(&|_, _, kind| if kind == Kind::Right { 1.0 } else { 0.0 });
        assert_eq!(a.mul_vec(&pressure), push);
        // flows by a stream function on the corners of the cells, 0 on the walls, neither fill nor empty any cell
        let stream = |x: usize, y: usize| {
            if [0, 6].contains(&x) || [0, 5].contains(&y) { 0.0 } else { (7 * x * x + 3 * y + x * y) as f64 }
        };
        let flow = field(&|x, y, kind| match kind {
            Kind::Right => stream(x + 1, y + 1) - stream(x + 1, y),
            Kind::Up => stream(x, y + 1) - stream(x + 1, y + 1),
            Kind::Pressure => 0.0,
        });
        let force = a.mul_vec(&flow);
        assert!((0..unknowns.count).all(|i| unknowns.of(i).1 != Kind::Pressure || force[i] == 0.0));
        assert!(force.iter().any(|f| *f != 0.0));
    }

    impl Unknowns {
        fn of_each(&self, value: &dyn Fn(usize, usize, Kind) -> f64) -> impl Fn(usize) -> f64 {
            move |i| {
                let ([x, y], kind) = self.of(i);
                value(x, y, kind)
            }
        }
    }
}
