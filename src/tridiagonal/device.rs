//! Systems on an OpenCL device.

use std::sync::Arc;

use super::periodic::Correction;
use super::pivoting::backward_error;
use super::systems::{Layout, Shape};
use super::{Method, kept};
use crate::device::{Context, DeviceVec, Info};
use crate::error::{Error, Result};
use crate::kernels::MAX_COUNT;
use crate::kernels::tridiagonal::{
    Coefficients, Ends, Groups, Places, TridiagonalKernels, most_in_local_memory, most_in_registers,
};
use crate::real::Real;
use crate::tune::stopwatch::Stopwatch;
use crate::tune::store::Store;

/// Interleaved systems of which there have to be as many, if each is to have a work-item.
const MANY: usize = 1 << 12;

/// Systems on a device, with all the memory that solves need.
pub(crate) struct OnDevice<T: Real> {
    // what needs the context is dropped before it
    kernels: Arc<TridiagonalKernels<T>>,
    places: Places,
    coefficients: Coefficients<T>,
    d: DeviceVec<T>,
    x: DeviceVec<T>,
    work: Work<T>,
    closing: Option<Closing<T>>,
    /// For residuals: the coefficients of periodic systems as they are, and what comes of parts.
    given: Option<Coefficients<T>>,
    largest: DeviceVec<T>,
    pub(crate) method: Method,
    ctx: Arc<Context>,
}

/// What a method needs beside the systems.
enum Work<T> {
    None,
    Scratch(DeviceVec<T>),
    Levels(Vec<Level<T>>),
}

/// Tiles of the systems of the level before, and the systems that they leave.
struct Level<T> {
    ends: Ends<T>,
    /// Where these are, and their solutions.
    places: Places,
    lasts: DeviceVec<T>,
}

struct Closing<T> {
    weights: DeviceVec<T>,
    factors: DeviceVec<T>,
    z: DeviceVec<T>,
    shares: DeviceVec<T>,
}

/// The method for a device if none is asked for: the one that was fastest, as far as it was measured.
fn usual<T: Real>(device: &Info, shape: Shape) -> Method {
    let known = kept::fastest::<T>(&Store::open(), device, shape);
    if let Some(method) = known.filter(|method| shape.size <= most_rows::<T>(device, *method)) {
        method
    } else if shape.layout == Layout::Interleaved && shape.systems >= MANY {
        Method::Thomas
    } else if shape.size <= most_in_registers::<T>(device) {
        Method::Hybrid
    } else {
        Method::Partition
    }
}

/// The rows of a system that a method takes on a device: none if it is one of the host.
fn most_rows<T: Real>(device: &Info, method: Method) -> usize {
    match method {
        Method::CyclicReduction | Method::ParallelCyclicReduction => most_in_local_memory::<T>(device),
        Method::Hybrid => most_in_registers::<T>(device),
        Method::Thomas | Method::Partition => usize::MAX,
        Method::Auto | Method::Pivoting => 0,
    }
}

impl<T: Real> OnDevice<T> {
    /// Puts coefficients on a device. Its memory takes the three arrays, a right-hand side, x and, for thomas, one more.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method of the host, or one for smaller systems; [`Error::TooManyElements`]; a device without room.
    pub(crate) fn new(device: &Info, shape: Shape, coefficients: [&[T]; 3], method: Method) -> Result<Self> {
        let method = if method == Method::Auto { usual::<T>(device, shape) } else { method };
        let groups = match method {
            Method::CyclicReduction | Method::ParallelCyclicReduction => Groups::in_local_memory(device, shape.size),
            Method::Hybrid => Groups::of_systems(device, shape.size),
            _ => Groups::of_tiles(device),
        };
        Self::in_groups(device, shape, coefficients, (method, groups))
    }

