//! Preconditioned conjugate gradients (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044), in two fused kernels.
//!
//! | line | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A p, p·q, q·q | 12 nnz / n + 20 |
//! | α = ρ / p·q, β = α q·q / p·q − 1, x += α p, r −= α q, p = r + β p, ρ' = r·r | 56 / 64 |
//!
//! β = ρ' / ρ is formed before ρ' is known, from ρ' = α² q·q − ρ (Rupp et al. 2016, doi 10.1145/2907944, and Chronopoulos and
//! Gear 1989, doi 10.1016/0377-0427(89)90045-9, for the idea). Since α is formed from ρ as it was computed, rounding does not
//! add up; see `docs/architecture.md` for what was measured. So an iteration has one sum over ranks, in place of two.
//!
//! On one device the scalars never leave it: each kernel adds the partial sums of the one before, and the host learns of the
//! residual late, without holding anything up. Among several ranks, the sum of an iteration goes through the host.

use super::iterate::Iterate;
use super::monitor::{Monitor, Verdict};
use super::scaling::{Share, weighted_norm};
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{CgRun, CgStep, Ops};

/// Runs from `iterate` until `monitor` says so. The first residual is computed, not assumed; the direction may be that
/// which the former run has left. If the system is scaled, what the monitor sees is the residual of the one that is
/// not.
pub(super) fn cg<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    monitor: &mut Monitor<'_>,
) -> Result<Verdict> {
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    ops.dot_product(&w.r, &w.r, &mut w.rho, 0)?; //                            ρ = r·r
    match scaling {
        Some(share) => weighted_norm(ops, share, w)?,
        None => ops.dot_product(&w.r, &w.r, &mut w.rho, 1)?,
    }
    ops.all_sum(&mut [&mut w.rho])?;
    let [rho, rr] = ops.settle(&mut w.rho)?;
    if let Some(verdict) = monitor.begin(rho, rr) {
        return Ok(verdict);
    }
    iterate.keep(ops, w)?;
    if !monitor.keeps_direction() {
        ops.copy(&w.r, &mut w.p)?; //                                          p = r
    }

    let mut records = Vec::new();
    let mut iteration = 1;
    loop {
        let run = CgRun {
            dots: &mut w.dots,
            rho: &mut w.rho,
            rho_next: &mut w.rho_next,
            weights: scaling.map(|share| &share.weights),
            x: &mut w.x,
            r: &mut w.r,
            p: &mut w.p,
            q: &mut w.q,
            limit: monitor.run_limit(),
            iteration,
            most: monitor.allowed_from(iteration),
        };
        let several = a.cg_run(ops, run)?; //                                  all that follows, several times
        iteration = several.unwrap_or(iteration);
        let is_over = monitor.is_over(iteration);
        let is_single = several.is_none() && !is_over;
        if is_single {
            ops.begin_iteration(iteration)?;
            a.apply_dots(ops, &mut w.p, &mut w.q, &mut w.dots)?; //            q = A p, p·q, q·q
            match iteration {
                1 => ops.all_sum(&mut [&mut w.dots])?, // ρ is complete
                _ => ops.all_sum(&mut [&mut w.dots, &mut w.rho])?,
            }
        } else {
            ops.all_sum(&mut [&mut w.rho])?;
        }
        records.clear();
        let drain = is_over || ops.comm().stop_request() != 0;
        ops.observe(iteration, is_single.then_some(&w.dots), &mut w.rho, drain, &mut records)?;
        if let Some(verdict) = monitor.judge(&records, ops.comm()) {
            return Ok(verdict);
        }
        if is_single {
            ops.cg_step(CgStep {
                dots: &w.dots,
                rho: &w.rho,
                weights: scaling.map(|share| &share.weights),
                x: &mut w.x,
                r: &mut w.r,
                p: &mut w.p,
                q: &w.q,
                rho_next: &mut w.rho_next,
                limit: monitor.run_limit(),
                iteration,
            })?; //                                 α = ρ / p·q, β = α q·q / p·q − 1, x += α p, r −= α q, p = r + β p
            std::mem::swap(&mut w.rho, &mut w.rho_next);
            iteration += 1;
        }
    }
}
