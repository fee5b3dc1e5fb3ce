//! A solve by factors of a matrix as a dense one: on devices or the host, refined on the host, and checked as any other.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use super::null_space::NullSpace;
use super::statistics::{Answer, Statistics};
use super::under_way::{UnderWay, reason_to_end};
use crate::dense::{Element, Factor, Kind, Matrix, Times};
use crate::device::Choice;
use crate::direct::{Refinement, refine_by};
use crate::error::{Error, Result};
use crate::krylov::{Reason, Singularity};
use crate::matrix::Csr;
use crate::memory::available_bytes;
use crate::real::Precision;
use crate::runtime::{Control, Stop};
use crate::timeline::stages::stage;
use crate::verify::{self, difference};

/// The least order of a matrix that is taken for a dense one by itself: smaller ones are factorised as sparse ones in no time.
const LEAST: usize = 256;
/// One entry of so many elements is enough for that.
const SPARSENESS: usize = 10;
/// A backward error that no other factors would lower much.
const AS_GOOD_AS_ANY: f64 = 8.0 * f64::EPSILON;

/// Whether [`Method::Auto`](super::Method::Auto) factorises a matrix as a dense one: of order 256 at least, with a tenth of its elements
/// entries, and with room for all of them, and as much again, in the host's memory.
#[must_use]
pub fn is_dense(a: &Csr) -> bool {
    let n = a.n_rows();
    let elements = n.saturating_mul(n);
    let bytes = 16 * elements as u64;
    n == a.n_cols()
        && n >= LEAST
        && a.nnz() >= elements / SPARSENESS
        && available_bytes().is_none_or(|free| bytes <= free)
}

/// Whether [`Method::Auto`](super::Method::Auto) begins with dense factors of a real matrix, which may be positive definite or is known not
/// to be: of one that [is dense](is_dense), but for those that are known to be semidefinite.
#[must_use]
pub fn dense_first(a: &Csr, may_be_definite: bool) -> bool {
    is_dense(a) && !(may_be_definite && NullSpace::of(a, true).is_some())
}

/// The factors of a solve, and where they are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DenseFactors {
    /// Which ones.
    pub kind: Kind,
    /// `f64` or `f32`.
    pub precision: Precision,
    /// The devices that have them; none where it is the host.
    pub devices: Vec<String>,
    /// Where the time of the factorisation went.
    pub times: Times,
    /// κ₁ of the matrix, if it was [estimated](super::Solver::estimate_condition).
    pub condition: Option<f64>,
    /// Why they are not those of [`Kind::Ldlt`], which devices were to make first.
    pub exchanges: Option<Exchanges>,
}

/// Why rows of a symmetric matrix had to be exchanged after all: [`Kind::Lu`] took the place of [`Kind::Ldlt`] on devices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Exchanges {
    /// A pivot was nothing but rounding errors.
    Pivot {
        /// Which one, from 1.
        column: usize,
    },
    /// The factors were too far from the matrix for refinement.
    Inexact {
        /// The backward error that it came to.
        backward_error: f64,
    },
}

impl fmt::Display for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pivot { column } => write!(f, "pivot {column} of LDLᵀ was 0 but for rounding errors"),
            Self::Inexact { backward_error } => {
                write!(f, "by LDLᵀ without pivots, refinement came to a backward error of {backward_error:.1e}")
            }
        }
    }
}

/// A matrix, factorised in one of the precisions.
enum Made {
    Double(Factor<f64>),
    Single(Factor<f32>),
    /// The column, from 1, that has no pivot, whatever the factors.
    Singular(usize),
}

impl Made {
    fn solve(&mut self, a: &Csr, b: &[f64], x: &mut [f64]) -> Result<Option<Refinement>> {
        match self {
            Self::Double(factor) => refined(a, factor, b, x).map(Some),
            Self::Single(factor) => refined(a, factor, b, x).map(Some),
            Self::Singular(_) => Ok(None),
        }
    }

    fn facts(&self, known: (Option<f64>, Option<Exchanges>)) -> Option<DenseFactors> {
        Some(match self {
            Self::Double(factor) => facts(factor, Precision::F64, known),
            Self::Single(factor) => facts(factor, Precision::F32, known),
            Self::Singular(_) => return None,
        })
    }

