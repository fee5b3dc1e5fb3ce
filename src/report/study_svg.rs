//! A study as a picture: an SVG file of its own, with a panel for each table. It has its own ground, so that it can be read on any page.

use declive::experiments::studies::{Panel, Series};
use maud::{Markup, PreEscaped, html};

use super::html::clean;
use super::html::figures::tick_label;
use super::html::scale::{Scale, spread};
use super::html::svg::{line, n, path, rectangle, text};
use super::study::Report;
use super::units::count;

/// Of a panel, and of the space around panels.
const SIZE: [f64; 2] = [460.0, 320.0];
const MARGIN: f64 = 20.0;
/// Of the heads of the picture and of a device.
const HEAD: f64 = 30.0;
/// Of a panel: where values and sizes are, without the rows of its legend.
const LEFT: f64 = 46.0;
const RIGHT: f64 = SIZE[0] - 10.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = SIZE[1] - 46.0;
/// Between the labels of lines, and between rows of a legend.
const GAP: f64 = 15.0;
/// The width of a letter, about, and of the space around a name.
const LETTER: f64 = 7.0;
const AROUND: f64 = 14.0;
/// The key of a line in a legend.
const KEY: f64 = 18.0;
/// How many colours there are for lines that are not the host's, and the host's.
const COLOURS: usize = 7;
const STYLE: &str = include_str!("study.css");

/// The file.
pub(crate) fn picture(report: &Report) -> String {
    drawn(report.title, &report.caption(), &report.found.panels)
}

/// Panels, those of a device beside each other, below a title; the caption is for readers of the screen.
pub(crate) fn drawn(title: &str, caption: &str, panels: &[Panel]) -> String {
    let by_device = || panels.chunk_by(|one, other| one.device == other.device);
    let across = by_device().map(<[Panel]>::len).max().unwrap_or(1).min(2);
    let mut height = MARGIN + HEAD;
    let mut content = Vec::new();
    for panels in by_device() {
        content.push(text("name", "start", [MARGIN, height + 4.0], &panels[0].device));
        height += 14.0;
        // all panels of a device alike
        let all: Option<Vec<_>> = panels.iter().map(Place::with_names).collect();
        let mut named = all.into_iter().flatten();
        for row in panels.chunks(across) {
            for (column, panel) in row.iter().enumerate() {
                let named = named.next();
                let left = MARGIN + column as f64 * (SIZE[0] + MARGIN);
                content.push(html! {
                    g transform={ "translate(" (n(left)) " " (n(height)) ")" } { (drawing(panel, named)) }
                });
            }
            height += SIZE[1] + MARGIN;
        }
        height += HEAD - MARGIN;
    }
    let width = MARGIN + across as f64 * (SIZE[0] + MARGIN);
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(n(width)) height=(n(height))
            viewBox={ "0 0 " (n(width)) " " (n(height)) } role="img" {
            title { (caption) }
            style { (PreEscaped(STYLE)) }
            (rectangle("back", [0.0, 0.0], [width, height]))
            (text("title", "start", [MARGIN, MARGIN + 6.0], title))
            @for part in content { (part) }
        }
    };
    let mut picture = picture.into_string() + "\n";
    clean::text(&mut picture);
    picture
}

/// A line: its series, its class, and its points.
struct Line<'a> {
    series: &'a Series,
    class: String,
    points: Vec<[f64; 2]>,
}

/// Where a panel has its lines.
struct Place<'a> {
    across: Scale,
    up: Scale,
    /// Where values end, in front of names.
    right: f64,
    lines: Vec<Line<'a>>,
}

impl<'a> Place<'a> {
    /// Lines below so much of a legend, and in front of so much of names.
    fn new(panel: &'a Panel, legend: f64, names: f64) -> Self {
        let values = panel.series.iter().flat_map(|series| &series.values).filter_map(drawable);
        let range = rounded(values.fold([f64::INFINITY, 0.0], |[lo, hi], value| [lo.min(value), hi.max(value)]));
        let sizes = [panel.at.first(), panel.at.last()].map(|at| at.map_or(1.0, |&at| at as f64));
        let right = RIGHT - names;
        let across = Scale::log(sizes, [LEFT + 8.0, right - 8.0]);
        let up = Scale::log(range, [BOTTOM, TOP + legend]);
        Self { across, up, right, lines: lines(panel, across, up) }
    }

