//! Factorisations of a dense matrix, and solves by them.

use std::time::Instant;

use serde::Serialize;

use crate::dense::{Element, Factor, Kind, Matrix, Times};
use crate::device::Info;
use crate::error::Result;
use crate::real::{Precision, Real};

/// After so many seconds what was measured is enough.
const ENOUGH: f64 = 5.0;

/// Right-hand sides that are solved together.
const COLUMNS: usize = 64;

/// A factorisation on the host or on devices. Times are those of the best of several runs, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Factorisation {
    /// Which one.
    pub kind: Kind,
    /// The devices; none for the host.
    pub devices: Vec<String>,
    /// Where its time went.
    pub times: Times,
    /// The factors on their way back.
    pub download: f64,
    /// A solve with one right-hand side, and with 64.
    pub solves: [f64; 2],
    /// Multiplications and additions.
    pub flops: f64,
    /// ‖b − A x‖∞ / (‖A‖₁ ‖x‖₁ + ‖b‖∞) of the solve, not refined.
    pub backward_error: f64,
}

impl Factorisation {
    /// Seconds with the matrix on its way there and back, and butterflies before that.
    #[must_use]
    pub fn with_transfers(&self) -> f64 {
        self.times.transform + self.times.upload + self.times.factorise + self.download
    }

    /// The part of the factorisation that more devices would not shorten: what panels took.
    #[must_use]
    pub fn serial_share(&self) -> f64 {
        (self.times.panels / self.times.factorise).min(1.0)
    }
}

/// How many times faster p processors are if a share `serial` of the work is for one alone: G. M. Amdahl 1967, doi 10.1145/1465482.1465560.
#[must_use]
pub fn amdahl(serial: f64, p: f64) -> f64 {
    1.0 / (serial + (1.0 - serial) / p)
}

/// How many times more p processors do in the same time if a share `serial` of it is for one alone: J. L. Gustafson 1988, doi
/// 10.1145/42411.42415.
#[must_use]
pub fn gustafson(serial: f64, p: f64) -> f64 {
    serial + p * (1.0 - serial)
}

/// L U, L Lᵀ and L D Lᵀ of a matrix of order n on these devices, by blocks of so many columns, at most 256, or without any on the host: the best of
/// `repeat` runs, or of those of five seconds.
///
/// # Errors
/// Those of [`Factor::new`].
pub fn factorisations(
    devices: &[Info],
    n: usize,
    precision: Precision,
    block: usize,
    repeat: usize,
) -> Result<Vec<Factorisation>> {
    match precision.of_vectors() {
        Precision::F64 => Kind::ALL.iter().map(|&kind| one::<f64>(devices, n, kind, (block, repeat))).collect(),
        _ => Kind::ALL.iter().map(|&kind| one::<f32>(devices, n, kind, (block, repeat))).collect(),
    }
}

fn one<T: Element + Real>(
    devices: &[Info],
    n: usize,
    kind: Kind,
    (block, repeat): (usize, usize),
) -> Result<Factorisation> {
    let a = matrix::<T>(kind, n)?;
    let b: Vec<T> = (0..n * COLUMNS).map(|k| T::from_f64((k % 17) as f64 - 8.0)).collect();
    let (mut best, begin): (Option<Factorisation>, _) = (None, Instant::now());
    for run in 0..repeat.max(1) {
        if run > 0 && begin.elapsed().as_secs_f64() > ENOUGH {
            break;
        }
        let mut factor = Factor::on(a.clone(), kind, devices, block)?;
        let mut x = b[..n].to_vec();
        factor.solve(&mut x)?;
        x.copy_from_slice(&b[..n]);
        let single = timed(|| factor.solve(&mut x))?;
        let mut many = b.clone();
        let several = timed(|| factor.solve(&mut many))?;
        let download = if devices.is_empty() { 0.0 } else { timed(|| factor.values().map(drop))? };
        let found = Factorisation {
            kind,
            devices: factor.devices(),
            times: factor.times(),
            download,
            solves: [single, several],
            flops: (n as f64).powi(3) * if kind == Kind::Lu { 2.0 / 3.0 } else { 1.0 / 3.0 },
            backward_error: backward_error(&a, &b[..n], &x),
        };
        if best.as_ref().is_none_or(|best| found.times.factorise < best.times.factorise) {
            best = Some(found);
        }
    }
    best.ok_or_else(|| crate::error::Error::Usage("nothing was measured".into()))
}

/// Symmetric, definite for Cholesky by its diagonal, which for L D Lᵀ has both signs; the pivots of L U are elsewhere.
///
/// # Errors
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
pub(crate) fn matrix<T: Element>(kind: Kind, n: usize) -> Result<Matrix<T>> {
    Matrix::from_fn(n, |i, j| {
        let (low, high) = (i.min(j), i.max(j));
        let value = ((low * 7919 + high * 104_729) % 1009) as f64 / 1009.0 - 0.5;
        T::from_f64(match kind {
            Kind::Cholesky if i == j => n as f64,
            Kind::Ldlt if i == j => [n as f64, -(n as f64)][i % 2],
            _ => value,
        })
    })
}

/// Seconds.
pub(super) fn timed(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

/// ‖b − A x‖∞ / (‖A‖₁ ‖x‖₁ + ‖b‖∞).
pub(crate) fn backward_error<T: Element + Real>(a: &Matrix<T>, b: &[T], x: &[T]) -> f64 {
    let [b, x] = [b, x].map(|v| v.iter().map(|v| v.to_f64()).collect::<Vec<_>>());
    let mut r = vec![0.0; b.len()];
    a.residual(&b, &x, &mut r);
    let largest = |v: &[f64]| v.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let of_x: f64 = x.iter().map(|x| x.abs()).sum();
    largest(&r) / (a.norm_1() * of_x + largest(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    /// The exercises of F. Alfaro Vigo, G. Rossetto, "Programação paralela em GPU para métodos numéricos", SBMAC 2016, section 1.5.
    #[test]
    fn speedups_by_hand() {
        assert!((amdahl(0.2, 4.0) - 2.5).abs() < 1e-12 && (amdahl(0.2, 16.0) - 4.0).abs() < 1e-12);
        assert!((amdahl(0.5, 4.0) - 1.6).abs() < 1e-12);
        assert!((gustafson(0.2, 4.0) - 3.4).abs() < 1e-12 && (gustafson(0.5, 4.0) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn both_places() {
        let device = list().devices.remove(0);
        for devices in [vec![], vec![device]] {
            for found in factorisations(&devices, 150, Precision::F32, 32, 1).unwrap() {
                let Factorisation { kind, times, solves, backward_error, .. } = &found;
                assert!(times.factorise > 0.0 && solves.iter().all(|&s| s > 0.0), "{kind}");
                assert!(*backward_error < 1e-5 && (0.0..=1.0).contains(&found.serial_share()), "{found:?}");
                assert_eq!(found.devices.len(), devices.len());
                assert!(found.with_transfers() >= times.factorise);
            }
        }
    }
}
