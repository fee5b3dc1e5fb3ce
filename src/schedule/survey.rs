//! Which formats a matrix could have on a device, without one.

use crate::kernels::Shape;
use crate::matrix::Csr;
use crate::operator::Format;
use crate::operator::plan::{Offer, Target, by_bytes};
use crate::partition::{Part, split};
use crate::precond::scaling::Scaling;
use crate::real::{Precision, Real};
use crate::runtime::Setup;

/// What each format would read of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatSurvey {
    /// Each format with the bytes that a product reads and writes, each array counted once; or, in a few words, why the
    /// rows do not fit it.
    pub formats: Vec<(Format, Result<u64, String>)>,
    /// What the rule of bytes takes on a GPU for which there are rows enough.
    pub on_gpu: Format,
    /// What it takes on a CPU.
    pub on_cpu: Format,
}

/// Looks at what each format would read of the square matrix `a` on one device, as `setup` would have it there: in the
/// precision of the iteration, and scaled by its diagonal for [`Precond::Jacobi`](crate::solve::Precond::Jacobi). Some six passes over the entries.
///
/// ```
/// use declive::matrix::gallery;
/// use declive::solve::{Format, formats};
///
/// let a = gallery::poisson2d([20, 20])?; // 400 rows, 1920 entries
/// let survey = formats(&a, &declive::Setup::default());
/// // columns and values; row pointers; both vectors
/// assert!(survey.formats.contains(&(Format::Csr, Ok(1920 * 12 + 401 * 4 + 2 * 400 * 8))));
/// assert_eq!(survey.on_cpu, Format::Dictionary);
/// # Ok::<(), declive::Error>(())
/// ```
///
/// # Panics
/// If `a` is not square.
#[must_use]
pub fn formats(a: &Csr, setup: &Setup) -> FormatSurvey {
    assert_eq!(a.n_rows(), a.n_cols(), "rows and columns");
    let mut part = split(a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
    if setup.method.scales_by(setup.precond) {
        let scaling = Scaling::of(&a.diagonal(), 1.0);
        part.values = scaling.map_or(part.values, |scaling| scaling.values(a, 0..a.n_rows()).into());
    }
    match setup.precision.of_vectors() {
        Precision::F64 => survey::<f64>(&part),
        Precision::F32 | Precision::Mixed => survey::<f32>(&part),
    }
}

fn survey<T: Real>(part: &Part<'_>) -> FormatSurvey {
    let [gpu, cpu] = [Shape::Gpu, Shape::Cpu].map(|shape| Target { shape, compute_units: 1 });
    let all = Offer::<T>::each(part, 1.0, gpu);
    let bytes = |offer: &Result<Offer<'_, T>, String>| offer.as_ref().map(|offer| offer.bytes).map_err(String::clone);
    let formats = all.iter().map(|(format, offer)| (*format, bytes(offer))).collect();
    let best = |possible: &[Offer<'_, T>], target| possible[by_bytes(possible, target)].format;
    let possible: Vec<_> = all.into_iter().filter_map(|(_, offer)| offer.ok()).collect();
    FormatSurvey { formats, on_gpu: best(&possible, gpu), on_cpu: best(&Offer::all(part, 1.0, cpu, false), cpu) }
}
