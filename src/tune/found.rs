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
    /// Iterations of the loop over elements that a work-item has under way, for which the compiler is asked; 1 leaves it
    /// to the compiler.
    #[serde(default = "one")]
    pub unroll: usize,
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
    /// The groups for each unit at which a search for the first local minimum, in steps of one from one on, ends; `None` if
    /// the steps were too coarse to tell.
    pub first_minimum: Option<usize>,
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
    /// All that was measured in turns with it, itself first: beside the default, what differs in
    /// [`items_per_row`](Launch::items_per_row) or [`unroll`](Launch::unroll), some of it in the number of groups as
    /// well.
    pub tried: Vec<Chosen>,
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

/// A launch parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// [`Launch::groups_per_unit`].
    GroupsPerUnit,
    /// [`Launch::group_size`].
    GroupSize,
    /// [`Launch::block_nnz`].
    BlockNnz,
    /// [`Launch::items_per_row`].
    ItemsPerRow,
    /// [`Launch::unroll`].
    Unroll,
}

impl Axis {
    /// All of them, in the order in which they are searched.
    pub const ALL: [Self; 5] = [Self::GroupsPerUnit, Self::GroupSize, Self::BlockNnz, Self::ItemsPerRow, Self::Unroll];

    /// Its name in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GroupsPerUnit => "groups a unit",
            Self::GroupSize => "group size",
            Self::BlockNnz => "row block",
            Self::ItemsPerRow => "items a row",
            Self::Unroll => "unroll",
        }
    }
}

