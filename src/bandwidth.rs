//! What a device's memory gives: a plain copy, against which "% of limit" is measured.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::device::{Context, DeviceVec, Grid, Info, Kind, Timed};
use crate::error::Result;
use crate::kernels::{Kernels, Shape, Tuning, count};
use crate::real::Real;

/// Bytes a second of `y = x` on a device, counting each array once: the best of several runs and numbers of work-groups, over
/// arrays well beyond its caches (512 MB each on a GPU, 64 MB on a CPU, less if its memory is small), in double precision
/// where the device has it.
///
/// # Errors
/// A failing device.
pub fn of_device(device: &Info) -> Result<f64> {
    if device.has_f64 { of_device_in::<f64>(device) } else { of_device_in::<f32>(device) }
}

fn of_device_in<T: Real>(device: &Info) -> Result<f64> {
    let ctx = Context::open(device)?;
    let tuning = Tuning::default_for(device, Shape::of(device));
    let launch = tuning.launch("stream_copy");
    let kernels = Kernels::<T, T>::build(&ctx, tuning)?;
    let wanted = if device.kind == Kind::Cpu { 64 << 20 } else { 512 << 20 };
    let bytes = wanted.min(device.max_buffer_bytes / 2).min(device.memory_bytes / 8);
    let n = bytes as usize / size_of::<T>();
    let x = DeviceVec::<T>::zeros(&ctx, n, "the array to copy")?;
    let mut y = DeviceVec::<T>::zeros(&ctx, n, "the copy")?;
    ctx.set_timing(Some(0))?;
    let mut best: f64 = 0.0;
    for times in [1, 2, 4, 8] {
        let grid = Grid { groups: launch.max_groups * times, group_size: launch.group_size };
        let rate = best_of(2 * n * size_of::<T>(), || {
            kernels.stream_copy(&ctx, grid, count(n), &x, &mut y)?;
            ctx.finish()?;
            Ok(ctx.take_timed(0)?.first().map(Timed::time))
        })?;
        best = best.max(rate);
    }
    Ok(best)
}

/// Bytes a second of `y = x` by the host's threads, as [`of_device`].
#[must_use]
pub fn of_host() -> f64 {
    let n = (64 << 20) / size_of::<f64>();
    let (x, mut y) = (vec![1.0f64; n], vec![0.0f64; n]);
    let copy = || {
        y.par_chunks_mut(1 << 16).zip(x.par_chunks(1 << 16)).for_each(|(y, x)| y.copy_from_slice(x));
        Ok(None)
    };
    best_of(2 * n * size_of::<f64>(), copy).unwrap_or(0.0)
}

/// The best rate of several runs; `run` may know its own time better than the clock here.
fn best_of(bytes: usize, mut run: impl FnMut() -> Result<Option<Duration>>) -> Result<f64> {
    let mut best = Duration::MAX;
    for _ in 0..8 {
        let start = Instant::now();
        let own = run()?;
        best = best.min(own.filter(|t| !t.is_zero()).unwrap_or_else(|| start.elapsed()));
    }
    Ok(bytes as f64 / best.as_secs_f64())
}
