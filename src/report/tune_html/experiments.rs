//! Where the time of a solve goes (Bueno 2013, tables 4.5 and 4.6, figure 4.21).

use declive::tune::{Experiment, KernelTime};
use maud::{Markup, html};

use super::figures::{NONE, Unit, column, factor, hundredths, percent, three, tick_label, time};
use super::scale::Scale;
use super::svg::{chart, line, rectangle, text};
use super::table::{Column, table};
use crate::report::bench::speedup;
use crate::report::bench_published::{ITERATIONS, KERNELS, METHOD, ORDER, PUBLISHED, Published, SOURCE};
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

/// The methods, in the order in which they come first.
fn methods(experiments: &[Experiment]) -> Vec<&str> {
    let mut methods: Vec<&str> = Vec::new();
    for one in experiments {
        if !methods.contains(&&*one.method) {
            methods.push(&one.method);
        }
    }
    methods
}

/// A part for each method, with what was published about it; and the experiments that are `missing`.
pub(super) fn section(experiments: &[Experiment], missing: &[String]) -> Markup {
    html! {
        p {
            "A method made so many iterations, whatever the residual. The total is the median of several runs; the kernels "
            "were timed in another run, by the device's clock. Overhead is the total less that of all kernels: launches, "
            "waiting, sums and halos between devices, the first residual. Of several devices, which work at the same time, "
            "the kernels are those of the device where they take longest."
        }
        @for line in missing { p.small { (line) "." } }
        @for method in methods(experiments) {
            @let these: Vec<Experiment> = experiments.iter().filter(|one| one.method == method).cloned().collect();
            h3 { (method) }
            (of_method(method, &these))
        }
    }
}

fn of_method(method: &str, experiments: &[Experiment]) -> Markup {
    let published: &[Published] = if method == METHOD { &PUBLISHED } else { &[] };
    let mut names = kernels(experiments);
    if !published.is_empty() {
        names.extend(KERNELS.iter().filter(|name| !kernels(experiments).contains(name)));
    }
    let measured: Vec<Bar> = experiments.iter().map(|one| Bar::measured(one, &names)).collect();
    let printed: Vec<Bar> = published.iter().map(|one| Bar::published(one, &names)).collect();
    let label = |what: &str| format!("{what}, {method}");
    html! {
        ul.small {
            @for one in experiments {
                li {
                    b { (one.name) } ": " (one.matrix) ", order " (count(one.order)) ", " (count(one.nnz)) " entries, "
                    (one.precision) ", " (plural(one.iterations, "iteration"))
                    @for note in &one.notes { "; " (note) }
                }
            }
        }
        (times(&label("Time of kernels and overhead"), experiments, published, &names))
        (rates(&label("Rates"), experiments, published))
        @if !published.is_empty() {
            p.small {
                "Published: " (SOURCE) ", " (ITERATIONS) " iterations in single precision on a matrix of order " (count(ORDER))
                " that is not named, as printed. dot_partial is its inner product (two of them), spmv_csr its product of "
                "matrix and vector. GFLOP/s by 10 n count, as its table 4.7, one operation for each row of a sum and two for "
                "each row of an update or of the product. Its speed-up is over one of its devices."
            }
        }
        div.charts {
            (figure(&label("Time of kernels and overhead"), "Time of kernels and overhead", &measured, &names))
            @if !published.is_empty() {
                (figure("Published in 2013", "Published in 2013 (figure 4.21)", &printed, &names))
            }
        }
    }
}

fn figure(label: &str, caption: &str, bars: &[Bar], names: &[&str]) -> Markup {
    html! {
        figure {
            figcaption {
                b { (caption) }
                span.legend {
                    @for (k, name) in names.iter().enumerate() {
                        span.entry { span class={ "key f" (k % COLOURS) } { (letter(k)) } (name) }
                    }
                    span.entry { span.key.overhead {} (OVERHEAD) }
                }
            }
            (chart_of(label, bars, names))
        }
    }
}

/// Groups of columns.
const MEASURED: &str = "measured";
const AS_PUBLISHED: &str = "published 2013, single precision";

