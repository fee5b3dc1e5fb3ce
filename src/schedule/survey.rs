//! Which formats a matrix could have on a device, without one.

use serde::Serialize;

use crate::kernels::Shape;
use crate::matrix::{Csr, Equilibration};
use crate::operator::Format;
use crate::operator::plan::{Offer, Target, by_bytes};
use crate::partition::{Part, split};
use crate::precond::Precond;
use crate::precond::scaling::Scaling;
use crate::real::{Precision, Real};
use crate::runtime::Setup;

/// What each format would read of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FormatSurvey {
    /// The formats.
    #[serde(rename = "each")]
    pub formats: Vec<FormatBytes>,
    /// What the rule of bytes takes on a GPU for which there are rows enough.
    #[serde(rename = "auto_on_gpu")]
    pub on_gpu: Format,
    /// What it takes on a CPU.
    #[serde(rename = "auto_on_cpu")]
    pub on_cpu: Format,
}

/// What one format would read of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FormatBytes {
    /// The format.
    pub format: Format,
    /// Bytes that a product reads and writes, each array counted once; none if the rows do not fit.
    pub bytes: Option<u64>,
    /// The same for each entry, if there are any.
    pub bytes_per_entry: Option<f64>,
    /// In a few words, why the rows do not fit.
    pub obstacle: Option<String>,
}

/// Looks at what each format would read of the square matrix `a` on one device, as `setup` would have it there: in the
/// precision of the iteration, and scaled by its diagonal for [`Precond::Jacobi`]. Some six passes over the entries.
///
/// ```
/// use declive::matrix::gallery;
/// use declive::solve::{Format, formats};
///
/// let a = gallery::poisson2d([20, 20])?; // 400 rows, 1920 entries
/// let survey = formats(&a, &declive::Setup::default());
/// // columns and values; row pointers; both vectors
/// let csr = survey.formats.iter().find(|one| one.format == Format::Csr).unwrap();
/// assert_eq!(csr.bytes, Some(1920 * 12 + 401 * 4 + 2 * 400 * 8));
/// assert_eq!(survey.on_cpu, Format::Dictionary);
/// # Ok::<(), declive::Error>(())
/// ```
///
/// # Panics
/// If `a` is not square.
#[must_use]
pub fn formats(a: &Csr, setup: &Setup) -> FormatSurvey {
    assert_eq!(a.n_rows(), a.n_cols(), "rows and columns");
    let equilibrated = match setup.precond {
        Precond::Transversal => Equilibration::of(a, setup.precision.of_vectors() == Precision::F32)
            .ok()
            .and_then(Result::ok)
            .and_then(|of| of.matrix(a).ok()),
        _ => None,
    };
    let a = equilibrated.as_ref().unwrap_or(a);
    let mut part = split(a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
    if setup.method.scales_by(setup.precond) {
        let scaled = Scaling::of(&a.diagonal(), 1.0).and_then(|scaling| scaling.values(a, 0..a.n_rows()).ok());
        (part.values, part.of) = (scaled.map_or(part.values, Into::into), None);
    }
    match setup.precision.of_vectors() {
        Precision::F64 => survey::<f64>(&part),
        Precision::F32 | Precision::Mixed => survey::<f32>(&part),
    }
}

fn survey<T: Real>(part: &Part<'_>) -> FormatSurvey {
    let [gpu, cpu] = [Shape::Gpu, Shape::Cpu].map(|shape| Target { shape, compute_units: 1 });
    let all = Offer::<T>::each(part, 1.0, gpu);
    let of = |(format, offer): &(Format, Result<Offer<'_, T>, String>)| {
        let bytes = offer.as_ref().ok().map(|offer| offer.bytes);
        let bytes_per_entry = bytes.filter(|_| part.nnz() > 0).map(|bytes| bytes as f64 / part.nnz() as f64);
        FormatBytes { format: *format, bytes, bytes_per_entry, obstacle: offer.as_ref().err().cloned() }
    };
    let formats = all.iter().map(of).collect();
    let best = |possible: &[Offer<'_, T>], target| possible[by_bytes(possible, target)].format;
    let on_cpu = Offer::<T>::of(part, 1.0, Format::Auto, cpu).map_or(Format::Csr, |offer| offer.format);
    let possible: Vec<_> = all.into_iter().filter_map(|(_, offer)| offer.ok()).collect();
    FormatSurvey { formats, on_gpu: best(&possible, gpu), on_cpu }
}
