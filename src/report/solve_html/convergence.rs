//! How the residual fell.

use declive::timeline::Timeline;
use maud::{Markup, html};

use super::super::html::figures::{NONE, column, three};
use super::super::html::scale::{Scale, spread};
use super::super::html::svg::{chart, line, n, path, text};
use super::super::html::table::{Column as Cells, table};
use super::super::recording::Column;
use super::super::solve::{Report, Solve};
use super::super::units::{count, exact, plural, scientific};
use super::decimate::decimated;

const SIZE: [f64; 2] = [460.0, 300.0];
const LEFT: f64 = 50.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = SIZE[1] - 46.0;
/// How many colours the style sheet has for lines.
const COLOURS: usize = 8;
/// More lines have no labels.
const LABELLED: usize = 12;
/// Between labels.
const GAP: f64 = 14.0;
/// Points of all lines together, about.
const POINTS: usize = 20_000;
/// What a chart can hold.
const DRAWABLE: std::ops::Range<f64> = 1e-300..1e300;

/// The chart, and a table of the right-hand sides.
pub(super) fn section(report: &Report, columns: &[Column<'_>]) -> Markup {
    html! {
        @if columns.iter().any(|column| column.history.len() > 1) {
            figure.broad {
                figcaption {
                    b { "Relative residual ‖r‖₂ / ‖b‖₂ over the iterations" }
                    span { (caption(report, columns)) }
                }
                (drawing(report, columns))
            }
        } @else {
            p { "No iteration was made. " (report.figures.reason_text) "." }
        }
        (results(&report.solves))
    }
}

fn caption(report: &Report, columns: &[Column<'_>]) -> String {
    let mut text = String::from("By the recurrence");
    if columns.len() > 1 {
        text += ", a line for each right-hand side";
    }
    text += "; the diamond at the end is the residual that was recomputed from the original data.";
    if report.figures.restarts > 0 {
        text += " Discs mark where the solve went on from the true residual.";
    }
    text
}

/// Where the relative residual has to arrive; none if no residual but 0 will do, or for b = 0.
fn target(report: &Report, solve: &Solve) -> Option<f64> {
    let (stop, rhs) = (&report.options.stop, solve.figures.rhs_2);
    let target = stop.rtol.max(stop.atol / rhs);
    (rhs > 0.0 && DRAWABLE.contains(&target)).then_some(target)
}

/// What is drawn of a right-hand side.
struct Line {
    number: usize,
    points: Vec<[f64; 2]>,
    end: Option<[f64; 2]>,
    restarts: Vec<[f64; 2]>,
}

fn drawing(report: &Report, columns: &[Column<'_>]) -> Markup {
    let several = columns.len() > 1;
    let mut targets: Vec<f64> = report.solves.iter().filter_map(|solve| target(report, solve)).collect();
    targets.sort_by(f64::total_cmp);
    targets.dedup();
    let ends = || report.solves.iter().map(|solve| solve.figures.rel_residual_2);
    let values = columns.iter().flat_map(|column| column.history.iter().copied()).chain(ends());
    let drawable = || values.clone().chain(targets.iter().copied()).filter(|value| DRAWABLE.contains(value));
    let [lo, hi] = [drawable().fold(f64::INFINITY, f64::min), drawable().fold(0.0, f64::max)];
    let [lo, hi] = if lo < hi { [lo, hi] } else { [0.1 * lo.min(1.0), 10.0 * hi.max(1.0)] };
    let right = SIZE[0] - if several && columns.len() <= LABELLED { 34.0 } else { 14.0 };
    let last = columns.iter().map(|column| column.history.len().saturating_sub(1)).max().unwrap_or(0);
    let across = Scale::linear([0.0, last as f64], [LEFT, right]);
    let up = Scale::log([lo, hi], [BOTTOM, TOP]).padded(24.0, 6.0);
    let place = |iteration: usize, residual: f64| [across.at(iteration as f64), up.at(residual)];
    let pixels = (POINTS / 4 / columns.len().max(1)).clamp(20, 500);
    let lines: Vec<Line> = columns
        .iter()
        .zip(&report.solves)
        .map(|(column, solve)| {
            let history: Vec<f64> =
                column.history.iter().map(|&r| if DRAWABLE.contains(&r) { r } else { f64::NAN }).collect();
            let restarts = column.timelines.first().map(Timeline::restarts).unwrap_or_default();
            let at = |k: usize| history.get(k).filter(|r| r.is_finite()).map(|&r| place(k, r));
            let residual = solve.figures.rel_residual_2;
            Line {
                number: solve.rhs,
                points: decimated(&history, pixels).into_iter().map(|k| place(k, history[k])).collect(),
                end: DRAWABLE.contains(&residual).then(|| place(history.len().saturating_sub(1), residual)),
                restarts: restarts.into_iter().filter_map(|k| at(usize::try_from(k).ok()?)).collect(),
            }
        })
        .collect();
    let across_label = if report.files.resumed.is_some() { "iteration after the checkpoint" } else { "iteration" };
    let class = |line: &Line| format!("c{}", (line.number - 1) % COLOURS);
    chart(
        SIZE,
        "Relative residual over the iterations",
        &description(report),
        html! {
            @for tick in up.ticks(8) {
                @let y = up.at(tick);
                (line("grid", [LEFT, y], [right, y]))
                (text("tick", "end", [LEFT - 6.0, y + 4.0], &power(tick)))
            }
            @for tick in across.ticks(6).into_iter().filter(|tick| tick.fract() == 0.0) {
                @let x = across.at(tick);
                (line("axis", [x, BOTTOM], [x, BOTTOM + 4.0]))
                (text("tick", "middle", [x, BOTTOM + 18.0], &count(tick as u64)))
            }
            (line("axis", [LEFT, BOTTOM], [right, BOTTOM]))
            (text("label", "start", [0.0, 14.0], "relative residual"))
            (text("label", "middle", [0.5 * (LEFT + right), SIZE[1] - 6.0], across_label))
            @for line in &lines { path class={ "line solid " (class(line)) } d=(path(line.points.iter().copied())) {} }
            @for (k, &target) in targets.iter().enumerate() {
                (self::line("limit", [LEFT, up.at(target)], [right, up.at(target)]))
                @if k == 0 {
                    (text("mark", "start", [LEFT + 6.0, up.at(target) + 15.0], &format!("target {}", exact(target))))
                }
            }
            @for line in &lines {
                @for [x, y] in &line.restarts {
                    circle.chosen cx=(n(*x)) cy=(n(*y)) r="3.5" { title { "went on from the true residual" } }
                }
                @if let Some([x, y]) = line.end {
                    path.stop d={ (path([[x, y - 5.0], [x + 5.0, y], [x, y + 5.0], [x - 5.0, y]])) "Z" } {}
                }
            }
            @if several {
                @if lines.len() <= LABELLED { (labels(&lines, right)) }
            } @else if let Some([x, y]) = lines.first().and_then(|line| line.end) {
                @let residual = scientific(report.figures.rel_residual_2);
                (text("mark", "end", [x + 5.0, y + 19.0], &format!("true residual {residual}")))
            }
        },
    )
}

/// The numbers of the right-hand sides at the ends of their lines: those near the edge of the chart stand beside it.
fn labels(lines: &[Line], right: f64) -> Markup {
    let ends = lines.iter().filter_map(|line| Some((line.number, line.end.or(line.points.last().copied())?)));
    let (mut edge, within): (Vec<_>, Vec<_>) = ends.partition(|(_, [x, _])| *x > right - 30.0);
    edge.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
    let mut places: Vec<f64> = edge.iter().map(|(_, [_, y])| *y).collect();
    spread(&mut places, GAP, [TOP, BOTTOM - 4.0]);
    html! {
        @for ((number, [x, y]), place) in edge.into_iter().zip(places) {
            @let class = format!("c{}", (number - 1) % COLOURS);
            path class={ "tie " (class) } d=(path([[x + 5.0, y], [right + 8.0, place], [right + 12.0, place]])) {}
            (text("tick name", "start", [right + 15.0, place + 4.0], &number.to_string()))
        }
        @for (number, [x, y]) in within { (text("mark", "middle", [x, y + 18.0], &number.to_string())) }
    }
}

/// A power of ten, or a few of them: `10⁻⁸`, `2·10³`.
fn power(value: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = (value.log10() + 1e-9).floor();
    let factor = (value / 10f64.powf(exponent)).round();
    let sign = if exponent < 0.0 { "⁻" } else { "" };
    let digits: String =
        (exponent.abs() as u32).to_string().chars().filter_map(|c| Some(DIGITS[c.to_digit(10)? as usize])).collect();
    match (factor as u32, exponent as i32) {
        (few, 0) => few.to_string(),
        (1, _) => format!("10{sign}{digits}"),
        (few, _) => format!("{few}·10{sign}{digits}"),
    }
}

fn description(report: &Report) -> String {
    let one = |solve: &Solve| {
        format!(
            "Right-hand side {}: {}, true relative residual {}, {}. ",
            solve.rhs,
            plural(solve.figures.iterations, "iteration"),
            residual(solve.figures.rel_residual_2),
            solve.figures.reason,
        )
    };
    report.solves.iter().take(LABELLED).map(one).collect()
}

fn residual(value: f64) -> String {
    if value.is_finite() { scientific(value) } else { NONE.into() }
}

/// A row for each right-hand side.
fn results(solves: &[Solve]) -> Markup {
    let names: Vec<String> = solves.iter().map(|solve| solve.rhs.to_string()).collect();
    let texts = |of: &dyn Fn(&Solve) -> String| solves.iter().map(of).collect::<Vec<_>>();
    let numbers = |of: &dyn Fn(&Solve) -> Option<f64>| {
        column(&solves.iter().map(|solve| of(solve).unwrap_or(f64::NAN)).collect::<Vec<_>>())
    };
    table(
        "Results",
        "right-hand side",
        &names,
        &[
            Cells::new("iterations", texts(&|s| count(s.figures.iterations))),
            Cells::new("restarts", texts(&|s| s.figures.restarts.to_string())),
            Cells::new("true relative residual", texts(&|s| residual(s.figures.rel_residual_2))),
            Cells::new("by the recurrence", texts(&|s| residual(s.figures.recurrence_rel_residual_2))),
            Cells::new("backward error", texts(&|s| residual(s.figures.backward_error))),
            Cells::new("largest residual", texts(&|s| residual(s.figures.residual_inf))),
            Cells::new("solve,\u{a0}s", texts(&|s| three(s.seconds.solve))),
            Cells::new("µs an\u{a0}iteration", numbers(&|s| s.figures.microseconds_per_iteration)),
            Cells::new("GB/s", numbers(&|s| s.figures.gigabytes_per_second)),
            Cells::new("stopped", texts(&|s| s.figures.reason.into())),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    fn powers_of_ten() {
        let all = [1e-8, 1.0, 10.0, 1e12, 2e-3, 5.0, 1e-300].map(power);
        assert_eq!(all, ["10⁻⁸", "1", "10¹", "10¹²", "2·10⁻³", "5", "10⁻³⁰⁰"]);
    }
}
