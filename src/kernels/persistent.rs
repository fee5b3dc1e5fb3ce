//! Launcher of generated kernels that do several iterations in one launch: see `cl/persistent.cl`.

use std::cell::Cell;

use super::csr::{BlockSet, CsrBlock};
use super::pass::interned;
use super::sell::{SellBlock, SliceSet};
use super::stencil::{RowSet, StencilBlock};
use super::{Argument, PASSES, PRELUDE, Tuning, USUAL_STD, launch, main_option, options_of, sources};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// Iterations that stay on the device, with the rows of one block.
pub(crate) struct Persistent {
    kernel: Kernel,
    grid: Grid,
    /// What its groups tell each other.
    words: DeviceVec<u32>,
    /// 1 and 2 from launch to launch.
    turn: Cell<u32>,
}

/// All rows of a block, as one launch takes them.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a, T> {
    /// Compressed rows.
    Csr(&'a CsrBlock<T>, &'a BlockSet),
    /// Rows of a few kinds.
    Stencil(&'a StencilBlock<T>, &'a RowSet),
    /// Rows in slices, none of which is a long one.
    Sell(&'a SellBlock<T>, &'a SliceSet),
}

impl<'a, T: Real> Rows<'a, T> {
    /// How many rows, and how long a vector is that is multiplied.
    fn lens(&self) -> [usize; 2] {
        match self {
            Self::Csr(block, _) => [block.n_rows, block.n_cols],
            Self::Stencil(block, _) => [block.n_rows, block.n_cols],
            Self::Sell(block, _) => [block.n_rows, block.n_cols],
        }
    }

    /// Whether the launch is one of the block's.
    fn is_there(&self) -> bool {
        match *self {
            Self::Csr(block, set) => block.has(*set),
            Self::Stencil(block, set) => block.has(*set),
            Self::Sell(block, set) => block.has(*set) && block.long_count() == 0,
        }
    }

    /// Groups of `group_size`, at most `most`, that have something to do.
    pub(crate) fn groups(&self, group_size: usize, most: usize) -> usize {
        let groups = match self {
            Self::Csr(_, set) => set.len(),
            Self::Stencil(block, _) => block.n_rows.div_ceil(group_size),
            Self::Sell(block, set) => block.rows(**set).div_ceil(group_size),
        };
        groups.clamp(1, most.max(1))
    }

    /// A kernel of the file that has its products, and what `FORMAT` is in the source.
    fn family(&self) -> (&'static str, &'static str) {
        match self {
            Self::Csr(..) => ("spmv_dot_csr", "FORMAT_CSR"),
            Self::Stencil(block, _) if block.width.is_some() => ("spmv_dot_pattern", "FORMAT_PATTERN"),
            Self::Stencil(..) => ("spmv_dot_stencil", "FORMAT_STENCIL"),
            Self::Sell(..) => ("spmv_dot_sell", "FORMAT_SELL"),
        }
    }

