//! What tuning found on a device, with the measurements behind it.

use serde::{Deserialize, Serialize};

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Work-items of a work-group, a power of two; 1 where a work-item has a contiguous share of its own.
    pub group_size: usize,
    /// Work-groups for each compute unit of the device, if there is work for so many.
    pub groups_per_unit: usize,
    /// Entries of a row block, whose products wait in local memory; 0 for kernels that have no use for it.
    pub block_nnz: usize,
}

/// Time of one launch, from several: seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The middle one.
    pub median: f64,
    /// A quarter took less.
    pub low: f64,
    /// A quarter took more.
    pub high: f64,
    /// How many launches.
    pub runs: usize,
}

/// One number of work-groups that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Work-groups for each compute unit.
    pub groups_per_unit: usize,
    /// Work-groups in all.
    pub groups: usize,
    /// The time with them.
    pub timing: Timing,
}

/// The times of a kernel over the number of work-groups, its other parameters fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// See [`Launch::group_size`].
    pub group_size: usize,
    /// See [`Launch::block_nnz`].
    pub block_nnz: usize,
    /// What was tried, by rising number of work-groups.
    pub points: Vec<Point>,
    /// The groups for each unit at which a search for the first local minimum, in steps of one from one on, ends; `None` if
    /// the steps were too coarse to tell.
    pub first_minimum: Option<usize>,
}

/// The launch parameters that are to be used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The parameters.
    pub launch: Launch,
    /// Measured again after all candidates, in turns with the default.
    pub timing: Timing,
}

/// What was found for a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelFound {
    /// Its name.
    pub kernel: String,
    /// Bytes that one launch moves by the byte rule: each array that it reads counts once, and each that it writes.
    pub bytes: u64,
    /// Floating-point operations of one launch.
    pub flops: u64,
    /// Rows, or elements of a vector.
    pub elements: usize,
    /// All that was measured.
    pub curves: Vec<Curve>,
    /// One work-group for each compute unit, of the largest size on a GPU and the usual one on a CPU: where the search of
    /// the dissertation begins.
    pub one_per_unit: Timing,
    /// What would be used without tuning, measured like `chosen`.
    pub default: Chosen,
    /// What was found.
    pub chosen: Chosen,
}

/// The facts about a device that launch parameters depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The device.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Its platform.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Version of OpenCL that it offers.
    pub opencl: String,
    /// `GPU` or `CPU`.
    pub kind: String,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock in MHz.
    pub clock_mhz: u32,
    /// Global memory.
    pub memory_bytes: u64,
    /// Local memory of a work-group.
    pub local_memory_bytes: u64,
    /// Largest work-group.
    pub max_work_group: usize,
}

/// How parameters are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Numbers of groups in steps that double, then what lies around the best; all sizes of groups.
    #[default]
    Refine,
    /// One more group for each unit at a time until the time rises; at the largest size of groups, or
    /// the usual one on CPUs (Bueno 2013, 4.3.3).
    FirstMinimum,
    /// Every number of groups for each unit, at every size of groups.
    Exhaustive,
}

impl Search {
    /// All of them, in the order of the help.
    pub const ALL: &[Self] = &[Self::Refine, Self::FirstMinimum, Self::Exhaustive];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refine => "refine",
            Self::FirstMinimum => "first-minimum",
            Self::Exhaustive => "exhaustive",
        }
    }

    /// One line of description.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Refine => "Numbers of groups that double, then what lies around the best; several sizes of groups.",
            Self::FirstMinimum => {
                "One more group for each unit until the time rises, at one size of groups (Bueno 2013, section 4.3.3)."
            }
            Self::Exhaustive => "Every number of groups for each unit, at every size of groups.",
        }
    }
}

/// What was found on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The device.
    pub device: DeviceFacts,
    /// `f64` or `f32`.
    pub precision: String,
    /// What the matrix is, or the block of one.
    pub matrix: String,
    /// Its rows.
    pub order: usize,
    /// Its entries.
    pub nnz: usize,
    /// Columns of a block that other ranks own; 0 for a whole matrix.
    #[serde(default)]
    pub halo: usize,
    /// How it was looked for.
    pub search: Search,
    /// Bytes a second of a plain copy on this device, in the same run.
    pub limit_bytes_per_second: f64,
    /// How long it took.
    pub seconds: f64,
    /// Each kernel.
    pub kernels: Vec<KernelFound>,
}

impl KernelFound {
    /// Bytes a second with the chosen parameters.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.chosen.timing.median
    }

    /// The part of the time that one group a unit takes which is saved: 1 − chosen / one a unit.
    #[must_use]
    pub fn saving(&self) -> f64 {
        1.0 - self.chosen.timing.median / self.one_per_unit.median
    }

    /// How many times as fast as with the default parameters.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.default.timing.median / self.chosen.timing.median
    }
}
