//! An OpenCL device as a rank.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::trials::{MAX_TRIED_PER_UNIT, Trials, Tried};
use super::{CgDirection, CgStep, Ops, Record};
use crate::comm::Communicator;
use crate::device::{Context, DeviceVec, Grid, Moment, PendingRead, Pinned, Timed};
use crate::error::Result;
use crate::kernels::cg::{Log, RhoArg, SumArg};
use crate::kernels::{Kernels, Launch, count};
use crate::precond::Preconditioner;
use crate::real::Real;
use crate::solver::Split;
use crate::timeline::{Lane, Recorder, Timeline};

/// Iterations that the log holds; the host is never as far behind.
const LOG_LEN: u64 = 256;
/// Iterations between two looks at the log, at most.
const MAX_BATCH: u64 = 64;
/// How long the iterations between two looks should take: long against the cost of a look, short against a human's patience.
const BATCH_TIME: Duration = Duration::from_micros(300);
/// Every so many iterations, the device's own timing of the kernels is kept.
const SAMPLE_EVERY: u64 = 64;
/// So many timings are kept before they are added up.
const MAX_TIMED: usize = 1024;

/// The vector operations of a device on elements `T`, with sums in `A`.
pub(crate) struct OpenClOps<T: Real, A: Real> {
    pub(crate) ctx: Context,
    pub(crate) kernels: Kernels<T, A>,
    comm: Box<dyn Communicator<T>>,
    n: u32,
    /// Compute units.
    units: usize,
    /// Partial sums that one component of a sum may have: those of a vector operation, or those of a product's two launches.
    sum_room: usize,
    log: Log<A>,
    watch: RefCell<Watch<A>>,
    /// Where partial sums arrive on the host.
    landing: RefCell<Pinned<A>>,
    clock: RefCell<Clock>,
    pub(crate) recorder: Recorder,
    recorded: RefCell<Recorded>,
    trials: RefCell<Trials>,
}

/// Kernels that are part of a timeline, by the device's clock.
#[derive(Default)]
struct Recorded {
    /// When recording began.
    first: Option<Moment>,
    /// With the iteration of each.
    kernels: Vec<(Option<u64>, Timed)>,
}

/// The host's late view of the log.
struct Watch<A: Real> {
    /// Memory for two looks, less those under way.
    idle: Vec<Pinned<A>>,
    /// A look under way, and the iterations that it will show.
    pending: Option<(PendingRead<A>, u64, u64)>,
    batch: u64,
    /// The last iteration that was looked at, or will be by the look under way.
    seen: u64,
    /// The iteration that is being enqueued.
    current: u64,
    /// The device is known to have done this one.
    done: u64,
    last_look: Instant,
}

impl<A: Real> Watch<A> {
    /// Takes no interest in what a former run left behind.
    fn abandon(&mut self, ctx: &Context) -> Result<()> {
        if let Some((read, _, _)) = self.pending.take() {
            self.idle.push(read.wait(ctx)?);
        }
        Ok(())
    }
}

/// Where the time goes.
#[derive(Default)]
struct Clock {
    /// Iterations that the device timed, and the last of them.
    samples: u64,
    sampled: u64,
    /// How often each kernel was timed, and its time in all.
    kernels: BTreeMap<&'static str, (u32, Duration)>,
    sums: Duration,
    halos: Duration,
    host_wait: Duration,
}

/// One or two sums: partial sums on the device, or values on the host.
pub(crate) struct DeviceSum<A> {
    partials: DeviceVec<A>,
    components: usize,
    /// Partial sums of each component, one component after the other; 0 once the host has the values.
    count: usize,
    values: [f64; 2],
    /// The first component as one number, once a kernel has needed it.
    total: DeviceVec<A>,
}

impl<A: Real> DeviceSum<A> {
    fn arg(&self) -> SumArg<'_, A> {
        SumArg { partials: &self.partials, count: self.count as u32, value: self.values[0] }
    }

    fn rho(&self) -> RhoArg<'_, A> {
        RhoArg { device: &self.total, known: (self.count == 0).then_some(self.values[0]) }
    }

    /// The room for partial sums, whose number a kernel is about to set.
    pub(crate) fn refill(&mut self, count: usize) -> &mut DeviceVec<A> {
        self.count = count;
        &mut self.partials
    }
}

