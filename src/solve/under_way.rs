//! Work in a thread of its own that may outlast who waits for it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::krylov::Reason;
use crate::runtime::{Control, Stop};

/// How often it is looked whether it is to be given up.
const LOOK: Duration = Duration::from_millis(20);

/// Why a solve that began at `begin` should end now, if it should.
pub(super) fn reason_to_end(stop: &Stop, control: &Control<'_>, begin: Instant) -> Option<Reason> {
    let is_cancelled = control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    let is_late = stop.time_limit.is_some_and(|limit| begin.elapsed() >= limit);
    is_cancelled.then_some(Reason::Interrupted).or(is_late.then_some(Reason::TimeLimit))
}

/// A factorisation in a thread of its own.
#[derive(Debug)]
pub(super) struct UnderWay<R> {
    thread: JoinHandle<R>,
    is_done: Arc<AtomicBool>,
}

impl<R: Send + 'static> UnderWay<R> {
    pub(super) fn begin(job: impl FnOnce() -> R + Send + 'static) -> Self {
        let (is_done, waiting) = (Arc::new(AtomicBool::new(false)), thread::current());
        let done = Arc::clone(&is_done);
        let job = move || {
            let result = job();
            done.store(true, Ordering::Release);
            waiting.unpark();
            result
        };
        Self { thread: thread::spawn(job), is_done }
    }

    /// Waits for its end, unless there is a reason not to: then it goes on, for whoever waits next.
    pub(super) fn wait(self, is_over: impl Fn() -> Option<Reason>) -> Result<R, (Self, Reason)> {
        while !self.is_done.load(Ordering::Acquire) && !self.thread.is_finished() {
            if let Some(reason) = is_over() {
                return Err((self, reason));
            }
            thread::park_timeout(LOOK);
        }
        Ok(self.thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}
