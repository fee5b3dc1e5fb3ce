//! What was solved, how, and on what.

use declive::device::together;
use declive::distributed::ProcessInfo;
use declive::solve::DeviceSet;
use declive::tune::DeviceFacts;
use maud::{Markup, html};

use super::super::DECLIVE;
use super::super::html::figures::{fine_percent, three};
use super::super::html::table::{Column, facts, table};
use super::super::solve::{Options, Rank, Report};
use super::super::solve_text::multigrid;
use super::super::units::{bytes, count, exact, figure, plural};

/// The outcome in two sentences.
pub(super) fn summary(report: &Report) -> Markup {
    let (matrix, setup, figures) = (&report.matrix, &report.options.setup, &report.figures);
    html! {
        p.summary { b { (report.verdict()) } }
        p.summary {
            (matrix.source) ", " (plural(matrix.rows, "row")) ", " (plural(matrix.nnz, "entry")) ", by " (report.methods())
            ", preconditioner " (setup.precond) ", " (setup.precision) ", on "
            (plural(report.ranks.len(), "rank")) ": " (together(report.ranks.iter().map(|rank| &*rank.info.device))) "."
            @if let (Some(micros), Some(rate)) = (figures.microseconds_per_iteration, figures.gigabytes_per_second) {
                " " (three(micros)) " µs an iteration, " (three(rate)) " GB/s."
            }
            @for line in report.remembered().into_iter().chain(report.switches()) { " " (line) "." }
        }
    }
}

/// The system, and the options in force.
pub(super) fn system(report: &Report) -> Markup {
    let (matrix, rhs, Options { setup, stop, .. }) = (&report.matrix, &report.rhs, &report.options);
    let lengths = format!("{} to {}, mean {}", count(matrix.row_min), count(matrix.row_max), three(matrix.row_mean));
    let none_given = if rhs.default { " (none given)" } else { "" };
    let mut system = vec![
        ("Matrix", vec![matrix.source.clone()]),
        ("Rows", vec![count(matrix.rows)]),
        ("Entries", vec![count(matrix.nnz)]),
        ("Entries a row", vec![lengths]),
        ("Structure", vec![report.structure()]),
        ("Order", vec![report.order.text.clone()]),
        ("Right-hand side", vec![format!("{}{none_given}, {}", rhs.source, plural(rhs.columns, "column"))]),
        ("Initial guess", vec![report.initial_guess()]),
    ];
    system.extend(report.host_memory.text().map(|memory| ("Host memory", vec![memory])));
    if let Some(equilibrated) = &report.equilibrated {
        system.push(("Transversal", vec![equilibrated.to_string()]));
    }
    if let Some(hierarchy) = &report.hierarchy {
        system.push(("Multigrid", vec![multigrid(hierarchy)]));
    }
    system.extend(report.inverse().map(|inverse| ("Inverse", vec![inverse])));
    if let Some(form) = report.real_form() {
        system.push(("Solved as", vec![form]));
    }
    if matrix.duplicates > 0 {
        system.push(("Duplicates", vec![format!("{} of the file, added up", count(matrix.duplicates))]));
    }
    let limit = stop.time_limit.map_or_else(|| "none".into(), |limit| format!("{} s", limit.as_secs_f64()));
    let flag = if setup.assume_symmetric { "yes" } else { "no" };
    let options = [
        ("--method", vec![setup.method.to_string()]),
        ("--precond", vec![setup.precond.to_string()]),
        ("--restart", vec![setup.restart.to_string()]),
        ("--precision", vec![setup.precision.to_string()]),
        ("--devices", vec![setup.devices.to_string()]),
        ("--tune", vec![setup.tune.to_string()]),
        ("--format", vec![setup.format.to_string()]),
        ("--reorder", vec![setup.reorder.to_string()]),
        ("--exchange", vec![setup.exchange.to_string()]),
        ("--on-failure", vec![setup.on_failure.to_string()]),
        ("--rtol", vec![exact(stop.rtol)]),
        ("--atol", vec![exact(stop.atol)]),
        ("--backward-error", vec![exact(stop.backward_error)]),
        ("--max-iters", vec![count(stop.max_iters.unwrap_or_default())]),
        ("--time-limit", vec![limit]),
        ("--assume-symmetric", vec![flag.into()]),
        ("version", vec![format!("declive {DECLIVE}")]),
    ];
    html! {
        div.charts {
            div { h3 { "System" } (facts("System", &[], &system)) }
            div { h3 { "Options in force" } (facts("Options", &[], &options)) }
        }
    }
}