impl<T: Real, A: Real> OpenClOps<T, A> {
    /// The operations on `n` owned rows. If `tries`, kernels without launch parameters of their own are tried with others in
    /// the course of the iterations.
    ///
    /// # Errors
    /// More rows than a device can address, or not enough memory.
    pub(crate) fn new(
        ctx: Context,
        kernels: Kernels<T, A>,
        n: usize,
        comm: Box<dyn Communicator<T>>,
        tries: bool,
    ) -> Result<Self> {
        let log = Log {
            state: DeviceVec::zeros(&ctx, 1, "the state")?,
            entries: DeviceVec::zeros(&ctx, 3 * LOG_LEN as usize, "the log")?,
        };
        let idle = vec![Pinned::zeros(&ctx, 3 * LOG_LEN as usize)?, Pinned::zeros(&ctx, 3 * LOG_LEN as usize)?];
        let watch = Watch { idle, pending: None, batch: 1, seen: 0, current: 0, done: 0, last_look: Instant::now() };
        let units = ctx.info().compute_units.max(1) as usize;
        let max_groups = kernels.tuning.max_groups().max(if tries { MAX_TRIED_PER_UNIT * units } else { 0 });
        let sum_room = 2 * max_groups;
        let landing = Pinned::zeros(&ctx, 2 * sum_room)?;
        Ok(Self {
            ctx,
            kernels,
            comm,
            n: count(n),
            log,
            watch: RefCell::new(watch),
            landing: RefCell::new(landing),
            clock: RefCell::default(),
            recorder: Recorder::default(),
            recorded: RefCell::default(),
            trials: RefCell::new(Trials::new(tries)),
            units,
            sum_room,
        })
    }

    /// Replaces the communicator, between solves.
    pub(crate) fn set_comm(&mut self, comm: Box<dyn Communicator<T>>) {
        self.comm = comm;
    }

    /// Set once the iteration is over; products then do nothing.
    pub(crate) fn done(&self) -> &DeviceVec<i32> {
        &self.log.state
    }

    /// Adds to the time spent in halo exchanges.
    pub(crate) fn count_halo(&self, time: Duration) {
        self.clock.borrow_mut().halos += time;
    }

    /// Counts the time since `start` as spent in waiting for the device.
    fn waited(&self, start: Instant) {
        self.clock.borrow_mut().host_wait += start.elapsed();
        self.recorder.span(Lane::Host, "wait for the device", start);
    }

    /// The grid of a vector kernel.
    fn grid(&self, kernel: &'static str) -> Grid {
        self.grid_for(kernel, self.n_owned())
    }

    /// The grid of a kernel for `n` elements.
    pub(crate) fn grid_for(&self, kernel: &'static str, n: usize) -> Grid {
        self.tried(kernel, |launch| launch.grid(n))
    }

    /// The grid of a kernel for `count` row blocks.
    pub(crate) fn block_grid(&self, kernel: &'static str, count: usize) -> Grid {
        self.tried(kernel, |launch| launch.block_grid(count))
    }

    /// The grid that a launch gives, with the number of groups that trials want.
    fn tried(&self, kernel: &'static str, grid: impl Fn(Launch) -> Grid) -> Grid {
        let usual = self.kernels.tuning.launch(kernel);
        if self.kernels.tuning.is_set(kernel) {
            return grid(usual);
        }
        let most = grid(Launch { max_groups: usize::MAX, ..usual }).groups.div_ceil(self.units);
        let usual_per_unit = usual.max_groups / self.units;
        let groups_per_unit = self.trials.borrow_mut().groups_per_unit(kernel, usual_per_unit, most);
        grid(Launch { max_groups: groups_per_unit * self.units, ..usual })
    }

    /// What trials have found since this was last asked.
    pub(crate) fn take_found(&self) -> Vec<Tried> {
        self.trials.borrow_mut().take_found()
    }

