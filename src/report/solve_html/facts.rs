//! What was solved, how, and on what.

use declive::device::together;
use maud::{Markup, html};

use super::super::DECLIVE;
use super::super::html::figures::{fine_percent, three};
use super::super::html::table::{Column, scroll, table};
use super::super::recording::Driver;
use super::super::solve::{Considered, Moved, Rank, Report};
use super::super::units::{bytes, count, exact, figure, plural};

/// The outcome in two sentences.
pub(super) fn summary(report: &Report) -> Markup {
    let (matrix, options, figures) = (&report.matrix, &report.options, &report.figures);
    html! {
        p.summary { b { (report.verdict()) } }
        p.summary {
            (matrix.source) ", " (plural(matrix.rows, "row")) ", " (entries(matrix.nnz)) ", by " (report.methods())
            ", preconditioner " (options.precond) ", " (options.precision) ", on "
            (plural(report.ranks.len(), "rank")) ": " (together(report.ranks.iter().map(|rank| &*rank.device))) "."
            @if let (Some(micros), Some(rate)) = (figures.microseconds_per_iteration, figures.gigabytes_per_second) {
                " " (three(micros)) " µs an iteration, " (three(rate)) " GB/s."
            }
            @if let Some(switch) = report.switch() { " " (switch) "." }
        }
    }
}

fn entries(nnz: usize) -> String {
    if nnz == 1 { "1 entry".into() } else { format!("{} entries", count(nnz)) }
}

/// Names and values beside each other.
fn pairs(label: &str, heads: &[String], rows: &[(&str, Vec<String>)]) -> Markup {
    scroll(
        label,
        html! {
            table.facts {
                @if !heads.is_empty() {
                    thead { tr { td {} @for head in heads { th scope="col" { (head) } } } }
                }
                tbody {
                    @for (name, cells) in rows {
                        tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } }
                    }
                }
            }
        },
    )
}

/// The system, and the options in force.
pub(super) fn system(report: &Report) -> Markup {
    let (matrix, rhs, options) = (&report.matrix, &report.rhs, &report.options);
    let symmetry = match (matrix.symmetric, options.assume_symmetric) {
        (true, _) => "symmetric",
        (false, true) => "not symmetric, but assumed to be",
        (false, false) => "not symmetric",
    };
    let lengths = format!("{} to {}, mean {}", count(matrix.row_min), count(matrix.row_max), three(matrix.row_mean));
    let none_given = if rhs.default { " (none given)" } else { "" };
    let mut system = vec![
        ("Matrix", vec![matrix.source.clone()]),
        ("Rows", vec![count(matrix.rows)]),
        ("Entries", vec![count(matrix.nnz)]),
        ("Entries a row", vec![lengths]),
        ("Structure", vec![format!("{symmetry}; bandwidth {}", count(matrix.bandwidth))]),
        ("Order", vec![report.order.text.clone()]),
        ("Right-hand side", vec![format!("{}{none_given}, {}", rhs.source, plural(rhs.columns, "column"))]),
        ("Initial guess", vec![report.initial_guess()]),
    ];
    if matrix.duplicates > 0 {
        system.push(("Duplicates", vec![format!("{} of the file, added up", count(matrix.duplicates))]));
    }
    let limit = options.time_limit.map_or_else(|| "none".into(), |seconds| format!("{seconds} s"));
    let flag = if options.assume_symmetric { "yes" } else { "no" };
    let options = [
        ("--method", vec![options.method.into()]),
        ("--precond", vec![options.precond.into()]),
        ("--precision", vec![options.precision.into()]),
        ("--devices", vec![options.devices.clone()]),
        ("--tune", vec![options.tune.into()]),
        ("--format", vec![options.format.into()]),
        ("--reorder", vec![options.reorder.into()]),
        ("--exchange", vec![options.exchange.into()]),
        ("--on-failure", vec![options.on_failure.into()]),
        ("--rtol", vec![exact(options.rtol)]),
        ("--atol", vec![exact(options.atol)]),
        ("--max-iters", vec![count(options.max_iters)]),
        ("--time-limit", vec![limit]),
        ("--assume-symmetric", vec![flag.into()]),
        ("version", vec![format!("declive {DECLIVE}")]),
    ];
    html! {
        div.charts {
            div { h3 { "System" } (pairs("System", &[], &system)) }
            div { h3 { "Options in force" } (pairs("Options", &[], &options)) }
        }
    }
}

