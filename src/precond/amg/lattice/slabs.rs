//! Slabs: what each of several ranks does of the levels of a lattice that they share.
//!
//! Lattices are cut across their last direction. A rank has a slab of each shared level: its own planes, and so many of others' that all it
//! needs in a cycle follows from b there. The right side of the next level it makes for planes of its own, and gets the others'. What it makes near a
//! cut is wrong, and goes no further: a product carries it by one plane.

use std::ops::Range;

use super::tables::{Below, Cells, TableLevel, Tables};
use super::{Classes, Lattice, NEIGHBOURS, Table, kind_of, offset};

/// Planes beyond those of a result that its smoothing after the correction needs of the corrected x: two products,
const AFTER: usize = 2;
/// and planes of b beyond those of a restricted or corrected vector, each of which needs one product for x, and the former one for the residual.
const BEFORE: usize = 1;

/// What a rank has of a level that ranks share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Slab {
    /// Planes of the level that it works on,
    pub(in super::super) planes: Range<usize>,
    /// those of the next level that these are interpolated from,
    pub(in super::super) below: Range<usize>,
    /// and which of these it makes the right side for: each plane has one such rank.
    pub(in super::super) own_below: Range<usize>,
}

/// The levels that ranks share, from the first on.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Slabs {
    /// What lattices are cut across.
    pub(in super::super) direction: usize,
    /// By rank, its slab of each level.
    pub(in super::super) of_ranks: Vec<Vec<Slab>>,
}

impl Slabs {
    /// Of levels that ranks share as far as they have more entries than `most`, for ranks that have these rows; none if a rank has no rows.
    pub(in super::super) fn new(tables: &Tables, most: usize, rows: &[Range<usize>]) -> Self {
        let Tables { levels, hierarchy, .. } = tables;
        let direction = levels.first().map_or(0, |level| last_direction(level.sides));
        let is_shared = |(level, _): &(&TableLevel, _)| level.sides[direction] > 1;
        let large = levels.iter().zip(&hierarchy.levels).take_while(|(_, info)| info.nnz > most);
        let shared: Vec<&TableLevel> = large.take_while(is_shared).map(|(level, _)| level).collect();
        let has_some = rows.iter().all(|rows| !rows.is_empty());
        let of_rank = |rows: &Range<usize>| if has_some { slabs(&shared, direction, rows) } else { Vec::new() };
        Self { direction, of_ranks: rows.iter().map(of_rank).collect() }
    }

    /// Elements of a plane of a lattice with these sides.
    pub(in super::super) fn plane(&self, sides: [usize; 3]) -> usize {
        sides[..self.direction].iter().product()
    }
}

/// The last direction in which there is more than one point.
fn last_direction(sides: [usize; 3]) -> usize {
    (0..3).rev().find(|d| sides[*d] > 1).unwrap_or(0)
}

/// So many more planes at both ends.
fn wider(planes: &Range<usize>, by: usize, side: usize) -> Range<usize> {
    planes.start.saturating_sub(by)..(planes.end + by).min(side)
}

fn hull(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.min(b.start)..a.end.max(b.end)
}

/// The slabs of a rank that has these rows of the first level.
fn slabs(shared: &[&TableLevel], direction: usize, rows: &Range<usize>) -> Vec<Slab> {
    let Some(first) = shared.first() else { return Vec::new() };
    let plane: usize = first.sides[..direction].iter().product();
    // which x is needed on, which planes no other rank makes, and which have to be there
    let mut needed = rows.start / plane..rows.end.div_ceil(plane);
    let mut own = rows.start.div_ceil(plane)..rows.end.div_ceil(plane);
    let (mut least, mut all) = (needed.clone(), Vec::new());
    for level in shared {
        let (side, step) = (level.sides[direction], level.below.steps[direction]);
        let corrected = wider(&needed, AFTER, side);
        let own_below = own.start.div_ceil(step)..own.end.div_ceil(step);
        // that which is restricted to a plane of the next level
        let restricted = own_below.start * step..(own_below.end * step).min(side);
        let b = hull(&wider(&corrected, BEFORE, side), &wider(&restricted, 2 * BEFORE + step - 1, side));
        let Range { start, end } = hull(&b, &least);
        let below = start / step..end.div_ceil(step);
        let planes = below.start * step..(below.end * step).min(side);
        needed = corrected.start / step..((corrected.end - 1).div_ceil(step) + 1).min(level.below.sides[direction]);
        (own, least) = (own_below.clone(), below.clone());
        all.push(Slab { planes, below, own_below });
    }
    all
}

/// Classes of the coordinates of some planes, those at a cut in classes of their own; and for each kind that they make which it is among those of
/// the whole lattice, and whether the planes below and above are cut off.
fn cut(of: &[Classes; 3], direction: usize, planes: &Range<usize>) -> ([Classes; 3], Vec<(usize, [bool; 2])>) {
    let classes = &of[direction].of;
    let is_cut = |at: usize| [at == planes.start && at > 0, at + 1 == planes.end && at + 1 < classes.len()];
    let keys: Vec<_> = planes.clone().map(|at| (classes[at], is_cut(at))).collect();
    let mut cut = of.clone();
    cut[direction] = Classes::by(&keys);
    let kind = |mut p: [i64; 3]| {
        let at = planes.start + p[direction] as usize;
        p[direction] = at as i64;
        (kind_of(of, p).unwrap_or_default(), is_cut(at))
    };
    let kinds = Lattice::all_kinds(&cut).map(kind).collect();
    (cut, kinds)
}

/// Whether a neighbour is cut off.
fn is_cut_off(k: usize, direction: usize, is_cut: [bool; 2]) -> bool {
    match offset(k)[direction] {
        -1 => is_cut[0],
        1 => is_cut[1],
        _ => false,
    }
}

impl TableLevel {
    /// That of a lattice of which all but a slab is cut off.
    pub(in super::super) fn slab(&self, direction: usize, Slab { planes, below, .. }: &Slab) -> Self {
        let Self { sides, a, below: of } = self;
        let with = |sides: &[usize; 3], planes: &Range<usize>| {
            let mut sides = *sides;
            sides[direction] = planes.len();
            sides
        };
        let (classes, kinds) = cut(&a.classes, direction, planes);
        let count = a.neighbours.len();
        let row = |(kind, is_cut): &(usize, [bool; 2])| {
            let (kind, is_cut) = (*kind, *is_cut);
            let entry = move |(place, k): (usize, &usize)| {
                if is_cut_off(*k, direction, is_cut) { 0.0 } else { a.entries[kind * count + place] }
            };
            a.neighbours.iter().enumerate().map(entry)
        };
        let entries = kinds.iter().flat_map(row).collect();
        let table = Table { classes, neighbours: a.neighbours.clone(), entries, largest: a.largest };
        let (classes, kinds) = cut(&of.classes, direction, below);
        let weights = |(kind, is_cut): (usize, [bool; 2])| -> [f32; NEIGHBOURS] {
            let weight = |k: usize| if is_cut_off(k, direction, is_cut) { 0.0 } else { of.weights[kind][k] };
            std::array::from_fn(weight)
        };
        let weights = kinds.into_iter().map(weights).collect();
        let (of_cells, kinds) = cut(&of.cells.classes, direction, below);
        let of_kinds = kinds.into_iter().map(|(kind, _)| of.cells.weights[kind]).collect();
        let below = Below {
            sides: with(&of.sides, below),
            steps: of.steps,
            classes,
            weights,
            neighbours: of.neighbours.clone(),
            cells: Cells { classes: of_cells, weights: of_kinds },
        };
        Self { sides: with(sides, planes), a: table, below }
    }
}
