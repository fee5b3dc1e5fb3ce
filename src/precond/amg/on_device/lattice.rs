//! Levels of a lattice on a device: their tables, and vectors. Several devices share large levels by [`slabs`](super::super::lattice::slabs), and all of
//! them have the others.

use std::ops::Range;
use std::time::Instant;

use rayon::prelude::*;

use super::super::Hierarchy;
use super::super::lattice::Classes;
use super::super::lattice::slabs::{Slab, Slabs};
use super::super::lattice::tables::{Below, TableLevel, Tables, distance};
use super::super::levels::Levels;
use super::super::smoother::steps;
use super::exchanged::{Exchanged, Gather};
use super::first::Diagonals;
use super::ranks::{Among, windows};
use super::set_up::Descent;
use super::{All, Coarse, Launcher, OfRanks, Vectors};
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::Shape;
use crate::kernels::amg::first::FirstVectors;
use crate::kernels::cycle::Polynomial;
use crate::kernels::lattice::{ClassesOf, LatticeKernels, LatticeRows, LatticeTransfer};
use crate::real::Real;

/// A level that has one below it.
struct Level {
    a: LatticeRows,
    /// c and d of the smoother, which adds c r + d A r.
    smoother: [f32; 2],
    below: LatticeTransfer,
    r: DeviceVec<f32>,
    /// b and x of the next level, as far as this one is interpolated from them.
    next: [DeviceVec<f32>; 2],
    /// What ranks exchange of that, if they share this level.
    wider: Option<Wider>,
}

/// Vectors of a level below one that ranks share: of the slab that this rank has of it, or of all of it.
struct Wider {
    gather: Gather,
    /// Which elements of what the level above has of b this rank makes for all,
    own: Range<usize>,
    /// and which of these here that level has.
    above: Range<usize>,
    b: DeviceVec<f32>,
    x: DeviceVec<f32>,
}

/// How ranks share levels of a lattice.
pub(super) struct SharedLevels {
    rank: usize,
    rows: Vec<Range<usize>>,
    slabs: Slabs,
}

impl SharedLevels {
    /// # Errors
    /// A failed rank.
    pub(super) fn new(tables: &Tables, among: Among<'_>) -> Result<Self> {
        let rows = among.parts(among.own)?;
        Ok(Self { rank: among.board.rank(), slabs: Slabs::new(tables, among.most, &rows), rows })
    }

    /// The slabs of this rank.
    fn own(&self) -> &[Slab] {
        &self.slabs.of_ranks[self.rank]
    }

    /// Elements of a level with these sides that each rank has: of its slab, if it is a shared one, or all.
    fn of_level(&self, number: usize, sides: [usize; 3]) -> Vec<Range<usize>> {
        let plane = self.slabs.plane(sides);
        let slab = |slabs: &Vec<Slab>| match slabs.get(number) {
            Some(Slab { planes, .. }) => planes.start * plane..planes.end * plane,
            None => 0..sides.iter().product(),
        };
        self.slabs.of_ranks.iter().map(slab).collect()
    }

    /// How many elements of the first level this rank has, and how it gets b there.
    pub(super) fn first(&self, ctx: &Context, sides: [usize; 3]) -> Result<(usize, Gather)> {
        let of_ranks = self.of_level(0, sides);
        let window = &of_ranks[self.rank];
        let own = within(&self.rows[self.rank], window);
        Ok((window.len(), Gather::new(ctx, own, &windows(self.rank, &self.rows, &of_ranks))?))
    }

    /// What is exchanged below a level that ranks share.
    fn below(&self, ctx: &Context, number: usize, sides: [usize; 3]) -> Result<Option<Wider>> {
        let Some(Slab { below, own_below, .. }) = self.own().get(number) else { return Ok(None) };
        let plane = self.slabs.plane(sides);
        let elements = |planes: &Range<usize>| planes.start * plane..planes.end * plane;
        let parts: Vec<_> = self.slabs.of_ranks.iter().map(|slabs| elements(&slabs[number].own_below)).collect();
        let of_ranks = self.of_level(number + 1, sides);
        let (own, above, window) = (elements(own_below), elements(below), &of_ranks[self.rank]);
        let plan = windows(self.rank, &parts, &of_ranks);
        let room = || DeviceVec::uninit(ctx, window.len(), "the vectors of a level");
        Ok(Some(Wider {
            gather: Gather::new(ctx, within(&own, window), &plan)?,
            own: within(&own, &above),
            above: within(&above, window),
            b: room()?,
            x: room()?,
        }))
    }
}

