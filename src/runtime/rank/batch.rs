//! A rank that solves for many right-hand sides of a small system: a work-group of its device iterates for one of them.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::Engine;
use super::columns::{Columns, ColumnsEnded};
use crate::backend::LinearOperator;
use crate::backend::basis::BasisBackend;
use crate::backend::batch::On;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{Kind, MATRIX};
use crate::comm::Links;
use crate::error::Result;
use crate::krylov::Iterate;
use crate::precond::scaling::RankScaling;
use crate::real::Real;
use crate::runtime::watch::Watch;
use crate::timeline::stages::stage;

/// Launches that are under way: one works while the host looks at the one before.
const AHEAD: usize = 2;

/// Iterations of the first launch,
const FIRST: u64 = 8;
/// and what a launch should not take much longer than.
const LAUNCH_TIME: Duration = Duration::from_millis(50);

impl<O: PassBackend + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Engine<O, A, I> {
    /// Compiles what iterates for so many right-hand sides, unless that was done; says whether there is such a thing.
    pub(super) fn has_batch(&mut self, columns: usize) -> bool {
        if self.batch.as_ref().is_none_or(|(of, _)| *of != columns) {
            let compiled = self.backend.compiled();
            let batch = self.new_batch(columns).unwrap_or_else(|e| {
                log::warn!("a work-group can't iterate for a column of its own: {e}");
                None
            });
            self.batch = Some((columns, batch));
            self.batch_compiled += self.backend.compiled() - compiled;
        }
        matches!(self.batch, Some((_, Some(_))))
    }

    fn new_batch(&self, columns: usize) -> Result<Option<super::Batch<O>>> {
        let ([a], true) = (&self.operators[..], self.takes_texts_of_columns()) else { return Ok(None) };
        let m = self
            .precond
            .as_ref()
            .map(|(precond, rows)| precond.set_up(rows, self.backend.comm()))
            .transpose()?
            .flatten();
        let kind = Kind { is_scaled: self.scaling.is_some(), is_complex: false };
        match (self.method.program(kind, m), a.rows()) {
            (Some(program), Some(rows)) => self.backend.batch(program, rows, columns),
            _ => Ok(None),
        }
    }

    /// Solves for many right-hand sides, of which a column is a group's own.
    pub(super) fn solve_batch(
        &mut self,
        links: Links,
        Columns { b, mut x, .. }: Columns<'_>,
        mut watch: Watch<'_>,
    ) -> Result<ColumnsEnded> {
        let (uploading, compiled) = (stage("upload"), self.backend.compiled());
        let before = std::mem::take(&mut self.batch_compiled);
        let Self { backend, operators, scaling, batch, .. } = self;
        backend.set_comm(O::Real::link(links));
        let Some((_, Some(batch))) = batch else { unreachable!("the rank said that it can") };
        let on = || On {
            rows: operators[MATRIX].rows().unwrap_or_else(|| unreachable!("one launch has all rows")),
            weights: scaling.as_ref().map(|scaling| &scaling.weights),
        };
        let roots = scaling.as_ref().map(RankScaling::roots);
        let rhs = behind_each_other(&b, |v, row| roots.map_or(v, |roots| v / roots[row]));
        let first: Vec<&[f64]> = x.iter().map(|x| &**x).collect();
        let first = behind_each_other(&first, |v, row| roots.map_or(v, |roots| v * roots[row].abs()));
        backend.begin()?;
        let norms = batch.begin(backend, on(), &rhs, &first)?;
        let compile = backend.compiled() - compiled;
        let upload = uploading.end().saturating_sub(compile);
        let compile = before + compile;

        let solving = stage("solve");
        watch.begin(&norms);
        batch.start(backend, &watch.limits(), &watch.over())?;
        let (mut next, mut length, mut last_look) = (1, FIRST, Instant::now());
        while watch.over().contains(&false) {
            let count = length.min(batch.longest()).min(watch.allowed_from(next));
            if count > 0 && batch.under_way() < AHEAD {
                batch.launch(backend, on(), next..next + count)?;
                next += count;
                continue;
            }
            let over = watch.over();
            let seen = batch.look(backend, &over, &mut |column, record| watch.see(column, record).is_some())?;
            let Some(seen) = seen else { break };
            // no launch is to keep a display waiting
            let took = std::mem::replace(&mut last_look, Instant::now()).elapsed();
            length = if took < LAUNCH_TIME { 2 * length } else { (length / 2).max(1) }.min(batch.longest());
            if watch.attend(seen.end - 1, backend.comm()) {
                break;
            }
        }
        let solved = batch.finish(backend, on())?;
        backend.end_run(watch.iterations)?;
        let split = backend.finish(watch.iterations)?;
        let solve = solving.end();

        let gathering = stage("gather");
        let n = backend.n_owned();
        x.par_iter_mut().zip(solved.par_chunks(n.max(1))).for_each(|(x, solved)| {
            let scaled = |row: usize| roots.map_or(1.0, |roots| roots[row].abs());
            x.iter_mut().zip(solved).enumerate().for_each(|(row, (x, solved))| *x = solved.to_f64() / scaled(row));
        });
        Ok(ColumnsEnded { columns: watch.columns, split, compile, upload, solve, gather: gathering.end() })
    }
}

/// Columns one behind the other, each element changed by `change`, which gets its row, too.
fn behind_each_other<T: Real>(columns: &[&[f64]], change: impl Fn(f64, usize) -> f64 + Sync) -> Vec<T> {
    let elements = |column: &&[f64]| column.iter().enumerate().map(|(row, v)| T::from_f64(change(*v, row))).collect();
    let columns: Vec<Vec<T>> = columns.par_iter().map(elements).collect();
    columns.concat()
}
