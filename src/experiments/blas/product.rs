//! C ← C − A B with n × 128 elements of A and 128 × n of B, as in a factorisation.

use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::traits::RealField;
use faer::{Accum, Mat, Par};
use serde::Serialize;

use crate::device::{Context, Info};
use crate::error::{Error, Result};
use crate::kernels::Shape;
use crate::kernels::gemm::Tiles;
use crate::real::{Precision, Real};
use crate::timing::{Timing, timing};
use crate::tune::ProductTime;
use crate::tune::products::{self, DEPTH, Products};

/// A way to multiply, and its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Product {
    /// What it is.
    pub name: String,
    /// Its time.
    #[serde(flatten)]
    pub measured: ProductTime,
}

/// On a device: a work-item for each element of C without local memory; tiles with one element for each work-item; the tiles found by
/// tuning, or the usual ones; and with `all_tiles` all others that are worth a trial. What the device does not compile or run is left out.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`]; [`Error::Usage`] for a device without double precision, asked for it; a failing device.
pub fn products(info: &Info, n: usize, precision: Precision, all_tiles: bool, repeat: usize) -> Result<Vec<Product>> {
    match precision.of_vectors() {
        Precision::F64 if !info.has_f64 => {
            Err(Error::Usage(format!("{} has no double precision: use --precision f32", info.label())))
        }
        Precision::F64 => products_in::<f64>(info, n, all_tiles, repeat),
        _ => products_in::<f32>(info, n, all_tiles, repeat),
    }
}

fn products_in<T: Real>(info: &Info, n: usize, all_tiles: bool, repeat: usize) -> Result<Vec<Product>> {
    let ctx = Context::open(info)?;
    let mut products = Products::<T>::new(&ctx, n)?;
    let tuned = products::tiles::<T>(&ctx);
    let shape = Shape::of(info);
    let mut all = vec![("naive".to_string(), tuned, true)];
    if shape == Shape::Gpu {
        let plain = [8, 16, 32].map(Tiles::of_single_elements).into_iter().filter(|tiles| tiles.fits::<T>(&ctx));
        all.extend(plain.map(|tiles| (format!("tiles {0}x{0}", tiles.tile[0]), tiles, false)));
    }
    all.push(("tuned".into(), tuned, false));
    if all_tiles {
        let others = Tiles::candidates::<T>(&ctx, shape).into_iter().filter(|tiles| *tiles != tuned);
        all.extend(others.map(|tiles| (format!("tiles {}x{}", tiles.tile[0], tiles.tile[1]), tiles, false)));
    }
    let mut found = Vec::new();
    let mut failure = None;
    for (name, tiles, is_naive) in all {
        match products.time(tiles, is_naive, repeat) {
            Ok(measured) => found.push(Product { name, measured }),
            Err(e) => {
                log::warn!("{}: {name}: {e}", info.name);
                failure = Some(e);
            }
        }
    }
    match failure {
        Some(e) if found.is_empty() => Err(e),
        _ => Ok(found),
    }
}

/// The same on the host's threads, by the crate `faer`: seconds.
#[must_use]
pub fn host_product(n: usize, precision: Precision, repeat: usize) -> Timing {
    match precision.of_vectors() {
        Precision::F64 => host_product_in::<f64>(n, repeat),
        _ => host_product_in::<f32>(n, repeat),
    }
}

fn host_product_in<T: Real + RealField>(n: usize, repeat: usize) -> Timing {
    let number = |i: usize, j: usize| T::from_f64(((i + 7 * j) % 31) as f64 / 31.0 - 0.5);
    let (a, b) = (Mat::from_fn(n, DEPTH, number), Mat::from_fn(DEPTH, n, number));
    let mut c = Mat::<T>::zeros(n, n);
    let mut run = || {
        let start = Instant::now();
        matmul(&mut c, Accum::Add, &a, &b, T::from_f64(-1.0), Par::rayon(0));
        start.elapsed().as_secs_f64()
    };
    run();
    timing((0..repeat).map(|_| run()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn all_ways_are_timed() {
        let device = list().devices.remove(0);
        let found = products(&device, 65, Precision::F32, true, 1).unwrap();
        assert!(found.len() > 2 && found[0].measured.is_naive);
        for Product { name, measured } in found {
            assert!(measured.time.median > 0.0 && measured.time.runs == 1, "{name}");
            let flops = measured.flops_per_second * measured.time.median;
            assert!((flops / (2.0 * 65.0 * 65.0 * 128.0) - 1.0).abs() < 1e-9, "{name}");
        }
        assert_eq!(host_product(33, Precision::F64, 2).runs, 2);
    }
}
