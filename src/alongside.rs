//! Work in a thread of its own, beside other work.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Does both at once, `other` in a thread of its own, since it waits more than it computes. Where no thread is to be had, `other` is
/// done after `here`. A panic of either goes on.
pub(crate) fn alongside<A: Send, B>(other: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &other);
        let here = here();
        let other = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => other(),
        };
        (other, here)
    })
}
