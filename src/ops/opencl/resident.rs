//! Iterations that stay on the device: several in one launch.

use super::OpenClOps;
use super::watch::{LOG_LEN, LOG_SIZE, Watch};
use crate::error::Result;
use crate::kernels::cg::Owed;
use crate::kernels::resident::{Resident, Rows, Span, Sums, Vectors};
use crate::ops::CgRun;
use crate::real::Real;

/// The most iterations of a launch: where the end of one costs little beside them.
const MAX_ITERATIONS: u64 = 32;

/// How launches of resident iterations fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    /// None was refused so far.
    Granted,
    /// One was refused, and all that came after it: nothing was done of this iteration and of later ones.
    Refused(u64),
    /// That is over and done with; there will be no others.
    Over,
}

impl<A: Real> Watch<A> {
    /// The iteration from which on launches were refused and nothing was done, if the last element of the log says so.
    pub(super) fn refused(&mut self, log: &[A]) -> Option<u64> {
        let slot = log.last().map_or(f64::NAN, |slot| slot.to_f64());
        if self.residence == Residence::Granted && !slot.is_nan() {
            // the host is never further ahead than the log is long
            let behind = (self.current + LOG_LEN - slot as u64) % LOG_LEN;
            self.residence = Residence::Refused(self.current - behind);
        }
        if let Residence::Refused(first) = self.residence { Some(first) } else { None }
    }
}

impl<T: Real, A: Real> OpenClOps<T, A> {
    /// What the steps before an iteration have left x to be owed.
    fn owed_before(iteration: u64) -> Owed {
        if iteration == 1 { Owed::Nothing } else { Owed::Logged(Self::slot(iteration - 1)) }
    }

    /// What the last step that was made has left x to be owed: of launches that were refused, the log tells nothing.
    pub(super) fn owed_at_last(&self) -> Result<Owed> {
        let owed = self.owed.get();
        if let Owed::Logged(_) = owed {
            let mut end = [A::default()];
            self.log.entries.read(&self.ctx, LOG_SIZE - 1, &mut end)?;
            if let Some(first) = self.watch.borrow_mut().refused(&end) {
                return Ok(Self::owed_before(first));
            }
        }
        Ok(owed)
    }

    /// Enqueues iterations with the rows of a block, and tells which one comes next. That may be an earlier one, where it has
    /// become known that former launches were refused. `None` if the iteration has to be made of single kernels: among
    /// several ranks, for a timeline, or after a refusal.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn run_resident(
        &self,
        kernel: &Resident,
        rows: Rows<'_, T>,
        run: CgRun<'_, Self>,
    ) -> Result<Option<u64>> {
        let CgRun { dots, rho, rho_next, weights, x, r, p, q, limit, least_beta, iteration, most } = run;
        let residence = self.watch.borrow().residence;
        if let Residence::Refused(first) = residence {
            log::info!("{}: not all work-groups run at once, iterations are launched one by one", self.ctx.info().name);
            // as if neither that launch nor the later ones had been: a run begins with sums on the host
            if (iteration - first) % 2 == 1 {
                std::mem::swap(rho, rho_next);
            }
            rho.count = if first == 1 { 0 } else { kernel.groups() };
            self.forget_timed();
            self.owed.set(Self::owed_before(first));
            let watch = &mut *self.watch.borrow_mut();
            (watch.residence, watch.current) = (Residence::Over, first);
            return Ok(Some(first));
        }
        let count = self.watch.borrow().batch.min(MAX_ITERATIONS).min(most);
        if residence == Residence::Over || self.comm.size() > 1 || self.recorder.is_wanted() || count == 0 {
            return Ok(None);
        }

        self.make_room_for_timings()?;
        let next = iteration + count;
        self.ctx.set_iteration(self.before.get() + iteration);
        // an event costs little beside a launch of many iterations, and short launches are not like long ones
        self.ctx.set_timing(Some(iteration))?;
        self.clock.borrow_mut().spans.insert(iteration, count);
        let rho_count = rho.count;
        let sums = Sums {
            dots: &*self.empty(dots, 1)?,
            rho_value: rho.values[0],
            rho: &rho.partials,
            rho_count,
            rho_next: &rho_next.partials,
        };
        let vectors = Vectors { x, r, p, q, w: weights };
        let span = Span { first: iteration, slot: Self::slot(iteration), count: count as u32 };
        kernel.iterate(&self.ctx, rows, vectors, sums, limit, (self.is_owed(), least_beta), &self.log, span)?;
        self.owed.set(Owed::Logged(Self::slot(next - 1)));
        if count % 2 == 1 {
            std::mem::swap(rho, rho_next);
        }
        rho.refill(kernel.groups());
        self.watch.borrow_mut().current = next;
        Ok(Some(next))
    }
}
