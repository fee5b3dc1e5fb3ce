//! What a device's block of rows exchanges with other ranks: elements of a vector.

mod places;
mod traffic;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use self::places::{OnDevices, OnHost};
use self::traffic::{Through, Traffic};
use crate::backend::Backend;
use crate::backend::opencl::OpenClBackend;
use crate::comm::Message;
use crate::device::{Context, DeviceVec, Event, Pinned, Queue};
use crate::error::Result;
use crate::named::named;
use crate::partition::{HaloPlan, Part};
use crate::real::Real;
use crate::timeline::Lane;

named! {
    /// How elements of a halo get from device to device. Sums go through the host in any case.
    Exchange, "model of exchange":
    Auto = "auto", "As live, but as host-staged where the host is a rank, too.";
    Live = "live", "While kernels run, through memory that they and the host see at once, where all devices have it; else as host-staged.";
    HostStaged = "host-staged", "Through pinned memory of the host, which all devices read and write themselves.";
    HostCopied = "host-copied", "Through plain memory of the host; drivers copy it to pinned memory of their own.";
    SharedContext = "shared-context", "From array to array in one OpenCL context, for devices of one platform.";
}

impl Exchange {
    /// Whether kernels that run may exchange.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Auto | Self::Live)
    }
}

/// What is sent, in errors.
const MESSAGE: &str = "the halo's message";

/// The most runs of neighbouring elements that are moved one by one.
const MAX_RUNS: usize = 2;

/// How many times as fast as the link to the host a device's memory is, about: 3.9 TB/s to 50 GB/s on an H200.
const MEMORY_TO_LINK: usize = 80;
/// Bytes that go over the link in the time that it takes to set an exchange going, whatever its size: some 30 µs.
const LINK_START: usize = 3 << 19;

/// Bytes that a device moves, at least, in the time that a product by a dictionary takes for an entry: on an H200, 2.3 with 27 entries a
/// row, 3.5 with 81, 4.2 with 7.
const ENTRY: usize = 2;

/// Bytes of its memory that a device moves in the time of an exchange, about.
fn exchange_bytes<T>(plan: &HaloPlan) -> usize {
    MEMORY_TO_LINK * (2 * plan.send.len().max(plan.len) * size_of::<T>() + LINK_START)
}

/// Bytes that the updates of an iteration move: six vectors, the fewest of any method.
fn step_bytes<T>(n_owned: usize) -> usize {
    6 * n_owned * size_of::<T>()
}

/// Of the rows of `part` that need no halo, a run, those that a product by a dictionary takes while the halo is on its way. If half of
/// them, after a step, take longer than that, the others wait with the rows that need it: these alone are so few that most
/// of a device would have nothing to do.
pub(super) fn early<T>(part: &Part<'_>, interior: Range<usize>) -> Range<usize> {
    let half = interior.start..interior.start.midpoint(interior.end);
    let entries = part.row_ptr[half.end] - part.row_ptr[half.start];
    let is_long = step_bytes::<T>(part.n_owned()) + ENTRY * entries > exchange_bytes::<T>(&part.halo);
    if part.halo.len > 0 && is_long { half } else { interior }
}

/// Elements of a device's vectors on their way to other ranks, and those of other ranks on their way into the halo.
///
/// ```text
/// compute queue    halo_pack ─► whatever comes next ───────────────────────► what needs the halo
/// transfer queue        └► the message           from neighbours' into the halo ┘
/// host             pack   send              receive: post, fetch
/// ```
///
/// No processor touches a message, nor does a kernel if it is a run of neighbouring elements or two, as with rows in a good
/// order. Where it lies between two devices is a matter of the [`Exchange`].
pub(crate) struct HaloExchange<T: Real> {
    plan: HaloPlan,
    model: Exchange,
    /// Whether a step on the owned rows most likely takes longer.
    pub(super) is_hidden_by_step: bool,
    /// Elements of a vector in front of the halo.
    n_owned: usize,
    message: Form<T>,
    /// When this rank's message is there to be moved.
    packed: RefCell<Option<Event>>,
    traffic: RefCell<Box<dyn Traffic<T>>>,
}

