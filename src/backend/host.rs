//! The host as a rank: rayon's threads, no OpenCL. The reference for every kernel, and a partner for devices.
//!
//! Work is cut into chunks of fixed length, and partial sums are added in order: the same bits for any number of threads.

mod basis;
mod columns;
pub(crate) mod lanes;
pub(crate) mod passes;
mod together;

use std::cell::Cell;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::vectors::{Backend, Widens};
use crate::comm::{Alone, Communicator, MAX_SUMS};
use crate::error::Result;
use crate::real::Real;
use crate::timeline::{Guard, Lane, Recorder, Split, Timeline};

/// Elements of a chunk: large enough to be worth a thread's while, small enough for an even spread.
const CHUNK: usize = 4096;

/// The host's vector operations on elements `T`.
pub struct HostBackend<T> {
    /// Elements of a vector.
    n: usize,
    columns: usize,
    comm: Box<dyn Communicator<T>>,
    /// Whether a run of iterations that ranks make together is over: nothing is done then.
    is_over: Cell<bool>,
    begun: Cell<Instant>,
    sums: Cell<Duration>,
    pub(crate) halos: Cell<Duration>,
    /// Time in passes that begin with a sum among ranks that iterate together, and what of it was work.
    in_passes: Cell<[Duration; 2]>,
    /// When somebody last asked for kernel seconds: the iteration, the time, what was waited for until then, and the time in such passes.
    last_asked: Cell<(u64, Instant, Duration, [Duration; 2])>,
    pub(crate) recorder: Recorder,
}

impl<T: Real> HostBackend<T> {
    /// The operations on `n` owned rows.
    #[must_use]
    pub fn new(n: usize, comm: Box<dyn Communicator<T>>) -> Self {
        Self::of_columns([n, 1], comm)
    }

    /// The operations on vectors of so many rows and [columns](Backend::columns).
    pub(crate) fn of_columns([n, columns]: [usize; 2], comm: Box<dyn Communicator<T>>) -> Self {
        let (sums, halos, recorder) = (Cell::default(), Cell::default(), Recorder::default());
        let now = Instant::now();
        let last_asked = Cell::new((1, now, Duration::ZERO, [Duration::ZERO; 2]));
        let (is_over, begun, in_passes) = (Cell::default(), Cell::new(now), Cell::default());
        Self { n: n * columns, columns, comm, is_over, begun, sums, halos, in_passes, last_asked, recorder }
    }

    /// Replaces values by their sums over all ranks.
    ///
    /// # Errors
    /// A failing rank.
    pub(crate) fn sum_values(&self, values: &mut [f64]) -> Result<()> {
        let start = Instant::now();
        self.comm.sum(values)?;
        self.sums.set(self.sums.get() + start.elapsed());
        if self.comm.size() > 1 {
            self.recorder.span(Lane::Host, "sum over ranks", start);
        }
        Ok(())
    }

    /// Time that was waited for other ranks.
    fn waited(&self) -> Duration {
        self.sums.get() + self.halos.get()
    }

    /// Does a pass that begins with a sum, and takes its time.
    fn timed_pass<R>(&self, pass: impl FnOnce() -> R) -> R {
        let (start, waited) = (Instant::now(), self.waited());
        let result = pass();
        let time = start.elapsed();
        let [passes, work] = self.in_passes.get();
        self.in_passes.set([passes + time, work + time.saturating_sub(self.waited().saturating_sub(waited))]);
        result
    }

    /// Whether a run that ranks make together is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Records that a kernel runs until the guard is dropped.
    pub(crate) fn running(&self, kernel: &'static str) -> Guard<'_> {
        self.recorder.guard(Lane::Kernels, kernel)
    }
}

/// This rank's part of x·y: sums of chunks, in order.
pub(crate) fn dot<T: Real>(x: &[T], y: &[T]) -> f64 {
    if x.len() <= CHUNK {
        return lanes::dot(x, y);
    }
    let parts: Vec<f64> = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK)).map(|(x, y)| lanes::dot(x, y)).collect();
    parts.into_iter().sum()
}

/// Runs `body` on corresponding chunks of `y` and `x`.
fn for_chunks<T: Real>(y: &mut [T], x: &[T], body: impl Fn(&mut [T], &[T]) + Sync) {
    if y.len() <= CHUNK {
        body(y, x);
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| body(y, x));
    }
}

impl Widens<HostBackend<f64>> for HostBackend<f32> {
    fn narrow(&self, from: &Vec<f64>, to: &mut Vec<f32>) -> Result<()> {
        let _running = self.running("narrow");
        to[..self.n].par_iter_mut().with_min_len(CHUNK).zip(from).for_each(|(to, &from)| *to = from as f32);
        Ok(())
    }

    fn add_wide(&self, d: &mut Vec<f32>, x: &mut Vec<f64>) -> Result<()> {
        let _running = self.running("add_wide");
        d[..self.n].par_iter_mut().with_min_len(CHUNK).zip(x).for_each(|(d, x)| *x += f64::from(std::mem::take(d)));
        Ok(())
    }
}

