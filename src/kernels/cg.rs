//! Launchers of `cl/cg.cl`.

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// The fused kernel of conjugate gradients, and what it does on halos.
    Cg<T, A> { cg_step, cg_step_weighted, cg_step_given, cg_step_given_weighted, cg_halo }
}

/// Two sums as a kernel takes them: pairs of partial sums that it is to add, or what the host knows.
pub(crate) struct SumArg<'a, A> {
    /// Pairs of partial sums on the device…
    pub(crate) partials: &'a DeviceVec<A>,
    /// …so many; 0 if the host knows the sums:
    pub(crate) count: u32,
    /// the first of them.
    pub(crate) value: f64,
}

impl<A: Real> SumArg<'_, A> {
    fn fits(&self) -> bool {
        self.partials.len() >= 2 * self.count as usize
    }
}

/// What the kernels leave for the host to read later, when one device works alone, and for each other.
pub(crate) struct Log<A> {
    /// Set when the iteration is over: read in an iteration of even number, and in one of odd number. Each is written in the
    /// iteration before.
    pub(crate) states: [DeviceVec<i32>; 2],
    /// p·q, r·r and what the test looks at, of each iteration. Behind them, the place of the first iteration that was not done
    /// because a launch was refused (`cl/resident.cl`); no number without such a launch.
    pub(crate) entries: DeviceVec<A>,
}

impl<A: Real> Log<A> {
    /// Iterations that it has room for.
    pub(crate) fn len(&self) -> u32 {
        (self.entries.len() / 3) as u32
    }

    /// The state that is read in an iteration.
    pub(crate) fn state(&self, iteration: u64) -> &DeviceVec<i32> {
        &self.states[(iteration % 2) as usize]
    }
}

/// The vectors of a step.
pub(crate) struct StepVectors<'a, T> {
    pub(crate) x: &'a mut DeviceVec<T>,
    pub(crate) r: &'a mut DeviceVec<T>,
    pub(crate) p: &'a mut DeviceVec<T>,
    pub(crate) q: &'a DeviceVec<T>,
    /// Weights of the squares of r in what the test looks at.
    pub(crate) w: Option<&'a DeviceVec<T>>,
}

impl<T: Real> StepVectors<'_, T> {
    fn len(&self) -> usize {
        let Self { x, r, p, q, w } = self;
        x.len().min(r.len()).min(p.len()).min(q.len()).min(w.map_or(usize::MAX, DeviceVec::len))
    }
}

/// α = ρ / p·q and β = α q·q / p·q − 1, at least 0; `None` unless p·q is positive and finite.
pub(crate) fn cg_scalars([pq, qq]: [f64; 2], rho: f64) -> Option<[f64; 2]> {
    let alpha = rho / pq;
    let beta = (alpha * (qq / pq) - 1.0).max(0.0);
    (pq > 0.0 && pq.is_finite()).then_some([alpha, beta])
}

impl<T: Real, A: Real> Cg<T, A> {
    /// alpha = rho / p·q; beta = alpha q·q / p·q − 1; x += alpha p; r −= alpha q; p = r + beta p; partial sums of r·r and of what
    /// the test looks at, a pair for each group. Reads 4 n elements (5 n with weights), writes 3 n.
    ///
    /// `dots` are partial sums. `slots` are the places of this iteration and of the former one in the log.
    pub(crate) fn cg_step(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        v: StepVectors<'_, T>,
        dots: &SumArg<'_, A>,
        rho: &SumArg<'_, A>,
        limit: f64,
        rho_next: &DeviceVec<A>,
        log: &Log<A>,
        iteration: u64,
        slots: [u32; 2],
    ) -> Result<()> {
        assert!(n as usize <= v.len() && 2 * grid.groups <= rho_next.len() && dots.fits() && rho.fits());
        assert!(dots.count > 0 && slots.iter().all(|&slot| 3 * (slot as usize + 1) <= log.entries.len()));
        let StepVectors { x, r, p, q, w } = v;
        let kernel = if w.is_some() { &self.cg_step_weighted } else { &self.cg_step };
        let [rho_value, limit] = [rho.value, limit].map(A::from_f64);
        let [slot, former] = &slots;
        let (state, next_state) = (log.state(iteration), log.state(iteration + 1));
        // SAFETY: types as declared in the file; elements 0..n, pairs of partials and the slots of the log, checked above.
        // Without weights the kernel does not read that argument.
        unsafe {
            launch(
                ctx,
                kernel,
                grid,
                &[
                    &n,
                    w.unwrap_or(q),
                    x,
                    r,
                    p,
                    q,
                    dots.partials,
                    &dots.count,
                    rho.partials,
                    &rho.count,
                    &rho_value,
                    &limit,
                    rho_next,
                    state,
                    next_state,
                    &log.entries,
                    slot,
                    former,
                ],
            )
        }
    }

    /// The same with alpha and beta as they are given.
    pub(crate) fn cg_step_given(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        v: StepVectors<'_, T>,
        [alpha, beta]: [T; 2],
        rho_next: &DeviceVec<A>,
    ) -> Result<()> {
        assert!(n as usize <= v.len() && 2 * grid.groups <= rho_next.len());
        let StepVectors { x, r, p, q, w } = v;
        // SAFETY: types as declared in the file; elements 0..n and pairs of partials, checked above.
        unsafe {
            match w {
                Some(w) => {
                    let kernel = &self.cg_step_given_weighted;
                    launch(ctx, kernel, grid, &[&n, w, x, r, p, q, &alpha, &beta, rho_next])
                }
                None => launch(ctx, &self.cg_step_given, grid, &[&n, x, r, p, q, &alpha, &beta, rho_next]),
            }
        }
    }

    /// r −= alpha q and p = r + beta p on the elements `range`. Reads 3 elements for each, writes 2.
    pub(crate) fn cg_halo(
        &self,
        ctx: &Context,
        grid: Grid,
        range: std::ops::Range<u32>,
        [r, p]: [&mut DeviceVec<T>; 2],
        q: &DeviceVec<T>,
        [alpha, beta]: [T; 2],
    ) -> Result<()> {
        assert!(range.start <= range.end && range.end as usize <= r.len().min(p.len()).min(q.len()));
        let (begin, count) = (range.start, range.end - range.start);
        // SAFETY: types as declared in the file; elements begin..begin + count, checked above.
        unsafe { launch(ctx, &self.cg_halo, grid, &[&begin, &count, r, p, q, &alpha, &beta]) }
    }
}