    /// Judges the trials whose iterations are done before `iteration`.
    fn judge_trials(&self, iteration: u64) -> Result<()> {
        let enqueued = self.trials.borrow().is_enqueued(iteration);
        if let Some(last) = enqueued.filter(|&last| last <= self.watch.borrow().done) {
            self.take_timed(last)?;
            if self.trials.borrow_mut().end_round() {
                for tried in self.trials.borrow().found() {
                    let (kernel, groups) = (tried.kernel, tried.groups_per_unit);
                    log::info!(
                        "{}: {kernel} is launched with {groups} groups a unit from now on",
                        self.ctx.info().name
                    );
                }
            }
        }
        Ok(())
    }

    fn slot(iteration: u64) -> u32 {
        (iteration % LOG_LEN) as u32
    }

    fn look(&self, watch: &mut Watch<A>, iteration: u64) -> Result<()> {
        if let Some(memory) = watch.idle.pop() {
            let read = self.log.entries.start_read(&self.ctx, memory)?;
            self.ctx.flush(crate::device::Queue::Compute)?;
            watch.pending = Some((read, watch.seen + 1, iteration));
            watch.seen = iteration;
        }
        Ok(())
    }

    fn take_in(
        &self,
        watch: &mut Watch<A>,
        look: Option<(PendingRead<A>, u64, u64)>,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let Some((read, first, last)) = look else { return Ok(()) };
        let start = Instant::now();
        let memory = read.wait(&self.ctx)?;
        self.waited(start);
        for iteration in first..=last {
            let [pq, rho, rr] = [0, 1, 2].map(|k| memory[3 * Self::slot(iteration) as usize + k].to_f64());
            records.push(Record { iteration, pq, rho, rr });
        }
        watch.done = last;
        watch.idle.push(memory);
        Ok(())
    }

    /// Takes the timings up to iteration `last`.
    fn take_timed(&self, last: u64) -> Result<()> {
        let timed = self.ctx.take_timed(last)?;
        let clock = &mut *self.clock.borrow_mut();
        for kernel in timed {
            let trials = &mut *self.trials.borrow_mut();
            if trials.has(kernel.tag) {
                trials.note(kernel.kernel, kernel.tag, kernel.time());
            } else if kernel.tag > 0 {
                clock.samples += u64::from(kernel.tag != clock.sampled);
                clock.sampled = kernel.tag;
                let entry = clock.kernels.entry(kernel.kernel).or_default();
                *entry = (entry.0 + 1, entry.1 + kernel.time());
            }
            if let Some(place) = self.recorder.place(kernel.tag) {
                self.recorded.borrow_mut().kernels.push((place, kernel));
            }
        }
        Ok(())
    }
}

impl<T: Real, A: Real> Ops for OpenClOps<T, A> {
    type Real = T;
    type Vector = DeviceVec<T>;
    type Sum = DeviceSum<A>;

    fn comm(&self) -> &dyn Communicator<T> {
        &*self.comm
    }

    fn n_owned(&self) -> usize {
        self.n as usize
    }

    fn vector(&self, halo: usize, what: &'static str) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(&self.ctx, self.n_owned() + halo, what)
    }

    fn sum(&self, components: usize) -> Result<DeviceSum<A>> {
        let partials = DeviceVec::zeros(&self.ctx, components * self.sum_room, "partial sums")?;
        let total = DeviceVec::zeros(&self.ctx, 1, "a sum")?;
        Ok(DeviceSum { partials, components, count: 0, values: [0.0; 2], total })
    }

    fn write(&self, from: &[T], to: &mut DeviceVec<T>) -> Result<()> {
        assert_eq!(from.len(), self.n_owned());
        to.write(&self.ctx, 0, from)
    }

    fn read(&self, from: &DeviceVec<T>, to: &mut [T]) -> Result<()> {
        assert_eq!(to.len(), self.n_owned());
        from.read(&self.ctx, 0, to)
    }

    fn copy(&self, from: &DeviceVec<T>, to: &mut DeviceVec<T>) -> Result<()> {
        from.copy_to(&self.ctx, to, self.n_owned())
    }

