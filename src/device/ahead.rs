//! A device that is opened before anybody needs it, while the host reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use opencl3::context::Context as ClContext;
use opencl3::device::Device;

use super::context::id_of;
use super::idle::idle;
use super::{Choice, Pick, select};
use crate::timeline::stages::{stage, stage_in};

/// How far a driver is started before it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Devices are listed: enough for what may be solved without one.
    Listed,
    /// The first device that is chosen is opened.
    Opened,
}

/// The name of the thread, and so of its stages.
const DRIVER: &str = "driver";

/// What [`open_ahead`] has begun. What nobody has taken when it is dropped stays open until [`close_idle`](super::close_idle).
#[derive(Debug)]
pub struct OpeningAhead {
    thread: Option<JoinHandle<()>>,
    is_unwanted: Arc<AtomicBool>,
}

/// Begins to start the driver in a thread of its own, for a [`Solver`](crate::Solver) that is made later in this process: drivers take
/// some tenths of a second to start, and to open a device, which may as well pass while a matrix is read or assembled. Failures are told to
/// who then opens the device.
///
/// ```
/// use declive::device::{Ahead, Choice, open_ahead};
///
/// let opening = open_ahead(&Choice::Auto, true, Ahead::Opened);
/// // the matrix is assembled, and a solver made
/// drop(opening);
/// ```
#[must_use = "who drops it waits for the driver"]
pub fn open_ahead(choice: &Choice, f64: bool, ahead: Ahead) -> OpeningAhead {
    let is_unwanted = Arc::new(AtomicBool::new(false));
    let needs_none = matches!(choice, Choice::List(picks) if picks.iter().all(|pick| *pick == Pick::Host));
    let (choice, unwanted) = (choice.clone(), Arc::clone(&is_unwanted));
    if needs_none {
        return OpeningAhead { thread: None, is_unwanted };
    }
    let listing = stage_in(DRIVER, "list");
    let open = move || {
        let mut idle = idle();
        let Ok(selection) = select(&choice, f64) else { return };
        let took = listing.end();
        log::debug!("devices listed ahead, {took:?}");
        if ahead == Ahead::Listed || unwanted.load(Ordering::Relaxed) {
            return;
        }
        let opening = stage("open");
        // of several, auto may take no more than one
        let count = if choice == Choice::Auto { 1 } else { selection.ranks.len() };
        for device in selection.ranks.iter().take(count).flatten() {
            if !idle.has(device)
                && let Ok(context) = ClContext::from_device(&Device::new(id_of(device)))
            {
                idle.keep(device, Arc::new(context));
            }
        }
        let took = opening.end();
        log::debug!("opened ahead, {took:?}");
    };
    // without a thread, all is opened when it is needed
    OpeningAhead { thread: Builder::new().name(DRIVER.into()).spawn(open).ok(), is_unwanted }
}

impl Drop for OpeningAhead {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
        // drivers are not made to be left while they start
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Context, close_idle, list};

    #[test]
    fn what_is_opened_ahead_is_taken() {
        let device = list().devices.remove(0);
        close_idle();
        let opening = open_ahead(&Choice::List(vec![Pick::Index(device.index); 2]), false, Ahead::Opened);
        let all: Vec<Context> = (0..3).map(|_| Context::open(&device).unwrap()).collect();
        all.iter().for_each(|ctx| ctx.finish().unwrap());
        drop(opening);
        assert!(!idle().has(&device));
        // nothing of these
        for (choice, ahead) in [(Choice::Auto, Ahead::Listed), (Choice::List(vec![Pick::Host]), Ahead::Opened)] {
            drop(open_ahead(&choice, false, ahead));
            assert!(!idle().has(&device));
        }
        drop(open_ahead(&Choice::List(vec![Pick::Index(1 << 20)]), false, Ahead::Opened));
    }
}
