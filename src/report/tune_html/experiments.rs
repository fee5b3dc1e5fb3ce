//! Where the time of a solve goes (Bueno 2013, tables 4.5 and 4.6, figure 4.21).

use declive::experiments::{Experiment, KernelTime};
use maud::{Markup, html};

use super::figures::{NONE, Unit, column, factor, hundredths, percent, three};
use super::html::bars::{Bar, REST, bars, legend};
use super::table::{Column, table};
use crate::report::bench::speedup;
use crate::report::bench_published::{ITERATIONS, KERNELS, METHOD, ORDER, PUBLISHED, Published, SOURCE};
use crate::report::distinct;
use crate::report::units::{count, plural};

const OVERHEAD: &str = "overhead";
/// The colours of the style sheet.
const COLOURS: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];

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
    distinct(experiments.iter().flat_map(|one| one.kernels.iter().map(|kernel| &*kernel.kernel)))
}

fn find<'a>(experiment: &'a Experiment, kernel: &str) -> Option<&'a KernelTime> {
    experiment.kernels.iter().find(|time| time.kernel == kernel)
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
        @for method in distinct(experiments.iter().map(|one| &*one.method)) {
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
    let measured: Vec<Times> = experiments.iter().map(|one| Times::measured(one, &names)).collect();
    let printed: Vec<Times> = published.iter().map(|one| Times::published(one, &names)).collect();
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

fn figure(label: &str, caption: &str, times: &[Times], names: &[&str]) -> Markup {
    let kinds: Vec<(&str, &str)> =
        names.iter().copied().zip(COLOURS.into_iter().cycle()).chain([(OVERHEAD, REST)]).collect();
    let words: String = times.iter().map(|one| one.in_words(names)).collect();
    html! {
        figure {
            figcaption { b { (caption) } (legend(&kinds)) }
            (bars(label, &words, &kinds, &times.iter().map(Times::bar).collect::<Vec<_>>()))
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
    table(label, "rate", &rows, &ours.chain(theirs).collect::<Vec<_>>())
}

/// The times of an experiment, one of them for each kernel of the section.
struct Times<'a> {
    name: &'a str,
    kernels: Vec<f64>,
    overhead: f64,
    total: f64,
}

impl<'a> Times<'a> {
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

    /// A piece for each kernel, and one for the overhead.
    fn bar(&self) -> Bar {
        let pieces = self.kernels.iter().copied().chain([self.overhead]).enumerate().collect();
        Bar { label: self.name.into(), joined: false, pieces, total: self.total }
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