    fn dot_product(&self, x: &DeviceVec<T>, y: &DeviceVec<T>, sum: &mut DeviceSum<A>, component: usize) -> Result<()> {
        let grid = self.grid("dot_partial");
        let first = (component * grid.groups) as u32;
        let partials = sum.refill(grid.groups);
        self.kernels.dot.dot_partial(&self.ctx, grid, self.n, x, y, partials, first)
    }

    fn next_iterate(&self, alpha: f64, p: &DeviceVec<T>, x: &mut DeviceVec<T>) -> Result<()> {
        let alpha = T::from_f64(alpha);
        self.kernels.update.next_iterate(&self.ctx, self.grid("next_iterate"), self.n, alpha, p, x)
    }

    fn next_residual(&self, alpha: f64, q: &DeviceVec<T>, r: &mut DeviceVec<T>) -> Result<()> {
        let alpha = T::from_f64(alpha);
        self.kernels.update.next_residual(&self.ctx, self.grid("next_residual"), self.n, alpha, q, r)
    }

    fn next_direction(&self, beta: f64, z: &DeviceVec<T>, p: &mut DeviceVec<T>) -> Result<()> {
        let beta = T::from_f64(beta);
        self.kernels.update.next_direction(&self.ctx, self.grid("next_direction"), self.n, beta, z, p)
    }

    fn precondition(&self, m: &Preconditioner<DeviceVec<T>>, r: &DeviceVec<T>, z: &mut DeviceVec<T>) -> Result<()> {
        let Some(d) = m.diagonal() else { return self.copy(r, z) };
        self.kernels.update.scale_diagonal(&self.ctx, self.grid("scale_diagonal"), self.n, d, r, z)
    }

    fn cg_step(&self, step: CgStep<'_, Self>) -> Result<()> {
        let (rho, pq) = (step.rho.rho(), step.pq.arg());
        let (d, slot) = (step.m.diagonal(), Self::slot(step.iteration));
        let grid = self.grid(if d.is_some() { "cg_step_diagonal" } else { "cg_step" });
        let sums = step.rho_next.refill(grid.groups);
        self.kernels
            .cg
            .cg_step(&self.ctx, grid, self.n, d, step.x, step.r, step.p, step.q, &rho, &pq, sums, &self.log, slot)
    }

    fn cg_direction(&self, direction: CgDirection<'_, Self>) -> Result<()> {
        let (next, rho) = (direction.rho_next, direction.rho.rho());
        let (limit, slot) = (direction.limit, Self::slot(direction.iteration));
        let (d, cg) = (direction.m.diagonal(), &self.kernels.cg);
        let (sums, total) = (next.arg(), &next.total);
        let grid = self.grid(if d.is_some() { "cg_direction_diagonal" } else { "cg_direction" });
        cg.cg_direction(
            &self.ctx,
            grid,
            self.n,
            d,
            direction.r,
            direction.p,
            &sums,
            total,
            &rho,
            limit,
            &self.log,
            slot,
        )
    }

    fn all_sum(&self, sum: &mut DeviceSum<A>) -> Result<()> {
        if self.comm.size() == 1 {
            return Ok(()); // the next kernel adds the partial sums
        }
        let mut values = self.settle(sum)?;
        let start = Instant::now();
        self.comm.sum(&mut values[..sum.components])?;
        self.clock.borrow_mut().sums += start.elapsed();
        self.recorder.span(Lane::Host, "sum over ranks", start);
        sum.values = values;
        Ok(())
    }

    fn settle(&self, sum: &mut DeviceSum<A>) -> Result<[f64; 2]> {
        if sum.count > 0 {
            let start = Instant::now();
            let mut landing = self.landing.borrow_mut();
            let partials = &mut landing[..sum.components * sum.count];
            sum.partials.read(&self.ctx, 0, partials)?;
            for (value, partials) in sum.values.iter_mut().zip(partials.chunks_exact(sum.count)) {
                *value = partials.iter().map(|v| v.to_f64()).sum();
            }
            sum.count = 0;
            let watch = &mut *self.watch.borrow_mut();
            watch.done = watch.current.saturating_sub(1);
            self.waited(start);
        }
        Ok(sum.values)
    }

