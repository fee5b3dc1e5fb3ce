//! An OpenCL device as a rank.

mod resident;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::resident::Residence;
use super::trials::{MAX_TRIED_PER_UNIT, Trials, Tried};
use super::{CgStep, HaloStep, Ops, PipelinedStep, Record, Scalars, SingleStep, Widens};
use crate::comm::{Communicator, MAX_SUMS};
use crate::device::{Context, DeviceVec, Grid, Moment, PendingRead, Pinned, Queue, SumsRead, Timed};
use crate::error::Result;
use crate::kernels::cg::{Log, StepVectors, SumArg, cg_scalars};
use crate::kernels::recurrences::{PipelinedVectors, SingleVectors};
use crate::kernels::{Kernels, Launch, count};
use crate::real::Real;
use crate::solver::Split;
use crate::timeline::{Lane, Recorder, Timeline};

/// Iterations that the log holds; the host is never as far behind.
const LOG_LEN: u64 = 256;
/// Its numbers, and one behind them.
const LOG_SIZE: usize = 3 * LOG_LEN as usize + 1;
/// Iterations between two looks at the log, at most.
const MAX_BATCH: u64 = 64;
/// How long the iterations between two looks should take: long against the cost of a look, short against a human's patience.
const BATCH_TIME: Duration = Duration::from_micros(300);
/// The device times the kernels of one of the first iterations, of the one so many later, and again after twice as many.
const SAMPLE_EVERY: u64 = 64;
/// Elements that a work-item of a step has, at least: more groups leave more partial sums, all of which every group of the next
/// step adds.
const STEP_ELEMENTS: usize = 4;
/// What the device is asked to make room for.
const PARTIAL_SUMS: &str = "partial sums";
/// So many timings are kept before they are added up.
const MAX_TIMED: usize = 1024;

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
    watch: RefCell<Watch<A>>,
    landing: RefCell<Landing<A>>,
    clock: RefCell<Clock>,
    pub(crate) recorder: Recorder,
    recorded: RefCell<Recorded>,
    trials: RefCell<Trials>,
    /// Iterations of former runs.
    before: Cell<u64>,
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
    pending: Option<(PendingRead<Pinned<A>>, u64, u64)>,
    batch: u64,
    /// The last iteration that was looked at, or will be by the look under way.
    seen: u64,
    /// The iteration that is being enqueued.
    current: u64,
    /// The device is known to have done this one.
    done: u64,
    last_look: Instant,
    residence: Residence,
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

/// Where partial sums arrive on the host.
struct Landing<A: Real> {
    memory: Option<Pinned<A>>,
    coming: Option<Coming<A>>,
}

/// Where the time goes.
#[derive(Default)]
struct Clock {
    /// Iterations that the device timed, and the last of them.
    samples: u64,
    sampled: u64,
    /// Iterations of launches of several that are timed, by their tag.
    spans: BTreeMap<u64, u64>,
    /// How often each kernel was timed, and its time in all.
    kernels: BTreeMap<&'static str, (u32, Duration)>,
    sums: Duration,
    halos: Duration,
    host_wait: Duration,
    /// Samples, and their time, that were asked for already.
    paced: (u64, Duration),
}

/// Up to four sums: partial sums on the device, or values on the host.
pub(crate) struct DeviceSum<A> {
    /// Those of a group one behind the other; those of another sum may be in front of them.
    partials: Arc<DeviceVec<A>>,
    /// The first group whose they are.
    first: usize,
    components: usize,
    /// Groups that have left partial sums; 0 once the host has the values.
    count: usize,
    values: [f64; MAX_SUMS],
}

impl<A: Real> DeviceSum<A> {
    fn arg(&self) -> SumArg<'_, A> {
        SumArg { partials: &self.partials, count: self.count as u32, value: self.values[0] }
    }

    /// Where partial sums are.
    fn place(&self) -> Place {
        let [begin, end] = [self.first, self.first + self.count].map(|group| group * self.components);
        Place { array: self.partials.id(), elements: begin..end }
    }

    /// The room for partial sums of its own, whose number a kernel is about to set.
    fn refill(&mut self, count: usize) -> &DeviceVec<A> {
        (self.first, self.count) = (0, count);
        &self.partials
    }

    /// Groups that are there, with those of another sum in front.
    pub(crate) fn groups(&self) -> usize {
        self.first + self.count
    }

    /// Takes note of the groups that have left partial sums, with those of another sum in front.
    pub(crate) fn set_groups(&mut self, groups: usize) {
        self.count = groups - self.first;
    }

    /// With these values, completed.
    pub(crate) fn with_values(mut self, [first, second]: [f64; 2]) -> Self {
        (self.count, self.values[0], self.values[1]) = (0, first, second);
        self
    }
}

/// Some elements of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    array: u64,
    elements: Range<usize>,
}

