//! Transfers that go on while the host does something else.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use opencl3::event::Event;
use opencl3::types::CL_NON_BLOCKING;

use super::memory::DeviceVec;
use super::pinned::Pinned;
use super::{Call, Context, Doing, Queue};
use crate::error::Result;
use crate::memory::Plain;

/// Memory of the host that stays where it is when its owner moves.
///
/// # Safety
/// As long as nobody changes the value, neither the address of the elements nor their number may change.
pub(crate) unsafe trait Landing<T>: DerefMut<Target = [T]> {}
// SAFETY: a mapping stays where it is.
unsafe impl<T: Plain> Landing<T> for Pinned<T> {}
// SAFETY: the elements of a vector are not in the vector.
unsafe impl<T> Landing<T> for Vec<T> {}

impl<T: Plain> DeviceVec<T> {
    /// Starts to write a part of `from`, from element `offset` on, and comes back at once.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    ///
    /// # Panics
    /// If one of the ranges is not inside its array.
    pub(crate) fn start_write<M: Deref<Target = [T]> + Send + Sync + ?Sized + 'static>(
        &mut self,
        ctx: &Context,
        queue: Queue,
        offset: usize,
        from: Arc<M>,
        part: Range<usize>,
    ) -> Result<PendingWrite> {
        let data = &from[part];
        assert!(offset + data.len() <= self.len, "writing {} at {offset} of {}", data.len(), self.len);
        let offset = offset * size_of::<T>();
        let what = self.what;
        // SAFETY: the range was checked. `from` moves into the `PendingWrite`, which lets go of it only after the transfer; until
        // then nobody can change it, as it is shared.
        let event = ctx.call(Doing(Call::Write, what), "clEnqueueWriteBuffer", || unsafe {
            ctx.queue(queue).enqueue_write_buffer(&mut self.buffer, CL_NON_BLOCKING, offset, data, &[])
        })?;
        Ok(PendingWrite::new(event, from))
    }

    /// Starts to read elements of several arrays, one behind the other into `to`, once the command `after` is done, and comes
    /// back at once; `what` names them in errors.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    ///
    /// # Panics
    /// If they are not inside the arrays, or `to` is too short, or there is nothing to read.
    pub(crate) fn start_reads<M: Landing<T>>(
        ctx: &Context,
        queue: Queue,
        pieces: &[(&Self, Range<usize>)],
        mut to: M,
        after: Option<&Event>,
        what: &'static str,
    ) -> Result<PendingRead<M>> {
        let (queue, mut after) = (ctx.queue(queue), after.map(|event| event.get()));
        let (mut rest, mut last) = (&mut to[..], None);
        for (array, elements) in pieces {
            assert!(elements.end <= array.len, "reading {elements:?} of {}", array.len);
            let (piece, others) = rest.split_at_mut(elements.len());
            let (offset, waits) = (elements.start * size_of::<T>(), after.take());
            rest = others;
            // SAFETY: the range was checked, and `after` is alive. `to` moves into the `PendingRead`, which gives it back, or drops
            // it, only after the last transfer, which in an ordered queue comes after the others; where one is refused, `finish`
            // waits for those.
            let read = ctx.call(Doing(Call::Read, what), "clEnqueueReadBuffer", || unsafe {
                queue.enqueue_read_buffer(&array.buffer, CL_NON_BLOCKING, offset, piece, waits.as_slice())
            });
            last = Some(read.inspect_err(|_| drop(queue.finish()))?);
        }
        let Some(event) = last else { unreachable!("there is nothing to read") };
        Ok(PendingRead { event, to: Some(to), what })
    }

    /// Starts to copy elements of another array, which may be that of another device in the same context, to this one, from
    /// element `offset` on, once the command `after` is done; `what` names them in errors.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    ///
    /// # Panics
    /// If they are not inside the arrays.
    pub(crate) fn start_copy(
        &mut self,
        ctx: &Context,
        queue: Queue,
        offset: usize,
        (from, elements): (&Self, Range<usize>),
        after: Option<&Event>,
        what: &'static str,
    ) -> Result<Event> {
        assert!(elements.end <= from.len, "copying {elements:?} of {}", from.len);
        assert!(offset + elements.len() <= self.len, "copying {} to {offset} of {}", elements.len(), self.len);
        let [begin, to, bytes] = [elements.start, offset, elements.len()].map(|count| count * size_of::<T>());
        let after = after.map(|event| event.get());
        // SAFETY: the ranges were checked, the two are different buffers, and `after` is alive.
        ctx.call(Doing(Call::Copy, what), "clEnqueueCopyBuffer", || unsafe {
            ctx.queue(queue).enqueue_copy_buffer(&from.buffer, &mut self.buffer, begin, to, bytes, after.as_slice())
        })
    }
}

/// A transfer to a device that is under way, and the memory that it comes from.
pub(crate) struct PendingWrite {
    event: Event,
    from: Option<Box<dyn Send>>,
}

impl PendingWrite {
    /// The transfer `event`, which reads what `from` shares.
    pub(crate) fn new<M: Send + Sync + ?Sized + 'static>(event: Event, from: Arc<M>) -> Self {
        Self { event, from: Some(Box::new(from)) }
    }

    /// The transfer.
    pub(super) fn event(&self) -> &Event {
        &self.event
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        if self.from.is_some() && self.event.wait().is_err() {
            // The device is lost: whether it still reads is unknown, so the memory is left alone.
            std::mem::forget(self.from.take());
        }
    }
}

/// A transfer to the host that is under way, and the memory that it goes to.
pub(crate) struct PendingRead<M> {
    event: Event,
    pub(super) to: Option<M>,
    what: &'static str,
}

impl<M> PendingRead<M> {
    /// Waits for the transfer and gives the memory back.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the transfer, or a kernel before it, failed.
    pub(crate) fn wait(mut self, ctx: &Context) -> Result<M> {
        ctx.wait(&self.event, self.what)?;
        Ok(self.to.take().unwrap_or_else(|| unreachable!("taken only where the transfer is over, and in drop")))
    }
}

impl<M> Drop for PendingRead<M> {
    fn drop(&mut self) {
        if self.to.is_some() && self.event.wait().is_err() {
            // The device is lost: whether it still writes is unknown, so the memory is left alone.
            std::mem::forget(self.to.take());
        }
    }
}
