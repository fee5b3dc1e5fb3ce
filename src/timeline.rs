//! When a rank did what: kernels on its device, and the host's part, on one time axis for all ranks.
//!
//! Recorded on request ([`Control::timeline`](crate::Control::timeline)), for the first iterations and a few of the
//! later ones: a device that times a kernel takes some microseconds more for each launch. [`stages`] has what is done before and
//! after, and beside.

pub mod stages;

use std::cell::RefCell;
use std::ops::{Add, Div};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::timing::in_seconds;

/// So many iterations are recorded without a gap.
pub const FIRST_ITERATIONS: u64 = 100;

/// Of later ones, each that is a multiple of this.
pub const LATER_ITERATIONS: u64 = 64;

/// Who did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Kernels: on the device, by its own clock, or what the host rank computes itself.
    Kernels,
    /// The thread on the host that serves the rank: sums over ranks, halos, waiting for the device.
    Host,
}

/// Something that a rank did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Who.
    pub lane: Lane,
    /// What: the name of a kernel, or a few words.
    pub name: &'static str,
    /// In which iteration, from 1; none before the first one, or where a run begins again.
    pub iteration: Option<u64>,
    /// From the start of the solve.
    pub start: Duration,
    /// From the start of the solve.
    pub end: Duration,
}

impl Span {
    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// What a rank did during a solve, in the order of time within each lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The start of the solve, from which times count; none if nothing was done.
    pub origin: Option<Instant>,
    /// All that was recorded.
    pub spans: Vec<Span>,
    /// How many iterations were done in all when a run ended. A run begins with the true residual; the last one may
    /// find that there is nothing left to do.
    pub runs: Vec<u64>,
}

/// Where the time of one rank's iteration went. The kernels' time overlaps with the others: it is the device's, and they are
/// the host's; the rest of the solve is the host's own work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Split {
    /// Kernels running on the device (sampled iterations, scaled up) or the host rank's own arithmetic.
    #[serde(serialize_with = "in_seconds")]
    pub kernels: Duration,
    /// Global sums: the wait for the other ranks.
    #[serde(serialize_with = "in_seconds")]
    pub sums: Duration,
    /// Halo exchange: the wait for what was enqueued before, transfers, and the wait for the neighbours.
    #[serde(serialize_with = "in_seconds")]
    pub halos: Duration,
    /// The host waiting for its device elsewhere: for partial sums, or the log of the iteration.
    #[serde(serialize_with = "in_seconds")]
    pub host_wait: Duration,
}

impl Div<u32> for Split {
    type Output = Self;

    fn div(self, count: u32) -> Self {
        Self {
            kernels: self.kernels / count,
            sums: self.sums / count,
            halos: self.halos / count,
            host_wait: self.host_wait / count,
        }
    }
}

impl Add for Split {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            kernels: self.kernels + other.kernels,
            sums: self.sums + other.sums,
            halos: self.halos + other.halos,
            host_wait: self.host_wait + other.host_wait,
        }
    }
}

/// All launches of a kernel in the iterations recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelTotal {
    /// Its name.
    pub kernel: &'static str,
    /// How many launches.
    pub calls: u64,
    /// Their time together.
    pub time: Duration,
}

impl Timeline {
    /// How many iterations were recorded.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        let mut seen: Vec<u64> = self.spans.iter().filter_map(|span| span.iteration).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len() as u64
    }

    /// After which iterations the solve went on from the true residual.
    #[must_use]
    pub fn restarts(&self) -> Vec<u64> {
        let last = self.runs.last().copied().unwrap_or(0);
        let mut restarts: Vec<u64> = self.runs.iter().copied().filter(|&done| done > 0 && done < last).collect();
        restarts.dedup();
        restarts
    }

    /// The kernels of the iterations recorded, in the order in which they come first.
    #[must_use]
    pub fn kernels(&self) -> Vec<KernelTotal> {
        let mut totals: Vec<KernelTotal> = Vec::new();
        for span in self.spans.iter().filter(|span| span.lane == Lane::Kernels && span.iteration.is_some()) {
            match totals.iter_mut().find(|total| total.kernel == span.name) {
                Some(total) => {
                    total.calls += 1;
                    total.time += span.duration();
                }
                None => totals.push(KernelTotal { kernel: span.name, calls: 1, time: span.duration() }),
            }
        }
        totals
    }
}

/// Collects the spans of a rank while it is on.
#[derive(Default)]
pub(crate) struct Recorder(RefCell<Option<Recording>>);

struct Recording {
    origin: Instant,
    /// Iterations of former runs.
    before: u64,
    iteration: Option<u64>,
    spans: Vec<Span>,
    /// Iterations in all at the end of each run.
    runs: Vec<u64>,
}

impl Recorder {
    /// Starts to record; `before` iterations were done since `origin`.
    pub(crate) fn start(&self, origin: Instant, before: u64) {
        self.0.replace(Some(Recording { origin, before, iteration: None, spans: Vec::new(), runs: Vec::new() }));
    }

    /// The `iteration`-th of this run begins.
    pub(crate) fn begin_iteration(&self, iteration: u64) {
        if let Some(recording) = &mut *self.0.borrow_mut() {
            recording.iteration = Some(recording.before + iteration);
        }
    }

