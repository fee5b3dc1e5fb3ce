//! How fast tridiagonal systems are solved.

use std::fmt;

use declive::device::Info;
use declive::experiments::tridiagonal::Measured;
use declive::solve::Precision;
use declive::tridiagonal::{Layout, Shape};
use serde::Serialize;

use super::layout::Text;
use super::units::{count, figure, percent, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Measurements of each time.
    repeat: usize,
    precision: Precision,
    layout: Layout,
    /// Rows of a block; 1 if coefficients are numbers.
    block: usize,
    pub(crate) devices: Vec<Device>,
    pub(crate) entries: Vec<Entry>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// An OpenCL device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Device {
    label: String,
    kind: String,
    /// What a plain copy reaches, read and written.
    copy_gigabytes_per_second: Option<f64>,
}

/// A batch by a method, on the host or on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    systems: usize,
    size: usize,
    /// A label of one of the devices; none is the host.
    device: Option<String>,
    #[serde(flatten)]
    measured: Measured,
    rows_per_second: f64,
    gigabytes_per_second: Option<f64>,
    /// Of the rate of a plain copy.
    part_of_copy: Option<f64>,
    is_wrong: bool,
}

impl Device {
    /// A device that copies so many bytes a second.
    pub(crate) fn new(device: &Info, copy: Option<f64>) -> Self {
        let copy_gigabytes_per_second = copy.map(|rate| 1e-9 * rate);
        Self { label: device.label(), kind: device.kind.to_string(), copy_gigabytes_per_second }
    }
}

impl Entry {
    /// What was measured on a device, or on the host.
    pub(crate) fn new(shape: Shape, device: Option<&Device>, measured: Measured) -> Self {
        let rate = measured.bytes.map(|bytes| 1e-9 * bytes as f64 / measured.time.median);
        let copy = device.and_then(|device| device.copy_gigabytes_per_second);
        Self {
            systems: shape.systems,
            size: shape.size,
            device: device.map(|device| device.label.clone()),
            rows_per_second: shape.len() as f64 / measured.time.median,
            gigabytes_per_second: rate,
            part_of_copy: rate.zip(copy).map(|(rate, copy)| rate / copy),
            // roundings of single precision, of numbers up to 5
            is_wrong: measured.error.is_nan() || measured.error > 1e-3,
            measured,
        }
    }

    fn cells(&self) -> Vec<String> {
        let or_none = |value: Option<String>| value.unwrap_or_default();
        let micros = |seconds: f64| figure(1e6 * seconds);
        let mut cells = vec![
            count(self.systems),
            count(self.size),
            self.measured.method.to_string(),
            micros(self.measured.time.median),
            or_none(self.measured.with_transfers.map(|time| micros(time.median))),
            figure(1e-6 * self.rows_per_second),
        ];
        cells.extend([
            or_none(self.gigabytes_per_second.map(figure)),
            or_none(self.part_of_copy.map(|part| percent(part, 1.0))),
            format!("{:.1e}", self.measured.error),
            if self.is_wrong { "WRONG".into() } else { String::new() },
        ]);
        cells
    }
}

impl Report {
    /// A report without measurements.
    pub(crate) fn new(repeat: usize, precision: Precision, (layout, block): (Layout, usize)) -> Self {
        Self { repeat, precision, layout, block, devices: Vec::new(), entries: Vec::new(), notes: Vec::new() }
    }

    /// Whether a method made what is no solution.
    pub(crate) fn has_wrong(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_wrong)
    }

    fn table(&self, text: &mut Text, device: Option<&str>) {
        let head =
            ["systems", "rows", "method", "µs", "with transfers", "million rows/s", "GB/s", "of copy", "error", ""];
        let entries = self.entries.iter().filter(|entry| entry.device.as_deref() == device).map(Entry::cells);
        let rows: Vec<_> = std::iter::once(head.map(String::from).to_vec()).chain(entries).collect();
        if rows.len() > 1 {
            text.columns(&rows);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let (runs, precision, layout) = (plural(self.repeat, "measurement"), self.precision, self.layout);
        let blocks = if self.block > 1 { format!(" of blocks of {} rows", self.block) } else { String::new() };
        text.paragraph(&format!("Tridiagonal systems{blocks} in {precision}, {layout}: medians of {runs}."));
        for Device { label, kind, copy_gigabytes_per_second } in &self.devices {
            let copies =
                copy_gigabytes_per_second.map_or_else(String::new, |rate| format!(", copies {} GB/s", figure(rate)));
            text.section(&format!("{label} ({kind}){copies}"));
            self.table(&mut text, Some(label));
        }
        text.section("The host, by all threads");
        self.table(&mut text, None);
        if !self.notes.is_empty() {
            text.section("Notes");
        }
        self.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}
