//! Launchers of `cl/convert.cl`.

use super::{Kernels, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["narrow", "add_wide"];

impl<T: Real, A: Real> Kernels<T, A> {
    /// to = from, rounded to nearest, on n elements. Reads n wide ones, writes n.
    pub(crate) fn narrow(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        from: &DeviceVec<A>,
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= from.len().min(to.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, self.kernel("narrow"), grid, &[&n, from, to]) }
    }

    /// x += d, d = 0 on n elements. Reads and writes n wide ones and n others.
    pub(crate) fn add_wide(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        d: &mut DeviceVec<T>,
        x: &mut DeviceVec<A>,
    ) -> Result<()> {
        assert!(n as usize <= d.len().min(x.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, self.kernel("add_wide"), grid, &[&n, d, x]) }
    }
}
