//! A simulation of fields as one HTML file: pictures of the fields, what probes saw, and how fast it went.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

use super::fdtd::{Drawn, Report, seconds};
use super::html::figures::tick_label;
use super::html::scale::Scale;
use super::html::svg::{chart, line, path, text};
use super::html::table::facts;
use super::html::{self, Page, Section};
use super::units::{count, scientific};

const SIZE: [f64; 2] = [620.0, 260.0];
const LEFT: f64 = 70.0;
const TOP: f64 = 16.0;
const RIGHT: f64 = SIZE[0] - 14.0;
const BOTTOM: f64 = SIZE[1] - 44.0;
/// How many colours the style sheet has for lines.
const COLOURS: usize = 8;
/// Pixels across that lines are drawn for.
const COLUMNS: usize = 600;

/// The page.
pub(crate) fn page(report: &Report, pictures: &[Drawn], seen: &[Vec<f64>]) -> String {
    let mut sections = Vec::new();
    if !pictures.is_empty() {
        sections.push(Section::new("fields", "Fields", fields(pictures)));
    }
    if !report.probes.is_empty() {
        sections.push(Section::new("probes", "Probes", probes(report, seen)));
    }
    if !report.energy.is_empty() {
        sections.push(Section::new("energy", "Energy", energy(report)));
    }
    sections.push(Section::new("problem", "Problem and devices", problem(report)));
    let title = report.title.as_deref().unwrap_or("Electromagnetic fields");
    let summary = html! {
        p.summary { (report.outcome()) }
        @if let Some(rate) = report.rate() { p.summary { (rate) "." } }
    };
    Page { title, date: &html::now(), summary, preface: html! {}, sections }.into_string()
}

fn fields(pictures: &[Drawn]) -> Markup {
    html! {
        p.small { "Red is above 0, blue below; bodies are grey, conductors dark. x goes to the right." }
        div.charts {
            @for picture in pictures {
                figure {
                    figcaption {
                        b { (picture.component) " after " (seconds(picture.time)) }
                        span { "step " (count(picture.step)) "; the strongest colours are ±" (scientific(picture.range)) }
                    }
                    img style="display: block; width: 100%; height: auto; image-rendering: pixelated"
                        alt={ (picture.component) " after step " (picture.step) }
                        src={ "data:image/png;base64," (Base64Display::new(&picture.png, &STANDARD).to_string()) };
                }
            }
        }
    }
}

/// Of each run of values the least and the largest, in the order in which they come, where there are more than can be seen.
fn thinned(values: &[f64]) -> Vec<(usize, f64)> {
    let each = values.len().div_ceil(COLUMNS).max(1);
    let mut all = Vec::new();
    for (k, run) in values.chunks(each).enumerate() {
        let numbered = || run.iter().enumerate().map(|(i, &v)| (k * each + i, v)).filter(|(_, v)| v.is_finite());
        let least = numbered().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = numbered().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut both: Vec<_> = least.into_iter().chain(most).collect();
        both.sort_by_key(|(at, _)| *at);
        both.dedup();
        all.extend(both);
    }
    all
}

fn probes(report: &Report, seen: &[Vec<f64>]) -> Markup {
    html! {
        @for (k, (probe, values)) in report.probes.iter().zip(seen).enumerate() {
            @let points: Vec<[f64; 2]> = thinned(values).into_iter().map(|(at, v)| [at as f64 + 1.0, v]).collect();
            figure.broad {
                figcaption {
                    b { (probe.name) }
                    span { (probe.component) " in cell " (format!("{:?}", probe.at)) "; largest " (scientific(probe.largest)) }
                }
                (drawing(&format!("{} over the steps", probe.component), &points, false, k % COLOURS))
            }
        }
    }
}

fn energy(report: &Report) -> Markup {
    let points: Vec<[f64; 2]> = report.energy.iter().map(|e| [e.step as f64, e.energy]).collect();
    html! {
        figure.broad {
            figcaption {
                b { "Energy of the fields" }
                span { "Σ (½ ε E² + ½ μ Hⁿ Hⁿ⁺¹) over all cells, times a cell's volume" }
            }
            (drawing("energy over the steps", &points, true, 2))
        }
    }
}

/// Points joined by a line, over the steps.
fn drawing(title: &str, points: &[[f64; 2]], from_zero: bool, colour: usize) -> Markup {
    let last = points.last().map_or(1.0, |point| point[0]);
    let values = || points.iter().map(|point| point[1]);
    let most = values().fold(0.0, |most: f64, v| most.max(v.abs()));
    let most = if most > 0.0 { most } else { 1.0 };
    let across = Scale::linear([0.0, last], [LEFT, RIGHT]);
    let up = Scale::linear([if from_zero { 0.0 } else { -most }, most], [BOTTOM, TOP]);
    chart(
        SIZE,
        title,
        &format!("{title}, which reach {}", scientific(most)),
        html! {
            @for tick in up.ticks(5) {
                @let y = up.at(tick);
                (line("grid", [LEFT, y], [RIGHT, y]))
                (text("tick", "end", [LEFT - 6.0, y + 4.0], &scientific(if tick.abs() < 1e-9 * most { 0.0 } else { tick })))
            }
            @for tick in across.ticks(6) {
                @let x = across.at(tick);
                (line("axis", [x, BOTTOM], [x, BOTTOM + 4.0]))
                (text("tick", "middle", [x, BOTTOM + 18.0], &tick_label(tick)))
            }
            (line("axis", [LEFT, BOTTOM], [RIGHT, BOTTOM]))
            (text("label", "middle", [0.5 * (LEFT + RIGHT), SIZE[1] - 6.0], "step"))
            path class=(format!("line solid c{colour}")) d=(path(points.iter().map(|&[x, y]| [across.at(x), up.at(y)]))) {}
        },
    )
}

fn problem(report: &Report) -> Markup {
    let mut rows: Vec<(&str, Vec<String>)> =
        report.problem().into_iter().map(|(name, value)| (name, vec![value])).collect();
    rows.push(("devices", report.rank_lines()));
    rows.push(("precision", vec![report.options.precision.to_string()]));
    rows.extend(report.rate().map(|rate| ("rate", vec![rate])));
    rows.push((
        "time",
        vec![format!("{:.4} s in steps, {:.4} s in all", report.seconds.stepping, report.seconds.total)],
    ));
    facts("The problem and the devices", &[], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_many_values() {
        let values: Vec<f64> = (0..100_000).map(|k| if k == 777 { 5.0 } else { f64::from(k % 7) / 7.0 }).collect();
        let thin = thinned(&values);
        assert!(thin.len() <= 2 * COLUMNS + 2 && thin.contains(&(777, 5.0)));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(thinned(&[1.0, 2.0]), [(0, 1.0), (1, 2.0)]);
    }
}
