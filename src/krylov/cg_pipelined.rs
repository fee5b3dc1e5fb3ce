//! Pipelined conjugate gradients (Ghysels and Vanroose 2014, doi 10.1016/j.parco.2013.06.001): the sums over ranks travel
//! while the product of the same iteration runs, as that does not need them. t = A r is the paper's w.
//!
//! | line | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A t | 12 nnz / n + 20 |
//! | z = q + β z, s = t + β s, p = r + β p, x += α p, r −= α s, t −= α z, γ = r·r, δ = r·t | 104 / 112 |
//!
//! α and β follow from γ and δ as [`recurrence`](super::recurrence) has it. s = A p, z = A s and t = A r come by recurrence,
//! and their rounding errors grow from step to step. So the residual and these products are *replaced* by b − A x and by
//! products once in so many iterations, with the direction as it is (van der Vorst and Ye 2000, doi
//! 10.1137/S1064827599353865; Cools, Yetkin, Agullo, Giraud and Vanroose 2018, doi 10.1137/17M1117872); and of course at the
//! start of a run that keeps the direction.

use super::iterate::Iterate;
use super::judge::Judge;
use super::recurrence::{Next, curvature, relate};
use super::squares::{square_parts, squares};
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{HaloStep, Ops, PipelinedStep, Product, Record};
use crate::precond::scaling::Share;

/// Iterations between two replacements, each of which takes four products, in double and in single precision: see
/// `docs/measurements.md` for what was measured.
const REPLACE_EVERY: [u64; 2] = [30, 10];

/// The part of r·r by which the true residual may differ from that of the recurrence to take its place.
const VISIBLE: f64 = 1e-4;

/// Runs from `iterate` until `judge` says so. The first residual is computed, not assumed; the direction may be that
/// which the former run has left. If the system is scaled, what it sees is the residual of the one that is
/// not.
pub(crate) fn cg_pipelined<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    let replace_every = REPLACE_EVERY[usize::from(size_of::<O::Real>() < size_of::<f64>())];
    run(ops, a, iterate, scaling, w, judge, replace_every)
}

fn run<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
    replace_every: u64,
) -> Result<Verdict> {
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    let [gamma, rr] = squares(ops, scaling, w)?;
    if let Some(verdict) = judge.begin(gamma, rr) {
        return Ok(verdict);
    }
    iterate.keep(ops, w)?;
    if !judge.keeps_direction() {
        w.former = None;
    }
    multiply(ops, a, scaling, gamma, w)?; //                                   t = A r, s = A p, z = A s

    let (mut iteration, mut judged, mut replaced, mut halo_step) = (1, 0, Some(1), None);
    loop {
        let is_over = judge.is_over(iteration);
        if !is_over {
            ops.begin_iteration(iteration)?;
            if replaced.is_none_or(|last| iteration - last == replace_every) {
                replace(ops, a, iterate, scaling, w)?;
                (replaced, halo_step) = (Some(iteration), None);
            }
        }
        ops.start_sum(&mut [&mut w.sums])?; //                                 γ = r·r, δ = r·t
        if let (Workspace { t: Some(t), q, z: Some(z), dots, .. }, false) = (&mut *w, is_over) {
            let step = halo_step.take().map(|scalars| HaloStep { scalars, d: z });
            a.apply_dots(ops, Product { step, x: t, y: q, dots })?; //         q = A t; its dots are of no use
            a.pack_halo(ops, q, false)?;
        }
        ops.all_sum(&mut [&mut w.sums])?;
        let [gamma, rr, delta, _] = ops.settle(&mut w.sums)?;
        if judged < iteration - 1 {
            judged = iteration - 1;
            if let Some(verdict) = judge.judge(&[Record::Residual { iteration: judged, rho: gamma, rr }], ops.comm()) {
                return Ok(verdict);
            }
            judge.set_aside(ops, iterate, scaling, w, 0.0)?;
        }
        let next = Next::of(gamma, delta, w.former);
        let mut pq = next.curvature;
        if next.curvature <= 0.0 {
            let along = curvature(ops, a, next.scalars.beta, w)?;
            let is_derived = w.former.take().is_some() || replaced != Some(iteration);
            pq = if is_derived { along } else { pq };
        }
        if let Some(verdict) = judge.judge(&[Record::Curvature { iteration, pq }], ops.comm()) {
            return Ok(verdict);
        }
        if next.curvature <= 0.0 {
            replaced = None;
            continue; // once more, from products and the steepest descent
        }
        if let Some(verdict) = judge.compare(ops, iteration)? {
            return Ok(verdict);
        }
        step(ops, scaling, next, w)?;
        halo_step = Some(next.scalars);
        w.former = Some(next.former(gamma));
        iteration += 1;
    }
}

