//! Launcher of `cl/stream.cl`.

use super::{Kernels, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["stream_copy"];

impl<T: Real, A: Real> Kernels<T, A> {
    /// y = x on n elements. Reads n, writes n.
    pub(crate) fn stream_copy(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= x.len().min(y.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, self.kernel("stream_copy"), grid, &[&n, x, y]) }
    }
}
