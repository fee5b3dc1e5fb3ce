//! A device's block of rows.

use std::sync::{Arc, RwLock};
use std::time::Instant;

use rayon::prelude::*;

use super::LinearOperator;
use super::row_blocks::RowBlocks;
use crate::comm::Outbox;
use crate::device::{Context, DeviceVec, Event, Pinned, Queue};
use crate::error::Result;
use crate::kernels::Tuning;
use crate::kernels::csr::CsrBlock;
use crate::ops::Ops;
use crate::ops::opencl::{DeviceSum, OpenClOps};
use crate::partition::{HaloPlan, Part};
use crate::real::Real;
use crate::timeline::Lane;

/// A block of rows in compressed sparse rows, with what its halo needs.
pub(crate) struct CsrDevice<T: Real> {
    block: CsrBlock<T>,
    interior: usize,
    plan: HaloPlan,
    send: DeviceVec<u32>,
    message: std::cell::RefCell<DeviceVec<T>>,
}

impl<T: Real> CsrDevice<T> {
    /// The most entries of a block: kernels count them in 32 bits, and look a work-group's size ahead.
    pub(crate) const MAX_NNZ: usize = u32::MAX as usize - (1 << 16);

    /// Moves the block of `part`, times `factor`, to the device. With it comes the pinned memory of its messages.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// If there are more entries than 32-bit row pointers can count, or a column is outside the block.
    pub(crate) fn upload(ctx: &Context, tuning: &Tuning, part: &Part<'_>, factor: f64) -> Result<(Self, Outbox<T>)> {
        assert!(part.nnz() <= Self::MAX_NNZ, "{} entries in one block", part.nnz());
        let rows = RowBlocks::cut(part, tuning);
        let base = part.row_ptr[0];
        let row_ptr: Vec<u32> = part.row_ptr.iter().map(|&p| (p - base) as u32).collect();
        let block = CsrBlock {
            n_rows: part.n_owned(),
            n_cols: part.n_owned() + part.halo.len,
            blocks: DeviceVec::from_slice(ctx, &rows.blocks, "the row blocks")?,
            row_ptr: DeviceVec::from_slice(ctx, &row_ptr, "the row pointers")?,
            col_idx: columns(ctx, &part.col_idx, part.n_owned() + part.halo.len)?,
            values: DeviceVec::from_slice(ctx, &T::scaled(part.values, factor), "the values of the matrix")?,
        };
        let outbox = Arc::new(RwLock::new(Pinned::zeros(ctx, part.halo.send.len())?));
        let this = Self {
            block,
            interior: rows.interior,
            plan: part.halo.clone(),
            send: DeviceVec::from_slice(ctx, &part.halo.send, "the halo's indices")?,
            message: std::cell::RefCell::new(DeviceVec::zeros(ctx, part.halo.send.len(), "the halo's message")?),
        };
        Ok((this, outbox))
    }

