//! Time over the number of work-groups (Bueno 2013, figures 4.8 to 4.12).

use std::collections::BTreeSet;

use declive::tune::{Curve, Found, KernelFound, Point};
use maud::{Markup, html};

use super::figures::{Unit, tick_label, time};
use super::scale::{Scale, spread};
use super::svg::{chart, line, n, path, text};
use crate::report::units::count;

/// Of a chart, in the units of the style sheet's text.
const SIZE: [f64; 2] = [460.0, 300.0];
const LEFT: f64 = 46.0;
const RIGHT: f64 = SIZE[0] - 6.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = SIZE[1] - 46.0;
/// Between the labels of the lines.
const GAP: f64 = 14.0;
/// What the labels take of the width.
const LABELS: f64 = 52.0;
/// How many colours the style sheet has for lines.
const COLOURS: usize = 8;

/// The charts of all devices.
pub(super) fn section(found: &[Found]) -> Markup {
    html! {
        p {
            "Median time of a launch over the number of work-groups for each compute unit: a line for each size of "
            "groups, labelled where it begins. The strong line is the chosen size, with its quartiles as a band; its disc "
            "is the chosen number of groups. The diamond is where a search ends that adds one group a unit as long as the "
            "time falls: of the largest size, or of one work-item where that is the default. Row blocks are those chosen, or "
            "where these were not measured, those of the fastest."
        }
        @for one in found {
            h3 { (one.device.name) }
            @let colours = sizes(one);
            @let (drawn, rest): (Vec<_>, Vec<_>) = one.kernels.iter().partition(|k| !lines(k).is_empty());
            div.charts { @for kernel in drawn { (figure(kernel, &one.device.name, &colours)) } }
            @if !rest.is_empty() {
                @let names: Vec<_> = rest.iter().map(|kernel| &*kernel.kernel).collect();
                p.small { "No curve was measured for " (names.join(", ")) "." }
            }
        }
    }
}

/// All sizes of groups of a device, so that a size has the same colour in all its charts.
fn sizes(found: &Found) -> BTreeSet<usize> {
    found.kernels.iter().flat_map(|kernel| kernel.curves.iter().map(|curve| curve.group_size)).collect()
}

/// A curve with the points that can be drawn.
#[derive(Debug, Clone)]
struct Line {
    group_size: usize,
    points: Vec<Point>,
}

impl Line {
    fn new(curve: &Curve) -> Self {
        let drawable = |p: &&Point| p.groups_per_unit > 0 && p.timing.is_plausible();
        Self { group_size: curve.group_size, points: curve.points.iter().filter(drawable).copied().collect() }
    }
}