/// All processes, if there are several, whose first one's ranks the rest of the page is about.
fn processes(all: &[ProcessInfo]) -> Markup {
    let names: Vec<String> = all.iter().map(|one| one.process.to_string()).collect();
    let numbers = |of: fn(&ProcessInfo) -> usize| all.iter().map(|one| count(of(one))).collect();
    let peak = |one: &ProcessInfo| one.peak_bytes.map_or_else(String::new, bytes);
    html! {
        @if !all.is_empty() {
            (table("Processes", "process", &names, &[
                Column::new("rows", numbers(|one| one.rows)),
                Column::new("entries", numbers(|one| one.nnz)),
                Column::new("halo, elements", numbers(|one| one.halo)),
                Column::new("peak memory", all.iter().map(peak).collect()),
                Column::new("host", all.iter().map(|one| one.host.clone()).collect()),
                Column::new("devices", all.iter().map(|one| one.devices.join(" + ")).collect()),
            ]))
            p.small { "Ranks, kernels and times of this page are those of process 0." }
        }
    }
}

/// The processes, the ranks and their shares, their drivers, and what does not take part.
pub(super) fn devices(report: &Report, drivers: &[Option<DeviceFacts>]) -> Markup {
    let ranks = &report.ranks;
    let rows: Vec<String> = ranks.iter().enumerate().map(|(k, rank)| format!("{k}: {}", rank.label())).collect();
    let known = drivers_by_ranks(drivers);
    let heads: Vec<String> = known.iter().map(|(_, ranks)| ranks_in_words(ranks)).collect();
    let fact = |of: &dyn Fn(&DeviceFacts) -> String| known.iter().map(|(driver, _)| of(driver)).collect::<Vec<_>>();
    html! {
        (processes(&report.processes))
        (table("Ranks", "rank", &rows, &[
            Column::new("rows", ranks.iter().map(|r| count(r.info.rows)).collect()),
            Column::new("of\u{a0}all", ranks.iter().map(|r| fine_percent(r.row_share)).collect()),
            Column::new("entries", ranks.iter().map(|r| count(r.info.nnz)).collect()),
            Column::new("of\u{a0}all", ranks.iter().map(|r| fine_percent(r.nnz_share)).collect()),
            Column::new("of\u{a0}the\u{a0}work", ranks.iter().map(|r| fine_percent(r.info.share)).collect()),
            Column::new("share by", ranks.iter().map(|r| r.info.share_source.to_string()).collect()),
            Column::new("halo, elements", ranks.iter().map(|r| count(r.info.halo)).collect()),
            Column::new("entries cut", ranks.iter().map(|r| count(r.info.cut)).collect()),
            Column::new("memory", ranks.iter().map(|r| bytes(r.info.bytes)).collect()),
            Column::new("stored as", ranks.iter().map(Rank::stored).collect()),
            Column::new("bytes of a product", ranks.iter().map(Rank::bytes_by_format).collect()),
        ]))
        @if !known.is_empty() {
            (facts("Drivers", &heads, &[
                ("Platform", fact(&|d| d.platform.clone())),
                ("Vendor", fact(&|d| d.vendor.clone())),
                ("Driver", fact(&|d| d.driver.clone())),
                ("OpenCL", fact(&|d| d.opencl.clone())),
                ("Compute units", fact(&|d| format!("{} at {} MHz", count(d.compute_units), count(d.clock_mhz)))),
                ("Global memory", fact(&|d| bytes(d.memory_bytes))),
            ]))
        }
        @if ranks.len() > 1 { p.small { "Halos: " (report.halos()) "." } }
        @for line in report.moves() { p.small { "Moved " (line) "." } }
        @if let Some(line) = expected(report) { p.small { (line) } }
        @if let Some(note) = &report.note { p.small { "Note: " (note) } }
        @if !report.failures.is_empty() {
            p { "Failed:" }
            ul {
                @for one in &report.failures {
                    li { (one.name()) ", " (one.story()) ": " (one.error) }
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

/// What was expected of an iteration, beside what was measured, and of other sets of devices.
fn expected(report: &Report) -> Option<String> {
    let forecast = &report.forecast;
    let expected = forecast.seconds?;
    let measured = report.figures.microseconds_per_iteration;
    let measured = measured.map_or_else(String::new, |micros| format!("; it took {} µs", figure(micros)));
    let name = |device: &Option<usize>| device.map_or_else(|| "host".into(), |index| format!("[{index}]"));
    let set = |set: &DeviceSet| {
        let names: Vec<_> = set.devices.iter().map(name).collect();
        let source = if set.is_remembered { ", as in a former solve" } else { "" };
        format!("{} {} µs{source}", names.join(" + "), figure(1e6 * set.seconds))
    };
    let sets: Vec<_> = forecast.considered.iter().map(set).collect();
    let sets = if sets.is_empty() { String::new() } else { format!(". Considered: {}", sets.join("; ")) };
    Some(format!("Expected of an iteration: {} µs{measured}{sets}", figure(1e6 * expected)))
}

/// The drivers that are not the same, each with its ranks.
fn drivers_by_ranks(drivers: &[Option<DeviceFacts>]) -> Vec<(&DeviceFacts, Vec<usize>)> {
    let mut known: Vec<(&DeviceFacts, Vec<usize>)> = Vec::new();
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
