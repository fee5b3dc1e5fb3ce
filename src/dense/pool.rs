//! Pinned memory in which panels travel.

use std::sync::Arc;

use super::room::Room;
use crate::device::{Context, PendingRead, Pinned};
use crate::error::Result;
use crate::memory::Plain;

/// What the host gets of a panel: what belongs to its diagonal block, and the panel itself.
pub(super) struct Coming<T: Plain> {
    pub(super) head: Option<PendingRead<Pinned<T>>>,
    pub(super) panel: Option<PendingRead<Pinned<T>>>,
}

/// Memory that transfers of several devices may read at once.
pub(super) type Shared<T> = Arc<Pinned<T>>;

/// Memory that is used again once all transfers are over.
pub(super) struct Pool<T: Plain> {
    largest: Room,
    shared: Vec<Shared<T>>,
}

impl<T: Plain> Pool<T> {
    /// Memory for panels that are no larger than this one; there is none until it is asked for.
    pub(super) fn new(largest: Room) -> Self {
        Self { largest, shared: Vec::new() }
    }

    /// Makes some, as the driver would else do while kernels wait.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn fill(&mut self, ctx: &Context, heads: usize, panels: usize) -> Result<()> {
        let heads: Vec<_> = (0..heads).map(|_| self.head(ctx)).collect::<Result<_>>()?;
        let panels: Vec<_> = (0..panels).map(|_| self.panel(ctx)).collect::<Result<_>>()?;
        self.shared.extend(heads.into_iter().chain(panels).map(Arc::new));
        Ok(())
    }

    /// Memory for what belongs to a diagonal block.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn head(&mut self, ctx: &Context) -> Result<Pinned<T>> {
        self.memory(ctx, self.largest.upper().end)
    }

    /// Memory for a panel.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn panel(&mut self, ctx: &Context) -> Result<Pinned<T>> {
        self.memory(ctx, self.largest.panel().len())
    }

    fn memory(&mut self, ctx: &Context, len: usize) -> Result<Pinned<T>> {
        let is_free = |memory: &mut Shared<T>| memory.len() == len && Arc::get_mut(memory).is_some();
        let free = self.shared.iter_mut().position(is_free);
        let memory = free.and_then(|place| Arc::into_inner(self.shared.swap_remove(place)));
        memory.map_or_else(|| Pinned::zeros(ctx, len), Ok)
    }

    /// Lets transfers read memory: it can be had again when the last is over.
    pub(super) fn share(&mut self, memory: Pinned<T>) -> Shared<T> {
        let memory = Arc::new(memory);
        self.shared.push(Arc::clone(&memory));
        memory
    }
}
