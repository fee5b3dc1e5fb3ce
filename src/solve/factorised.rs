//! A solve by factors of the matrix: on the host, refined, and checked as any other.

use std::sync::Arc;
use std::time::Instant;

use super::chain::is_rounding;
use super::null_space::NullSpace;
use super::statistics::{Answer, Statistics};
use super::under_way::{UnderWay, reason_to_end};
use crate::direct::{Analysis, Factor, Kind, Singular, is_narrow, refine};
use crate::error::{Error, Result};
use crate::krylov::{Method, Reason, Singularity};
use crate::matrix::Csr;
use crate::matrix::equivalent::is_real_form;
use crate::memory::available_bytes;
use crate::runtime::{Control, Stop};
use crate::timeline::stages::stage;
use crate::verify;

/// Operations that take the host less than a device takes to open, some 50 ms: for L U and L D Lᵀ, and for L Lᵀ, whose blocks are larger.
const FEW: f64 = 5e7;
const FEW_OF_CHOLESKY: f64 = 5e8;

/// Entries of a matrix that is analysed, if the analysis alone decides whether it is factorised: some 50 ms, too.
const FEW_ENTRIES: usize = 400_000;

/// Operations that the host does in a second, at least.
const RATE: f64 = 1e9;

/// The factors that [`Method::Auto`] begins with, if it does and no devices are named: [`Method::Tridiagonal`] of a narrow band, else
/// [`Method::Direct`] where the matrix is factorised in less time than a device takes to open, by what the analysis of its pattern tells: of a
/// symmetric matrix or any other, which may be positive definite or is known not to be. Takes some 50 ms at most.
#[must_use]
pub fn factorises_first(a: &Csr, is_symmetric: bool, may_be_definite: bool) -> Option<Method> {
    let is_semidefinite = may_be_definite && NullSpace::of(a, true).is_some();
    if a.n_rows() != a.n_cols() || is_semidefinite {
        return None;
    }
    if has_narrow_band(a) {
        return Some(Method::Tridiagonal);
    }
    let is_quick = Factorised::may_be_quick(a)
        && Factorised::analysed(a, Kind::of(is_symmetric, may_be_definite))
            .is_ok_and(|factorised| factorised.is_quick());
    is_quick.then_some(Method::Direct)
}

/// Whether a real matrix has so few diagonals that it is best eliminated in the order given.
pub(super) fn has_narrow_band(a: &Csr) -> bool {
    is_narrow(a) && !is_real_form(a)
}

/// How far the factorisation of a matrix is.
#[derive(Debug)]
enum Stage {
    Analysed(Analysis),
    /// Nobody waited to the end of it.
    UnderWay(UnderWay<Result<Option<Stage>>>),
    Factorised(Factor),
    Singular(Singularity),
}

/// The factorisation of a matrix.
#[derive(Debug)]
pub(super) struct Factorised {
    /// Nothing while one stage becomes the next, nor where memory did not suffice.
    stage: Option<Stage>,
    /// The one to begin with.
    kind: Kind,
    /// Whether it is known that L U can't take the place of L D Lᵀ, mostly for lack of memory.
    has_no_lu: bool,
}

/// By pattern, or numerically.
fn singularity(singular: &Singular) -> Singularity {
    match singular {
        Singular::Structurally(deficiency) => Singularity::Structural(deficiency.in_short()),
        Singular::NotPositiveDefinite { row } => Singularity::Numerical { row: row + 1 },
    }
}

