//! Tiles of the product of dense matrices, found by measurement.

use std::path::PathBuf;

use serde::Serialize;

use super::Watch;
use super::stopwatch::Stopwatch;
use super::store::{Device, ProductEntry, ProductKey, Store, source_hash};
use crate::device::{Context, DeviceVec, Info};
use crate::error::Result;
use crate::kernels::gemm::{self, Block, Gemm, Tiles};
use crate::kernels::{Shape, general_options};
use crate::named::as_text;
use crate::real::{Precision, Real};
use crate::timing::{Timing, timing};

/// Columns of A and rows of B: those of a panel of a factorisation.
pub(crate) const DEPTH: usize = 128;

/// Launches of each.
const RUNS: usize = 5;

/// How fast C ← C − A B is with some tiles, or without any.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProductTime {
    /// The tiles.
    #[serde(serialize_with = "as_text")]
    pub tiles: Tiles,
    /// Whether they are not used: a work-item for each element of C.
    pub is_naive: bool,
    /// Seconds.
    pub time: Timing,
    /// Multiplications and additions a second.
    pub flops_per_second: f64,
}

/// Matrices to multiply on a device, n × 128 times 128 × n.
pub(crate) struct Products<'a, T> {
    ctx: &'a Context,
    n: usize,
    a: DeviceVec<T>,
    b: DeviceVec<T>,
    c: DeviceVec<T>,
    stopwatch: Stopwatch,
}

impl<'a, T: Real> Products<'a, T> {
    /// Takes 8 (n² + 256 n) bytes in double precision.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); a failing device.
    pub(crate) fn new(ctx: &'a Context, n: usize) -> Result<Self> {
        let numbers: Vec<T> = (0..n * DEPTH).map(|i| T::from_f64((i % 31) as f64 / 31.0 - 0.5)).collect();
        let a = DeviceVec::from_slice(ctx, &numbers, "a dense matrix")?;
        let b = DeviceVec::from_slice(ctx, &numbers, "a dense matrix")?;
        Ok(Self { ctx, n, a, b, c: DeviceVec::zeros(ctx, n * n, "a dense matrix")?, stopwatch: Stopwatch::default() })
    }

    /// The time of one launch.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild); a failing device.
    pub(crate) fn time(&mut self, tiles: Tiles, is_naive: bool, runs: usize) -> Result<ProductTime> {
        let Self { ctx, n, a, b, c, stopwatch } = self;
        let gemm = Gemm::build(ctx, tiles)?;
        let block = |array, ld| Block { array, at: 0, ld };
        let (factors, c) = ((block(a, *n), block(b, DEPTH)), block(c, *n));
        let (size, numbers) = ([*n, *n, DEPTH], (T::from_f64(-1.0), T::from_f64(1.0)));
        let launch = || {
            if is_naive {
                gemm.launch_naive(ctx, size, numbers, factors, c)
            } else {
                gemm.launch(ctx, size, numbers, factors, c, None)
            }
        };
        launch()?;
        ctx.finish()?;
        let time = timing(stopwatch.times(ctx, runs, |_| launch())?);
        let flops = 2.0 * (*n * *n * DEPTH) as f64;
        Ok(ProductTime { tiles, is_naive, time, flops_per_second: flops / time.median })
    }
}

/// The times of all tiles that are worth a trial on a device, the fastest first: with n × 128 elements of A and 128 × n of B. What the
/// device does not compile or run is left out.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory), [`Error::Interrupted`](crate::Error::Interrupted); a device on which
/// none runs.
pub fn products(info: &Info, n: usize, precision: Precision, watch: Watch<'_>) -> Result<Vec<ProductTime>> {
    match precision.of_vectors() {
        Precision::F64 => products_in::<f64>(info, n, watch),
        _ => products_in::<f32>(info, n, watch),
    }
}

fn products_in<T: Real>(info: &Info, n: usize, watch: Watch<'_>) -> Result<Vec<ProductTime>> {
    let ctx = Context::open(info)?;
    let mut products = Products::<T>::new(&ctx, n)?;
    let candidates = Tiles::candidates::<T>(&ctx, Shape::of(info));
    let (mut found, mut failure) = (Vec::new(), None);
    for (done, &tiles) in candidates.iter().enumerate() {
        watch.check()?;
        match products.time(tiles, false, RUNS) {
            Ok(time) => {
                log::debug!("{}: {tiles}: {:.4e} flops a second", info.name, time.flops_per_second);
                found.push(time);
            }
            Err(e) => {
                log::debug!("{}: {tiles}: {e}", info.name);
                failure = Some(e);
            }
        }
        watch.update(done + 1, candidates.len());
    }
    found.sort_by(|one, other| one.time.median.total_cmp(&other.time.median));
    match failure {
        Some(e) if found.is_empty() => Err(e),
        _ => Ok(found),
    }
}

/// Keeps the fastest tiles for later products; tells where, or `None` if they could not be kept.
pub fn keep_product(store: &Store, info: &Info, precision: Precision, fastest: &ProductTime) -> Option<PathBuf> {
    let key = if precision.of_vectors() == Precision::F64 { key::<f64>(info) } else { key::<f32>(info) };
    let entry = ProductEntry::new(key, fastest.tiles, fastest.flops_per_second);
    store.insert_product(&Device::from(info), entry)
}

/// The tiles for a device: those found in a former run, or else the usual ones.
pub(crate) fn tiles<T: Real>(ctx: &Context) -> Tiles {
    let info = ctx.info();
    let known = Store::open().load(&Device::from(info));
    let shape = Shape::of(info);
    let fits = |tiles: &Tiles| tiles.fits::<T>(ctx) && Shape::of_group(tiles.group_size()) == shape;
    let found = known.product(&key::<T>(info)).map(|entry| entry.tiles).filter(fits);
    found.unwrap_or_else(|| Tiles::default_for::<T>(ctx, shape))
}

fn key<T: Real>(info: &Info) -> ProductKey {
    ProductKey {
        element: T::CL_NAME.into(),
        driver: info.driver.clone(),
        sources: source_hash(gemm::SOURCES),
        options: general_options::<T, T>(info),
    }
}
