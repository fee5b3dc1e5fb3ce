//! How kernels are launched on a device: how large work-groups are, and how many.

use std::collections::BTreeMap;

use super::{PRODUCTS, dictionary, sell};
use crate::device::{Grid, Info, Kind};

/// How kernels are written for a device: see `cl/prelude.cl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Groups of one work-item, each with a contiguous chunk.
    Cpu,
    /// Groups of many work-items on neighbouring elements.
    Gpu,
}

impl Shape {
    /// The shape for a device. The environment variable `DECLIVE_SHAPE`, `cpu` or `gpu`, overrides it: a CPU's runtime can so
    /// check the kernels for GPUs.
    pub(crate) fn of(device: &Info) -> Self {
        let own = if device.kind == Kind::Gpu { Self::Gpu } else { Self::Cpu };
        match std::env::var("DECLIVE_SHAPE").as_deref() {
            Ok("gpu") => Self::Gpu,
            Ok("cpu") => Self::Cpu,
            Ok(other) => {
                log::warn!("DECLIVE_SHAPE is '{other}', which is neither cpu nor gpu: ignored");
                own
            }
            Err(_) => own,
        }
    }

    /// The shape of kernels with groups of this size.
    pub(crate) fn of_group(group_size: usize) -> Self {
        if group_size == 1 { Self::Cpu } else { Self::Gpu }
    }
}

/// How one kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Work-items of a group: a power of two, and 1 in the CPU shape alone.
    pub(crate) group_size: usize,
    /// At most so many groups.
    pub(crate) max_groups: usize,
}

impl Launch {
    /// The grid for `n` elements.
    pub(crate) fn grid(self, n: usize) -> Grid {
        let least = match Shape::of_group(self.group_size) {
            Shape::Cpu => 1024, // elements that are worth a group
            Shape::Gpu => self.group_size,
        };
        Grid { groups: n.div_ceil(least).clamp(1, self.max_groups), group_size: self.group_size }
    }

    /// The grid for `n` rows of vectors of so many columns, of which a work-item `loads` so many bytes.
    pub(crate) fn rows_grid<T>(self, n: usize, columns: usize, loads: usize) -> Grid {
        let each = match Shape::of_group(self.group_size) {
            Shape::Cpu => columns,
            Shape::Gpu => parts::<T>(columns, self.group_size, loads),
        };
        self.grid(n * each)
    }

    /// The grid for `count` row blocks.
    pub(crate) fn block_grid(self, count: usize) -> Grid {
        Grid { groups: count.clamp(1, self.max_groups), group_size: self.group_size }
    }
}

/// Bytes that a work-item of the GPU shape loads at once of a row of several columns, in a product: what was best on an H100
/// (`docs/measurements.md`). Where entries come from a dictionary, there is little else for work-items to share.
pub(crate) fn load_bytes(kernel: &str) -> usize {
    if dictionary::KERNELS.contains(&kernel) { 8 } else { 16 }
}

/// Neighbouring work-items, in groups of this size, that share a row of vectors of so many columns: each takes what it `loads` at once, or
/// more of them where the group would else not have a whole row. In the CPU shape one takes all.
pub(crate) fn parts<T>(columns: usize, group_size: usize, loads: usize) -> usize {
    columns.div_ceil(loads / size_of::<T>()).min(group_size)
}

/// Work-items that share a tile in the GPU shape, at most: see `cl/passes.cl`.
pub(crate) const MAX_LANES: usize = 256;
/// Elements that each of them has, at least, before there are more tiles than that:
const LANE_ELEMENTS: usize = 4;
const FEW_TILES: usize = 256;
/// Elements of a tile in the CPU shape, at least.
const TILE_ELEMENTS: usize = 1024;
/// Tiles for each compute unit, at most.
pub(crate) const TILES_PER_UNIT: usize = 4;

/// Work-items that share a tile, in groups of this size.
pub(crate) fn lanes(group_size: usize) -> usize {
    group_size.min(MAX_LANES)
}

