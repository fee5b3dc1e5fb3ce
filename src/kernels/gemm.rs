//! Launcher of `cl/gemm.cl`, the product of dense matrices.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::{Argument, PRELUDE, Shape, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// How a product is cut: see `cl/gemm.cl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tiles {
    /// Rows and columns of the tile of a group,
    pub tile: [usize; 2],
    /// columns of A and rows of B in local memory at a time,
    pub depth: usize,
    /// rows and columns of a work-item,
    pub item: [usize; 2],
    /// which it reads so many at once,
    pub lane: [usize; 2],
    /// buffers in local memory, 1 or 2,
    pub buffers: usize,
    /// elements between their columns,
    pub pad: usize,
    /// and whether it is done by matrix instructions.
    #[serde(default)]
    pub mma: bool,
}

impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tile, depth, item, lane, buffers, pad, mma } = self;
        let by = if *mma { ", matrix instructions" } else { "" };
        write!(
            f,
            "{}x{}x{depth}, items {}x{}, lanes {}x{}, {buffers} buffers, pad {pad}{by}",
            tile[0], tile[1], item[0], item[1], lane[0], lane[1]
        )
    }
}

/// What the product is compiled from.
pub(crate) const SOURCES: [&str; 2] = [PRELUDE, include_str!("../../cl/gemm.cl")];

/// Tiles of a work-item that is a group: columns are whole vectors of 8.
const OF_CPU: Tiles = Tiles { tile: [32, 4], depth: 1, item: [32, 4], lane: [1, 1], buffers: 1, pad: 0, mma: false };

impl Tiles {
    /// What serves most devices.
    pub(crate) fn default_for<T: Real>(ctx: &Context, shape: Shape) -> Self {
        Self::candidates::<T>(ctx, shape).first().copied().unwrap_or(OF_CPU)
    }

    /// What is worth a trial on a device, what most likely is best first.
    pub(crate) fn candidates<T: Real>(ctx: &Context, shape: Shape) -> Vec<Self> {
        if shape == Shape::Cpu {
            let of = |tile: [usize; 2]| Self { tile, item: tile, ..OF_CPU };
            return [[32, 4], [16, 8], [24, 8], [8, 8], [16, 4]].map(of).to_vec();
        }
        let wide = 16 / size_of::<T>(); // 16 bytes
        let of = |tile: [usize; 2], depth, item: [usize; 2], buffers| {
            let lane = item.map(|item| wide.min(item));
            Self { tile, depth, item, lane, buffers, pad: wide, mma: false }
        };
        let by_mma =
            |tile, depth, item, buffers| Self { lane: [1; 2], pad: 4, mma: true, ..of(tile, depth, item, buffers) };
        let mut all = vec![
            by_mma([128, 64], 8, [4, 8], 2),
            by_mma([64, 64], 16, [4, 8], 2),
            by_mma([128, 128], 16, [4, 16], 1),
            by_mma([128, 64], 16, [8, 8], 1),
            by_mma([64, 64], 8, [4, 8], 2),
        ];
        let shapes = [
            ([128, 64], [4, 8]),
            ([64, 64], [4, 8]),
            ([128, 64], [8, 8]),
            ([128, 128], [8, 8]),
            ([64, 64], [8, 8]),
            ([64, 128], [8, 8]),
            ([128, 64], [8, 4]),
            ([64, 64], [4, 4]),
            ([64, 64], [8, 4]),
            ([32, 32], [4, 4]),
            ([16, 16], [4, 4]),
            ([8, 8], [4, 4]),
        ];
        for (tile, item) in shapes {
            for (depth, buffers) in [(8, 1), (8, 2), (16, 2), (16, 1)] {
                all.push(of(tile, depth, item, buffers));
            }
        }
        all.retain(|tiles| tiles.fits::<T>(ctx));
        all
    }

    /// Square tiles with an element for each work-item.
    pub(crate) fn of_single_elements(side: usize) -> Self {
        Self { tile: [side; 2], depth: side, item: [1; 2], lane: [1; 2], buffers: 1, pad: 0, mma: false }
    }

    /// Work-items of a group.
    pub(crate) fn group_size(&self) -> usize {
        self.tile[0] / self.item[0] * (self.tile[1] / self.item[1])
    }

    /// Bytes of local memory.
    pub(crate) fn local_bytes<T: Real>(&self) -> usize {
        self.buffers * self.depth * (self.tile[0] + self.tile[1] + 2 * self.pad) * size_of::<T>()
    }

    /// Whether it is well formed, and the device can run it.
    pub(crate) fn fits<T: Real>(&self, ctx: &Context) -> bool {
        let Self { tile, depth, item, lane, buffers, pad, mma } = *self;
        let (group, device) = (self.group_size(), ctx.info());
        if mma && !has_mma::<T>(ctx) {
            return false;
        }
        if group == 1 {
            return tile == item && tile[0].is_multiple_of(8);
        }
        let is_whole = |k: usize| {
            [1, 2, 4].contains(&lane[k])
                && item[k].is_multiple_of(lane[k])
                && tile[k].is_multiple_of(item[k])
                && (tile[k] * depth).is_multiple_of(group)
                && pad.is_multiple_of(lane[k])
        };
        // 32 work-items have the elements of one instruction after the other, which are 16 x 8
        let is_of_mma = || {
            let [wide, high] = [8 * item[0], 4 * item[1]];
            wide.is_multiple_of(16)
                && high.is_multiple_of(8)
                && tile[0].is_multiple_of(wide)
                && tile[1].is_multiple_of(high)
                && depth.is_multiple_of(4)
                && lane == [1; 2]
        };
        (!mma || is_of_mma())
            && is_whole(0)
            && is_whole(1)
            && group.is_power_of_two()
            && [1, 2].contains(&buffers)
            && group <= device.max_work_group
            && self.local_bytes::<T>() as u64 <= device.local_memory_bytes
    }

