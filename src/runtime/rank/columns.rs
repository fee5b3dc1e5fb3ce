//! A rank that solves for several right-hand sides at a time.
//!
//! They take the same iterations side by side: a product reads the matrix once for all of them. Each has scalars and limits of its own. The
//! rank leaves a column alone once its residual by recurrence meets the test; when half of them are left alone or more, and that was worth
//! while, those that go on are taken together into narrower vectors, and go on there as if nothing had been.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::Engine;
use crate::backend::LinearOperator;
use crate::backend::basis::BasisBackend;
use crate::backend::machine::Machine;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{Kind, MATRIX};
use crate::comm::{Communicator, Links};
use crate::error::Result;
use crate::krylov::{Iterate, Workspace, lend};
use crate::precond::scaling::RankScaling;
use crate::real::Real;
use crate::runtime::watch::{Watch, Watched};
use crate::timeline::Split;
use crate::timeline::stages::stage;

/// A rank's part of several right-hand sides, and of what x begins and ends with.
pub(crate) struct Columns<'a> {
    pub(crate) b: Vec<&'a [f64]>,
    pub(crate) x: Vec<&'a mut [f64]>,
    /// Whether each is a work-group's own.
    pub(crate) in_batch: bool,
}

/// How one rank's iterations for several right-hand sides ended.
pub(crate) struct ColumnsEnded {
    pub(crate) columns: Vec<Watched>,
    pub(crate) split: Split,
    pub(crate) compile: Duration,
    pub(crate) upload: Duration,
    pub(crate) solve: Duration,
    pub(crate) gather: Duration,
}

/// The rank's operations on vectors of several columns.
struct Block<O: PassBackend, A> {
    backend: O,
    /// A, alone.
    a: [A; 1],
    w: Workspace<O>,
    machine: Machine<O>,
    /// The right-hand side in each column; the others are there to fill the vectors.
    which: Vec<usize>,
}

/// Iterations between two looks at whether columns had better be taken together.
const LOOK_EVERY: u64 = 8;

/// Whether iterations have taken longer than it takes to open a rank for narrower vectors, whose kernels may have to be compiled, by the
/// clock of rank 0; collective.
fn takes_longer<O: PassBackend>(backend: &O, spent: Duration, opening: Duration) -> Result<bool> {
    Ok(backend.comm().gather(spent.as_secs_f64() - opening.as_secs_f64())?[0] > 0.0)
}

/// The columns of vectors for so many right-hand sides.
pub(crate) fn width(count: usize) -> usize {
    count.next_power_of_two().max(2)
}

impl<O: PassBackend + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Engine<O, A, I> {
    /// Solves for several right-hand sides at a time, if the rank can; all ranks can, or none.
    pub(super) fn solve_columns(
        &mut self,
        links: Links,
        Columns { b, mut x, .. }: Columns<'_>,
        mut watch: Watch<'_>,
    ) -> Result<ColumnsEnded> {
        let (start, uploading, compiled) = (Instant::now(), stage("upload"), self.backend.compiled());
        let mut scaling = self.scaling.take();
        let mut block = self.block((0..b.len()).collect(), scaling.is_some(), O::Real::link(links))?;
        let opening = start.elapsed();
        let roots = scaling.as_ref().map(RankScaling::roots);
        let rhs = vector(&block.backend, &b, |v, row| roots.map_or(v, |roots| v / roots[row]))?;
        let first: Vec<&[f64]> = x.iter().map(|x| &**x).collect();
        block.w.x = vector(&block.backend, &first, |v, row| roots.map_or(v, |roots| v * roots[row].abs()))?;
        block.backend.finish(0)?;
        block.backend.comm().sum(&mut [])?; // all ranks are there
        let compile = self.backend.compiled() - compiled;
        let upload = uploading.end().saturating_sub(compile);

        let (start, solving) = (Instant::now(), stage("solve"));
        let mut gather = Duration::ZERO;
        let Block { backend, a, w, .. } = &mut block;
        backend.begin()?;
        backend.copy(&w.x, &mut w.q)?; // which has room for the halo
        a[0].residual(backend, &rhs, &mut w.q, &mut w.r)?;
        drop(rhs);
        lend(&mut block.machine, &mut block.w, &mut scaling.as_mut());
        let norms = block.machine.begin_columns(&block.backend)?;
        watch.begin(&norms);
        let others = block.which.len()..block.backend.columns();
        let over = (0..block.which.len()).filter(|k| watch.columns[*k].end.is_some()).chain(others);
        over.for_each(|column| block.machine.leave(column));
        block.machine.start(&block.backend, &block.a, false)?;

        let (mut iteration, mut since, mut split) = (0, 0, Split::default());
        while block.machine.active() > 0 {
            iteration += 1;
            let Block { backend, a, machine, which, .. } = &mut block;
            backend.begin_iteration(iteration)?;
            let mut see = |column: usize, record| watch.see(which[column], &record);
            machine.iterate(backend, &*a, iteration, 0.0, &mut see)?;
            if watch.attend(iteration, block.backend.comm()) {
                break;
            }
            let width = block.backend.columns();
            let are_few = width > 2 && (1..=width / 2).contains(&block.machine.active());
            if are_few
                && iteration.is_multiple_of(LOOK_EVERY)
                && takes_longer(&block.backend, start.elapsed(), opening)?
            {
                let started = Instant::now();
                split = split + block.backend.finish(iteration - since)?;
                since = iteration;
                block = self.narrower(block, &mut scaling, &mut watch, &mut x)?;
                gather += started.elapsed();
            }
        }
        let Block { backend, a, machine, which, .. } = &mut block;
        machine.settle(backend, &a[0], &mut |column, record| watch.see(which[column], &record))?;
        machine.complete(backend)?;
        lend(&mut block.machine, &mut block.w, &mut scaling.as_mut());
        block.backend.end_run(watch.iterations)?;
        split = split + block.backend.finish(watch.iterations - since)?;
        let solve = solving.end().saturating_sub(gather);

        let gathering = stage("gather");
        give(&block, &block.w.x, |_| true, scaling.as_ref(), &mut x)?;
        gather += gathering.end();
        self.scaling = scaling;
        Ok(ColumnsEnded { columns: watch.columns, split, compile, upload, solve, gather })
    }