    /// With names behind the ends of lines, and where these are, if they have room there.
    fn with_names(panel: &'a Panel) -> Option<(Self, Vec<(usize, f64)>)> {
        let names = panel.series.iter().map(|series| width(&series.name)).fold(0.0, f64::max);
        let place = Self::new(panel, 0.0, names);
        let ends = ends(&place.lines, place.across.at(*panel.at.last()? as f64))?;
        Some((place, ends))
    }
}

/// A panel, with names behind the ends of its lines, or with a legend.
fn drawing(panel: &Panel, named: Option<(Place<'_>, Vec<(usize, f64)>)>) -> Markup {
    let is_named = named.is_some();
    let legend = if is_named { Vec::new() } else { legend(&panel.series) };
    let rows = legend.last().map_or(0.0, |[_, y]| y + GAP + 8.0);
    let (place, ends) = named.unwrap_or_else(|| (Place::new(panel, rows, 0.0), Vec::new()));
    let Place { across, up, right, lines } = place;
    html! {
        (text("name", "start", [0.0, 14.0], &panel.title))
        (text("label", "start", [0.0, 32.0], panel.y))
        @for tick in up.ticks(10) {
            @let y = up.at(tick);
            (line("grid", [LEFT, y], [right, y]))
            (text("tick", "end", [LEFT - 6.0, y + 4.0], &tick_label(tick)))
        }
        @for (x, label) in ticks(&panel.at, across) {
            (line("axis", [x, BOTTOM], [x, BOTTOM + 4.0]))
            @if let Some(label) = label { (text("tick", "middle", [x, BOTTOM + 18.0], &label)) }
        }
        (line("axis", [LEFT, BOTTOM], [right, BOTTOM]))
        (text("label", "middle", [0.5 * (LEFT + right), SIZE[1] - 8.0], panel.x))
        @for one in &lines {
            path class={ "line " (one.class) } d=(path(one.points.iter().copied())) {}
            @for [x, y] in &one.points { circle class={ "dot " (one.class) } cx=(n(*x)) cy=(n(*y)) r="2.6" {} }
        }
        @for (at, y) in ends {
            (text("label", "start", [right + 4.0, y + 4.0], &lines[at].series.name))
        }
        @for (&[x, row], one) in legend.iter().zip(&lines) {
            @let y = TOP + row + 4.0;
            (line(&format!("line {}", one.class), [x, y], [x + KEY, y]))
            (text("label", "start", [x + KEY + 4.0, y + 4.0], &one.series.name))
        }
    }
}

/// What has a logarithm.
fn drawable(value: &Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}

fn lines<'a>(panel: &'a Panel, across: Scale, up: Scale) -> Vec<Line<'a>> {
    let mut number = 0;
    let line = |series: &'a Series| {
        let class = if series.is_host { format!("c{COLOURS} dashed") } else { colour(&mut number) };
        let points = panel
            .at
            .iter()
            .zip(&series.values)
            .filter_map(|(&at, value)| Some([across.at(at as f64), up.at(drawable(value)?)]));
        Line { series, class, points: points.collect() }
    };
    panel.series.iter().map(line).collect()
}

/// The next colour; dashed once they come again.
fn colour(number: &mut usize) -> String {
    let dashes = if *number >= COLOURS { " dashed" } else { "" };
    let colour = format!("c{}{dashes}", *number % COLOURS);
    *number += 1;
    colour
}

