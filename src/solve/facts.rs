//! What is known of a matrix before it is solved with: all that its values decide, but for the way that rows are stored.

use super::null_space::NullSpace;
use super::reach::power_of_two_near;
use crate::error::{Error, Result};
use crate::krylov::{Indefinite, Method};
use crate::matrix::Csr;
use crate::matrix::stats::Stats;
use crate::precond::Precond;
use crate::real::Precision;
use crate::runtime::Setup;

/// What is known of a matrix.
pub(super) struct Facts {
    pub(super) stats: Stats,
    /// What the ranks' matrix is multiplied by.
    pub(super) factor: f64,
    /// Whether it is symmetric, or is to be taken for it.
    pub(super) is_symmetric: bool,
    /// What shows without an iteration that it is not positive definite.
    pub(super) obstacle: Option<Indefinite>,
    /// What is known of its null space.
    pub(super) null_space: Option<NullSpace>,
}

impl Facts {
    /// Of a matrix that has these statistics. By a transversal, no entry is much larger than 1.
    ///
    /// # Errors
    /// [`Error::NotSymmetric`] for a method that needs a symmetric matrix; [`Error::BeyondSingle`].
    pub(super) fn of(a: &Csr, stats: Stats, setup: &Setup, is_by_transversal: bool) -> Result<Self> {
        let stats = check(stats, setup)?;
        let factor = if is_by_transversal { 1.0 } else { matrix_factor(a, &stats, setup)? };
        let has_pairs = stats.asymmetry.is_none() || setup.assume_symmetric;
        let is_symmetric = has_pairs && setup.precond != Precond::Transversal; // rows are moved
        let obstacle = obstacle(a, &stats, is_symmetric);
        let null_space = NullSpace::of(a, is_symmetric);
        Ok(Self { stats, factor, is_symmetric, obstacle, null_space })
    }
}

/// What shows that a matrix is not positive definite: that it is not symmetric, or its diagonal.
fn obstacle(a: &Csr, stats: &Stats, is_symmetric: bool) -> Option<Indefinite> {
    if let Some(pair) = stats.asymmetry.as_ref().filter(|_| !is_symmetric) {
        let (upper, lower) = (pair.upper, pair.lower);
        return Some(Indefinite::Asymmetry { row: pair.row + 1, col: pair.col + 1, upper, lower });
    }
    let diagonal = &stats.diagonal;
    let first = [diagonal.missing_or_zero, diagonal.negative].into_iter().flatten().min()?;
    let row = first + 1;
    Some(match a.row(first).0 {
        [] => Indefinite::EmptyRow { row },
        _ => Indefinite::Diagonal { row, value: a.get(first, first).unwrap_or(0.0) },
    })
}

/// Checks a matrix of which this is known.
pub(super) fn check(stats: Stats, setup: &Setup) -> Result<Stats> {
    if let Some(found) = &stats.asymmetry
        && setup.method != Method::Auto
        && setup.method.needs_symmetric()
        && !setup.assume_symmetric
    {
        return Err(Error::NotSymmetric {
            method: setup.method.name(),
            row: found.row + 1,
            col: found.col + 1,
            upper: found.upper,
            lower: found.lower,
        });
    }
    Ok(stats)
}

/// The power of two that the ranks' matrix is multiplied by, so that its entries and sums are well inside the range of the
/// precision. Powers of two round nothing.
pub(super) fn matrix_factor(a: &Csr, stats: &Stats, setup: &Setup) -> Result<f64> {
    let largest = stats.largest;
    let factor = 1.0 / power_of_two_near(largest);
    match setup.precision {
        Precision::F64 if (2f64.powi(-400)..2f64.powi(400)).contains(&largest) => Ok(1.0),
        Precision::F64 => Ok(factor),
        Precision::F32 | Precision::Mixed => {
            let has_diagonal = stats.diagonal.missing_or_zero.is_none() && !setup.method.minimises();
            let smallest = has_diagonal.then(|| a.diagonal());
            let lost = |d: &f64| *d > 0.0 && ((d * factor) as f32) < f32::MIN_POSITIVE;
            match smallest.and_then(|d| d.iter().position(lost).map(|i| (i, d[i]))) {
                Some((i, value)) => Err(Error::BeyondSingle { row: i + 1, value, largest }),
                None => Ok(factor),
            }
        }
    }
}
