//! Launcher of `cl/dot.cl`.

use super::{Kernels, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["dot_partial"];

impl<T: Real, A: Real> Kernels<T, A> {
    /// One partial sum of Σ x\[i\] y\[i\], i < n, a group, from `partials[first]` on. Reads 2 n elements.
    pub(crate) fn dot_partial(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        x: &DeviceVec<T>,
        y: &DeviceVec<T>,
        partials: &DeviceVec<A>,
        first: u32,
    ) -> Result<()> {
        assert!(n as usize <= x.len().min(y.len()) && first as usize + grid.groups <= partials.len());
        // SAFETY: types as declared in the file; elements 0..n of x and y and one partial a group, checked above.
        unsafe { launch(ctx, self.kernel("dot_partial"), grid, &[&n, x, y, partials, &first]) }
    }
}