/// The tiles of `n` elements on a device with so many compute units, in groups of this size: what partial sums depend on, beside
/// the elements. The number of groups does not matter, nor does their size from 256 on.
pub(crate) fn tiles(n: usize, units: usize, group_size: usize) -> usize {
    let tiles = match Shape::of_group(group_size) {
        Shape::Gpu => {
            let least = lanes(group_size);
            n.div_ceil(least).min(FEW_TILES).max(n.div_ceil(LANE_ELEMENTS * least))
        }
        Shape::Cpu => n.div_ceil(TILE_ELEMENTS),
    };
    tiles.clamp(1, TILES_PER_UNIT * units.max(1))
}

/// The launch parameters of all kernels on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Entries of a row block that fit into local memory.
    pub(crate) block_nnz: usize,
    /// Work-items that share a row of a product, at least.
    pub(crate) items_per_row: usize,
    /// Kernels with launches of their own.
    launches: BTreeMap<&'static str, Launch>,
    /// Passes: their number of groups and the elements under way matter little (`docs/measurements.md`).
    passes: Launch,
    /// All the rest.
    others: Launch,
}

/// Work-items of a group that stays on a device for several iterations, of which each compute unit has one.
pub(crate) fn persistent_group(device: &Info) -> usize {
    512.min(1 << device.max_work_group.max(1).ilog2())
}

impl Tuning {
    /// The same for all kernels.
    pub(crate) fn uniform(group_size: usize, block_nnz: usize, max_groups: usize) -> Self {
        let others = Launch { group_size, max_groups };
        Self { block_nnz, items_per_row: 1, launches: BTreeMap::new(), passes: others, others }
    }

    /// The same with other work-items for a row.
    pub(crate) fn sharing(self, items_per_row: usize) -> Self {
        Self { items_per_row, ..self }
    }

    /// Sane values for a device never seen.
    pub(crate) fn default_for(device: &Info, shape: Shape) -> Self {
        let units = device.compute_units.max(1) as usize;
        match shape {
            // A few chunks for each core even out what else the machine does.
            Shape::Cpu => Self::uniform(1, 1, 4 * units),
            // 256 rows of a 7-point stencil have 1792 entries; 16 KiB of products leave room for 8 groups on a compute unit.
            Shape::Gpu => {
                let group_size = 256.min(1 << device.max_work_group.max(1).ilog2()).max(2);
                let usual = Self::uniform(group_size, 2048.max(group_size), 8 * units);
                // Each group adds all partial sums of two kernels; and what it waits for before it stores anything, it should
                // wait for together.
                let passes = Launch { max_groups: 2 * units, ..usual.passes };
                let mut tuning = Self { passes, ..usual };
                // What was best on an H200: `docs/measurements.md`.
                let by_columns = dictionary::KERNELS.iter().filter(|kernel| kernel.ends_with("_pattern"));
                for kernel in by_columns.chain(sell::KERNELS) {
                    tuning.set(kernel, Launch { max_groups: 4 * units, ..tuning.others });
                }
                tuning
            }
        }
    }

    /// How a kernel is launched.
    pub(crate) fn launch(&self, kernel: &str) -> Launch {
        self.launches.get(kernel).copied().unwrap_or(self.others)
    }

    /// How passes are launched.
    pub(crate) fn passes(&self) -> Launch {
        self.passes
    }

    /// The same with passes launched so.
    #[cfg(test)]
    pub(crate) fn with_passes(self, passes: Launch) -> Self {
        Self { passes, ..self }
    }

    /// The same with all kernels in groups of this size.
    pub(super) fn in_groups_of(mut self, group_size: usize) -> Self {
        let all = self.launches.values_mut().chain([&mut self.passes, &mut self.others]);
        all.for_each(|launch| launch.group_size = group_size);
        self
    }

    /// Sets how a kernel is launched.
    pub(crate) fn set(&mut self, kernel: &'static str, launch: Launch) {
        self.launches.insert(kernel, launch);
    }

    /// The grid of a kernel for `n` elements.
    pub(crate) fn grid(&self, kernel: &str, n: usize) -> Grid {
        self.launch(kernel).grid(n)
    }

