//! A vector update, an inner product and prefix sums: what memory limits, beside the products that it doesn't.

use std::cell::RefCell;
use std::fmt;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use super::factorisation::timed;
use crate::device::{Context, DeviceVec, Info};
use crate::error::{Error, Result};
use crate::kernels::primitives::scan::Scan;
use crate::kernels::primitives::{GROUPS_PER_UNIT, ITEMS, ShareSums, Tiling};
use crate::kernels::{Kernels, Shape, count};
use crate::memory::zeros;
use crate::real::{Precision, Real};
use crate::timing::{Timing, timing};
use crate::tune::kept;
use crate::tune::stopwatch::Stopwatch;
use crate::tune::store::{Device, Store};

/// Elements that a thread of the host takes at once.
const CHUNK: usize = 1 << 15;

/// What is done with n elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum VectorTask {
    /// y ← y + 2 x.
    Axpy,
    /// Σ x\[i\] y\[i\].
    Dot,
    /// x\[0\] + … + x\[i − 1\] for i ≤ n, of numbers of 32 bits.
    Scan,
}

impl fmt::Display for VectorTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Axpy => "axpy",
            Self::Dot => "dot",
            Self::Scan => "scan",
        })
    }
}

/// The time of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OnVectors {
    /// The task.
    pub task: VectorTask,
    /// Elements.
    pub n: usize,
    /// Seconds.
    pub time: Timing,
    /// Seconds with vectors that go to the device, and what comes back; none of the host.
    pub with_transfers: Option<Timing>,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes that have to be read and written.
    pub bytes: u64,
    /// Whether the result is right, to the last bit.
    pub is_right: bool,
}

/// The vectors: small integers, whose sums are exact.
struct Vectors<T> {
    x: Vec<T>,
    y: Vec<T>,
    numbers: Vec<u32>,
}

impl<T: Real> Vectors<T> {
    fn new(n: usize) -> Result<Self> {
        let none = |e: crate::memory::NoMemory| e.into_error("vectors");
        let (mut x, mut y, mut numbers) =
            (zeros::<T>(n).map_err(none)?, zeros(n).map_err(none)?, zeros(n).map_err(none)?);
        let all = x.par_iter_mut().zip(&mut y).zip(&mut numbers).enumerate();
        all.for_each(|(i, ((x, y), number))| {
            (*x, *y) = (T::from_f64((i % 3) as f64 - 1.0), T::from_f64((i % 2) as f64 + 1.0));
            *number = (i % 7) as u32;
        });
        Ok(Self { x, y, numbers })
    }

    fn n(&self) -> usize {
        self.x.len()
    }

    /// Whether these are y + 2 x.
    fn is_updated(&self, y: &[T]) -> bool {
        let two = T::from_f64(2.0);
        y.par_iter().zip(&self.y).zip(&self.x).all(|((found, &y), &x)| *found == y + two * x)
    }

    /// By the remainders of i by 3 and 2, six products in a row are 0 together.
    fn dot(&self) -> f64 {
        let whole = self.n() / 6 * 6;
        (whole..self.n()).map(|i| self.x[i].to_f64() * self.y[i].to_f64()).sum()
    }

    /// Whether these are prefix sums: whole periods of the numbers, and what is left.
    fn are_sums(&self, found: &[u32]) -> bool {
        let sum = |i: usize| ((i / 7 * 21) as u32).wrapping_add((0..(i % 7) as u32).sum());
        found.len() == self.n() + 1 && found.par_iter().enumerate().all(|(i, &found)| found == sum(i))
    }

    fn measured(&self, task: VectorTask, time: Timing, with_transfers: Option<Timing>, is_right: bool) -> OnVectors {
        let (n, element) = (self.n(), size_of::<T>() as u64);
        let (flops, bytes) = match task {
            VectorTask::Axpy => (2, 3 * element),
            VectorTask::Dot => (2, 2 * element),
            VectorTask::Scan => (1, 8),
        };
        OnVectors { task, n, time, with_transfers, flops: (flops * n) as f64, bytes: bytes * n as u64, is_right }
    }
}