/// What a message is made of.
enum Form<T: Real> {
    /// Runs of neighbouring elements, all in rows that need the halo themselves: products with other rows leave them alone.
    Runs(Vec<Range<usize>>),
    /// Single elements, which a kernel gathers.
    Packed(DeviceVec<u32>, RefCell<DeviceVec<T>>),
}

impl<T: Real> HaloExchange<T> {
    /// The exchange of vectors of which the rank owns so many elements.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn new(ctx: &Context, n_owned: usize, plan: &HaloPlan, model: Exchange) -> Result<Self> {
        let len = plan.send.len();
        let traffic: Box<dyn Traffic<T>> = match model {
            Exchange::Auto | Exchange::Live | Exchange::HostStaged => {
                Box::new(Through::<T, OnHost<Pinned<T>>>::new(ctx, len)?)
            }
            Exchange::HostCopied => Box::new(Through::<T, OnHost<Vec<T>>>::new(ctx, len)?),
            Exchange::SharedContext => Box::new(Through::<T, OnDevices>::new(ctx, len)?),
        };
        let message = match runs(&plan.send) {
            Some(runs) if plan.is_mutual => Form::Runs(runs),
            _ => Form::Packed(
                DeviceVec::from_slice(ctx, &plan.send, "the halo's indices")?,
                RefCell::new(DeviceVec::zeros(ctx, len, MESSAGE)?),
            ),
        };
        let is_hidden_by_step = step_bytes::<T>(n_owned) > exchange_bytes::<T>(plan);
        let (packed, traffic) = (RefCell::default(), RefCell::new(traffic));
        Ok(Self { n_owned, model, is_hidden_by_step, message, packed, traffic, plan: plan.clone() })
    }

    /// That of vectors of so many columns in place of one, which is never left to kernels that run.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(super) fn of_columns(&self, ctx: &Context, columns: usize) -> Result<Self> {
        let model = if self.model.is_live() { Exchange::HostStaged } else { self.model };
        Self::new(ctx, self.n_owned * columns, &self.plan.of_columns(columns), model)
    }

    /// Who sends what to whom.
    pub(super) fn plan(&self) -> &HaloPlan {
        &self.plan
    }

    /// Elements of the halo.
    pub(crate) fn halo(&self) -> usize {
        self.plan.len
    }

    /// What is exchanged, if that may be left to kernels that run.
    pub(super) fn live(&self) -> Option<&HaloPlan> {
        Some(&self.plan).filter(|_| self.model.is_live())
    }

    /// Whether other ranks have a part in products.
    pub(super) fn is_shared(&self) -> bool {
        !self.plan.receive.is_empty() || !self.plan.receivers.is_empty()
    }

    /// Packs what other ranks need of `v`, as what is in the compute queue will have left it.
    pub(crate) fn pack<A: Real>(&self, backend: &OpenClBackend<T, A>, v: &DeviceVec<T>) -> Result<()> {
        if self.plan.send.is_empty() {
            return Ok(());
        }
        self.pack_singles(backend, v)?;
        self.packed.replace(Some(backend.ctx.marker()?));
        Ok(())
    }

    /// The same for a `v` that will be as it has to be, for sure, when it is sent.
    pub(super) fn pack_known<A: Real>(&self, backend: &OpenClBackend<T, A>, v: &DeviceVec<T>) -> Result<()> {
        if let Form::Packed(..) = self.message { self.pack(backend, v) } else { Ok(()) }
    }

    fn pack_singles<A: Real>(&self, backend: &OpenClBackend<T, A>, v: &DeviceVec<T>) -> Result<()> {
        let Form::Packed(send, message) = &self.message else { return Ok(()) };
        self.traffic.borrow_mut().message(&backend.ctx)?; // of an exchange that came to no end
        let grid = backend.kernels.tuning.grid("halo_pack", send.len());
        backend.kernels.halo_pack(&backend.ctx, grid, send, v, &mut message.borrow_mut())
    }

    /// Starts to move what other ranks need of `v`, while the device works on what is in the compute queue.
    pub(crate) fn send<A: Real>(&self, backend: &OpenClBackend<T, A>, v: &DeviceVec<T>) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let ctx = &backend.ctx;
        ctx.flush(Queue::Compute)?;
        if !self.plan.send.is_empty() {
            let (mut traffic, packed) = (self.traffic.borrow_mut(), self.packed.take());
            match &self.message {
                Form::Runs(runs) => {
                    let pieces: Vec<_> = runs.iter().map(|run| (v, run.clone())).collect();
                    traffic.start(ctx, &pieces, packed.as_ref())?;
                }
                Form::Packed(_, message) => {
                    let message = message.borrow();
                    traffic.start(ctx, &[(&*message, 0..message.len())], packed.as_ref())?;
                }
            }
            ctx.flush(Queue::Transfer)?;
        }
        Ok(())
    }

    /// Hands the message over, and fills the halo of `v` with those of other ranks: kernels that are enqueued afterwards find
    /// it there.
    pub(crate) fn receive<A: Real>(&self, backend: &OpenClBackend<T, A>, v: &mut DeviceVec<T>) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let (ctx, comm, begun) = (&backend.ctx, backend.comm(), Instant::now());
        let traffic = &mut *self.traffic.borrow_mut();
        ctx.flush(Queue::Compute)?;
        if let Some(message) = traffic.message(ctx)? {
            comm.post(message, &self.plan.receivers)?;
        } else {
            ctx.finish()?; // nothing else tells when the former halo has been read
            comm.post(Message::Host(Arc::new(Vec::new())), &self.plan.receivers)?;
        }
        backend.recorder.span(Lane::Host, "halo to the host", begun);
        // a sum, or the message, has come since the former ones were enqueued, and after them
        traffic.forget_arrived();
        for receive in &self.plan.receive {
            let start = Instant::now();
            let (message, segment) = comm.fetch(receive.from, &receive.segment, &|len| traffic.memory(ctx, len))?;
            backend.recorder.span(Lane::Host, "wait for a neighbour", start);
            if !segment.is_empty() {
                traffic.arrive(ctx, message, segment, v, self.n_owned + receive.halo.start)?;
            }
        }
        let start = Instant::now();
        ctx.flush(Queue::Transfer)?;
        traffic.compute_after(ctx)?;
        backend.recorder.span(Lane::Host, "halo to the device", start);
        backend.count_halo(begun.elapsed());
        Ok(())
    }
}

