//! Where the time of a device's rank goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::OpenClBackend;
use crate::device::{Moment, Timed};
use crate::error::Result;
use crate::real::Real;
use crate::timeline::Lane;

/// The device times the kernels of one of the first iterations, of the one so many later, and again after twice as many.
const SAMPLE_EVERY: u64 = 64;
/// So many timings are kept before they are added up.
const MAX_TIMED: usize = 1024;

/// Kernels that are part of a timeline, by the device's clock.
#[derive(Default)]
pub(super) struct Recorded {
    /// When recording began.
    pub(super) first: Option<Moment>,
    /// With the iteration of each.
    pub(super) kernels: Vec<(Option<u64>, Timed)>,
}

/// Where the time goes.
#[derive(Default)]
pub(super) struct Clock {
    /// Iterations that the device timed, and the last of them.
    pub(super) samples: u64,
    pub(super) sampled: u64,
    /// Iterations of launches of several that are timed, by their tag.
    pub(super) spans: BTreeMap<u64, u64>,
    /// How often each kernel was timed, and its time in all.
    pub(super) kernels: BTreeMap<&'static str, (u32, Duration)>,
    pub(super) sums: Duration,
    pub(super) halos: Duration,
    pub(super) host_wait: Duration,
    /// Samples, and their times, that were asked for already: of kernels that do not wait for other ranks, and of those that do.
    pub(super) last_asked: (u64, [Duration; 2]),
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// Adds to the time spent in halo exchanges.
    pub(crate) fn count_halo(&self, time: Duration) {
        self.clock.borrow_mut().halos += time;
    }

    /// Counts the time since `start` as spent in waiting for the device.
    pub(crate) fn waited(&self, start: Instant) {
        self.clock.borrow_mut().host_wait += start.elapsed();
        self.recorder.span(Lane::Host, "wait for the device", start);
    }

    /// Takes what timings there are, if they are many: events cost the driver memory.
    pub(super) fn make_room_for_timings(&self) -> Result<()> {
        let done = self.known_done.get();
        if self.ctx.timed_count() > MAX_TIMED { self.take_timed(done) } else { Ok(()) }
    }

    /// Takes no interest in timings that were not taken.
    pub(crate) fn forget_timed(&self) {
        self.ctx.forget_timed();
        self.clock.borrow_mut().spans.clear();
    }

    /// Takes the timings up to iteration `last`.
    pub(super) fn take_timed(&self, last: u64) -> Result<()> {
        let timed = self.ctx.take_timed(last)?;
        let clock = &mut *self.clock.borrow_mut();
        for kernel in timed {
            if kernel.tag > 0 {
                // of the iterations of one launch, those count that are no later
                let iterations = clock.spans.remove(&kernel.tag).map_or(1, |count| count.min(last + 1 - kernel.tag));
                clock.samples += if kernel.tag == clock.sampled { 0 } else { iterations };
                clock.sampled = kernel.tag;
                let entry = clock.kernels.entry(kernel.kernel).or_default();
                *entry = (entry.0 + 1, entry.1 + kernel.time());
            }
            if let Some(place) = self.recorder.place(kernel.tag) {
                self.recorded.borrow_mut().kernels.push((place, kernel));
            }
        }
        Ok(())
    }
}

/// Whether the device's own times of this iteration are of interest.
pub(super) fn is_sample(iteration: u64) -> bool {
    iteration == 0 || iteration.is_multiple_of(SAMPLE_EVERY) && (iteration / SAMPLE_EVERY).is_power_of_two()
}
