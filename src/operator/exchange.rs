//! What a device's block of rows exchanges with other ranks: elements of a vector.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use crate::device::{Context, DeviceVec, Event, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::ops::Ops;
use crate::ops::opencl::OpenClOps;
use crate::partition::HaloPlan;
use crate::real::Real;
use crate::timeline::Lane;

/// Elements of a device's vectors on their way to other ranks, and those of other ranks on their way into the halo.
///
/// ```text
/// compute queue    halo_pack ─► whatever comes next ────────────────────────► what needs the halo
/// transfer queue        └► to pinned memory      from neighbours' into the halo ┘
/// host             pack   send                post, fetch                 receive
/// ```
///
/// No processor touches a message: each device writes it to memory that is pinned for its driver, and the others read
/// it there.
pub(crate) struct Exchange<T: Real> {
    plan: HaloPlan,
    /// Where the halo begins in a vector.
    n_rows: usize,
    send: DeviceVec<u32>,
    message: RefCell<DeviceVec<T>>,
    traffic: RefCell<Traffic<T>>,
}

/// What is under way.
struct Traffic<T: Real> {
    /// Former messages, whose memory serves again once no rank reads them.
    posted: Vec<Arc<Pinned<T>>>,
    /// When this rank's message is packed.
    packed: Option<Event>,
    /// The message on its way to the host.
    leaving: Option<PendingRead<T>>,
}

impl<T: Real> Exchange<T> {
    /// The exchange of a block of `n_rows` rows.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(super) fn new(ctx: &Context, n_rows: usize, plan: &HaloPlan) -> Result<Self> {
        // one to be filled while the others read the former one
        let memory = || Pinned::zeros(ctx, plan.send.len()).map(Arc::new);
        let posted = if plan.send.is_empty() { Vec::new() } else { vec![memory()?, memory()?] };
        Ok(Self {
            n_rows,
            send: DeviceVec::from_slice(ctx, &plan.send, "the halo's indices")?,
            message: RefCell::new(DeviceVec::zeros(ctx, plan.send.len(), "the halo's message")?),
            traffic: RefCell::new(Traffic { posted, packed: None, leaving: None }),
            plan: plan.clone(),
        })
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

    /// Packs what other ranks need of `v`, as what is in the compute queue will have left it.
    pub(super) fn pack<A: Real>(&self, ops: &OpenClOps<T, A>, v: &DeviceVec<T>) -> Result<()> {
        if self.send.len() == 0 {
            return Ok(());
        }
        let traffic = &mut *self.traffic.borrow_mut();
        if let Some(unread) = traffic.leaving.take() {
            traffic.posted.push(Arc::new(unread.wait(&ops.ctx)?)); // an exchange that came to no end
        }
        let grid = ops.grid_for("halo_pack", self.send.len());
        ops.kernels.halo.halo_pack(&ops.ctx, grid, &self.send, v, &mut self.message.borrow_mut())?;
        traffic.packed = Some(ops.ctx.marker()?);
        Ok(())
    }

    /// Starts to move the message to the host, while the device works on what is in the compute queue.
    pub(super) fn send<A: Real>(&self, ops: &OpenClOps<T, A>) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let (ctx, traffic) = (&ops.ctx, &mut *self.traffic.borrow_mut());
        ctx.flush(Queue::Compute)?;
        if let Some(packed) = traffic.packed.take() {
            let memory = traffic.memory(ctx, self.send.len())?;
            let read = self.message.borrow().start_read_after(ctx, Queue::Transfer, memory, Some(&packed))?;
            traffic.leaving = Some(read);
            ctx.flush(Queue::Transfer)?;
        }
        Ok(())
    }

    /// Hands the message over, and fills the halo of `v` with those of other ranks: kernels that are enqueued afterwards find
    /// it there.
    pub(super) fn receive<A: Real>(&self, ops: &OpenClOps<T, A>, v: &mut DeviceVec<T>) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let (ctx, comm, begun) = (&ops.ctx, ops.comm(), Instant::now());
        let traffic = &mut *self.traffic.borrow_mut();
        ctx.flush(Queue::Compute)?;
        if let Some(leaving) = traffic.leaving.take() {
            let message = Arc::new(leaving.wait(ctx)?);
            traffic.posted.push(Arc::clone(&message));
            comm.post(message)?;
        } else {
            ctx.finish()?; // nothing else tells when the former halo has been read
            comm.post(Arc::new(Vec::new()))?;
        }
        ops.recorder.span(Lane::Host, "halo to the host", begun);
        let mut arriving = Vec::with_capacity(self.plan.receive.len());
        for receive in &self.plan.receive {
            let start = Instant::now();
            let message = comm.fetch(receive.from)?;
            ops.recorder.span(Lane::Host, "wait for a neighbour", start);
            let place = self.n_rows + receive.halo.start;
            arriving.push(v.start_write(ctx, Queue::Transfer, place, message, receive.segment.clone())?);
        }
        let start = Instant::now();
        ctx.flush(Queue::Transfer)?;
        arriving.into_iter().try_for_each(|write| write.wait(ctx))?;
        ops.recorder.span(Lane::Host, "halo to the device", start);
        ops.count_halo(begun.elapsed());
        Ok(())
    }
}

impl<T: Real> Traffic<T> {
    /// Pinned memory for a message.
    fn memory(&mut self, ctx: &Context, len: usize) -> Result<Pinned<T>> {
        let free = self.posted.iter().position(|message| Arc::strong_count(message) == 1);
        let memory = free.and_then(|free| Arc::into_inner(self.posted.swap_remove(free)));
        memory.map_or_else(|| Pinned::zeros(ctx, len), Ok)
    }
}