    fn options(&self) -> String {
        let Self { tile, depth, item, lane, buffers, pad, mma } = self;
        format!(
            " -D TILE_M={} -D TILE_N={} -D TILE_K={depth} -D ITEM_M={} -D ITEM_N={} -D LANE_WIDE={} -D LANE_HIGH={} \
             -D BUFFERS={buffers} -D PAD={pad} -D MMA={}",
            tile[0],
            tile[1],
            item[0],
            item[1],
            lane[0],
            lane[1],
            u32::from(*mma)
        )
    }
}

/// Whether the device has matrix instructions for the precision: those of NVIDIA's for f64, as large as the kernel takes them.
fn has_mma<T: Real>(ctx: &Context) -> bool {
    size_of::<T>() == 8 && ctx.compute_capability().is_some_and(|capability| capability >= (9, 0))
}

/// A block of a matrix by columns on a device: element (i, j) is element `at + i + j ld` of the array.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a, T> {
    pub(crate) array: &'a DeviceVec<T>,
    pub(crate) at: usize,
    pub(crate) ld: usize,
}

impl<T: Real> Block<'_, T> {
    /// Whether it has room for so many rows and columns.
    pub(crate) fn has(&self, rows: usize, cols: usize) -> bool {
        rows == 0 || cols == 0 || (rows <= self.ld && self.at + (cols - 1) * self.ld + rows <= self.array.len())
    }
}

/// Columns of a square matrix that are cyclically among others, of which a product leaves out tiles above the diagonal: column j is column
/// `first + j / block · stride + j % block`, counted from the first row of the product on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lower {
    pub(crate) block: usize,
    pub(crate) stride: usize,
    pub(crate) first: usize,
}

/// The product, compiled for one device.
pub(crate) struct Gemm<T> {
    kernel: Kernel,
    naive: Kernel,
    tiles: Tiles,
    max_groups: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T: Real> Gemm<T> {
    /// Compiles it, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, tiles: Tiles) -> Result<Self> {
        let group_size = tiles.group_size();
        let source: String = ["prelude", "gemm"]
            .into_iter()
            .zip(SOURCES)
            .map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n"))
            .collect();
        let options = options_of::<T, T>(USUAL_STD, ctx.info(), group_size, group_size) + &tiles.options();
        let program = ctx.build(&source, &options)?;
        let [kernel, naive] = ["gemm", "gemm_naive"].map(|name| ctx.kernel(&program, name, [T::CL_NAME; 2]));
        let max_groups = 4 * ctx.info().compute_units.max(1) as usize;
        Ok(Self { kernel: kernel?, naive: naive?, tiles, max_groups, elements: PhantomData })
    }

    /// C ← β C + α A B with m × k elements of A and k × n of B, which may be in the array of C where they don't overlap with it.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a block is not in its array.
    pub(crate) fn launch(
        &self,
        ctx: &Context,
        size: [usize; 3],
        factors: (T, T),
        (a, b): (Block<'_, T>, Block<'_, T>),
        c: Block<'_, T>,
        lower: Option<Lower>,
    ) -> Result<()> {
        let group_size = self.tiles.group_size();
        let tiles = size[0].div_ceil(self.tiles.tile[0]) * size[1].div_ceil(self.tiles.tile[1]);
        let groups = if Shape::of_group(group_size) == Shape::Cpu { tiles.min(self.max_groups) } else { tiles };
        let grid = Grid { groups, group_size };
        launch_product(ctx, (&self.kernel, grid), size, factors, (a, b), c, lower)
    }

    /// The same by a work-item for each element of C: slowly.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a block is not in its array.
    pub(crate) fn launch_naive(
        &self,
        ctx: &Context,
        size: [usize; 3],
        factors: (T, T),
        (a, b): (Block<'_, T>, Block<'_, T>),
        c: Block<'_, T>,
    ) -> Result<()> {
        let group_size = self.tiles.group_size();
        let groups = match Shape::of_group(group_size) {
            Shape::Cpu => self.max_groups,
            Shape::Gpu => (size[0] * size[1]).div_ceil(group_size),
        };
        launch_product(ctx, (&self.naive, Grid { groups, group_size }), size, factors, (a, b), c, None)
    }
}

fn launch_product<T: Real>(
    ctx: &Context,
    (kernel, grid): (&Kernel, Grid),
    [m, n, k]: [usize; 3],
    (alpha, beta): (T, T),
    (a, b): (Block<'_, T>, Block<'_, T>),
    c: Block<'_, T>,
    lower: Option<Lower>,
) -> Result<()> {
    assert!(a.has(m, k) && b.has(k, n) && c.has(m, n), "{m} x {n} x {k}");
    if m == 0 || n == 0 {
        return Ok(());
    }
    let Lower { block, stride, first } = lower.unwrap_or(Lower { block: 0, stride: 0, first: 0 });
    let [m, n, k, block, stride, first] = [m, n, k, block, stride, first].map(count);
    let [lda, ldb, ldc] = [a.ld, b.ld, c.ld].map(count);
    let [a_at, b_at, c_at] = [a.at, b.at, c.at].map(|at| at as u64);
    let args: [&dyn Argument; 17] = [
        &m, &n, &k, &alpha, &beta, &block, &stride, &first, a.array, &a_at, &lda, b.array, &b_at, &ldb, c.array, &c_at,
        &ldc,
    ];
    // SAFETY: types as declared in the file. Elements of blocks are in their arrays, as was checked; the kernel reads no others.
    unsafe { launch(ctx, kernel, grid, &args) }
}