/// The least and the largest of round values around some.
fn rounded([lo, hi]: [f64; 2]) -> [f64; 2] {
    const ROUND: [f64; 6] = [1.0, 2.0, 3.0, 5.0, 7.0, 10.0];
    if !(lo > 0.0 && hi >= lo && hi.is_finite()) {
        return [1.0, 10.0];
    }
    let decade = |value: f64| 10f64.powf(value.log10().floor());
    let below = ROUND.iter().rev().map(|r| r * decade(lo)).find(|round| *round <= lo * (1.0 + 1e-9));
    let above = ROUND.iter().map(|r| r * decade(hi)).find(|round| *round >= hi * (1.0 + 1e-9));
    [below.unwrap_or(lo), above.unwrap_or(hi)]
}

/// A tick for each size, and its label where that has room behind the one before.
fn ticks(at: &[usize], across: Scale) -> Vec<(f64, Option<String>)> {
    let mut free = f64::NEG_INFINITY;
    let tick = |&at: &usize| {
        let (x, label) = (across.at(at as f64), count(at));
        let half = 0.5 * LETTER * label.len() as f64;
        let has_room = x - half >= free;
        if has_room {
            free = x + half + 6.0;
        }
        (x, has_room.then_some(label))
    };
    at.iter().map(tick).collect()
}

/// What a name takes behind a line.
fn width(name: &str) -> f64 {
    LETTER * name.chars().count() as f64 + AROUND
}