/// Sums under way, and where they come from, one behind the other.
type Coming<A> = (SumsRead<A>, Vec<Place>);

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
        let idle = vec![Pinned::zeros(&ctx, LOG_SIZE)?, Pinned::zeros(&ctx, LOG_SIZE)?];
        let watch = Watch {
            idle,
            pending: None,
            batch: 1,
            seen: 0,
            current: 0,
            done: 0,
            last_look: Instant::now(),
            residence: Residence::Granted,
        };
        let units = ctx.info().compute_units.max(1) as usize;
        let max_groups = kernels.tuning.max_groups().max(if tries { MAX_TRIED_PER_UNIT * units } else { 0 });
        let landing = Landing { memory: Some(Pinned::zeros(&ctx, 4 * max_groups)?), coming: None };
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
            before: Cell::default(),
            units,
            max_groups,
        })
    }

    /// The most groups of a launch that leaves partial sums.
    pub(crate) fn most_groups(&self) -> usize {
        self.max_groups
    }

    /// Empties a sum, and makes room in it for the partial sums of so many launches, behind those of another sum.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn empty(&self, sum: &mut DeviceSum<A>, launches: usize) -> Result<Arc<DeviceVec<A>>> {
        sum.count = 0;
        let room = sum.components * (sum.first + launches * self.max_groups);
        if sum.partials.len() < room {
            (sum.partials, sum.first) = (Arc::new(DeviceVec::zeros(&self.ctx, room, PARTIAL_SUMS)?), 0);
        }
        Ok(Arc::clone(&sum.partials))
    }

    /// Set once the iteration is over; products then do nothing.
    pub(crate) fn done(&self) -> &DeviceVec<i32> {
        self.log.state(self.watch.borrow().current)
    }

    /// Adds to the time spent in halo exchanges.
    pub(crate) fn count_halo(&self, time: Duration) {
        self.clock.borrow_mut().halos += time;
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

    /// Starts to read the sums that are still on the device: what lies together, at once.
    fn start_reads(&self, sums: &[&mut DeviceSum<A>]) -> Result<Option<Coming<A>>> {
        let mut here: Vec<&DeviceSum<A>> = sums.iter().map(|sum| &**sum).filter(|sum| sum.count > 0).collect();
        here.sort_by_key(|sum| (sum.partials.id(), sum.first));
        let places: Vec<Place> = here.iter().map(|sum| sum.place()).collect();
        let len = places.iter().map(|place| place.elements.len()).sum();
        let mut runs: Vec<(&DeviceVec<A>, Range<usize>)> = Vec::new();
        for (sum, place) in here.iter().zip(&places) {
            match runs.last_mut() {
                Some((array, run)) if array.id() == place.array && run.end == place.elements.start => {
                    run.end = place.elements.end;
                }
                _ => runs.push((&sum.partials, place.elements.clone())),
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
        let mut landing = self.landing.borrow_mut();
        let memory = landing.memory.take().filter(|memory| memory.len() >= len);
        let memory = memory.map_or_else(|| Pinned::zeros(&self.ctx, len), Ok)?;
        Ok(Some((memory.await_sums(&self.ctx, &runs)?, places)))
    }

    /// Brings sums to the host that are still on the device, with one wait for all: those that are under way, if all are
    /// among them.
    fn bring(&self, sums: &mut [&mut DeviceSum<A>]) -> Result<()> {
        let start = Instant::now();
        let coming = self.landing.borrow_mut().coming.take();
        let has_all =
            |places: &[Place]| sums.iter().filter(|sum| sum.count > 0).all(|sum| places.contains(&sum.place()));
        let coming = match coming {
            Some((read, places)) if has_all(&places) => Some((read, places)),
            Some((read, _)) => {
                self.landing.borrow_mut().memory = Some(read.wait(&self.ctx)?);
                self.start_reads(sums)?
            }
            None => self.start_reads(sums)?,
        };
        let Some((read, places)) = coming else { return Ok(()) };
        let memory = read.wait(&self.ctx)?;
        let mut rest = &memory[..];
        for place in places {
            let (piece, others) = rest.split_at(place.elements.len());
            rest = others;
            if let Some(sum) = sums.iter_mut().find(|sum| sum.count > 0 && sum.place() == place) {
                (sum.values, sum.count) = (add_up(piece, sum.components), 0);
            }
        }
        self.landing.borrow_mut().memory = Some(memory);
        let watch = &mut *self.watch.borrow_mut();
        watch.done = watch.current.saturating_sub(1);
        self.waited(start);
        Ok(())
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
            let [pq, rho, rr] = [0, 1, 2].map(|k| memory[3 * Self::slot(iteration) as usize + k].to_f64());
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
    fn follow(&self, last: u64, drain: bool, records: &mut Vec<Record>) -> Result<()> {
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

    /// A sum that stays where it is: what goes on from it gets the same bits.
    fn look_at(&self, sum: &DeviceSum<A>) -> Result<[f64; MAX_SUMS]> {
        if sum.count == 0 {
            return Ok(sum.values);
        }
        let elements = sum.place().elements;
        let mut parts = vec![A::default(); elements.len()];
        sum.partials.read(&self.ctx, elements.start, &mut parts)?;
        Ok(add_up(&parts, sum.components))
    }

    /// What the last step that was enqueued, that of `iteration`, has left, unless it was refused.
    fn take_in_last(&self, iteration: u64, rho: &DeviceSum<A>, records: &mut Vec<Record>) -> Result<()> {
        let mut end = [A::default()];
        self.log.entries.read(&self.ctx, LOG_SIZE - 1, &mut end)?;
        if self.watch.borrow_mut().refused(&end).is_some() {
            return Ok(());
        }
        let [rho, rr, ..] = self.look_at(rho)?;
        let mut pq = [A::default()];
        self.log.entries.read(&self.ctx, 3 * Self::slot(iteration) as usize, &mut pq)?;
        let pq = pq[0].to_f64();
        records.extend([Record::Curvature { iteration, pq }, Record::Residual { iteration, rho, rr }]);
        let watch = &mut *self.watch.borrow_mut();
        (watch.seen, watch.done) = (iteration, iteration);
        Ok(())
    }

    /// Takes what timings there are, if they are many: events cost the driver memory.
    fn make_room_for_timings(&self) -> Result<()> {
        let done = self.watch.borrow().done;
        if self.ctx.timed_count() > MAX_TIMED { self.take_timed(done) } else { Ok(()) }
    }

    /// Takes no interest in timings that were not taken.
    fn forget_timed(&self) {
        self.ctx.forget_timed();
        self.clock.borrow_mut().spans.clear();
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
                // of the iterations of one launch, those count that are no later
                let iterations = clock.spans.remove(&kernel.tag).map_or(1, |count| count.min(last + 1 - kernel.tag));
                clock.samples += if kernel.tag == clock.sampled { 0 } else { iterations };
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

/// Whether the device's own times of this iteration are of interest.
fn is_sample(iteration: u64) -> bool {
    iteration == 0 || iteration.is_multiple_of(SAMPLE_EVERY) && (iteration / SAMPLE_EVERY).is_power_of_two()
}

/// The sums of 1, 2 or 4 components whose parts lie one behind the other, in eight interleaved ones: sums in one row would take
/// longer than the parts took to arrive.
fn add_up<A: Real>(parts: &[A], components: usize) -> [f64; MAX_SUMS] {
    let (eights, rest) = parts.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for part in eights.iter().map(<[A; 8]>::as_slice).chain([rest]) {
        lanes.iter_mut().zip(part).for_each(|(lane, v)| *lane += v.to_f64());
    }
    std::array::from_fn(|k| if k < components { lanes.iter().skip(k).step_by(components).sum() } else { 0.0 })
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
        let CgStep { dots, rho, weights, x, r, p, q, rho_next, limit, iteration } = step;
        let (ctx, cg, log, vectors) = (&self.ctx, &self.kernels.cg, &self.log, StepVectors { x, r, p, q, w: weights });
        if self.comm.size() > 1 {
            let [pq, qq, ..] = dots.values;
            let scalars = cg_scalars([pq, qq], rho.values[0]).map(Scalars::from);
            if let Some(scalars) = scalars {
                let kernel = if weights.is_some() { "cg_step_given_weighted" } else { "cg_step_given" };
                let grid = self.grid_for(kernel, self.n_owned().div_ceil(STEP_ELEMENTS));
                // where the next dots will be, so that all are read at once
                rho_next.partials = Arc::clone(&dots.partials);
                cg.cg_step_given(ctx, grid, self.n, vectors, scalars.of(), rho_next.refill(grid.groups))?;
                dots.first = grid.groups;
            }
            return Ok(scalars);
        }
        let kernel = if weights.is_some() { "cg_step_weighted" } else { "cg_step" };
        let grid = self.grid_for(kernel, self.n_owned().div_ceil(STEP_ELEMENTS));
        let slots = [iteration, iteration - 1].map(Self::slot);
        let (dots, rho, rho_next) = (dots.arg(), rho.arg(), rho_next.refill(grid.groups));
        cg.cg_step(ctx, grid, self.n, vectors, &dots, &rho, limit, rho_next, log, iteration, slots)?;
        Ok(None)
    }

    fn start_sum(&self, sums: &mut [&mut DeviceSum<A>]) -> Result<()> {
        if self.comm.size() > 1 {
            let coming = self.start_reads(sums)?;
            self.landing.borrow_mut().coming = coming;
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
        self.landing.borrow_mut().coming = None;
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
