//! Who looks on while devices are tuned.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::setters::setters;

/// Hears how far tuning is, and may end it. The default does neither.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Watch<'a> {
    /// Set to true from anywhere, it ends tuning between two measurements with [`Error::Interrupted`].
    pub cancel: Option<&'a AtomicBool>,
    /// Called with the parts of the work that are done and their number.
    pub progress: Option<&'a dyn Fn(usize, usize)>,
}

setters! { Watch<'a>:
    with_cancel = cancel: &'a AtomicBool as Some;
    with_progress = progress: &'a dyn Fn(usize, usize) as Some;
}

impl Watch<'_> {
    /// Says how far it is.
    pub(super) fn update(&self, done: usize, all: usize) {
        if let Some(progress) = self.progress {
            progress(done, all);
        }
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if not.
    pub(super) fn check(&self) -> Result<()> {
        let is_cancelled = self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if is_cancelled { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}