/// The ranks and their shares, their drivers, and what does not take part.
pub(super) fn devices(report: &Report, drivers: &[Option<Driver>]) -> Markup {
    let ranks = &report.ranks;
    let rows: Vec<String> = ranks.iter().enumerate().map(|(k, rank)| format!("{k}: {}", rank.label())).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let known = drivers_by_ranks(drivers);
    let heads: Vec<String> = known.iter().map(|(_, ranks)| ranks_in_words(ranks)).collect();
    let fact = |of: &dyn Fn(&Driver) -> String| known.iter().map(|(driver, _)| of(driver)).collect::<Vec<_>>();
    html! {
        (table("Ranks", "rank", &rows, &[
            Column::new("rows", ranks.iter().map(|r| count(r.rows)).collect()),
            Column::new("of\u{a0}all", ranks.iter().map(|r| fine_percent(r.row_share)).collect()),
            Column::new("entries", ranks.iter().map(|r| count(r.nnz)).collect()),
            Column::new("of\u{a0}all", ranks.iter().map(|r| fine_percent(r.nnz_share)).collect()),
            Column::new("of\u{a0}the\u{a0}work", ranks.iter().map(|r| fine_percent(r.share)).collect()),
            Column::new("share by", ranks.iter().map(|r| r.share_source.to_owned()).collect()),
            Column::new("halo, elements", ranks.iter().map(|r| count(r.halo)).collect()),
            Column::new("entries cut", ranks.iter().map(|r| count(r.cut)).collect()),
            Column::new("memory", ranks.iter().map(|r| bytes(r.bytes)).collect()),
            Column::new("stored as", ranks.iter().map(Rank::stored).collect()),
            Column::new("bytes of a product", ranks.iter().map(Rank::bytes_by_format).collect()),
        ]))
        @if !known.is_empty() {
            (pairs("Drivers", &heads, &[
                ("Platform", fact(&|d| d.platform.clone())),
                ("Vendor", fact(&|d| d.vendor.clone())),
                ("Driver", fact(&|d| d.driver.clone())),
                ("OpenCL", fact(&|d| d.opencl.clone())),
                ("Compute units", fact(&|d| format!("{} at {} MHz", count(d.compute_units), count(d.clock_mhz)))),
                ("Global memory", fact(&|d| bytes(d.memory_bytes))),
            ]))
        }
        @if ranks.len() > 1 { p.small { "Halos: " (report.halos()) "." } }
        @for line in moves(report) { p.small { (line) } }
        @if let Some(line) = expected(report) { p.small { (line) } }
        @if let Some(note) = &report.note { p.small { "Note: " (note) } }
        @if !report.failures.is_empty() {
            p { "Failed:" }
            ul {
                @for one in &report.failures {
                    li { (one.device) " (" (one.index) "), " (one.story()) ": " (one.error) }
                }
            }
        }
        @if !report.rejected.is_empty() {
            p.small { "Not used:" }
            ul.small {
                @for one in &report.rejected { li { (one.device) " (" (one.kind) " " (one.index) "): " (one.reason) } }
            }
        }
    }
}

/// When rows were moved in the course of a solve.
fn moves(report: &Report) -> Vec<String> {
    let line = |rhs: usize, moved: &Moved| {
        let shares: Vec<_> = moved.shares.iter().map(|&share| fine_percent(share)).collect();
        let (iterations, shares) = (count(moved.iterations), shares.join(", "));
        let seconds = moved.seconds;
        format!(
            "Right-hand side {rhs}: after {iterations} iterations rows were moved, to shares of {shares}; {seconds:.2} s"
        )
    };
    report.solves.iter().flat_map(|solve| solve.moves.iter().map(move |moved| line(solve.rhs, moved))).collect()
}

/// What was expected of an iteration, beside what was measured, and of other sets of devices.
fn expected(report: &Report) -> Option<String> {
    let forecast = &report.forecast;
    let expected = forecast.microseconds_per_iteration?;
    let measured = report.figures.microseconds_per_iteration;
    let measured = measured.map_or_else(String::new, |micros| format!("; it took {} µs", figure(micros)));
    let name = |device: &Option<usize>| device.map_or_else(|| "host".into(), |index| format!("[{index}]"));
    let set = |set: &Considered| {
        let names: Vec<_> = set.devices.iter().map(name).collect();
        let source = if set.remembered { ", as in a former solve" } else { "" };
        format!("{} {} µs{source}", names.join(" + "), figure(set.microseconds_per_iteration))
    };
    let sets: Vec<_> = forecast.considered.iter().map(set).collect();
    let sets = if sets.is_empty() { String::new() } else { format!(". Considered: {}", sets.join("; ")) };
    Some(format!("Expected of an iteration: {} µs{measured}{sets}", figure(expected)))
}

/// The drivers that are not the same, each with its ranks.
fn drivers_by_ranks(drivers: &[Option<Driver>]) -> Vec<(&Driver, Vec<usize>)> {
    let mut known: Vec<(&Driver, Vec<usize>)> = Vec::new();
    for (rank, driver) in drivers.iter().enumerate() {
        let Some(driver) = driver else { continue };
        match known.iter_mut().find(|(one, _)| *one == driver) {
            Some((_, ranks)) => ranks.push(rank),
            None => known.push((driver, vec![rank])),
        }
    }
    known
}

fn ranks_in_words(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers.join(", "))
}