    fn begin(&self) -> Result<()> {
        let watch = &mut *self.watch.borrow_mut();
        watch.abandon(&self.ctx)?;
        (watch.seen, watch.current, watch.done, watch.batch, watch.last_look) = (0, 0, 0, 1, Instant::now());
        self.trials.borrow_mut().begin_run();
        // a slot that no kernel has written must not look like a number
        self.log.entries.fill(&self.ctx, 0xFF)?;
        self.log.state.fill(&self.ctx, 0)?;
        self.clock.borrow_mut().sampled = 0;
        self.ctx.set_timing(self.recorder.is_on().then_some(0));
        Ok(())
    }

    fn begin_iteration(&self, iteration: u64) -> Result<()> {
        self.recorder.begin_iteration(iteration);
        self.watch.borrow_mut().current = iteration;
        if self.ctx.timed_count() > MAX_TIMED {
            self.take_timed(self.watch.borrow().done)?; // events cost the driver memory
        }
        self.judge_trials(iteration)?;
        let is_trial = self.trials.borrow_mut().begin_iteration(iteration);
        // not the first one, which pays for warming up
        let is_sample = iteration % SAMPLE_EVERY == 2;
        self.ctx.set_timing((is_sample || is_trial || self.recorder.is_on()).then_some(iteration));
        Ok(())
    }

    fn end_run(&self, last: u64) -> Result<()> {
        self.ctx.set_timing(None);
        self.watch.borrow_mut().done = last;
        self.judge_trials(last + 1)?;
        self.take_timed(last)?;
        self.ctx.forget_timed(); // iterations that did nothing
        self.recorder.end_run(last);
        Ok(())
    }

    fn observe(
        &self,
        iteration: u64,
        pq: &DeviceSum<A>,
        rho: &DeviceSum<A>,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        if pq.count == 0 {
            records.push(Record {
                iteration,
                pq: pq.values[0],
                rho: rho.values[0],
                rr: rho.values[rho.components - 1],
            });
            return Ok(());
        }
        let watch = &mut *self.watch.borrow_mut();
        if iteration - watch.seen >= watch.batch || drain {
            // While the device works on this batch's end, the host takes in the batch before.
            let former = watch.pending.take();
            self.look(watch, iteration)?;
            self.take_in(watch, former, records)?;
            if drain {
                let last = watch.pending.take();
                self.take_in(watch, last, records)?;
            }
            let time = watch.last_look.elapsed();
            watch.last_look = Instant::now();
            if time < BATCH_TIME {
                watch.batch = (2 * watch.batch).min(MAX_BATCH);
            } else if time > 3 * BATCH_TIME {
                watch.batch = (watch.batch / 2).max(1);
            }
        }
        Ok(())
    }

    fn record(&self, origin: Instant, before: u64) -> Result<()> {
        self.recorder.start(origin, before);
        self.recorded.replace(Recorded { first: Moment::now(&self.ctx)?, kernels: Vec::new() });
        Ok(())
    }

    fn take_timeline(&self) -> Result<Timeline> {
        let Recorded { first, kernels } = self.recorded.take();
        if let Some(first) = first
            && let Some(last) = Moment::now(&self.ctx)?
        {
            for (iteration, kernel) in kernels {
                let times = [kernel.start, kernel.end].map(|at| first.host_time(&last, at));
                self.recorder.device_span(kernel.kernel, iteration, times);
            }
        }
        Ok(self.recorder.stop())
    }

    fn finish(&self, iterations: u64) -> Result<Split> {
        self.ctx.finish()?;
        self.watch.borrow_mut().abandon(&self.ctx)?;
        let clock = self.clock.take();
        let mut kernels = Duration::ZERO;
        for (name, (count, time)) in &clock.kernels {
            log::debug!("{}: {name} takes {:?}, the mean of {count}", self.ctx.info().name, *time / *count);
            kernels += *time;
        }
        if clock.samples > 0 {
            kernels = kernels.mul_f64(iterations as f64 / clock.samples as f64);
        }
        Ok(Split { kernels, sums: clock.sums, halos: clock.halos, host_wait: clock.host_wait })
    }
}
