//! Rows by a dictionary of their patterns, on a device.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::Format;
use super::csr::Compressed;
use super::device_rows::{DeviceRows, Sets, Values, each};
use super::dictionary::Dictionary;
use super::exchange::early;
use super::main_pattern::Main;
use super::plan::{Layout, Target};
use super::segments::{self, launches};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::dictionary::{DictionaryBlock, DictionaryRows, DictionarySegment, MainPattern, RowSet, SLICE};
use crate::kernels::{Shape, Tuning};
use crate::partition::{NewValues, Part};
use crate::real::Real;

/// Bytes of compressed rows that no cache of a processor holds: then a look into the dictionary takes less time than reading them.
const FAR: usize = 96 << 20;

/// Slices that a thread fills at a time.
const SLICES: usize = 16;

/// The rows of a part, times `factor`, by their patterns.
pub(crate) struct ByDictionary<'a> {
    part: &'a Part<'a>,
    factor: f64,
    patterns: Arc<Patterns>,
    /// Of each [`SLICE`] rows, what all of them have of the main pattern, if there is one.
    slice_masks: Vec<u32>,
}

/// The patterns of the rows.
struct Patterns {
    dictionary: Dictionary,
    /// Single work-items take rows of a pattern together, which suits a CPU better.
    main: Option<Main>,
}

impl<'a> ByDictionary<'a> {
    /// Looks for the main pattern, if products in this shape profit from it. O(rows).
    pub(crate) fn new(part: &'a Part<'a>, factor: f64, dictionary: Dictionary, shape: Shape) -> Self {
        let main = if shape == Shape::Gpu { Main::of(&dictionary) } else { None };
        let slice_masks = main.as_ref().map_or(Vec::new(), |main| main.slice_masks(&dictionary, SLICE));
        Self { part, factor, patterns: Arc::new(Patterns { dictionary, main }), slice_masks }
    }

    fn dictionary(&self) -> &Dictionary {
        &self.patterns.dictionary
    }

    /// Bytes of the patterns and of what is told of each.
    fn tables<T>(&self) -> usize {
        12 * (self.dictionary().starts.len() - 1) + 2 * self.dictionary().distances.len() * size_of::<T>()
    }
}

impl<T: Real> Layout<T> for ByDictionary<'_> {
    fn format(&self) -> Format {
        if self.dictionary().values.is_some() { Format::Dictionary } else { Format::Pattern }
    }

    fn bytes(&self) -> usize {
        let n = self.part.n_owned();
        // where a slice has no mask, the patterns of its rows are read
        let of_rows = match self.slice_masks.iter().filter(|&&mask| mask != 0).count() {
            0 => 2 * n,
            alike => 4 * self.slice_masks.len() + 2 * n.saturating_sub(SLICE * alike),
        };
        let values = if self.dictionary().values.is_some() { 0 } else { self.part.nnz() };
        of_rows + self.tables::<T>() + values * size_of::<T>()
    }

    fn is_trusted(&self, target: Target) -> bool {
        self.dictionary().suit(target.shape) || {
            let compressed = Compressed::<T>::new(self.part, self.factor);
            let usual = Layout::<T>::bytes(&compressed);
            self.dictionary().values.is_some() && usual > FAR && Layout::<T>::bytes(self) <= usual / 8
        }
    }

    fn upload(&self, ctx: &Context, _: &Tuning) -> Result<DeviceRows<T>> {
        let (block, sets) = self.block(ctx)?;
        let room: usize = block.segments.iter().map(|segment| segment.values.len()).sum();
        let memory = 2 * block.n_rows + 4 * self.slice_masks.len() + self.tables::<T>() + room * size_of::<T>();
        let rows = |set| DictionaryRows { block: Arc::clone(&block), set };
        // without a gap
        let whole = each(block.whole(), rows);
        let all = DeviceRows::new(memory, sets.map(|sets| each(sets, rows)), whole);
        let (patterns, all) = (Arc::clone(&self.patterns), all.with_patterns(&block));
        Ok(if block.width.is_some() { all.with_values(ByPattern { block, patterns }) } else { all })
    }
}

/// All rows of a block that a device has made, without a halo.
pub(crate) fn made<T: Real>(block: DictionaryBlock<T>) -> DeviceRows<T> {
    let room: usize = block.segments.iter().map(|segment| segment.values.len()).sum();
    let block = Arc::new(block);
    let whole = || each(block.whole(), |set| DictionaryRows { block: Arc::clone(&block), set });
    DeviceRows::new(2 * block.n_rows + room * size_of::<T>(), [whole(), Vec::new()], whole())
}

/// Rows that have values of their own.
struct ByPattern<T> {
    block: Arc<DictionaryBlock<T>>,
    patterns: Arc<Patterns>,
}

