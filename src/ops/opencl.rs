//! An OpenCL device as a rank.

mod grids;
mod resident;
mod sums;
mod timings;
mod watch;

use std::cell::{Cell, RefCell};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::resident::Residence;
pub(crate) use self::sums::DeviceSum;
use self::sums::{Landing, PARTIAL_SUMS};
use self::timings::{Clock, Recorded, is_sample};
use self::watch::{LOG_SIZE, Watch};
use super::trials::{MAX_TRIED_PER_UNIT, Trials};
use super::{CgStep, HaloStep, Ops, PipelinedStep, Record, Scalars, SingleStep, Widens};
use crate::comm::{Communicator, MAX_SUMS};
use crate::device::{Context, DeviceVec, Moment, Pinned};
use crate::error::Result;
use crate::kernels::cg::{Log, Owed, StepVectors, cg_scalars, make_up, owed_next};
use crate::kernels::recurrences::{PipelinedVectors, SingleVectors};
use crate::kernels::{Kernels, count};
use crate::real::Real;
use crate::timeline::{Lane, Recorder, Split, Timeline};

/// Elements that a work-item of a step has, at least: more groups leave more partial sums, all of which every group of the next
/// step adds.
const STEP_ELEMENTS: usize = 4;

/// The vector operations of a device on elements `T`, with sums in `A`.
pub(crate) struct OpenClOps<T: Real, A: Real> {
    pub(crate) ctx: Arc<Context>,
    pub(crate) kernels: Kernels<T, A>,
    comm: Box<dyn Communicator<T>>,
    n: u32,
    /// Compute units.
    units: usize,
    /// The most groups of a launch.
    max_groups: usize,
    log: Log<A>,
    /// Where passes that run ahead say that the run is over, if there are such.
    done: RefCell<Option<Arc<DeviceVec<i32>>>>,
    watch: RefCell<Watch<A>>,
    landing: RefCell<Landing<A>>,
    /// What the last step has put off of x.
    owed: Cell<Owed>,
    clock: RefCell<Clock>,
    pub(crate) recorder: Recorder,
    recorded: RefCell<Recorded>,
    trials: RefCell<Trials>,
    /// Iterations of former runs.
    before: Cell<u64>,
}

/// Where it is said whether the iteration is over.
pub(crate) enum Done<'a> {
    Log(&'a DeviceVec<i32>),
    Passes(Arc<DeviceVec<i32>>),
}

impl Deref for Done<'_> {
    type Target = DeviceVec<i32>;

    fn deref(&self) -> &DeviceVec<i32> {
        match self {
            Self::Log(state) => state,
            Self::Passes(state) => state,
        }
    }
}

impl<T: Real, A: Real> OpenClOps<T, A> {
    /// The operations on `n` owned rows. If `tries`, kernels without launch parameters of their own are tried with others in
    /// the course of the iterations.
    ///
    /// # Errors
    /// More rows than a device can address, or not enough memory.
    pub(crate) fn new(
        ctx: Arc<Context>,
        kernels: Kernels<T, A>,
        n: usize,
        comm: Box<dyn Communicator<T>>,
        tries: bool,
    ) -> Result<Self> {
        let log = Log {
            states: [DeviceVec::zeros(&ctx, 1, "the state")?, DeviceVec::zeros(&ctx, 1, "the state")?],
            entries: DeviceVec::zeros(&ctx, LOG_SIZE, "the log")?,
        };
        let watch = Watch::new(&ctx)?;
        let units = ctx.info().compute_units.max(1) as usize;
        let max_groups = kernels.tuning.max_groups().max(if tries { MAX_TRIED_PER_UNIT * units } else { 0 });
        let landing = Landing::new(Pinned::zeros(&ctx, 4 * max_groups)?);
        Ok(Self {
            ctx,
            kernels,
            comm,
            n: count(n),
            log,
            done: RefCell::default(),
            watch: RefCell::new(watch),
            landing: RefCell::new(landing),
            owed: Cell::new(Owed::Nothing),
            clock: RefCell::default(),
            recorder: Recorder::default(),
            recorded: RefCell::default(),
            trials: RefCell::new(Trials::new(tries)),
            before: Cell::default(),
            units,
            max_groups,
        })
    }

