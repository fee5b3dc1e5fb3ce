//! The first level: D^(−½) A D^(−½) of the rows that the device has, by their patterns or as they are, or of those of the host.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::scales;
use super::set_up::SetUp;
use super::{OfRanks, multiples};
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::amg::DeviceSparse;
use crate::kernels::amg::blocks::DeviceBlocks;
use crate::kernels::amg::first::{FirstKernels, FirstVectors};
use crate::kernels::csr::CsrBlock;
use crate::kernels::dictionary::DictionaryBlock;
use crate::matrix::Csr;
use crate::operator::by_dictionary;
use crate::operator::csr::columns;
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// Elements that are worth a thread.
const FEW: usize = 1 << 14;

/// What makes the first level's vectors of the diagonal.
pub(super) struct Diagonals<T> {
    pub(super) ctx: Arc<Context>,
    pub(super) kernels: FirstKernels<T>,
}

impl<T: Real> Diagonals<T> {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// A failing compiler.
    pub(super) fn new(ctx: &Arc<Context>) -> Result<Self> {
        Ok(Self { ctx: Arc::clone(ctx), kernels: FirstKernels::build(ctx)? })
    }

    /// A diagonal that the host has.
    pub(super) fn moved(&self, diagonal: &[f64]) -> Result<DeviceVec<T>> {
        DeviceVec::made(&self.ctx, diagonal.len(), 1, "the diagonal", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&diagonal[at]).for_each(|(to, d)| *to = T::from_f64(*d));
        })
    }

    /// The vectors of a diagonal with this least and this largest element.
    pub(super) fn vectors(
        &self,
        diagonal: &DeviceVec<T>,
        [least, largest]: [f64; 2],
        OfRanks { factor, scaled_by, .. }: OfRanks<'_, T>,
    ) -> Result<FirstVectors<T>> {
        let multiples = match scaled_by {
            Some(_) => multiples((factor * least).sqrt().recip(), 1.0),
            None => multiples(least.sqrt().recip(), factor),
        };
        self.kernels.vectors(&self.ctx, (diagonal, scaled_by.is_some()), largest, multiples)
    }
}

/// The first level.
pub(super) struct First<T> {
    /// D^(−½) A D^(−½),
    pub(super) matrix: DeviceSparse,
    /// and as the cycle multiplies it, if that is not so.
    pub(super) rows: Option<DeviceRows<f32>>,
    /// In blocks, if nodes have several unknowns.
    pub(super) blocks: Option<DeviceBlocks>,
    /// The diagonal of A, if the host has it.
    pub(super) diagonal: Option<Vec<f64>>,
    pub(super) vectors: FirstVectors<T>,
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// The first level of the rows that the device has by patterns, if these are in one piece.
    pub(super) fn first_of_patterns(&self, block: &DictionaryBlock<T>, of: OfRanks<'_, T>) -> Result<Option<First<T>>> {
        let Self { ctx, kernels, .. } = self;
        let of_rows = &self.diagonals.kernels;
        let times = of.times();
        let Some(diagonal) = of_rows.diagonal(ctx, block, times)? else { return Ok(None) };
        let range = of_rows.range(ctx, &diagonal)?;
        let vectors = match of.scaled_by {
            // `factor` times the diagonal
            Some(diagonal) => {
                self.diagonals.vectors(diagonal, of_rows.range(ctx, diagonal)?, OfRanks { factor: 1.0, ..of })?
            }
            None => self.diagonals.vectors(&diagonal, range, of)?,
        };
        let matrix = of_rows.matrix(ctx, kernels, (block, times), &vectors.scale)?;
        let rows = self.by_patterns((block, of), &vectors.scale, range)?;
        Ok(Some(First { matrix, rows: Some(by_dictionary::made(rows)), blocks: None, diagonal: None, vectors }))
    }

