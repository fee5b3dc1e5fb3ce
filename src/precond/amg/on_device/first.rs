//! The first level: D^(−½) A D^(−½) of the rows that the device has, if these are by their patterns, or of those of the host.

use rayon::prelude::*;

use super::super::scales;
use super::multiples;
use super::set_up::SetUp;
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::amg::DeviceSparse;
use crate::kernels::amg::first::FirstVectors;
use crate::kernels::dictionary::DictionaryBlock;
use crate::matrix::Csr;
use crate::operator::by_dictionary;
use crate::operator::csr::columns;
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// Elements that are worth a thread.
const FEW: usize = 1 << 14;

/// The first level.
pub(super) struct First<T> {
    /// D^(−½) A D^(−½),
    pub(super) matrix: DeviceSparse,
    /// and as the cycle multiplies it, if that is not so.
    pub(super) rows: Option<DeviceRows<f32>>,
    pub(super) vectors: FirstVectors<T>,
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// The first level of what the device has, `factor` times the matrix, if that is in one piece.
    pub(super) fn first_of_patterns(&self, block: &DictionaryBlock<T>, factor: f64) -> Result<Option<First<T>>> {
        let Self { ctx, of_rows, kernels, .. } = self;
        let times = T::from_f64(factor.recip());
        let Some(diagonal) = of_rows.diagonal(ctx, block, times)? else { return Ok(None) };
        let [least, largest] = of_rows.range(ctx, &diagonal)?;
        let vectors = of_rows.vectors(ctx, &diagonal, largest, multiples(least.sqrt().recip(), factor))?;
        let matrix = of_rows.matrix(ctx, kernels, (block, times), &vectors.scale)?;
        let all_alike = (block.width.is_none() && least == largest).then(|| least.sqrt().recip());
        let width = match block.width {
            Some(width) => width as usize,
            None => self.longest(block)?,
        };
        let rows = of_rows.by_patterns(ctx, (block, times), &vectors.scale, all_alike, width)?;
        Ok(Some(First { matrix, rows: Some(by_dictionary::made(rows)), vectors }))
    }

    /// The most entries of a pattern.
    fn longest(&self, block: &DictionaryBlock<T>) -> Result<usize> {
        let mut runs = vec![[0; 2]; block.runs.len()];
        block.runs.read(&self.ctx, 0, &mut runs)?;
        Ok(runs.iter().map(|[begin, end]| end - begin).max().unwrap_or(0) as usize)
    }

    /// The first level of rows that the host has.
    pub(super) fn first_of_rows(&self, a: &Csr, factor: f64) -> Result<First<T>> {
        let Self { ctx, of_rows, .. } = self;
        let diagonal = a.diagonal();
        let scale = scales(&diagonal);
        let matrix = self.moved(a, &scale)?;
        let on_device = DeviceVec::made(ctx, diagonal.len(), 1, "the diagonal", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&diagonal[at]).for_each(|(to, d)| *to = T::from_f64(*d));
        })?;
        let [least, largest] = of_rows.range(ctx, &on_device)?;
        let vectors = of_rows.vectors(ctx, &on_device, largest, multiples(least.sqrt().recip(), factor))?;
        Ok(First { matrix, rows: None, vectors })
    }

    /// D^(−½) A D^(−½), of rows that the host has.
    pub(super) fn moved(&self, a: &Csr, scale: &[f64]) -> Result<DeviceSparse> {
        let (ctx, row_ptr, col_idx, values) = (&self.ctx, a.row_ptr(), a.col_idx(), a.values());
        if u32::try_from(a.nnz()).is_err() {
            return Err(too_many(ctx, a.nnz()));
        }
        let starts = DeviceVec::made(ctx, row_ptr.len(), 1, "where rows begin", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&row_ptr[at]).for_each(|(to, &start)| *to = start as u32);
        })?;
        let columns = columns(ctx, col_idx, a.n_cols())?;
        let values = DeviceVec::made(ctx, values.len(), 1, "values of a level", |at, to| {
            to.par_chunks_mut(FEW).enumerate().for_each(|(k, to)| {
                let first = at.start + k * FEW;
                let mut row = row_ptr.partition_point(|&start| start <= first) - 1;
                for (entry, to) in (first..).zip(to) {
                    while row_ptr[row + 1] <= entry {
                        row += 1;
                    }
                    let j = col_idx[entry] as usize;
                    // the same bits for (i, j) and (j, i)
                    *to = if j == row { 1.0 } else { (values[entry] * (scale[row] * scale[j])) as f32 };
                }
            });
        })?;
        Ok(DeviceSparse { n_rows: a.n_rows(), n_cols: a.n_cols(), starts, columns, values })
    }
}

/// A matrix with more entries than 32-bit numbers count.
fn too_many(ctx: &Context, nnz: usize) -> Error {
    Error::OutOfDeviceMemory {
        device: ctx.info().label(),
        what: "a level of amg".into(),
        need_bytes: 8 * nnz as u64,
        limit: "what 32-bit numbers count",
        have_bytes: 8 * u64::from(u32::MAX),
        hint: "the host has no such limit".into(),
    }
}
