//! Launcher of `cl/halo.cl`.

use super::{Kernels, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["halo_pack"];

impl<T: Real, A: Real> Kernels<T, A> {
    /// out\[k\] = x\[indices\[k\]\] for all of `indices`, which must be below `x.len()`: the halo plan vouches for that.
    pub(crate) fn halo_pack(
        &self,
        ctx: &Context,
        grid: Grid,
        indices: &DeviceVec<u32>,
        x: &DeviceVec<T>,
        out: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(indices.len() <= out.len());
        let count = super::count(indices.len());
        // SAFETY: types as declared in the file; `count` elements of indices and out; indices by the plan's promise.
        unsafe { launch(ctx, self.kernel("halo_pack"), grid, &[&count, indices, x, out]) }
    }
}
