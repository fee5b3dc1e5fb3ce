//! The host as a rank: rayon's threads, no OpenCL. The reference for every kernel, and a partner for devices.
//!
//! Work is cut into chunks of fixed length, and partial sums are added in order: the same bits for any number of threads.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Ops, PipelinedStep, SingleStep, Widens};
use crate::comm::{Communicator, MAX_SUMS};
use crate::error::Result;
use crate::real::Real;
use crate::timeline::{Guard, Lane, Recorder, Split, Timeline};

/// Elements of a chunk: large enough to be worth a thread's while, small enough for an even spread.
const CHUNK: usize = 4096;

/// The host's vector operations on elements `T`.
pub struct HostOps<T> {
    n: usize,
    comm: Box<dyn Communicator<T>>,
    begun: Cell<Instant>,
    sums: Cell<Duration>,
    pub(crate) halos: Cell<Duration>,
    /// When somebody last asked for the pace: the iteration, the time, and what was waited for until then.
    paced: Cell<(u64, Instant, Duration)>,
    pub(crate) recorder: Recorder,
}

/// Up to four sums, this rank's or, once completed, all ranks'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostSum {
    values: [f64; MAX_SUMS],
    components: usize,
    /// Whether the others are told already.
    is_started: bool,
}

impl HostSum {
    /// Sets component `k` to this rank's part.
    pub(crate) fn set(&mut self, k: usize, part: f64) {
        self.values[k] = part;
    }

    /// Component `k`.
    pub(crate) fn value(&self, k: usize) -> f64 {
        self.values[k]
    }
}

impl<T: Real> HostOps<T> {
    /// The operations on `n` owned rows.
    #[must_use]
    pub fn new(n: usize, comm: Box<dyn Communicator<T>>) -> Self {
        let (sums, halos, recorder) = (Cell::default(), Cell::default(), Recorder::default());
        let now = Instant::now();
        let paced = Cell::new((1, now, Duration::ZERO));
        Self { n, comm, begun: Cell::new(now), sums, halos, paced, recorder }
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

    /// Records that a kernel runs until the guard is dropped.
    pub(crate) fn running(&self, kernel: &'static str) -> Guard<'_> {
        self.recorder.guard(Lane::Kernels, kernel)
    }
}

/// Σ of `part(chunk)` over the chunks of `n` elements, in order.
fn sum_chunks<const N: usize>(n: usize, part: impl Fn(std::ops::Range<usize>) -> [f64; N] + Sync) -> [f64; N] {
    let range = |k: usize| k * CHUNK..n.min((k + 1) * CHUNK);
    let chunks = n.div_ceil(CHUNK);
    if chunks <= 1 {
        return add([0.0; N], part(0..n));
    }
    let parts: Vec<[f64; N]> = (0..chunks).into_par_iter().map(|k| part(range(k))).collect();
    parts.into_iter().fold([0.0; N], add)
}

/// x·y, in eight interleaved sums: the processor's vector units need them independent.
fn dot_chunk<T: Real>(x: &[T], y: &[T]) -> f64 {
    let (x8, x_rest) = x.as_chunks::<8>();
    let (y8, y_rest) = y.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for (x, y) in x8.iter().zip(y8) {
        for k in 0..8 {
            lanes[k] += x[k].to_f64() * y[k].to_f64();
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x.to_f64() * y.to_f64()).sum();
    ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7])) + rest
}

/// r·r of a chunk, which is still in the cache, and what the test looks at: the same, or the sum of w r² with weights, which
/// may go on behind the chunk.
fn test_sums<T: Real>(r: &[T], w: Option<&[T]>) -> [f64; 2] {
    let rho = dot_chunk(r, r);
    let weighted = |w: &[T]| w.iter().zip(r).map(|(w, r)| w.to_f64() * (r.to_f64() * r.to_f64())).sum();
    [rho, w.map_or(rho, weighted)]
}

fn add<const N: usize>(s: [f64; N], p: [f64; N]) -> [f64; N] {
    std::array::from_fn(|k| s[k] + p[k])
}

