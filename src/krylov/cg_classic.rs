//! Conjugate gradients as in Bueno's dissertation (PUC-Rio 2013, chapter 4): five kernels, and after each dot product the
//! partial sums of all work-groups are added on the host. The baseline that [`cg`](mod@super::cg) is measured against.
//!
//! Bytes a row and iteration in double precision: 12 nnz / n + 20 for the product, 16 for each of the two dot products, 24 for
//! each of the three updates. If the system is scaled, which the dissertation has not, 40 for what the test looks at.

use super::iterate::Iterate;
use super::judge::Judge;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::backend::LinearOperator;
use crate::backend::{Backend, Record};
use crate::error::Result;
use crate::precond::scaling::RankScaling;

/// Runs from `iterate` until `judge` says so. The direction may be that which the former run has left.
pub(crate) fn cg_classic<O: Backend>(
    backend: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&RankScaling<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge,
) -> Result<Verdict> {
    backend.begin()?;
    iterate.residual(backend, a, w)?; //                  r = b − A x
    let mut rho = backend.dot(&w.r, &w.r)?;
    if let Some(verdict) = judge.begin(norm2(backend, scaling, rho, w)?) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(backend, w)?;
    }
    if !judge.keeps_direction() {
        backend.copy(&w.r, &mut w.p)?; //                 p = r
    }
    for iteration in 1.. {
        backend.begin_iteration(iteration)?;
        a.apply(backend, &mut w.p, &mut w.q)?; //         q = A p
        let pq = backend.dot(&w.p, &w.q)?;
        if let Some(verdict) = judge.judge(&[Record::Curvature { iteration, pq }], backend.comm()) {
            return Ok(verdict);
        }
        if let Some(verdict) = judge.compare(backend, iteration)? {
            return Ok(verdict);
        }
        let alpha = rho / pq;
        backend.axpy(alpha, &w.p, &mut w.x)?; //          x += α p
        backend.axmy(alpha, &w.q, &mut w.r)?; //          r −= α q
        let rho_next = backend.dot(&w.r, &w.r)?;
        backend.xpby(&w.r, rho_next / rho, &mut w.p)?; // p = r + ρ'/ρ p
        rho = rho_next;

        let rr = norm2(backend, scaling, rho, w)?;
        if let Some(verdict) = judge.judge(&[Record::Residual { iteration, rr }], backend.comm()) {
            return Ok(verdict);
        }
        judge.take_snapshot(backend, iterate, scaling, w, 0.0)?;
    }
    unreachable!("an iteration without end")
}

/// ‖b − A x‖², where r·r is `rho`: the same, or Σ w r² if the system is scaled. Uses up `w.q`.
fn norm2<O: Backend>(backend: &O, scaling: Option<&RankScaling<O>>, rho: f64, w: &mut Workspace<O>) -> Result<f64> {
    scaling.map_or(Ok(rho), |scaling| scaling.norm2(backend, &w.r, &mut w.q))
}