    /// Whether rows may have to be exchanged that were not.
    fn may_need_pivots(&self) -> bool {
        let is_without = |kind: Kind, devices: Vec<String>| kind == Kind::Ldlt && !devices.is_empty();
        match self {
            Self::Double(factor) => is_without(factor.kind(), factor.devices()),
            Self::Single(factor) => is_without(factor.kind(), factor.devices()),
            Self::Singular(_) => false,
        }
    }

    fn column_without_pivot(&self) -> Result<Option<usize>> {
        match self {
            Self::Double(factor) => factor.column_without_pivot(),
            Self::Single(factor) => factor.column_without_pivot(),
            Self::Singular(column) => Ok(Some(*column)),
        }
    }

    fn condition(&self) -> Result<Option<f64>> {
        match self {
            Self::Double(factor) => factor.condition().map(Some),
            Self::Single(factor) => factor.condition().map(Some),
            Self::Singular(_) => Ok(None),
        }
    }
}

fn facts<T: Element>(
    factor: &Factor<T>,
    precision: Precision,
    (condition, exchanges): (Option<f64>, Option<Exchanges>),
) -> DenseFactors {
    let kind = factor.kind();
    // after factors in single precision, those in double precision may come without
    let exchanges = exchanges.filter(|_| kind == Kind::Lu);
    DenseFactors { kind, precision, devices: factor.devices(), times: factor.times(), condition, exchanges }
}

fn refined<T: Element>(a: &Csr, factor: &mut Factor<T>, b: &[f64], x: &mut [f64]) -> Result<Refinement> {
    let residual = |x: &[f64], r: &mut [f64]| {
        r.par_iter_mut().enumerate().for_each(|(i, r)| {
            let (cols, values) = a.row(i);
            *r = difference(b[i], cols.iter().zip(values).map(|(&j, &v)| (v, x[j as usize])));
        });
    };
    refine_by(residual, |r, d| factor.correction(r, d), x)
}

enum Stage {
    /// Nobody waited to the end of it.
    UnderWay(UnderWay<Result<(Made, Option<Exchanges>)>>),
    Made(Made),
}

/// The factorisation of a matrix as a dense one, made when it is first needed.
pub(super) struct Dense {
    stage: Option<Stage>,
    kind: Kind,
    devices: Choice,
    precision: Precision,
    condition: Option<f64>,
    exchanges: Option<Exchanges>,
}