    /// The most groups of a launch that leaves partial sums.
    pub(crate) fn most_groups(&self) -> usize {
        self.max_groups
    }

    /// Set once the iteration is over; products then do nothing.
    pub(crate) fn done(&self) -> Done<'_> {
        let of_passes = self.done.borrow().clone();
        of_passes.map_or_else(|| Done::Log(self.log.state(self.watch.borrow().current)), Done::Passes)
    }

    /// From now on that is where the passes say it.
    pub(crate) fn set_done(&self, done: Arc<DeviceVec<i32>>) {
        self.done.replace(Some(done));
    }

    /// The device is known to have done this iteration.
    pub(crate) fn set_known_done(&self, iteration: u64) {
        self.watch.borrow_mut().done = iteration;
    }

    /// Whether the step that is enqueued next has to look what x is owed.
    fn is_owed(&self) -> bool {
        self.owed.get() != Owed::Nothing
    }

    /// A step on the halos of two vectors, `range`: x is multiplied next, and y was left by the former product.
    pub(crate) fn halo_step(
        &self,
        step: HaloStep<'_, Self>,
        range: Range<usize>,
        x: &mut DeviceVec<T>,
        y: &DeviceVec<T>,
    ) -> Result<()> {
        let (ctx, kernels, len) = (&self.ctx, &self.kernels, range.len());
        let range = count(range.start)..count(range.end);
        match step {
            HaloStep::Direction { scalars, r } => {
                kernels.cg.cg_halo(ctx, self.grid_for("cg_halo", len), range, [r, x], y, scalars.of())
            }
            HaloStep::Residual { scalars, d } => kernels.recurrences(ctx)?.recur_halo(
                ctx,
                self.grid_for("recur_halo", len),
                range,
                [x, d],
                y,
                scalars.of(),
            ),
        }
    }
}

impl<T: Real, A: Real> Widens<OpenClOps<A, A>> for OpenClOps<T, A> {
    fn narrow(&self, from: &DeviceVec<A>, to: &mut DeviceVec<T>) -> Result<()> {
        self.kernels.convert.narrow(&self.ctx, self.grid("narrow"), self.n, from, to)
    }

    fn add_wide(&self, d: &mut DeviceVec<T>, x: &mut DeviceVec<A>) -> Result<()> {
        self.kernels.convert.add_wide(&self.ctx, self.grid("add_wide"), self.n, d, x)
    }
}

impl<T: Real, A: Real> Ops for OpenClOps<T, A> {
    type Real = T;
    type Vector = DeviceVec<T>;
    type Sum = DeviceSum<A>;

    fn comm(&self) -> &dyn Communicator<T> {
        &*self.comm
    }

    fn set_comm(&mut self, comm: Box<dyn Communicator<T>>) {
        self.comm = comm;
    }

    fn n_owned(&self) -> usize {
        self.n as usize
    }

    fn vector(&self, halo: usize, what: &'static str) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(&self.ctx, self.n_owned() + halo, what)
    }

