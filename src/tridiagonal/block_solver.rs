//! Block tridiagonal systems on a device, or on the host.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use super::block_systems::{BlockShape, BlockSystems};
use super::systems::Layout;
use crate::banded::BlockTridiagonal;
use crate::device::{self, Choice, Context, DeviceVec, Info, Kind};
use crate::error::{Error, Result};
use crate::kernels::MAX_COUNT;
use crate::kernels::block_tridiagonal::{Batch, BlockTridiagonalKernels};
use crate::real::Real;
use crate::tune::stopwatch::Stopwatch;

/// With [`Choice::Auto`], as many systems as a GPU needs to be busy, of which each has a work-item: fewer stay on the host.
const MANY: usize = 512;

/// A batch of block tridiagonal systems, or of narrow bands, that is prepared for any number of right-hand sides.
///
/// Rows are exchanged within diagonal blocks B(i) − A(i) (B(i−1) …)⁻¹ C(i−1) only, on devices as on the host. That is stable where a system is block
/// diagonally dominant, or positive definite (N. J. Higham, "Accuracy and stability of numerical algorithms", SIAM 2002, section 13.2). Others
/// may have any errors: [`BlockSystems::backward_errors`] tells. A work-item has a system, so that a device needs thousands to be busy.
///
/// ```
/// use declive::banded::Band;
/// use declive::tridiagonal::{BlockSolver, BlockSystems};
///
/// # fn main() -> declive::Result<()> {
/// // three beams: 7 on the diagonal, −4 beside it, 1 beside that
/// let n = 9;
/// let mut band = Band::zeros(n, 2, 2);
/// for (i, j) in (0..n).flat_map(|i| (i.saturating_sub(2)..n.min(i + 3)).map(move |j| (i, j))) {
///     band.set(i, j, [7.0, -4.0, 1.0][i.abs_diff(j)]);
/// }
/// let d = band.times(&[1.0; 9]).repeat(3);
/// let mut solver = BlockSolver::new(BlockSystems::of_bands(&vec![band; 3])?, &"host".parse()?)?;
/// let mut x = [0.0; 27];
/// solver.solve(&d, &mut x)?;
/// assert!(x.iter().all(|x| (x - 1.0_f64).abs() < 1e-13));
/// # Ok(())
/// # }
/// ```
pub struct BlockSolver<'a, T: Real> {
    systems: BlockSystems<'a, T>,
    on_device: Option<Box<BlocksOnDevice<T>>>,
    label: String,
}

impl<'a, T: Real> BlockSolver<'a, T> {
    /// Prepares the systems on the first of these devices, or on the host's threads. With [`Choice::Auto`] that is a GPU, if there is one, for 512
    /// systems or more.
    ///
    /// # Errors
    /// [`Error::NoDevice`]; systems that the device can't hold; a failing device.
    pub fn new(systems: BlockSystems<'a, T>, devices: &Choice) -> Result<Self> {
        let selection = device::select(devices, T::CL_NAME == f64::CL_NAME)?;
        let is_many = systems.shape.systems >= MANY;
        let is_worth_it = |device: &&Info| *devices != Choice::Auto || device.kind == Kind::Gpu && is_many;
        let device = selection.ranks.first().and_then(Option::as_ref).filter(is_worth_it);
        Self::on(systems, device)
    }

    /// The same on a device, or on the host. A device takes the three arrays and one more as long, and while they are uploaded another one, if they
    /// are not interleaved; the host turns interleaved ones.
    ///
    /// # Errors
    /// As [`BlockSolver::new`].
    pub fn on(mut systems: BlockSystems<'a, T>, device: Option<&Info>) -> Result<Self> {
        let shape = systems.shape;
        let label = device.map_or_else(|| "host".into(), Info::label);
        let on_device = match device {
            Some(device) => {
                let [a, b, c] = &systems.coefficients;
                Some(Box::new(BlocksOnDevice::new(device, shape, [a, b, c])?))
            }
            None => {
                if shape.layout == Layout::Interleaved {
                    let each = shape.rows() * shape.order;
                    systems.coefficients =
                        systems.coefficients.map(|array| Cow::Owned(turned(&array, each, shape.systems)));
                }
                None
            }
        };
        Ok(Self { systems, on_device, label })
    }

    /// The device that solves, or `host`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.label
    }

    /// Solves all systems for the right-hand sides `d`, by some 14 order³ / 3 flops a block.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`]; [`Error::SingularSystem`] where a diagonal block has no pivot left: what x has then is of no use; a failing device.
    pub fn solve(&mut self, d: &[T], x: &mut [T]) -> Result<()> {
        let BlockSystems { shape, rows, .. } = self.systems;
        let expected = self.systems.len();
        for (what, found) in [("the right-hand side", d.len()), ("x", x.len())] {
            if found != expected {
                return Err(Error::SizeMismatch { what: what.into(), expected, found });
            }
        }
        if x.is_empty() {
            return Ok(());
        }
        if rows == shape.rows() {
            return self.solve_whole(d, x);
        }
        let mut whole = vec![T::default(); shape.lens()[1]];
        let of_whole = whole.chunks_exact_mut(shape.rows());
        of_whole.zip(d.chunks_exact(rows)).for_each(|(whole, d)| whole[..rows].copy_from_slice(d));
        let mut of_x = whole.clone();
        self.solve_whole(&whole, &mut of_x)?;
        let of_whole = of_x.chunks_exact(shape.rows());
        of_whole.zip(x.chunks_exact_mut(rows)).for_each(|(whole, x)| x.copy_from_slice(&whole[..rows]));
        Ok(())
    }

    fn solve_whole(&mut self, d: &[T], x: &mut [T]) -> Result<()> {
        if let Some(on_device) = &mut self.on_device {
            on_device.write(d)?;
            on_device.run()?;
            return on_device.read(x);
        }
        let BlockShape { systems, blocks, order, layout } = self.systems.shape;
        let [a, b, c] = &self.systems.coefficients;
        let given = BlockTridiagonal::new(systems, blocks, order, [a, b, c])?;
        if layout == Layout::Contiguous {
            x.copy_from_slice(d);
            return given.solve(x);
        }
        let mut own = turned(d, blocks * order, systems);
        given.solve(&mut own)?;
        x.copy_from_slice(&turned(&own, systems, blocks * order));
        Ok(())
    }
}