impl fmt::Debug for Dense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dense").field("kind", &self.kind).field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl Dense {
    /// For a matrix that is symmetric or not, and may be definite or is known not to be. With [`Precision::Mixed`], factors in single
    /// precision come first, and others where these do not serve.
    pub(super) fn new((is_symmetric, may_be_definite): (bool, bool), devices: &Choice, precision: Precision) -> Self {
        let kind = match (is_symmetric, may_be_definite) {
            (true, true) => Kind::Cholesky,
            (true, false) => Kind::Ldlt,
            (false, _) => Kind::Lu,
        };
        Self { stage: None, kind, devices: devices.clone(), precision, condition: None, exchanges: None }
    }

    /// What is known of the factors, once there are some.
    pub(super) fn facts(&self) -> Option<DenseFactors> {
        match &self.stage {
            Some(Stage::Made(made)) => made.facts((self.condition, self.exchanges)),
            _ => None,
        }
    }

    /// A⁻¹ r for several r at once, by the factors, if there are some.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn corrections(&mut self, r: &[&[f64]]) -> Result<Option<Vec<Vec<f64>>>> {
        match &mut self.stage {
            Some(Stage::Made(Made::Double(factor))) => factor.corrections(r).map(Some),
            Some(Stage::Made(Made::Single(factor))) => factor.corrections(r).map(Some),
            _ => Ok(None),
        }
    }

    /// Estimates κ₁ by the factors, if there are some.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a failing device.
    pub(super) fn estimate_condition(&mut self) -> Result<Option<f64>> {
        if let (Some(Stage::Made(made)), None) = (&self.stage, self.condition) {
            let _estimating = stage("estimate");
            self.condition = made.condition()?;
        }
        Ok(self.condition)
    }

    /// Solves the system for `b` from and to `x`, for a solve that began at `begin`. A factorisation that takes longer than the caller
    /// waits goes on for the next one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::OutOfDeviceMemory`]; a failing device.
    pub(super) fn solve(
        &mut self,
        a: &Arc<Csr>,
        b: &[f64],
        x: &mut [f64],
        (stop, control, begin): (&Stop, Control<'_>, Instant),
        (statistics, ranks): (&mut Statistics, usize),
    ) -> Result<Answer> {
        statistics.early = None;
        let solving = stage("solve");
        let is_over = || reason_to_end(stop, &control, begin);
        let first = verify::residual(a, b, x);
        let (mut steps, mut late) = (0, None);
        loop {
            late = self.complete(a, is_over)?.or(late);
            let Some(Stage::Made(made)) = &mut self.stage else { break };
            steps += made.solve(a, b, x)?.map_or(0, |refinement| refinement.steps as u64);
            let is_single = self.precision == Precision::Mixed && !matches!(made, Made::Double(_));
            let is_without_pivots = made.may_need_pivots();
            if !is_single && !is_without_pivots {
                break;
            }
            let residual = verify::residual(a, b, x);
            if stop.met(&residual).is_some() {
                break;
            }
            if is_single {
                log::info!("factors in single precision do not serve: the matrix is factorised in double precision");
                self.precision = Precision::F64;
            } else if residual.backward_error <= AS_GOOD_AS_ANY {
                break;
            } else {
                let exchanges = Exchanges::Inexact { backward_error: residual.backward_error };
                log::info!("{exchanges}: LU factors are next");
                (self.kind, self.exchanges) = (Kind::Lu, Some(exchanges));
            }
            (self.stage, self.condition) = (None, None);
        }
        let time = solving.end();
        let verifying = stage("verify");
        let residual = verify::residual(a, b, x);
        statistics.verify += verifying.end();
        statistics.add_factorised(steps, [first.relative_2, residual.relative_2], ranks, time);
        let reason = match (late, stop.met(&residual)) {
            (Some(Reason::Interrupted), _) => Reason::Interrupted,
            (_, Some(criterion)) => Reason::Converged(criterion),
            (Some(late), None) => late,
            (None, None) => {
                let made = if let Some(Stage::Made(made)) = &self.stage { Some(made) } else { None };
                let column = made.map(Made::column_without_pivot).transpose()?.flatten();
                column.map_or(Reason::Stagnation, |column| Reason::Singular(Singularity::Column { column }))
            }
        };
        Ok((reason, residual))
    }

    /// Factorises the matrix, if that is not done yet, unless there is a reason to give that up.
    fn complete(&mut self, a: &Arc<Csr>, is_over: impl Fn() -> Option<Reason>) -> Result<Option<Reason>> {
        let under_way = match self.stage.take() {
            Some(Stage::UnderWay(under_way)) => under_way,
            None => {
                let (a, kind, devices, precision) = (Arc::clone(a), self.kind, self.devices.clone(), self.precision);
                UnderWay::begin(move || match precision {
                    Precision::F64 => made::<f64>(&a, kind, &devices, Made::Double),
                    Precision::F32 | Precision::Mixed => made::<f32>(&a, kind, &devices, Made::Single),
                })
            }
            made => {
                self.stage = made;
                return Ok(None);
            }
        };
        match under_way.wait(is_over) {
            Ok(made) => {
                let (made, exchanges) = made?;
                self.exchanges = self.exchanges.or(exchanges);
                self.stage = Some(Stage::Made(made));
            }
            Err((under_way, reason)) => {
                self.stage = Some(Stage::UnderWay(under_way));
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }
}

/// Factors of this kind, or of the next one where the matrix has not this one: Cholesky, L D Lᵀ, and L U where devices don't come to
/// an end of that, with the reason.
fn made<T: Element>(
    a: &Csr,
    mut kind: Kind,
    devices: &Choice,
    of: impl Fn(Factor<T>) -> Made,
) -> Result<(Made, Option<Exchanges>)> {
    let mut exchanges = None;
    loop {
        match Factor::new(Matrix::from_csr(a)?, kind, devices) {
            Ok(factor) => return Ok((of(factor), exchanges)),
            Err(Error::NotDefinite { column, .. }) => {
                log::debug!("no Cholesky factor, by column {column}: LDLᵀ is next");
                kind = Kind::Ldlt;
            }
            Err(Error::NeedsPivots { column, .. }) => {
                let why = Exchanges::Pivot { column };
                log::info!("{why}: LU factors are next");
                (kind, exchanges) = (Kind::Lu, Some(why));
            }
            Err(Error::SingularMatrix { column, .. }) => return Ok((Made::Singular(column), exchanges)),
            Err(e) => return Err(e),
        }
    }
}
