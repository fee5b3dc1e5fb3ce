//! Where the time of a solve goes (Bueno 2013, tables 4.5 and 4.6, figure 4.21).

use declive::tune::{Experiment, KernelTime};
use maud::{Markup, html};

use super::figures::{NONE, Unit, column, percent, three, tick_label, time};
use super::scale::Scale;
use super::svg::{chart, line, rectangle, text};
use super::table::{Column, table};
use crate::report::units::{count, plural};

const OVERHEAD: &str = "overhead";
/// How many colours the style sheet has.
const COLOURS: usize = 8;

/// The heading, with the number of iterations if it is the same in all.
pub(super) fn heading(experiments: &[Experiment]) -> String {
    match experiments {
        [first, rest @ ..] if rest.iter().all(|one| one.iterations == first.iterations) => {
            format!("Where the time of {} goes", plural(first.iterations, "iteration"))
        }
        _ => "Where the time goes".into(),
    }
}

/// All kernels, in the order in which they come first.
fn kernels(experiments: &[Experiment]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for kernel in experiments.iter().flat_map(|one| &one.kernels) {
        if !names.contains(&&*kernel.kernel) {
            names.push(&kernel.kernel);
        }
    }
    names
}

fn find<'a>(experiment: &'a Experiment, kernel: &str) -> Option<&'a KernelTime> {
    experiment.kernels.iter().find(|time| time.kernel == kernel)
}

/// The devices; how many, where several have the same name.
fn devices(experiment: &Experiment) -> String {
    let mut devices: Vec<(&str, usize)> = Vec::new();
    for device in &experiment.devices {
        match devices.iter_mut().find(|(known, _)| known == device) {
            Some((_, count)) => *count += 1,
            None => devices.push((device, 1)),
        }
    }
    let text = |(name, count)| if count == 1 { String::from(name) } else { format!("{count} × {name}") };
    devices.into_iter().map(text).collect::<Vec<_>>().join(" + ")
}

/// The table and the chart.
pub(super) fn section(experiments: &[Experiment]) -> Markup {
    let names = kernels(experiments);
    html! {
        p {
            "Overhead is the time in which no kernel ran: the total less that of all kernels. Of several devices, which "
            "work at the same time, the kernels are those of the device where they take longest."
        }
        ul.small {
            @for one in experiments {
                li {
                    b { (one.name) } ": " (one.method) ", order " (count(one.order)) ", "
                    (plural(one.iterations, "iteration")) ", " (devices(one))
                }
            }
        }
        (times(experiments, &names))
        figure.wide {
            figcaption {
                b { "Time of kernels and overhead" }
                span.legend {
                    @for (k, name) in names.iter().enumerate() {
                        span.entry { span class={ "key f" (k % COLOURS) } { (letter(k)) } (name) }
                    }
                    span.entry { span.key.overhead {} (OVERHEAD) }
                }
            }
            (bars(experiments, &names))
        }
    }
}

fn times(experiments: &[Experiment], names: &[&str]) -> Markup {
    let totals = || experiments.iter().map(|one| one.total_seconds);
    let unit = Unit::of_all(totals());
    let calls = |kernel: &str| {
        let all: Vec<u64> = experiments.iter().filter_map(|one| find(one, kernel)).map(|time| time.calls).collect();
        match (all.iter().min(), all.iter().max()) {
            (Some(least), Some(most)) if least != most => format!("{}–{}", count(*least), count(*most)),
            (Some(all), _) => count(*all),
            _ => NONE.into(),
        }
    };
    let mut columns = vec![Column::new(
        "calls",
        names.iter().map(|name| calls(name)).chain([String::new(), String::new()]).collect(),
    )];
    columns.extend(experiments.iter().map(|one| {
        let kernels = names.iter().map(|name| find(one, name).map_or(f64::NAN, |time| time.seconds));
        let all: Vec<f64> =
            kernels.chain([one.overhead_seconds(), one.total_seconds]).map(|s| unit.per_second * s).collect();
        Column::new(format!("{}, {}", one.name, unit.name), column(&all))
    }));
    let rows: Vec<&str> = names.iter().copied().chain([OVERHEAD, "total"]).collect();
    table("Time of kernels and overhead", "kernel", &rows, &columns)
}