    /// The same with a method, and kernels that are compiled so.
    fn in_groups(
        device: &Info,
        shape: Shape,
        coefficients: [&[T]; 3],
        (method, groups): (Method, Groups),
    ) -> Result<Self> {
        if matches!(method, Method::Auto | Method::Pivoting) {
            return Err(Error::Usage(format!("method = {method} is for the host; use devices = host")));
        }
        let most = most_rows::<T>(device, method);
        let most = if method == Method::Hybrid { most.min(groups.tile()) } else { most };
        if shape.size > most {
            return Err(Error::Usage(format!(
                "{}: method = {method} has whole systems in a work-group, which takes {most} rows, but these have {}; use \
                 method = partition",
                device.label(),
                shape.size
            )));
        }
        if shape.len() > MAX_COUNT {
            return Err(Error::TooManyElements {
                device: device.label(),
                what: format!("an array of {} rows", shape.len()),
                limit: MAX_COUNT,
            });
        }
        let ctx = Arc::new(Context::open(device)?);
        let kernels = Arc::new(TridiagonalKernels::build(&ctx, groups)?);
        Self::with((ctx, kernels), shape, coefficients, method)
    }

    /// The same with kernels that are compiled.
    pub(super) fn with(
        (ctx, kernels): (Arc<Context>, Arc<TridiagonalKernels<T>>),
        shape: Shape,
        coefficients: [&[T]; 3],
        method: Method,
    ) -> Result<Self> {
        let len = shape.len();
        let up = |array| DeviceVec::from_slice(&ctx, array, "coefficients");
        let [a, b, c] = coefficients;
        let coefficients = [up(a)?, up(b)?, up(c)?];
        let (d, x) = (DeviceVec::uninit(&ctx, len, "a right-hand side")?, DeviceVec::uninit(&ctx, len, "x")?);
        let work = match method {
            Method::Thomas => Work::Scratch(DeviceVec::uninit(&ctx, len, "the upper factor")?),
            Method::Partition => Work::Levels(levels(&ctx, &kernels, shape)?),
            _ => Work::None,
        };
        let places = shape.places();
        let parts = places.systems * TridiagonalKernels::<T>::parts(places);
        let largest = DeviceVec::uninit(&ctx, 2 * parts, "residuals")?;
        Ok(Self { kernels, places, coefficients, d, x, work, closing: None, given: None, largest, method, ctx })
    }

