//! Compressed rows on a device.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::device_rows::{DeviceRows, Sets, Values, each};
use super::plan::{Layout, Target, has_dominant_row};
use super::row_blocks::RowBlocks;
use super::{Format, segments};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::csr::{BlockSet, CsrBlock, CsrRows, CsrSegment};
use crate::kernels::{Shape, Tuning};
use crate::partition::{NewValues, Part, compressed_bytes};
use crate::real::Real;

/// Elements that are worth a thread.
const FEW: usize = 1 << 14;

/// The rows of a part, times `factor`, as they are.
pub(super) struct Compressed<'a, T> {
    pub(super) part: &'a Part<'a>,
    pub(super) factor: f64,
    /// What the device has already.
    pub(super) moved: Option<Arc<CsrBlock<T>>>,
}

impl<'a, T> Compressed<'a, T> {
    pub(super) fn new(part: &'a Part<'a>, factor: f64) -> Self {
        Self { part, factor, moved: None }
    }
}

impl<T: Real> Layout<T> for Compressed<'_, T> {
    fn format(&self) -> Format {
        Format::Csr
    }

    fn bytes(&self) -> usize {
        compressed_bytes(self.part.n_owned() as u64, self.part.nnz() as u64, size_of::<T>() as u64) as usize
    }

    /// On a GPU a group takes a long row as it is.
    fn is_trusted(&self, target: Target) -> bool {
        target.shape == Shape::Cpu || !has_dominant_row(self.part, target)
    }

    fn upload(&self, ctx: &Context, tuning: &Tuning) -> Result<DeviceRows<T>> {
        let block = match &self.moved {
            Some(moved) => Arc::clone(moved),
            None => block(ctx, self.part, self.factor)?,
        };
        rows(ctx, &block, &RowBlocks::cut(self.part, tuning, &segments_of(&block)))
    }
}

/// The rows of each segment.
pub(crate) fn segments_of<T>(block: &CsrBlock<T>) -> Vec<Range<usize>> {
    block.segments.iter().map(|segment| segment.rows.clone()).collect()
}

/// Moves the rows of `part`, times `factor`, to the device.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
///
/// # Panics
/// If a column is outside the block.
pub(crate) fn block<T: Real>(ctx: &Context, part: &Part<'_>, factor: f64) -> Result<Arc<CsrBlock<T>>> {
    let base = part.row_ptr[0];
    let lens = part.row_ptr.windows(2).map(|row| row[1] - row[0]);
    let n_cols = part.n_owned() + part.halo.len;
    let segment = |rows: Range<usize>| {
        let entries = part.row_ptr[rows.start] - base..part.row_ptr[rows.end] - base;
        Ok(CsrSegment {
            rows,
            before: entries.start as u32,
            col_idx: columns(ctx, &part.col_idx[entries.clone()], n_cols)?,
            values: values(ctx, &part.values[entries], factor)?,
        })
    };
    let segments = segments::cut(ctx, lens, size_of::<T>().max(4));
    Ok(Arc::new(CsrBlock {
        n_rows: part.n_owned(),
        n_cols,
        row_ptr: DeviceVec::made(ctx, part.row_ptr.len(), 1, "the row pointers", |at, to| {
            let each = to.par_iter_mut().with_min_len(FEW).zip(&part.row_ptr[at]);
            each.for_each(|(to, &p)| *to = (p - base) as u32);
        })?,
        segments: segments.into_iter().map(segment).collect::<Result<_>>()?,
    }))
}

/// Rows that the device itself has made, in row blocks that it has cut: all rows, in one segment.
pub(crate) fn made<T: Real>(block: CsrBlock<T>, blocks: DeviceVec<[u32; 2]>) -> DeviceRows<T> {
    let (n, entries) = (block.n_rows as u64, block.segments.iter().map(|segment| segment.values.len() as u64).sum());
    let memory = compressed_bytes(n, entries, size_of::<T>() as u64) as usize + 8 * blocks.len();
    let set = BlockSet { segment: 0, first: 0, last: blocks.len() as u32 };
    let (block, blocks) = (Arc::new(block), Arc::new(blocks));
    let whole = || each([set], |set| CsrRows { block: Arc::clone(&block), blocks: Arc::clone(&blocks), set });
    DeviceRows::new(memory, [whole(), Vec::new()], whole())
}