impl<T: Real> Values<T> for ByPattern<T> {
    fn replace(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool> {
        let all = RowValues { row_ptr: new.row_ptr(), values: new.values()?, factor: new.factor };
        for DictionarySegment { rows, values } in &self.block.segments {
            let rows = rows.start as usize..rows.end as usize;
            values.make_anew(ctx, self.patterns.slice(), |at, to| self.patterns.fill(&all, &rows, at, to))?;
        }
        Ok(true)
    }
}

impl ByDictionary<'_> {
    /// Moves the rows to the device: the longest run of rows without a halo, or half of it, and the others.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// If a column is outside the block.
    pub(crate) fn block<T: Real>(&self, ctx: &Context) -> Result<(Arc<DictionaryBlock<T>>, Sets<RowSet>)> {
        let Self { part, factor, patterns, slice_masks } = self;
        let Patterns { dictionary, main } = &**patterns;
        let (n, n_cols) = (part.n_owned(), part.n_owned() + part.halo.len);
        dictionary.check_columns(n_cols);
        let width = dictionary.width();
        let values = dictionary.values.as_ref().map(|values| T::scaled(values, *factor));
        let entry = |(k, &distance): (usize, &i32)| {
            [values.as_ref().map_or(T::default(), |values| values[k]), T::with_low_word(distance)]
        };
        let entries: Vec<T> = dictionary.distances.iter().enumerate().flat_map(entry).collect();
        let runs: Vec<[u32; 2]> = dictionary.starts.windows(2).map(|run| [run[0], run[1]]).collect();
        let slice = patterns.slice();
        let all = RowValues { row_ptr: part.row_ptr, values: &part.values, factor: *factor };
        let segment = |slices: Range<usize>| {
            let rows = n.min(slices.start * SLICE)..n.min(slices.end * SLICE);
            let fill = |at, to: &mut [T]| patterns.fill(&all, &rows, at, to);
            let values = DeviceVec::made(ctx, slices.len() * slice, slice, "the values of the matrix", fill)?;
            Ok(DictionarySegment { rows: rows.start as u32..rows.end as u32, values })
        };
        let slices = std::iter::repeat_n(slice, n.div_ceil(SLICE));
        let segments: Vec<DictionarySegment<T>> =
            segments::cut(ctx, slices, size_of::<T>()).into_iter().map(segment).collect::<Result<_>>()?;
        let interior = early::<T>(part, if part.halo.len == 0 { 0..n } else { dictionary.interior(n) });
        let interior = interior.start as u32..interior.end as u32;
        let sets: Vec<[RowSet; 2]> =
            segments.iter().enumerate().map(|(k, segment)| RowSet::around(k, &segment.rows, &interior)).collect();
        let of_main = main.as_ref().map_or(0..0, |main| main.entries(dictionary));
        let main_values = values.as_ref().map_or(&[][..], |values| &values[of_main.clone()]);
        let (masks, rows) = match main {
            Some(main) => (main.masks.clone(), main.rows.clone()),
            None => (vec![0; runs.len()], 0..0),
        };
        let block = DictionaryBlock {
            n_rows: n,
            n_cols,
            patterns: Arc::new(DeviceVec::from_slice(ctx, &dictionary.of_row, "the patterns of the rows")?),
            runs: Arc::new(DeviceVec::from_slice(ctx, &runs, "the lengths of the patterns")?),
            entries: DeviceVec::from_slice(ctx, &entries, "the entries of the patterns")?,
            segments,
            width: dictionary.values.is_none().then_some(width as u32),
            masks: Arc::new(DeviceVec::from_slice(ctx, &masks, "the parts of the main pattern")?),
            slice_masks: Arc::new(DeviceVec::from_slice(ctx, slice_masks, "the parts of the main pattern in slices")?),
            main: MainPattern::new(main_values, &dictionary.distances[of_main.clone()], rows),
            main_len: of_main.len(),
        };
        Ok((Arc::new(block), launches(&sets, |set| set.count == 0)))
    }
}

/// The values of a block's rows, and what they are multiplied by.
struct RowValues<'v> {
    row_ptr: &'v [usize],
    values: &'v [f64],
    factor: f64,
}

impl Patterns {
    /// Room for the values of a slice of rows; none if the table has them.
    fn slice(&self) -> usize {
        if self.dictionary.values.is_some() { 0 } else { SLICE * self.dictionary.width() }
    }

    /// The elements `at` of the room for the values of some rows, in slices of 32: see `cl/dictionary.cl`.
    fn fill<T: Real>(&self, all: &RowValues<'_>, rows: &Range<usize>, at: Range<usize>, to: &mut [T]) {
        let (Self { dictionary, main }, RowValues { row_ptr, values, factor }) = (self, all);
        let slice = self.slice();
        let first = rows.start + at.start / slice * SLICE;
        let rows = first..rows.end.min(first + at.len() / slice * SLICE);
        let (base, of_rows) = (row_ptr[0], row_ptr[rows.start]..row_ptr[rows.end]);
        let values = T::scaled(&values[of_rows.start - base..of_rows.end - base], *factor);
        to.par_chunks_mut(slice).with_min_len(SLICES).enumerate().for_each(|(k, slice)| {
            slice.fill(T::default());
            let begin = rows.start + k * SLICE;
            for (lane, row) in (begin..rows.end.min(begin + SLICE)).enumerate() {
                let values = &values[row_ptr[row] - of_rows.start..row_ptr[row + 1] - of_rows.start];
                let put = |(e, &value): (usize, &T)| slice[e * SLICE + lane] = value;
                match main {
                    Some(main) => main.positions(row, dictionary.of_row[row], values.len()).zip(values).for_each(put),
                    None => values.iter().enumerate().for_each(put),
                }
            }
        });
    }
}
