//! Iterative refinement.

use rayon::prelude::*;

use std::convert::Infallible;

use super::Factor;
use crate::matrix::Csr;
use crate::verify::{difference, norm_2};

/// The most steps.
pub(crate) const STEPS: usize = 10;

/// A step that lowers the residual by less is the last.
const ENOUGH: f64 = 2.0;

/// What is done with the x that a step has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is taken back,
    Back,
    /// kept, but not refined any more,
    Last,
    /// or refined once more.
    On,
}

impl Step {
    /// Of a step from an x with this ‖b − A x‖₂ to one with another.
    pub(crate) fn of(before: f64, after: f64, next: &[f64]) -> Self {
        if after >= before || after.is_nan() || !next.iter().all(|v| v.is_finite()) {
            Self::Back
        } else if after == 0.0 || after * ENOUGH > before {
            Self::Last
        } else {
            Self::On
        }
    }
}

/// What came of a refinement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refinement {
    /// Corrections that were added and kept.
    pub steps: usize,
    /// ‖b − A x‖₂, at the end.
    pub residual: f64,
}

/// Improves `x` by x += A⁻¹ (b − A x), where A⁻¹ is what the factor makes of it, as long as a step halves ‖b − A x‖₂ and for 10
/// steps at most; one that does not lower it is taken back. Residuals are summed as if in twice the precision, see
/// [`residual`](crate::verify::residual), so that the backward error gets as small as it can be, unless the factor is too far
/// from A. x = 0 is a start as good as any. A product with A and a solve a step.
///
/// N. J. Higham, "Accuracy and stability of numerical algorithms", SIAM 2002, chapter 12.
///
/// # Panics
/// If `b` or `x` has not one element a row.
pub(crate) fn refine(a: &Csr, factor: &Factor, b: &[f64], x: &mut [f64]) -> Refinement {
    let solve = |r: &[f64], d: &mut [f64]| {
        factor.solve(r, d);
        Ok::<_, Infallible>(())
    };
    match refine_by(|x, r| residual(a, b, x, r), solve, x) {
        Ok(refinement) => refinement,
        Err(never) => match never {},
    }
}

/// The same, where `residual` makes b − A x of x, and `solve` A⁻¹ r of r.
///
/// # Errors
/// Those of `solve`: x is the last one that was kept.
pub(crate) fn refine_by<E>(
    residual: impl Fn(&[f64], &mut [f64]),
    mut solve: impl FnMut(&[f64], &mut [f64]) -> Result<(), E>,
    x: &mut [f64],
) -> Result<Refinement, E> {
    let n = x.len();
    let (mut r, mut d, mut next) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    residual(x, &mut r);
    let mut norm = norm_2(&r);
    for steps in 0..STEPS {
        if norm == 0.0 {
            return Ok(Refinement { steps, residual: norm });
        }
        solve(&r, &mut d)?;
        for (next, (x, d)) in next.iter_mut().zip(x.iter().zip(&d)) {
            *next = x + d;
        }
        residual(&next, &mut r);
        let after = norm_2(&r);
        let step = Step::of(norm, after, &next);
        if step == Step::Back {
            return Ok(Refinement { steps, residual: norm });
        }
        x.copy_from_slice(&next);
        norm = after;
        if step == Step::Last {
            return Ok(Refinement { steps: steps + 1, residual: norm });
        }
    }
    Ok(Refinement { steps: STEPS, residual: norm })
}

/// r = b − A x.
fn residual(a: &Csr, b: &[f64], x: &[f64], r: &mut [f64]) {
    r.par_iter_mut().enumerate().for_each(|(i, r)| {
        let (cols, values) = a.row(i);
        *r = difference(b[i], cols.iter().zip(values).map(|(&j, &v)| (v, x[j as usize])));
    });
}