fn times(label: &str, experiments: &[Experiment], published: &[Published], names: &[&str]) -> Markup {
    let unit = Unit::of_all(experiments.iter().map(|one| one.total_seconds));
    let calls = |kernel: &str| {
        let all: Vec<u64> = experiments.iter().filter_map(|one| find(one, kernel)).map(|time| time.calls).collect();
        match (all.iter().min(), all.iter().max()) {
            (Some(least), Some(most)) if least != most => format!("{}–{}", count(*least), count(*most)),
            (Some(all), _) => count(*all),
            _ => NONE.into(),
        }
    };
    let group = if published.is_empty() { "" } else { MEASURED };
    let mut columns = vec![Column {
        group,
        ..Column::new("calls", names.iter().map(|name| calls(name)).chain([String::new(), String::new()]).collect())
    }];
    columns.extend(experiments.iter().map(|one| {
        let kernels = names.iter().map(|name| find(one, name).map_or(f64::NAN, |time| time.seconds));
        let all: Vec<f64> =
            kernels.chain([one.overhead_seconds(), one.total_seconds]).map(|s| unit.per_second * s).collect();
        Column { group, ..Column::new(format!("{}, {}", one.name, unit.name), column(&all)) }
    }));
    columns.extend(published.iter().map(|one| {
        let kernels = names.iter().map(|name| one.kernel(name));
        let all = kernels.chain([Some(one.overhead), Some(one.total)]);
        let cells = all.map(|seconds| seconds.map_or(NONE.into(), factor)).collect();
        Column { group: AS_PUBLISHED, ..Column::new(format!("{}, s", one.name), cells) }
    }));
    let rows: Vec<&str> = names.iter().copied().chain([OVERHEAD, "total"]).collect();
    table(label, "kernel", &rows, &columns)
}

/// What follows from the totals.
fn rates(label: &str, experiments: &[Experiment], published: &[Published]) -> Markup {
    let unit = Unit::of_all(experiments.iter().map(|one| one.total_seconds));
    let mut rows = vec![
        format!("fastest run, {}", unit.name),
        format!("slowest run, {}", unit.name),
        "µs an iteration".into(),
        "GB/s".into(),
        "of a copy, %".into(),
        "GFLOP/s".into(),
    ];
    if !published.is_empty() {
        rows.push("GFLOP/s by 10 n".into());
    }
    rows.push("speed-up".into());
    let measured = |one: &Experiment| {
        let copy = one.copy_bytes_per_second.unwrap_or(f64::NAN);
        let mut cells = vec![
            three(unit.per_second * one.least_seconds),
            three(unit.per_second * one.most_seconds),
            three(1e6 * one.seconds_per_iteration()),
            three(1e-9 * one.bytes_per_second()),
            hundredths(one.bytes_per_second() / copy),
            three(1e-9 * one.flops_per_second()),
        ];
        if !published.is_empty() {
            cells.push(three(1e-9 * one.counted_flops_per_second().unwrap_or(f64::NAN)));
        }
        cells.push(speedup(one, experiments).map_or(String::new(), factor));
        cells
    };
    let then = |one: &Published| {
        let [none, rate] = [String::new(), three(1e-9 * one.flops_per_second())];
        let micros = three(1e6 * one.seconds_per_iteration());
        let speedup = one.speedup().map_or(String::new(), factor);
        vec![none.clone(), none.clone(), micros, none.clone(), none.clone(), none, rate, speedup]
    };
    let group = if published.is_empty() { "" } else { MEASURED };
    let ours = experiments.iter().map(|one| Column { group, ..Column::new(&*one.name, measured(one)) });
    let theirs = published.iter().map(|one| Column { group: AS_PUBLISHED, ..Column::new(one.name, then(one)) });
    table(label, "rate", &rows.iter().map(String::as_str).collect::<Vec<_>>(), &ours.chain(theirs).collect::<Vec<_>>())
}

/// A key for what a colour alone might not tell.
fn letter(k: usize) -> String {
    char::from_u32(u32::from('a') + k as u32 % 26).map(String::from).unwrap_or_default()
}

