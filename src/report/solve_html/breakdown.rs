//! Where the time of the command went, and that of each rank in the iteration.

use maud::{Markup, html};

use super::super::html::bars::{Bar, Legend, REST, bars, legend};
use super::super::html::figures::{NONE, Unit, fine_percent, three, time};
use super::super::html::table::{Column, table};
use super::super::solve::{Rank, Report};
use super::stages;

/// What the command does.
pub(super) const PHASES: Legend<'_> = &[
    ("read", "f0"),
    ("prepare", "f1"),
    ("compile", "f8"),
    ("upload", "f2"),
    ("precond", "f9"),
    ("tune", "f3"),
    ("solve", "f4"),
    ("gather", "f5"),
    ("verify", "f6"),
    ("write", "f7"),
    ("other", REST),
];

/// What a rank does.
const PARTS: Legend<'_> = &[
    ("kernels", "f0"),
    ("device idle", REST),
    ("sums over ranks", "f1"),
    ("halos", "f2"),
    ("waiting for the device", "f3"),
    ("other", "f4"),
];

/// Both charts with their tables.
pub(super) fn section(report: &Report) -> Markup {
    html! {
        @if let Some(rates) = rates(report) { p { (rates) } }
        (command(report))
        (stages::figure(report))
        h3 { "The iteration on each rank" }
        p {
            "Of the " b { (time(report.seconds.solve)) } " of \"solve\". "
            "A device and the thread on the host that serves it work at the same time; a rank of the host has but "
            "that. Kernels are timed in the iterations that were recorded, and scaled up to all."
        }
        (ranks(report))
    }
}

fn rates(report: &Report) -> Option<String> {
    let figures = &report.figures;
    let (micros, rate) = (figures.microseconds_per_iteration?, figures.gigabytes_per_second?);
    Some(format!("{} µs an iteration, which is {} GB/s by the byte rule.", three(micros), three(rate)))
}

fn command(report: &Report) -> Markup {
    let s = &report.seconds;
    let phases = [s.read, s.prepare, s.compile, s.upload, s.precond, s.tune, s.solve, s.gather, s.verify, s.write];
    let other = (s.total - phases.iter().sum::<f64>()).max(0.0);
    let all: Vec<f64> = phases.into_iter().chain([other]).collect();
    let bar =
        Bar { label: "total".into(), joined: false, pieces: all.iter().copied().enumerate().collect(), total: s.total };
    let cells: Vec<f64> = all.iter().copied().chain([s.total]).collect();
    let names: Vec<&str> = PHASES.iter().map(|(name, _)| *name).chain(["total"]).collect();
    let words: String =
        names.iter().zip(&cells).map(|(name, seconds)| format!("{name} {}, ", time(*seconds))).collect();
    html! {
            figure.broad {
                figcaption { b { "Time of the command" } (legend(PHASES)) }
                (bars("Time of the command", words.trim_end_matches(", "), PHASES, &[bar]))
            }
            (table(
                "Time of the command",
                "part",
                &names,
                &[
                    Column::new("s", cells.iter().map(|seconds| format!("{seconds:.4}")).collect()),
    Column::new("of\u{a0}the\u{a0}total", cells.iter().map(|seconds| fine_percent(seconds / s.total)).collect()),
                ],
            ))
        }
}

/// A rank's time in the iteration, in the order of [`PARTS`]; none for what it hasn't.
fn parts(rank: &Rank, solve: f64) -> [Option<f64>; 6] {
    let split = &rank.split;
    let [kernels, sums, halos, host_wait] =
        [split.kernels, split.sums, split.halos, split.host_wait].map(|time| time.as_secs_f64());
    let host = sums + halos + host_wait;
    let rest = |used: f64| (solve - used).max(0.0); // samples scaled up may exceed the whole
    if rank.info.index.is_some() {
        [Some(kernels), Some(rest(kernels)), Some(sums), Some(halos), Some(host_wait), Some(rest(host))]
    } else {
        [Some(kernels), None, Some(sums), Some(halos), None, Some(rest(host + kernels))]
    }
}

fn ranks(report: &Report) -> Markup {
    let solve = report.seconds.solve;
    let all: Vec<[Option<f64>; 6]> = report.ranks.iter().map(|rank| parts(rank, solve)).collect();
    let mut rows = Vec::new();
    for (k, (rank, parts)) in report.ranks.iter().zip(&all).enumerate() {
        let pieces = |kinds: std::ops::Range<usize>| kinds.filter_map(|kind| Some((kind, parts[kind]?))).collect();
        let label = format!("rank {k}");
        if rank.info.index.is_some() {
            rows.push(Bar { label: format!("{label} device"), joined: false, pieces: pieces(0..2), total: solve });
            rows.push(Bar { label: "host".into(), joined: true, pieces: pieces(2..6), total: solve });
        } else {
            rows.push(Bar { label: format!("{label} host"), joined: false, pieces: pieces(0..6), total: solve });
        }
    }
    let names: Vec<String> = (0..all.len()).map(|k| format!("rank {k}")).collect();
    let unit = Unit::of(solve);
    let heads = [
        ("device", "kernels"),
        ("device", "idle"),
        ("host", "sums"),
        ("host", "halos"),
        ("host", "wait for device"),
        ("host", "other"),
    ];
    let columns: Vec<Column> = heads
        .into_iter()
        .enumerate()
        .map(|(part, (group, head))| {
            let cell = |seconds: Option<f64>| {
                seconds.map_or(NONE.into(), |s| {
                    let share = if solve > 0.0 { format!(" ({})", fine_percent(s / solve)) } else { String::new() };
                    format!("{}{share}", three(unit.per_second * s))
                })
            };
            Column {
                group,
                head: format!("{head}, {}", unit.name),
                cells: all.iter().map(|parts| cell(parts[part])).collect(),
            }
        })
        .collect();
    let words: String = names.iter().zip(&all).map(|(name, parts)| in_words(name, parts)).collect();
    html! {
        @if solve > 0.0 {
            figure.broad {
                figcaption { b { "Time in the iteration, by rank" } (legend(PARTS)) }
                (bars("Time in the iteration, by rank", &words, PARTS, &rows))
            }
        }
        (table("Time in the iteration, by rank", "rank", &names, &columns))
    }
}

fn in_words(name: &str, parts: &[Option<f64>; 6]) -> String {
    let part = |(kind, seconds): (&(&str, &str), &Option<f64>)| Some(format!("{} {}", kind.0, time((*seconds)?)));
    let parts: Vec<String> = PARTS.iter().zip(parts).filter_map(part).collect();
    format!("{name}: {}. ", parts.join(", "))
}
