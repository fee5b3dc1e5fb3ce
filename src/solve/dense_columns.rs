//! Several right-hand sides by the factors of a dense matrix, together: the host reads the matrix once for all their residuals, and the devices
//! the factors once for all their corrections.

use std::time::Instant;

use rayon::prelude::*;

use super::dense::Dense;
use super::session::Solver;
use super::statistics::{Answer, Statistics};
use super::under_way::reason_to_end;
use crate::direct::{STEPS, Step};
use crate::error::Result;
use crate::krylov::{Method, Reason};
use crate::matrix::Csr;
use crate::runtime::{Control, Stop};
use crate::timeline::stages::stage;
use crate::verify::{self, difference, norm_2};

/// The most at once: their memory is that of so many vectors, four times.
pub(super) const MOST: usize = 64;

impl Solver {
    /// Whether columns can be solved together, by factors that there are.
    pub(super) fn takes_dense_columns(&self, control: Control<'_>) -> bool {
        let is_watched = control.checkpoint.is_some() || control.timeline;
        let is_for_one = is_watched || self.whole.setup.columns < 2 || self.null_space.is_some();
        !is_for_one && self.method() == Method::Dense && self.dense_factors().is_some()
    }

    /// Solves for columns `which` by factors that there are, after what is known from the statistics of each. Those that have no answer then are
    /// to be solved for alone, from the x that is there.
    pub(super) fn by_dense_factors(
        &mut self,
        which: &[usize],
        begun: Vec<Statistics>,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        (stop, control): (&Stop, Control<'_>),
    ) -> Result<Vec<(Statistics, Option<Answer>)>> {
        let begin = Instant::now();
        let unsolved = |begun: Vec<Statistics>| begun.into_iter().map(|begun| (begun, None)).collect();
        let ranks = self.ranks().len();
        let (a, Some(dense)) = (&self.whole.a, &mut self.dense) else { return Ok(unsolved(begun)) };
        if reason_to_end(stop, &control, begin).is_some() {
            return Ok(unsolved(begun));
        }
        log::info!("{} right-hand sides by the same factors", which.len());
        let solving = stage("solve");
        let of_b: Vec<&[f64]> = which.iter().map(|&k| b[k]).collect();
        let mut of_x: Vec<Vec<f64>> = which.iter().map(|&k| x[k].to_vec()).collect();
        let refined = refine(a, dense, &of_b, &mut of_x)?;
        let time = solving.end() / which.len() as u32;
        let verifying = stage("verify");
        let residuals: Vec<_> = of_b.iter().zip(&of_x).map(|(b, x)| verify::residual(a, b, x)).collect();
        let verify = verifying.end() / which.len() as u32;
        let mut solved = Vec::with_capacity(which.len());
        let columns = which.iter().zip(begun).zip(of_x).zip(residuals.into_iter().zip(refined));
        for (((&k, mut statistics), of_x), (residual, Refined { first, steps, .. })) in columns {
            x[k].copy_from_slice(&of_x);
            statistics.add_factorised(steps, [first / norm_2(b[k]), residual.relative_2], ranks, time);
            statistics.verify += verify;
            let answer = stop.met(&residual).map(|criterion| (Reason::Converged(criterion), residual));
            solved.push((statistics, answer));
        }
        Ok(solved)
    }
}

/// How far one of them is.
struct Refined {
    /// ‖b − A x‖₂ at first, and now.
    first: f64,
    norm: f64,
    steps: u64,
    is_done: bool,
}

/// Refines each x as one alone is refined.
fn refine(a: &Csr, dense: &mut Dense, b: &[&[f64]], x: &mut [Vec<f64>]) -> Result<Vec<Refined>> {
    let mut r = residuals(a, b, x);
    let begun = |r: &Vec<f64>| (norm_2(r), 0);
    let mut all: Vec<Refined> = r
        .iter()
        .map(begun)
        .map(|(first, steps)| Refined { first, norm: first, steps, is_done: first == 0.0 })
        .collect();
    for _ in 0..STEPS {
        let open: Vec<usize> = (0..b.len()).filter(|&c| !all[c].is_done).collect();
        if open.is_empty() {
            break;
        }
        let right: Vec<&[f64]> = open.iter().map(|&c| &r[c][..]).collect();
        let Some(corrections) = dense.corrections(&right)? else { break };
        let add = |(&c, d): (&usize, Vec<f64>)| x[c].iter().zip(d).map(|(x, d)| x + d).collect();
        let next: Vec<Vec<f64>> = open.iter().zip(corrections).map(add).collect();
        let of_b: Vec<&[f64]> = open.iter().map(|&c| b[c]).collect();
        let after = residuals(a, &of_b, &next);
        for ((c, next), after) in open.into_iter().zip(next).zip(after) {
            let (one, norm) = (&mut all[c], norm_2(&after));
            let step = Step::of(one.norm, norm, &next);
            one.is_done = step != Step::On;
            if step == Step::Back {
                continue;
            }
            (one.norm, one.steps) = (norm, one.steps + 1);
            (x[c], r[c]) = (next, after);
        }
    }
    Ok(all)
}

/// b − A x of each column, each row for all of them.
fn residuals(a: &Csr, b: &[&[f64]], x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let count = b.len();
    let mut rows = vec![0.0; a.n_rows() * count];
    rows.par_chunks_mut(count.max(1)).enumerate().for_each(|(i, r)| {
        let (cols, values) = a.row(i);
        for ((r, b), x) in r.iter_mut().zip(b).zip(x) {
            *r = difference(b[i], cols.iter().zip(values).map(|(&j, &v)| (v, x[j as usize])));
        }
    });
    (0..count).into_par_iter().map(|c| rows.iter().skip(c).step_by(count).copied().collect()).collect()
}
