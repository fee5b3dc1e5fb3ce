//! How fast tridiagonal systems are solved, by each method of a device or of the host.

use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use crate::device::Info;
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::real::{Precision, Real};
use crate::timing::{Timing, timing};
use crate::tridiagonal::{Check, Method, OnDevice, Options, Shape, Solver, Systems, keep};
use crate::tune::stopwatch::Stopwatch;
use crate::tune::store::Store;

/// Rows for each system above which a work-item that eliminates alone takes a part of a second, 0.5 to 1 µs a row.
const MOST_ALONE: usize = 1 << 16;

/// The largest error of a method that is kept as the fastest.
const MOST_ERROR: f64 = 1e-2;

/// Diagonally dominant systems whose coefficients and x are small integers as if by chance, in double or in single precision.
pub enum Case {
    /// In double precision.
    Double(Batch<f64>),
    /// In single precision.
    Single(Batch<f32>),
}

/// Such systems.
pub struct Batch<T> {
    shape: Shape,
    arrays: [Vec<T>; 3],
    d: Vec<T>,
    x: Vec<T>,
}

/// The time of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// The method.
    pub method: Method,
    /// Seconds without transfers, of all kernels from the beginning of the first to the end of the last; on the host, of a solve.
    pub time: Timing,
    /// Seconds with right-hand sides that are uploaded, and x that is downloaded; none of the host.
    pub with_transfers: Option<Timing>,
    /// Bytes that kernels read and write, by the methods' own count; none of the host.
    pub bytes: Option<u64>,
    /// The largest error of an element of x, whose elements are up to 5.
    pub error: f64,
}

impl Case {
    /// A batch of this shape.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Usage`] for `precision = mixed`.
    pub fn new(shape: Shape, precision: Precision) -> Result<Self> {
        match precision {
            Precision::F64 => Batch::new(shape).map(Self::Double),
            Precision::F32 => Batch::new(shape).map(Self::Single),
            Precision::Mixed => Err(Error::Usage(
                "precision = mixed is for Krylov methods; tridiagonal systems are in f64 or f32".into(),
            )),
        }
    }

    /// Times a method on a device, by its clock: medians of `repeat` solves. `None` where systems are too large for it, or too few and too
    /// long for a work-item each.
    ///
    /// # Errors
    /// Those of the device.
    pub fn on_device(&self, device: &Info, method: Method, repeat: usize) -> Result<Option<Measured>> {
        match self {
            Self::Double(batch) => batch.on_device(device, method, repeat),
            Self::Single(batch) => batch.on_device(device, method, repeat),
        }
    }

    /// Keeps the fastest method of a device, of those that were right, for later solvers with `method = auto`.
    pub fn keep_fastest(&self, device: &Info, measured: &[Measured]) {
        let is_right = |one: &&Measured| one.error < MOST_ERROR;
        let fastest = measured.iter().filter(is_right).min_by(|a, b| a.time.median.total_cmp(&b.time.median));
        let (Some(Measured { method, time, .. }), store) = (fastest, Store::open()) else { return };
        match self {
            Self::Double(batch) => keep::<f64>(&store, device, batch.shape, *method, time.median),
            Self::Single(batch) => keep::<f32>(&store, device, batch.shape, *method, time.median),
        }
    }

    /// Times a method on the host: medians of `repeat` solves.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method that it does not have.
    pub fn on_host(&self, method: Method, repeat: usize) -> Result<Measured> {
        match self {
            Self::Double(batch) => batch.on_host(method, repeat),
            Self::Single(batch) => batch.on_host(method, repeat),
        }
    }
}

