//! Preconditioned conjugate gradients (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044), in three fused kernels.
//!
//! | line | bytes a row in double precision, without / with a diagonal preconditioner |
//! |---|---|
//! | q = A p, p·q | 12 nnz / n + 20 |
//! | α = ρ / p·q, x += α p, r −= α q, ρ' = r·z, r·r | 48 / 56 |
//! | β = ρ' / ρ, p = z + β p | 24 / 32 |
//!
//! On one device the scalars never leave it: each kernel adds the partial sums of the one before, and the host learns of the
//! residual late, without holding anything up. Among several ranks, the two sums of an iteration go through the host.

use super::monitor::{Monitor, Verdict};
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{CgDirection, CgStep, Ops};
use crate::precond::Preconditioner;

/// Runs from `w.x`, for the right-hand side `w.b`, until `monitor` says so. The first residual is computed, not assumed.
pub(super) fn cg<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    m: &Preconditioner<O::Vector>,
    w: &mut Workspace<O>,
    monitor: &mut Monitor<'_>,
) -> Result<Verdict> {
    if let Some(verdict) = begin(ops, a, m, w, monitor)? {
        //                  r = b − A x, p = M⁻¹ r, ρ = r·p
        return Ok(verdict);
    }
    let mut records = Vec::new();
    for iteration in 1.. {
        ops.begin_iteration(iteration)?;
        a.apply_dot(ops, &mut w.p, &mut w.q, &mut w.pq)?; //                   q = A p
        ops.all_sum(&mut w.pq)?;
        ops.cg_step(CgStep {
            m,
            rho: &w.rho,
            pq: &w.pq,
            p: &w.p,
            q: &w.q,
            x: &mut w.x,
            r: &mut w.r,
            rho_next: &mut w.rho_next,
            iteration,
        })?; //                                                                α = ρ / p·q, x += α p, r −= α q
        ops.all_sum(&mut w.rho_next)?; //                                      ρ' = r·M⁻¹r
        ops.cg_direction(CgDirection {
            m,
            rho_next: &w.rho_next,
            rho: &w.rho,
            r: &w.r,
            p: &mut w.p,
            limit: monitor.run_limit(),
            iteration,
        })?; //                                                                β = ρ' / ρ, p = M⁻¹r + β p
        std::mem::swap(&mut w.rho, &mut w.rho_next);

        records.clear();
        let drain = monitor.is_last(iteration) || ops.comm().stop_request() != 0;
        ops.observe(iteration, &w.pq, &w.rho, drain, &mut records)?;
        if let Some(verdict) = monitor.judge(&records, ops.comm()) {
            return Ok(verdict);
        }
    }
    unreachable!("an iteration without end")
}

/// Begins a run: r = b − A x, p = M⁻¹ r, ρ = r·p and r·r. If there is anything to do, x is kept as the run's first iterate.
pub(super) fn begin<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    m: &Preconditioner<O::Vector>,
    w: &mut Workspace<O>,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Verdict>> {
    ops.begin()?;
    ops.copy(&w.x, &mut w.p)?;
    a.residual(ops, &w.b, &mut w.p, &mut w.r)?;
    ops.precondition(m, &w.r, &mut w.p)?;
    ops.dot_product(&w.r, &w.p, &mut w.rho, 0)?;
    if m.diagonal().is_some() {
        ops.dot_product(&w.r, &w.r, &mut w.rho, 1)?;
    }
    ops.all_sum(&mut w.rho)?;
    let [rho, rr] = ops.settle(&mut w.rho)?;
    let verdict = monitor.begin(rho, if m.diagonal().is_some() { rr } else { rho });
    if verdict.is_none() {
        ops.copy(&w.x, &mut w.x_first)?;
    }
    Ok(verdict)
}