    /// Seconds of each of `count` solves for the right-hand sides that are there.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn times(&mut self, stopwatch: &mut Stopwatch, count: usize) -> Result<Vec<f64>> {
        let ctx = Arc::clone(&self.ctx);
        stopwatch.times(&ctx, count, |_| self.run())
    }

    /// Lets solves close the circle of periodic systems with these coefficients. `correction` has the right-hand sides of z, and gets z.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn close_by(
        &mut self,
        shape: Shape,
        coefficients: [&[T]; 3],
        correction: Option<&mut Correction<T>>,
    ) -> Result<()> {
        let ctx = &self.ctx;
        let up = |array| DeviceVec::from_slice(ctx, array, "coefficients");
        let [a, b, c] = coefficients;
        self.given = Some([up(a)?, up(b)?, up(c)?]);
        let Some(correction) = correction else { return Ok(()) };
        self.write(&correction.z)?;
        self.run()?;
        self.read(&mut correction.z)?;
        correction.solved(shape);
        let ctx = &self.ctx;
        let up = |array| DeviceVec::from_slice(ctx, array, "what closes the circle");
        self.closing = Some(Closing {
            weights: up(&correction.weights)?,
            factors: up(&correction.factors)?,
            z: up(&correction.z)?,
            shares: DeviceVec::uninit(ctx, shape.systems, "shares of z")?,
        });
        Ok(())
    }

    /// Uploads right-hand sides.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn write(&mut self, d: &[T]) -> Result<()> {
        self.d.write(&self.ctx, 0, d)
    }

    /// Downloads x.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn read(&self, x: &mut [T]) -> Result<()> {
        self.x.read(&self.ctx, 0, x)
    }

    /// Enqueues a solve for the right-hand sides that are there.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn run(&mut self) -> Result<()> {
        let Self { ctx, kernels, places, coefficients, d, x, work, closing, method, .. } = self;
        if places.len() == 0 {
            return Ok(());
        }
        match work {
            Work::Scratch(scratch) => kernels.thomas(ctx, *places, coefficients, d, (x, scratch))?,
            Work::Levels(levels) => partition(ctx, kernels, *places, (coefficients, d), x, levels)?,
            Work::None if *method == Method::Hybrid => kernels.hybrid(ctx, *places, coefficients, d, x)?,
            Work::None => {
                let is_parallel = *method == Method::ParallelCyclicReduction;
                kernels.reduction(ctx, (*places, is_parallel), coefficients, d, x)?;
            }
        }
        if let Some(Closing { weights, factors, z, shares }) = closing {
            kernels.close(ctx, *places, (weights, factors, z), (x, shares))?;
        }
        Ok(())
    }

    /// The backward error of each system.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn backward_errors(&mut self) -> Result<Vec<f64>> {
        let Self { ctx, kernels, places, coefficients, d, x, given, largest, .. } = self;
        if places.len() == 0 {
            return Ok(vec![0.0; places.systems]);
        }
        kernels.residual(ctx, *places, given.as_ref().unwrap_or(coefficients), (d, x), largest)?;
        let mut parts = vec![T::default(); largest.len()];
        largest.read(ctx, 0, &mut parts)?;
        let of_system = |system: usize| {
            let of_part = |part: &[T]| (part[2 * system].to_f64(), part[2 * system + 1].to_f64());
            let parts = parts.chunks_exact(2 * places.systems).map(of_part);
            let (residual, scale) = parts.fold((0.0_f64, 0.0_f64), |a, b| (a.0.max(b.0), a.1.max(b.1)));
            backward_error(residual, scale)
        };
        Ok((0..places.systems).map(of_system).collect())
    }

    /// Bytes that a solve reads and writes, each array of a kernel counted once.
    pub(crate) fn bytes(&self) -> u64 {
        let own = match &self.work {
            // a, b, c, d; x and the factor written and read, x written once more
            Work::Scratch(_) => 9 * self.places.len(),
            // a, b, c and d; x
            Work::None => 5 * self.places.len(),
            Work::Levels(levels) => {
                let last = levels.last().map_or(0, |level| 5 * level.places.len());
                let sizes = std::iter::once(self.places.len()).chain(levels.iter().map(|level| level.places.len()));
                // a, b, c and d twice, x; seven numbers of a tile, of which six are read and three written again, and its x
                sizes.zip(levels).map(|(rows, level)| 9 * rows + (7 + 6 + 3 + 1) * level.places.len()).sum::<usize>()
                    + last
            }
        };
        let closing = if self.closing.is_some() { 3 * self.places.len() } else { 0 };
        ((own + closing) * size_of::<T>()) as u64
    }
}

/// The levels of systems of this size: until a group has a whole system.
fn levels<T: Real>(ctx: &Context, kernels: &TridiagonalKernels<T>, shape: Shape) -> Result<Vec<Level<T>>> {
    let mut levels = Vec::new();
    let mut size = shape.size;
    while levels.is_empty() || size > kernels.groups().tile() {
        let tiles = kernels.tiles(size);
        let places = Places::contiguous(shape.systems, tiles);
        let lasts = DeviceVec::uninit(ctx, places.len(), "last unknowns of tiles")?;
        levels.push(Level { ends: Ends::new(ctx, places.len())?, places, lasts });
        size = tiles;
    }
    Ok(levels)
}

fn partition<T: Real>(
    ctx: &Context,
    kernels: &TridiagonalKernels<T>,
    places: Places,
    (coefficients, d): (&Coefficients<T>, &DeviceVec<T>),
    x: &mut DeviceVec<T>,
    levels: &mut [Level<T>],
) -> Result<()> {
    let Some((level, others)) = levels.split_first_mut() else {
        return kernels.hybrid(ctx, places, coefficients, d, x);
    };
    let Level { ends, places: within, lasts } = level;
    kernels.reduce(ctx, places, coefficients, d, ends)?;
    partition(ctx, kernels, *within, (&ends.equations, &ends.values), lasts, others)?;
    kernels.expand(ctx, places, coefficients, (d, lasts), x)
}
