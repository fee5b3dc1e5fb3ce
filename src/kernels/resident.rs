//! Launcher of `cl/resident.cl`.

use std::cell::Cell;

use super::cg::Log;
use super::csr::{BlockSet, CsrBlock};
use super::sell::{SellBlock, SliceSet};
use super::stencil::{RowSet, StencilBlock};
use super::{Argument, PRELUDE, STEPS, Tuning, USUAL_STD, launch, main_option, options_of, sources};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// Iterations that stay on the device, with the rows of one block.
pub(crate) struct Resident {
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

    /// The most groups of `group_size` that have something to do.
    fn most_groups(&self, group_size: usize) -> usize {
        match self {
            Self::Csr(_, set) => set.len(),
            Self::Stencil(block, _) => block.n_rows.div_ceil(group_size),
            Self::Sell(block, set) => block.rows(**set).div_ceil(group_size),
        }
    }

    /// A kernel of the file that has its products, and what `RESIDENT` is in the source.
    fn family(&self) -> (&'static str, &'static str) {
        match self {
            Self::Csr(..) => ("spmv_dot_csr", "RESIDENT_CSR"),
            Self::Stencil(block, _) if block.width.is_some() => ("spmv_dot_pattern", "RESIDENT_PATTERN"),
            Self::Stencil(..) => ("spmv_dot_stencil", "RESIDENT_STENCIL"),
            Self::Sell(..) => ("spmv_dot_sell", "RESIDENT_SELL"),
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

/// The vectors of an iteration; all but the weights change.
pub(crate) struct Vectors<'a, T> {
    pub(crate) x: &'a mut DeviceVec<T>,
    pub(crate) r: &'a mut DeviceVec<T>,
    pub(crate) p: &'a mut DeviceVec<T>,
    pub(crate) q: &'a mut DeviceVec<T>,
    /// Weights of the squares of r in what the test looks at.
    pub(crate) w: Option<&'a DeviceVec<T>>,
}

/// The sums of an iteration, as pairs of partial sums; all change.
pub(crate) struct Sums<'a, A> {
    pub(crate) dots: &'a DeviceVec<A>,
    pub(crate) rho: &'a DeviceVec<A>,
    /// Pairs in `rho`; 0 if the host knows r·r:
    pub(crate) rho_count: usize,
    /// its value.
    pub(crate) rho_value: f64,
    pub(crate) rho_next: &'a DeviceVec<A>,
}

/// Which iterations a launch does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The first.
    pub(crate) first: u64,
    /// Its place in the log.
    pub(crate) slot: u32,
    /// How many.
    pub(crate) count: u32,
}

impl Resident {
    /// Compiles the kernel for the format of `rows`, to be launched in groups of `group_size`, at most so many.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild), or not enough memory.
    pub(crate) fn build<T: Real, A: Real>(
        ctx: &Context,
        tuning: &Tuning,
        rows: Rows<'_, T>,
        group_size: usize,
        max_groups: usize,
    ) -> Result<Self> {
        let (family, resident) = rows.family();
        let [_, products] = sources(family);
        let [_, steps] = sources(STEPS[0]);
        let text = include_str!("../../cl/resident.cl");
        let source: String = [("prelude", PRELUDE), ("products", products), ("cg", steps), ("resident", text)]
            .map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}"))
            .concat();
        let (fence, unroll) = (ctx.fence_options(), tuning.launch(STEPS[0]).unroll);
        let std = fence.as_deref().unwrap_or(USUAL_STD);
        let main = if let Rows::Stencil(block, _) = rows { block.main_len } else { 0 };
        let options = options_of::<T, A>(std, ctx.info(), group_size, unroll, tuning.block_nnz)
            + &main_option(main)
            + &format!(" -D RESIDENT={resident}");
        let program = ctx.build(&source, &options)?;
        Ok(Self {
            kernel: ctx.kernel(&program, "cg_resident", [T::CL_NAME, A::CL_NAME])?,
            grid: Grid { groups: rows.most_groups(group_size).clamp(1, max_groups.max(1)), group_size },
            words: DeviceVec::from_slice(ctx, &[0, 0, 2], "what groups tell each other")?,
            turn: Cell::new(1),
        })
    }

    /// Work-groups of a launch, each of which leaves a pair of partial sums.
    pub(crate) fn groups(&self) -> usize {
        self.grid.groups
    }

    /// From now on no group is the last one to come.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, ctx: &Context) -> Result<()> {
        self.words.write(ctx, 0, &[1000, 0, 3 - self.turn.get()])
    }

    /// Local memory of a group that the kernel takes for rows of its format, in bytes.
    pub(crate) fn local_bytes<T, A>(tuning: &Tuning, rows: Rows<'_, T>, group_size: usize) -> u64 {
        let products =
            if matches!(rows, Rows::Csr(..)) { tuning.block_nnz.max(group_size) * size_of::<T>() } else { 0 };
        (4 * group_size * size_of::<A>() + products + 4) as u64
    }

    /// Iterations of conjugate gradients as the fused product and [`cg_step`](super::cg::Cg::cg_step) make them, up to the one
    /// after which the end is known; or nothing, if not all groups are on the device at once, which the last element of the log
    /// then tells. What the last iteration leaves lies in `rho` if there is an even number of them, and else in `rho_next`.
    pub(crate) fn iterate<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        v: Vectors<'_, T>,
        sums: Sums<'_, A>,
        limit: f64,
        (is_owed, least): (bool, f64),
        log: &Log<A>,
        span: Span,
    ) -> Result<()> {
        let (Vectors { x, r, p, q, w }, [n, n_cols]) = (v, rows.lens());
        let Sums { dots, rho, rho_count, rho_value, rho_next } = sums;
        let len = x.len().min(r.len()).min(q.len()).min(w.map_or(usize::MAX, DeviceVec::len));
        assert!(
            rows.is_there() && n <= len && n.max(n_cols) <= p.len() && self.kernel.types == [T::CL_NAME, A::CL_NAME]
        );
        assert!(2 * self.grid.groups <= dots.len().min(rho.len()).min(rho_next.len()) && 2 * rho_count <= rho.len());
        assert!(span.slot < log.len() && log.entries.len() > Log::<A>::WIDTH * log.len() as usize);
        let (n, is_weighted, rho_count, log_len) =
            (super::count(n), u32::from(w.is_some()), rho_count as u32, log.len());
        let (is_owed, least) = (u32::from(is_owed), T::from_f64(least));
        let (rho_value, limit, turn) = (A::from_f64(rho_value), A::from_f64(limit), self.turn.get());
        let Span { first, slot, count } = span;
        self.turn.set(3 - turn);
        // SAFETY: types as declared in the file; elements 0..n, those of p that the rows have columns for, pairs of partial sums
        // and the log, checked above; the matrix by the maker of the block. Without weights that argument is not read.
        unsafe {
            launch(
                ctx,
                &self.kernel,
                self.grid,
                &rows.with(&[
                    &n,
                    &is_weighted,
                    w.unwrap_or(q),
                    x,
                    r,
                    p,
                    q,
                    dots,
                    rho,
                    &rho_count,
                    &rho_value,
                    rho_next,
                    &limit,
                    log.state(first),
                    log.state(first + 1),
                    &log.entries,
                    &log_len,
                    &slot,
                    &count,
                    &is_owed,
                    &least,
                    &self.words,
                    &turn,
                ]),
            )
        }
    }
}
