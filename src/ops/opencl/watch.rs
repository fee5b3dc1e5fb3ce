//! The host's late view of a device that works alone: what the log says of iterations that are done.

use std::time::{Duration, Instant};

use super::OpenClOps;
use super::resident::Residence;
use super::sums::DeviceSum;
use crate::device::{Context, DeviceVec, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::kernels::cg::Log;
use crate::ops::Record;
use crate::real::Real;

/// Iterations that the log holds; the host is never as far behind.
pub(super) const LOG_LEN: u64 = 256;
/// Its numbers, and one behind them.
pub(super) const LOG_SIZE: usize = LOG_WIDTH * LOG_LEN as usize + 1;
/// Those of an iteration.
const LOG_WIDTH: usize = Log::<f64>::WIDTH;
/// Iterations between two looks at the log, at most.
const MAX_BATCH: u64 = 64;
/// How long the iterations between two looks should take: long against the cost of a look, short against a human's patience.
const BATCH_TIME: Duration = Duration::from_micros(300);

/// The host's late view of the log.
pub(super) struct Watch<A: Real> {
    /// Memory for two looks, less those under way.
    pub(super) idle: Vec<Pinned<A>>,
    /// A look under way, and the iterations that it will show.
    pub(super) pending: Option<(PendingRead<Pinned<A>>, u64, u64)>,
    pub(super) batch: u64,
    /// The last iteration that was looked at, or will be by the look under way.
    pub(super) seen: u64,
    /// The iteration that is being enqueued.
    pub(super) current: u64,
    /// The device is known to have done this one.
    pub(super) done: u64,
    pub(super) last_look: Instant,
    pub(super) residence: Residence,
}

impl<A: Real> Watch<A> {
    /// Nothing is seen so far.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the driver has no pinned memory.
    pub(super) fn new(ctx: &Context) -> Result<Self> {
        Ok(Self {
            idle: vec![Pinned::zeros(ctx, LOG_SIZE)?, Pinned::zeros(ctx, LOG_SIZE)?],
            pending: None,
            batch: 1,
            seen: 0,
            current: 0,
            done: 0,
            last_look: Instant::now(),
            residence: Residence::Granted,
        })
    }

    /// Takes no interest in what a former run left behind.
    pub(super) fn abandon(&mut self, ctx: &Context) -> Result<()> {
        if let Some((read, _, _)) = self.pending.take() {
            self.idle.push(read.wait(ctx)?);
        }
        Ok(())
    }
}

impl<T: Real, A: Real> OpenClOps<T, A> {
    pub(super) fn slot(iteration: u64) -> u32 {
        (iteration % LOG_LEN) as u32
    }

    fn look(&self, watch: &mut Watch<A>, iteration: u64) -> Result<()> {
        if let Some(memory) = watch.idle.pop() {
            let read = DeviceVec::start_reads(
                &self.ctx,
                Queue::Compute,
                &[(&self.log.entries, 0..LOG_SIZE)],
                memory,
                None,
                "the log",
            )?;
            self.ctx.flush(Queue::Compute)?;
            watch.pending = Some((read, watch.seen + 1, iteration));
            watch.seen = iteration;
        }
        Ok(())
    }

    fn take_in(
        &self,
        watch: &mut Watch<A>,
        look: Option<(PendingRead<Pinned<A>>, u64, u64)>,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let Some((read, first, last)) = look else { return Ok(()) };
        let start = Instant::now();
        let memory = read.wait(&self.ctx)?;
        self.waited(start);
        let refused = watch.refused(&memory);
        // what the step before left was to be logged by the launch that was refused
        let last = refused.map_or(last, |refused| last.min(refused.saturating_sub(2)));
        for iteration in first..=last {
            let [pq, rho, rr] = [0, 1, 2].map(|k| memory[LOG_WIDTH * Self::slot(iteration) as usize + k].to_f64());
            records.extend([Record::Curvature { iteration, pq }, Record::Residual { iteration, rho, rr }]);
        }
        watch.done = last;
        watch.idle.push(memory);
        if refused.is_some() {
            watch.abandon(&self.ctx)?;
            watch.seen = last;
        }
        Ok(())
    }

    /// Reads the log up to iteration `last` if it is time, or at once to `drain` it, and takes in what was read before.
    pub(super) fn follow(&self, last: u64, drain: bool, records: &mut Vec<Record>) -> Result<()> {
        let watch = &mut *self.watch.borrow_mut();
        if last > watch.seen && (last - watch.seen >= watch.batch || drain) {
            // While the device works on this batch's end, the host takes in the batch before.
            let former = watch.pending.take();
            self.look(watch, last)?;
            self.take_in(watch, former, records)?;
            let time = watch.last_look.elapsed();
            watch.last_look = Instant::now();
            if time < BATCH_TIME {
                watch.batch = (2 * watch.batch).min(MAX_BATCH);
            } else if time > 3 * BATCH_TIME {
                watch.batch = (watch.batch / 2).max(1);
            }
        }
        if drain {
            let pending = watch.pending.take();
            self.take_in(watch, pending, records)?;
        }
        Ok(())
    }

    /// What the last step that was enqueued, that of `iteration`, has left, unless it was refused.
    pub(super) fn take_in_last(&self, iteration: u64, rho: &DeviceSum<A>, records: &mut Vec<Record>) -> Result<()> {
        let mut end = [A::default()];
        self.log.entries.read(&self.ctx, LOG_SIZE - 1, &mut end)?;
        if self.watch.borrow_mut().refused(&end).is_some() {
            return Ok(());
        }
        let [rho, rr, ..] = self.look_at(rho)?;
        let mut pq = [A::default()];
        self.log.entries.read(&self.ctx, LOG_WIDTH * Self::slot(iteration) as usize, &mut pq)?;
        let pq = pq[0].to_f64();
        records.extend([Record::Curvature { iteration, pq }, Record::Residual { iteration, rho, rr }]);
        let watch = &mut *self.watch.borrow_mut();
        (watch.seen, watch.done) = (iteration, iteration);
        Ok(())
    }
}
