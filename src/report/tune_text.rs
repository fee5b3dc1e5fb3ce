//! What tuning found, for people.

use std::fmt;

use declive::device::together;
use declive::tune::store::{
    Entry, FormatEntry, IterationTimeEntry, LatencyEntry, LatencyKey, ProductEntry, SolveEntry, SolveKey, SolveTime,
};
use declive::tune::{KernelFound, Launch, Timing};

use super::layout::Text;
use super::tune::{Device, Kept, Products, Report};
use super::units::{count, figure, plural};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        for (k, device) in self.devices.iter().enumerate() {
            if k > 0 {
                text.gap();
            }
            device.describe(&mut text);
        }
        for Products { device, times, .. } in &self.products {
            let Some(best) = times.first() else { continue };
            text.gap();
            let rate = figure(1e-9 * best.flops_per_second);
            let tried = plural(times.len() as u64, "kind");
            text.paragraph(&format!(
                "Products of dense matrices on {device}: {rate} GFLOP/s with tiles {}, the best of {tried}.",
                best.tiles
            ));
        }
        f.write_str(&text.finish())
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        match self.removed {
            Some(0) => text.paragraph("Nothing was kept."),
            Some(files) => text.paragraph(&format!("Forgot what was kept of {}.", plural(files as u64, "device"))),
            None if self.devices.is_empty() => text.paragraph("Nothing is kept: 'declive tune' measures."),
            None => {}
        }
        for (k, device) in self.devices.iter().enumerate() {
            if k > 0 {
                text.gap();
            }
            let units = plural(device.device.compute_units, "compute unit");
            text.paragraph(&format!("{}, {}, {units}", device.device.name, device.device.platform));
            let header =
                ["kernel", "elements", "sums", "rows from", "entries from", "groups", "size", "time", "driver"];
            let left = [true, true, true, false, false, false, false, false, true];
            let rows: Vec<[String; 9]> = device.kernels.iter().map(kept_row).collect();
            text.table(header, left, &rows);
            if !rows.is_empty() && !device.formats.is_empty() {
                text.gap();
            }
            let rows: Vec<[String; 7]> = device.formats.iter().map(kept_format).collect();
            let header = ["format", "elements", "sums", "rows", "entries", "of", "driver"];
            text.table(header, [true, true, true, false, false, true, true], &rows);
            let together = device.latencies.iter().map(kept_latency);
            let together = together.chain(device.iteration_times.iter().map(kept_iteration_time));
            let together = together.chain(device.products.iter().map(kept_product));
            for line in together.chain(device.solves.iter().filter_map(kept_solve)) {
                text.gap();
                text.paragraph(&line);
            }
        }
        f.write_str(&text.finish())
    }
}

/// Sizes are those that a class begins with; times are microseconds.
fn kept_row(entry: &Entry) -> [String; 9] {
    let key = &entry.key;
    [
        key.kernel.clone(),
        key.element.clone(),
        key.sum.clone(),
        count(1u64 << key.size.rows_log2),
        key.size.entries_log2.map_or_else(String::new, |log2| count(1u64 << log2)),
        entry.launch.groups_per_unit.to_string(),
        size(entry.launch),
        micros(&entry.timing),
        key.driver.clone(),
    ]
}

/// The format of a block, and what it was compared with in microseconds.
fn kept_product(entry: &ProductEntry) -> String {
    let rate = figure(1e-9 * entry.flops_per_second);
    format!(
        "Products of dense matrices in {}: {rate} GFLOP/s with tiles {}; driver {}",
        entry.key.element, entry.tiles, entry.key.driver
    )
}

fn kept_latency(entry: &LatencyEntry) -> String {
    let LatencyKey { devices, method, .. } = &entry.key;
    let (ranks, micros) = (devices.len(), figure(1e6 * entry.seconds));
    format!(
        "{ranks} ranks take {micros} µs to synchronise by {method}: {}.",
        together(devices.iter().map(String::as_str))
    )
}