impl<T: Real> Batch<T> {
    fn new(shape: Shape) -> Result<Self> {
        let array = || zeros::<T>(shape.len()).map_err(|e| e.into_error("tridiagonal systems"));
        let (mut a, mut b, mut c, mut d, mut x) = (array()?, array()?, array()?, array()?, array()?);
        let n = shape.size;
        let places = shape.places();
        let by_chance = |k: usize, salt: usize| {
            let mixed = (k * 8 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed >> 40) % 11) as i64 - 5
        };
        let rows = a.par_iter_mut().zip(&mut b).zip(&mut c).zip(&mut d).zip(&mut x);
        rows.enumerate().for_each(|(at, ((((a, b), c), d), x))| {
            let (system, row) = (at / places.across % places.systems.max(1), at / places.along % n);
            let k = system * n + row;
            let lower = if row == 0 { 0 } else { by_chance(k, 1) };
            let upper = if row + 1 == n { 0 } else { by_chance(k, 2) };
            let diagonal = lower.abs() + upper.abs() + 1 + (k % 3) as i64;
            let x_of = |k: usize| by_chance(k, 3);
            let left = if row == 0 { 0 } else { lower * x_of(k - 1) };
            let right = if row + 1 == n { 0 } else { upper * x_of(k + 1) };
            let number = |v: i64| T::from_f64(v as f64);
            (*a, *b, *c) = (number(lower), number(diagonal), number(upper));
            (*d, *x) = (number(left + diagonal * x_of(k) + right), number(x_of(k)));
        });
        Ok(Self { shape, arrays: [a, b, c], d, x })
    }

    /// The largest error.
    fn error(&self, x: &[T]) -> f64 {
        let errors = x.par_iter().zip(&self.x).map(|(x, known)| (x.to_f64() - known.to_f64()).abs());
        errors.map(|e| if e.is_nan() { f64::INFINITY } else { e }).reduce(|| 0.0, f64::max)
    }

    fn on_device(&self, device: &Info, method: Method, repeat: usize) -> Result<Option<Measured>> {
        let [a, b, c] = &self.arrays;
        if method == Method::Thomas && self.shape.size / self.shape.systems.max(1) > MOST_ALONE {
            return Ok(None);
        }
        let mut on_device = match OnDevice::new(device, self.shape, [a, b, c], method) {
            Err(Error::Usage(_)) => return Ok(None),
            other => other?,
        };
        let mut x: Vec<T> = zeros(self.shape.len()).map_err(|e| e.into_error("x"))?;
        let mut once = || {
            let start = Instant::now();
            on_device.write(&self.d)?;
            on_device.run()?;
            on_device.read(&mut x)?;
            Ok(start.elapsed().as_secs_f64())
        };
        once()?; // drivers allocate late
        let with_transfers = (0..repeat).map(|_| once()).collect::<Result<Vec<f64>>>()?;
        let error = self.error(&x);
        let times = on_device.times(&mut Stopwatch::default(), repeat)?;
        Ok(Some(Measured {
            method,
            time: timing(times),
            with_transfers: Some(timing(with_transfers)),
            bytes: Some(on_device.bytes()),
            error,
        }))
    }

    fn on_host(&self, method: Method, repeat: usize) -> Result<Measured> {
        let [a, b, c] = &self.arrays;
        let systems = Systems::new(self.shape, [a, b, c])?;
        let options = Options::default().with_method(method).with_check(Check::Never);
        let mut solver = Solver::on(systems, None, &options)?;
        let mut x: Vec<T> = zeros(self.shape.len()).map_err(|e| e.into_error("x"))?;
        solver.solve(&self.d, &mut x)?;
        let mut once = || {
            let start = Instant::now();
            solver.solve(&self.d, &mut x)?;
            Ok(start.elapsed().as_secs_f64())
        };
        let times = (0..repeat).map(|_| once()).collect::<Result<Vec<f64>>>()?;
        Ok(Measured { method, time: timing(times), with_transfers: None, bytes: None, error: self.error(&x) })
    }
}

/// Those of devices, and of the host.
pub const METHODS: [&[Method]; 2] = [
    &[Method::Thomas, Method::CyclicReduction, Method::ParallelCyclicReduction, Method::Hybrid, Method::Partition],
    &[Method::Thomas, Method::Partition, Method::Pivoting],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::tridiagonal::Layout;

    #[test]
    fn all_methods_are_right() {
        let device = list().devices.remove(0);
        for layout in [Layout::Contiguous, Layout::Interleaved] {
            let case = Case::new(Shape::new(7, 100).with_layout(layout), Precision::F64).unwrap();
            for &method in METHODS[0] {
                let measured = case.on_device(&device, method, 2).unwrap().unwrap();
                let elements = measured.bytes.unwrap() / 8;
                assert!(measured.error < 1e-13 && measured.time.runs == 2, "{measured:?}");
                let expected = match method {
                    Method::Thomas => 9 * 700,
                    Method::Partition => 9 * 700 + (17 + 5) * 7,
                    _ => 5 * 700,
                };
                assert_eq!(elements, expected, "{method}");
            }
            for &method in METHODS[1] {
                assert!(case.on_host(method, 1).unwrap().error < 1e-13, "{method}");
            }
        }
        let long = Case::new(Shape::new(1, 1 << 17), Precision::F32).unwrap();
        for method in [Method::CyclicReduction, Method::Thomas] {
            assert_eq!(long.on_device(&device, method, 1).unwrap(), None, "{method}");
        }
    }
}
