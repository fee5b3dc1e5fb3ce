//! What was tuned, on what, and what came of it in short.

use declive::tune::Found;
use maud::{Markup, html};

use super::figures::{factor, percent, three, time};
use super::table;
use crate::report::units::{bytes, count, plural};

/// The precision, in words.
fn precision(name: &str) -> &str {
    match name {
        "f64" => "double (f64)",
        "f32" => "single (f32)",
        other => other,
    }
}

/// Least, middle and largest of the numbers; none if there are none.
fn spread(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, values[values.len() / 2], *values.last()?])
}

/// A sentence for each device.
pub(super) fn summary(found: &[Found]) -> Markup {
    html! {
        @for one in found {
            p.summary {
                b { (one.device.name) } ": "
                @if let Some([least, middle, most]) = spread(one.kernels.iter().map(|kernel| kernel.speedup())) {
                    (plural(one.kernels.len(), "kernel"))
                    ", " (factor(least)) " to " (factor(most)) " times as fast as with the default launch (median "
                    (factor(middle)) ")"
                } @else { "no kernel was timed" }
                @let parts = one.kernels.iter().map(|kernel| kernel.bytes_per_second() / one.limit_bytes_per_second);
                @if let Some([least, _, most]) = spread(parts) {
                    ", at " (percent(least)) " to " (percent(most)) " of the bandwidth of a copy"
                }
                "."
            }
        }
    }
}

/// All facts, a column a device.
pub(super) fn devices(found: &[Found]) -> Markup {
    let device = |fact: fn(&Found) -> String| found.iter().map(fact).collect::<Vec<_>>();
    let facts = [
        ("Matrix", device(|one| one.matrix.clone())),
        ("Order", device(|one| count(one.order as u64))),
        ("Entries", device(|one| count(one.nnz as u64))),
        ("Halo", device(|one| plural(one.halo, "column"))),
        ("Precision", device(|one| precision(&one.precision).into())),
        ("Search", device(|one| format!("{}: {}", one.search.name(), one.search.describe()))),
        ("Search took", device(|one| time(one.seconds))),
        ("Copy bandwidth", device(|one| format!("{} GB/s", three(1e-9 * one.limit_bytes_per_second)))),
        ("Kind", device(|one| one.device.kind.clone())),
        ("Vendor", device(|one| one.device.vendor.clone())),
        ("Platform", device(|one| one.device.platform.clone())),
        ("Driver", device(|one| one.device.driver.clone())),
        ("OpenCL", device(|one| one.device.opencl.clone())),
        ("Compute units", device(|one| count(one.device.compute_units))),
        ("Highest clock", device(|one| format!("{} MHz", count(one.device.clock_mhz)))),
        ("Global memory", device(|one| bytes(one.device.memory_bytes))),
        ("Local memory", device(|one| format!("{} a work-group", bytes(one.device.local_memory_bytes)))),
        ("Largest work-group", device(|one| plural(one.device.max_work_group, "work-item"))),
    ];
    html! {
        @if !found.is_empty() {
            section id="devices" {
                h2 { "Matrix and devices" }
                (table::facts("Matrix and devices", &device(|one| one.device.name.clone()), &facts))
            }
        }
    }
}
