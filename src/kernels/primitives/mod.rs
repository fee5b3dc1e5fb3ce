//! Scans, compaction and sorting by key: what sparse matrices are set up of. Unlike the other kernels they have no
//! precision, so that they are compiled once for a device.
//!
//! Arrays have 2³² − 1 elements at most. All is deterministic: the results are the same for any [`Tiling`].

pub(crate) mod compact;
pub(crate) mod scan;
pub(crate) mod sort;

use super::{Argument, Element, PRELUDE, Shape, USUAL_STD, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Info, Kernel, Program};
use crate::error::Result;

/// Elements of a tile for each work-item in the GPU shape, as a rule.
pub(crate) const ITEMS: usize = 16;
/// Groups for each compute unit, as a rule, but in sorts: several times what runs at once, so that few units are idle at
/// the end.
pub(crate) const GROUPS_PER_UNIT: usize = 32;

const SHARES: &str = include_str!("../../../cl/shares.cl");

/// An unsigned number of 32 or 64 bits.
pub(crate) trait Word: Element {}
impl Word for u32 {}
impl Word for u64 {}

/// How elements are shared among groups: see `cl/shares.cl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Work-items of a group: a power of two from 32 on, or, in the CPU shape, 1.
    pub(crate) group_size: usize,
    /// Elements of a tile for each work-item: 8 or 16, or any number in the CPU shape.
    pub(crate) items: usize,
    /// At most so many groups.
    pub(crate) max_groups: usize,
}

impl Tiling {
    /// With these elements for each work-item and groups for each compute unit in the GPU shape. In the CPU shape they
    /// don't matter.
    pub(crate) fn new(device: &Info, shape: Shape, items: usize, groups_per_unit: usize) -> Self {
        let units = device.compute_units.max(1) as usize;
        let group_size = 256.min(1 << device.max_work_group.max(1).ilog2());
        match shape {
            Shape::Gpu if group_size >= 32 => Self { group_size, items, max_groups: groups_per_unit * units },
            // elements that are worth a group, and a few shares for each core, as in `Tuning`
            _ => Self { group_size: 1, items: 4096, max_groups: 4 * units },
        }
    }

    /// Groups for `n` elements: each has a tile at least, if there are elements.
    fn groups(self, n: usize) -> usize {
        n.div_ceil(self.group_size * self.items).clamp(1, self.max_groups)
    }

    fn grid(self, n: usize) -> Grid {
        Grid { groups: self.groups(n), group_size: self.group_size }
    }

    /// Compiles the kernels of a file, which comes behind those for all, with options of its own; or takes what was
    /// compiled in a former run.
    fn program(self, ctx: &Context, (name, file): (&str, &str), more: &str) -> Result<Program> {
        let files = [("prelude", PRELUDE), ("shares", SHARES), (name, file)];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let usual = options_of::<f32, f32>(USUAL_STD, ctx.info(), self.group_size, self.group_size);
        ctx.build(&source, &format!("{usual} -D ITEMS={}{more}", self.items))
    }
}

/// A kernel of one of the programs.
fn kernel(ctx: &Context, program: &Program, name: &'static str) -> Result<Kernel> {
    ctx.kernel(program, name, ["float", "float"])
}

/// Sums over the shares of an array, for scans and compaction of any number of elements.
pub(crate) struct ShareSums {
    sums: DeviceVec<u64>,
    /// The shares of the last array.
    shares: usize,
}

impl ShareSums {
    /// Room for the shares of this tiling.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn new(ctx: &Context, tiling: Tiling) -> Result<Self> {
        Ok(Self { sums: DeviceVec::zeros(ctx, tiling.max_groups + 1, "sums of shares")?, shares: 0 })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.sums)
    }

    /// The sum of all elements of the last array that was scanned, or the number of its flags that are set. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn total(&self, ctx: &Context) -> Result<u64> {
        let mut total = [0];
        self.sums.read(ctx, self.shares, &mut total)?;
        Ok(total[0])
    }

    /// Scans the sums that kernels have left for `shares` shares.
    fn scan(&mut self, ctx: &Context, kernel: &Kernel, (shares, group_size): (usize, usize)) -> Result<()> {
        assert!(shares < self.sums.len());
        self.shares = shares;
        let grid = Grid { groups: 1, group_size };
        // SAFETY: types as declared in the file; one number for each share, and one more, as checked.
        unsafe { launch(ctx, kernel, grid, &[&count(shares), &self.sums]) }
    }
}

/// Bytes of an array.
fn bytes<T: Element>(v: &DeviceVec<T>) -> u64 {
    (v.len() * size_of::<T>()) as u64
}

/// A count of elements as these kernels take it.
///
/// # Panics
/// Above 2³² − 1.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or_else(|_| panic!("{n} elements, above the most that are scanned or sorted"))
}