/// A line for each size of groups, by rising size.
fn lines(kernel: &KernelFound) -> Vec<Line> {
    let lines = kernel.curves_by_size().into_iter().map(Line::new);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn figure(kernel: &KernelFound, device: &str, colours: &BTreeSet<usize>) -> Markup {
    let lines = lines(kernel);
    html! {
        figure {
            figcaption { b { (kernel.kernel) } }
            (drawing(kernel, &lines, device, colours))
        }
    }
}

/// The times that must have room: all medians, and the quartiles of the chosen line.
fn range(lines: &[Line], strong: usize) -> [f64; 2] {
    let medians = lines.iter().flat_map(|line| &line.points).map(|point| point.timing.median);
    let band =
        lines.iter().filter(|line| line.group_size == strong).flat_map(|line| line.points.iter().flat_map(quartiles));
    medians.chain(band).fold([f64::INFINITY, 0.0], |[lo, hi], time| [lo.min(time), hi.max(time)])
}

/// The quartiles, or the median where they can't be drawn.
fn quartiles(point: &Point) -> [f64; 2] {
    let Point { timing, .. } = point;
    [timing.low, timing.high].map(|time| if (1e-12..1e9).contains(&time) { time } else { timing.median })
}

/// Logarithmic if times differ by a factor above 5, from zero on if by more than 2; room for a label below the least.
fn time_scale([lo, hi]: [f64; 2]) -> Scale {
    let places = [BOTTOM, TOP];
    if hi > 5.0 * lo {
        Scale::log([lo, hi], places).padded(30.0, 6.0)
    } else if hi > 2.0 * lo {
        Scale::linear([0.0, hi], places).padded(0.0, 6.0)
    } else {
        // noise alone should not look like mountains
        let margin = (0.05 * hi - 0.5 * (hi - lo)).max(0.0);
        Scale::linear([lo - margin, hi + margin], places).padded(30.0, 6.0)
    }
}

/// Logarithmic if there is room for many groups.
fn groups_scale(lines: &[Line]) -> (Scale, Vec<f64>) {
    let groups = || lines.iter().flat_map(|line| &line.points).map(|point| point.groups_per_unit as f64);
    let domain = [groups().fold(f64::INFINITY, f64::min), groups().fold(1.0, f64::max)];
    let places = [LEFT, RIGHT];
    if domain[1] >= 12.0 * domain[0] {
        let scale = Scale::log(domain, places).padded(LABELS, 12.0);
        (scale, scale.powers_of_two())
    } else {
        let scale = Scale::linear(domain, places).padded(LABELS, 12.0);
        let whole = |tick: &f64| tick.fract() == 0.0 && (domain[0]..=domain[1]).contains(tick);
        let every = (domain[0] as usize..=domain[1] as usize).map(|tick| tick as f64);
        let ticks = if every.clone().count() <= 12 { every.collect() } else { scale.ticks(8) };
        (scale, ticks.into_iter().filter(whole).collect())
    }
}

fn drawing(kernel: &KernelFound, lines: &[Line], device: &str, colours: &BTreeSet<usize>) -> Markup {
    let strong = kernel.chosen.launch.group_size;
    let [lo, hi] = range(lines, strong);
    let unit = Unit::of((lo * hi).sqrt());
    let (times, (groups, group_ticks)) = (time_scale([lo, hi].map(|t| unit.per_second * t)), groups_scale(lines));
    let x = |point: &Point| groups.at(point.groups_per_unit as f64);
    let y = |seconds: f64| times.at(unit.per_second * seconds);
    let place = |point: &Point| [x(point), y(point.timing.median)];
    let class = |line: &Line| {
        let colour = colours.iter().position(|&size| size == line.group_size).unwrap_or(0) % COLOURS;
        format!("c{colour}{}", if line.group_size == strong { " strong" } else { "" })
    };
    // the chosen line comes last, over the others
    let (front, back): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.group_size == strong);
    let is_drawn = |point: &Point| point.groups_per_unit > 0;
    let chosen = kernel.chosen_on_curve().filter(is_drawn);
    let title = format!("{} on {device}", kernel.kernel);
    chart(
        SIZE,
        &title,
        &description(kernel, lines),
        html! {
            @for tick in times.ticks(8) {
                @let y = times.at(tick);
                (line("grid", [LEFT, y], [RIGHT, y]))
                (text("tick", "end", [LEFT - 6.0, y + 4.0], &tick_label(tick)))
            }
            @for tick in group_ticks {
                @let x = groups.at(tick);
                (line("axis", [x, BOTTOM], [x, BOTTOM + 4.0]))
                (text("tick", "middle", [x, BOTTOM + 18.0], &count(tick as u64)))
            }
            (line("axis", [LEFT, BOTTOM], [RIGHT, BOTTOM]))
            (text("label", "start", [0.0, 14.0], &format!("time, {}", unit.name)))
            (text("label", "start", [LEFT + 32.0, 14.0], "group size"))
            (text("label", "middle", [0.5 * (LEFT + RIGHT), SIZE[1] - 6.0], "work-groups a compute unit"))
            @for one in &front {
                @let low = one.points.iter().map(|point| [x(point), y(quartiles(point)[0])]);
                @let high = one.points.iter().rev().map(|point| [x(point), y(quartiles(point)[1])]);
                path class={ "band " (class(one)) } d={ (path(low.chain(high))) "Z" } {}
            }
            @for one in back.iter().chain(&front) {
                @if let [point] = &*one.points {
                    circle class={ "dot " (class(one)) } cx=(n(x(point))) cy=(n(place(point)[1])) r="2.5" {}
                } @else {
                    path class={ "line " (class(one)) } d=(path(one.points.iter().map(place))) {}
                }
            }
            (labels(lines, &place, &class))
            @if let Some(point) = &chosen {
                @let [x, y] = place(point);
                circle.chosen cx=(n(x)) cy=(n(y)) r="4.5" {}
                (mark([x, y + 20.0], &format!("chosen: {}", count(point.groups_per_unit))))
            }
        },
    )
}

/// The sizes of groups beside the beginnings of the lines, where they lie far apart; each is tied to its line.
fn labels(lines: &[Line], place: &dyn Fn(&Point) -> [f64; 2], class: &dyn Fn(&Line) -> String) -> Markup {
    let mut begins: Vec<(&Line, [f64; 2])> = lines.iter().map(|line| (line, place(&line.points[0]))).collect();
    begins.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
    let mut places: Vec<f64> = begins.iter().map(|(_, begin)| begin[1]).collect();
    spread(&mut places, GAP, [TOP, BOTTOM - 6.0]);
    let end = LEFT + LABELS - 14.0;
    html! {
        @for ((one, [x, y]), label) in begins.iter().zip(places) {
            @let tie = [[end + 3.0, label], [end + 6.0, label], [*x - 2.0, *y], [*x, *y]];
            path class={ "tie " (class(one)) } d=(path(tie)) {}
            (text(&format!("tick halo {}", class(one)), "end", [end, label + 4.0], &one.group_size.to_string()))
        }
    }
}

/// A label near a point, kept within the chart.
fn mark([x, y]: [f64; 2], words: &str) -> Markup {
    let reach = 4.6 * words.len() as f64;
    let anchor = if x < LEFT + reach {
        "start"
    } else if x > RIGHT - reach {
        "end"
    } else {
        "middle"
    };
    let aside = match anchor {
        "start" => -6.0,
        "end" => 6.0,
        _ => 0.0,
    };
    text("mark", anchor, [x + aside, y], words)
}

fn description(kernel: &KernelFound, lines: &[Line]) -> String {
    let sizes: Vec<String> = lines.iter().map(|line| line.group_size.to_string()).collect();
    let groups = || lines.iter().flat_map(|line| &line.points).map(|point| point.groups_per_unit);
    let launch = kernel.chosen.launch;
    format!(
        "Time of a launch over {} to {} work-groups a compute unit, for groups of {} work-items. Chosen: {} groups a \
         unit of {} work-items, {}.",
        groups().min().unwrap_or(0),
        groups().max().unwrap_or(0),
        sizes.join(", "),
        launch.groups_per_unit,
        launch.group_size,
        time(kernel.chosen.timing.median),
    )
}
