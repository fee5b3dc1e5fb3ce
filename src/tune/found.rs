//! What tuning found on a device, with the measurements behind it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::Info;
use crate::named::named;
use crate::timing::Timing;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Work-items of a work-group, a power of two; 1 where a work-item has a contiguous share of its own.
    pub group_size: usize,
    /// Work-groups for each compute unit of the device, if there is work for so many.
    pub groups_per_unit: usize,
    /// Entries of a row block, whose products wait in local memory; 0 for kernels that have no use for it.
    pub block_nnz: usize,
    /// Work-items that share a row of a product, at least: a row block has at most `group_size / items_per_row` rows. 1 for
    /// kernels that have no use for it.
    #[serde(default = "one")]
    pub items_per_row: usize,
}

/// What files have that know nothing of a parameter.
fn one() -> usize {
    1
}

/// One number of work-groups that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Work-groups for each compute unit.
    pub groups_per_unit: usize,
    /// Work-groups in all.
    pub groups: usize,
    /// The time with them.
    pub timing: Timing,
}

/// The times of a kernel over the number of work-groups, its other parameters fixed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// See [`Launch::group_size`].
    pub group_size: usize,
    /// See [`Launch::block_nnz`].
    pub block_nnz: usize,
    /// What was tried, by rising number of work-groups.
    pub points: Vec<Point>,
}

/// The launch parameters that are to be used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Chosen {
    /// The parameters.
    pub launch: Launch,
    /// Measured again after all candidates, in turns with the default.
    pub timing: Timing,
}

/// What was found for a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelFound {
    /// Its name.
    pub kernel: String,
    /// Bytes that one launch moves by the byte rule: each array that it reads counts once, and each that it writes.
    pub bytes: u64,
    /// Rows, or elements of a vector.
    pub elements: usize,
    /// All that was measured.
    pub curves: Vec<Curve>,
    /// What would be used without tuning, measured like `chosen`.
    pub default: Chosen,
    /// What was found.
    pub chosen: Chosen,
}

/// The facts about a device that times depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
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

impl From<&Info> for DeviceFacts {
    fn from(info: &Info) -> Self {
        Self {
            name: info.name.clone(),
            vendor: info.vendor.clone(),
            platform: info.platform.clone(),
            driver: info.driver.clone(),
            opencl: info.opencl.clone(),
            kind: info.kind.to_string(),
            compute_units: info.compute_units,
            clock_mhz: info.clock_mhz,
            memory_bytes: info.memory_bytes,
            local_memory_bytes: info.local_memory_bytes,
            max_work_group: info.max_work_group,
        }
    }
}

named! {
    /// How parameters are looked for: `refine` tries all sizes of groups and row blocks, then the other parameters of the best;
    /// `first-minimum` goes along the largest size of groups, or the usual one on CPUs (Bueno 2013, 4.3.3).
    Search, "search":
    Refine = "refine", "Numbers of groups that double, then what lies around the best, at several sizes; then the rest.";
    FirstMinimum = "first-minimum", "One more group for each unit until the time rises, at one size of groups (Bueno 2013, section 4.3.3).";
}

/// What was found on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

    /// How many times as fast as with the default parameters.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.default.timing.median / self.chosen.timing.median
    }
}

impl Timing {
    /// Whether the median is a time that a launch may take, and not what goes wrong in measuring.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        (1e-12..1e9).contains(&self.median)
    }
}

impl Curve {
    /// The least time; infinite if there is none.
    #[must_use]
    pub fn least(&self) -> f64 {
        least(self.points.iter().map(|point| &point.timing))
    }

    /// The time with so many groups a unit.
    #[must_use]
    pub fn at(&self, groups_per_unit: usize) -> Option<Point> {
        let is_it = |point: &&Point| point.groups_per_unit == groups_per_unit && point.timing.is_plausible();
        self.points.iter().find(is_it).copied()
    }
}

fn least<'a>(timings: impl Iterator<Item = &'a Timing>) -> f64 {
    timings.filter(|timing| timing.is_plausible()).map(|timing| timing.median).fold(f64::INFINITY, f64::min)
}

impl KernelFound {
    /// One curve for each size of groups, by rising size: that of the chosen row blocks, or else the fastest. None without a
    /// plausible time.
    #[must_use]
    pub fn curves_by_size(&self) -> Vec<&Curve> {
        let mut curves: BTreeMap<usize, &Curve> = BTreeMap::new();
        for curve in self.curves.iter().filter(|curve| curve.least().is_finite()) {
            let is_better = |old: &&Curve| {
                let [new, of_old] = [curve, *old].map(|curve| curve.block_nnz == self.chosen.launch.block_nnz);
                (new && !of_old) || (new == of_old && curve.least() < old.least())
            };
            if curves.get(&curve.group_size).is_none_or(is_better) {
                curves.insert(curve.group_size, curve);
            }
        }
        curves.into_values().collect()
    }

    /// The chosen launch as it was measured on its curve, in one sweep with its neighbours.
    #[must_use]
    pub fn chosen_on_curve(&self) -> Option<Point> {
        let Launch { group_size, groups_per_unit, .. } = self.chosen.launch;
        self.curves_by_size().iter().find(|curve| curve.group_size == group_size)?.at(groups_per_unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(median: f64) -> Timing {
        Timing { median, low: median, high: median, runs: 1 }
    }

    fn launch(group_size: usize, groups_per_unit: usize, [block_nnz, items_per_row]: [usize; 2]) -> Launch {
        Launch { group_size, groups_per_unit, block_nnz, items_per_row }
    }

    /// Times with 1, 2, 3, … groups a unit.
    fn curve(group_size: usize, block_nnz: usize, times: &[f64]) -> Curve {
        let point = |(k, &time): (usize, &f64)| Point { groups_per_unit: k + 1, groups: k + 1, timing: timing(time) };
        let points = times.iter().enumerate().map(point).collect();
        Curve { group_size, block_nnz, points }
    }

    /// A kernel whose chosen launch took 4.
    fn kernel(chosen: Launch, curves: Vec<Curve>) -> KernelFound {
        let chosen = Chosen { launch: chosen, timing: timing(4.0) };
        KernelFound {
            kernel: "spmv_dot_csr".into(),
            bytes: 100,
            elements: 1,
            curves,
            default: Chosen { launch: launch(256, 8, [2048, 1]), timing: timing(5.0) },
            chosen,
        }
    }

    #[test]
    fn a_curve_for_each_size() {
        let curves = vec![
            curve(64, 1024, &[1.0]),
            curve(64, 2048, &[3.5, 4.0]),
            curve(128, 4096, &[5.0]),
            curve(128, 1024, &[4.0]),
            curve(256, 2048, &[f64::NAN]),
        ];
        let kernel = kernel(launch(64, 1, [2048, 1]), curves);
        // as chosen; and of those that are not, the fastest
        let shown: Vec<f64> = kernel.curves_by_size().into_iter().map(Curve::least).collect();
        assert_eq!(shown, [3.5, 4.0]);
        assert_eq!(kernel.chosen_on_curve().unwrap().timing.median, 3.5);
    }
}
