//! Launchers of `cl/block_tridiagonal.cl`.

use std::marker::PhantomData;

use super::{Argument, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// Work-items of a group: few, so that all compute units have some of a few thousand systems.
const GROUP_SIZE: usize = 64;
/// The most work-items of a launch, for each compute unit, before they take several systems each.
const ITEMS_OF_A_UNIT: usize = 2048;

/// Rows and columns of a tile that is turned.
const SIDE: usize = 16;

/// Interleaved systems, so many of so many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) systems: usize,
    pub(crate) blocks: usize,
}

/// The kernels of the file, compiled for one device and blocks of one order.
pub(crate) struct BlockTridiagonalKernels<T> {
    order: usize,
    group_size: usize,
    max_groups: usize,
    thomas: Kernel,
    turn: Kernel,
    elements: PhantomData<fn() -> T>,
}

impl<T: Real> BlockTridiagonalKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, order: usize) -> Result<Self> {
        let group_size = 1 << ctx.info().max_work_group.clamp(2, GROUP_SIZE).ilog2();
        let files = [("prelude", PRELUDE), ("block_tridiagonal", include_str!("../../cl/block_tridiagonal.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let options = options_of::<T, T>(USUAL_STD, ctx.info(), group_size, group_size);
        let program = ctx.build(&source, &format!("{options} -D ORDER={order} -D SIDE={SIDE}"))?;
        let kernel = |name| ctx.kernel(&program, name, [T::CL_NAME; 2]);
        let items = ITEMS_OF_A_UNIT * ctx.info().compute_units.max(1) as usize;
        Ok(Self {
            order,
            group_size,
            max_groups: items.div_ceil(group_size),
            thomas: kernel("block_thomas")?,
            turn: kernel("block_turn")?,
            elements: PhantomData,
        })
    }

    fn grid(&self, items: usize) -> Grid {
        Grid { groups: items.div_ceil(self.group_size).clamp(1, self.max_groups), group_size: self.group_size }
    }

    /// Solves interleaved systems: element `system` of `failed` tells 1 + the row that has no pivot, or 0.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If an array is too short.
    pub(crate) fn thomas(
        &self,
        ctx: &Context,
        Batch { systems, blocks }: Batch,
        coefficients: &[DeviceVec<T>; 3],
        d: &DeviceVec<T>,
        (x, upper, failed): (&mut DeviceVec<T>, &mut DeviceVec<T>, &mut DeviceVec<u32>),
    ) -> Result<()> {
        let rows = systems * blocks * self.order;
        let [a, b, c] = coefficients;
        assert!([a, b, c, upper].iter().all(|array| array.len() >= rows * self.order), "arrays of {systems} systems");
        assert!(d.len() >= rows && x.len() >= rows && failed.len() >= systems, "arrays of {systems} systems");
        if systems == 0 {
            return Ok(());
        }
        let grid = self.grid(systems);
        // a number of an array has to be one of `uint`
        let [systems, blocks, _] = [systems, blocks, rows * self.order].map(count);
        let args: [&dyn Argument; 9] = [&systems, &blocks, a, b, c, d, x, upper, failed];
        // SAFETY: types as declared in the file; elements of systems are in the arrays, as was checked.
        unsafe { launch(ctx, &self.thomas, grid, &args) }
    }

    /// y = xᵀ for a matrix x by rows: interleaves as many systems as it has rows, or puts as many one after the other as it has columns.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If an array is too short.
    pub(crate) fn turn(
        &self,
        ctx: &Context,
        [rows, cols]: [usize; 2],
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(x.len() >= rows * cols && y.len() >= rows * cols, "{rows} x {cols}");
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        let grid = self.grid(rows.div_ceil(SIDE) * cols.div_ceil(SIDE) * self.group_size);
        let [rows, cols, _] = [rows, cols, rows * cols].map(count);
        let args: [&dyn Argument; 4] = [&rows, &cols, x, y];
        // SAFETY: types as declared in the file; the matrices are in the arrays, as was checked.
        unsafe { launch(ctx, &self.turn, grid, &args) }
    }
}