/// The rows of a block in these row blocks.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
///
/// # Panics
/// If a row block is not inside its segment.
pub(crate) fn rows<T: Real>(ctx: &Context, block: &Arc<CsrBlock<T>>, cut: &RowBlocks) -> Result<DeviceRows<T>> {
    let is_inside = |set: &BlockSet| {
        let rows = &block.segments[set.segment].rows;
        let of_set = &cut.blocks[set.first as usize..set.last as usize];
        of_set.iter().all(|&[begin, end]| begin <= end && rows.start <= begin as usize && end as usize <= rows.end)
    };
    assert!(cut.sets.iter().flatten().all(is_inside));
    let blocks = Arc::new(DeviceVec::from_slice(ctx, &cut.blocks, "the row blocks")?);
    let rows = |set: BlockSet| CsrRows { block: Arc::clone(block), blocks: Arc::clone(&blocks), set };
    let entries: usize = block.segments.iter().map(|segment| segment.values.len()).sum();
    let memory =
        compressed_bytes(block.n_rows as u64, entries as u64, size_of::<T>() as u64) as usize + 8 * cut.blocks.len();
    let [interior, boundary] = &cut.sets;
    let sets = [interior, boundary].map(|sets| each(sets.iter().copied(), rows));
    Ok(DeviceRows::new(memory, sets, each(side_by_side(&cut.sets), rows)).with_values(Arc::clone(block)))
}

/// Entry by entry.
impl<T: Real> Values<T> for Arc<CsrBlock<T>> {
    fn replace(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool> {
        let all = new.values()?;
        for CsrSegment { before, values, .. } in &self.segments {
            let of_segment = &all[*before as usize..][..values.len()];
            values.make_anew(ctx, 1, |at, to| fill(&of_segment[at], new.factor, to))?;
        }
        Ok(true)
    }

    fn compressed(&self, ctx: &Context) -> Result<Option<CsrBlock<T>>> {
        let [CsrSegment { rows, before, col_idx, values }] = &self.segments[..] else { return Ok(None) };
        let segment = CsrSegment {
            rows: rows.clone(),
            before: *before,
            col_idx: col_idx.copied(ctx)?,
            values: values.copied(ctx)?,
        };
        let row_ptr = self.row_ptr.copied(ctx)?;
        Ok(Some(CsrBlock { n_rows: self.n_rows, n_cols: self.n_cols, row_ptr, segments: vec![segment] }))
    }
}

/// All row blocks of a segment at once, where they are side by side.
fn side_by_side(sets: &Sets<BlockSet>) -> Vec<BlockSet> {
    let mut all: Vec<BlockSet> = Vec::new();
    for &set in sets.iter().flatten() {
        match all.last_mut() {
            Some(last) if last.segment == set.segment && last.last == set.first => last.last = set.last,
            _ => all.push(set),
        }
    }
    all
}

/// Moves column indices to the device, all of them below `limit`.
///
/// Kernels check no index. Those of a matrix in a mapped file may change at any time, so that only a copy can be vouched
/// for: piece by piece, which costs a fraction of the transfer.
pub(crate) fn columns(ctx: &Context, indices: &[u32], limit: usize) -> Result<DeviceVec<u32>> {
    DeviceVec::made(ctx, indices.len(), 1, "the column indices", |at, to| {
        let copy = |(to, &from): (&mut u32, &u32)| {
            *to = from;
            from
        };
        let max = to.par_iter_mut().with_min_len(FEW).zip(&indices[at]).map(copy).max().unwrap_or(0);
        assert!((max as usize) < limit, "column {max} of {limit}: was the matrix's file changed after it was read?");
    })
}

/// Moves values, times `factor`.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
pub(super) fn values<T: Real>(ctx: &Context, values: &[f64], factor: f64) -> Result<DeviceVec<T>> {
    DeviceVec::made(ctx, values.len(), 1, "the values of the matrix", |at, to| fill(&values[at], factor, to))
}

/// Values times `factor`, in their places.
pub(super) fn fill<T: Real>(values: &[f64], factor: f64, to: &mut [T]) {
    to.par_iter_mut().with_min_len(FEW).zip(values).for_each(|(to, &v)| *to = T::from_f64(v * factor));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn columns_of_several_pieces() {
        let device = list().devices.remove(0);
        let ctx = Context::open(&device).unwrap();
        for len in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 21) + 5] {
            let indices: Vec<u32> = (0..len).rev().collect();
            let mut back = vec![9; len as usize];
            columns(&ctx, &indices, len as usize).unwrap().read(&ctx, 0, &mut back).unwrap();
            assert!(back == indices, "{len}");
        }
    }
}
