//! Launchers of `cl/update.cl`.

use super::{Kernels, launch};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["next_iterate", "next_residual", "next_direction", "scale_diagonal"];

/// Where, on which groups, and on how many elements a kernel is launched.
type Elements<'a> = (&'a Context, Grid, u32);

impl<T: Real, A: Real> Kernels<T, A> {
    /// x += a p on n elements. Reads 2 n, writes n.
    pub(crate) fn next_iterate(&self, on: Elements<'_>, a: T, p: &DeviceVec<T>, x: &mut DeviceVec<T>) -> Result<()> {
        combine(self.kernel("next_iterate"), on, a, p, x)
    }

    /// r -= a q on n elements. Reads 2 n, writes n.
    pub(crate) fn next_residual(&self, on: Elements<'_>, a: T, q: &DeviceVec<T>, r: &mut DeviceVec<T>) -> Result<()> {
        combine(self.kernel("next_residual"), on, a, q, r)
    }

    /// p = z + b p on n elements. Reads 2 n, writes n.
    pub(crate) fn next_direction(&self, on: Elements<'_>, b: T, z: &DeviceVec<T>, p: &mut DeviceVec<T>) -> Result<()> {
        combine(self.kernel("next_direction"), on, b, z, p)
    }

    /// z = d r, element by element, on n elements. Reads 2 n, writes n.
    pub(crate) fn scale_diagonal(
        &self,
        (ctx, grid, n): Elements<'_>,
        d: &DeviceVec<T>,
        r: &DeviceVec<T>,
        z: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= d.len().min(r.len()).min(z.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, self.kernel("scale_diagonal"), grid, &[&n, d, r, z]) }
    }
}

/// A vector from itself and another one.
fn combine<T: Real>(
    kernel: &Kernel,
    (ctx, grid, n): Elements<'_>,
    factor: T,
    from: &DeviceVec<T>,
    to: &mut DeviceVec<T>,
) -> Result<()> {
    assert!(n as usize <= from.len().min(to.len()));
    // SAFETY: types as declared in the file; elements 0..n, checked above.
    unsafe { launch(ctx, kernel, grid, &[&n, &factor, from, to]) }
}
