//! All levels of a lattice as tables.

use std::time::Instant;

use super::super::dense::Dense;
use super::super::{FEW_ROWS, Hierarchy, LevelInfo};
use super::coarser::Transfer;
use super::{Classes, Lattice, NEIGHBOURS, Point, Table, kind_of, neighbour, offset};

/// Levels, from that of the matrix to one that is solved by its factor.
#[derive(Debug)]
pub(in super::super) struct Tables {
    /// Those that have one below them.
    pub(in super::super) levels: Vec<TableLevel>,
    pub(in super::super) coarsest: Dense,
    pub(in super::super) hierarchy: Hierarchy,
}

/// A level that has one below it.
#[derive(Debug)]
pub(in super::super) struct TableLevel {
    pub(in super::super) sides: [usize; 3],
    pub(in super::super) a: Table,
    pub(in super::super) below: Below,
}

/// What a level is interpolated from.
#[derive(Debug)]
pub(in super::super) struct Below {
    pub(in super::super) sides: [usize; 3],
    /// Every how many points of a direction there is one of the next level: 1 or 2.
    pub(in super::super) steps: [usize; 3],
    pub(in super::super) classes: [Classes; 3],
    /// By kind of point of the next level: weights for the neighbours of its point,
    pub(in super::super) weights: Vec<[f32; NEIGHBOURS]>,
    /// of which some point has these.
    pub(in super::super) neighbours: Vec<usize>,
    /// The same by cells between points of the next level.
    pub(in super::super) cells: Cells,
}

/// Weights of the points of a level in each cell between points of the next level, at its lower ends or in the middle.
#[derive(Debug)]
pub(in super::super) struct Cells {
    pub(in super::super) classes: [Classes; 3],
    /// By kind of cell. In each direction number 0 is what the point at the cell's lower end has of that end, 1 what the one in the middle has of it,
    /// and 2 what that has of the upper end.
    pub(in super::super) weights: Vec<[f32; NEIGHBOURS]>,
}

impl Below {
    fn of(lattice: &Lattice, next: &Lattice, transfer: &Transfer) -> Option<Self> {
        let weights = lattice.weights(next, transfer)?;
        let neighbours = (0..NEIGHBOURS).filter(|k| weights.iter().any(|weights| weights[*k] != 0.0)).collect();
        let (steps, classes) = (transfer.steps, next.classes.clone());
        let cells = Cells::of(&classes, &weights, steps)?;
        Some(Self { sides: next.sides(), steps, classes, weights, neighbours, cells })
    }
}

impl Cells {
    /// Of weights by kind of point.
    fn of(of_points: &[Classes; 3], weights: &[[f32; NEIGHBOURS]], steps: [usize; 3]) -> Option<Self> {
        let classes = of_points.each_ref().map(|classes| classes.seen(1, |_| 0..=1));
        let of_kind = |p: Point| {
            let weight = |k: usize| {
                let numbers = [k % 3, k / 3 % 3, k / 9];
                let end = [0, 1, 2].map(|d| p[d] + numbers[d] as i64 / 2);
                // the middle is one further than the lower end, and one before the upper one
                let o = numbers.map(|number| [0, 1, -1][number]);
                let row = kind_of(of_points, end).filter(|_| (0..3).all(|d| steps[d] == 2 || o[d] == 0));
                row.map_or(0.0, |row| weights[row][neighbour(o)])
            };
            std::array::from_fn(weight)
        };
        let weights = Lattice::kinds(&classes)?.map(of_kind).collect();
        Some(Self { classes, weights })
    }
}

impl Tables {
    /// The sides of the first level; of a single small one, which is not cut, all rows in a line.
    pub(in super::super) fn sides(&self) -> [usize; 3] {
        self.levels.first().map_or([self.coarsest.n(), 1, 1], |level| level.sides)
    }

    /// Of a lattice; `None` if interpolation does not suit all levels.
    pub(in super::super) fn of(mut lattice: Lattice) -> Option<Self> {
        let start = Instant::now();
        let (mut levels, mut infos, mut began) = (Vec::new(), Vec::new(), start);
        loop {
            let (rows, nnz) = (lattice.rows(), lattice.nnz());
            infos.push(LevelInfo { rows, nnz, time: began.elapsed() });
            began = Instant::now();
            if rows <= FEW_ROWS {
                let coarsest = Dense::of(&lattice.assembled());
                return Some(Self { levels, coarsest, hierarchy: Hierarchy::of(infos, start.elapsed()) });
            }
            let (transfer, next) = lattice.coarser()?;
            let below = Below::of(&lattice, &next, &transfer)?;
            levels.push(TableLevel { sides: lattice.sides(), a: lattice.table()?, below });
            lattice = next;
        }
    }
}

/// How much further the element of a neighbour is, in a lattice with these sides.
pub(in super::super) fn distance(k: usize, [nx, ny, _]: [usize; 3]) -> isize {
    let [x, y, z] = offset(k).map(|o| o as isize);
    (z * ny as isize + y) * nx as isize + x
}
