//! A rank's part of a grid: planes across its last axis, how arrays have them, and which layers are among them.
//!
//! Every array of a component has the rank's planes and one more, the *halo*: of E the plane behind, of H the plane before, as H is
//! made of differences to the next cell, E of differences to the cell before. The tangential E of the first cell along an axis lies on a
//! wall, where it is always 0; so the last cell of a row, whose next element is the first one of the next row, finds the 0 of the
//! wall behind it there, and updates of H need no branch.

use std::ops::Range;

use super::grid::{Component, Grid, Half, Term, Update};
use super::problem::Problem;
use crate::real::Real;

/// A rank's planes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slab {
    pub(crate) grid: Grid,
    pub(crate) planes: Range<usize>,
}

impl Slab {
    /// Cells of a plane.
    pub(crate) fn plane(&self) -> usize {
        self.grid.plane()
    }

    /// Own cells.
    pub(crate) fn cells(&self) -> usize {
        self.planes.len() * self.plane()
    }

    /// Elements of a component's array.
    pub(crate) fn room(&self) -> usize {
        self.cells() + self.plane()
    }

    /// Where own cells begin in arrays of a half.
    pub(crate) fn offset(&self, half: Half) -> usize {
        match half {
            Half::H => self.plane(),
            Half::E => 0,
        }
    }

    /// Where the halo is in them.
    pub(crate) fn halo(&self, half: Half) -> Range<usize> {
        let begin = match half {
            Half::H => 0,
            Half::E => self.cells(),
        };
        begin..begin + self.plane()
    }

    /// The plane that a neighbour has as its halo: of H the last one, of E the first one.
    pub(crate) fn sent(&self, half: Half) -> Range<usize> {
        let begin = match half {
            Half::H => self.cells(),
            Half::E => 0,
        };
        begin..begin + self.plane()
    }

    /// Which components neighbours need of a half: those whose derivative is taken across planes.
    pub(crate) fn exchanged(&self, half: Half) -> Vec<Component> {
        let other = if half == Half::H { Half::E } else { Half::H };
        let across = self.grid.slab_axis();
        let terms = self.grid.mode().updates(other).flat_map(Update::terms);
        terms.filter(|(term, _)| term.axis == across).map(|(term, _)| term.source).collect()
    }

    /// Where the two elements are, relative to an own cell, whose difference is a derivative for a cell of `half`: the farther one and
    /// the nearer one, in the array of the other half.
    pub(crate) fn difference(&self, half: Half, axis: usize) -> [usize; 2] {
        let stride = self.grid.stride(axis);
        match half {
            Half::H => [stride, 0],
            Half::E => [self.plane(), self.plane() - stride],
        }
    }

    /// On which axes a component is 0 in this rank's first cells.
    pub(crate) fn walls(&self, component: Component) -> [bool; 3] {
        let mut walls = self.grid.walls(component);
        walls[self.grid.slab_axis()] &= self.planes.start == 0;
        walls
    }

    /// Its part of what a problem has for each cell.
    pub(crate) fn of_cells<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        &all[self.planes.start * self.plane()..self.planes.end * self.plane()]
    }
}

/// The cells of this rank that are in the layers along an axis, as a box of their own: the layers before the first wall, then those
/// before the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Layers {
    pub(crate) axis: usize,
    /// Cells of the box along each axis.
    pub(crate) size: [usize; 3],
    /// Of its cells along the axis, so many are before the first wall,
    pub(crate) low: usize,
    /// and the others are so many cells farther in the slab than in the box.
    pub(crate) shift: usize,
    /// The first of them among all layers along the axis.
    pub(crate) first: usize,
}

impl Layers {
    /// None if there are none.
    pub(crate) fn of(problem: &Problem, slab: &Slab, axis: usize) -> Option<Self> {
        let grid = &slab.grid;
        let mut size = grid.cells;
        size[grid.slab_axis()] = slab.planes.len();
        let [before, behind] = problem.pml.layers[axis];
        let all = if axis == grid.slab_axis() { slab.planes.clone() } else { 0..grid.cells[axis] };
        let low = before.saturating_sub(all.start).min(all.len());
        let high_start = (grid.cells[axis] - behind).clamp(all.start, all.end);
        let high = all.end - high_start;
        size[axis] = low + high;
        let first = if low > 0 { all.start } else { before + high_start.saturating_sub(grid.cells[axis] - behind) };
        let is_there = size.iter().product::<usize>() > 0;
        is_there.then_some(Self { axis, size, low, shift: high_start - all.start - low, first })
    }

