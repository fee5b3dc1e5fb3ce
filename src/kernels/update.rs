//! Launchers of `cl/update.cl`.

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// The vector updates.
    Update<T> { next_iterate, next_residual, next_direction, scale_diagonal }
}

impl<T: Real> Update<T> {
    /// x += alpha p on n elements. Reads 2 n, writes n.
    pub(crate) fn next_iterate(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        alpha: T,
        p: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= x.len().min(p.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, &self.next_iterate, grid, &[&n, &alpha, p, x]) }
    }

    /// r -= alpha q on n elements. Reads 2 n, writes n.
    pub(crate) fn next_residual(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        alpha: T,
        q: &DeviceVec<T>,
        r: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= r.len().min(q.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, &self.next_residual, grid, &[&n, &alpha, q, r]) }
    }

    /// p = z + beta p on n elements. Reads 2 n, writes n.
    pub(crate) fn next_direction(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        beta: T,
        z: &DeviceVec<T>,
        p: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= p.len().min(z.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, &self.next_direction, grid, &[&n, &beta, z, p]) }
    }

    /// z = d r, element by element, on n elements. Reads 2 n, writes n.
    pub(crate) fn scale_diagonal(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        d: &DeviceVec<T>,
        r: &DeviceVec<T>,
        z: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(n as usize <= d.len().min(r.len()).min(z.len()));
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, &self.scale_diagonal, grid, &[&n, d, r, z]) }
    }
}
