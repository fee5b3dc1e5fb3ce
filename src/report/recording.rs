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
    /// What the command did, one after the other, beside its stages.
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
    /// Making a solver. Ranks are made at the same time.
    pub(crate) fn set_up(start: Duration, end: Duration, times: &SetupTimes) -> Self {
        let parts = vec![
            ("tune", times.tune),
            ("precond", times.precond),
            ("prepare", times.prepare),
            ("compile", times.compile),
            ("upload", times.upload),
        ];
        Self { name: "set up".into(), start, end, parts }
    }

    /// A solve for a column of b.
    pub(crate) fn solve(column: usize, start: Duration, end: Duration, outcome: &Outcome) -> Self {
        let parts = vec![
            ("compile", outcome.compile),
            ("upload", outcome.upload),
            ("precond", outcome.precond),
            ("solve", outcome.solve),
            ("gather", outcome.gather),
            ("verify", outcome.verify),
        ];
        Self { name: format!("right-hand side {}", column + 1), start, end, parts }
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