    /// Puts other row blocks of the same rows in the place of those it has.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn recut(&mut self, ctx: &Context, rows: &RowBlocks) -> Result<()> {
        assert!(rows.blocks.iter().all(|&[begin, end]| begin <= end && end as usize <= self.block.n_rows));
        self.interior = rows.interior;
        self.block.blocks = DeviceVec::from_slice(ctx, &rows.blocks, "the row blocks")?;
        Ok(())
    }

    /// The block, for those who launch its kernels themselves.
    pub(crate) fn block(&self) -> &CsrBlock<T> {
        &self.block
    }

    /// Runs `kernel` on the row blocks: on those that need no halo while the halo of `x` is under way, then on the others.
    /// `kernel`, called `name`, gets the range of blocks and how many work-groups were launched before.
    fn overlapped<A: Real>(
        &self,
        ops: &OpenClOps<T, A>,
        name: &'static str,
        x: &mut DeviceVec<T>,
        mut kernel: impl FnMut(&DeviceVec<T>, crate::device::Grid, (u32, u32), usize) -> Result<()>,
    ) -> Result<usize> {
        let (interior, all) = (self.interior, self.block.blocks.len());
        let mut groups = 0;
        let packed = self.pack(ops, x)?;
        let mut run = |x: &DeviceVec<T>, first: usize, last: usize| -> Result<()> {
            if first < last || (first == 0 && last == all) {
                let grid = ops.block_grid(name, last - first);
                kernel(x, grid, (first as u32, last as u32), groups)?;
                groups += grid.groups;
            }
            Ok(())
        };
        run(x, 0, interior)?;
        if !self.plan.receive.is_empty() || !self.plan.send.is_empty() {
            ops.ctx.flush(Queue::Compute)?;
            let start = Instant::now();
            self.exchange(ops, x, packed.as_ref())?;
            ops.count_halo(start.elapsed());
        }
        run(x, interior, all)?;
        Ok(groups)
    }

    fn pack<A: Real>(&self, ops: &OpenClOps<T, A>, x: &DeviceVec<T>) -> Result<Option<Event>> {
        if self.send.len() == 0 {
            return Ok(None);
        }
        let grid = ops.grid_for("halo_pack", self.send.len());
        ops.kernels.halo.halo_pack(&ops.ctx, grid, &self.send, x, &mut self.message.borrow_mut())?;
        ops.ctx.marker().map(Some)
    }

    fn exchange<A: Real>(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>, packed: Option<&Event>) -> Result<()> {
        let start = Instant::now();
        if packed.is_none() {
            // Nothing says when the former product has read its halo.
            ops.ctx.finish()?;
        }
        ops.comm().post(&mut |message| {
            let len = self.send.len();
            self.message.borrow().read_after(&ops.ctx, Queue::Transfer, 0, &mut message[..len], packed)
        })?;
        ops.recorder.span(Lane::Host, "halo to the host", start);
        for receive in &self.plan.receive {
            let at = self.block.n_rows + receive.halo.start;
            let start = Instant::now();
            ops.comm().fetch(receive.from, &mut |message| {
                ops.recorder.span(Lane::Host, "wait for a neighbour", start);
                let start = Instant::now();
                x.write_on(&ops.ctx, Queue::Transfer, at, &message[receive.segment.clone()])?;
                ops.recorder.span(Lane::Host, "halo to the device", start);
                Ok(())
            })?;
        }
        Ok(())
    }
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

impl<T: Real, A: Real> LinearOperator<OpenClOps<T, A>> for CsrDevice<T> {
    fn apply(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.overlapped(ops, "spmv_csr", x, |x, grid, range, _| {
            ops.kernels.csr.spmv_csr(&ops.ctx, grid, range, &self.block, x, y)
        })?;
        Ok(())
    }

    fn apply_dot(
        &self,
        ops: &OpenClOps<T, A>,
        x: &mut DeviceVec<T>,
        y: &mut DeviceVec<T>,
        sum: &mut DeviceSum<A>,
    ) -> Result<()> {
        let partials = sum.refill(0);
        let groups = self.overlapped(ops, "spmv_dot_csr", x, |x, grid, range, before| {
            let csr = &ops.kernels.csr;
            csr.spmv_dot_csr(&ops.ctx, grid, range, &self.block, x, y, partials, before as u32, ops.done())
        })?;
        sum.refill(groups);
        Ok(())
    }

    fn residual(
        &self,
        ops: &OpenClOps<T, A>,
        b: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
        r: &mut DeviceVec<T>,
    ) -> Result<()> {
        self.overlapped(ops, "residual_csr", x, |x, grid, range, _| {
            ops.kernels.csr.residual_csr(&ops.ctx, grid, range, &self.block, x, b, r)
        })?;
        Ok(())
    }

    fn halo(&self) -> usize {
        self.plan.len
    }

    fn bytes(&self) -> u64 {
        let n = self.block.n_rows;
        (self.block.values.len() * (4 + size_of::<T>()) + 4 * (n + 1) + 2 * n * size_of::<T>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::kernels::Shape;

    #[test]
    #[should_panic(expected = "column 2 of 2")]
    fn no_column_outside_reaches_a_device() {
        let device = list().devices.remove(0);
        let (ctx, tuning) = (Context::open(&device).unwrap(), Tuning::default_for(&device, Shape::of(&device)));
        let upload = |col_idx: [u32; 3]| {
            let (row_ptr, values, halo) = ([0, 2, 3], [1.0; 3], HaloPlan::default());
            let part = Part { rows: 0..2, row_ptr: &row_ptr, col_idx: col_idx.to_vec().into(), values: &values, halo };
            CsrDevice::<f32>::upload(&ctx, &tuning, &part, 1.0).map(|_| ())
        };
        upload([0, 1, 1]).unwrap();
        upload([0, 1, 2]).unwrap();
    }

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