    /// The most groups of any kernel.
    pub(crate) fn max_groups(&self) -> usize {
        self.launches.values().chain([&self.passes, &self.others]).map(|launch| launch.max_groups).max().unwrap_or(1)
    }

    /// The most rows of a row block, so that each has its work-items, and the most entries unless it is a single row; `None`
    /// if all products are in the CPU shape, where local memory sets no limit.
    pub(crate) fn row_block(&self) -> Option<(usize, usize)> {
        let sizes = PRODUCTS.iter().map(|kernel| self.launch(kernel).group_size);
        let rows = sizes.filter(|&size| Shape::of_group(size) == Shape::Gpu).min()?;
        Some(((rows / self.items_per_row.max(1)).max(1), self.block_nnz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_its_own() {
        let mut tuning = Tuning::uniform(64, 128, 10);
        tuning.set("dot_partial", Launch { group_size: 256, max_groups: 3 });
        assert_eq!(tuning.grid("dot_partial", 10_000), Grid { groups: 3, group_size: 256 });
        assert_eq!(tuning.grid("next_iterate", 10_000), Grid { groups: 10, group_size: 64 });
        assert_eq!(tuning.grid("next_iterate", 65), Grid { groups: 2, group_size: 64 });
        assert_eq!((tuning.grid("next_iterate", 0).groups, tuning.max_groups()), (1, 10));
        assert_eq!(tuning.row_block(), Some((64, 128)));
        tuning.set("residual_csr", Launch { group_size: 32, max_groups: 20 });
        assert_eq!((tuning.row_block(), tuning.max_groups()), (Some((32, 128)), 20));
        assert_eq!(tuning.launch("residual_csr").block_grid(7), Grid { groups: 7, group_size: 32 });
        let mut mixed = Tuning::uniform(1, 512, 4);
        assert_eq!(mixed.row_block(), None);
        mixed.set("spmv_dot_csr", Launch { group_size: 64, max_groups: 2 });
        assert_eq!(mixed.row_block(), Some((64, 512)));
        let rows = |items_per_row| Tuning { items_per_row, ..mixed.clone() }.row_block();
        assert_eq!([1, 4, 64, 256].map(rows), [64, 16, 1, 1].map(|rows| Some((rows, 512))));
    }

    #[test]
    fn tiles_depend_on_the_elements_alone() {
        let of = |n| [1, 256, 512, 1024].map(|group_size| tiles(n, 132, group_size));
        assert_eq!(of(0), [1; 4]);
        assert_eq!(of(257), [1, 2, 2, 2]);
        assert_eq!(of(1 << 15), [32, 128, 128, 128]);
        assert_eq!(of(1 << 18), [256; 4]);
        assert_eq!(of(1_000_000), [528; 4]);
        assert_eq!(of(10_000_000), [4 * 132; 4]);
    }

    #[test]
    fn work_items_that_share_a_row() {
        let of = |group_size| {
            [1, 2, 4, 8, 16]
                .map(|columns| [parts::<f64>(columns, group_size, 16), parts::<f32>(columns, group_size, 16)])
        };
        assert_eq!(of(256), [[1, 1], [1, 1], [2, 1], [4, 2], [8, 4]]);
        assert_eq!(of(2), [[1, 1], [1, 1], [2, 1], [2, 2], [2, 2]]);
        assert_eq!(of(1), [[1, 1]; 5]);
        assert_eq!([parts::<f64>(16, 256, 8), parts::<f32>(16, 256, 8), parts::<f64>(1, 256, 8)], [16, 8, 1]);
        let grid = |group_size, n| Launch { group_size, max_groups: 9 }.rows_grid::<f64>(n, 8, 16).groups;
        assert_eq!([grid(256, 64), grid(256, 65), grid(256, 9000), grid(1, 128), grid(1, 129)], [1, 2, 9, 1, 2]);
    }

    #[test]
    fn work_items_with_shares_of_their_own_get_enough() {
        let tuning = Tuning::uniform(1, 1, 4);
        assert_eq!([0, 1024, 1025, 4096, 1 << 20].map(|n| tuning.grid("x", n).groups), [1, 1, 2, 4, 4]);
    }
}
