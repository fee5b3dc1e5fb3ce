//! What a device's block of rows exchanges with other ranks: elements of a vector.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use rayon::prelude::*;

use crate::comm::Outbox;
use crate::device::{Context, DeviceVec, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::ops::Ops;
use crate::ops::opencl::OpenClOps;
use crate::partition::HaloPlan;
use crate::real::Real;
use crate::timeline::Lane;

/// Elements that are worth a thread's while.
const PIECE: usize = 1 << 15;

/// Elements of a device's vectors on their way to other ranks, and those of other ranks on their way into the halo.
///
/// A message is packed on the device and moved to pinned memory by the transfer queue, beside what the compute queue goes
/// on with: [`start`](Self::start). Then [`finish`](Self::finish) hands it to the other ranks, and fetches theirs.
pub(crate) struct Exchange<T: Real> {
    plan: HaloPlan,
    /// Where the halo begins in a vector.
    n_rows: usize,
    send: DeviceVec<u32>,
    message: RefCell<DeviceVec<T>>,
    /// Where other ranks read the message.
    outbox: Arc<RwLock<Pinned<T>>>,
    transfer: RefCell<Transfer<T>>,
    /// Pinned for this device; the memory of other ranks is pinned for theirs.
    inbox: RefCell<Pinned<T>>,
}

/// Pinned memory for the next message.
enum Transfer<T: Real> {
    None,
    Idle(Pinned<T>),
    UnderWay(PendingRead<T>),
}

impl<T: Real> Exchange<T> {
    /// The exchange of a block of `n_rows` rows.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(super) fn new(ctx: &Context, n_rows: usize, plan: &HaloPlan) -> Result<Self> {
        let pinned = |len| Pinned::zeros(ctx, len);
        Ok(Self {
            n_rows,
            send: DeviceVec::from_slice(ctx, &plan.send, "the halo's indices")?,
            message: RefCell::new(DeviceVec::zeros(ctx, plan.send.len(), "the halo's message")?),
            outbox: Arc::new(RwLock::new(pinned(plan.send.len())?)),
            transfer: RefCell::new(Transfer::Idle(pinned(plan.send.len())?)),
            inbox: RefCell::new(pinned(if plan.receive.is_empty() { 0 } else { plan.len })?),
            plan: plan.clone(),
        })
    }

    /// Where other ranks read this one's messages.
    pub(super) fn outbox(&self) -> Outbox<T> {
        self.outbox.clone()
    }

    /// Elements of the halo.
    pub(super) fn halo(&self) -> usize {
        self.plan.len
    }

    /// Whether other ranks have a part in products.
    pub(super) fn is_shared(&self) -> bool {
        !self.plan.receive.is_empty() || !self.plan.send.is_empty()
    }

    /// Whether all that others need are elements of rows that need a halo.
    pub(super) fn is_mutual(&self) -> bool {
        self.plan.is_mutual
    }

    /// Packs what other ranks need of `v`, as what is in the compute queue will have left it, and starts to move it to the host.
    pub(super) fn start<A: Real>(&self, ops: &OpenClOps<T, A>, v: &DeviceVec<T>) -> Result<()> {
        if self.send.len() == 0 {
            return Ok(());
        }
        let memory = self.arrived(&ops.ctx)?; // of an exchange that came to no end
        let grid = ops.grid_for("halo_pack", self.send.len());
        let mut message = self.message.borrow_mut();
        ops.kernels.halo.halo_pack(&ops.ctx, grid, &self.send, v, &mut message)?;
        let packed = ops.ctx.marker()?;
        ops.ctx.flush(Queue::Compute)?;
        let read = message.start_read_after(&ops.ctx, Queue::Transfer, memory, Some(&packed))?;
        self.transfer.replace(Transfer::UnderWay(read));
        ops.ctx.flush(Queue::Transfer)
    }

    /// Hands the message over, and fills the halo of `v` with what other ranks send. Kernels that are enqueued afterwards find
    /// it there.
    pub(super) fn finish<A: Real>(&self, ops: &OpenClOps<T, A>, v: &mut DeviceVec<T>) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let (ctx, comm, begun) = (&ops.ctx, ops.comm(), Instant::now());
        if self.send.len() == 0 {
            ctx.finish()?; // nothing else tells when the former halo has been read
        }
        comm.post(&mut || {
            let mut arrived = self.arrived(ctx)?;
            std::mem::swap(&mut *self.outbox.write().unwrap_or_else(PoisonError::into_inner), &mut arrived);
            self.transfer.replace(Transfer::Idle(arrived));
            Ok(())
        })?;
        ops.recorder.span(Lane::Host, "halo to the host", begun);
        let inbox = &mut *self.inbox.borrow_mut();
        for receive in &self.plan.receive {
            let start = Instant::now();
            comm.fetch(receive.from, &mut |message| {
                ops.recorder.span(Lane::Host, "wait for a neighbour", start);
                copy(&message[receive.segment.clone()], &mut inbox[receive.halo.clone()]);
                Ok(())
            })?;
        }
        let start = Instant::now();
        v.write_on(ctx, Queue::Transfer, self.n_rows, inbox)?;
        ops.recorder.span(Lane::Host, "halo to the device", start);
        ops.count_halo(begun.elapsed());
        Ok(())
    }

    /// The memory of the last message, once that is there.
    fn arrived(&self, ctx: &Context) -> Result<Pinned<T>> {
        match self.transfer.replace(Transfer::None) {
            Transfer::Idle(memory) => Ok(memory),
            Transfer::UnderWay(read) => read.wait(ctx),
            Transfer::None => Pinned::zeros(ctx, self.send.len()), // the last one was lost with an error
        }
    }
}

/// A long message by several threads: one would take longer than the transfers.
fn copy<T: Real>(from: &[T], to: &mut [T]) {
    if from.len() < 2 * PIECE {
        to.copy_from_slice(from);
    } else {
        to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
    }
}
