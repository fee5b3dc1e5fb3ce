//! An OpenCL device as a rank.

mod basis;
mod batch;
mod columns;
mod device_passes;
pub(crate) mod passes;
mod sums;
mod timings;
mod together;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::sums::PARTIAL_SUMS;
pub(crate) use self::sums::{DeviceSums, add_up};
use self::timings::{Clock, Recorded, is_sample};
use super::source::TOGETHER;
use super::vectors::{Backend, Widens};
use crate::comm::{Alone, Communicator, MAX_SUMS};
use crate::device::{Context, DeviceVec, Grid, Moment, Pinned};
use crate::error::Result;
use crate::kernels::products::{Rows, Sending};
use crate::kernels::{Kernels, count, lanes};
use crate::real::Real;
use crate::timeline::{Recorder, Split, Timeline};

/// The vector operations of a device on elements `T`, with sums in `A`.
pub(crate) struct OpenClBackend<T: Real, A: Real> {
    pub(crate) ctx: Arc<Context>,
    pub(crate) kernels: Kernels<T, A>,
    comm: Box<dyn Communicator<T>>,
    /// Elements of a vector.
    n: u32,
    columns: usize,
    /// The most groups of a launch that leaves partial sums.
    max_groups: usize,
    /// Where passes that run ahead say that the run is over,
    done: RefCell<Arc<DeviceVec<i32>>>,
    /// or where nobody does.
    never: Arc<DeviceVec<i32>>,
    /// Where products put what other ranks need, if these iterate without the host.
    sending: RefCell<Option<Sending>>,
    /// Whether products have all rows in one launch, as where ranks meet, though the host does that,
    in_one: Cell<bool>,
    /// and the grid of the launches of several iterations that they would make.
    as_several: Cell<Option<Grid>>,
    /// The iteration that is being enqueued.
    current: Cell<u64>,
    /// The device is known to have done this one.
    known_done: Cell<u64>,
    /// Partial sums of dot products,
    partials: RefCell<Option<DeviceVec<A>>>,
    /// and where sums arrive on the host.
    landing: RefCell<Option<Pinned<A>>>,
    clock: RefCell<Clock>,
    pub(crate) recorder: Recorder,
    recorded: RefCell<Recorded>,
    /// Iterations of former runs.
    before: Cell<u64>,
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// The operations on `n` owned rows.
    ///
    /// # Errors
    /// More rows than a device can address, or not enough memory.
    pub(crate) fn new(
        ctx: Arc<Context>,
        kernels: Kernels<T, A>,
        n: usize,
        comm: Box<dyn Communicator<T>>,
    ) -> Result<Self> {
        Self::of_columns(ctx, kernels, [n, 1], comm)
    }

    /// The operations on vectors of so many rows and [columns](Backend::columns).
    ///
    /// # Errors
    /// More elements than a device can address, or not enough memory.
    pub(crate) fn of_columns(
        ctx: Arc<Context>,
        kernels: Kernels<T, A>,
        [n, columns]: [usize; 2],
        comm: Box<dyn Communicator<T>>,
    ) -> Result<Self> {
        let never = Arc::new(DeviceVec::zeros(&ctx, 1, "the state")?);
        let max_groups = kernels.tuning.max_groups();
        let landing = RefCell::new(Some(Pinned::zeros(&ctx, 4 * max_groups)?));
        Ok(Self {
            ctx,
            kernels,
            comm,
            n: count(n * columns),
            columns,
            done: RefCell::new(Arc::clone(&never)),
            never,
            sending: RefCell::default(),
            in_one: Cell::default(),
            as_several: Cell::default(),
            current: Cell::default(),
            known_done: Cell::default(),
            partials: RefCell::default(),
            landing,
            clock: RefCell::default(),
            recorder: Recorder::default(),
            recorded: RefCell::default(),
            before: Cell::default(),
            max_groups,
        })
    }

    /// The grid of a vector kernel.
    fn grid(&self, kernel: &str) -> Grid {
        self.kernels.tuning.grid(kernel, self.n_owned())
    }

    /// Set once the iteration is over; products then do nothing.
    pub(crate) fn done(&self) -> Arc<DeviceVec<i32>> {
        Arc::clone(&self.done.borrow())
    }

