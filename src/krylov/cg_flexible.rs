//! Conjugate gradients whose preconditioner may vary (Notay 2000, doi 10.1137/S1064827599362314): β makes the next direction conjugate to this
//! one whatever M⁻¹ has become. Where it stays, β is that of the textbook.
//!
//! Bytes a row and iteration in double precision beside M⁻¹: 12 nnz / n + 20 for the product, 120 for sums and updates, and 32 more if the system
//! is scaled. The ranks synchronise three times.

use super::application::Application;
use super::iterate::Iterate;
use super::judge::Judge;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::backend::machine::largest_halo;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::MATRIX;
use crate::backend::{LinearOperator, Record};
use crate::error::Result;
use crate::precond::scaling::RankScaling;

/// Arrays that an iteration moves beside its product and M⁻¹,
pub(super) const VECTORS_MOVED: u64 = 15;
/// and those that it moves besides if the system is scaled.
pub(crate) const OF_SCALED: u64 = 4;

/// A preconditioner, and z = M⁻¹ r.
pub(crate) struct Preconditioned<O: PassBackend> {
    m: Application<O>,
    z: O::Vector,
}

impl<O: PassBackend> Preconditioned<O> {
    /// Room for z beside A and the operators of the preconditioner.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub(crate) fn new(backend: &O, operators: &[impl LinearOperator<O>], m: Application<O>) -> Result<Self> {
        Ok(Self { m, z: backend.vector(largest_halo(operators), "z")? })
    }

    /// How M⁻¹ is applied.
    pub(crate) fn application(&mut self) -> &mut Application<O> {
        &mut self.m
    }
}

/// Runs from `iterate` until `judge` says so. The direction may be that which the former run has left.
pub(crate) fn cg_flexible<O: PassBackend>(
    backend: &O,
    operators: &[impl LinearOperator<O>],
    iterate: &mut impl Iterate<O>,
    scaling: Option<&RankScaling<O>>,
    Preconditioned { m, z }: &mut Preconditioned<O>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge,
) -> Result<Verdict> {
    let a = &operators[MATRIX];
    backend.begin()?;
    iterate.residual(backend, a, w)?; //                    r = b − A x
    if let Some(verdict) = judge.begin(norm2(backend, scaling, &w.r, z)?) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(backend, w)?;
    }
    m.apply(backend, operators, &mut w.r, z)?; //           z = M⁻¹ r
    let mut rho = backend.dot(&w.r, z)?;
    if !judge.keeps_direction() {
        backend.copy(z, &mut w.p)?; //                      p = z
    }
    for iteration in 1.. {
        backend.begin_iteration(iteration)?;
        if let Some(verdict) = judge.judge(&[Record::Breakdown { iteration, value: rho }], backend.comm()) {
            return Ok(verdict);
        }
        a.apply(backend, &mut w.p, &mut w.q)?; //           q = A p
        let pq = backend.dot(&w.p, &w.q)?;
        if let Some(verdict) = judge.judge(&[Record::Curvature { iteration, pq }], backend.comm()) {
            return Ok(verdict);
        }
        if let Some(verdict) = judge.compare(backend, iteration)? {
            return Ok(verdict);
        }
        let alpha = rho / pq;
        backend.axpy(alpha, &w.p, &mut w.x)?; //            x += α p
        backend.axmy(alpha, &w.q, &mut w.r)?; //            r −= α q
        let rr = norm2(backend, scaling, &w.r, z)?;
        let verdict = judge.judge(&[Record::Residual { iteration, rr }], backend.comm());
        // the next run may go on in the direction that comes now
        let has_next = verdict == Some(Verdict::Presumed) && judge.resumes();
        if let Some(verdict) = verdict.filter(|_| !has_next) {
            return Ok(verdict);
        }
        m.apply(backend, operators, &mut w.r, z)?; //     z = M⁻¹ r
        let sums = backend.dots(&[[&w.r, z], [z, &w.q]])?;
        let beta = -alpha * sums[1] / rho; //               β = z·(r − r') / ρ, r' the residual before
        backend.xpby(z, beta, &mut w.p)?; //                p = z + β p
        rho = sums[0];
        if let Some(verdict) = verdict {
            return Ok(verdict);
        }
        judge.take_snapshot(backend, iterate, scaling, w, 0.0)?;
    }
    unreachable!("an iteration without end")
}

/// ‖b − A x‖², where r is the residual, maybe of a scaled system. Uses up `spare`.
fn norm2<O: PassBackend>(
    backend: &O,
    scaling: Option<&RankScaling<O>>,
    r: &O::Vector,
    spare: &mut O::Vector,
) -> Result<f64> {
    scaling.map_or_else(|| backend.dot(r, r), |scaling| scaling.norm2(backend, r, spare))
}