/// All tasks on a device, launched as tuning found, or as usual: medians of `repeat` runs.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`], [`Error::OutOfMemory`]; [`Error::Usage`] for a device without double precision, asked for it; a failing
/// device.
pub fn on_vectors(info: &Info, n: usize, precision: Precision, repeat: usize) -> Result<Vec<OnVectors>> {
    match precision.of_vectors() {
        Precision::F64 if !info.has_f64 => {
            Err(Error::Usage(format!("{} has no double precision: use --precision f32", info.label())))
        }
        Precision::F64 => on_device::<f64>(info, n, repeat),
        _ => on_device::<f32>(info, n, repeat),
    }
}

/// The same on the host: updates and products by all threads, prefix sums by one.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn host_vectors(n: usize, precision: Precision, repeat: usize) -> Result<Vec<OnVectors>> {
    match precision.of_vectors() {
        Precision::F64 => on_host::<f64>(n, repeat),
        _ => on_host::<f32>(n, repeat),
    }
}

/// A device, and what it is asked for.
struct OnDevice<'a, T: Real> {
    ctx: Context,
    vectors: &'a Vectors<T>,
    stopwatch: Stopwatch,
    repeat: usize,
}

fn on_device<T: Real>(info: &Info, n: usize, repeat: usize) -> Result<Vec<OnVectors>> {
    let vectors = Vectors::<T>::new(n)?;
    let mut on = OnDevice { ctx: Context::open(info)?, vectors: &vectors, stopwatch: Stopwatch::default(), repeat };
    let known = Store::open().load(&Device::from(info));
    let kernels = Kernels::build(&on.ctx, kept::tuning::<T, T>(&known, info, n, n))?;
    Ok(vec![on.axpy(&kernels)?, on.dot(&kernels)?, on.scan()?])
}

impl<T: Real> OnDevice<'_, T> {
    /// The times of launches, and of all with transfers, each once before that is counted.
    fn times(
        &mut self,
        mut launch: impl FnMut(&Context) -> Result<()>,
        mut all: impl FnMut(&Context) -> Result<()>,
    ) -> Result<[Timing; 2]> {
        let Self { ctx, stopwatch, repeat, .. } = self;
        launch(ctx)?;
        ctx.finish()?;
        let launches = timing(stopwatch.times(ctx, *repeat, |_| launch(ctx))?);
        all(ctx)?;
        let once = |_| timed(|| all(ctx));
        Ok([launches, timing((0..*repeat).map(once).collect::<Result<Vec<f64>>>()?)])
    }

    fn axpy(&mut self, kernels: &Kernels<T, T>) -> Result<OnVectors> {
        let vectors = self.vectors;
        let n = vectors.n();
        let (grid, two) = (kernels.tuning.grid("next_iterate", n), T::from_f64(2.0));
        let x = RefCell::new(DeviceVec::from_slice(&self.ctx, &vectors.x, "x")?);
        let y = RefCell::new(DeviceVec::from_slice(&self.ctx, &vectors.y, "y")?);
        let mut found = vectors.y.clone();
        let launch = |ctx: &Context| kernels.next_iterate((ctx, grid, count(n)), two, &x.borrow(), &mut y.borrow_mut());
        let [time, with_transfers] = self.times(launch, |ctx| {
            x.borrow_mut().write(ctx, 0, &vectors.x)?;
            y.borrow_mut().write(ctx, 0, &vectors.y)?;
            launch(ctx)?;
            y.borrow().read(ctx, 0, &mut found)
        })?;
        Ok(vectors.measured(VectorTask::Axpy, time, Some(with_transfers), vectors.is_updated(&found)))
    }

    fn dot(&mut self, kernels: &Kernels<T, T>) -> Result<OnVectors> {
        let vectors = self.vectors;
        let n = vectors.n();
        let grid = kernels.tuning.grid("dot_partial", n);
        let x = RefCell::new(DeviceVec::from_slice(&self.ctx, &vectors.x, "x")?);
        let y = RefCell::new(DeviceVec::from_slice(&self.ctx, &vectors.y, "y")?);
        let sums = DeviceVec::zeros(&self.ctx, grid.groups, "partial sums")?;
        let mut found = vec![T::default(); grid.groups];
        let launch = |ctx: &Context| kernels.dot_partial(ctx, grid, count(n), &x.borrow(), &y.borrow(), &sums, 0);
        let [time, with_transfers] = self.times(launch, |ctx| {
            x.borrow_mut().write(ctx, 0, &vectors.x)?;
            y.borrow_mut().write(ctx, 0, &vectors.y)?;
            launch(ctx)?;
            sums.read(ctx, 0, &mut found)
        })?;
        let is_right = found.iter().map(|sum| sum.to_f64()).sum::<f64>() == vectors.dot();
        Ok(vectors.measured(VectorTask::Dot, time, Some(with_transfers), is_right))
    }

    fn scan(&mut self) -> Result<OnVectors> {
        let vectors = self.vectors;
        let (n, info) = (vectors.n(), self.ctx.info());
        let tiling = Tiling::new(info, Shape::of(info), ITEMS, GROUPS_PER_UNIT);
        let scan = Scan::<u32>::build(&self.ctx, tiling)?;
        let space = RefCell::new(ShareSums::new(&self.ctx, tiling)?);
        let from = RefCell::new(DeviceVec::from_slice(&self.ctx, &vectors.numbers, "numbers to sum")?);
        let to = RefCell::new(DeviceVec::zeros(&self.ctx, n + 1, "prefix sums")?);
        let mut found: Vec<u32> = zeros(n + 1).map_err(|e| e.into_error("prefix sums"))?;
        let launch =
            |ctx: &Context| scan.exclusive(ctx, n, &from.borrow(), &mut to.borrow_mut(), &mut space.borrow_mut());
        let [time, with_transfers] = self.times(launch, |ctx| {
            from.borrow_mut().write(ctx, 0, &vectors.numbers)?;
            launch(ctx)?;
            to.borrow().read(ctx, 0, &mut found)
        })?;
        Ok(vectors.measured(VectorTask::Scan, time, Some(with_transfers), vectors.are_sums(&found)))
    }
}

