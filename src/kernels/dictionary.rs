//! Rows of a few patterns, as `cl/dictionary.cl` takes them.

use std::ops::Range;
use std::sync::Arc;

use super::products::{InPersistent, PERSISTENT_BYTES, ProductRows, Products};
use super::{Argument, MOST_MAIN, Tuning};
use crate::device::{ClKernel, ClResult, DeviceVec};
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = BY_PATTERN.as_flattened();

/// Those for rows whose pattern has the values, and for rows that have values of their own.
const BY_PATTERN: &[[&str; 3]] = &[
    ["spmv_dictionary", "spmv_dot_dictionary", "residual_dictionary"],
    ["spmv_pattern", "spmv_dot_pattern", "residual_pattern"],
];

/// Rows of a slice.
pub(crate) const SLICE: usize = 32;

/// A block of rows on a device, as the kernels take it. Made by
/// `crate::operator::by_dictionary` and `super::amg::first` alone, which vouch for it: there are as many patterns as rows, each below
/// the number of runs and of masks; of each row, the columns that its pattern gives are below `n_cols`, and its values there; so
/// are, for the rows of the main pattern, all of its columns.
pub(crate) struct DictionaryBlock<T> {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) patterns: Arc<DeviceVec<u16>>,
    /// Where the entries of each pattern begin, and where they end.
    pub(crate) runs: Arc<DeviceVec<[u32; 2]>>,
    /// Value and distance of each.
    pub(crate) entries: DeviceVec<T>,
    /// Values of the rows, if they have their own: one segment, unless there are more of them than fit into a buffer.
    pub(crate) segments: Vec<DictionarySegment<T>>,
    /// Entries of a row that there is room for; `None` where the pattern has the values.
    pub(crate) width: Option<u32>,
    /// Of each pattern, which entries of the main pattern it has.
    pub(crate) masks: Arc<DeviceVec<u32>>,
    /// Of each [`SLICE`] rows, what all of them have of it, if that is the same and not nothing; else 0.
    pub(crate) slice_masks: Arc<DeviceVec<u32>>,
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

    /// The rows for which all entries are inside.
    pub(super) fn rows(&self) -> Range<u32> {
        self.begin..self.end
    }

    /// It in single precision, of a matrix that is multiplied by `times` so that its diagonal is 1.
    pub(super) fn narrowed(&self, times: f64) -> MainPattern<f32> {
        let Self { value, distance, begin, end } = *self;
        let mut value = value.map(|value| (value.to_f64() * times) as f32);
        value.iter_mut().zip(distance).filter(|(_, distance)| *distance == 0).for_each(|(value, _)| *value = 1.0);
        MainPattern { value, distance, begin, end }
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
}

/// Rows of one launch.
pub(crate) struct DictionaryRows<T> {
    pub(crate) block: Arc<DictionaryBlock<T>>,
    pub(crate) set: RowSet,
}

impl<T: Real> ProductRows<T> for DictionaryRows<T> {
    fn products(&self) -> Products {
        let names = BY_PATTERN[usize::from(self.block.width.is_some())];
        Products { names, main: self.block.main_len }
    }

    fn lens(&self) -> [usize; 2] {
        [self.block.n_rows, self.block.n_cols]
    }

    fn is_there(&self) -> bool {
        let is_there = |segment: &DictionarySegment<T>| {
            self.set.count == 0 || segment.rows.start <= self.set.first && self.set.end() <= segment.rows.end
        };
        self.block.segments.get(self.set.segment).is_some_and(is_there)
    }

    fn items(&self) -> usize {
        self.set.count as usize
    }

    /// Behind the main pattern those of `pattern` kernels.
    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let Self { block, set } = self;
        let segment = &block.segments[set.segment];
        let mut all: Vec<&dyn Argument> = vec![&set.first, &set.count, &set.before_gap, &set.gap];
        all.extend([&*block.patterns as &dyn Argument, &*block.runs, &block.entries, &segment.values]);
        all.extend([&*block.masks as &dyn Argument, &*block.slice_masks, &**block]);
        if let Some(width) = &block.width {
            all.extend([width as &dyn Argument, &segment.rows.start]);
        }
        all
    }

    fn in_persistent(&self, _: &Tuning, group_size: usize) -> Option<InPersistent> {
        Some(InPersistent {
            macros: if self.block.width.is_some() { "PATTERN" } else { "DICTIONARY" },
            groups: self.items().div_ceil(group_size),
            local_elements: 0,
            most_bytes: PERSISTENT_BYTES,
        })
    }
}
