//! A recording in the Trace Event Format of Chromium, which `chrome://tracing` and <https://ui.perfetto.dev> show:
//! complete events (`X`) with times in microseconds, and metadata (`M`) that names processes and threads.
//!
//! Viewers nest events of a thread that lie within each other, and refuse those that overlap otherwise.

use std::io::{self, Write};
use std::time::Duration;

use declive::timeline::{FIRST_ITERATIONS, LATER_ITERATIONS, Lane, Span};
use serde_json::{Map, Value, json};

use super::recording::{Phase, Recording, in_order};
use super::solve::{Report, Stage};
use super::{DECLIVE, distinct};

/// The process of the command; that of rank k is k + 2. 0 stands for the idle process in viewers.
const COMMAND: usize = 1;
const FIRST_RANK: usize = COMMAND + 1;

/// The thread that runs the command.
const MAIN: &str = "main";

/// The threads of a rank: what they have, their numbers, their names, and the category of their events.
const LANES: [(Lane, usize, &str, &str); 2] =
    [(Lane::Kernels, 1, "kernels", "kernel"), (Lane::Host, 2, "host", "host")];

/// Writes the trace, an event a line.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(out: &mut dyn Write, report: &Report, recording: &Recording<'_>) -> io::Result<()> {
    let about = json!({
        "declive": DECLIVE,
        "matrix": report.matrix,
        "rhs": report.rhs,
        "x0": report.x0,
        "options": report.options,
        "recorded": format!(
            "the first {FIRST_ITERATIONS} iterations, and of the later ones each {LATER_ITERATIONS}th"
        ),
    });
    write!(out, "{{\n\"displayTimeUnit\": \"ns\",\n\"otherData\": {about},\n\"traceEvents\": [\n")?;
    let mut events = Events { out, any: false };
    events.names(report)?;
    events.command(report, recording)?;
    events.spans(recording)?;
    write!(out, "\n]\n}}\n")
}

struct Events<'a> {
    out: &'a mut dyn Write,
    any: bool,
}

impl Events<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        if std::mem::replace(&mut self.any, true) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    fn metadata(&mut self, name: &'static str, [pid, tid]: [usize; 2], args: Value) -> io::Result<()> {
        self.put(&json!({ "name": name, "ph": "M", "pid": pid, "tid": tid, "ts": 0.0, "args": args }))
    }

    fn process(&mut self, pid: usize, name: &str, threads: &[(usize, &str)]) -> io::Result<()> {
        let first = threads.first().map_or(0, |(tid, _)| *tid);
        self.metadata("process_name", [pid, first], json!({ "name": name }))?;
        self.metadata("process_sort_index", [pid, first], json!({ "sort_index": pid }))?;
        for &(tid, name) in threads {
            self.metadata("thread_name", [pid, tid], json!({ "name": name }))?;
            self.metadata("thread_sort_index", [pid, tid], json!({ "sort_index": tid }))?;
        }
        Ok(())
    }

    fn names(&mut self, report: &Report) -> io::Result<()> {
        let lanes = lanes(report);
        let threads: Vec<(usize, &str)> = (1..).zip(lanes.iter().copied()).collect();
        self.process(COMMAND, "declive", &threads)?;
        for (k, rank) in report.ranks.iter().enumerate() {
            let lanes = LANES.map(|(_, thread, name, _)| (thread, name));
            self.process(FIRST_RANK + k, &format!("rank {k}: {}", rank.label()), &lanes)?;
        }
        Ok(())
    }

    fn complete(
        &mut self,
        name: &str,
        cat: &'static str,
        id: [usize; 2],
        at: [Duration; 2],
        args: Value,
    ) -> io::Result<()> {
        let ([pid, tid], [start, end]) = (id, at);
        let (ts, dur) = (microseconds(start), microseconds(end.saturating_sub(start)));
        let event =
            json!({ "name": name, "cat": cat, "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args });
        self.put(&event)
    }

    /// The phases and stages of the command.
    fn command(&mut self, report: &Report, recording: &Recording<'_>) -> io::Result<()> {
        let lanes = lanes(report);
        let phase = |phase: &Phase| {
            let seconds = |&(name, time): &(&str, Duration)| (format!("{name}_seconds"), json!(time.as_secs_f64()));
            let args: Map<String, Value> = phase.parts.iter().map(seconds).collect();
            (phase.name.clone(), 1, [phase.start, phase.end], args)
        };
        let stage = |stage: &Stage| {
            let thread = 1 + lanes.iter().position(|lane| *lane == stage.lane).unwrap_or(0);
            let at = [stage.start, stage.end()].map(Duration::from_secs_f64);
            (stage.stage.to_owned(), thread, at, Map::new())
        };
        let mut events: Vec<_> = recording.phases.iter().map(phase).chain(report.timeline.iter().map(stage)).collect();
        events.sort_by_key(|(_, _, [start, end], _)| (*start, std::cmp::Reverse(*end)));
        for (name, thread, at, args) in events {
            self.complete(&name, "command", [COMMAND, thread], at, args.into())?;
        }
        Ok(())
    }

    fn spans(&mut self, recording: &Recording<'_>) -> io::Result<()> {
        let several = recording.columns.len() > 1;
        for (column, one) in recording.columns.iter().enumerate() {
            let Some(origin) = one.origin else { continue };
            for (rank, timeline) in one.timelines.iter().enumerate() {
                for (lane, thread, _, cat) in LANES {
                    let mut spans: Vec<Span> = timeline.spans.iter().filter(|s| s.lane == lane).copied().collect();
                    in_order(&mut spans);
                    if lane == Lane::Kernels {
                        apart(&mut spans);
                    }
                    for span in spans {
                        let mut args = Map::new();
                        if let Some(iteration) = span.iteration {
                            args.insert("iteration".into(), iteration.into());
                        }
                        if several {
                            args.insert("rhs".into(), (column + 1).into());
                        }
                        let at = [span.start, span.end].map(|at| origin + at);
                        self.complete(span.name, cat, [FIRST_RANK + rank, thread], at, args.into())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The threads of the command, that which has begun first.
fn lanes(report: &Report) -> Vec<&str> {
    let others = report.timeline.iter().map(|stage| &*stage.lane);
    distinct(std::iter::once(MAIN).chain(others))
}

/// Kernels of a queue follow each other, but a device's clock may tell the end of one a few ticks after the next one's
/// start.
fn apart(spans: &mut [Span]) {
    let mut free = Duration::ZERO;
    for span in spans {
        span.start = span.start.max(free);
        span.end = span.end.max(span.start);
        free = span.end;
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_do_not_overlap() {
        let nanos = Duration::from_nanos;
        let span = |start, end| Span {
            lane: Lane::Kernels,
            name: "dot",
            iteration: None,
            start: nanos(start),
            end: nanos(end),
        };
        let mut spans = [span(0, 10), span(8, 20), span(9, 15), span(20, 30)];
        apart(&mut spans);
        assert_eq!(spans, [span(0, 10), span(10, 20), span(20, 20), span(20, 30)]);
        assert_eq!(microseconds(nanos(1_234_567)), 1234.567);
    }
}