    /// The first level of the rows that the device has, as they are, of nodes with so many unknowns.
    pub(super) fn first_of_compressed(
        &self,
        rows: CsrBlock<T>,
        of: OfRanks<'_, T>,
        unknowns: usize,
    ) -> Result<First<T>> {
        let Self { ctx, kernels, .. } = self;
        let of_rows = &self.diagonals.kernels;
        let (vectors, diagonal) = match of.scaled_by {
            // `factor` times the diagonal
            Some(diagonal) => {
                let range = of_rows.range(ctx, diagonal)?;
                (self.diagonals.vectors(diagonal, range, OfRanks { factor: 1.0, ..of })?, None)
            }
            None => {
                let diagonal = of_rows.diagonal_of_rows(ctx, &rows, of.times())?;
                // modes are made on the host; single precision has not all of its bits
                let is_of_use = unknowns > 1 && size_of::<T>() == size_of::<f64>();
                let on_host = is_of_use.then(|| self.read_diagonal(&diagonal)).transpose()?;
                (self.diagonals.vectors(&diagonal, of_rows.range(ctx, &diagonal)?, of)?, on_host)
            }
        };
        let matrix = of_rows.of_rows(ctx, (rows, of.times()), &vectors.scale)?;
        let blocks = if unknowns > 1 { Some(kernels.blocks_of(ctx, &matrix, unknowns)?) } else { None };
        Ok(First { matrix, rows: None, blocks, diagonal, vectors })
    }

    fn read_diagonal(&self, diagonal: &DeviceVec<T>) -> Result<Vec<f64>> {
        let mut on_host = vec![T::default(); diagonal.len()];
        diagonal.read(&self.ctx, 0, &mut on_host)?;
        Ok(on_host.into_par_iter().with_min_len(FEW).map(T::to_f64).collect())
    }