/// a + β d, or a where a direction begins.
pub(crate) fn recur<T: Real>(a: T, beta: T, d: T) -> T {
    if beta == T::default() { a } else { a + beta * d }
}

/// Runs `body` on corresponding chunks of `y` and `x`.
fn for_chunks<T: Real>(y: &mut [T], x: &[T], body: impl Fn(&mut [T], &[T]) + Sync) {
    if y.len() <= CHUNK {
        body(y, x);
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| body(y, x));
    }
}

impl Widens<HostOps<f64>> for HostOps<f32> {
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

impl<T: Real> Ops for HostOps<T> {
    type Real = T;
    type Vector = Vec<T>;
    type Rows<'a> = ();
    type Sum = HostSum;

    fn comm(&self) -> &dyn Communicator<T> {
        &*self.comm
    }

    fn set_comm(&mut self, comm: Box<dyn Communicator<T>>) {
        self.comm = comm;
    }

    fn n_owned(&self) -> usize {
        self.n
    }

    fn vector(&self, halo: usize, _: &'static str) -> Result<Vec<T>> {
        Ok(vec![T::default(); self.n + halo])
    }

    fn nothing(&self) -> Result<Vec<T>> {
        Ok(Vec::new())
    }

    fn clear(&self, v: &mut Vec<T>) -> Result<()> {
        v.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(T::default()));
        Ok(())
    }