const WIDTH: f64 = 460.0;
const RIGHT: f64 = WIDTH - 56.0;
const THICK: f64 = 22.0;
const PITCH: f64 = 50.0;

/// The times of an experiment, one of them for each kernel of the section.
struct Bar<'a> {
    name: &'a str,
    kernels: Vec<f64>,
    overhead: f64,
    total: f64,
}

impl<'a> Bar<'a> {
    fn measured(one: &'a Experiment, names: &[&str]) -> Self {
        Self {
            name: &one.name,
            kernels: names.iter().map(|name| find(one, name).map_or(0.0, |time| time.seconds)).collect(),
            overhead: one.overhead_seconds(),
            total: one.total_seconds,
        }
    }

    fn published(one: &Published, names: &[&str]) -> Self {
        Self {
            name: one.name,
            kernels: names.iter().map(|name| one.kernel(name).unwrap_or(0.0)).collect(),
            overhead: one.overhead,
            total: one.total,
        }
    }

    /// How far it reaches: kernels may exceed the total.
    fn end(&self) -> f64 {
        shown(self.total).max(self.kernels.iter().copied().map(shown).sum())
    }

    /// Its pieces: class, letter, where it begins, how long it is.
    fn pieces(&self) -> Vec<(String, String, f64, f64)> {
        let mut from = 0.0;
        let mut pieces = Vec::new();
        for (k, seconds) in self.kernels.iter().copied().map(shown).enumerate() {
            if seconds > 0.0 {
                pieces.push((format!("f{}", k % COLOURS), letter(k), from, seconds));
            }
            from += seconds;
        }
        pieces.push(("overhead".into(), String::new(), from, shown(self.overhead)));
        pieces
    }

    fn in_words(&self, names: &[&str]) -> String {
        let unit = Unit::of(self.total);
        let in_unit = |seconds: f64| format!("{} {}", three(unit.per_second * seconds), unit.name);
        let kernels = names.iter().zip(&self.kernels).filter(|(_, seconds)| **seconds > 0.0);
        let kernels: String = kernels.map(|(name, seconds)| format!("{name} {}, ", in_unit(*seconds))).collect();
        let (overhead, part) = (in_unit(self.overhead), percent(self.overhead / self.total));
        format!("{}: {kernels}overhead {overhead} ({part}), total {}. ", self.name, in_unit(self.total))
    }
}

/// A bar for each experiment, in pieces.
fn chart_of(label: &str, bars: &[Bar], names: &[&str]) -> Markup {
    let most = bars.iter().map(Bar::end).fold(0.0, f64::max);
    let unit = Unit::of(most);
    let scale = Scale::linear([0.0, unit.per_second * most], [0.0, RIGHT]);
    let bottom = PITCH * bars.len() as f64 + 4.0;
    let width = |seconds: f64| if most > 0.0 { scale.at(unit.per_second * seconds) } else { 0.0 };
    chart(
        [WIDTH, bottom + 38.0],
        label,
        &bars.iter().map(|bar| bar.in_words(names)).collect::<String>(),
        html! {
            @for tick in scale.ticks(6) {
                @let x = width(tick / unit.per_second);
                (line("grid", [x, 0.0], [x, bottom]))
                (text("tick", if x > 0.0 { "middle" } else { "start" }, [x, bottom + 16.0], &tick_label(tick)))
            }
            (text("label", "middle", [0.5 * RIGHT, bottom + 33.0], &format!("time, {}", unit.name)))
            @for (k, bar) in bars.iter().enumerate() {
                @let y = PITCH * k as f64 + 20.0;
                (text("label name halo", "start", [2.0, y - 5.0], bar.name))
                @for (class, key, from, seconds) in bar.pieces() {
                    (rectangle(&class, [width(from), y], [width(seconds), THICK]))
                    @if width(seconds) > 14.0 {
                        (text("key-letter", "middle", [width(from + 0.5 * seconds), y + 15.0], &key))
                    }
                }
                (text("value", "start", [width(bar.end()) + 5.0, y + 15.0], &time(bar.total)))
            }
            (line("axis", [0.0, 0.0], [0.0, bottom]))
        },
    )
}

/// A time that can have a length.
fn shown(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 }
}
