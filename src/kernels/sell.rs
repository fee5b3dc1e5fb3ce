//! Rows in slices, as `cl/sell.cl` takes them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::products::{InPersistent, PERSISTENT_BYTES, ProductRows, Products};
use super::{Argument, Launch, MAX_COLUMNS, Tuning, load_bytes, parts};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = NAMES.as_flattened();

/// Those for slices, and those that complete the long rows.
const NAMES: &[[&str; 3]] = &[
    ["spmv_sell", "spmv_dot_sell", "residual_sell"],
    ["spmv_sell_parts", "spmv_dot_sell_parts", "residual_sell_parts"],
];

/// A block of rows on a device, as the kernels take it. Made by `crate::operator::sell` alone, which vouches for it: what slices say of their data lies in that of their segment; each row but the long ones
/// is in one slice, pieces of long ones have a part each, and columns are below `n_cols`.
pub(crate) struct SellBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    /// Rows and columns of a block; 1 if there are none.
    pub(crate) block: u32,
    /// What values that are stored as other numbers are multiplied by.
    pub(crate) scale: T,
    /// Five numbers a slice.
    pub(crate) slices: DeviceVec<u32>,
    /// One, unless the data are longer than a buffer.
    pub(crate) segments: Vec<SellSegment>,
    pub(crate) parts: Parts<T>,
    /// Four numbers for each long row.
    pub(crate) long_rows: DeviceVec<u32>,
    /// How many long rows, the first, have few pieces.
    pub(crate) few: u32,
}

/// Sums of the pieces of long rows: an array for each number of columns that vectors have.
pub(crate) struct Parts<T> {
    len: usize,
    /// Of 1, 2, 4, 8 and 16 columns.
    of_columns: [OnceLock<DeviceVec<T>>; 1 + MAX_COLUMNS.ilog2() as usize],
}

impl<T: Real> Parts<T> {
    /// For so many pieces, with vectors of one column.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn new(ctx: &Context, len: usize) -> Result<Self> {
        let this = Self { len, of_columns: Default::default() };
        this.make_room(ctx, 1)?;
        Ok(this)
    }

    fn make_room(&self, ctx: &Context, columns: usize) -> Result<()> {
        let place = &self.of_columns[columns.ilog2() as usize];
        if place.get().is_none() {
            let sums = DeviceVec::zeros(ctx, self.len * columns, "the sums of long rows")?;
            place.get_or_init(|| sums);
        }
        Ok(())
    }

    fn of(&self, columns: usize) -> &DeviceVec<T> {
        let sums = self.of_columns[columns.ilog2() as usize].get();
        sums.unwrap_or_else(|| panic!("no room for the sums of long rows with {columns} columns"))
    }
}

/// The data of consecutive slices.
pub(crate) struct SellSegment {
    pub(crate) slices: Range<usize>,
    pub(crate) data: DeviceVec<u8>,
}

/// Slices that a launch works on: from `first` on, so many of blocks, then so many of rows; all are in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SliceSet {
    pub(crate) segment: usize,
    pub(crate) first: u32,
    pub(crate) blocked: u32,
    pub(crate) single: u32,
}

impl SliceSet {
    /// Units of a slice.
    pub(crate) const UNITS: usize = 32;

    /// How many slices.
    pub(crate) fn len(self) -> usize {
        self.blocked as usize + self.single as usize
    }

    fn range(self) -> Range<usize> {
        self.first as usize..self.first as usize + self.len()
    }

    /// Those of them that are among the slices of a segment.
    pub(crate) fn within(self, segment: usize, slices: &Range<usize>) -> Self {
        let all = self.range();
        let behind_blocks = all.start + self.blocked as usize;
        let common = |range: Range<usize>| (range.start.max(slices.start), range.end.min(slices.end));
        let count = |(start, end): (usize, usize)| end.saturating_sub(start) as u32;
        let (blocked, single) = (count(common(all.start..behind_blocks)), count(common(behind_blocks..all.end)));
        Self { segment, first: all.start.max(slices.start) as u32, blocked, single }
    }
}

impl<T> SellBlock<T> {
    /// Numbers of a slice, and of a long row.
    pub(crate) const SLICE_WORDS: usize = 5;
    pub(crate) const LONG_ROW_WORDS: usize = 4;

