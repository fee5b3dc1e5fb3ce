//! A device's block of rows.

use std::sync::{Arc, RwLock};
use std::time::Instant;

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
    /// If there are more entries than 32-bit row pointers can count.
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
            col_idx: DeviceVec::from_slice(ctx, &part.col_idx, "the column indices")?,
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

    /// The block, for the tests of its kernels.
    #[cfg(test)]
    pub(crate) fn block(&self) -> &CsrBlock<T> {
        &self.block
    }

    /// Runs `kernel` on the row blocks: on those that need no halo while the halo of `x` is under way, then on the others.
    /// `kernel` gets the range of blocks and how many work-groups were launched before.
    fn overlapped<A: Real>(
        &self,
        ops: &OpenClOps<T, A>,
        x: &mut DeviceVec<T>,
        mut kernel: impl FnMut(&DeviceVec<T>, crate::device::Grid, (u32, u32), usize) -> Result<()>,
    ) -> Result<usize> {
        let (interior, all) = (self.interior, self.block.blocks.len());
        let mut groups = 0;
        let packed = self.pack(ops, x)?;
        let mut run = |x: &DeviceVec<T>, first: usize, last: usize| -> Result<()> {
            if first < last || (first == 0 && last == all) {
                let grid = ops.kernels.tuning.block_grid(last - first);
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
        let grid = ops.kernels.tuning.grid(self.send.len());
        ops.kernels.halo.halo_pack(&ops.ctx, grid, &self.send, x, &mut self.message.borrow_mut())?;
        ops.ctx.marker().map(Some)
    }

    fn exchange<A: Real>(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>, packed: Option<&Event>) -> Result<()> {
        if packed.is_none() {
            // Nothing says when the former product has read its halo.
            ops.ctx.finish()?;
        }
        ops.comm().post(&mut |message| {
            let len = self.send.len();
            self.message.borrow().read_after(&ops.ctx, Queue::Transfer, 0, &mut message[..len], packed)
        })?;
        for receive in &self.plan.receive {
            let at = self.block.n_rows + receive.halo.start;
            ops.comm().fetch(receive.from, &mut |message| {
                x.write_on(&ops.ctx, Queue::Transfer, at, &message[receive.segment.clone()])
            })?;
        }
        Ok(())
    }
}

impl<T: Real, A: Real> LinearOperator<OpenClOps<T, A>> for CsrDevice<T> {
    fn apply(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.overlapped(ops, x, |x, grid, range, _| {
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
        let groups = self.overlapped(ops, x, |x, grid, range, before| {
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
        self.overlapped(ops, x, |x, grid, range, _| {
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
