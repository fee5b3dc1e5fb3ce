//! What a device is and can do.

use std::fmt;

use serde::Serialize;

use super::Identity;
use crate::named::as_text;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A GPU, or another accelerator that is programmed like one.
    Gpu,
    /// The host's processor through an OpenCL runtime.
    Cpu,
    /// The host's processor through this program's own threads.
    Host,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
            Self::Cpu => "CPU",
            Self::Host => "host",
        })
    }
}

/// The names of devices in a line; how many, where several have the same.
///
/// ```
/// assert_eq!(declive::device::together(["H200", "host", "H200"]), "2 × H200 + host");
/// ```
#[must_use]
pub fn together<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let text = |(name, count)| if count == 1 { String::from(name) } else { format!("{count} × {name}") };
    counts.into_iter().map(text).collect::<Vec<_>>().join(" + ")
}

/// The facts about an OpenCL device that matter here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Info {
    /// Its number in `declive devices`, over all platforms.
    pub index: usize,
    /// Name of its platform.
    pub platform: String,
    /// Name of the device.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Version of its driver.
    pub driver: String,
    /// Version of OpenCL that it offers.
    pub opencl: String,
    /// What it is.
    #[serde(serialize_with = "as_text")]
    pub kind: Kind,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock in MHz.
    pub clock_mhz: u32,
    /// Global memory.
    pub memory_bytes: u64,
    /// Largest single buffer, or what the environment variable `DECLIVE_MAX_BUFFER` gives in bytes, if that is less.
    pub max_buffer_bytes: u64,
    /// Local memory of a work-group.
    pub local_memory_bytes: u64,
    /// Largest work-group.
    pub max_work_group: usize,
    /// Whether it computes in double precision.
    #[serde(rename = "f64")]
    pub has_f64: bool,
    /// Why it can't be used at all, if so.
    pub unusable: Option<&'static str>,
    /// What tells it from others in the machine.
    #[serde(skip)]
    pub(super) identity: Identity,
    /// OpenCL's handle of the device, as a number.
    #[serde(skip)]
    pub(super) id: usize,
}

impl Info {
    /// Its number and its name, which together tell it from all others: `[1] NVIDIA H200`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("[{}] {}", self.index, self.name)
    }

    /// Whether it works through NVIDIA's driver. What is known of that driver alone is decided by this.
    fn is_of_nvidia(&self) -> bool {
        self.platform == "NVIDIA CUDA"
    }

    /// Whether the host may look at pinned memory that a transfer writes, before the transfer's event has come. OpenCL has the
    /// contents undefined until then. NVIDIA's driver (580.159) lets the device write such memory itself, over the bus, where the
    /// processor sees each word as it arrives; others may copy by the host or stage what they move, so there the event counts.
    pub(super) fn shows_transfers_under_way(&self) -> bool {
        self.is_of_nvidia()
    }

    /// Whether commands are with the device when the calls that enqueue them return: so it is with NVIDIA's driver (580.159),
    /// which takes 2 to 4 µs to say that there is nothing left to flush.
    pub(super) fn needs_no_flush(&self) -> bool {
        self.is_of_nvidia()
    }
}