    /// The arguments that the kernel begins with, then the others.
    fn with(self, others: &[&'a dyn Argument]) -> Vec<&'a dyn Argument> {
        match self {
            Self::Csr(block, set) => block.with(set, others),
            Self::Stencil(block, set) => block.with(set, others),
            Self::Sell(block, set) => block.with(set, others),
        }
    }
}

/// What a launch does, and works on.
pub(crate) struct Span<'a, T, A> {
    /// The row of its first iteration in the log,
    pub(crate) at: u32,
    /// which has so many, of so many numbers each, and one number behind them, which then tells what was refused.
    pub(crate) rows: [u32; 2],
    pub(crate) log: &'a DeviceVec<A>,
    /// How many iterations.
    pub(crate) count: u32,
    /// Elements, and tiles of them.
    pub(crate) n: usize,
    pub(crate) tiles: u32,
    /// Whether there was an iteration before.
    pub(crate) has_former: bool,
    /// ‖r‖² that ends the run.
    pub(crate) limit: A,
    /// Set if the run is over.
    pub(crate) done: &'a DeviceVec<i32>,
    /// The same for what comes after the launch.
    pub(crate) done_next: &'a DeviceVec<i32>,
    /// Where the first iteration leaves partial sums, and where those of the one before are.
    pub(crate) sums: [&'a DeviceVec<A>; 2],
    /// Where those of each product begin, in groups.
    pub(crate) first: &'a [u32],
    /// All vectors.
    pub(crate) vectors: &'a [DeviceVec<T>],
}

impl Persistent {
    /// Compiles the kernel `name` of a generated source for the format of `rows`, to be launched in so many groups of `group_size`, in
    /// which `lanes` work-items share a tile.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild), or not enough memory.
    pub(crate) fn build<T: Real, A: Real>(
        ctx: &Context,
        tuning: &Tuning,
        rows: Rows<'_, T>,
        (name, text): (&str, &str),
        (group_size, lanes): (usize, usize),
        groups: usize,
    ) -> Result<Self> {
        let (family, format) = rows.family();
        let [_, products] = sources(family);
        let persistent = include_str!("../../cl/persistent.cl");
        let files = [("prelude", PRELUDE), ("products", products), ("passes", PASSES), ("persistent", persistent)];
        let source: String = files
            .into_iter()
            .chain([("generated", text)])
            .map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}"))
            .collect();
        let fence = ctx.fence_options();
        let std = fence.as_deref().unwrap_or(USUAL_STD);
        let main = if let Rows::Stencil(block, _) = rows { block.main_len } else { 0 };
        let unroll = tuning.launch(family).unroll;
        let options = options_of::<T, A>(std, ctx.info(), group_size, unroll, tuning.block_nnz)
            + &main_option(main)
            + &format!(" -D FORMAT={format} -D LANES={lanes}");
        let program = ctx.build(&source, &options)?;
        Ok(Self {
            kernel: ctx.kernel(&program, interned(name), [T::CL_NAME, A::CL_NAME])?,
            grid: Grid { groups, group_size },
            words: DeviceVec::from_slice(ctx, &[0, 0, 2], "what groups tell each other")?,
            turn: Cell::new(1),
        })
    }

    /// From now on no group is the last one to come.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, ctx: &Context) -> Result<()> {
        let mut words = [0; 3];
        self.words.read(ctx, 0, &mut words)?;
        let was_refused = words[2] == 3;
        if was_refused { Ok(()) } else { self.words.write(ctx, 0, &[1000, 0, 3 - self.turn.get()]) }
    }

    /// Local memory of a group that the kernel takes for rows of its format, in bytes.
    pub(crate) fn local_bytes<T, A>(tuning: &Tuning, rows: Rows<'_, T>, group_size: usize) -> u64 {
        let products =
            if matches!(rows, Rows::Csr(..)) { tuning.block_nnz.max(group_size) * size_of::<T>() } else { 0 };
        (4 * group_size * size_of::<A>() + products + 4) as u64
    }

    /// Does iterations up to the one in which the run turns out to be over; or nothing, if not all groups are on the device at once,
    /// which the last element of the log then tells.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        span: &Span<'_, T, A>,
    ) -> Result<()> {
        let [n_rows, n_cols] = rows.lens();
        let Span { at, rows: [log_len, row_len], log, count, n, tiles, has_former, limit, .. } = span;
        let [sums, former] = span.sums;
        let has_room = |v: &DeviceVec<T>| v.len() == 0 || v.len() >= n_rows.max(n_cols).max(*n);
        assert!(rows.is_there() && *n == n_rows && span.vectors.iter().all(has_room));
        assert!(self.kernel.types == [T::CL_NAME, A::CL_NAME] && span.done.len().min(span.done_next.len()) > 0);
        assert!(at < log_len && log.len() > (log_len * row_len) as usize);
        let of_products = |first: &u32| 2 * (*first as usize + self.grid.groups);
        assert!(span.first.iter().map(of_products).all(|end| end <= sums.len().min(former.len())));
        let (n, has_former, turn) = (super::count(*n), u32::from(*has_former), self.turn.get());
        self.turn.set(3 - turn);
        let mut args: Vec<&dyn Argument> =
            vec![span.done, span.done_next, &n, tiles, at, log_len, row_len, &has_former];
        args.extend([limit as &dyn Argument, *log, count, sums, former]);
        args.extend(span.first.iter().map(|first| first as &dyn Argument));
        args.extend([tiles as &dyn Argument, &self.words, &turn]);
        args.extend(span.vectors.iter().map(|v| v as &dyn Argument));
        // SAFETY: arguments as the source is generated; elements 0..n and those that the rows have columns for, pairs of partial sums
        // and the log, checked above; the matrix by the maker of the block. Vectors without elements are not used.
        unsafe { launch(ctx, &self.kernel, self.grid, &rows.with(&args)) }
    }
}