/// Where the search for the first local minimum ends, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EarlyStop {
    /// Work-items of a group.
    pub group_size: usize,
    /// The number of groups there, with its time.
    pub point: Point,
    /// How much longer it takes than the chosen launch, as a part: time / chosen time − 1. Negative where it is faster, as
    /// far as that can be measured; 0 if it is the chosen one.
    pub cost: f64,
    /// Whether these are the chosen groups.
    pub is_chosen: bool,
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

    /// Where a search ends that adds one group a unit as long as the time falls, and what that costs. It goes along the
    /// largest groups; where groups are single work-items by default, as on CPUs, along those. `None` if the steps were too
    /// coarse to tell.
    #[must_use]
    pub fn early_stop(&self) -> Option<EarlyStop> {
        let curve = self.early_curve()?;
        let point = curve.at(curve.first_minimum?)?;
        let Launch { group_size, groups_per_unit, .. } = self.chosen.launch;
        let is_chosen = (group_size, groups_per_unit) == (curve.group_size, point.groups_per_unit);
        // both from the same sweep, if possible
        let best = self.chosen_on_curve().map_or(self.chosen.timing.median, |point| point.timing.median);
        let cost = if is_chosen { 0.0 } else { point.timing.median / best - 1.0 };
        Some(EarlyStop { group_size: curve.group_size, point, cost, is_chosen })
    }

    /// The curve that [`KernelFound::early_stop`] goes along.
    pub(super) fn early_curve(&self) -> Option<&Curve> {
        let curves = self.curves_by_size();
        let single = curves.iter().find(|curve| curve.group_size == 1 && self.default.launch.group_size == 1);
        single.or(curves.last()).copied()
    }

    /// What the chosen value of a parameter gains over the next best value that was tried: its time / the time with the
    /// chosen value − 1, both the least of those measured together. `None` if there is no other value. Below 0 where
    /// noise decided, a gain was too small to change the default for, or the row blocks of another product did not allow
    /// better.
    ///
    /// Together were measured: the numbers of groups of the chosen curve; all sizes of groups; all row blocks with groups of
    /// the chosen size; and in turns what differs from the chosen launch in the work-items of a row or in unrolling alone.
    #[must_use]
    pub fn gain(&self, axis: Axis) -> Option<f64> {
        let chosen = self.chosen.launch;
        let is_size = |curve: &&Curve| curve.group_size == chosen.group_size;
        let of_curves = |same: &dyn Fn(&&Curve) -> bool, among: &dyn Fn(&&Curve) -> bool| {
            let times = |wanted: bool| {
                let curves = self.curves.iter().filter(|curve| among(curve) && same(curve) == wanted);
                curves.map(Curve::least).fold(f64::INFINITY, f64::min)
            };
            [times(true), times(false)]
        };
        let in_turns = |with: &dyn Fn(Launch) -> Launch| {
            let is_other = |one: &&Chosen| one.launch != chosen && with(one.launch) == chosen;
            let others = self.tried.iter().filter(is_other).map(|one| &one.timing);
            [self.chosen.timing.median, least(others)]
        };
        let [time, other] = match axis {
            Axis::GroupsPerUnit => {
                let curves = self.curves_by_size();
                let points = &curves.iter().find(|curve| is_size(curve))?.points;
                let times = |wanted: bool| {
                    let is_it = |point: &&Point| (point.groups_per_unit == chosen.groups_per_unit) == wanted;
                    least(points.iter().filter(is_it).map(|point| &point.timing))
                };
                [times(true), times(false)]
            }
            Axis::GroupSize => of_curves(&is_size, &|_| true),
            Axis::BlockNnz => of_curves(&|curve| curve.block_nnz == chosen.block_nnz, &is_size),
            Axis::ItemsPerRow => in_turns(&|launch| Launch { items_per_row: chosen.items_per_row, ..launch }),
            Axis::Unroll => in_turns(&|launch| Launch { unroll: chosen.unroll, ..launch }),
        };
        let gain = other / time - 1.0;
        (time.is_finite() && gain.is_finite()).then_some(gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(median: f64) -> Timing {
        Timing { median, low: median, high: median, runs: 1 }
    }

    fn launch(group_size: usize, groups_per_unit: usize, [block_nnz, items_per_row, unroll]: [usize; 3]) -> Launch {
        Launch { group_size, groups_per_unit, block_nnz, items_per_row, unroll }
    }

    /// Times with 1, 2, 3, … groups a unit.
    fn curve(group_size: usize, block_nnz: usize, times: &[f64]) -> Curve {
        let point = |(k, &time): (usize, &f64)| Point { groups_per_unit: k + 1, groups: k + 1, timing: timing(time) };
        let points = times.iter().enumerate().map(point).collect();
        Curve { group_size, block_nnz, points, first_minimum: None }
    }

    /// A kernel whose chosen launch took 4.
    fn kernel(chosen: Launch, curves: Vec<Curve>) -> KernelFound {
        let chosen = Chosen { launch: chosen, timing: timing(4.0) };
        KernelFound {
            kernel: "spmv_dot_csr".into(),
            bytes: 100,
            flops: 10,
            elements: 1,
            curves,
            one_per_unit: timing(8.0),
            default: Chosen { launch: launch(256, 8, [2048, 1, 1]), timing: timing(5.0) },
            chosen,
            tried: vec![chosen],
        }
    }

    #[test]
    fn what_a_value_gains_over_the_next_best() {
        let curves = vec![
            curve(64, 1024, &[9.0, 6.0, 5.0]),
            curve(64, 2048, &[9.0, 4.4, 5.5]),
            curve(128, 2048, &[7.0, 6.6, f64::NAN]),
        ];
        let mut kernel = kernel(launch(64, 2, [2048, 2, 1]), curves);
        let gains =
            |kernel: &KernelFound| Axis::ALL.map(|axis| kernel.gain(axis).map(|gain| (1e6 * gain).round() / 1e6));
        assert_eq!(gains(&kernel), [Some(0.25), Some(0.5), Some(0.136364), None, None]);
        let others = [([2048, 1, 1], 4.2), ([2048, 4, 1], 5.0), ([2048, 2, 4], 3.9), ([1024, 2, 2], 1.0)];
        kernel.tried.extend(others.map(|(rest, time)| Chosen { launch: launch(64, 2, rest), timing: timing(time) }));
        assert_eq!(gains(&kernel)[3..], [Some(0.05), Some(-0.025)]);
        // more groups than there is work for, which the curve has not
        kernel.chosen.launch.groups_per_unit = 9;
        assert_eq!(gains(&kernel)[0], None);
        kernel.curves.clear();
        assert_eq!(gains(&kernel)[..3], [None; 3]);
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
        let kernel = kernel(launch(64, 1, [2048, 1, 2]), curves);
        // as chosen; and of those that are not, the fastest
        let shown: Vec<f64> = kernel.curves_by_size().into_iter().map(Curve::least).collect();
        assert_eq!(shown, [3.5, 4.0]);
        assert_eq!(kernel.chosen_on_curve().unwrap().timing.median, 3.5);
    }

    #[test]
    fn what_an_early_stop_costs() {
        let mut kernel =
            kernel(launch(64, 3, [0, 1, 1]), vec![curve(64, 0, &[9.0, 9.0, 4.5]), curve(128, 0, &[7.0, 6.75, 7.5])]);
        assert_eq!(kernel.early_stop(), None);
        kernel.curves[1].first_minimum = Some(2);
        let stop = kernel.early_stop().unwrap();
        assert_eq!((stop.group_size, stop.point.groups_per_unit, stop.cost, stop.is_chosen), (128, 2, 0.5, false));
        // from another sweep, if the chosen launch has no point
        kernel.chosen.launch.groups_per_unit = 7;
        assert_eq!(kernel.early_stop().unwrap().cost, 6.75 / 4.0 - 1.0);
        kernel.chosen.launch = launch(128, 2, [0, 1, 1]);
        let stop = kernel.early_stop().unwrap();
        assert_eq!((stop.cost, stop.is_chosen), (0.0, true));
    }
}
