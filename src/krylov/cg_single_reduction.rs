//! Conjugate gradients with one sum over ranks an iteration, by recurrence of A p (Chronopoulos and Gear 1989, doi
//! 10.1016/0377-0427(89)90045-9).
//!
//! | line | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A r, δ = r·q | 12 nnz / n + 20 |
//! | p = r + β p, s = q + β s, x += α p, r −= α s, γ = r·r | 72 / 80 |
//!
//! β = γ / γ' is formed of residuals as they were computed, where [`cg`](mod@super::cg) predicts it; what is derived here is p·A p:
//! see [`recurrence`](super::recurrence). Ranks meet once an iteration, for the sums; r is kept up to date on its halo with
//! that of q, which travels while the step and the product with the interior rows run.

use super::iterate::Iterate;
use super::judge::Judge;
use super::recurrence::{Next, curvature, relate};
use super::squares::squares;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{HaloStep, Ops, Product, Record, SingleStep};
use crate::precond::scaling::Share;

/// Runs from `iterate` until `judge` says so. The first residual is computed, not assumed; the direction may be that
/// which the former run has left. If the system is scaled, what it sees is the residual of the one that is
/// not.
pub(crate) fn cg_single_reduction<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    let first = squares(ops, scaling, w)?; //                                  γ = r·r
    if let Some(verdict) = judge.begin(first[0], first[1]) {
        return Ok(verdict);
    }
    iterate.keep(ops, w)?;
    a.fill_halo(ops, &mut w.r)?;
    if !judge.keeps_direction() {
        w.former = None;
    } else if let (Some(s), Some(_)) = (&mut w.s, w.former) {
        a.apply(ops, &mut w.p, s)?; //                                         s = A p
        a.fill_halo(ops, s)?;
        relate(ops, first[0], w)?;
    }

    let (mut known, mut iteration, mut halo_step) = (Some(first[0]), 1, None);
    loop {
        let is_over = known.is_none() && judge.is_over(iteration);
        if !is_over {
            ops.begin_iteration(iteration)?;
            let Workspace { dots, r, q, s, .. } = w;
            let step = halo_step.take().zip(s.as_mut()).map(|(scalars, d)| HaloStep { scalars, d });
            a.apply_dots(ops, Product { step, x: r, y: q, dots })?; //         q = A r, δ = r·q
        }
        let mut sums = [&mut w.dots, &mut w.rho];
        let sums = match (known, is_over) {
            (Some(_), _) => &mut sums[..1], // γ is complete
            (None, false) => &mut sums[..],
            (None, true) => &mut sums[1..],
        };
        ops.start_sum(sums)?;
        if !is_over {
            a.pack_halo(ops, &w.q, true)?;
        }
        ops.all_sum(sums)?;
        let gamma = match known {
            Some(gamma) => gamma,
            None => {
                let [rho, rr, ..] = ops.settle(&mut w.rho)?;
                if let Some(verdict) =
                    judge.judge(&[Record::Residual { iteration: iteration - 1, rho, rr }], ops.comm())
                {
                    return Ok(verdict);
                }
                judge.set_aside(ops, iterate, scaling, w, 0.0)?;
                rho
            }
        };
        let [delta, ..] = ops.settle(&mut w.dots)?;
        let next = Next::of(gamma, delta, w.former);
        let mut pq = next.curvature;
        if next.curvature <= 0.0 {
            let along = curvature(ops, a, next.scalars.beta, w)?;
            pq = w.former.take().map_or(pq, |_| along); // without a former step, there was no difference to lose its sign
        }
        if let Some(verdict) = judge.judge(&[Record::Curvature { iteration, pq }], ops.comm()) {
            return Ok(verdict);
        }
        if next.curvature <= 0.0 {
            known = Some(gamma);
            continue; // once more, from the steepest descent
        }
        if let Some(verdict) = judge.compare(ops, iteration)? {
            return Ok(verdict);
        }
        step(ops, scaling, next, w)?;
        halo_step = Some(next.scalars);
        w.former = Some(next.former(gamma));
        (known, iteration) = (None, iteration + 1);
    }
}

/// p = r + β p, s = q + β s, x += α p, r −= α s, γ = r·r.
fn step<O: Ops>(ops: &O, scaling: Option<&Share<O>>, Next { scalars, .. }: Next, w: &mut Workspace<O>) -> Result<()> {
    let Workspace { x, r, p, q, s: Some(s), rho, .. } = w else {
        unreachable!("a workspace for this method has s");
    };
    let weights = scaling.map(|share| &share.weights);
    ops.single_step(SingleStep { scalars, weights, x, r, p, s, q, rho })
}
