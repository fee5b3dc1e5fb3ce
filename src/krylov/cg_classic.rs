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
use crate::backend::{Ops, Record};
use crate::error::Result;
use crate::precond::scaling::RankScaling;

/// Runs from `iterate` until `judge` says so. The direction may be that which the former run has left.
pub(crate) fn cg_classic<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&RankScaling<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    let mut rho = ops.dot(&w.r, &w.r)?;
    if let Some(verdict) = judge.begin(norm2(ops, scaling, rho, w)?) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(ops, w)?;
    }
    if !judge.keeps_direction() {
        ops.copy(&w.r, &mut w.p)?; //                                          p = r
    }
    for iteration in 1.. {
        ops.begin_iteration(iteration)?;
        a.apply(ops, &mut w.p, &mut w.q)?; //                                  q = A p
        let pq = ops.dot(&w.p, &w.q)?;
        if let Some(verdict) = judge.judge(&[Record::Curvature { iteration, pq }], ops.comm()) {
            return Ok(verdict);
        }
        if let Some(verdict) = judge.compare(ops, iteration)? {
            return Ok(verdict);
        }
        let alpha = rho / pq;
        ops.axpy(alpha, &w.p, &mut w.x)?; //                                   x += α p
        ops.axmy(alpha, &w.q, &mut w.r)?; //                                   r −= α q
        let rho_next = ops.dot(&w.r, &w.r)?;
        ops.xpby(&w.r, rho_next / rho, &mut w.p)?; //                          p = r + ρ'/ρ p
        rho = rho_next;

        let rr = norm2(ops, scaling, rho, w)?;
        if let Some(verdict) = judge.judge(&[Record::Residual { iteration, rr }], ops.comm()) {
            return Ok(verdict);
        }
        judge.take_snapshot(ops, iterate, scaling, w, 0.0)?;
    }
    unreachable!("an iteration without end")
}

/// ‖b − A x‖², where r·r is `rho`: the same, or Σ w r² if the system is scaled. Uses up `w.q`.
fn norm2<O: Ops>(ops: &O, scaling: Option<&RankScaling<O>>, rho: f64, w: &mut Workspace<O>) -> Result<f64> {
    let Some(share) = scaling else { return Ok(rho) };
    ops.multiply(&share.weights, &w.r, &mut w.q)?;
    ops.dot(&w.r, &w.q)
}