    /// From now on that is where the passes say it.
    pub(crate) fn set_done(&self, done: Arc<DeviceVec<i32>>) {
        self.done.replace(done);
    }

    /// Where products put what other ranks need, if kernels do that.
    pub(crate) fn sending(&self) -> Option<Sending> {
        self.sending.borrow().clone()
    }

    /// Whether products have all rows in one launch, so that sums are added as where ranks meet.
    pub(crate) fn in_one(&self) -> bool {
        self.in_one.get() || self.sending.borrow().is_some()
    }

    /// The grid in which products leave sums, if it is not that of tuning.
    pub(crate) fn as_several(&self) -> Option<Grid> {
        self.as_several.get()
    }

    /// Begins several iterations, unless they are to be made one by one, as for a timeline.
    pub(crate) fn begin_several(&self, iteration: u64, count: u64) -> Result<bool> {
        if self.recorder.is_wanted() {
            return Ok(false);
        }
        self.make_room_for_timings()?;
        self.ctx.set_iteration(self.before.get() + iteration);
        // an event costs little beside a launch of many iterations, and short launches are not like long ones
        self.ctx.set_timing(Some(iteration))?;
        self.clock.borrow_mut().spans.insert(iteration, count);
        self.current.set(iteration + count);
        Ok(true)
    }

    /// The device is known to have done this iteration.
    pub(crate) fn set_known_done(&self, iteration: u64) {
        self.known_done.set(iteration);
    }
}

impl<T: Real, A: Real> Widens<OpenClBackend<A, A>> for OpenClBackend<T, A> {
    fn narrow(&self, from: &DeviceVec<A>, to: &mut DeviceVec<T>) -> Result<()> {
        self.kernels.narrow(&self.ctx, self.grid("narrow"), self.n, from, to)
    }

    fn add_wide(&self, d: &mut DeviceVec<T>, x: &mut DeviceVec<A>) -> Result<()> {
        self.kernels.add_wide(&self.ctx, self.grid("add_wide"), self.n, d, x)
    }
}

impl<T: Real, A: Real> Backend for OpenClBackend<T, A> {
    type Real = T;
    type Vector = DeviceVec<T>;
    type Rows<'a> = Rows<'a, T>;
    type ProductSums = DeviceSums<A>;

    fn comm(&self) -> &dyn Communicator<T> {
        &*self.comm
    }

    fn set_comm(&mut self, comm: Box<dyn Communicator<T>>) {
        self.comm = comm;
    }

    fn take_comm(&mut self) -> Box<dyn Communicator<T>> {
        std::mem::replace(&mut self.comm, Box::new(Alone::default()))
    }

    fn n_owned(&self) -> usize {
        self.n as usize
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn with_columns(&self, columns: usize) -> Result<Self> {
        let kernels = Kernels::build(&self.ctx, self.kernels.tuning.clone())?;
        let rows = self.n_owned() / self.columns;
        Self::of_columns(Arc::clone(&self.ctx), kernels, [rows, columns], Box::new(Alone::default()))
    }

    fn vector(&self, halo: usize, what: &'static str) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(&self.ctx, self.n_owned() + halo, what)
    }

    fn shared_vector(&self, elements: &[T], halo: usize, what: &'static str) -> Result<DeviceVec<T>> {
        assert_eq!(elements.len() * self.columns, self.n_owned());
        let mut vector = DeviceVec::zeros(&self.ctx, elements.len() + halo, what)?;
        vector.write(&self.ctx, 0, elements)?;
        Ok(vector)
    }

    fn nothing(&self) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(&self.ctx, 0, "nothing")
    }

    fn clear(&self, v: &mut DeviceVec<T>) -> Result<()> {
        v.fill(&self.ctx, 0).map(|_| ())
    }

