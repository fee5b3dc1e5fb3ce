//! What the threads of the command did, on one time axis.

use maud::{Markup, html};

use super::super::distinct;
use super::super::html::bars::{legend, letter};
use super::super::html::figures::{Unit, tick_label, time};
use super::super::html::scale::Scale;
use super::super::html::svg::{chart, line, rectangle, text};
use super::super::html::table::scroll;
use super::super::solve::{Report, Stage};
use super::breakdown::PHASES;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 10.0;
const ROW: f64 = 18.0;
const STEP: f64 = ROW + 4.0;
/// Of the shortest stage.
const LEAST: f64 = 1.0;
/// A stage that is narrower has no letter.
const LETTER: f64 = 13.0;
/// The classes of stages that are no part of the times of the command.
const OTHERS: [&str; 6] = ["h0", "h1", "h2", "h3", "h4", "h5"];

/// The chart; nothing if nothing was recorded.
pub(super) fn figure(report: &Report) -> Markup {
    let stages = &report.timeline;
    if stages.is_empty() {
        return html! {};
    }
    let names = distinct(stages.iter().map(|stage| stage.stage));
    let mut others = OTHERS.iter().cycle();
    let mut class = |name: &str| {
        let phase = PHASES.iter().find(|(phase, _)| *phase == name);
        phase.map_or_else(|| others.next().copied().unwrap_or_default(), |(_, class)| *class)
    };
    let kinds: Vec<(&str, &str)> = names.into_iter().map(|name| (name, class(name))).collect();
    html! {
        figure.full.gantt {
            figcaption {
                b { "What ran beside what" }
                (legend(&kinds))
            }
            (scroll("Stages of the command", drawing(stages, &kinds)))
        }
    }
}

/// A row for each thread.
fn drawing(stages: &[Stage], kinds: &[(&str, &str)]) -> Markup {
    let lanes = distinct(stages.iter().map(|stage| &stage.lane));
    let length = stages.iter().map(Stage::end).fold(0.0, f64::max);
    let (unit, bottom) = (Unit::of(length), STEP * lanes.len() as f64);
    let scale = Scale::linear([0.0, unit.per_second * length], [LEFT, RIGHT]);
    let x = |seconds: f64| scale.at(unit.per_second * seconds);
    let in_words: String = stages.iter().map(|stage| format!("{}: {}. ", stage.lane, tip(stage))).collect();
    chart(
        [WIDTH, bottom + 38.0],
        "What ran beside what",
        &in_words,
        html! {
            @for tick in scale.ticks(8) {
                (line("grid", [scale.at(tick), 0.0], [scale.at(tick), bottom]))
                (text("tick", "middle", [scale.at(tick), bottom + 16.0], &tick_label(tick)))
            }
            (text("label", "middle", [0.5 * (LEFT + RIGHT), bottom + 33.0], &format!("time, {}", unit.name)))
            @for (top, lane) in lanes.iter().enumerate().map(|(k, lane)| (STEP * k as f64, lane)) {
                (text("tick name", "end", [LEFT - 7.0, top + 13.0], lane))
                @for stage in stages.iter().filter(|stage| stage.lane == **lane) {
                    @let kind = kinds.iter().position(|(name, _)| *name == stage.stage).unwrap_or(0);
                    @let (left, width) = (x(stage.start), (x(stage.end()) - x(stage.start)).max(LEAST));
                    g { title { (tip(stage)) } (rectangle(kinds[kind].1, [left, top], [width, ROW])) }
                    @if width > LETTER {
                        (text("key-letter", "middle", [left + 0.5 * width, top + 13.0], &letter(kind)))
                    }
                }
            }
            (line("axis", [LEFT, 0.0], [LEFT, bottom]))
        },
    )
}

fn tip(stage: &Stage) -> String {
    format!("{} for {}, from {} on", stage.stage, time(stage.seconds), time(stage.start))
}
