//! How fast block tridiagonal systems are solved on a device, or on the host.

use std::time::Instant;

use crate::device::Info;
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::real::{Precision, Real};
use crate::timing::timing;
use crate::tridiagonal::{BlockShape, BlockSolver, BlockSystems, BlocksOnDevice, Method};
use crate::tune::stopwatch::Stopwatch;

use super::tridiagonal::Measured;

/// Block diagonally dominant systems whose coefficients and x are small integers as if by chance, in double or in single precision.
pub enum BlockCase {
    /// In double precision.
    Double(BlockBatch<f64>),
    /// In single precision.
    Single(BlockBatch<f32>),
}

/// Such systems.
pub struct BlockBatch<T> {
    shape: BlockShape,
    arrays: [Vec<T>; 3],
    d: Vec<T>,
    x: Vec<T>,
}

impl BlockCase {
    /// A batch of this shape.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Usage`] for `precision = mixed`.
    pub fn new(shape: BlockShape, precision: Precision) -> Result<Self> {
        match precision {
            Precision::F64 => BlockBatch::new(shape).map(Self::Double),
            Precision::F32 => BlockBatch::new(shape).map(Self::Single),
            Precision::Mixed => Err(Error::Usage(
                "precision = mixed is for Krylov methods; tridiagonal systems are in f64 or f32".into(),
            )),
        }
    }

    /// Times elimination by blocks on a device, by its clock, or on the host: medians of `repeat` solves.
    ///
    /// # Errors
    /// Those of [`BlockSolver::on`] and [`BlockSolver::solve`].
    pub fn on(&self, device: Option<&Info>, repeat: usize) -> Result<Measured> {
        match self {
            Self::Double(batch) => batch.on(device, repeat),
            Self::Single(batch) => batch.on(device, repeat),
        }
    }
}

/// An integer from −2 to 2.
fn by_chance(k: usize, salt: usize) -> i64 {
    let mixed = (k * 8 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 40) % 5) as i64 - 2
}

impl<T: Real> BlockBatch<T> {
    fn new(shape: BlockShape) -> Result<Self> {
        let BlockShape { systems, blocks, order, .. } = shape;
        let ([len, rows], each) = (shape.lens(), shape.rows());
        let array = |len| zeros::<T>(len).map_err(|e| e.into_error("block tridiagonal systems"));
        let mut arrays = [array(len)?, array(len)?, array(len)?];
        let (mut d, mut x) = (array(rows)?, array(rows)?);
        for (system, row) in (0..systems).flat_map(|system| (0..each).map(move |row| (system, row))) {
            let (block, k) = (row / order, system * each + row);
            let x_of = |row: usize| by_chance(system * each + row, 3);
            let (mut sum, mut size) = (0, 0);
            for (which, array) in arrays.iter_mut().enumerate() {
                if which == 0 && block == 0 || which == 2 && block + 1 == blocks {
                    continue;
                }
                for c in 0..order {
                    let column = (block + which) * order + c - order;
                    let value = if column == row { 0 } else { by_chance(k * order + c, 4 + which) };
                    array[shape.at(system, row * order + c, each * order)] = T::from_f64(value as f64);
                    (sum, size) = (sum + value * x_of(column), size + value.abs());
                }
            }
            let diagonal = size + 1 + (k % 3) as i64;
            arrays[1][shape.at(system, row * order + row % order, each * order)] = T::from_f64(diagonal as f64);
            let at = shape.at(system, row, each);
            d[at] = T::from_f64((sum + diagonal * x_of(row)) as f64);
            x[at] = T::from_f64(x_of(row) as f64);
        }
        Ok(Self { shape, arrays, d, x })
    }

    /// The largest error.
    fn error(&self, x: &[T]) -> f64 {
        let errors = x.iter().zip(&self.x).map(|(x, known)| (x.to_f64() - known.to_f64()).abs());
        errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
    }

    fn on(&self, device: Option<&Info>, repeat: usize) -> Result<Measured> {
        let [a, b, c] = &self.arrays;
        let mut x: Vec<T> = zeros(self.d.len()).map_err(|e| e.into_error("x"))?;
        let Some(device) = device else {
            let mut solver = BlockSolver::on(BlockSystems::new(self.shape, [a, b, c])?, None)?;
            let times = timed(repeat, || solver.solve(&self.d, &mut x))?;
            let error = self.error(&x);
            return Ok(Measured {
                method: Method::Thomas,
                time: timing(times),
                with_transfers: None,
                bytes: None,
                error,
            });
        };
        let mut on_device = BlocksOnDevice::new(device, self.shape, [a, b, c])?;
        let with_transfers = timed(repeat, || {
            on_device.write(&self.d)?;
            on_device.run()?;
            on_device.read(&mut x)
        })?;
        let times = on_device.times(&mut Stopwatch::default(), repeat)?;
        Ok(Measured {
            method: Method::Thomas,
            time: timing(times),
            with_transfers: Some(timing(with_transfers)),
            bytes: Some(on_device.bytes()),
            error: self.error(&x),
        })
    }
}

/// Seconds of each run after the first one.
fn timed(repeat: usize, mut run: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    run()?; // drivers allocate late
    let mut once = || {
        let start = Instant::now();
        run()?;
        Ok(start.elapsed().as_secs_f64())
    };
    (0..repeat).map(|_| once()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::tridiagonal::Layout;

    #[test]
    fn blocks_are_solved_in_both_places() {
        let device = list().devices.remove(0);
        for layout in [Layout::Contiguous, Layout::Interleaved] {
            let case = BlockCase::new(BlockShape::new(7, 10, 3).with_layout(layout), Precision::F64).unwrap();
            for device in [None, Some(&device)] {
                let measured = case.on(device, 2).unwrap();
                assert!(measured.error < 1e-13 && measured.time.runs == 2, "{measured:?}");
                let turned = if layout == Layout::Contiguous { 4 * 210 } else { 0 };
                assert_eq!(measured.bytes, device.map(|_| 8 * (5 * 630 + 4 * 210 + turned)));
            }
        }
    }
}