    /// All cells of the box.
    pub(crate) fn cells(&self) -> usize {
        self.size.iter().product()
    }

    /// Cells of the box in these planes of the slab: they lie side by side, as planes without layers are not in the box.
    pub(crate) fn in_planes(&self, slab: &Slab, planes: &Range<usize>) -> Range<usize> {
        let across = slab.grid.slab_axis();
        let each = self.size[..across].iter().product::<usize>();
        let place = |plane: usize| {
            if self.axis == across { plane.min(self.low) + plane.saturating_sub(self.low + self.shift) } else { plane }
        };
        place(planes.start) * each..place(planes.end) * each
    }
}

/// What a layer does to one component: one array of ψ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Correction<T> {
    pub(crate) layers: Layers,
    pub(crate) half: Half,
    pub(crate) target: Component,
    pub(crate) term: Term,
    /// Whether the derivative is added.
    pub(crate) adds: bool,
    /// Of each cell along the axis: b, c, 1 / κ − 1.
    pub(crate) profile: Vec<T>,
}

/// What tells the ψ of a layer from others: the component that it changes, and the axis of the layers.
pub(crate) type LayerName = (Component, usize);

impl<T> Correction<T> {
    pub(crate) fn name(&self) -> LayerName {
        (self.target, self.term.axis)
    }
}

/// All corrections of a rank, always in the same order.
pub(crate) fn corrections<T: Real>(problem: &Problem, slab: &Slab) -> Vec<Correction<T>> {
    let mut all = Vec::new();
    for half in [Half::H, Half::E] {
        for update in slab.grid.mode().updates(half) {
            for (term, adds) in update.terms() {
                let Some(layers) = Layers::of(problem, slab, term.axis) else { continue };
                let profile = problem.pml.profile(&slab.grid, term.axis, half, problem.vacuum, problem.dt);
                let own = &profile[layers.first..layers.first + layers.size[term.axis]];
                let profile = own.iter().flatten().map(|&v| T::from_f64(v)).collect();
                all.push(Correction { layers, half, target: update.target, term, adds, profile });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::grid::Mode;
    use super::super::material::{Material, Vacuum};
    use super::super::pml::Pml;
    use super::*;

    #[test]
    fn layers_of_slabs() {
        let grid = Grid::new(Mode::Te, &[5, 9], &[1.0; 2]).unwrap();
        let mut problem = Problem::new(grid, Vacuum::default(), vec![Material::vacuum("air")]).unwrap();
        problem.set_pml(Pml { layers: [[1, 2], [3, 2], [0; 2]], ..Pml::none() }).unwrap();
        let of = |planes: Range<usize>, axis| {
            Layers::of(&problem, &Slab { grid, planes }, axis).map(|l| (l.size, l.low, l.shift, l.first))
        };
        assert_eq!(of(0..9, 0), Some(([3, 9, 1], 1, 2, 0)));
        assert_eq!(of(0..9, 1), Some(([5, 5, 1], 3, 4, 0)));
        assert_eq!(of(2..8, 1), Some(([5, 2, 1], 1, 4, 2)));
        assert_eq!(of(0..2, 1), Some(([5, 2, 1], 2, 0, 0)));
        assert_eq!(of(8..9, 1), Some(([5, 1, 1], 0, 0, 4)));
        assert_eq!((of(3..7, 1), of(4..4, 0)), (None, None));
        let slab = Slab { grid, planes: 0..9 };
        let layers = Layers::of(&problem, &slab, 1).unwrap();
        assert_eq!(
            [0..1, 1..8, 8..9, 0..9, 3..7].map(|planes| layers.in_planes(&slab, &planes)),
            [0..5, 5..20, 20..25, 0..25, 15..15]
        );
    }
}
