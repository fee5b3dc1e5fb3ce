//! Which devices have which planes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::backend::Backend;
use super::grid::Half;
use super::host::Host;
use super::opencl::OpenCl;
use super::problem::Problem;
use super::slab::Slab;
use crate::device::{Choice, Context, Info, Kind};
use crate::error::Result;
use crate::kernels::fdtd::FdtdKernels;
use crate::kernels::{Shape, Tuning};
use crate::partition::row_ranges_of;
use crate::real::Real;
use crate::runtime::by_speed;
use crate::solve::{ShareSource, Shares};

/// With `auto`, another GPU for each so many cells: below that its part of a step takes no longer than two messages between devices, which
/// take some 30 µs each.
const CELLS_PER_GPU: usize = 4 << 20;
/// Cells that are tried to see how fast a device is, at the most.
const TRIED: usize = 1 << 22;
/// Steps of it, the first of which is not counted.
const STEPS: usize = 4;

/// Leaves out GPUs that would add nothing.
pub(crate) fn worthwhile(devices: Vec<Option<Info>>, choice: &Choice, cells: usize) -> Vec<Option<Info>> {
    let are_gpus = devices.iter().all(|device| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu));
    let most = if *choice == Choice::Auto && are_gpus { (cells / CELLS_PER_GPU).max(1) } else { usize::MAX };
    devices.into_iter().take(most).collect()
}

/// A rank on a device, or on the host.
///
/// # Errors
/// A slab that the device can't hold; a failing device.
pub(crate) fn open<T: Real>(problem: &Problem, slab: Slab, device: Option<&Info>) -> Result<Box<dyn Backend<T>>> {
    Ok(match device {
        Some(device) => Box::new(OpenCl::new(problem, slab, device)?),
        None => Box::new(Host::new(problem, slab)?),
    })
}

/// A rank on a device with groups of so many work-items, whatever is usual there; 1 is the shape of CPUs.
///
/// # Errors
/// A slab that the device can't hold, groups that it does not take; a failing device.
pub(crate) fn open_in_groups<T: Real>(
    problem: &Problem,
    slab: Slab,
    device: &Info,
    group_size: usize,
) -> Result<Box<dyn Backend<T>>> {
    let ctx = Context::open(device)?;
    let max_groups = Tuning::default_for(device, Shape::of(device)).launch("fdtd").max_groups;
    let kernels = FdtdKernels::in_groups(&ctx, group_size, max_groups)?;
    Ok(Box::new(OpenCl::with(problem, slab, (Arc::new(ctx), Arc::new(kernels)))?))
}

/// The planes of each device, and why so: those given by hand, or as many as its speed on a part of the grid allows.
///
/// # Errors
/// Shares for another number of ranks; a failing device.
pub(crate) fn planes<T: Real>(
    problem: &Problem,
    devices: &[Option<Info>],
    shares: Option<&Shares>,
) -> Result<(Vec<Range<usize>>, ShareSource)> {
    let (shares, source) = by_speed(devices, shares, |device| speed::<T>(problem, device))?;
    Ok((row_ranges_of(problem.grid.planes(), |plane| plane, &shares), source))
}

/// Cells a second.
fn speed<T: Real>(problem: &Problem, device: Option<&Info>) -> Result<f64> {
    let planes = (TRIED / problem.grid.plane()).clamp(1, problem.grid.planes());
    let mut rank = open::<T>(problem, Slab { grid: problem.grid, planes: 0..planes }, device)?;
    let mut start = Instant::now();
    for step in 0..=STEPS {
        rank.update(Half::H, 0..planes, &[])?;
        rank.update(Half::E, 0..planes, &[])?;
        if step == 0 {
            rank.recorded()?;
            start = Instant::now();
        }
    }
    rank.recorded()?;
    Ok((STEPS * planes * problem.grid.plane()) as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
