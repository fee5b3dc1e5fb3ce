//! Where the time of a solve goes.

use declive::experiments::{Experiment, KernelTime};
use maud::{Markup, html};

use super::figures::{NONE, Unit, column, factor, hundredths, percent, three};
use super::html::bars::{Bar, REST, bars, legend};
use super::table::{Column, table};
use crate::report::bench::speedup;
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

/// A part for each method; and the experiments that are `missing`.
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
    let names = kernels(experiments);
    let measured: Vec<Times> = experiments.iter().map(|one| Times::measured(one, &names)).collect();
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
        (times(&label("Time of kernels and overhead"), experiments, &names))
        (rates(&label("Rates"), experiments))
        div.charts {
            (figure(&label("Time of kernels and overhead"), "Time of kernels and overhead", &measured, &names))
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

fn times(label: &str, experiments: &[Experiment], names: &[&str]) -> Markup {
    let unit = Unit::of_all(experiments.iter().map(|one| one.total_seconds));
    let calls = |kernel: &str| {
        let all: Vec<u64> = experiments.iter().filter_map(|one| find(one, kernel)).map(|time| time.calls).collect();
        match (all.iter().min(), all.iter().max()) {
            (Some(least), Some(most)) if least != most => format!("{}–{}", count(*least), count(*most)),
            (Some(all), _) => count(*all),
            _ => NONE.into(),
        }
    };
    let all_calls = names.iter().map(|name| calls(name)).chain([String::new(), String::new()]).collect();
    let mut columns = vec![Column::new("calls", all_calls)];
    columns.extend(experiments.iter().map(|one| {
        let kernels = names.iter().map(|name| find(one, name).map_or(f64::NAN, |time| time.seconds));
        let all: Vec<f64> =
            kernels.chain([one.overhead_seconds(), one.total_seconds]).map(|s| unit.per_second * s).collect();
        Column::new(format!("{}, {}", one.name, unit.name), column(&all))
    }));
    let rows: Vec<&str> = names.iter().copied().chain([OVERHEAD, "total"]).collect();
    table(label, "kernel", &rows, &columns)
}

/// What follows from the totals.
fn rates(label: &str, experiments: &[Experiment]) -> Markup {
    let unit = Unit::of_all(experiments.iter().map(|one| one.total_seconds));
    let rows = [
        format!("fastest run, {}", unit.name),
        format!("slowest run, {}", unit.name),
        "µs an iteration".into(),
        "GB/s".into(),
        "of a copy, %".into(),
        "speed-up".into(),
    ];
    let measured = |one: &Experiment| {
        let copy = one.copy_bytes_per_second.unwrap_or(f64::NAN);
        vec![
            three(unit.per_second * one.least_seconds),
            three(unit.per_second * one.most_seconds),
            three(1e6 * one.seconds_per_iteration()),
            three(1e-9 * one.bytes_per_second()),
            hundredths(one.bytes_per_second() / copy),
            speedup(one, experiments).map_or(String::new(), factor),
        ]
    };
    let columns: Vec<_> = experiments.iter().map(|one| Column::new(&*one.name, measured(one))).collect();
    table(label, "rate", &rows, &columns)
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
