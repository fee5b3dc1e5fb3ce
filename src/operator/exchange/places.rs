//! Where messages lie between two devices: see [`Exchange`](super::Exchange).

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::MESSAGE;
use crate::comm::{Message, WritableMemory};
use crate::device::{Context, DeviceVec, Event, Landing, PendingRead, PendingWrite, Pinned, Queue};
use crate::error::Result;
use crate::real::Real;

/// A place for messages.
pub(super) trait Place<T: Real>: 'static {
    /// Holds a message.
    type Memory: Send + Sync;
    /// A message on its way there.
    type Leaving: Send;

    /// Memory for a message of `len` elements.
    ///
    /// # Errors
    /// There is none.
    fn memory(ctx: &Context, len: usize) -> Result<Self::Memory>;

    /// Memory of the host for a message of `len` elements of another process.
    ///
    /// # Errors
    /// There is none.
    fn host_memory(ctx: &Context, len: usize) -> Result<Arc<dyn WritableMemory<T>>>;

    /// Starts to move pieces of arrays there, one behind the other, once the command `after` is done.
    ///
    /// # Errors
    /// Those of the device.
    fn leave(
        ctx: &Context,
        pieces: &[(&DeviceVec<T>, Range<usize>)],
        to: Self::Memory,
        after: Option<&Event>,
    ) -> Result<Self::Leaving>;

    /// Waits until all of it is there.
    ///
    /// # Errors
    /// Those of the device.
    fn left(ctx: &Context, leaving: Self::Leaving) -> Result<Self::Memory>;

    /// A message as other ranks get it.
    fn message(memory: Arc<Self::Memory>) -> Message<T>;

    /// Starts to move a segment of another rank's message into `v`, from element `place` on.
    ///
    /// # Errors
    /// Those of the device.
    fn arrive(
        ctx: &Context,
        message: Message<T>,
        segment: Range<usize>,
        v: &mut DeviceVec<T>,
        place: usize,
    ) -> Result<PendingWrite>;
}

/// Memory of the host of the kind `M`.
pub(super) struct OnHost<M>(PhantomData<M>);

/// Memory of the host in which messages may lie.
pub(super) trait HostArray<T>: Landing<T> + WritableMemory<T> + Sized + 'static {
    /// Memory for `len` elements.
    ///
    /// # Errors
    /// There is none.
    fn zeros(ctx: &Context, len: usize) -> Result<Self>;
}

impl<T: Real> HostArray<T> for Pinned<T> {
    fn zeros(ctx: &Context, len: usize) -> Result<Self> {
        Pinned::zeros(ctx, len)
    }
}

impl<T: Real> HostArray<T> for Vec<T> {
    fn zeros(_: &Context, len: usize) -> Result<Self> {
        Ok(vec![T::default(); len])
    }
}

impl<T: Real, M: HostArray<T>> Place<T> for OnHost<M> {
    type Memory = M;
    type Leaving = PendingRead<M>;

    fn memory(ctx: &Context, len: usize) -> Result<M> {
        M::zeros(ctx, len)
    }

    fn host_memory(ctx: &Context, len: usize) -> Result<Arc<dyn WritableMemory<T>>> {
        Ok(Arc::new(M::zeros(ctx, len)?))
    }

    fn leave(
        ctx: &Context,
        pieces: &[(&DeviceVec<T>, Range<usize>)],
        to: M,
        after: Option<&Event>,
    ) -> Result<PendingRead<M>> {
        DeviceVec::start_reads(ctx, Queue::Transfer, pieces, to, after, MESSAGE)
    }

    fn left(ctx: &Context, leaving: PendingRead<M>) -> Result<M> {
        leaving.wait(ctx)
    }

    fn message(memory: Arc<M>) -> Message<T> {
        Message::Host(memory)
    }

    fn arrive(
        ctx: &Context,
        message: Message<T>,
        segment: Range<usize>,
        v: &mut DeviceVec<T>,
        place: usize,
    ) -> Result<PendingWrite> {
        let Message::Host(message) = message else { unreachable!("all ranks have the same model") };
        v.start_write(ctx, Queue::Transfer, place, message, segment)
    }
}

/// Arrays of the devices, which share a context. As with the host's memory, the host waits for a message before it hands
/// it over: to let commands of a device wait for those of another locks up in PoCL (3.1).
pub(super) struct OnDevices;

impl<T: Real> Place<T> for OnDevices {
    type Memory = DeviceVec<T>;
    type Leaving = (DeviceVec<T>, Event);

    fn memory(ctx: &Context, len: usize) -> Result<DeviceVec<T>> {
        DeviceVec::zeros(ctx, len, MESSAGE)
    }

    fn host_memory(_: &Context, len: usize) -> Result<Arc<dyn WritableMemory<T>>> {
        Ok(Arc::new(vec![T::default(); len]))
    }

    fn leave(
        ctx: &Context,
        pieces: &[(&DeviceVec<T>, Range<usize>)],
        mut to: DeviceVec<T>,
        after: Option<&Event>,
    ) -> Result<(DeviceVec<T>, Event)> {
        let (mut place, mut last) = (0, None);
        for (from, elements) in pieces {
            let piece = (*from, elements.clone());
            last = Some(to.start_copy(ctx, Queue::Transfer, place, piece, after, MESSAGE)?);
            place += elements.len();
        }
        let Some(event) = last else { unreachable!("a message has elements") };
        Ok((to, event))
    }

    fn left(ctx: &Context, (array, event): (DeviceVec<T>, Event)) -> Result<DeviceVec<T>> {
        ctx.wait(&event, MESSAGE)?;
        Ok(array)
    }

    fn message(memory: Arc<DeviceVec<T>>) -> Message<T> {
        Message::Device(memory)
    }

    fn arrive(
        ctx: &Context,
        message: Message<T>,
        segment: Range<usize>,
        v: &mut DeviceVec<T>,
        place: usize,
    ) -> Result<PendingWrite> {
        let Message::Device(message) = message else { unreachable!("all ranks have the same model") };
        let Ok(array) = message.downcast::<DeviceVec<T>>() else { unreachable!("all ranks have the same elements") };
        let event = v.start_copy(ctx, Queue::Transfer, place, (&*array, segment), None, MESSAGE)?;
        Ok(PendingWrite::new(event, array))
    }
}