fn on_host<T: Real>(n: usize, repeat: usize) -> Result<Vec<OnVectors>> {
    let vectors = Vectors::<T>::new(n)?;
    let Vectors { x, y, numbers } = &vectors;
    let two = T::from_f64(2.0);
    let mut found = y.clone();
    let axpy = times(repeat, || {
        found.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y += two * x);
        });
    });
    found.copy_from_slice(y);
    found.iter_mut().zip(x).for_each(|(y, &x)| *y += two * x);
    let is_updated = vectors.is_updated(&found);
    let mut sum = 0.0;
    let dot = times(repeat, || {
        let part = |(x, y): (&[T], &[T])| x.iter().zip(y).map(|(&x, &y)| (x * y).to_f64()).sum::<f64>();
        sum = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK)).map(part).sum();
    });
    let mut sums: Vec<u32> = zeros(n + 1).map_err(|e| e.into_error("prefix sums"))?;
    let scan = times(repeat, || {
        let mut sum = 0_u32;
        for (to, &number) in sums.iter_mut().zip(numbers.iter().chain([&0])) {
            *to = sum;
            sum = sum.wrapping_add(number);
        }
    });
    Ok(vec![
        vectors.measured(VectorTask::Axpy, axpy, None, is_updated),
        vectors.measured(VectorTask::Dot, dot, None, sum == vectors.dot()),
        vectors.measured(VectorTask::Scan, scan, None, vectors.are_sums(&sums)),
    ])
}

fn times(repeat: usize, mut run: impl FnMut()) -> Timing {
    run();
    let mut once = || {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    timing((0..repeat).map(|_| once()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn all_tasks_are_right() {
        let device = list().devices.remove(0);
        for precision in [Precision::F64, Precision::F32] {
            for n in [1, 1000, 70_001] {
                let device = on_vectors(&device, n, precision, 2).unwrap();
                let host = host_vectors(n, precision, 2).unwrap();
                for (one, is_host) in
                    device.into_iter().map(|one| (one, false)).chain(host.into_iter().map(|one| (one, true)))
                {
                    assert!(one.is_right && one.n == n && one.time.runs == 2, "{one:?}");
                    assert_eq!(one.with_transfers.is_none(), is_host);
                }
            }
        }
    }

    #[test]
    fn sums_by_hand() {
        let vectors = Vectors::<f64>::new(8).unwrap();
        assert_eq!(vectors.dot(), (-1.0) + 0.0);
        assert!(vectors.are_sums(&[0, 0, 1, 3, 6, 10, 15, 21, 21]) && !vectors.are_sums(&[0; 9]));
    }
}
