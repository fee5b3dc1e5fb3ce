//! Launchers of `cl/csr.cl`.

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// Products with a matrix in compressed sparse rows.
    Csr<T, A> { spmv_csr, spmv_dot_csr, residual_csr }
}

/// A block of rows on a device, as the kernels take it. Made by
/// [`DeviceBlock`](crate::operator::opencl::DeviceBlock) alone, which vouches for it: rows in blocks are below `n_rows`, entries of
/// rows below `values.len()`, and columns below `n_cols`.
pub(crate) struct CsrBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) blocks: DeviceVec<[u32; 2]>,
    pub(crate) row_ptr: DeviceVec<u32>,
    pub(crate) col_idx: DeviceVec<u32>,
    pub(crate) values: DeviceVec<T>,
}

impl<T: Real, A: Real> Csr<T, A> {
    /// y = A x for the row blocks `first..last`.
    pub(crate) fn spmv_csr(
        &self,
        ctx: &Context,
        grid: Grid,
        (first, last): (u32, u32),
        a: &CsrBlock<T>,
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(last as usize <= a.blocks.len() && x.len() >= a.n_cols && y.len() >= a.n_rows);
        // SAFETY: types as declared in the file; sizes checked above, and by the maker of the block.
        unsafe {
            launch(ctx, &self.spmv_csr, grid, &[&first, &last, &a.blocks, &a.row_ptr, &a.col_idx, &a.values, x, y])
        }
    }

    /// y = A x for the row blocks `first..last`, and the partial sums of x·y and of y·y over their rows: a pair for each
    /// group, of which `first_partial` come before. Does nothing if `done[0]` is set.
    pub(crate) fn spmv_dot_csr(
        &self,
        ctx: &Context,
        grid: Grid,
        (first, last): (u32, u32),
        a: &CsrBlock<T>,
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
        partials: &mut DeviceVec<A>,
        first_partial: u32,
        done: &DeviceVec<i32>,
    ) -> Result<()> {
        assert!(last as usize <= a.blocks.len() && x.len() >= a.n_cols.max(a.n_rows) && y.len() >= a.n_rows);
        assert!(2 * (first_partial as usize + grid.groups) <= partials.len() && done.len() > 0);
        // SAFETY: types as declared in the file; sizes checked above, and by the maker of the block.
        unsafe {
            launch(
                ctx,
                &self.spmv_dot_csr,
                grid,
                &[&first, &last, &a.blocks, &a.row_ptr, &a.col_idx, &a.values, x, y, partials, &first_partial, done],
            )
        }
    }

    /// r = b − A x for the row blocks `first..last`.
    pub(crate) fn residual_csr(
        &self,
        ctx: &Context,
        grid: Grid,
        (first, last): (u32, u32),
        a: &CsrBlock<T>,
        x: &DeviceVec<T>,
        b: &DeviceVec<T>,
        r: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(last as usize <= a.blocks.len() && x.len() >= a.n_cols && b.len().min(r.len()) >= a.n_rows);
        // SAFETY: types as declared in the file; sizes checked above, and by the maker of the block.
        unsafe {
            launch(
                ctx,
                &self.residual_csr,
                grid,
                &[&first, &last, &a.blocks, &a.row_ptr, &a.col_idx, &a.values, x, b, r],
            )
        }
    }
}