    /// A run has ended, of which `iterations` counted.
    pub(crate) fn end_run(&self, iterations: u64) {
        if let Some(recording) = &mut *self.0.borrow_mut() {
            recording.before += iterations;
            recording.iteration = None;
            // the host may have been ahead of the end
            let last = recording.before;
            recording.spans.retain(|span| span.iteration.is_none_or(|iteration| iteration <= last));
            recording.runs.push(recording.before);
        }
    }

    /// Whether a timeline was asked for, whatever of it is kept.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Whether what happens now is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(|r| r.iteration.is_none_or(is_recorded))
    }

    /// Keeps what the calling thread has done from `start` until now.
    pub(crate) fn span(&self, lane: Lane, name: &'static str, start: Instant) {
        if self.is_on()
            && let Some(recording) = &mut *self.0.borrow_mut()
        {
            let (start, end) = (start.saturating_duration_since(recording.origin), recording.origin.elapsed());
            recording.spans.push(Span { lane, name, iteration: recording.iteration, start, end });
        }
    }

    /// The `iteration`-th of this run among those of all runs, if it is to be kept; 0 stands for what comes before the
    /// first.
    pub(crate) fn place(&self, iteration: u64) -> Option<Option<u64>> {
        let recording = self.0.borrow();
        let place = (iteration > 0).then_some(recording.as_ref()?.before + iteration);
        place.is_none_or(is_recorded).then_some(place)
    }

    /// Keeps what a device has done.
    pub(crate) fn device_span(&self, name: &'static str, iteration: Option<u64>, [start, end]: [Instant; 2]) {
        if let Some(recording) = &mut *self.0.borrow_mut() {
            let [start, end] = [start, end].map(|at| at.saturating_duration_since(recording.origin));
            recording.spans.push(Span { lane: Lane::Kernels, name, iteration, start, end });
        }
    }

    /// Keeps the time until the guard is dropped.
    pub(crate) fn guard(&self, lane: Lane, name: &'static str) -> Guard<'_> {
        Guard { recorder: self, lane, name, start: Instant::now() }
    }

    /// Stops recording, and gives what was recorded.
    pub(crate) fn stop(&self) -> Timeline {
        let Some(Recording { origin, mut spans, runs, .. }) = self.0.take() else { return Timeline::default() };
        spans.sort_by_key(|span| (span.lane, span.start));
        Timeline { origin: Some(origin), spans, runs }
    }
}

/// Keeps a span when it is dropped.
pub(crate) struct Guard<'a> {
    recorder: &'a Recorder,
    lane: Lane,
    name: &'static str,
    start: Instant,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.recorder.span(self.lane, self.name, self.start);
    }
}

fn is_recorded(iteration: u64) -> bool {
    iteration <= FIRST_ITERATIONS || iteration.is_multiple_of(LATER_ITERATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_iterations_and_some_later_ones() {
        let recorder = Recorder::default();
        let origin = Instant::now();
        recorder.span(Lane::Host, "not yet", origin);
        recorder.start(origin, 0);
        recorder.span(Lane::Host, "begin", origin);
        for iteration in 1..=70 {
            recorder.begin_iteration(iteration);
            recorder.span(Lane::Host, "sum", origin);
        }
        // two iterations beyond the end of the run
        recorder.end_run(68);
        let last = |recorder: &Recorder| recorder.0.borrow().as_ref().unwrap().spans.last().unwrap().iteration;
        assert_eq!(last(&recorder), Some(68));
        for iteration in 1..=70 {
            recorder.begin_iteration(iteration);
            let at = |k: u64| origin + Duration::from_nanos(1000 * iteration + k);
            let place = recorder.place(iteration);
            assert_eq!(
                (place.is_some(), recorder.is_on()),
                [iteration <= 32 || iteration == 60; 2].into(),
                "{iteration}"
            );
            if let Some(place) = place {
                recorder.device_span("spmv_csr", place, [at(0), at(10)]);
                recorder.device_span("spmv_csr", place, [at(20), at(25)]);
            }
        }
        assert_eq!(recorder.place(0), Some(None));
        recorder.device_span("residual_csr", None, [origin; 2]);
        let timeline = recorder.stop();
        assert_eq!(timeline.iterations(), 101);
        let total = KernelTotal { kernel: "spmv_csr", calls: 66, time: Duration::from_nanos(33 * 15) };
        assert_eq!(timeline.kernels(), [total]);
        assert_eq!(timeline.spans.iter().filter(|s| s.iteration.is_none()).count(), 2);
        assert!(timeline.spans.is_sorted_by_key(|s| (s.lane, s.start)));
        assert_eq!((timeline.origin, &*timeline.runs), (Some(origin), &[68][..]));
        assert_eq!(recorder.stop(), Timeline::default());
    }

    #[test]
    fn restarts_are_where_a_run_went_on() {
        let restarts = |runs: &[u64]| Timeline { runs: runs.to_vec(), ..Timeline::default() }.restarts();
        assert!([&[][..], &[0], &[70], &[70, 70]].map(restarts).iter().all(Vec::is_empty));
        assert_eq!(restarts(&[70, 82, 82]), [70]);
        assert_eq!(restarts(&[70, 82, 82, 90, 90]), [70, 82]);
    }
}
