//! What `--report` and `--trace` show beyond the facts of the report: when who did what, on the time axis of the
//! command.

use std::time::{Duration, Instant};

use declive::solve::{Outcome, SetupTimes};
use declive::timeline::{Span, Timeline};
use declive::tune::DeviceFacts;

/// What was recorded of a command.
#[derive(Debug, Default)]
pub(crate) struct Recording<'a> {
    /// The device of each rank; none for the host.
    pub(crate) drivers: Vec<Option<DeviceFacts>>,
    /// What the command did, one after the other.
    pub(crate) phases: Vec<Phase>,
    /// One for each right-hand side.
    pub(crate) columns: Vec<Column<'a>>,
}

/// A part of the command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Phase {
    /// What was done.
    pub(crate) name: String,
    /// From the start of the command.
    pub(crate) start: Duration,
    /// From the start of the command.
    pub(crate) end: Duration,
    /// How long its parts took.
    pub(crate) parts: Vec<(&'static str, Duration)>,
    /// Where the first part began, if they followed each other; none if all that is known is how long they took.
    pub(crate) parts_from: Option<Duration>,
}

/// What was recorded of the solve for one right-hand side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Column<'a> {
    /// ‖r‖₂ / ‖b‖₂ by the recurrence: before the first iteration, then after each.
    pub(crate) history: &'a [f64],
    /// Of each rank.
    pub(crate) timelines: &'a [Timeline],
    /// Where the times of the timelines count from; none if there are no times.
    pub(crate) origin: Option<Duration>,
}

impl Phase {
    /// Something without parts.
    pub(crate) fn new(name: &str, start: Duration, end: Duration) -> Self {
        Self { name: name.into(), start, end, parts: Vec::new(), parts_from: None }
    }

    /// Making a solver. Ranks are made at the same time: only the parts of a single one follow each other.
    pub(crate) fn set_up(start: Duration, end: Duration, times: &SetupTimes, ranks: usize) -> Self {
        let parts = vec![
            ("tune", times.tune),
            ("prepare", times.prepare),
            ("compile", times.compile),
            ("upload", times.upload),
        ];
        // a part of "prepare" comes before "tune"
        let parts_from = (ranks == 1 && times.tune < Duration::from_millis(1)).then_some(start);
        Self { parts, parts_from, ..Self::new("set up", start, end) }
    }

    /// A solve for a column of b. Where it went on from the true residual, its parts may come several times.
    pub(crate) fn solve(
        column: usize,
        start: Duration,
        end: Duration,
        outcome: &Outcome,
        origin: Option<Duration>,
    ) -> Self {
        let parts = vec![
            ("compile", outcome.compile),
            ("upload", outcome.upload),
            ("solve", outcome.solve),
            ("gather", outcome.gather),
            ("verify", outcome.verify),
        ];
        let parts_from = origin.filter(|_| outcome.restarts == 0);
        Self { parts, parts_from, ..Self::new(&format!("right-hand side {}", column + 1), start, end) }
    }

    /// The parts with their beginnings and ends, none that took no time.
    pub(super) fn placed(&self) -> Vec<(&'static str, [Duration; 2])> {
        let Some(mut at) = self.parts_from else { return Vec::new() };
        let mut placed = Vec::new();
        for &(name, time) in self.parts.iter().filter(|(_, time)| !time.is_zero()) {
            // clocks were read at slightly different moments
            let [start, end] = [at, at + time].map(|at| at.clamp(self.start, self.end));
            placed.push((name, [start, end]));
            at = end;
        }
        placed
    }
}

impl<'a> Column<'a> {
    /// Of an outcome of a command that began at `start`.
    pub(crate) fn new(outcome: &'a Outcome, start: Instant) -> Self {
        let origin = outcome.timelines.iter().find_map(|timeline| timeline.origin);
        Self {
            history: &outcome.history,
            timelines: &outcome.timelines,
            origin: origin.map(|origin| origin.saturating_duration_since(start)),
        }
    }
}

/// Spans of one lane in the order of their beginnings, what holds another before it.
pub(super) fn in_order(spans: &mut [Span]) {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_within_the_whole() {
        let ms = Duration::from_millis;
        let mut times = SetupTimes::default();
        (times.prepare, times.upload) = (ms(20), ms(15));
        let one = Phase::set_up(ms(100), ms(130), &times, 1);
        assert_eq!(one.placed(), [("prepare", [ms(100), ms(120)]), ("upload", [ms(120), ms(130)])]);
        let two = Phase::set_up(ms(100), ms(130), &times, 2);
        assert_eq!((two.placed(), two.parts.len()), (vec![], 4));
    }
}
