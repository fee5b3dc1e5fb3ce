//! A device that is opened before anybody needs it, while the host reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use opencl3::context::Context as ClContext;
use opencl3::device::Device;

use super::context::id_of;
use super::{Choice, Info, Pick, select};
use crate::timeline::stages::{stage, stage_in};

/// Contexts that wait for somebody who opens their device. Locked as long as one is made, so that nobody makes another one meanwhile.
static READY: Mutex<Vec<(usize, Arc<ClContext>)>> = Mutex::new(Vec::new());

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

/// What [`open_ahead`] has begun. When it is dropped, what nobody took is closed again.
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
#[must_use = "what is dropped is closed"]
pub fn open_ahead(choice: &Choice, f64: bool, ahead: Ahead) -> OpeningAhead {
    let is_unwanted = Arc::new(AtomicBool::new(false));
    let needs_none = matches!(choice, Choice::List(picks) if picks.iter().all(|pick| *pick == Pick::Host));
    let (choice, unwanted) = (choice.clone(), Arc::clone(&is_unwanted));
    if needs_none {
        return OpeningAhead { thread: None, is_unwanted };
    }
    let listing = stage_in(DRIVER, "list");
    let open = move || {
        let mut ready = ready();
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
            if !ready.iter().any(|(id, _)| *id == device.id)
                && let Ok(context) = ClContext::from_device(&Device::new(id_of(device)))
            {
                ready.push((device.id, Arc::new(context)));
            }
        }
        let took = opening.end();
        log::debug!("{} opened ahead, {took:?}", ready.len());
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
            ready().clear();
        }
    }
}

fn ready() -> MutexGuard<'static, Vec<(usize, Arc<ClContext>)>> {
    READY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Contexts that stay open between one solver and the next on the same devices, until this is dropped.
pub(crate) struct KeptOpen;

/// Lets the next that opens the device have its context.
pub(super) fn keep(device: &Info, context: Arc<ClContext>) {
    ready().push((device.id, context));
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        ready().clear();
    }
}

/// The context of this device that was made ahead, if one was; waits for one that is being made.
pub(super) fn take(device: &Info) -> Option<Arc<ClContext>> {
    let mut ready = ready();
    let at = ready.iter().position(|(id, _)| *id == device.id)?;
    Some(ready.swap_remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Context, list};

    #[test]
    fn what_is_opened_ahead_is_taken_once() {
        let device = list().devices.remove(0);
        let opening = open_ahead(&Choice::List(vec![Pick::Index(device.index); 2]), false, Ahead::Opened);
        let all: Vec<Context> = (0..3).map(|_| Context::open(&device).unwrap()).collect();
        all.iter().for_each(|ctx| ctx.finish().unwrap());
        drop(opening);
        assert!(take(&device).is_none());
        // nothing of these
        for (choice, ahead) in [(Choice::Auto, Ahead::Listed), (Choice::List(vec![Pick::Host]), Ahead::Opened)] {
            let _opening = open_ahead(&choice, false, ahead);
            assert!(take(&device).is_none());
        }
        drop(open_ahead(&Choice::List(vec![Pick::Index(1 << 20)]), false, Ahead::Opened));
    }
}