fn kept_iteration_time(entry: &IterationTimeEntry) -> String {
    let key = &entry.key;
    let system = format!("{} rows, {} entries, {}", count(key.rows), count(key.entries), key.method);
    let devices = together(key.devices.iter().map(String::as_str));
    let (what, seconds) = match entry.whole {
        0.0 => ("The kernels of an iteration", entry.kernels.iter().copied().fold(0.0, f64::max)),
        whole => ("An iteration", whole),
    };
    format!("{what} took {} µs ({system}) on {devices}.", figure(1e6 * seconds))
}

/// None where all was forgotten.
fn kept_solve(entry: &SolveEntry) -> Option<String> {
    let SolveKey { rows, entries, options, devices, .. } = &entry.key;
    let time = |time: &SolveTime| {
        let (iterations, seconds) = time.scaled_to(entry.decades);
        let iterations = plural(iterations, "iteration");
        format!("{} by {} {} s in {iterations}", time.method, time.precond, figure(seconds))
    };
    let times: Vec<String> = entry.times.iter().map(time).collect();
    let devices = together(devices.iter().map(String::as_str));
    let system = format!("{} rows, {} entries, {options}", count(*rows), count(*entries));
    (!times.is_empty()).then(|| format!("A solve took {} ({system}) on {devices}.", times.join(", ")))
}

fn kept_format(entry: &FormatEntry) -> [String; 7] {
    let timed =
        entry.candidates.iter().filter_map(|one| Some(format!("{} {}", one.format, micros(one.timing.as_ref()?))));
    let key = &entry.key;
    [
        entry.format.clone(),
        key.element.clone(),
        key.sum.clone(),
        count(key.rows),
        count(key.entries),
        timed.collect::<Vec<_>>().join(", "),
        key.driver.clone(),
    ]
}

/// The size of a group, the entries of a row block, and the work-items of a row: what there is of them.
fn size(launch: Launch) -> String {
    let Launch { group_size, block_nnz, items_per_row, .. } = launch;
    let mut text = group_size.to_string();
    if block_nnz > 0 {
        text += &format!("/{block_nnz}");
    }
    if items_per_row > 1 {
        text += &format!("/{items_per_row}");
    }
    text
}

impl Device {
    fn describe(&self, text: &mut Text) {
        let found = &self.found;
        let numbers: Vec<String> = self.indices.iter().map(|index| format!("[{index}]")).collect();
        text.paragraph(&format!("{} {} ({})", numbers.join(" "), found.device.name, found.device.kind));
        text.line("driver", &format!("{}, {}", found.device.driver, found.device.platform));
        let entries = count(found.nnz as u64);
        let halo = match found.halo {
            0 => String::new(),
            columns => format!(", a halo of {}", plural(columns as u64, "column")),
        };
        let rows = plural(found.order as u64, "row");
        text.line("matrix", &format!("{}, {rows}, {entries} entries{halo}", found.matrix));
        let limit = found.limit_bytes_per_second;
        text.line("copies", &format!("{} GB/s, read and written: the limit", figure(limit / 1e9)));
        let units = plural(found.device.compute_units, "compute unit");
        let seconds = figure(found.seconds);
        text.line("search", &format!("{}, {}, {units}; {seconds} s", found.search.name(), found.precision));
        text.gap();
        let header = ["kernel", "best", "groups", "size", "GB/s", "of limit", "default"];
        let left = [true, false, false, false, false, false, false];
        let rows: Vec<[String; 7]> = found.kernels.iter().map(|kernel| row(kernel, limit)).collect();
        text.table(header, left, &rows);
        text.gap();
        text.paragraph(
            "Times are microseconds a launch, medians by the device's clock. Groups are for each compute unit, at most; size is \
             that of a group, with the entries of a row block and, above 1, the work-items of a row. Default: \
             how many times as long the launch without tuning takes. What fits into caches goes beyond the limit.",
        );
    }
}

fn row(kernel: &KernelFound, limit: f64) -> [String; 7] {
    let launch = kernel.chosen.launch;
    [
        kernel.kernel.clone(),
        micros(&kernel.chosen.timing),
        launch.groups_per_unit.to_string(),
        size(launch),
        figure(kernel.bytes_per_second() / 1e9),
        format!("{:.0} %", 100.0 * kernel.bytes_per_second() / limit),
        format!("{:.2}", kernel.speedup()),
    ]
}

fn micros(timing: &Timing) -> String {
    figure(1e6 * timing.median)
}
