//! Launcher of `cl/lu_panel.cl`, the factorisation of a tall block of columns in one launch.

use std::cell::Cell;
use std::marker::PhantomData;

use super::gemm::Block;
use super::{Argument, PERSISTENT, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Info, Kernel, Kind};
use crate::error::Result;
use crate::real::Real;

/// Numbers before the pivots in what a launch tells.
pub(crate) const HEAD: usize = 2;

/// Columns that a work-item has in registers at a time.
const NARROW: usize = 8;
/// Work-items of a group: the larger ones for blocks of more rows than smaller ones have work-items.
const GROUP_SIZES: [usize; 2] = [128, 256];

/// The most rows of a work-item that are still in registers.
const MOST_ITEM_ROWS: usize = 8;

/// How a launch is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) group_size: usize,
    /// Rows of a work-item.
    pub(crate) item_rows: usize,
    /// Columns that it has in registers at a time.
    pub(crate) narrow: usize,
}

impl Cut {
    /// What serves a device for blocks of so many rows at most, where there is a way to do it: with a barrier over groups, one on each of its
    /// compute units. On processors the host's own factorisation is faster.
    pub(crate) fn of(ctx: &Context, rows: usize) -> Option<Self> {
        let info: &Info = ctx.info();
        if info.kind == Kind::Cpu || ctx.fence_options().is_none() {
            return None;
        }
        let units = info.compute_units.max(1) as usize;
        let possible = GROUP_SIZES.iter().copied().filter(|&size| size <= info.max_work_group);
        let group_size = possible.clone().find(|size| rows <= size * units).or(possible.max())?;
        let item_rows = rows.div_ceil(group_size * units).next_power_of_two();
        (item_rows <= MOST_ITEM_ROWS).then_some(Self { group_size, item_rows, narrow: NARROW })
    }
}

/// Whether a launch was refused, by what it tells.
pub(crate) fn is_refused<T: Real>(told: &[T]) -> bool {
    told[0].to_f64() > 0.0
}

/// What the kernel leaves, all in one array.
#[derive(Clone, Copy)]
pub(crate) struct Factorised<'a, T> {
    /// From its beginning on: 1 if it was refused, or 0; the column without a pivot, from 1 on, or 0; and the row that changed places with
    /// each of the first.
    pub(crate) array: &'a DeviceVec<T>,
    /// L U of the first rows, w × w,
    pub(crate) block_at: usize,
    /// and of all, m × w.
    pub(crate) panel_at: usize,
}

/// The kernel, compiled for one device, and what its groups share.
pub(crate) struct LuPanel<T> {
    kernel: Kernel,
    cut: Cut,
    most: [usize; 2],
    offers: DeviceVec<T>,
    offered_places: DeviceVec<u32>,
    words: DeviceVec<u32>,
    /// 1 and 2 from launch to launch.
    turn: Cell<u32>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Real> LuPanel<T> {
    /// Compiles it for blocks of at most so many rows and columns, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild), or not enough memory.
    pub(crate) fn build(ctx: &Context, [rows, cols]: [usize; 2], cut: Cut) -> Result<Self> {
        let Cut { group_size, item_rows, narrow } = cut;
        let files =
            [("prelude", PRELUDE), ("persistent", PERSISTENT), ("lu_panel", include_str!("../../cl/lu_panel.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let fence = ctx.fence_options();
        let options = options_of::<T, T>(fence.as_deref().unwrap_or(USUAL_STD), ctx.info(), group_size, group_size);
        let of_cut =
            format!(" -D ITEM_ROWS={item_rows} -D NARROW={narrow} -D MOST_WIDE={}", cols.next_multiple_of(NARROW));
        let program = ctx.build(&source, &(options + &of_cut))?;
        let offered = 2 * (rows.div_ceil(group_size * item_rows) + 1);
        Ok(Self {
            kernel: ctx.kernel(&program, "lu_panel", [T::CL_NAME; 2])?,
            cut,
            most: [rows, cols],
            offers: DeviceVec::uninit(ctx, offered * narrow, "rows with pivots")?,
            offered_places: DeviceVec::uninit(ctx, offered * 2, "rows with pivots")?,
            words: DeviceVec::from_slice(ctx, &[0, 0, 2], "what groups tell each other")?,
            turn: Cell::new(1),
            elements: PhantomData,
        })
    }

    /// P A = L U of m × w elements, w ≤ m, with partial pivoting; A is destroyed. m w² flops, and m (w² / `NARROW` + 6 w) elements from and to
    /// memory or cache.
    ///
    /// # Errors
    /// A failing device. That a launch was refused, or a column has no pivot, is told by what it leaves; once refused, none is done.
    ///
    /// # Panics
    /// If A is not in its array, or larger than what the kernel was compiled for, or there is no room for what it leaves.
    pub(crate) fn launch(
        &self,
        ctx: &Context,
        [m, w]: [usize; 2],
        a: Block<'_, T>,
        Factorised { array, block_at, panel_at }: Factorised<'_, T>,
    ) -> Result<()> {
        assert!(a.has(m, w) && w <= m && m <= self.most[0] && w <= self.most[1], "{m} x {w}");
        assert!(HEAD + w <= block_at && block_at + w * w <= panel_at && panel_at + m * w <= array.len());
        if w == 0 {
            return Ok(());
        }
        let turn = self.turn.get();
        self.turn.set(3 - turn);
        let groups = m.div_ceil(self.cut.group_size * self.cut.item_rows);
        let grid = Grid { groups, group_size: self.cut.group_size };
        let [rows, cols, lda] = [m, w, a.ld].map(count);
        let [a_at, block_at, panel_at] = [a.at, block_at, panel_at].map(|at| at as u64);
        let args: [&dyn Argument; 12] = [
            &rows,
            &cols,
            a.array,
            &a_at,
            &lda,
            array,
            &block_at,
            &panel_at,
            &self.offers,
            &self.offered_places,
            &self.words,
            &turn,
        ];
        // SAFETY: types as declared in the file; A is in its array, and what the kernel leaves has room, as was checked; there are as many
        // offers as groups.
        unsafe { launch(ctx, &self.kernel, grid, &args) }
    }
}
