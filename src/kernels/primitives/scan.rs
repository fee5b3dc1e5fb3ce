//! Launchers of `cl/scan.cl`.

use std::marker::PhantomData;

use super::{Argument, ShareSums, Tiling, Word, count, kernel, launch};
use crate::device::{Context, DeviceVec, Kernel};
use crate::error::Result;

/// Exclusive prefix sums of `u32`, as numbers `S`.
pub(crate) struct Scan<S> {
    tiling: Tiling,
    sums: Kernel,
    shares: Kernel,
    apply: Kernel,
    sum: PhantomData<fn() -> S>,
}

impl<S: Word> Scan<S> {
    /// Compiles the kernels, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, tiling: Tiling) -> Result<Self> {
        let file = ("scan", include_str!("../../../cl/scan.cl"));
        let program = tiling.program(ctx, file, &format!(" -D SUM={}", S::CL_NAME))?;
        let [sums, shares, apply] = ["scan_sums", "scan_shares", "scan_apply"].map(|name| kernel(ctx, &program, name));
        Ok(Self { tiling, sums: sums?, shares: shares?, apply: apply?, sum: PhantomData })
    }

    /// to\[i\] = from\[0\] + … + from\[i − 1\] for i ≤ n, so that the last one is the total. What does not fit into `S`
    /// is cut off; all of the total is in [`ShareSums::total`]. Moves 8 n bytes and the n + 1 sums.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If an array is too short.
    pub(crate) fn exclusive(
        &self,
        ctx: &Context,
        n: usize,
        from: &DeviceVec<u32>,
        to: &mut DeviceVec<S>,
        space: &mut ShareSums,
    ) -> Result<()> {
        assert!(n <= from.len() && n < to.len());
        // SAFETY: n elements, and n + 1 sums, as checked.
        unsafe { self.launch(ctx, n, from, to, space) }
    }

    /// The kernels, one after the other.
    ///
    /// # Safety
    /// `from` must have n numbers of 32 bits, and `to` n + 1 of `S`. They may be the same array.
    unsafe fn launch(
        &self,
        ctx: &Context,
        n: usize,
        from: &dyn Argument,
        to: &dyn Argument,
        space: &mut ShareSums,
    ) -> Result<()> {
        let (grid, of) = (self.tiling.grid(n), count(n));
        assert!(grid.groups < space.sums.len());
        // SAFETY: types as declared in the file; the caller's promise, and a sum for each group, as checked.
        unsafe { launch(ctx, &self.sums, grid, &[&of, from, &space.sums]) }?;
        space.scan(ctx, &self.shares, (grid.groups, grid.group_size))?;
        // SAFETY: as above.
        unsafe { launch(ctx, &self.apply, grid, &[&of, &space.sums, from, to]) }
    }
}

impl Scan<u32> {
    /// [`Scan::exclusive`] of the first `n` elements of an array, which gets the sums.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If the array is too short.
    pub(crate) fn in_place(
        &self,
        ctx: &Context,
        n: usize,
        v: &mut DeviceVec<u32>,
        space: &mut ShareSums,
    ) -> Result<()> {
        assert!(n < v.len());
        // SAFETY: n + 1 elements, as checked.
        unsafe { self.launch(ctx, n, v, v, space) }
    }
}
