//! The levels of a multigrid preconditioner: how large they are, and how long each took to make.

use declive::solve::{Hierarchy, LevelInfo};
use maud::{Markup, html};

use super::super::html::bars::{Bar, Legend, bars, legend, letter};
use super::super::html::figures::{factor, fine_percent, three, tick_label, time};
use super::super::html::scale::Scale;
use super::super::html::svg::{chart, line, rectangle, text};
use super::super::html::table::{Column, table};
use super::super::units::count;

const WIDTH: f64 = 460.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = WIDTH - 92.0;
const BAR: f64 = 14.0;
/// From a level to the next.
const STEP: f64 = 2.0 * BAR + 10.0;

const SIZES: Legend<'_> = &[("rows", "f0"), ("entries", "f1")];
const TIMES: Legend<'_> = &[("set-up", "f2")];

/// The figures and their table.
pub(super) fn section(hierarchy: &Hierarchy) -> Markup {
    let Hierarchy { levels, operator_complexity, grid_complexity, .. } = hierarchy;
    html! {
        p {
            "All levels together have " b { (factor(*operator_complexity)) } " times the entries and "
            b { (factor(*grid_complexity)) } " times the rows of the first, which is A. They took "
            b { (time(hierarchy.time.as_secs_f64())) } " to make."
        }
        figure.broad {
            figcaption { b { "Sizes of the levels" } (legend(SIZES)) }
            (sizes(levels))
        }
        @if levels.iter().any(|level| !level.time.is_zero()) {
            figure.broad {
                figcaption { b { "Set-up of the levels" } (legend(TIMES)) }
                (times(levels))
            }
        }
        (numbers(levels))
    }
}

fn names(levels: &[LevelInfo]) -> Vec<String> {
    (0..levels.len()).map(|k| format!("level {k}")).collect()
}

/// Two bars for each level, on a logarithmic axis.
fn sizes(levels: &[LevelInfo]) -> Markup {
    let most = levels.iter().map(|level| level.nnz.max(level.rows)).max().unwrap_or(1).max(10);
    let scale = Scale::log([1.0, most as f64], [LEFT, RIGHT]);
    let bottom = STEP * levels.len() as f64 + 6.0;
    let words = |(k, level): (usize, &LevelInfo)| {
        format!("level {k}: {} rows, {} entries. ", count(level.rows), count(level.nnz))
    };
    let in_words: String = levels.iter().enumerate().map(words).collect();
    chart(
        [WIDTH, bottom + 38.0],
        "Sizes of the levels",
        in_words.trim_end(),
        html! {
            @for tick in scale.ticks(6) {
                @let x = scale.at(tick);
                (line("grid", [x, 0.0], [x, bottom]))
                (text("tick", "middle", [x, bottom + 16.0], &tick_label(tick)))
            }
            (text("label", "middle", [0.5 * (LEFT + RIGHT), bottom + 33.0], "rows and entries"))
            @for (k, (level, name)) in levels.iter().zip(names(levels)).enumerate() {
                @let top = STEP * k as f64 + 8.0;
                (text("tick name", "end", [LEFT - 7.0, top + BAR + 4.0], &name))
                @for (kind, size) in [level.rows, level.nnz].into_iter().enumerate() {
                    @let (y, width) = (top + BAR * kind as f64, scale.at(size.max(1) as f64) - LEFT);
                    (rectangle(SIZES[kind].1, [LEFT, y], [width, BAR]))
                    (text("key-letter", "middle", [LEFT + 8.0, y + 11.0], &letter(kind)))
                    (text("value", "start", [LEFT + width + 5.0, y + 11.0], &count(size)))
                }
            }
            (line("axis", [LEFT, 0.0], [LEFT, bottom]))
        },
    )
}

fn times(levels: &[LevelInfo]) -> Markup {
    let seconds = |level: &LevelInfo| level.time.as_secs_f64();
    let all: Vec<Bar> = levels
        .iter()
        .zip(names(levels))
        .map(|(level, label)| Bar { label, joined: false, pieces: vec![(0, seconds(level))], total: seconds(level) })
        .collect();
    let words: String = all.iter().map(|bar| format!("{} {}, ", bar.label, time(bar.total))).collect();
    bars("Set-up of the levels", words.trim_end_matches(", "), TIMES, &all)
}

fn numbers(levels: &[LevelInfo]) -> Markup {
    let of = |cell: &dyn Fn(&LevelInfo) -> String| levels.iter().map(cell).collect::<Vec<_>>();
    let (rows, entries) = levels.first().map_or((1, 1), |first| (first.rows.max(1), first.nnz.max(1)));
    let part = |size: usize, whole: usize| fine_percent(size as f64 / whole as f64);
    table(
        "Levels",
        "level",
        &names(levels),
        &[
            Column::new("rows", of(&|level| count(level.rows))),
            Column::new("of\u{a0}A", of(&|level| part(level.rows, rows))),
            Column::new("entries", of(&|level| count(level.nnz))),
            Column::new("of\u{a0}A", of(&|level| part(level.nnz, entries))),
            Column::new("entries a row", of(&|level| three(level.nnz as f64 / level.rows.max(1) as f64))),
            Column::new("set-up", of(&|level| time(level.time.as_secs_f64()))),
        ],
    )
}
