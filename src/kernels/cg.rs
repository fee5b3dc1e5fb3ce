//! Launchers of `cl/cg.cl`.

use rayon::prelude::*;

use super::{family, launch};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

family! {
    /// The fused kernel of conjugate gradients, and what it does on halos.
    Cg<T, A> { cg_step, cg_step_weighted, cg_step_given, cg_step_given_weighted, cg_complete, cg_halo }
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
    /// p·q, r·r, what the test looks at and what x is owed, of each iteration. Behind them, the place of the first iteration
    /// that was not done because a launch was refused (`cl/resident.cl`); no number without such a launch.
    pub(crate) entries: DeviceVec<A>,
}

impl<A: Real> Log<A> {
    /// Numbers of an iteration.
    pub(crate) const WIDTH: usize = 4;

    /// Iterations that it has room for.
    pub(crate) fn len(&self) -> u32 {
        (self.entries.len() / Self::WIDTH) as u32
    }

    /// Where it says what x is owed after the iteration in a slot.
    pub(crate) fn owed(slot: u32) -> usize {
        Self::WIDTH * slot as usize + 3
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

/// What the last step has put off of x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Owed {
    /// Nothing.
    Nothing,
    /// A slot of the log tells.
    Logged(u32),
    /// So much, as [`owed_next`] says.
    Known(f64),
}

/// What x will be owed after a step with such α and β: α / β, negative where the odd runs are owed it (`cl/cg.cl`); 0 if β is below
/// `least`.
pub(crate) fn owed_next([alpha, beta]: [f64; 2], owed: f64, least: f64) -> f64 {
    match beta >= least {
        true if owed > 0.0 => -alpha / beta,
        true => alpha / beta,
        false => 0.0,
    }
}

/// Elements side by side of which x is updated or put off together, as in `cl/cg.cl`.
pub(crate) const TURN: usize = 4096;

/// What a run of [`TURN`] elements is owed, if x is owed so much; 0 if it is the turn of others.
pub(crate) fn owed_by_run(run: usize, owed: f64) -> f64 {
    if run.is_multiple_of(2) { owed.max(0.0) } else { (-owed).max(0.0) }
}

/// Does on the host what `cg_complete` does.
pub(crate) fn make_up<T: Real>(x: &mut [T], r: &[T], p: &[T], owed: f64) {
    let runs = x.par_chunks_mut(TURN).zip(r.par_chunks(TURN).zip(p.par_chunks(TURN))).enumerate();
    runs.for_each(|(run, (x, (r, p)))| {
        let factor = T::from_f64(owed_by_run(run, owed));
        for (x, (&r, &p)) in x.iter_mut().zip(r.iter().zip(p)) {
            let more = factor * (p - r);
            *x += if more.to_f64().is_finite() { more } else { T::default() };
        }
    });
}

impl<T: Real, A: Real> Cg<T, A> {
    /// alpha = rho / p·q; beta = alpha q·q / p·q − 1; x += alpha p; r −= alpha q; p = r + beta p; partial sums of r·r and of what
    /// the test looks at, a pair for each group. x is updated in half of the elements, with what it is owed, and owed what it
    /// lacks in the other half, if beta is at least `least`. The former step's slot tells what it is owed, unless that is
    /// nothing. Reads 3.5 n elements (4.5 n with weights), writes 2.5 n.
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
        (is_owed, least): (bool, f64),
    ) -> Result<()> {
        assert!(n as usize <= v.len() && 2 * grid.groups <= rho_next.len() && dots.fits() && rho.fits());
        assert!(dots.count > 0 && slots.iter().all(|&slot| slot < log.len()));
        let StepVectors { x, r, p, q, w } = v;
        let kernel = if w.is_some() { &self.cg_step_weighted } else { &self.cg_step };
        let [rho_value, limit] = [rho.value, limit].map(A::from_f64);
        let (is_owed, least) = (u32::from(is_owed), T::from_f64(least));
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
                    &is_owed,
                    &least,
                ],
            )
        }
    }

    /// The same with alpha, beta, what x is owed and what it will be as they are given.
    pub(crate) fn cg_step_given(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        v: StepVectors<'_, T>,
        [alpha, beta, owed, owes]: [T; 4],
        rho_next: &DeviceVec<A>,
    ) -> Result<()> {
        assert!(n as usize <= v.len() && 2 * grid.groups <= rho_next.len());
        let StepVectors { x, r, p, q, w } = v;
        // SAFETY: types as declared in the file; elements 0..n and pairs of partials, checked above.
        unsafe {
            match w {
                Some(w) => {
                    let kernel = &self.cg_step_given_weighted;
                    launch(ctx, kernel, grid, &[&n, w, x, r, p, q, &alpha, &beta, &owed, &owes, rho_next])
                }
                None => {
                    launch(ctx, &self.cg_step_given, grid, &[&n, x, r, p, q, &alpha, &beta, &owed, &owes, rho_next])
                }
            }
        }
    }

    /// Gives x what it is owed, as a slot of the log tells, or the host. Reads 3 n elements, writes n.
    pub(crate) fn cg_complete(
        &self,
        ctx: &Context,
        grid: Grid,
        n: u32,
        x: &mut DeviceVec<T>,
        [r, p]: [&DeviceVec<T>; 2],
        log: &Log<A>,
        owed: Owed,
    ) -> Result<()> {
        let (slot, is_logged, owed) = match owed {
            Owed::Nothing => return Ok(()),
            Owed::Logged(slot) => (slot, 1_u32, T::default()),
            Owed::Known(owed) => (0, 0, T::from_f64(owed)),
        };
        assert!(n as usize <= x.len().min(r.len()).min(p.len()) && slot < log.len());
        // SAFETY: types as declared in the file; elements 0..n and the slot of the log, checked above.
        unsafe { launch(ctx, &self.cg_complete, grid, &[&n, x, r, p, &log.entries, &slot, &is_logged, &owed]) }
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
