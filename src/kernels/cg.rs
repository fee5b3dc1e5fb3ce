//! Launchers of `cl/cg.cl`.

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// The fused kernels of conjugate gradients.
    Cg<T, A> { cg_step, cg_step_diagonal, cg_direction, cg_direction_diagonal }
}

/// A sum as a kernel takes it: partial sums that it is to add, or the host's value.
pub(crate) struct SumArg<'a, A> {
    /// Partial sums on the device…
    pub(crate) partials: &'a DeviceVec<A>,
    /// …so many; 0 if the host knows the sum:
    pub(crate) count: u32,
    /// its value.
    pub(crate) value: f64,
}

/// ρ as a kernel takes it: one number, on the device or known to the host.
pub(crate) struct RhoArg<'a, A> {
    /// Where it is on the device, or will be.
    pub(crate) device: &'a DeviceVec<A>,
    /// The host's value, if it knows.
    pub(crate) known: Option<f64>,
}

impl<A: Real> RhoArg<'_, A> {
    fn flag_and_value(&self) -> (u32, A) {
        (self.known.is_some().into(), A::from_f64(self.known.unwrap_or(0.0)))
    }
}

/// What the kernels leave for the host to read later, when one device works alone.
pub(crate) struct Log<A> {
    /// `state[0]` is set when the iteration is over.
    pub(crate) state: DeviceVec<i32>,
    /// p·q, ρ' and r·r of each iteration.
    pub(crate) entries: DeviceVec<A>,
}

impl<T: Real, A: Real> Cg<T, A> {
    /// alpha = rho / pq; x += alpha p; r -= alpha q; partial sums of r·z (with a diagonal `d`) and of r·r, one a group each.
    /// Reads 4 n elements (5 n with `d`), writes 2 n.
    pub(crate) fn cg_step(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        d: Option<&DeviceVec<T>>,
        x: &mut DeviceVec<T>,
        r: &mut DeviceVec<T>,
        p: &DeviceVec<T>,
        q: &DeviceVec<T>,
        rho: &RhoArg<'_, A>,
        pq: &SumArg<'_, A>,
        sums: &mut DeviceVec<A>,
        log: &Log<A>,
        slot: u32,
    ) -> Result<()> {
        let len = x.len().min(r.len()).min(p.len()).min(q.len()).min(d.map_or(usize::MAX, DeviceVec::len));
        let components = if d.is_some() { 2 } else { 1 };
        assert!(
            n as usize <= len && components * grid.groups <= sums.len() && 3 * (slot as usize + 1) <= log.entries.len()
        );
        assert!(rho.device.len() > 0 && pq.count as usize <= pq.partials.len());
        let kernel = if d.is_some() { &self.cg_step_diagonal } else { &self.cg_step };
        let ((rho_known, rho_value), pq_value) = (rho.flag_and_value(), A::from_f64(pq.value));
        // SAFETY: types as declared in the file; elements 0..n, `count` partials and the log's slot, checked above. Without a
        // diagonal the kernel does not read that argument.
        unsafe {
            launch(
                ctx,
                kernel,
                grid,
                &[
                    &n,
                    d.unwrap_or(q),
                    x,
                    r,
                    p,
                    q,
                    rho.device,
                    &rho_known,
                    &rho_value,
                    pq.partials,
                    &pq.count,
                    &pq_value,
                    sums,
                    &log.state,
                    &log.entries,
                    &slot,
                ],
            )
        }
    }

    /// rho' = Σ `sums`, also left in `rho_next`; beta = rho' / rho; p = z + beta p with z = d r or r; sets the state if the iteration
    /// is over. Reads 2 n elements
    /// (3 n with `d`), writes n.
    pub(crate) fn cg_direction(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        d: Option<&DeviceVec<T>>,
        r: &DeviceVec<T>,
        p: &mut DeviceVec<T>,
        sums: &SumArg<'_, A>,
        rho_next: &DeviceVec<A>,
        rho: &RhoArg<'_, A>,
        limit: f64,
        log: &Log<A>,
        slot: u32,
    ) -> Result<()> {
        let len = r.len().min(p.len()).min(d.map_or(usize::MAX, DeviceVec::len));
        let components = if d.is_some() { 2 } else { 1 };
        assert!(n as usize <= len && 3 * (slot as usize + 1) <= log.entries.len());
        assert!(components * sums.count as usize <= sums.partials.len() && rho_next.len() > 0 && rho.device.len() > 0);
        let kernel = if d.is_some() { &self.cg_direction_diagonal } else { &self.cg_direction };
        let (next, limit, (rho_known, rho_value)) = (A::from_f64(sums.value), A::from_f64(limit), rho.flag_and_value());
        // SAFETY: as in `cg_step`.
        unsafe {
            launch(
                ctx,
                kernel,
                grid,
                &[
                    &n,
                    d.unwrap_or(r),
                    r,
                    p,
                    sums.partials,
                    &sums.count,
                    &next,
                    rho_next,
                    rho.device,
                    &rho_known,
                    &rho_value,
                    &limit,
                    &log.state,
                    &log.entries,
                    &slot,
                ],
            )
        }
    }
}
