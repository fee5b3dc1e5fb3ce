//! How fast scans, compaction and sorting by key are.

use std::fmt;

use declive::device::Info;
use declive::experiments::primitives::{Case, Launch, Measured, Task};
use declive::tune::Timing;
use serde::Serialize;

use super::layout::Text;
use super::units::{bytes, count, figure, percent, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Measurements of each time.
    pub(crate) repeat: usize,
    pub(crate) devices: Vec<Device>,
    /// By numbers of elements, then tasks; the host before the devices.
    pub(crate) entries: Vec<Entry>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// An OpenCL device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Device {
    pub(crate) label: String,
    kind: String,
    /// What a plain copy reaches, read and written.
    copy_gigabytes_per_second: Option<f64>,
}

/// A task on the host or on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    task: Task,
    rows: usize,
    /// A label of one of the devices; none is the host.
    device: Option<String>,
    launch: Option<Launch>,
    /// In seconds.
    time: Timing,
    elements_per_second: f64,
    /// What kernels read and write.
    bytes: Option<u64>,
    /// Of the rate of a plain copy.
    part_of_copy: Option<f64>,
    /// On the device beside what goes in and comes out.
    space_bytes: Option<u64>,
    /// How many times faster than the host.
    speedup: Option<f64>,
    same_as_host: Option<bool>,
}

impl Device {
    /// A device that copies so many bytes a second.
    pub(crate) fn new(device: &Info, copy: Option<f64>) -> Self {
        let copy_gigabytes_per_second = copy.map(|rate| 1e-9 * rate);
        Self { label: device.label(), kind: device.kind.to_string(), copy_gigabytes_per_second }
    }
}

impl Entry {
    /// The host's own way.
    pub(crate) fn of_host(case: &Case) -> Self {
        Self {
            task: case.task,
            rows: case.rows,
            device: None,
            launch: None,
            time: case.host,
            elements_per_second: case.rows as f64 / case.host.median,
            bytes: None,
            part_of_copy: None,
            space_bytes: None,
            speedup: None,
            same_as_host: None,
        }
    }

    /// A device, launched in one way.
    pub(crate) fn of_device(case: &Case, device: &Device, measured: Measured) -> Self {
        let Measured { launch, time, bytes, space_bytes, same_as_host, .. } = measured;
        let rate = 1e-9 * bytes as f64 / time.median;
        Self {
            device: Some(device.label.clone()),
            launch: Some(launch),
            time,
            elements_per_second: case.rows as f64 / time.median,
            bytes: Some(bytes),
            part_of_copy: device.copy_gigabytes_per_second.map(|copy| rate / copy),
            space_bytes: Some(space_bytes),
            speedup: Some(case.host.median / time.median),
            same_as_host: Some(same_as_host),
            ..Self::of_host(case)
        }
    }

    /// Whether the result differs from the host's.
    pub(crate) fn is_wrong(&self) -> bool {
        self.same_as_host == Some(false)
    }

    /// `16 × 64, 8 bits`: elements for each work-item, groups for each compute unit, bits of a digit.
    fn launch(&self) -> String {
        let Some(Launch { items, groups_per_unit, digit_bits, .. }) = self.launch else {
            return String::new();
        };
        let digit = digit_bits.map_or_else(String::new, |bits| format!(", {bits} bits"));
        format!("{items} × {groups_per_unit}{digit}")
    }

    fn cells(&self, has_launches: bool) -> Vec<String> {
        let or_none = |value: Option<String>| value.unwrap_or_default();
        let rate = self.bytes.map(|bytes| figure(1e-9 * bytes as f64 / self.time.median));
        let mut cells = vec![self.task.to_string(), count(self.rows)];
        cells.extend(has_launches.then(|| self.launch()));
        cells.extend([figure(1e6 * self.time.median), figure(1e-6 * self.elements_per_second)]);
        if self.device.is_some() {
            cells.extend([
                or_none(rate),
                or_none(self.part_of_copy.map(|part| percent(part, 1.0))),
                or_none(self.space_bytes.map(bytes)),
                or_none(self.speedup.map(figure)),
                if self.is_wrong() { "WRONG".into() } else { String::new() },
            ]);
        }
        cells
    }
}

impl Report {
    /// One row for each entry of a device, or of the host.
    fn table(&self, text: &mut Text, device: Option<&str>) {
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| entry.device.as_deref() == device).collect();
        if entries.is_empty() {
            return;
        }
        let is_same = |a: &&Entry, b: &&Entry| (a.task, a.rows) == (b.task, b.rows);
        let has_launches = entries.windows(2).any(|pair| is_same(&pair[0], &pair[1]));
        let mut head = vec!["task", "elements"];
        head.extend(has_launches.then_some("launch"));
        head.extend(["µs", "million/s"]);
        if device.is_some() {
            head.extend(["GB/s", "of copy", "space", "× host", ""]);
        }
        let head: Vec<String> = head.into_iter().map(String::from).collect();
        let rows = entries.iter().map(|entry| entry.cells(has_launches));
        text.columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let runs = plural(self.repeat, "measurement");
        text.paragraph(&format!("Scans, compaction and sorting by key: medians of {runs}."));
        for Device { label, kind, copy_gigabytes_per_second } in &self.devices {
            let copies =
                copy_gigabytes_per_second.map_or_else(String::new, |rate| format!(", copies {} GB/s", figure(rate)));
            text.section(&format!("{label} ({kind}){copies}"));
            self.table(&mut text, Some(label));
        }
        text.section("The host: sorts by all threads, the rest by one");
        self.table(&mut text, None);
        if !self.notes.is_empty() {
            text.section("Notes");
        }
        self.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}
