//! Rows in slices, as `cl/sell.cl` takes them.

use std::ops::Range;

use super::{Argument, family};
use crate::device::DeviceVec;
use crate::real::Real;

family! {
    /// Products with a matrix in slices of rows; `parts` kernels complete the long rows.
    Sell<T, A> { spmv_sell, spmv_dot_sell, residual_sell, spmv_sell_parts, spmv_dot_sell_parts, residual_sell_parts }
}

/// A block of rows on a device, as the kernels take it. Made by [`DeviceBlock`](crate::operator::opencl::DeviceBlock)
/// alone, which vouches for it: what slices say of their data lies in that of their segment; each row but the long ones
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
    /// Sums of the pieces of long rows.
    pub(crate) parts: DeviceVec<T>,
    /// Four numbers for each long row.
    pub(crate) long_rows: DeviceVec<u32>,
    /// How many long rows, the first, have few pieces.
    pub(crate) few: u32,
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

    /// Which part of the block's slices these are.
    pub(crate) fn part_of<T>(self, block: &SellBlock<T>) -> f64 {
        let all = block.slices.len() / SellBlock::<T>::SLICE_WORDS;
        self.len() as f64 / all.max(1) as f64
    }

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

    /// Bytes of the slices and of the list of long rows.
    pub(crate) fn bytes(&self) -> usize {
        let data: usize = self.segments.iter().map(|segment| segment.data.len()).sum();
        data + 4 * (self.slices.len() + self.long_rows.len())
    }

    /// Long rows.
    pub(crate) fn long_count(&self) -> usize {
        self.long_rows.len() / Self::LONG_ROW_WORDS
    }

    /// Work-items for the long rows: one, or a group of this size, each.
    pub(crate) fn long_items(&self, group_size: usize) -> usize {
        self.few as usize + (self.long_count() - self.few as usize) * group_size
    }

    pub(super) fn has(&self, set: SliceSet) -> bool {
        let is_there = |segment: &SellSegment| {
            let slices = set.range();
            segment.slices.end * Self::SLICE_WORDS <= self.slices.len()
                && (slices.is_empty() || segment.slices.start <= slices.start && slices.end <= segment.slices.end)
        };
        self.segments.get(set.segment).is_some_and(is_there) && u32::try_from(self.rows(set)).is_ok()
    }
}

impl<T: Real> SellBlock<T> {
    /// The arguments that all kernels of slices begin with.
    pub(super) fn arguments<'a>(&'a self, set: &'a SliceSet) -> Vec<&'a dyn Argument> {
        let mut all: Vec<&dyn Argument> = vec![&set.first, &set.blocked, &set.single, &self.block, &self.scale];
        all.extend([&self.slices as &dyn Argument, &self.segments[set.segment].data, &self.parts]);
        all
    }
}
