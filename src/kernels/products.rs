//! Products of a block's rows with a vector: one launcher for the kernels of `cl/csr.cl`, `cl/dictionary.cl` and `cl/sell.cl`, which
//! differ in what they take of the matrix.

use super::csr::{BlockSet, CsrBlock};
use super::dictionary::{DictionaryBlock, RowSet};
use super::sell::{SellBlock, SliceSet};
use super::{Argument, Kernels, Launch, launch};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// Rows of a block that one launch works on.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a, T> {
    /// Compressed rows.
    Csr(&'a CsrBlock<T>, BlockSet),
    /// Rows by a dictionary of their patterns.
    Dictionary(&'a DictionaryBlock<T>, RowSet),
    /// Rows in slices.
    Sell(&'a SellBlock<T>, SliceSet),
    /// All long rows of a block in slices, and how many: their pieces were summed with the slices.
    Long(&'a SellBlock<T>, u32),
}

/// What becomes of A x.
pub(crate) enum Product<'a, T, A> {
    /// y = A x.
    Store(&'a mut DeviceVec<T>),
    /// y = A x, and the partial sums of x·y and of y·y over the rows: a pair for each group, of which `first` come before. Nothing is
    /// done if `done[0]` is set.
    Dots { y: &'a mut DeviceVec<T>, partials: &'a DeviceVec<A>, first: u32, done: &'a DeviceVec<i32> },
    /// r = b − A x.
    Residual { b: &'a DeviceVec<T>, r: &'a mut DeviceVec<T> },
}

impl<T: Real, A: Real> Product<'_, T, A> {
    /// Which of a format's three kernels does it, and its arguments behind x.
    fn arguments(&self) -> (usize, Vec<&dyn Argument>) {
        match self {
            Self::Store(y) => (0, vec![&**y]),
            Self::Dots { y, partials, first, done } => (1, vec![&**y, *partials, first, *done]),
            Self::Residual { b, r } => (2, vec![*b, &**r]),
        }
    }

    /// Whether all vectors are as long as the kernel will address.
    fn fits(&self, [n_rows, n_cols]: [usize; 2], x: usize, groups: usize) -> bool {
        match self {
            Self::Store(y) => x >= n_cols && y.len() >= n_rows,
            Self::Dots { y, partials, first, done } => {
                let has_room = 2 * (*first as usize + groups) <= partials.len() && done.len() > 0;
                x >= n_cols.max(n_rows) && y.len() >= n_rows && has_room
            }
            Self::Residual { b, r } => x >= n_cols && b.len().min(r.len()) >= n_rows,
        }
    }
}

impl<T: Real> Rows<'_, T> {
    /// How many rows the block has, and how long a vector is that is multiplied.
    pub(super) fn lens(&self) -> [usize; 2] {
        match self {
            Self::Csr(block, _) => [block.n_rows, block.n_cols],
            Self::Dictionary(block, _) => [block.n_rows, block.n_cols],
            Self::Sell(block, _) | Self::Long(block, _) => [block.n_rows, block.n_cols],
        }
    }

    /// Whether the block has these rows.
    pub(super) fn is_there(&self) -> bool {
        match *self {
            Self::Csr(block, set) => block.has(set),
            Self::Dictionary(block, set) => block.has(set),
            Self::Sell(block, set) => block.has(set),
            Self::Long(block, count) => block.long_count() == count as usize,
        }
    }

    /// What there is to share among groups: row blocks, or rows.
    pub(crate) fn items(&self) -> usize {
        match *self {
            Self::Csr(_, set) => set.len(),
            Self::Dictionary(_, set) => set.count as usize,
            Self::Sell(block, set) => block.rows(set),
            Self::Long(_, count) => count as usize,
        }
    }

    /// The grid of a launch.
    pub(crate) fn grid(&self, launch: Launch) -> Grid {
        match self {
            Self::Csr(..) => launch.block_grid(self.items()),
            Self::Dictionary(..) | Self::Sell(..) => launch.grid(self.items()),
            Self::Long(block, _) => launch.grid(block.long_items(launch.group_size)),
        }
    }

    /// The arguments that a kernel begins with.
    pub(super) fn arguments(&self) -> Vec<&dyn Argument> {
        match self {
            Self::Csr(block, set) => block.arguments(set),
            Self::Dictionary(block, set) => block.arguments(set),
            Self::Sell(block, set) => block.arguments(set),
            Self::Long(block, count) => vec![&block.few, count, &block.long_rows, &block.parts],
        }
    }

    /// The kernel of a product.
    fn kernel<'k, A: Real>(&self, ctx: &Context, kernels: &'k Kernels<T, A>, index: usize) -> Result<&'k Kernel> {
        let all = match self {
            Self::Csr(..) => {
                let csr = &kernels.csr;
                [&csr.spmv_csr, &csr.spmv_dot_csr, &csr.residual_csr]
            }
            Self::Dictionary(block, _) => {
                let dictionary = kernels.dictionary(ctx, block.main_len)?;
                match block.width {
                    Some(_) => [&dictionary.spmv_pattern, &dictionary.spmv_dot_pattern, &dictionary.residual_pattern],
                    None => {
                        [&dictionary.spmv_dictionary, &dictionary.spmv_dot_dictionary, &dictionary.residual_dictionary]
                    }
                }
            }
            Self::Sell(..) => {
                let sell = kernels.sell(ctx)?;
                [&sell.spmv_sell, &sell.spmv_dot_sell, &sell.residual_sell]
            }
            Self::Long(..) => {
                let sell = kernels.sell(ctx)?;
                [&sell.spmv_sell_parts, &sell.spmv_dot_sell_parts, &sell.residual_sell_parts]
            }
        };
        Ok(all[index])
    }
}

impl<T: Real, A: Real> Kernels<T, A> {
    /// Compiles the products of these rows, or else the first of them waits for the compiler.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn prepare(&self, ctx: &Context, rows: Rows<'_, T>) -> Result<()> {
        rows.kernel(ctx, self, 0).map(|_| ())
    }

    /// Launches a product on some rows, with as many groups as tuning has found, or as are given; tells how many.
    ///
    /// # Errors
    /// A failing device, or a failing compiler.
    pub(crate) fn product(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        x: &DeviceVec<T>,
        product: &Product<'_, T, A>,
        groups: Option<usize>,
    ) -> Result<usize> {
        let (index, others) = product.arguments();
        let kernel = rows.kernel(ctx, self, index)?;
        let usual = rows.grid(self.tuning.launch(kernel.name));
        let grid = groups.map_or(usual, |groups| Grid { groups, ..usual });
        assert!(rows.is_there() && product.fits(rows.lens(), x.len(), grid.groups));
        let mut all = rows.arguments();
        all.push(x);
        all.extend(others);
        // SAFETY: types as declared in the files; sizes checked above, and by the maker of the block.
        unsafe { launch(ctx, kernel, grid, &all)? };
        Ok(grid.groups)
    }
}