/// The transpose of a matrix by rows.
fn turned<T: Real>(x: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut y = vec![T::default(); rows * cols];
    let columns = y.par_chunks_exact_mut(rows.max(1)).enumerate();
    columns.for_each(|(j, column)| column.iter_mut().enumerate().for_each(|(i, y)| *y = x[i * cols + j]));
    y
}

/// Systems on a device, interleaved, with all the memory that solves need.
pub(crate) struct BlocksOnDevice<T: Real> {
    // what needs the context is dropped before it
    kernels: BlockTridiagonalKernels<T>,
    shape: BlockShape,
    coefficients: [DeviceVec<T>; 3],
    d: DeviceVec<T>,
    x: DeviceVec<T>,
    upper: DeviceVec<T>,
    failed: DeviceVec<u32>,
    /// Of systems that are not interleaved: right-hand sides as they are given, and x.
    given: Option<[DeviceVec<T>; 2]>,
    ctx: Arc<Context>,
}

impl<T: Real> BlocksOnDevice<T> {
    /// Puts coefficients on a device.
    ///
    /// # Errors
    /// [`Error::TooManyElements`]; a device without room.
    pub(crate) fn new(device: &Info, shape: BlockShape, coefficients: [&[T]; 3]) -> Result<Self> {
        let [len, rows] = shape.lens();
        if len > MAX_COUNT {
            let what = format!("an array of {len} elements of blocks");
            return Err(Error::TooManyElements { device: device.label(), what, limit: MAX_COUNT });
        }
        let ctx = Arc::new(Context::open(device)?);
        let kernels = BlockTridiagonalKernels::build(&ctx, shape.order)?;
        let up = |array: &[T]| -> Result<DeviceVec<T>> {
            let given = DeviceVec::from_slice(&ctx, array, "coefficients")?;
            if shape.layout == Layout::Interleaved {
                return Ok(given);
            }
            let mut turned = DeviceVec::uninit(&ctx, len, "coefficients")?;
            kernels.turn(&ctx, [shape.systems, shape.rows() * shape.order], &given, &mut turned)?;
            ctx.finish()?;
            Ok(turned)
        };
        let [a, b, c] = coefficients;
        let coefficients = [up(a)?, up(b)?, up(c)?];
        let of_rows = |what| DeviceVec::uninit(&ctx, rows, what);
        let (d, x) = (of_rows("a right-hand side")?, of_rows("x")?);
        let as_given = || -> Result<[DeviceVec<T>; 2]> { Ok([of_rows("a right-hand side")?, of_rows("x")?]) };
        let given = (shape.layout == Layout::Contiguous).then(as_given).transpose()?;
        let upper = DeviceVec::uninit(&ctx, len, "the upper factor")?;
        let failed = DeviceVec::zeros(&ctx, shape.systems, "rows without a pivot")?;
        Ok(Self { kernels, shape, coefficients, d, x, upper, failed, given, ctx })
    }

    /// Seconds of each of `count` solves for the right-hand sides that are there.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn times(&mut self, stopwatch: &mut Stopwatch, count: usize) -> Result<Vec<f64>> {
        let ctx = Arc::clone(&self.ctx);
        stopwatch.times(&ctx, count, |_| self.run())
    }

    /// Uploads right-hand sides.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn write(&mut self, d: &[T]) -> Result<()> {
        self.given.as_mut().map_or(&mut self.d, |[d, _]| d).write(&self.ctx, 0, d)
    }

    /// Enqueues a solve for the right-hand sides that are there.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn run(&mut self) -> Result<()> {
        let Self { kernels, shape, coefficients, d, x, upper, failed, given, ctx } = self;
        let (systems, rows) = (shape.systems, shape.rows());
        if let Some([of_d, _]) = given {
            kernels.turn(ctx, [systems, rows], of_d, d)?;
        }
        kernels.thomas(ctx, Batch { systems, blocks: shape.blocks }, coefficients, d, (x, upper, failed))?;
        given.as_mut().map_or(Ok(()), |[_, of_x]| kernels.turn(ctx, [rows, systems], x, of_x))
    }

    /// Downloads x.
    ///
    /// # Errors
    /// [`Error::SingularSystem`] for the first system with a diagonal block without a pivot; a failing device.
    pub(crate) fn read(&self, x: &mut [T]) -> Result<()> {
        self.given.as_ref().map_or(&self.x, |[_, x]| x).read(&self.ctx, 0, x)?;
        let mut failed = vec![0; self.shape.systems];
        self.failed.read(&self.ctx, 0, &mut failed)?;
        let first = failed.iter().position(|&row| row > 0);
        first.map_or(Ok(()), |system| Err(Error::SingularSystem { system, row: failed[system] as usize - 1 }))
    }

    /// Bytes that a solve reads and writes, each array of a kernel counted once.
    pub(crate) fn bytes(&self) -> u64 {
        let [len, rows] = self.shape.lens();
        let turned = if self.given.is_some() { 4 * rows } else { 0 };
        ((5 * len + 4 * rows + turned) * size_of::<T>()) as u64
    }
}
