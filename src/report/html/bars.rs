//! Stacked bars of times.

use maud::{Markup, html};

use super::figures::{Unit, tick_label, time};
use super::scale::Scale;
use super::svg::{chart, line, rectangle, text};

/// A bar, in pieces.
pub(in crate::report) struct Bar {
    /// Before it.
    pub(in crate::report) label: String,
    /// Whether it belongs to the one before it.
    pub(in crate::report) joined: bool,
    /// Kinds of pieces, as the legend counts them, with their seconds.
    pub(in crate::report) pieces: Vec<(usize, f64)>,
    /// The seconds that stand behind it.
    pub(in crate::report) total: f64,
}

/// The class of what is left over, which has no letter.
pub(in crate::report) const REST: &str = "overhead";

/// What the pieces stand for: names, and classes of the style sheet.
pub(in crate::report) type Legend<'a> = &'a [(&'a str, &'a str)];

const WIDTH: f64 = 460.0;
const BAR: f64 = 18.0;
/// What a label above its bar takes of the height.
const LINE: f64 = 20.0;
/// The longest labels, in characters, that stand before their bars; longer ones stand above.
const SHORT: usize = 16;
/// A piece that is narrower has no letter.
const LETTER: f64 = 13.0;

/// A key for what a colour alone might not tell.
pub(in crate::report) fn letter(k: usize) -> String {
    char::from_u32(u32::from('a') + k as u32 % 26).map(String::from).unwrap_or_default()
}

/// The names beside their colours and letters.
pub(in crate::report) fn legend(kinds: Legend<'_>) -> Markup {
    html! {
        span.legend {
            @for (k, (name, class)) in kinds.iter().enumerate() {
                span.entry { span class={ "key " (class) } { @if *class != REST { (letter(k)) } } (name) }
            }
        }
    }
}

/// The bars on a common axis, with the total of each behind it.
pub(in crate::report) fn bars(title: &str, description: &str, kinds: Legend<'_>, bars: &[Bar]) -> Markup {
    let sum = |bar: &Bar| bar.pieces.iter().map(|(_, seconds)| shown(*seconds)).sum::<f64>();
    let most = bars.iter().map(sum).fold(0.0, f64::max);
    let unit = Unit::of(most);
    let longest = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let is_above = longest > SHORT;
    let left = if is_above { 2.0 } else { 7.2 * longest as f64 + 10.0 };
    let right = WIDTH - 62.0;
    let scale = Scale::linear([0.0, unit.per_second * most], [left, right]);
    let x = |seconds: f64| if most > 0.0 { scale.at(unit.per_second * seconds) } else { left };
    let mut tops = Vec::new();
    let mut bottom = 0.0;
    for bar in bars {
        bottom += if bar.joined { 2.0 } else { 10.0 } + if is_above { LINE } else { 0.0 };
        tops.push(bottom);
        bottom += BAR;
    }
    bottom += 6.0;
    chart(
        [WIDTH, bottom + 38.0],
        title,
        description,
        html! {
            @if most > 0.0 {
                @for tick in scale.ticks(5) {
                    @let x = x(tick / unit.per_second);
                    (line("grid", [x, 0.0], [x, bottom]))
                    (text("tick", "middle", [x, bottom + 16.0], &tick_label(tick)))
                }
            }
            (text("label", "middle", [0.5 * (left + right), bottom + 33.0], &format!("time, {}", unit.name)))
            @for (bar, y) in bars.iter().zip(tops) {
                @if is_above {
                    (text("label name halo", "start", [left, y - 5.0], &bar.label))
                } @else {
                    (text("tick name", "end", [left - 7.0, y + 13.0], &bar.label))
                }
                @for (kind, from, seconds) in placed(bar) {
                    @let (from, width) = (x(from), x(from + seconds) - x(from));
                    (rectangle(kinds[kind].1, [from, y], [width, BAR]))
                    @if width > LETTER && kinds[kind].1 != REST {
                        (text("key-letter", "middle", [from + 0.5 * width, y + 13.0], &letter(kind)))
                    }
                }
                (text("value", "start", [x(sum(bar)) + 5.0, y + 13.0], &time(bar.total)))
            }
            (line("axis", [left, 0.0], [left, bottom]))
        },
    )
}

/// The pieces that have a length: the kind, where it begins, how long it is.
fn placed(bar: &Bar) -> Vec<(usize, f64, f64)> {
    let mut from = 0.0;
    let mut placed = Vec::new();
    for &(kind, seconds) in &bar.pieces {
        let seconds = shown(seconds);
        if seconds > 0.0 {
            placed.push((kind, from, seconds));
        }
        from += seconds;
    }
    placed
}

/// A time that can have a length.
fn shown(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 }
}
