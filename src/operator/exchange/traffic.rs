//! Messages under way.

use std::ops::Range;
use std::sync::Arc;

use super::places::Place;
use crate::comm::{Message, WritableMemory};
use crate::device::{Context, DeviceVec, Event, PendingWrite};
use crate::error::Result;
use crate::real::Real;

/// A device's message on its way to others, and theirs on their way into its halo.
pub(super) trait Traffic<T: Real>: Send {
    /// Starts to move pieces of arrays, one behind the other, to where others find them, once the command `after` is done.
    ///
    /// # Errors
    /// Those of the device.
    fn start(&mut self, ctx: &Context, pieces: &[(&DeviceVec<T>, Range<usize>)], after: Option<&Event>) -> Result<()>;

    /// Waits for the message that was started, if one was.
    ///
    /// # Errors
    /// Those of the device.
    fn message(&mut self, ctx: &Context) -> Result<Option<Message<T>>>;

    /// Memory for a message of `len` elements of another process.
    ///
    /// # Errors
    /// There is none.
    fn memory(&self, ctx: &Context, len: usize) -> Result<Arc<dyn WritableMemory<T>>>;

    /// Lets go of the messages that arrived in a former round.
    fn forget_arrived(&mut self);

    /// Starts to move a segment of another rank's message into `v`, from element `place` on.
    ///
    /// # Errors
    /// Those of the device.
    fn arrive(
        &mut self,
        ctx: &Context,
        message: Message<T>,
        segment: Range<usize>,
        v: &mut DeviceVec<T>,
        place: usize,
    ) -> Result<()>;

    /// Lets what is put into the compute queue from now on wait for what arrives.
    ///
    /// # Errors
    /// Those of the device.
    fn compute_after(&self, ctx: &Context) -> Result<()>;
}

/// Messages that lie at `P` between two devices.
pub(super) struct Through<T: Real, P: Place<T>> {
    len: usize,
    /// Former messages, whose memory serves again once no rank reads them.
    posted: Vec<Arc<P::Memory>>,
    /// The message on its way there.
    leaving: Option<P::Leaving>,
    /// Those of others on their way into the halo.
    arriving: Vec<PendingWrite>,
}

impl<T: Real, P: Place<T>> Through<T, P> {
    /// For messages of `len` elements.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(ctx: &Context, len: usize) -> Result<Self> {
        // one to be filled while the others read the former one
        let count = if len > 0 { 2 } else { 0 };
        let posted = (0..count).map(|_| P::memory(ctx, len).map(Arc::new)).collect::<Result<_>>()?;
        Ok(Self { len, posted, leaving: None, arriving: Vec::new() })
    }
}

impl<T: Real, P: Place<T>> Traffic<T> for Through<T, P> {
    fn start(&mut self, ctx: &Context, pieces: &[(&DeviceVec<T>, Range<usize>)], after: Option<&Event>) -> Result<()> {
        let free = self.posted.iter().position(|message| Arc::strong_count(message) == 1);
        let memory = free.and_then(|free| Arc::into_inner(self.posted.swap_remove(free)));
        let memory = memory.map_or_else(|| P::memory(ctx, self.len), Ok)?;
        self.leaving = Some(P::leave(ctx, pieces, memory, after)?);
        Ok(())
    }

    fn message(&mut self, ctx: &Context) -> Result<Option<Message<T>>> {
        let Some(leaving) = self.leaving.take() else { return Ok(None) };
        let message = Arc::new(P::left(ctx, leaving)?);
        self.posted.push(Arc::clone(&message));
        Ok(Some(P::message(message)))
    }

    fn memory(&self, ctx: &Context, len: usize) -> Result<Arc<dyn WritableMemory<T>>> {
        P::host_memory(ctx, len)
    }

    fn forget_arrived(&mut self) {
        self.arriving.clear();
    }

    fn arrive(
        &mut self,
        ctx: &Context,
        message: Message<T>,
        segment: Range<usize>,
        v: &mut DeviceVec<T>,
        place: usize,
    ) -> Result<()> {
        self.arriving.push(P::arrive(ctx, message, segment, v, place)?);
        Ok(())
    }

    fn compute_after(&self, ctx: &Context) -> Result<()> {
        ctx.compute_after(&self.arriving)
    }
}