impl Factorised {
    /// Analyses a matrix for a factorisation, or for the next one, if it is seen not to have it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn analysed(a: &Csr, kind: Kind) -> Result<Self> {
        let started = Instant::now();
        let stage = match Analysis::new(a, kind)? {
            Ok(analysis) => {
                let (flops, bytes, time) = (analysis.flops(), 1e-6 * analysis.bytes() as f64, started.elapsed());
                log::debug!("{kind} factors would take {flops:.1e} operations and {bytes:.1} MB; analysed in {time:?}");
                Stage::Analysed(analysis)
            }
            Err(singular @ Singular::Structurally(_)) => Stage::Singular(singularity(&singular)),
            Err(singular) => match kind.next() {
                Some(next) => return Self::analysed(a, next),
                None => Stage::Singular(singularity(&singular)),
            },
        };
        Ok(Self { stage: Some(stage), kind, has_no_lu: false })
    }

    /// Whether it is worth an analysis to see whether a matrix is factorised sooner than a device is opened.
    pub(super) fn may_be_quick(a: &Csr) -> bool {
        a.nnz() <= FEW_ENTRIES
    }

    /// Whether a matrix is factorised sooner than a device is opened; what is singular is not.
    pub(super) fn is_quick(&self) -> bool {
        let few = |kind| if kind == Kind::Cholesky { FEW_OF_CHOLESKY } else { FEW };
        matches!(&self.stage, Some(Stage::Analysed(of)) if of.flops() <= few(of.kind()) && fits(of))
    }

    /// Whether there is memory for it, and time.
    pub(super) fn is_possible(&self, stop: &Stop) -> bool {
        let Some(Stage::Analysed(analysis)) = &self.stage else { return true };
        let seconds = analysis.flops() / RATE;
        let has_time = stop.time_limit.is_none_or(|limit| seconds <= limit.as_secs_f64());
        if !fits(analysis) {
            log::info!(
                "{} factors would take {:.1} GB, more than there are",
                analysis.kind(),
                1e-9 * analysis.bytes() as f64
            );
        } else if !has_time {
            log::info!("{} factors would take some {seconds:.0} s, more than there are", analysis.kind());
        }
        fits(analysis) && has_time
    }

    /// Bytes that a step of refinement reads of the factors.
    pub(super) fn bytes(&self) -> u64 {
        match &self.stage {
            Some(Stage::Factorised(factor)) => 8 * factor.elements(),
            _ => 0,
        }
    }

    /// Solves the system for `b` from and to `x`, for a solve that began at `begin`. A factorisation that takes longer than the caller
    /// waits goes on for the next one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
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
        let mut late = self.complete(a, is_over)?;
        let first = verify::residual(a, b, x);
        let (mut steps, mut singular) = if late.is_none() { self.improve(a, b, x) } else { (0, None) };
        if late.is_none() && self.is_inexact(a, b, x, stop) && self.goes_on(a)? {
            match self.complete(a, is_over) {
                Ok(None) => {
                    let (more, found) = self.improve(a, b, x);
                    (steps, singular) = (steps + more, found);
                }
                Ok(reason) => late = reason,
                Err(Error::OutOfMemory { .. }) => self.has_no_lu = true, // x stays what L D Lᵀ has made of it
                Err(e) => return Err(e),
            }
        }
        if let Some(reason) = late {
            let residual = verify::residual(a, b, x);
            statistics.add_factorised(steps, [first.relative_2, residual.relative_2], ranks, solving.end());
            let met = stop.met(&residual).filter(|_| reason == Reason::TimeLimit);
            return Ok((met.map_or(reason, Reason::Converged), residual));
        }
        let time = solving.end();
        let verifying = stage("verify");
        let residual = verify::residual(a, b, x);
        statistics.verify += verifying.end();
        statistics.add_factorised(steps, [first.relative_2, residual.relative_2], ranks, time);
        let failure = singular.map_or(Reason::Stagnation, Reason::Singular);
        Ok((stop.met(&residual).map_or(failure, Reason::Converged), residual))
    }

    /// Factorises the matrix as far as is not done yet, unless there is a reason to give that up.
    fn complete(&mut self, a: &Arc<Csr>, is_over: impl Fn() -> Option<Reason>) -> Result<Option<Reason>> {
        let known = if self.stage.is_some() { self.stage.take() } else { Self::analysed(a, self.kind)?.stage };
        let (under_way, known) = match known {
            Some(Stage::Analysed(analysis)) => (Some(begun(analysis, Arc::clone(a))), None),
            Some(Stage::UnderWay(under_way)) => (Some(under_way), None),
            known => (None, known),
        };
        self.stage = match under_way.map(|under_way| under_way.wait(is_over)) {
            None => known,
            Some(Ok(stage)) => stage?,
            Some(Err((under_way, reason))) => {
                self.stage = Some(Stage::UnderWay(under_way));
                return Ok(Some(reason));
            }
        };
        Ok(None)
    }

    /// Refines `x` by the factors. Tells the steps, and what is known of a matrix that is singular.
    fn improve(&self, a: &Csr, b: &[f64], x: &mut [f64]) -> (u64, Option<Singularity>) {
        match &self.stage {
            Some(Stage::Factorised(factor)) => {
                let row = factor.perturbed().first().map(|row| Singularity::Numerical { row: *row as usize + 1 });
                // pivots of L D Lᵀ are replaced of other matrices, too
                let is_singular = row.filter(|_| matches!(factor.kind(), Kind::Lu | Kind::Band));
                (refine(a, factor, b, x).steps as u64, is_singular)
            }
            Some(Stage::Singular(singular)) => (0, Some(*singular)),
            _ => (0, None),
        }
    }

    /// Whether `x` is not what other factors could make of it: that of L D Lᵀ with pivots from their supernodes only.
    fn is_inexact(&self, a: &Csr, b: &[f64], x: &[f64], stop: &Stop) -> bool {
        let Some(Stage::Factorised(factor)) = &self.stage else { return false };
        if factor.kind() != Kind::Ldlt {
            return false;
        }
        let residual = verify::residual(a, b, x);
        stop.met(&residual).is_none() && !(factor.perturbed().is_empty() && is_rounding(&residual))
    }

    /// Goes on to L U, if there is memory for it.
    fn goes_on(&mut self, a: &Csr) -> Result<bool> {
        if self.has_no_lu {
            return Ok(false);
        }
        let stage = match Self::analysed(a, Kind::Lu) {
            Err(Error::OutOfMemory { .. }) => None,
            lu => lu?.stage,
        };
        self.has_no_lu = !matches!(&stage, Some(Stage::Analysed(analysis)) if fits(analysis));
        if !self.has_no_lu {
            log::debug!("LDLᵀ factors are too inexact");
            self.stage = stage;
        }
        Ok(!self.has_no_lu)
    }
}

fn fits(analysis: &Analysis) -> bool {
    available_bytes().is_none_or(|free| analysis.bytes() <= free)
}

/// A factorisation in a thread of its own.
fn begun(analysis: Analysis, a: Arc<Csr>) -> UnderWay<Result<Option<Stage>>> {
    UnderWay::begin(move || factorise(analysis, &a))
}

/// What becomes of an analysis: where the matrix has not this factorisation after all, the next one.
fn factorise(analysis: Analysis, a: &Csr) -> Result<Option<Stage>> {
    let kind = analysis.kind();
    Ok(Some(match Factor::new(analysis, a)? {
        Ok(factor) => Stage::Factorised(factor),
        Err(singular) => match kind.next() {
            Some(next) => match Factorised::analysed(a, next)?.stage {
                Some(Stage::Analysed(analysis)) => return factorise(analysis, a),
                other => return Ok(other),
            },
            None => Stage::Singular(singularity(&singular)),
        },
    }))
}