/// r = b − A x, and what [`multiply`] forms of it. A true residual that differs visibly from that of the recurrence is one of
/// rounding errors in b − A x: then r stays, for the recurrence to come to its end.
fn replace<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
) -> Result<()> {
    let [recurred, _] = squares(ops, scaling, w)?;
    if let Some(z) = &mut w.z {
        ops.copy(&w.r, z)?; // which is formed anew below
    }
    iterate.residual(ops, a, w)?;
    let [mut gamma, _] = squares(ops, scaling, w)?;
    if let (Some(z), true) = (&w.z, (gamma / recurred - 1.0).abs() > VISIBLE) {
        ops.copy(z, &mut w.r)?;
        gamma = recurred;
    }
    multiply(ops, a, scaling, gamma, w)
}

/// t = A r, and, if there is a direction, s = A p and z = A s, with the halos of t and z, and what the former step would have
/// been for these; this rank's part of the sums. γ = r·r over all ranks.
fn multiply<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    scaling: Option<&Share<O>>,
    gamma: f64,
    w: &mut Workspace<O>,
) -> Result<()> {
    if let (Some(s), Some(z), Some(_)) = (&mut w.s, &mut w.z, w.former) {
        a.apply(ops, &mut w.p, s)?;
        a.apply(ops, s, z)?;
        a.fill_halo(ops, z)?;
        relate(ops, gamma, w)?;
    }
    let Workspace { r, q, t: Some(t), sums, .. } = w else {
        unreachable!("a workspace for this method has t");
    };
    a.apply(ops, r, t)?;
    a.fill_halo(ops, t)?;
    square_parts(ops, scaling, r, q, sums)?;
    ops.dot_product(r, t, sums, 2)
}

/// z = q + β z, s = t + β s, p = r + β p, x += α p, r −= α s, t −= α z, γ = r·r, δ = r·t.
fn step<O: Ops>(ops: &O, scaling: Option<&Share<O>>, Next { scalars, .. }: Next, w: &mut Workspace<O>) -> Result<()> {
    let Workspace { x, r, p, q, s: Some(s), t: Some(t), z: Some(z), sums, .. } = w else {
        unreachable!("a workspace for this method has s, t and z");
    };
    let weights = scaling.map(|share| &share.weights);
    ops.pipelined_step(PipelinedStep { scalars, weights, x, r, t, p, s, z, q, sums })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::comm::Alone;
    use crate::krylov::Method;
    use crate::matrix::gallery;
    use crate::operator::Format;
    use crate::operator::host::HostBlock;
    use crate::ops::host::HostOps;
    use crate::partition::split;
    use crate::real::Precision;
    use crate::runtime::{Control, Monitor, Plain, Stop};

    /// Iterations of a single run towards 10⁻¹², at most `most`, and the true relative residual where it ended.
    fn solve(spec: &str, replace_every: u64, most: u64) -> (u64, f64) {
        let a = Arc::new(spec.parse::<gallery::Spec>().unwrap().build().unwrap());
        let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 7));
        let ops = HostOps::<f64>::new(n, Box::new(Alone::default()));
        let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
        let rows = HostBlock::new(&a, part, 1.0, Format::Csr).unwrap();
        let mut w = Workspace::new(&ops, &rows, Method::CgPipelined, false).unwrap();
        let mut iterate = Plain::new(&ops).unwrap();
        iterate.write(&ops, &mut w, &b, &vec![0.0; n]).unwrap();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let stop = Stop { max_iters: Some(most), ..Stop::default() };
        let begun = (0, Instant::now());
        let target = 1e-12 * norm(&b);
        let mut monitor = Monitor::new(n, target, norm(&b), Precision::F64, &stop, Control::default(), begun);
        run(&ops, &rows, &mut iterate, None, &mut w, &mut monitor, replace_every).unwrap();
        let residual: Vec<f64> = a.mul_vec(&w.x).iter().zip(&b).map(|(y, b)| b - y).collect();
        (monitor.into_seen().iterations, norm(&residual) / norm(&b))
    }

    #[test]
    fn replacement_is_what_makes_it_accurate() {
        for spec in ["elasticity3d:5x2x2", "jumps:10x9x8,seed=3"] {
            let (without, kept) = (solve(spec, u64::MAX, 2000), solve(spec, REPLACE_EVERY[0], 2000));
            assert!(kept.1 <= 2e-12 && kept.0 < 700, "{spec}: {kept:?}");
            assert!(without.1 > 100.0 * kept.1, "{spec}: {without:?} without, {kept:?}");
        }
    }
}
