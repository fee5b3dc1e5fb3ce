//! Curls, row by row.

use rayon::prelude::*;

use super::super::grid::{Component, Half, Update};
use super::super::material::Table;
use super::super::problem::Problem;
use super::super::slab::Slab;
use crate::real::Real;

/// Stands for rows of several materials.
const MIXED: u16 = 256;

/// What is in the cells.
pub(super) struct Media<T> {
    pub(super) index: Vec<u8>,
    /// The material of each row, or [`MIXED`].
    rows: Vec<u16>,
    tables: [Table<T>; 2],
}

impl<T: Real> Media<T> {
    pub(super) fn new(problem: &Problem, slab: &Slab) -> Self {
        let index = slab.of_cells(&problem.index).to_vec();
        let of_row = |row: &[u8]| if row.iter().all(|m| *m == row[0]) { row[0].into() } else { MIXED };
        let rows = index.par_chunks(slab.grid.cells[0]).map(of_row).collect();
        let table = |half| Table::new(&problem.materials, half, problem.vacuum, problem.dt, &problem.grid);
        Self { index, rows, tables: [table(Half::H), table(Half::E)] }
    }

    pub(super) fn table(&self, half: Half) -> &Table<T> {
        &self.tables[usize::from(half == Half::E)]
    }
}

/// Updates a component in one row of cells.
pub(super) fn update_row<T: Real>(
    slab: &Slab,
    media: &Media<T>,
    half: Half,
    update: &Update,
    row: usize,
    sources: &[Vec<T>; 3],
    to: &mut [T],
) {
    let [nx, ny, _] = slab.grid.cells;
    let walls = slab.walls(update.target);
    // in two dimensions rows are planes
    let at_zero =
        if slab.grid.slab_axis() == 1 { [false, row == 0, false] } else { [false, row.is_multiple_of(ny), row < ny] };
    if walls.iter().zip(at_zero).any(|(is_wall, is_there)| *is_wall && is_there) {
        return to.fill(T::default());
    }
    let cell = row * nx;
    let sides = |source: Component, axis: usize| {
        let array = &sources[source.axis()];
        slab.difference(half, axis).map(|offset| &array[cell + offset..cell + offset + nx])
    };
    let plus = update.plus.map(|term| (sides(term.source, term.axis), term.axis));
    let minus = update.minus.map(|term| (sides(term.source, term.axis), term.axis));
    let table = media.table(half);
    match media.rows[row] {
        MIXED => {
            let index = &media.index[cell..cell + nx];
            curl(to, plus, minus, |i| table.of(index[i]));
        }
        material => {
            let factors = table.of(material as u8);
            curl(to, plus, minus, |_| factors);
        }
    }
    if walls[0] {
        to[0] = T::default();
    }
}

/// `to ← a to + (b ∂plus − b ∂minus)`, a and b by the cell.
#[inline(always)]
fn curl<T: Real>(
    to: &mut [T],
    plus: Option<([&[T]; 2], usize)>,
    minus: Option<([&[T]; 2], usize)>,
    factors: impl Fn(usize) -> [T; 4],
) {
    let n = to.len();
    match (plus, minus) {
        (Some(([far, near], p)), Some(([far2, near2], q))) => {
            let (far, near, far2, near2) = (&far[..n], &near[..n], &far2[..n], &near2[..n]);
            for i in 0..n {
                let f = factors(i);
                to[i] = f[0] * to[i] + (f[1 + p] * (far[i] - near[i]) - f[1 + q] * (far2[i] - near2[i]));
            }
        }
        (Some(([far, near], p)), None) => {
            let (far, near) = (&far[..n], &near[..n]);
            for i in 0..n {
                let f = factors(i);
                to[i] = f[0] * to[i] + f[1 + p] * (far[i] - near[i]);
            }
        }
        (None, Some(([far, near], q))) => {
            let (far, near) = (&far[..n], &near[..n]);
            for i in 0..n {
                let f = factors(i);
                to[i] = f[0] * to[i] - f[1 + q] * (far[i] - near[i]);
            }
        }
        (None, None) => {}
    }
}