/// Where the names of lines are behind their ends, if all lines end there, and names have room without going far.
fn ends(lines: &[Line<'_>], end: f64) -> Option<Vec<(usize, f64)>> {
    let ends = lines.iter().enumerate().map(|(k, one)| Some((k, *one.points.last()?)));
    let mut ends = ends.collect::<Option<Vec<_>>>()?;
    ends.sort_by(|(_, a), (_, b)| a[1].total_cmp(&b[1]));
    let mut places: Vec<f64> = ends.iter().map(|(_, [_, y])| *y).collect();
    spread(&mut places, GAP, [TOP, BOTTOM]);
    let is_near = ends.iter().zip(&places).all(|((_, [x, y]), place)| (x - end).abs() < 0.1 && (y - place).abs() < 5.0);
    is_near.then(|| ends.iter().zip(places).map(|(&(k, _), place)| (k, place)).collect())
}

/// Where the entries of a legend begin, in rows.
fn legend(series: &[Series]) -> Vec<[f64; 2]> {
    let (mut x, mut y) = (0.0, 0.0);
    let entry = |one: &Series| {
        let wide = KEY + width(&one.name);
        if x > 0.0 && x + wide > RIGHT {
            (x, y) = (0.0, y + GAP);
        }
        let place = [x, y];
        x += wide;
        place
    };
    series.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::super::study::tests::{report, series};
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn round_values_are_around_all() {
        assert_eq!(rounded([620.0, 951.0]), [500.0, 1000.0]);
        assert_eq!(rounded([0.02, 3.0]).map(|v| (1e6 * v).round()), [2e4, 5e6]);
        assert_eq!([rounded([4.0, 4.0]), rounded([f64::INFINITY, 0.0])], [[3.0, 5.0], [1.0, 10.0]]);
    }

    #[test]
    fn sizes_are_ticks() {
        let across = Scale::log([100.0, 10_000.0], [0.0, 100.0]);
        let labels: Vec<_> = ticks(&[100, 1000, 1100, 10_000], across);
        let [first, second, third, last] = &labels[..] else { panic!("{labels:?}") };
        assert_eq!((first, last), (&(0.0, Some("100".into())), &(100.0, Some("10,000".into()))));
        assert!((second.0 - 50.0).abs() < 1e-9 && second.1.is_some() && third.1.is_none());
    }

    #[test]
    fn points_by_hand() {
        let report = report(&[1, 10, 100], vec![series("a", &some(&[2.0, 20.0, 190.0]), &[])]);
        let (across, up) = (Scale::log([1.0, 100.0], [0.0, 2.0]), Scale::log([1.0, 1000.0], [3.0, 0.0]));
        let lines = lines(&report.found.panels[0], across, up);
        let expected = [[0.0, 3.0 - 2f64.log10()], [1.0, 3.0 - 20f64.log10()], [2.0, 3.0 - 190f64.log10()]];
        let near = |[a, b]: [f64; 2], [c, d]: [f64; 2]| (a - c).abs() < 1e-9 && (b - d).abs() < 1e-9;
        assert!(lines[0].points.iter().zip(expected).all(|(&a, b)| near(a, b)), "{:?}", lines[0].points);
        assert_eq!((lines[0].points.len(), &*lines[0].class), (3, "c0"));
    }

    #[test]
    fn names_are_at_the_ends_where_they_have_room() {
        let far =
            report(&[1, 2], vec![series("far <a>", &some(&[1.0, 90.0]), &[]), series("host", &some(&[2.0, 3.0]), &[])]);
        let near = report(&[1, 2], vec![series("b", &some(&[1.0, 3.1]), &[]), series("host", &some(&[2.0, 3.0]), &[])]);
        let ended =
            report(&[1, 2], vec![series("c", &[Some(1.0), None], &[]), series("host", &some(&[2.0, 30.0]), &[])]);
        for (report, keys) in [(far, 0), (near, 2), (ended, 2)] {
            let svg = picture(&report);
            let tree = roxmltree::Document::parse(&svg).unwrap();
            let of = |tag: &str, class: &str| {
                let is = |node: &roxmltree::Node<'_, '_>| {
                    node.has_tag_name(("http://www.w3.org/2000/svg", tag))
                        && node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
                };
                tree.descendants().filter(is).count()
            };
            let points = report.found.panels[0].series.iter().flat_map(|series| series.values.iter().flatten()).count();
            assert_eq!((of("path", "line"), of("circle", "dot")), (2 + keys, points), "{svg}");
            let texts: Vec<_> = tree.descendants().filter_map(|node| node.text()).collect();
            assert!(
                ["Letters", "[0] <x>", "a & b", "rows/s", "host"].iter().all(|part| texts.contains(part)),
                "{texts:?}"
            );
            assert!(of("path", "dashed") >= 1 && !svg.contains("<x>") && !svg.contains("NaN"));
        }
    }

    #[test]
    fn colours_come_again_dashed() {
        let mut number = 0;
        let colours: Vec<_> = (0..9).map(|_| colour(&mut number)).collect();
        assert_eq!([&*colours[0], &*colours[6], &*colours[7], &*colours[8]], ["c0", "c6", "c0 dashed", "c1 dashed"]);
        let names: Vec<_> = (0..9).map(|k| series(&format!("series number {k}"), &[], &[])).collect();
        let places = legend(&names);
        assert!(places.iter().all(|[x, _]| *x < RIGHT) && places[8][1] >= GAP);
        assert!(places.windows(2).all(|pair| pair[0] != pair[1]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever was measured makes a picture that is well formed, with a dot for each value that has a logarithm, within its panel.
        #[test]
        fn any_values(values in vec(vec(option::of(any::<f64>()), 4), 0..12), name in any::<String>()) {
            let all = values.iter().map(|values| series(&name, values, &[])).collect();
            let svg = picture(&report(&[1, 3, 700, 6900], all));
            let tree = roxmltree::Document::parse(&svg).unwrap();
            let dots: Vec<_> = tree.descendants().filter(|node| node.tag_name().name() == "circle").collect();
            prop_assert_eq!(dots.len(), values.iter().flatten().filter_map(drawable).count());
            for dot in dots {
                let [x, y] = ["cx", "cy"].map(|name| dot.attribute(name).unwrap().parse::<f64>().unwrap());
                prop_assert!((LEFT..=RIGHT).contains(&x) && (TOP..=BOTTOM).contains(&y), "{} {}", x, y);
            }
        }
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let mut report = report(&[], Vec::new());
        assert!(roxmltree::Document::parse(&picture(&report)).is_ok());
        report.found.panels.clear();
        assert!(roxmltree::Document::parse(&picture(&report)).is_ok());
    }
}