/// The places of a part of a window in that window.
fn within(part: &Range<usize>, window: &Range<usize>) -> Range<usize> {
    part.start - window.start..part.end - window.start
}

/// Levels of a lattice.
pub(super) struct LatticeLevels {
    kernels: LatticeKernels,
    levels: Vec<Level>,
    /// The inverse of the last level's matrix, and its rows.
    inverse: DeviceVec<f32>,
    n: usize,
}

impl Level {
    fn new(ctx: &Context, shape: Shape, TableLevel { sides, a, below }: &TableLevel) -> Result<Self> {
        let Below { sides: of_next, steps: of_below, classes, weights, neighbours, cells } = below;
        let distances = |of: &[usize]| of.iter().map(|k| distance(*k, *sides)).collect::<Vec<_>>();
        let used: Vec<f32> = weights.iter().flat_map(|weights| neighbours.iter().map(|k| weights[*k])).collect();
        let rows = (counted(classes), (&distances(neighbours)[..], &used[..]));
        let cells = (counted(&cells.classes), &cells.weights[..]);
        let [n, next] = [sides, of_next].map(|sides| sides.iter().product());
        let room = |len| DeviceVec::uninit(ctx, len, "the vectors of a level"); // written before they are read
        Ok(Self {
            a: LatticeRows::new(ctx, shape, counted(&a.classes), (&distances(&a.neighbours), &a.entries))?,
            smoother: Polynomial::from(&steps(a.largest)).of_residual(),
            below: LatticeTransfer::new(ctx, shape, (*sides, *of_below), rows, cells)?,
            r: room(n)?,
            next: [room(next)?, room(next)?],
            wider: None,
        })
    }

    /// One of several that ranks share as far as they do.
    fn shared(
        ctx: &Context,
        shape: Shape,
        (number, level): (usize, &TableLevel),
        shared: Option<&SharedLevels>,
    ) -> Result<Self> {
        let Some((shared, slab)) = shared.and_then(|shared| Some((shared, shared.own().get(number)?))) else {
            return Self::new(ctx, shape, level);
        };
        let own = Self::new(ctx, shape, &level.slab(shared.slabs.direction, slab))?;
        Ok(Self { wider: shared.below(ctx, number, level.below.sides)?, ..own })
    }
}

fn counted(classes: &[Classes; 3]) -> ClassesOf<'_> {
    classes.each_ref().map(|of| (&of.of[..], of.count()))
}

impl LatticeLevels {
    /// Moves levels to a device, which may be one of several that share them.
    ///
    /// # Errors
    /// A failing compiler, or not enough memory.
    pub(super) fn new(
        ctx: &Context,
        shape: Shape,
        Tables { levels, coarsest, .. }: &Tables,
        among: Option<&SharedLevels>,
    ) -> Result<Self> {
        Ok(Self {
            kernels: LatticeKernels::build(ctx, shape)?,
            levels: levels
                .iter()
                .enumerate()
                .map(|level| Level::shared(ctx, shape, level, among))
                .collect::<Result<_>>()?,
            inverse: DeviceVec::from_slice(ctx, &coarsest.inverse(), "the coarsest level")?,
            n: coarsest.n(),
        })
    }

    /// x = M⁻¹ b of the first level.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(super) fn cycle<T: Real>(&mut self, on: &Launcher<T>, of: &mut Vectors) -> Result<()> {
        let Self { kernels, levels, inverse, n } = self;
        descend((on, kernels), levels, (&*inverse, *n), (&of.b, &mut of.x))
    }
}

