//! Compressed rows, as `cl/csr.cl` takes them.

use std::ops::Range;

use super::{Argument, family};
use crate::device::DeviceVec;
use crate::real::Real;

family! {
    /// Products with a matrix in compressed sparse rows.
    Csr<T, A> { spmv_csr, spmv_dot_csr, residual_csr }
}

/// A block of rows on a device, as the kernels take it. Made by [`DeviceBlock`](crate::operator::opencl::DeviceBlock)
/// alone, which vouches for it: rows in blocks are below `n_rows`, and each row block lies in one segment; a segment has
/// the entries of all its rows, and columns are below `n_cols`.
pub(crate) struct CsrBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) blocks: DeviceVec<[u32; 2]>,
    pub(crate) row_ptr: DeviceVec<u32>,
    /// One, unless there are more entries than fit into a buffer.
    pub(crate) segments: Vec<CsrSegment<T>>,
}

/// The entries of consecutive rows.
pub(crate) struct CsrSegment<T> {
    pub(crate) rows: Range<usize>,
    /// Entries of the rows before.
    pub(crate) before: u32,
    pub(crate) col_idx: DeviceVec<u32>,
    pub(crate) values: DeviceVec<T>,
}

/// Row blocks that a launch works on: `first..last`, all of which are in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSet {
    pub(crate) segment: usize,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl BlockSet {
    /// How many row blocks.
    pub(crate) fn len(self) -> usize {
        (self.last - self.first) as usize
    }
}

impl<T> CsrBlock<T> {
    pub(super) fn has(&self, set: BlockSet) -> bool {
        set.segment < self.segments.len() && set.first <= set.last && set.last as usize <= self.blocks.len()
    }
}

impl<T: Real> CsrBlock<T> {
    /// The arguments that all kernels begin with.
    pub(super) fn arguments<'a>(&'a self, set: &'a BlockSet) -> Vec<&'a dyn Argument> {
        let CsrSegment { before, col_idx, values, .. } = &self.segments[set.segment];
        let mut all: Vec<&dyn Argument> = vec![&set.first, &set.last, &self.blocks, &self.row_ptr];
        all.extend([before as &dyn Argument, col_idx, values]);
        all
    }
}
