//! A counter that threads wait on.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::Failure;
use crate::error::Result;

/// How often a waiting thread looks before it lets others run: 20 to 100 µs by the processor, about a device's answer.
const SPINS: u32 = 2_000;
/// How often it then yields before it sleeps.
const YIELDS: u32 = 200;
/// How long it sleeps before it looks whether another rank has failed.
const NAP: Duration = Duration::from_millis(20);

/// A number that only rises. Waiting spins first, as a park and a wake-up cost more than most waits here.
#[derive(Debug)]
pub(super) struct Gate {
    spins: u32,
    count: AtomicU64,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Gate {
    /// At 0, for so many threads. If there are fewer processors, whoever spins keeps others from what it waits for.
    pub(super) fn new(threads: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let spins = if threads > processors { 0 } else { SPINS };
        Self {
            spins,
            count: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Raises the number by one; what was written before is visible to whoever sees it.
    pub(super) fn advance(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock());
            self.wake.notify_all();
        }
    }

    /// Waits until the number is at least `count`.
    ///
    /// # Errors
    /// If a rank fails meanwhile.
    pub(super) fn wait(&self, count: u64, failure: &Failure) -> Result<()> {
        let open = || self.count.load(Ordering::SeqCst) >= count;
        for spin in 0..self.spins + YIELDS {
            if open() {
                return Ok(());
            }
            if spin < self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let result = loop {
            if open() {
                break Ok(());
            }
            if let Err(e) = failure.check() {
                break Err(e);
            }
            guard = match self.wake.wait_timeout(guard, NAP) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        result
    }
}
