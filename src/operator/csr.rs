//! Compressed rows on a device.

use std::ops::Range;

use rayon::prelude::*;

use super::device_rows::{Arrays, DeviceRows};
use super::row_blocks::RowBlocks;
use super::{Format, segments};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::Tuning;
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::partition::{Part, compressed_bytes};
use crate::real::Real;

/// Moves the rows of `part`, times `factor`, to the device.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
///
/// # Panics
/// If a column is outside the block.
pub(super) fn upload<T: Real>(ctx: &Context, tuning: &Tuning, part: &Part<'_>, factor: f64) -> Result<DeviceRows<T>> {
    let base = part.row_ptr[0];
    let lens = part.row_ptr.windows(2).map(|row| row[1] - row[0]);
    let segments = segments::cut(ctx, lens, size_of::<T>().max(4));
    let rows = RowBlocks::cut(part, tuning, &segments);
    let n_cols = part.n_owned() + part.halo.len;
    let segment = |rows: Range<usize>| {
        let entries = part.row_ptr[rows.start] - base..part.row_ptr[rows.end] - base;
        Ok(CsrSegment {
            rows,
            before: entries.start as u32,
            col_idx: columns(ctx, &part.col_idx[entries.clone()], n_cols)?,
            values: DeviceVec::from_slice(ctx, &T::scaled(&part.values[entries], factor), "the values of the matrix")?,
        })
    };
    let row_ptr: Vec<u32> = part.row_ptr.iter().map(|&p| (p - base) as u32).collect();
    let block = CsrBlock {
        n_rows: part.n_owned(),
        n_cols,
        blocks: DeviceVec::from_slice(ctx, &rows.blocks, "the row blocks")?,
        row_ptr: DeviceVec::from_slice(ctx, &row_ptr, "the row pointers")?,
        segments: segments.into_iter().map(segment).collect::<Result<_>>()?,
    };
    let bytes = compressed_bytes(part.n_owned() as u64, part.nnz() as u64, size_of::<T>() as u64) as usize;
    let memory = bytes + 8 * rows.blocks.len();
    Ok(DeviceRows { format: Format::Csr, memory, bytes, arrays: Arrays::Csr(block, rows.sets) })
}

/// Moves column indices to the device, all of them below `limit`.
///
/// Kernels check no index. Those of a matrix in a mapped file may change at any time, so that only a copy can be vouched
/// for: piece by piece, which costs a fraction of the transfer.
fn columns(ctx: &Context, indices: &[u32], limit: usize) -> Result<DeviceVec<u32>> {
    const PIECE: usize = 1 << 20;
    let mut on_device = DeviceVec::zeros(ctx, indices.len(), "the column indices")?;
    let mut copy = Vec::new();
    for (k, piece) in indices.chunks(PIECE).enumerate() {
        piece.par_iter().copied().collect_into_vec(&mut copy);
        let max = copy.par_iter().max().map_or(0, |&j| j as usize);
        assert!(max < limit, "column {max} of {limit}: was the matrix's file changed after it was read?");
        on_device.write(ctx, k * PIECE, &copy)?;
    }
    Ok(on_device)
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
