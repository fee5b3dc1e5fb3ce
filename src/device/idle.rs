//! Contexts that nobody uses, kept for who opens their device next: drivers take a tenth of a second and more to make one, and as long to
//! close it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl3::context::Context as ClContext;

use super::Info;

/// The contexts, each with the number of its device.
pub(super) struct Idle(Vec<(usize, Arc<ClContext>)>);

static IDLE: Mutex<Idle> = Mutex::new(Idle(Vec::new()));

/// Those that are idle now. Locked as long as one is made ahead, so that nobody makes another one meanwhile.
pub(super) fn idle() -> MutexGuard<'static, Idle> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Idle {
    pub(super) fn has(&self, device: &Info) -> bool {
        self.0.iter().any(|(id, _)| *id == device.id)
    }

    /// The context of this device, if there is one.
    pub(super) fn take(&mut self, device: &Info) -> Option<Arc<ClContext>> {
        let at = self.0.iter().position(|(id, _)| *id == device.id)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Keeps a context of this device, unless one is kept: drivers hold some memory for each.
    pub(super) fn keep(&mut self, device: &Info, context: Arc<ClContext>) {
        if !self.has(device) {
            self.0.push((device.id, context));
        }
    }
}

/// Closes the devices that no solver uses. One stays open when the last that used it is dropped, so that the next does not wait for the driver
/// again; an open NVIDIA GPU has some 500 MB of its memory taken. Devices in use stay as they are.
pub fn close_idle() {
    // dropped when others can go on
    let closed = std::mem::take(&mut idle().0);
    drop(closed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::faults::Call;
    use crate::device::{Context, Doing, list};
    use opencl3::error_codes::{CL_OUT_OF_RESOURCES, ClError};

    #[test]
    fn what_nobody_uses_is_used_again() {
        let device = list().devices.remove(0);
        close_idle();
        let of = |ctx: &Context| Arc::as_ptr(&ctx.context);
        let first = Context::open(&device).unwrap();
        let (other, beside) = (Context::open(&device).unwrap(), first.beside().unwrap());
        let kept = of(&first);
        assert!(of(&other) != kept && of(&beside) == kept);
        drop(first);
        assert!(!idle().has(&device), "one is in use");
        drop(beside);
        assert!(idle().has(&device));
        drop(other); // one is enough
        assert_eq!(idle().0.len(), 1);
        let again = Context::open(&device).unwrap();
        assert_eq!(of(&again), kept);
        again.finish().unwrap();
        // a device that has failed is opened anew
        let beside = again.beside().unwrap();
        let _ = again.error(Doing(Call::Wait, "it"), "clFinish")(ClError(CL_OUT_OF_RESOURCES));
        drop(again);
        drop(beside);
        assert!(!idle().has(&device));
        drop(Context::open(&device).unwrap());
        assert!(idle().has(&device));
        close_idle();
        assert!(!idle().has(&device));
    }
}