    /// The first level as the cycle multiplies it, of rows by patterns whose diagonal has this least and this largest element.
    pub(super) fn by_patterns(
        &self,
        (block, of): (&DictionaryBlock<T>, OfRanks<'_, T>),
        scale: &DeviceVec<T>,
        [least, largest]: [f64; 2],
    ) -> Result<DictionaryBlock<f32>> {
        let one_scale = match of.scaled_by {
            Some(_) => Some(1.0),
            None => (least == largest).then(|| least.sqrt().recip()),
        };
        let all_alike = one_scale.filter(|_| block.width.is_none());
        let width = match block.width {
            Some(width) => width as usize,
            None => self.longest(block)?,
        };
        self.diagonals.kernels.by_patterns(&self.ctx, (block, of.times()), scale, all_alike, width)
    }

    /// The most entries of a pattern.
    fn longest(&self, block: &DictionaryBlock<T>) -> Result<usize> {
        let mut runs = vec![[0; 2]; block.runs.len()];
        block.runs.read(&self.ctx, 0, &mut runs)?;
        Ok(runs.iter().map(|[begin, end]| end - begin).max().unwrap_or(0) as usize)
    }

    /// The first level of rows that the host has, of nodes with so many unknowns.
    pub(super) fn first_of_rows(&self, a: &Csr, of: OfRanks<'_, T>, unknowns: usize) -> Result<First<T>> {
        let ctx = &self.ctx;
        let of_rows = &self.diagonals.kernels;
        let diagonal = a.diagonal();
        let scale = scales(&diagonal);
        let (matrix, blocks) = if unknowns > 1 {
            let blocks = self.moved_blocks(a, &scale, unknowns)?;
            (self.kernels.rows_of(ctx, &blocks)?, Some(blocks))
        } else {
            (self.moved(a, &scale, 0..a.n_rows())?, None)
        };
        let on_device = self.diagonals.moved(&diagonal)?;
        let vectors = self.diagonals.vectors(&on_device, of_rows.range(ctx, &on_device)?, of)?;
        Ok(First { matrix, rows: None, blocks, diagonal: Some(diagonal), vectors })
    }

    /// D^(−½) A D^(−½), of some rows of a matrix that the host has.
    pub(super) fn moved(&self, a: &Csr, scale: &[f64], rows: Range<usize>) -> Result<DeviceSparse> {
        let (ctx, row_ptr) = (&self.ctx, &a.row_ptr()[rows.start..=rows.end]);
        let (base, entries) = (row_ptr[0], row_ptr[0]..row_ptr[rows.len()]);
        let (col_idx, values) = (&a.col_idx()[entries.clone()], &a.values()[entries.clone()]);
        check_count(ctx, entries.len())?;
        let starts = DeviceVec::made(ctx, row_ptr.len(), 1, "where rows begin", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&row_ptr[at]).for_each(|(to, &start)| *to = (start - base) as u32);
        })?;
        let columns = columns(ctx, col_idx, a.n_cols())?;
        let values = DeviceVec::made(ctx, values.len(), 1, "values of a level", |at, to| {
            to.par_chunks_mut(FEW).enumerate().for_each(|(k, to)| {
                let first = at.start + k * FEW;
                let mut row = row_ptr.partition_point(|&start| start - base <= first) - 1;
                for (entry, to) in (first..).zip(to) {
                    while row_ptr[row + 1] - base <= entry {
                        row += 1;
                    }
                    let (i, j) = (rows.start + row, col_idx[entry] as usize);
                    // the same bits for (i, j) and (j, i)
                    *to = if j == i { 1.0 } else { (values[entry] * (scale[i] * scale[j])) as f32 };
                }
            });
        })?;
        Ok(DeviceSparse { n_rows: rows.len(), n_cols: a.n_cols(), starts, columns, values })
    }

    /// The same in full blocks of `size` rows and columns. The entries of a node's rows are in the same places as those of its blocks.
    pub(super) fn moved_blocks(&self, a: &Csr, scale: &[f64], size: usize) -> Result<DeviceBlocks> {
        let (ctx, row_ptr, square) = (&self.ctx, a.row_ptr(), size * size);
        check_count(ctx, a.nnz())?;
        let n = a.n_rows() / size;
        let node_of = |entry: usize| (row_ptr.partition_point(|&start| start <= entry) - 1) / size;
        let starts = DeviceVec::made(ctx, n + 1, 1, "where nodes begin", |at, to| {
            let places = to.par_iter_mut().with_min_len(FEW).zip(at);
            places.for_each(|(to, node)| *to = (row_ptr[node * size] / square) as u32);
        })?;
        let columns = DeviceVec::made(ctx, a.nnz() / square, 1, "columns of a level", |at, to| {
            to.par_chunks_mut(FEW).enumerate().for_each(|(k, to)| {
                let first = at.start + k * FEW;
                let mut node = node_of(first * square);
                for (block, to) in (first..).zip(to) {
                    while row_ptr[(node + 1) * size] <= block * square {
                        node += 1;
                    }
                    let number = block - row_ptr[node * size] / square;
                    *to = a.row(node * size).0[number * size] / size as u32;
                }
            });
        })?;
        let blocks_of = |node: usize, to: &mut [f32]| {
            for (i, row) in (node * size..(node + 1) * size).enumerate() {
                let ((columns, values), of_row) = (a.row(row), scale[row]);
                let blocks = columns.chunks_exact(size).zip(values.chunks_exact(size));
                for ((columns, values), block) in blocks.zip(to.chunks_exact_mut(square)) {
                    for ((to, &j), v) in block[i * size..].iter_mut().zip(columns).zip(values) {
                        let j = j as usize;
                        *to = if j == row { 1.0 } else { (v * (of_row * scale[j])) as f32 };
                    }
                }
            }
        };
        let values = DeviceVec::made(ctx, a.nnz(), 1, "blocks of a level", |at, to| {
            to.par_chunks_mut(FEW).enumerate().for_each(|(k, to)| {
                let first = at.start + k * FEW;
                let behind = first + to.len();
                for node in node_of(first)..n {
                    let [begin, end] = [node, node + 1].map(|node| row_ptr[node * size]);
                    let here = begin.max(first)..end.min(behind);
                    if here.is_empty() {
                        break;
                    }
                    let place = &mut to[here.start - first..here.end - first];
                    if here.len() == end - begin {
                        blocks_of(node, place);
                    } else {
                        let mut whole = vec![0.0; end - begin];
                        blocks_of(node, &mut whole);
                        place.copy_from_slice(&whole[here.start - begin..here.end - begin]);
                    }
                }
            });
        })?;
        self.kernels.blocks_with(ctx, (n, size), starts, columns, values)
    }
}

/// Checks that 32-bit numbers count the entries.
fn check_count(ctx: &Context, entries: usize) -> Result<()> {
    if u32::try_from(entries).is_ok() {
        return Ok(());
    }
    Err(Error::OutOfDeviceMemory {
        device: ctx.info().label(),
        what: "a level of amg".into(),
        need_bytes: 8 * entries as u64,
        limit: "what 32-bit numbers count",
        have_bytes: 8 * u64::from(u32::MAX),
        hint: "the host has no such limit".into(),
    })
}