impl<T: Real> Backend for HostBackend<T> {
    type Real = T;
    type Vector = Vec<T>;
    type Rows<'a> = ();
    type ProductSums = Vec<f64>;

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
        self.n
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn with_columns(&self, columns: usize) -> Result<Self> {
        Ok(Self::of_columns([self.n / self.columns, columns], Box::new(Alone::default())))
    }

    fn vector(&self, halo: usize, _: &'static str) -> Result<Vec<T>> {
        Ok(vec![T::default(); self.n + halo])
    }

    fn shared_vector(&self, elements: &[T], halo: usize, _: &'static str) -> Result<Vec<T>> {
        let mut vector = elements.to_vec();
        vector.resize(elements.len() + halo, T::default());
        Ok(vector)
    }

    fn nothing(&self) -> Result<Vec<T>> {
        Ok(Vec::new())
    }

    fn clear(&self, v: &mut Vec<T>) -> Result<()> {
        v.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(T::default()));
        Ok(())
    }

    fn product_sums(&self) -> Result<Vec<f64>> {
        Ok(vec![f64::NAN; 2 * self.columns])
    }

    fn write(&self, from: &[T], to: &mut Vec<T>) -> Result<()> {
        to[..self.n].copy_from_slice(from);
        Ok(())
    }

    fn read(&self, from: &Vec<T>, to: &mut [T]) -> Result<()> {
        to.copy_from_slice(&from[..self.n]);
        Ok(())
    }

    fn copy(&self, from: &Vec<T>, to: &mut Vec<T>) -> Result<()> {
        for_chunks(&mut to[..self.n], &from[..self.n], |to, from| to.copy_from_slice(from));
        Ok(())
    }

    fn dots(&self, pairs: &[[&Vec<T>; 2]]) -> Result<Vec<f64>> {
        let of_pair = |[x, y]: &[&Vec<T>; 2]| {
            let _running = self.running("dot_partial");
            dot(&x[..self.n], &y[..self.n])
        };
        let mut sums: Vec<f64> = pairs.iter().map(of_pair).collect();
        sums.chunks_mut(MAX_SUMS).try_for_each(|sums| self.sum_values(sums))?;
        Ok(sums)
    }

    fn axpy(&self, a: f64, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_iterate");
        let a = T::from_f64(a);
        for_chunks(&mut y[..self.n], &x[..self.n], |y, x| y.iter_mut().zip(x).for_each(|(y, &x)| *y += a * x));
        Ok(())
    }

    fn axmy(&self, a: f64, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_residual");
        let a = T::from_f64(a);
        for_chunks(&mut y[..self.n], &x[..self.n], |y, x| y.iter_mut().zip(x).for_each(|(y, &x)| *y -= a * x));
        Ok(())
    }

    fn xpby(&self, x: &Vec<T>, b: f64, y: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_direction");
        let b = T::from_f64(b);
        for_chunks(&mut y[..self.n], &x[..self.n], |y, x| y.iter_mut().zip(x).for_each(|(y, &x)| *y = x + b * *y));
        Ok(())
    }

    fn multiply(&self, d: &Vec<T>, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        let _running = self.running("scale_diagonal");
        self.copy(x, y)?;
        for_chunks(&mut y[..self.n], d, |y, d| y.iter_mut().zip(d).for_each(|(y, &d)| *y = d * *y));
        Ok(())
    }

    fn count_from(&self, _: u64) {}

    fn begin(&self) -> Result<()> {
        self.is_over.take();
        self.last_asked.set((1, Instant::now(), self.waited(), self.in_passes.get()));
        Ok(())
    }

    fn begin_iteration(&self, iteration: u64) -> Result<()> {
        self.recorder.begin_iteration(iteration);
        Ok(())
    }

    fn kernel_seconds(&self, iteration: u64) -> Result<Option<[f64; 2]>> {
        let now = (iteration, Instant::now(), self.waited(), self.in_passes.get());
        let before = self.last_asked.replace(now);
        let iterations = now.0.saturating_sub(before.0);
        let work = (now.1 - before.1).saturating_sub(now.2.saturating_sub(before.2));
        // as devices tell it: what waits for others apart
        let [passes, of_work] = [0, 1].map(|k| now.3[k].saturating_sub(before.3[k]));
        let each = |time: Duration| time.as_secs_f64() / iterations as f64;
        Ok((iterations > 0).then(|| [each(work.saturating_sub(of_work)), each(passes)]))
    }

    fn end_run(&self, last: u64) -> Result<()> {
        self.recorder.end_run(last);
        Ok(())
    }

    fn record(&self, origin: Instant, before: u64) -> Result<()> {
        self.recorder.start(origin, before);
        Ok(())
    }

    fn take_timeline(&self) -> Result<Timeline> {
        Ok(self.recorder.stop())
    }

    fn finish(&self, _: u64) -> Result<Split> {
        let now = Instant::now();
        let (sums, halos) = (self.sums.take(), self.halos.take());
        let kernels = (now - self.begun.replace(now)).saturating_sub(sums + halos);
        Ok(Split { kernels, sums, halos, host_wait: Duration::ZERO })
    }
}
