//! What the ranks do in a few iterations, on one time axis.

use std::time::Duration;

use declive::timeline::{Lane, Span, Timeline};
use maud::{Markup, html};

use super::super::html::bars::letter;
use super::super::html::figures::{Unit, tick_label, time};
use super::super::html::scale::Scale;
use super::super::html::svg::{chart, line, n, text};
use super::super::html::table::scroll;
use super::super::recording::Column;
use super::super::solve::Report;
use super::iterations::{begins, middle};

/// How many iterations are shown.
const ITERATIONS: usize = 4;
const WIDTH: f64 = 900.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 24.0;
const KERNELS: f64 = 22.0;
const HOST: f64 = 15.0;
const GAP: f64 = 10.0;
/// Of the shortest span.
const LEAST: f64 = 1.0;
/// Of a character, about.
const CHARACTER: f64 = 5.9;
/// How many colours the style sheet has for kernels, and for what hosts do.
const COLOURS: [usize; 2] = [8, 6];

/// A row of the chart.
struct Row {
    rank: usize,
    lane: Lane,
    top: f64,
    spans: Vec<Span>,
}

impl Row {
    fn height(&self) -> f64 {
        if self.lane == Lane::Kernels { KERNELS } else { HOST }
    }
}

/// What the spans stand for, in the order of the legend: kernels first, each in the order of an iteration.
struct Kinds(Vec<(Lane, &'static str)>);

impl Kinds {
    fn new(timelines: &[Timeline], rows: &[Row]) -> Self {
        let drawn =
            |kind: (Lane, &str)| rows.iter().flat_map(|row| &row.spans).any(|span| (span.lane, span.name) == kind);
        let mut kinds = Vec::new();
        for lane in [Lane::Kernels, Lane::Host] {
            for span in timelines.iter().flat_map(|timeline| &timeline.spans).filter(|span| span.lane == lane) {
                let kind = (lane, span.name);
                if !kinds.contains(&kind) && drawn(kind) {
                    kinds.push(kind);
                }
            }
        }
        Self(kinds)
    }

    fn index(&self, span: &Span) -> usize {
        self.0.iter().position(|kind| *kind == (span.lane, span.name)).unwrap_or(0)
    }

    fn class(&self, index: usize) -> String {
        let lane = self.0[index].0;
        let of_lane = self.0[..index].iter().filter(|kind| kind.0 == lane).count();
        match lane {
            Lane::Kernels => format!("f{}", of_lane % COLOURS[0]),
            Lane::Host => format!("h{}", of_lane % COLOURS[1]),
        }
    }
}

/// The chart of the first right-hand side that has anything to show; none if no iteration was recorded.
pub(super) fn section(report: &Report, columns: &[Column<'_>]) -> Option<Markup> {
    let (number, timelines, shown) = columns.iter().enumerate().find_map(|(k, column)| {
        let shown = middle(&begins(column.timelines), ITERATIONS);
        (!shown.is_empty()).then_some((k + 1, column.timelines, shown))
    })?;
    let (first, last) = (*shown.first()?, *shown.last()?);
    let which = if first == last { format!("Iteration {first}") } else { format!("Iterations {first} to {last}") };
    let of = if columns.len() > 1 { format!(" of right-hand side {number}") } else { String::new() };
    let window = window(timelines, first, last)?;
    let (rows, bottom) = layout(timelines, window);
    let kinds = Kinds::new(timelines, &rows);
    let caption = format!("{which}{of}, {}", time((window[1] - window[0]).as_secs_f64()));
    Some(html! {
        p {
            "The upper row of each rank has its kernels, by the device's own clock, or what the host computes itself; "
            "the lower one is the thread on the host that serves it, where it waits or moves elements. What is left "
            "blank there is the host's own work: to launch kernels, and to look at sums. The clocks are known to each "
            "other to some microseconds."
        }
        figure.full.gantt {
            figcaption {
                b { (caption) }
                span.legend {
                    @for (k, (_, name)) in kinds.0.iter().enumerate() {
                        span.entry { span class={ "key " (kinds.class(k)) } { (letter(k)) } (name) }
                    }
                }
            }
            (scroll("Timeline", drawing(report, timelines, window, &shown, &rows, &kinds, bottom)))
        }
    })
}

/// From the first kernel of the first iteration to the last kernel of the last one.
fn window(timelines: &[Timeline], first: u64, last: u64) -> Option<[Duration; 2]> {
    let all = || timelines.iter().flat_map(|timeline| &timeline.spans);
    let kernels = all().any(|span| span.lane == Lane::Kernels && span.iteration == Some(first));
    let of = |iteration| all().filter(move |s| s.iteration == Some(iteration) && (!kernels || s.lane == Lane::Kernels));
    let [start, end] = [of(first).map(|span| span.start).min()?, of(last).map(|span| span.end).max()?];
    (start < end).then_some([start, end])
}

/// The rows with what falls into the window, and where they end.
fn layout(timelines: &[Timeline], [from, to]: [Duration; 2]) -> (Vec<Row>, f64) {
    let (mut rows, mut top) = (Vec::new(), TOP);
    for (rank, timeline) in timelines.iter().enumerate() {
        for lane in [Lane::Kernels, Lane::Host] {
            let of_lane = || timeline.spans.iter().filter(|span| span.lane == lane);
            if of_lane().next().is_none() && lane == Lane::Host {
                continue; // a rank of its own waits for no one
            }
            let within = of_lane().filter(|span| span.start < to && span.end > from);
            let clipped = within.map(|span| Span { start: span.start.max(from), end: span.end.min(to), ..*span });
            let row = Row { rank, lane, top, spans: clipped.collect() };
            top += row.height() + 2.0;
            rows.push(row);
        }
        top += GAP;
    }
    (rows, top - GAP + 2.0)
}

fn drawing(
    report: &Report,
    timelines: &[Timeline],
    [from, to]: [Duration; 2],
    shown: &[u64],
    rows: &[Row],
    kinds: &Kinds,
    bottom: f64,
) -> Markup {
    let length = (to - from).as_secs_f64();
    let unit = Unit::of(length);
    let scale = Scale::linear([0.0, unit.per_second * length], [LEFT, RIGHT]);
    let x = |at: Duration| scale.at(unit.per_second * at.saturating_sub(from).as_secs_f64());
    let begins = begins(timelines);
    let ends = shown.iter().skip(1).filter_map(|k| begins.get(k)).map(|at| x(*at)).chain([RIGHT]);
    let marks: Vec<(u64, f64, f64)> = shown
        .iter()
        .filter_map(|k| Some((*k, x(*begins.get(k)?))))
        .zip(ends)
        .map(|((k, from), to)| (k, from, to))
        .collect();
    chart(
        [WIDTH, bottom + 38.0],
        "What the ranks do in a few iterations",
        &in_words(report, rows, length),
        html! {
            @for tick in scale.ticks(8) {
                @let x = scale.at(tick);
                (line("grid", [x, TOP], [x, bottom]))
                (text("tick", "middle", [x, bottom + 16.0], &tick_label(tick)))
            }
            (text("label", "middle", [0.5 * (LEFT + RIGHT), bottom + 33.0], &format!("time, {}", unit.name)))
            @for (iteration, from, to) in marks {
                (line("limit", [from, 4.0], [from, bottom]))
                @let label = format!("iteration {iteration}");
                @let label = if to - from > 6.6 * label.len() as f64 { label } else { iteration.to_string() };
                (text("tick", "start", [from + 4.0, 14.0], &label))
            }
            @for row in rows {
                @let label = match row.lane {
                    Lane::Kernels => format!("rank {} kernels", row.rank),
                    Lane::Host => "host".into(),
                };
                (text("tick name", "end", [LEFT - 7.0, row.top + 0.5 * row.height() + 4.0], &label))
                @for span in &row.spans {
                    @let kind = kinds.index(span);
                    @let (left, width) = (x(span.start), (x(span.end) - x(span.start)).max(LEAST));
                    @let [x, shown_width] = [left, width].map(hundredth);
                    rect class=(kinds.class(kind)) x=(x) y=(n(row.top)) width=(shown_width) height=(n(row.height())) {
                        title { (tip(span)) }
                    }
                    @let baseline = row.top + 0.5 * row.height() + 4.0;
                    @if width > CHARACTER * span.name.len() as f64 + 6.0 {
                        (text("key-letter", "middle", [left + 0.5 * width, baseline], span.name))
                    } @else if width > 10.0 {
                        (text("key-letter", "middle", [left + 0.5 * width, baseline], &letter(kind)))
                    }
                }
            }
            (line("axis", [LEFT, TOP], [LEFT, bottom]))
        },
    )
}

/// A coordinate, to a hundredth: spans may be as narrow as a pixel.
fn hundredth(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn tip(span: &Span) -> String {
    let iteration = span.iteration.map_or(String::new(), |iteration| format!(", iteration {iteration}"));
    format!("{}: {}{iteration}", span.name, time(span.duration().as_secs_f64()))
}

fn in_words(report: &Report, rows: &[Row], length: f64) -> String {
    let busy = |row: &Row| row.spans.iter().map(|span| span.duration().as_secs_f64()).sum::<f64>();
    let of_device = |row: &&Row| row.lane == Lane::Kernels;
    let one = |row: &Row| {
        let device = report.ranks.get(row.rank).map_or("", |rank| &rank.info.device);
        format!("Kernels run on rank {} ({device}) for {} of {}. ", row.rank, time(busy(row)), time(length))
    };
    rows.iter().filter(of_device).map(one).collect()
}