    fn nothing(&self) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(&self.ctx, 0, "nothing")
    }

    fn clear(&self, v: &mut DeviceVec<T>) -> Result<()> {
        v.fill(&self.ctx, 0).map(|_| ())
    }

    fn sum(&self, components: usize) -> Result<DeviceSum<A>> {
        let partials = Arc::new(DeviceVec::zeros(&self.ctx, components * self.max_groups, PARTIAL_SUMS)?);
        Ok(DeviceSum { partials, first: 0, components, count: 0, values: [0.0; MAX_SUMS] })
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
        let place = (component as u32, sum.components as u32);
        let partials = sum.refill(grid.groups);
        self.kernels.dot.dot_partial(&self.ctx, grid, self.n, x, y, partials, place)
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

    fn multiply(&self, d: &DeviceVec<T>, x: &DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.kernels.update.scale_diagonal(&self.ctx, self.grid("scale_diagonal"), self.n, d, x, y)
    }

    fn cg_step(&self, step: CgStep<'_, Self>) -> Result<Option<Scalars>> {
        let CgStep { dots, rho, weights, x, r, p, q, rho_next, limit, iteration, least_beta } = step;
        let (ctx, cg, log, vectors) = (&self.ctx, &self.kernels.cg, &self.log, StepVectors { x, r, p, q, w: weights });
        if self.comm.size() > 1 {
            let [pq, qq, ..] = dots.values;
            let scalars = cg_scalars([pq, qq], rho.values[0]);
            if let Some(scalars @ [alpha, beta]) = scalars {
                let owed = if let Owed::Known(owed) = self.owed.get() { owed } else { 0.0 };
                let owes = owed_next(scalars, owed, least_beta);
                let kernel = if weights.is_some() { "cg_step_given_weighted" } else { "cg_step_given" };
                let grid = self.grid_for(kernel, self.n_owned().div_ceil(STEP_ELEMENTS));
                // where the next dots will be, so that all are read at once
                rho_next.partials = Arc::clone(&dots.partials);
                let scalars = [alpha, beta, owed, owes].map(T::from_f64);
                cg.cg_step_given(ctx, grid, self.n, vectors, scalars, rho_next.refill(grid.groups))?;
                dots.first = grid.groups;
                self.owed.set(Owed::Known(owes));
            }
            return Ok(scalars.map(Scalars::from));
        }
        let kernel = if weights.is_some() { "cg_step_weighted" } else { "cg_step" };
        let grid = self.grid_for(kernel, self.n_owned().div_ceil(STEP_ELEMENTS));
        let slots = [iteration, iteration - 1].map(Self::slot);
        let (dots, rho, rho_next) = (dots.arg(), rho.arg(), rho_next.refill(grid.groups));
        cg.cg_step(
            ctx,
            grid,
            self.n,
            vectors,
            &dots,
            &rho,
            limit,
            rho_next,
            log,
            iteration,
            slots,
            (self.is_owed(), least_beta),
        )?;
        self.owed.set(Owed::Logged(slots[0]));
        Ok(None)
    }

    fn complete_iterate(&self, x: &mut DeviceVec<T>, r: &DeviceVec<T>, p: &DeviceVec<T>) -> Result<()> {
        let (grid, owed) = (self.grid("cg_complete"), self.owed_at_last()?);
        self.owed.set(Owed::Nothing);
        self.kernels.cg.cg_complete(&self.ctx, grid, self.n, x, [r, p], &self.log, owed)
    }

    fn read_iterate(&self, x: &DeviceVec<T>, r: &DeviceVec<T>, p: &DeviceVec<T>, to: &mut [T]) -> Result<()> {
        self.read(x, to)?;
        let owed = match self.owed_at_last()? {
            Owed::Nothing => return Ok(()),
            Owed::Known(owed) => owed,
            Owed::Logged(slot) => {
                let mut owed = [A::default()];
                self.log.entries.read(&self.ctx, Log::<A>::owed(slot), &mut owed)?;
                owed[0].to_f64()
            }
        };
        let [mut r_here, mut p_here] = [vec![T::default(); to.len()], vec![T::default(); to.len()]];
        self.read(r, &mut r_here)?;
        self.read(p, &mut p_here)?;
        make_up(to, &r_here, &p_here, owed);
        Ok(())
    }

    fn start_sum(&self, sums: &mut [&mut DeviceSum<A>]) -> Result<()> {
        if self.comm.size() > 1 {
            self.send(sums)?;
        }
        Ok(())
    }

    fn single_step(&self, step: SingleStep<'_, Self>) -> Result<()> {
        let SingleStep { scalars, weights, x, r, p, s, q, rho } = step;
        let grid = self.grid(if weights.is_some() { "single_step_weighted" } else { "single_step" });
        let (vectors, sums) = (SingleVectors { x, r, p, s, q, w: weights }, rho.refill(grid.groups));
        self.kernels.recurrences(&self.ctx)?.single_step(&self.ctx, grid, self.n, vectors, scalars.of(), sums)
    }

    fn pipelined_step(&self, step: PipelinedStep<'_, Self>) -> Result<()> {
        let PipelinedStep { scalars, weights, x, r, t, p, s, z, q, sums } = step;
        let grid = self.grid(if weights.is_some() { "pipelined_step_weighted" } else { "pipelined_step" });
        let (vectors, sums) = (PipelinedVectors { x, r, t, p, s, z, q, w: weights }, sums.refill(grid.groups));
        self.kernels.recurrences(&self.ctx)?.pipelined_step(&self.ctx, grid, self.n, vectors, scalars.of(), sums)
    }

    fn all_sum(&self, sums: &mut [&mut DeviceSum<A>]) -> Result<()> {
        if self.comm.size() == 1 {
            return Ok(()); // the next kernel adds the partial sums
        }
        self.bring(sums)?;
        let mut values = [0.0; MAX_SUMS];
        let mut len = 0;
        for sum in &*sums {
            values[len..len + sum.components].copy_from_slice(&sum.values[..sum.components]);
            len += sum.components;
        }
        let start = Instant::now();
        self.comm.sum(&mut values[..len])?;
        self.clock.borrow_mut().sums += start.elapsed();
        self.recorder.span(Lane::Host, "sum over ranks", start);
        let mut values = values.into_iter();
        for sum in sums {
            sum.values.iter_mut().take(sum.components).zip(&mut values).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    fn settle(&self, sum: &mut DeviceSum<A>) -> Result<[f64; MAX_SUMS]> {
        self.bring(&mut [sum])?;
        Ok(sum.values)
    }

    fn count_from(&self, before: u64) {
        self.before.set(before);
    }

    fn begin(&self) -> Result<()> {
        let watch = &mut *self.watch.borrow_mut();
        watch.abandon(&self.ctx)?;
        self.landing.borrow_mut().forget();
        self.done.take();
        self.owed.set(Owed::Nothing);
        (watch.seen, watch.current, watch.done, watch.batch, watch.last_look) = (0, 0, 0, 1, Instant::now());
        if matches!(watch.residence, Residence::Refused(_)) {
            watch.residence = Residence::Over;
        }
        self.trials.borrow_mut().begin_run();
        // a slot that no kernel has written must not look like a number
        self.log.entries.fill(&self.ctx, 0xFF)?;
        for state in &self.log.states {
            state.fill(&self.ctx, 0)?;
        }
        self.clock.borrow_mut().sampled = 0;
        self.ctx.set_timing(self.recorder.is_on().then_some(0)).map(|_| ())
    }

    fn begin_iteration(&self, iteration: u64) -> Result<()> {
        self.recorder.begin_iteration(iteration);
        self.ctx.set_iteration(self.before.get() + iteration);
        self.watch.borrow_mut().current = iteration;
        self.make_room_for_timings()?;
        self.judge_trials(iteration)?;
        let is_trial = self.trials.borrow_mut().begin_iteration(iteration);
        // not the first one, which pays for warming up
        let is_sample = iteration > 1 && is_sample(iteration - 2);
        let is_timed = is_sample || is_trial || self.recorder.is_on();
        self.ctx.set_timing(is_timed.then_some(iteration)).map(|_| ())
    }

    fn pace(&self, _: u64) -> Result<Option<f64>> {
        let done = self.watch.borrow().done;
        self.take_timed(done)?;
        let clock = &mut *self.clock.borrow_mut();
        let now = (clock.samples, clock.kernels.values().map(|(_, time)| *time).sum());
        let before = std::mem::replace(&mut clock.paced, now);
        let (samples, time) = (now.0 - before.0, now.1 - before.1);
        Ok((samples > 0).then(|| time.as_secs_f64() / samples as f64))
    }

    fn end_run(&self, last: u64) -> Result<()> {
        self.ctx.set_iteration(0);
        self.ctx.set_timing(None)?;
        self.watch.borrow_mut().done = last;
        self.judge_trials(last + 1)?;
        self.take_timed(last)?;
        self.forget_timed(); // iterations that did nothing
        self.recorder.end_run(last);
        Ok(())
    }

    fn observe(
        &self,
        iteration: u64,
        dots: Option<&DeviceSum<A>>,
        rho: &mut DeviceSum<A>,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        if self.comm.size() > 1 {
            records.extend(Record::of_sums(iteration, dots.map(|dots| dots.values), rho.values));
            return Ok(());
        }
        // the step of the former iteration, which is enqueued, tells of the one before
        self.follow(iteration.saturating_sub(2), drain, records)?;
        if drain && iteration > 1 {
            self.take_in_last(iteration - 1, rho, records)?;
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