    fn sum(&self, components: usize) -> Result<HostSum> {
        Ok(HostSum { values: [0.0; MAX_SUMS], components, is_started: false })
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

    fn dot_product(&self, x: &Vec<T>, y: &Vec<T>, sum: &mut HostSum, component: usize) -> Result<()> {
        let _running = self.running("dot_partial");
        let [s] = sum_chunks(self.n, |range| [dot_chunk(&x[range.clone()], &y[range])]);
        sum.set(component, s);
        Ok(())
    }

    fn next_iterate(&self, alpha: f64, p: &Vec<T>, x: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_iterate");
        let alpha = T::from_f64(alpha);
        for_chunks(&mut x[..self.n], &p[..self.n], |x, p| x.iter_mut().zip(p).for_each(|(x, &p)| *x += alpha * p));
        Ok(())
    }

    fn next_residual(&self, alpha: f64, q: &Vec<T>, r: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_residual");
        let alpha = T::from_f64(alpha);
        for_chunks(&mut r[..self.n], &q[..self.n], |r, q| r.iter_mut().zip(q).for_each(|(r, &q)| *r -= alpha * q));
        Ok(())
    }

    fn next_direction(&self, beta: f64, z: &Vec<T>, p: &mut Vec<T>) -> Result<()> {
        let _running = self.running("next_direction");
        let beta = T::from_f64(beta);
        for_chunks(&mut p[..self.n], &z[..self.n], |p, z| p.iter_mut().zip(z).for_each(|(p, &z)| *p = z + beta * *p));
        Ok(())
    }

    fn multiply(&self, d: &Vec<T>, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        let _running = self.running("scale_diagonal");
        self.copy(x, y)?;
        for_chunks(&mut y[..self.n], d, |y, d| y.iter_mut().zip(d).for_each(|(y, &d)| *y = d * *y));
        Ok(())
    }

    fn single_step(&self, step: SingleStep<'_, Self>) -> Result<()> {
        let _running = self.running(if step.weights.is_some() { "single_step_weighted" } else { "single_step" });
        let SingleStep { scalars, weights, x, r, p, s, q, rho } = step;
        let [alpha, beta] = scalars.of::<T>();
        let n = self.n;
        let (x, r, p, s) = (x[..n].par_chunks_mut(CHUNK), r[..n].par_chunks_mut(CHUNK), &mut p[..n], &mut s[..n]);
        let (p, s, q) = (p.par_chunks_mut(CHUNK), s.par_chunks_mut(CHUNK), q[..n].par_chunks(CHUNK));
        let chunks = x.zip(r).zip(p.zip(s)).zip(q).enumerate();
        let parts: Vec<[f64; 2]> = chunks
            .map(|(k, (((x, r), (p, s)), q))| {
                for (((x, r), (p, s)), &q) in x.iter_mut().zip(&mut *r).zip(p.iter_mut().zip(s)).zip(q) {
                    *p = recur(*r, beta, *p);
                    *s = recur(q, beta, *s);
                    *x += alpha * *p;
                    *r -= alpha * *s;
                }
                test_sums(r, weights.map(|w| &w[k * CHUNK..]))
            })
            .collect();
        rho.values[..2].copy_from_slice(&parts.into_iter().fold([0.0; 2], add));
        Ok(())
    }

    fn pipelined_step(&self, step: PipelinedStep<'_, Self>) -> Result<()> {
        let _running = self.running(if step.weights.is_some() { "pipelined_step_weighted" } else { "pipelined_step" });
        let PipelinedStep { scalars, weights, x, r, t, p, s, z, q, sums } = step;
        let [alpha, beta] = scalars.of::<T>();
        let n = self.n;
        let [x, r, t, p, s, z] = [x, r, t, p, s, z].map(|v| v[..n].par_chunks_mut(CHUNK));
        let chunks = x.zip(p).zip(r.zip(s)).zip(t.zip(z)).zip(q[..n].par_chunks(CHUNK)).enumerate();
        let parts: Vec<[f64; MAX_SUMS]> = chunks
            .map(|(k, ((((x, p), (r, s)), (t, z)), q))| {
                let of_x = x.iter_mut().zip(p).zip(r.iter_mut().zip(s));
                for (((x, p), (r, s)), ((t, z), &q)) in of_x.zip(t.iter_mut().zip(z).zip(q)) {
                    *p = recur(*r, beta, *p);
                    *s = recur(*t, beta, *s);
                    *z = recur(q, beta, *z);
                    *x += alpha * *p;
                    *r -= alpha * *s;
                    *t -= alpha * *z;
                }
                let [gamma, rr] = test_sums(r, weights.map(|w| &w[k * CHUNK..]));
                [gamma, rr, dot_chunk(r, t), 0.0]
            })
            .collect();
        sums.values = parts.into_iter().fold([0.0; MAX_SUMS], add);
        Ok(())
    }

    fn start_sum(&self, sums: &mut [&mut HostSum]) -> Result<()> {
        let values: Vec<f64> = sums.iter().flat_map(|sum| &sum.values[..sum.components]).copied().collect();
        self.comm.start_sum(&values);
        sums.iter_mut().for_each(|sum| sum.is_started = true);
        Ok(())
    }

    fn all_sum(&self, sums: &mut [&mut HostSum]) -> Result<()> {
        let start = Instant::now();
        let mut values: Vec<f64> = sums.iter().flat_map(|sum| &sum.values[..sum.components]).copied().collect();
        let is_started = sums.iter_mut().fold(false, |any, sum| std::mem::take(&mut sum.is_started) | any);
        if !is_started {
            self.comm.start_sum(&values);
        }
        self.comm.end_sum(&mut values)?;
        self.sums.set(self.sums.get() + start.elapsed());
        if self.comm.size() > 1 {
            self.recorder.span(Lane::Host, "sum over ranks", start);
        }
        let mut values = values.into_iter();
        for sum in sums {
            sum.values.iter_mut().take(sum.components).zip(&mut values).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    fn settle(&self, sum: &mut HostSum) -> Result<[f64; MAX_SUMS]> {
        Ok(sum.values)
    }

    fn count_from(&self, _: u64) {}

    fn begin(&self) -> Result<()> {
        self.paced.set((1, Instant::now(), self.sums.get() + self.halos.get()));
        Ok(())
    }

    fn begin_iteration(&self, iteration: u64) -> Result<()> {
        self.recorder.begin_iteration(iteration);
        Ok(())
    }

    fn pace(&self, iteration: u64) -> Result<Option<f64>> {
        let now = (iteration, Instant::now(), self.sums.get() + self.halos.get());
        let before = self.paced.replace(now);
        let iterations = now.0.saturating_sub(before.0);
        let time = (now.1 - before.1).saturating_sub(now.2.saturating_sub(before.2));
        Ok((iterations > 0).then(|| time.as_secs_f64() / iterations as f64))
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
