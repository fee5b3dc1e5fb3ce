//! Conjugate gradients as in Bueno's dissertation (PUC-Rio 2013, chapter 4): five kernels, and after each dot product the
//! partial sums of all work-groups are added on the host. The baseline that [`cg`](mod@super::cg) is measured against.
//!
//! Bytes a row and iteration in double precision: 12 nnz / n + 20 for the product, 16 for each of the two dot products, 24 for
//! each of the three updates. With a preconditioner, which the dissertation has not, 24 for z = M⁻¹ r and 16 for r·z.

use super::iterate::Iterate;
use super::judge::Judge;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{Ops, Record};
use crate::precond::Preconditioner;

/// Runs from `iterate` until `judge` says so. The direction may be that which the former run has left.
pub(crate) fn cg_classic<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    m: &Preconditioner<O::Vector>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    let preconditioned = m.diagonal().is_some();
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    m.apply(ops, &w.r, &mut w.q)?; //                                          z = M⁻¹ r, where q will be
    let mut rho = ops.dot(&w.r, &w.q)?;
    let rr = if preconditioned { ops.dot(&w.r, &w.r)? } else { rho };
    if let Some(verdict) = judge.begin(rho, rr) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(ops, w)?;
    }
    if !judge.keeps_direction() {
        ops.copy(&w.q, &mut w.p)?; //                                          p = z
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
        ops.axpy(alpha, &w.p, &mut w.x)?; //                           x += α p
        ops.axmy(alpha, &w.q, &mut w.r)?; //                          r −= α q
        let rr = ops.dot(&w.r, &w.r)?;
        let (rho_next, z) = match &mut w.z {
            Some(z) if preconditioned => {
                m.apply(ops, &w.r, z)?; //                                     z = M⁻¹ r
                (ops.dot(&w.r, z)?, &*z)
            }
            _ => (rr, &w.r),
        };
        ops.xpby(z, rho_next / rho, &mut w.p)?; //                   p = z + ρ'/ρ p
        rho = rho_next;

        if let Some(verdict) = judge.judge(&[Record::Residual { iteration, rho, rr }], ops.comm()) {
            return Ok(verdict);
        }
        judge.set_aside(ops, iterate, None, w, 0.0)?;
    }
    unreachable!("an iteration without end")
}