impl<T: Real> Diagonals<T> {
    /// Levels of a lattice, of a matrix whose rows these are.
    pub(super) fn levels_of_lattice(
        &self,
        Levels { a, is_as_given, .. }: &Levels,
        tables: &Tables,
        of: OfRanks<'_, T>,
        among: Option<Among<'_>>,
    ) -> Result<([DeviceVec<T>; 2], All<T>, Hierarchy)> {
        let start = Instant::now();
        let of = OfRanks { rows: of.rows.filter(|_| *is_as_given), ..of };
        let (moved, of) = match of.scaled_by {
            // `factor` times the diagonal
            Some(_) => (None, OfRanks { factor: 1.0, ..of }),
            None => {
                let on_device = |block| self.kernels.diagonal(&self.ctx, block, of.times());
                let own = among.map_or(0..a.n_rows(), |among| among.place..among.place + among.own.1);
                let diagonal = match of.patterns().map(on_device).transpose()?.flatten() {
                    Some(diagonal) => diagonal,
                    None => {
                        let of_own = own.into_par_iter().map(|i| a.get(i, i).unwrap_or_default());
                        self.moved(&of_own.collect::<Vec<_>>())?
                    }
                };
                (Some(diagonal), of)
            }
        };
        let Some(diagonal) = moved.as_ref().or(of.scaled_by) else { return Err(Error::SolverBroken) };
        let range = self.kernels.range(&self.ctx, diagonal)?;
        let range = among.map_or(Ok(range), |among| among.range(range))?;
        let FirstVectors { multiples, .. } = self.vectors(diagonal, range, of)?;
        let shared = among.map(|among| SharedLevels::new(tables, among)).transpose()?;
        let levels = LatticeLevels::new(&self.ctx, Shape::Gpu, tables, shared.as_ref())?;
        let (n, exchanged) = match &shared {
            Some(shared) => {
                let (n, gather) = shared.first(&self.ctx, tables.sides())?;
                (n, Exchanged::All(gather))
            }
            None => (a.n_rows(), Exchanged::Nothing),
        };
        let last = Vectors::of_several(&self.ctx, n, 0, [n, n], exchanged)?;
        let mut descent = Descent::new();
        let Hierarchy { levels: infos, time, .. } = &tables.hierarchy;
        infos.iter().for_each(|info| descent.note(*info));
        let hierarchy = Hierarchy::of(descent.infos, *time + start.elapsed());
        Ok((multiples, (Vec::new(), Coarse::Lattice(Box::new(levels)), last), hierarchy))
    }
}

/// x of the first of some levels for its b; of the last, by the inverse of so many rows.
fn descend<T: Real>(
    (on, kernels): (&Launcher<T>, &LatticeKernels),
    levels: &mut [Level],
    last: (&DeviceVec<f32>, usize),
    (b, x): (&DeviceVec<f32>, &mut DeviceVec<f32>),
) -> Result<()> {
    let ctx = &on.backend.ctx;
    let Some((Level { a, smoother, below, r, next: [next_b, next_x], wider }, rest)) = levels.split_first_mut() else {
        let (inverse, n) = last;
        return on.kernels.dense(ctx, n, [inverse, b], x);
    };
    kernels.smooth_from_zero(ctx, (a, *smoother), b, x)?;
    kernels.residual(ctx, a, [b, x], r)?;
    kernels.restrict(ctx, below, r, next_b)?;
    match wider {
        None => descend((on, kernels), rest, last, (next_b, next_x))?,
        Some(Wider { gather, own, above, b, x }) => {
            next_b.copy_part(ctx, own.clone(), b, gather.own.start)?;
            gather.fill(&on.backend, b)?;
            descend((on, kernels), rest, last, (b, x))?;
            x.copy_part(ctx, above.clone(), next_x, 0)?;
        }
    }
    kernels.correct(ctx, below, next_x, x)?;
    kernels.residual(ctx, a, [b, x], r)?;
    kernels.smooth(ctx, (a, *smoother), r, x)
}