    /// The rank with vectors for these right-hand sides.
    fn block(&self, which: Vec<usize>, is_scaled: bool, comm: Box<dyn Communicator<O::Real>>) -> Result<Block<O, A>> {
        let mut backend = self.backend.with_columns(width(which.len()))?;
        backend.set_comm(comm);
        let a = [self.operators[MATRIX].of_columns(&backend, backend.columns())?];
        let m =
            self.precond.as_ref().map(|(precond, rows)| precond.set_up(rows, backend.comm())).transpose()?.flatten();
        let program = self.method.program(Kind { is_scaled, is_complex: false }, m);
        let program = program.unwrap_or_else(|| unreachable!("{} is a text", self.method));
        let machine = Machine::new(&backend, &a, program)?;
        Ok(Block { w: Workspace::new(&backend, &a)?, backend, a, machine, which })
    }

    /// Gives the x of columns that are over, and takes the others together.
    fn narrower(
        &self,
        mut block: Block<O, A>,
        scaling: &mut Option<RankScaling<O>>,
        watch: &mut Watch<'_>,
        x: &mut [&mut [f64]],
    ) -> Result<Block<O, A>> {
        let Block { backend, a, machine, which, .. } = &mut block;
        machine.settle(backend, &a[0], &mut |column, record| watch.see(which[column], &record))?;
        machine.complete(backend)?;
        let goes_on = |column: usize| watch.columns[which[column]].end.is_none();
        let left: Vec<usize> = (0..which.len()).filter(|column| goes_on(*column)).collect();
        if left.is_empty() {
            return Ok(block); // the last one has ended meanwhile
        }
        let those = left.iter().map(|column| which[*column]).collect();
        let is_scaled = scaling.is_some();
        lend(&mut block.machine, &mut block.w, &mut scaling.as_mut());
        give(&block, &block.w.x, |column| !left.contains(&column), scaling.as_ref(), x)?;
        let comm = block.backend.take_comm();
        let mut new = self.block(those, is_scaled, comm)?;
        lend(&mut block.machine, &mut block.w, &mut None);
        lend(&mut new.machine, &mut new.w, &mut scaling.as_mut());
        new.machine.take_over(&new.backend, &block.machine, &left)?;
        Ok(new)
    }
}

/// A vector whose columns are these, each element changed by `change`, which gets its row, too; zeros fill it up.
fn vector<O: PassBackend>(
    backend: &O,
    columns: &[&[f64]],
    change: impl Fn(f64, usize) -> f64 + Sync,
) -> Result<O::Vector> {
    let width = backend.columns();
    let mut all = vec![O::Real::default(); backend.n_owned()];
    all.par_chunks_mut(width).enumerate().with_min_len(1 << 10).for_each(|(row, to)| {
        to.iter_mut().zip(columns).for_each(|(to, column)| *to = O::Real::from_f64(change(column[row], row)));
    });
    let mut vector = backend.vector(0, "columns")?;
    backend.write(&all, &mut vector)?;
    Ok(vector)
}

/// Gives x of those columns that are `wanted`, in the units given.
fn give<O: PassBackend, A>(
    block: &Block<O, A>,
    from: &O::Vector,
    wanted: impl Fn(usize) -> bool,
    scaling: Option<&RankScaling<O>>,
    x: &mut [&mut [f64]],
) -> Result<()> {
    let width = block.backend.columns();
    let mut all = vec![O::Real::default(); block.backend.n_owned()];
    block.backend.read(from, &mut all)?;
    for (column, which) in block.which.iter().enumerate().filter(|(column, _)| wanted(*column)) {
        let rows = x[*which].par_iter_mut().enumerate().with_min_len(1 << 12);
        rows.for_each(|(row, x)| *x = all[row * width + column].to_f64());
        if let Some(scaling) = scaling {
            scaling.undo(x[*which]);
        }
    }
    Ok(())
}