    fn product_sums(&self) -> Result<DeviceSums<A>> {
        let room = 2 * self.columns * self.max_groups;
        Ok(DeviceSums::behind(Arc::new(DeviceVec::zeros(&self.ctx, room, PARTIAL_SUMS)?), 0))
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

    fn dots(&self, pairs: &[[&DeviceVec<T>; 2]]) -> Result<Vec<f64>> {
        let grid = self.grid("dot_partial");
        let room = pairs.len() * grid.groups;
        let mut partials = self.partials.take().filter(|partials| partials.len() >= room);
        if partials.is_none() {
            partials = Some(DeviceVec::zeros(&self.ctx, room, PARTIAL_SUMS)?);
        }
        let mut sums = Vec::with_capacity(pairs.len());
        if let Some(partials) = &partials {
            for (k, [x, y]) in pairs.iter().enumerate() {
                let first = (k * grid.groups) as u32;
                self.kernels.dot_partial(&self.ctx, grid, self.n, x, y, partials, first)?;
            }
            let start = Instant::now();
            let memory = self.end_fetch(self.start_fetch(&[(partials, 0..room)])?)?;
            let lanes = lanes(grid.group_size);
            sums.extend(memory[..room].chunks(grid.groups).map(|parts| add_up(parts, 1, lanes)));
            self.keep_landing(memory);
            self.waited(start);
        }
        self.partials.replace(partials);
        sums.chunks_mut(MAX_SUMS).try_for_each(|sums| self.sum_values(sums))?;
        Ok(sums)
    }

    fn axpy(&self, a: f64, x: &DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        let a = T::from_f64(a);
        self.kernels.next_iterate((&self.ctx, self.grid("next_iterate"), self.n), a, x, y)
    }

    fn axmy(&self, a: f64, x: &DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        let a = T::from_f64(a);
        self.kernels.next_residual((&self.ctx, self.grid("next_residual"), self.n), a, x, y)
    }

    fn xpby(&self, x: &DeviceVec<T>, b: f64, y: &mut DeviceVec<T>) -> Result<()> {
        let b = T::from_f64(b);
        self.kernels.next_direction((&self.ctx, self.grid("next_direction"), self.n), b, x, y)
    }

    fn multiply(&self, d: &DeviceVec<T>, x: &DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.kernels.scale_diagonal((&self.ctx, self.grid("scale_diagonal"), self.n), d, x, y)
    }

    fn count_from(&self, before: u64) {
        self.before.set(before);
    }

    fn begin(&self) -> Result<()> {
        self.done.replace(Arc::clone(&self.never));
        self.sending.take();
        self.in_one.take();
        self.as_several.take();
        self.current.take();
        self.known_done.take();
        self.clock.borrow_mut().sampled = 0;
        self.ctx.set_timing(self.recorder.is_on().then_some(0)).map(|_| ())
    }

    fn begin_iteration(&self, iteration: u64) -> Result<()> {
        self.recorder.begin_iteration(iteration);
        self.ctx.set_iteration(self.before.get() + iteration);
        self.current.set(iteration);
        self.make_room_for_timings()?;
        // not the first one, which pays for warming up
        let is_sample = iteration > 1 && is_sample(iteration - 2);
        let is_timed = is_sample || self.recorder.is_on();
        self.ctx.set_timing(is_timed.then_some(iteration)).map(|_| ())
    }

    fn kernel_seconds(&self, _: u64) -> Result<Option<[f64; 2]>> {
        self.take_timed(self.known_done.get())?;
        let clock = &mut *self.clock.borrow_mut();
        let mut times = [Duration::ZERO; 2];
        for (name, (_, time)) in &clock.kernels {
            times[usize::from(name.ends_with(TOGETHER))] += *time;
        }
        let (samples, before) = std::mem::replace(&mut clock.last_asked, (clock.samples, times));
        let samples = clock.samples - samples;
        let each = |k: usize| (times[k] - before[k]).as_secs_f64() / samples as f64;
        Ok((samples > 0).then(|| [each(0), each(1)]))
    }

    fn end_run(&self, last: u64) -> Result<()> {
        self.ctx.set_iteration(0);
        self.ctx.set_timing(None)?;
        self.known_done.set(last);
        self.take_timed(last)?;
        self.forget_timed(); // iterations that did nothing
        self.recorder.end_run(last);
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

    fn compiled(&self) -> Duration {
        self.ctx.compiled()
    }

    fn finish(&self, iterations: u64) -> Result<Split> {
        self.ctx.finish()?;
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
