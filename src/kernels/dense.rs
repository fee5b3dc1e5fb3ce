//! Launchers of `cl/dense.cl`.

use std::marker::PhantomData;

use super::gemm::{Block, Lower};
use super::{Argument, PRELUDE, Shape, Tuning, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// The most rows that are moved at once: as many come to the first rows of a block of columns as it has columns, and as many go.
pub(crate) const MOST_MOVES: usize = 512;

/// The kernels of the file, compiled for one device.
pub(crate) struct DenseKernels<T> {
    copy: Kernel,
    mirror: Kernel,
    move_rows: Kernel,
    group_size: usize,
    max_groups: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T: Real> DenseKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context) -> Result<Self> {
        let launch = Tuning::default_for(ctx.info(), Shape::of(ctx.info())).launch("dense");
        Self::in_groups(ctx, launch.group_size, launch.max_groups)
    }

    /// The same in groups of this size; 1 is the CPU shape.
    pub(crate) fn in_groups(ctx: &Context, group_size: usize, max_groups: usize) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("dense", include_str!("../../cl/dense.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let options = options_of::<T, T>(USUAL_STD, ctx.info(), group_size, group_size);
        let program = ctx.build(&source, &format!("{options} -D MOST_MOVES={MOST_MOVES}"))?;
        let kernel = |name| ctx.kernel(&program, name, [T::CL_NAME; 2]);
        let (copy, mirror, move_rows) = (kernel("dense_copy")?, kernel("dense_mirror")?, kernel("dense_move_rows")?);
        Ok(Self { copy, mirror, move_rows, group_size, max_groups, elements: PhantomData })
    }

    fn grid(&self, items: usize) -> Grid {
        let groups = items.div_ceil(if self.group_size == 1 { 1024 } else { self.group_size });
        Grid { groups: groups.clamp(1, self.max_groups), group_size: self.group_size }
    }

    /// Y = X, of so many rows and columns.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a block is not in its array.
    pub(crate) fn copy(&self, ctx: &Context, [rows, cols]: [usize; 2], x: Block<'_, T>, y: Block<'_, T>) -> Result<()> {
        assert!(x.has(rows, cols) && y.has(rows, cols), "{rows} x {cols}");
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        let [m, n, ldx, ldy] = [rows, cols, x.ld, y.ld].map(count);
        let [x_at, y_at] = [x.at, y.at].map(|at| at as u64);
        let args: [&dyn Argument; 8] = [&m, &n, x.array, &x_at, &ldx, y.array, &y_at, &ldy];
        // SAFETY: types as declared in the file; elements of blocks are in their arrays, as was checked.
        unsafe { launch(ctx, &self.copy, self.grid(rows * cols), &args) }
    }

    /// Y = Xᵀ, or D Xᵀ with the diagonal of X as D, in so many rows and columns: column j of Y is the row of X that [`Lower`] tells.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a block is not in its array.
    pub(crate) fn mirror(
        &self,
        ctx: &Context,
        [rows, cols]: [usize; 2],
        (Lower { block, stride, first }, has_diagonal): (Lower, bool),
        x: Block<'_, T>,
        y: Block<'_, T>,
    ) -> Result<()> {
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        let last = first + (cols - 1) / block * stride + (cols - 1) % block;
        let diagonal = if has_diagonal { rows } else { 0 };
        assert!(x.has((last + 1).max(diagonal), rows) && y.has(rows, cols) && block <= stride, "{rows} x {cols}");
        let [m, n, block, stride, first, ldx, ldy] = [rows, cols, block, stride, first, x.ld, y.ld].map(count);
        let [x_at, y_at] = [x.at, y.at].map(|at| at as u64);
        let scaled = u32::from(has_diagonal);
        let args: [&dyn Argument; 12] =
            [&m, &n, &block, &stride, &first, &scaled, x.array, &x_at, &ldx, y.array, &y_at, &ldy];
        // SAFETY: types as declared in the file; elements of blocks are in their arrays, as was checked: rows of X grow with j.
        unsafe { launch(ctx, &self.mirror, self.grid(rows * cols), &args) }
    }

    /// Moves rows of X, which has so many rows and columns: each of `moves` has the number of a row, and of that which comes there.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If the block is not in its array, or there are more than [`MOST_MOVES`]; that they are rows of X is the caller's to know.
    pub(crate) fn move_rows(
        &self,
        ctx: &Context,
        [rows, cols]: [usize; 2],
        (moves, many): (&DeviceVec<u32>, usize),
        x: Block<'_, T>,
    ) -> Result<()> {
        assert!(x.has(rows, cols) && many <= MOST_MOVES && 2 * many <= moves.len());
        if rows == 0 || cols == 0 || many == 0 {
            return Ok(());
        }
        let [n, many, ldx] = [cols, many, x.ld].map(count);
        let x_at = x.at as u64;
        let grid = Grid { groups: cols.min(self.max_groups.saturating_mul(4)), group_size: self.group_size };
        let args: [&dyn Argument; 6] = [&n, &many, moves, x.array, &x_at, &ldx];
        // SAFETY: types as declared in the file; the block is in its array, and who made the moves vouches for them.
        unsafe { launch(ctx, &self.move_rows, grid, &args) }
    }
}