/// A key for what a colour alone might not tell.
fn letter(k: usize) -> String {
    char::from_u32(u32::from('a') + k as u32 % 26).map(String::from).unwrap_or_default()
}

const WIDTH: f64 = 460.0;
const RIGHT: f64 = WIDTH - 56.0;
const BAR: f64 = 22.0;
const PITCH: f64 = 50.0;

/// A bar for each experiment, in pieces.
fn bars(experiments: &[Experiment], names: &[&str]) -> Markup {
    let sum = |one: &Experiment| one.kernels.iter().map(|time| shown(time.seconds)).sum::<f64>();
    let most = experiments.iter().map(|one| shown(one.total_seconds).max(sum(one))).fold(0.0, f64::max);
    let unit = Unit::of(most);
    let scale = Scale::linear([0.0, unit.per_second * most], [0.0, RIGHT]);
    let bottom = PITCH * experiments.len() as f64 + 4.0;
    let width = |seconds: f64| if most > 0.0 { scale.at(unit.per_second * seconds) } else { 0.0 };
    chart(
        [WIDTH, bottom + 38.0],
        "Time of kernels and overhead",
        &experiments.iter().map(in_words).collect::<String>(),
        html! {
            @for tick in scale.ticks(6) {
                @let x = width(tick / unit.per_second);
                (line("grid", [x, 0.0], [x, bottom]))
                (text("tick", if x > 0.0 { "middle" } else { "start" }, [x, bottom + 16.0], &tick_label(tick)))
            }
            (text("label", "middle", [0.5 * RIGHT, bottom + 33.0], &format!("time, {}", unit.name)))
            @for (k, one) in experiments.iter().enumerate() {
                @let y = PITCH * k as f64 + 20.0;
                (text("label name halo", "start", [2.0, y - 5.0], &one.name))
                @let pieces = pieces(one, names);
                @for (class, key, from, seconds) in pieces {
                    (rectangle(&class, [width(from), y], [width(seconds), BAR]))
                    @if width(seconds) > 14.0 {
                        (text("key-letter", "middle", [width(from + 0.5 * seconds), y + 15.0], &key))
                    }
                }
                @let end = width(shown(one.total_seconds).max(sum(one)));
                (text("value", "start", [end + 5.0, y + 15.0], &time(one.total_seconds)))
            }
            (line("axis", [0.0, 0.0], [0.0, bottom]))
        },
    )
}

/// The pieces of a bar: class, letter, where it begins, how long it is.
fn pieces(experiment: &Experiment, names: &[&str]) -> Vec<(String, String, f64, f64)> {
    let mut from = 0.0;
    let mut pieces = Vec::new();
    for (k, name) in names.iter().enumerate() {
        let seconds = find(experiment, name).map_or(0.0, |time| shown(time.seconds));
        if seconds > 0.0 {
            pieces.push((format!("f{}", k % COLOURS), letter(k), from, seconds));
        }
        from += seconds;
    }
    pieces.push(("overhead".into(), String::new(), from, shown(experiment.overhead_seconds())));
    pieces
}

/// A time that can have a length.
fn shown(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 }
}

fn in_words(one: &Experiment) -> String {
    let unit = Unit::of(one.total_seconds);
    let in_unit = |seconds: f64| format!("{} {}", three(unit.per_second * seconds), unit.name);
    let kernels: String =
        one.kernels.iter().map(|time| format!("{} {}, ", time.kernel, in_unit(time.seconds))).collect();
    let overhead = one.overhead_seconds();
    let part = percent(overhead / one.total_seconds);
    format!("{}: {kernels}overhead {} ({part}), total {}. ", one.name, in_unit(overhead), in_unit(one.total_seconds))
}
