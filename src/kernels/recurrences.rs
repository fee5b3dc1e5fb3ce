//! Launchers of `cl/recurrences.cl`.

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// The fused kernels of conjugate gradients that have A p by recurrence, and what they do on halos.
    Recurrences<T, A> { single_step, single_step_weighted, pipelined_step, pipelined_step_weighted, recur_halo }
}

/// The vectors of a step of the method with a single sum.
pub(crate) struct SingleVectors<'a, T> {
    pub(crate) x: &'a mut DeviceVec<T>,
    pub(crate) r: &'a mut DeviceVec<T>,
    pub(crate) p: &'a mut DeviceVec<T>,
    pub(crate) s: &'a mut DeviceVec<T>,
    /// A r.
    pub(crate) q: &'a DeviceVec<T>,
    /// Weights of the squares of r in what the test looks at.
    pub(crate) w: Option<&'a DeviceVec<T>>,
}

/// The vectors of a step of the pipelined method.
pub(crate) struct PipelinedVectors<'a, T> {
    pub(crate) x: &'a mut DeviceVec<T>,
    pub(crate) r: &'a mut DeviceVec<T>,
    pub(crate) t: &'a mut DeviceVec<T>,
    pub(crate) p: &'a mut DeviceVec<T>,
    pub(crate) s: &'a mut DeviceVec<T>,
    pub(crate) z: &'a mut DeviceVec<T>,
    /// A t.
    pub(crate) q: &'a DeviceVec<T>,
    /// Weights of the squares of r in what the test looks at.
    pub(crate) w: Option<&'a DeviceVec<T>>,
}

impl<T: Real, A: Real> Recurrences<T, A> {
    /// p = r + beta p; s = q + beta s; x += alpha p; r −= alpha s; partial sums of r·r and of what the test looks at, a pair
    /// for each group. Reads 5 n elements (6 n with weights), writes 4 n.
    pub(crate) fn single_step(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        v: SingleVectors<'_, T>,
        [alpha, beta]: [T; 2],
        sums: &DeviceVec<A>,
    ) -> Result<()> {
        let SingleVectors { x, r, p, s, q, w } = v;
        let lens = [x.len(), r.len(), p.len(), s.len(), q.len(), w.map_or(usize::MAX, DeviceVec::len)];
        assert!(lens.iter().all(|&len| n as usize <= len) && 2 * grid.groups <= sums.len());
        let kernel = if w.is_some() { &self.single_step_weighted } else { &self.single_step };
        // SAFETY: types as declared in the file; elements 0..n and pairs of partials, checked above. Without weights the
        // kernel does not read that argument.
        unsafe { launch(ctx, kernel, grid, &[&n, w.unwrap_or(q), x, r, p, s, q, &alpha, &beta, sums]) }
    }

    /// z = q + beta z; s = t + beta s; p = r + beta p; x += alpha p; r −= alpha s; t −= alpha z; partial sums of r·r, of what the
    /// test looks at, of r·t, and 0, four for each group. Reads 7 n elements (8 n with weights), writes 6 n.
    pub(crate) fn pipelined_step(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        v: PipelinedVectors<'_, T>,
        [alpha, beta]: [T; 2],
        sums: &DeviceVec<A>,
    ) -> Result<()> {
        let PipelinedVectors { x, r, t, p, s, z, q, w } = v;
        let lens =
            [x.len(), r.len(), t.len(), p.len(), s.len(), z.len(), q.len(), w.map_or(usize::MAX, DeviceVec::len)];
        assert!(lens.iter().all(|&len| n as usize <= len) && 4 * grid.groups <= sums.len());
        let kernel = if w.is_some() { &self.pipelined_step_weighted } else { &self.pipelined_step };
        // SAFETY: types as declared in the file; elements 0..n and four partials a group, checked above. Without weights
        // the kernel does not read that argument.
        unsafe { launch(ctx, kernel, grid, &[&n, w.unwrap_or(q), x, r, t, p, s, z, q, &alpha, &beta, sums]) }
    }

    /// d = a + beta d and v −= alpha d on the elements `range`. Reads 3 elements for each, writes 2.
    pub(crate) fn recur_halo(
        &self,
        ctx: &Context,
        grid: Grid,
        range: std::ops::Range<u32>,
        [v, d]: [&mut DeviceVec<T>; 2],
        a: &DeviceVec<T>,
        [alpha, beta]: [T; 2],
    ) -> Result<()> {
        assert!(range.start <= range.end && range.end as usize <= v.len().min(d.len()).min(a.len()));
        let (begin, count) = (range.start, range.end - range.start);
        // SAFETY: types as declared in the file; elements begin..begin + count, checked above.
        unsafe { launch(ctx, &self.recur_halo, grid, &[&begin, &count, v, d, a, &alpha, &beta]) }
    }
}
