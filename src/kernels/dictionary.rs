//! Rows of a few patterns, as `cl/dictionary.cl` takes them.

use std::ops::Range;

use super::{Argument, MOST_MAIN, family};
use crate::device::{ClKernel, ClResult, DeviceVec};
use crate::real::Real;

family! {
    /// Products with a matrix whose rows are of a few patterns: the pattern has the values in `dictionary` kernels, rows have values of
    /// their own in `pattern` kernels.
    Dictionary<T, A> {
        spmv_dictionary, spmv_dot_dictionary, residual_dictionary, spmv_pattern, spmv_dot_pattern, residual_pattern
    }
}

/// Rows of a slice.
pub(crate) const SLICE: usize = 32;

/// A block of rows on a device, as the kernels take it. Made by
/// [`DeviceBlock`](crate::operator::opencl::DeviceBlock) alone, which vouches for it: there are as many patterns as rows, each below
/// the number of runs and of masks; of each row, the columns that its pattern gives are below `n_cols`, and its values there; so
/// are, for the rows of the main pattern, all of its columns.
pub(crate) struct DictionaryBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) patterns: DeviceVec<u16>,
    /// Where the entries of each pattern begin, and where they end.
    pub(crate) runs: DeviceVec<[u32; 2]>,
    /// Value and distance of each.
    pub(crate) entries: DeviceVec<T>,
    /// Values of the rows, if they have their own: one segment, unless there are more of them than fit into a buffer.
    pub(crate) segments: Vec<DictionarySegment<T>>,
    /// Entries of a row that there is room for; `None` where the pattern has the values.
    pub(crate) width: Option<u32>,
    /// Of each pattern, which entries of the main pattern it has.
    pub(crate) masks: DeviceVec<u32>,
    /// Of each [`SLICE`] rows, what all of them have of it, if that is the same and not nothing; else 0.
    pub(crate) slice_masks: DeviceVec<u32>,
    /// The main pattern, and the number of its entries: 0 if there is none.
    pub(crate) main: MainPattern<T>,
    pub(crate) main_len: usize,
}

/// Consecutive rows, the first of which begins a slice, and what values they have of their own.
pub(crate) struct DictionarySegment<T> {
    pub(crate) rows: Range<u32>,
    pub(crate) values: DeviceVec<T>,
}

/// The main pattern of the rows, as the kernels take it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MainPattern<T> {
    value: [T; MOST_MAIN],
    distance: [i32; MOST_MAIN],
    begin: u32,
    end: u32,
}

impl<T: Real> MainPattern<T> {
    /// Entries, and the rows for which they are inside the vector. Where rows have values of their own, these are no matter.
    ///
    /// # Panics
    /// If there are too many.
    pub(crate) fn new(values: &[T], distances: &[i32], rows: Range<u32>) -> Self {
        let mut this =
            Self { value: [T::default(); MOST_MAIN], distance: [0; MOST_MAIN], begin: rows.start, end: rows.end };
        this.value[..values.len()].copy_from_slice(values);
        this.distance[..distances.len()].copy_from_slice(distances);
        this
    }
}

/// The main pattern of a block.
impl<T: Real> Argument for DictionaryBlock<T> {
    fn cl_type(&self) -> String {
        "main_pattern".into()
    }

    fn key(&self) -> u64 {
        self.masks.id() // of no other block
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise; `main_pattern` has the same members in the same order.
        unsafe { kernel.set_arg(index, &self.main) }
    }
}

/// Rows that a launch works on: `count` of them from `first` on, but after `before_gap` rows `gap` are left out; all
/// are in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowSet {
    pub(crate) segment: usize,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) before_gap: u32,
    pub(crate) gap: u32,
}

impl RowSet {
    /// Those rows of a segment that are in a run, and its others.
    pub(crate) fn around(segment: usize, rows: &Range<u32>, run: &Range<u32>) -> [Self; 2] {
        let [begin, end] = [run.start, run.end].map(|row| row.clamp(rows.start, rows.end));
        let (inside, all) = (end - begin, rows.end - rows.start);
        [
            Self { segment, first: begin, count: inside, before_gap: inside, gap: 0 },
            Self { segment, first: rows.start, count: all - inside, before_gap: begin - rows.start, gap: inside },
        ]
    }

    fn end(self) -> u32 {
        let gap = if self.before_gap < self.count { self.gap } else { 0 };
        self.first + self.count + gap
    }
}

impl<T> DictionaryBlock<T> {
    /// All rows, segment by segment.
    pub(crate) fn whole(&self) -> impl Iterator<Item = RowSet> {
        self.segments.iter().enumerate().map(|(k, segment)| RowSet::around(k, &segment.rows, &segment.rows)[0])
    }

    pub(super) fn has(&self, rows: RowSet) -> bool {
        let is_there = |segment: &DictionarySegment<T>| {
            rows.count == 0 || segment.rows.start <= rows.first && rows.end() <= segment.rows.end
        };
        self.segments.get(rows.segment).is_some_and(is_there)
    }
}

impl<T: Real> DictionaryBlock<T> {
    /// The arguments that all kernels begin with, behind the main pattern those of `pattern` kernels.
    pub(super) fn arguments<'a>(&'a self, rows: &'a RowSet) -> Vec<&'a dyn Argument> {
        let segment = &self.segments[rows.segment];
        let mut all: Vec<&dyn Argument> = vec![&rows.first, &rows.count, &rows.before_gap, &rows.gap];
        all.extend([
            &self.patterns as &dyn Argument,
            &self.runs,
            &self.entries,
            &segment.values,
            &self.masks,
            &self.slice_masks,
            self,
        ]);
        if let Some(width) = &self.width {
            all.extend([width as &dyn Argument, &segment.rows.start]);
        }
        all
    }
}
