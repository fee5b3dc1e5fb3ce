//! Passes over vectors of several columns on a device. The host gives each column its factors; partial sums are added up on the device, so
//! that one number for each column and sum comes to the host.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::OpenClBackend;
use crate::backend::pass_backend::Which;
use crate::backend::program::{Pass, Program};
use crate::backend::source::{Style, columns};
use crate::device::{DeviceVec, Grid, PendingWrite, Queue};
use crate::error::Result;
use crate::kernels::columns::{AddColumns, ColumnsPass, Series, TakeColumns};
use crate::kernels::pass::PassSums;
use crate::kernels::{self, PassesFor};
use crate::real::Real;

/// Writes of factors that are kept until they are over for sure: the host has waited for sums since.
const WRITES: usize = 8;

/// The passes of a program over vectors of several columns.
pub(super) struct ColumnPasses<A: Real> {
    columns: usize,
    passes: BTreeMap<Which, ColumnsPass>,
    add: AddColumns,
    take: TakeColumns,
    /// Factors of the pass that comes next.
    factors: DeviceVec<A>,
    writes: VecDeque<PendingWrite>,
    /// Sums of each column, by their numbers.
    totals: DeviceVec<A>,
}

/// Partial sums in an array, and where they are to go.
pub(super) type Parts<'a, A> = (&'a DeviceVec<A>, Series);

impl<A: Real> ColumnPasses<A> {
    /// Compiles these passes.
    ///
    /// # Errors
    /// A compiler that fails, or not enough memory.
    pub(super) fn compile<T: Real>(
        backend: &OpenClBackend<T, A>,
        program: &Program,
        wanted: Vec<(Which, Pass)>,
        style: Style,
        group_size: usize,
    ) -> Result<Self> {
        let (ctx, columns) = (&backend.ctx, backend.columns);
        let shared = program.shared();
        let text = wanted.iter().map(|(which, pass)| columns::given(pass, &which.kernel(pass), style, &shared));
        let text: String = text.collect();
        let code = kernels::build_generated::<T, A>(ctx, &text, group_size, PassesFor::Columns(columns))?;
        let types = [T::CL_NAME, A::CL_NAME];
        let most = wanted.iter().map(|(_, pass)| pass.factors().len()).max().unwrap_or(0);
        let load = |(which, pass): (Which, Pass)| {
            let is_shared = pass.vectors().iter().map(|slot| shared.contains(slot)).collect();
            let sizes = [columns, pass.factors().len()];
            Ok((which, ColumnsPass::load(ctx, &code, &which.kernel(&pass), types, sizes, is_shared)?))
        };
        Ok(Self {
            columns,
            passes: wanted.into_iter().map(load).collect::<Result<_>>()?,
            add: AddColumns::load(ctx, &code, types)?,
            take: TakeColumns::load(ctx, &code, types)?,
            factors: DeviceVec::zeros(ctx, (most + 1) * columns, "factors")?,
            writes: VecDeque::new(),
            totals: DeviceVec::zeros(ctx, program.sums.max(1) * columns, "sums of columns")?,
        })
    }

    /// Does a pass with the `n` elements from `begin` on.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn pass<T: Real>(
        &mut self,
        backend: &OpenClBackend<T, A>,
        which: Which,
        factors: &[f64],
        (grid, [begin, n]): (Grid, [usize; 2]),
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
    ) -> Result<()> {
        let factors: Arc<Vec<A>> = Arc::new(factors.iter().map(|factor| A::from_f64(*factor)).collect());
        let len = factors.len();
        self.writes.push_back(self.factors.start_write(&backend.ctx, Queue::Compute, 0, factors, 0..len)?);
        if self.writes.len() > WRITES {
            self.writes.pop_front();
        }
        self.passes[&which].launch(&backend.ctx, grid, [begin, n], &self.factors, sums, vectors)
    }

    /// Adds partial sums up: those of a sum for each column.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn add_up<T: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        group_size: usize,
        parts: Vec<Parts<'_, A>>,
    ) -> Result<()> {
        let mut joined: Vec<Parts<'_, A>> = Vec::new();
        for (array, series) in parts {
            let former = joined.last_mut().filter(|(of, _)| of.id() == array.id());
            if !former.is_some_and(|(_, former)| former.join(&series)) {
                joined.push((array, series));
            }
        }
        joined
            .into_iter()
            .try_for_each(|(array, series)| self.add.launch(&backend.ctx, group_size, array, series, &self.totals))
    }

    /// `to` = columns `which` of `from`, which has `of` of them, with halos.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn take<T: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        grid: Grid,
        (from, of): (&DeviceVec<T>, usize),
        which: &[usize],
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        self.take.launch(&backend.ctx, grid, self.columns, (from, of), which, to)
    }

    /// The sums of a sum's columns, when partial sums were added up.
    pub(super) fn totals(&self, sum: usize) -> (&DeviceVec<A>, Range<usize>) {
        (&self.totals, sum * self.columns..(sum + 1) * self.columns)
    }
}
