//! Levels of a lattice on a device: their tables, and vectors.

use super::super::lattice::Classes;
use super::super::lattice::tables::{Below, TableLevel, Tables, distance};
use super::super::smoother::steps;
use super::Vectors;
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::Shape;
use crate::kernels::cycle::{CycleKernels, Polynomial};
use crate::kernels::lattice::{ClassesOf, LatticeKernels, LatticeRows, LatticeTransfer};
use crate::real::Real;

/// A level that has one below it.
struct Level {
    a: LatticeRows,
    /// c and d of the smoother, which adds c r + d A r.
    smoother: [f32; 2],
    below: LatticeTransfer,
    r: DeviceVec<f32>,
    /// b and x of the next level.
    next: [DeviceVec<f32>; 2],
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
        })
    }
}

fn counted(classes: &[Classes; 3]) -> ClassesOf<'_> {
    classes.each_ref().map(|of| (&of.of[..], of.count()))
}

impl LatticeLevels {
    /// Moves levels to a device.
    ///
    /// # Errors
    /// A failing compiler, or not enough memory.
    pub(super) fn new(ctx: &Context, shape: Shape, Tables { levels, coarsest, .. }: &Tables) -> Result<Self> {
        Ok(Self {
            kernels: LatticeKernels::build(ctx, shape)?,
            levels: levels.iter().map(|level| Level::new(ctx, shape, level)).collect::<Result<_>>()?,
            inverse: DeviceVec::from_slice(ctx, &coarsest.inverse(), "the coarsest level")?,
            n: coarsest.n(),
        })
    }

    /// x = M⁻¹ b of the first level.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn cycle<T: Real>(&mut self, ctx: &Context, dense: &CycleKernels<T>, of: &mut Vectors) -> Result<()> {
        let Self { kernels, levels, inverse, n } = self;
        descend((ctx, kernels), levels, (dense, &*inverse, *n), (&of.b, &mut of.x))
    }
}

/// x of the first of some levels for its b; of the last, by the inverse of so many rows.
fn descend<T: Real>(
    (ctx, kernels): (&Context, &LatticeKernels),
    levels: &mut [Level],
    last: (&CycleKernels<T>, &DeviceVec<f32>, usize),
    (b, x): (&DeviceVec<f32>, &mut DeviceVec<f32>),
) -> Result<()> {
    let Some((Level { a, smoother, below, r, next: [next_b, next_x] }, rest)) = levels.split_first_mut() else {
        let (dense, inverse, n) = last;
        return dense.dense(ctx, n, [inverse, b], x);
    };
    kernels.smooth_from_zero(ctx, (a, *smoother), b, x)?;
    kernels.residual(ctx, a, [b, x], r)?;
    kernels.restrict(ctx, below, r, next_b)?;
    descend((ctx, kernels), rest, last, (next_b, next_x))?;
    kernels.correct(ctx, below, next_x, x)?;
    kernels.residual(ctx, a, [b, x], r)?;
    kernels.smooth(ctx, (a, *smoother), r, x)
}