    /// Rows that the slices of a set have room for: work for as many work-items.
    pub(crate) fn rows(&self, set: SliceSet) -> usize {
        (set.blocked as usize * self.block as usize + set.single as usize) * SliceSet::UNITS
    }

    /// Long rows.
    pub(crate) fn long_count(&self) -> usize {
        self.long_rows.len() / Self::LONG_ROW_WORDS
    }

    /// Slots, each of the work-items that share a row, for the long rows: one each, or all so many of a group.
    fn long_items(&self, slots: usize) -> usize {
        self.few as usize + (self.long_count() - self.few as usize) * slots
    }
}

/// Slices of one launch.
pub(crate) struct SellRows<T> {
    pub(crate) block: Arc<SellBlock<T>>,
    pub(crate) set: SliceSet,
}

impl<T: Real> ProductRows<T> for SellRows<T> {
    fn products(&self) -> Products {
        Products { names: NAMES[0], main: 0 }
    }

    fn lens(&self) -> [usize; 2] {
        [self.block.n_rows, self.block.n_cols]
    }

    fn is_there(&self) -> bool {
        let Self { block, set } = self;
        let is_there = |segment: &SellSegment| {
            let slices = set.range();
            segment.slices.end * SellBlock::<T>::SLICE_WORDS <= block.slices.len()
                && (slices.is_empty() || segment.slices.start <= slices.start && slices.end <= segment.slices.end)
        };
        block.segments.get(set.segment).is_some_and(is_there) && u32::try_from(self.items()).is_ok()
    }

    fn items(&self) -> usize {
        self.block.rows(self.set)
    }

    fn make_room(&self, ctx: &Context, columns: usize) -> Result<()> {
        self.block.parts.make_room(ctx, columns)
    }

    fn arguments(&self, columns: usize) -> Vec<&dyn Argument> {
        let Self { block, set } = self;
        let mut all: Vec<&dyn Argument> = vec![&set.first, &set.blocked, &set.single, &block.block, &block.scale];
        all.extend([&block.slices as &dyn Argument, &block.segments[set.segment].data, block.parts.of(columns)]);
        all
    }

    fn in_persistent(&self, _: &Tuning, group_size: usize) -> Option<InPersistent> {
        (self.block.long_count() == 0).then(|| InPersistent {
            macros: "SELL",
            groups: self.items().div_ceil(group_size),
            local_elements: 0,
            most_bytes: PERSISTENT_BYTES,
        })
    }
}

/// All long rows of a block: their pieces were summed with the slices.
pub(crate) struct LongRows<T> {
    pub(crate) block: Arc<SellBlock<T>>,
    count: u32,
}

impl<T> LongRows<T> {
    /// The long rows of `block`, if there are any.
    pub(crate) fn of(block: &Arc<SellBlock<T>>) -> Option<Self> {
        let count = block.long_count() as u32;
        (count > 0).then(|| Self { block: Arc::clone(block), count })
    }
}

impl<T: Real> ProductRows<T> for LongRows<T> {
    fn products(&self) -> Products {
        Products { names: NAMES[1], main: 0 }
    }

    fn lens(&self) -> [usize; 2] {
        [self.block.n_rows, self.block.n_cols]
    }

    fn is_there(&self) -> bool {
        self.count > 0
    }

    fn items(&self) -> usize {
        self.count as usize
    }

    fn grid(&self, launch: Launch, columns: usize) -> Grid {
        let loads = load_bytes(NAMES[1][0]);
        let slots = launch.group_size / parts::<T>(columns, launch.group_size, loads);
        launch.rows_grid::<T>(self.block.long_items(slots), columns, loads)
    }

    fn make_room(&self, ctx: &Context, columns: usize) -> Result<()> {
        self.block.parts.make_room(ctx, columns)
    }

    fn arguments(&self, columns: usize) -> Vec<&dyn Argument> {
        vec![&self.block.few, &self.count, &self.block.long_rows, self.block.parts.of(columns)]
    }

    fn bytes(&self) -> Option<usize> {
        Some(4 * self.block.long_rows.len() + size_of::<T>() * self.block.parts.len)
    }
}
