//! Compressed rows, as `cl/csr.cl` takes them.

use std::ops::Range;
use std::sync::Arc;

use super::products::{InPersistent, ProductRows, Products};
use super::{Argument, Launch, Tuning};
use crate::device::{DeviceVec, Grid};
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &PRODUCTS.names;

const PRODUCTS: Products = Products { names: ["spmv_csr", "spmv_dot_csr", "residual_csr"], main: 0 };

/// Work-groups wait at barriers of their own: more than one on a compute unit would fill the time.
const PERSISTENT_BYTES: u64 = 20 << 20;

/// Rows on a device, as the kernels take them. Made by `crate::operator::csr` and `crate::precond::amg::on_device` alone, which vouch for
/// them: a segment has the entries of all its rows, and columns are below `n_cols`.
pub(crate) struct CsrBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
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

/// Compressed rows of one launch: rows in blocks are below `n_rows`, and each row block lies in one segment.
pub(crate) struct CsrRows<T> {
    pub(crate) block: Arc<CsrBlock<T>>,
    pub(crate) blocks: Arc<DeviceVec<[u32; 2]>>,
    pub(crate) set: BlockSet,
}

impl<T: Real> ProductRows<T> for CsrRows<T> {
    fn products(&self) -> Products {
        PRODUCTS
    }

    fn lens(&self) -> [usize; 2] {
        [self.block.n_rows, self.block.n_cols]
    }

    fn is_there(&self) -> bool {
        let BlockSet { segment, first, last } = self.set;
        segment < self.block.segments.len() && first <= last && last as usize <= self.blocks.len()
    }

    fn items(&self) -> usize {
        self.set.len()
    }

    fn grid(&self, launch: Launch, _columns: usize) -> Grid {
        launch.block_grid(self.items())
    }

    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let CsrSegment { before, col_idx, values, .. } = &self.block.segments[self.set.segment];
        let mut all: Vec<&dyn Argument> = vec![&self.set.first, &self.set.last, &*self.blocks, &self.block.row_ptr];
        all.extend([before as &dyn Argument, col_idx, values]);
        all
    }

    fn in_persistent(&self, tuning: &Tuning, group_size: usize) -> Option<InPersistent> {
        let has_item = |(rows, _)| rows <= group_size; // for each row of a row block
        tuning.row_block().is_some_and(has_item).then(|| InPersistent {
            macros: "CSR",
            groups: self.items(),
            local_elements: tuning.block_nnz.max(group_size),
            most_bytes: PERSISTENT_BYTES,
        })
    }
}
