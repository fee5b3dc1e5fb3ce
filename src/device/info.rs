//! What a device is and can do.

use std::fmt;

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

/// The facts about an OpenCL device that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub kind: Kind,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock in MHz.
    pub clock_mhz: u32,
    /// Global memory.
    pub memory_bytes: u64,
    /// Largest single buffer.
    pub max_buffer_bytes: u64,
    /// Local memory of a work-group.
    pub local_memory_bytes: u64,
    /// Largest work-group.
    pub max_work_group: usize,
    /// Whether it computes in double precision.
    pub has_f64: bool,
}