/// The runs of neighbouring elements that `indices` are, one behind the other, if they are few.
fn runs(indices: &[u32]) -> Option<Vec<Range<usize>>> {
    let runs = indices.chunk_by(|&a, &b| a + 1 == b).take(MAX_RUNS + 1);
    let runs: Vec<_> = runs.map(|run| run[0] as usize..run[0] as usize + run.len()).collect();
    (runs.len() <= MAX_RUNS).then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that need no halo, on a rank of so many rows of so many entries each whose halo has so many elements.
    fn early_of(n: usize, len: usize, halo: usize) -> Range<usize> {
        let row_ptr: Vec<usize> = (0..=n).map(|row| row * len).collect();
        let halo = HaloPlan { len: halo, ..HaloPlan::default() };
        let (col_idx, values) = (Vec::new().into(), Vec::new().into());
        let part = Part { rows: 0..n, row_ptr: &row_ptr, col_idx, values, halo, of: None };
        early::<f64>(&part, 1000..n)
    }

    #[test]
    fn rows_that_wait_without_need() {
        // elasticity on bricks, 100³ on two devices: 73 MB of a step and 124 of half a product take longer than 165
        assert_eq!(early_of(1_530_150, 81, 30_603), 1000..765_575);
        // 27-point, 150³: 81 and 44 do not take as long as 155
        assert_eq!(early_of(1_687_500, 27, 22_500), 1000..1_687_500);
        // nothing to wait for
        assert_eq!(early_of(1_530_150, 81, 0), 1000..1_530_150);
    }

    #[test]
    fn few_runs_are_told() {
        let ends = |indices: &[u32]| Some(runs(indices)?.iter().map(|run| [run.start, run.end]).collect::<Vec<_>>());
        assert_eq!(ends(&[]), Some(vec![]));
        assert_eq!(ends(&[4, 5, 6]), Some(vec![[4, 7]]));
        assert_eq!(ends(&[8, 9, 0, 1, 2]), Some(vec![[8, 10], [0, 3]]));
        assert_eq!(ends(&[0, 1, 1, 2]), Some(vec![[0, 2], [1, 3]]));
        assert_eq!(ends(&[2, 1, 0]), None);
        assert_eq!(ends(&[0, 2, 4]), None);
    }
}
