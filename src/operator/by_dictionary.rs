//! Rows by a dictionary of their patterns, on a device.

use std::ops::Range;

use rayon::prelude::*;

use super::Format;
use super::device_rows::{Arrays, DeviceRows};
use super::dictionary::Dictionary;
use super::exchange::early;
use super::main_pattern::Main;
use super::segments::{self, launches};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::Shape;
use crate::kernels::dictionary::{DictionaryBlock, DictionarySegment, MainPattern, RowSet, SLICE};
use crate::partition::Part;
use crate::real::Real;

/// Moves the rows of `part`, times `factor`, to the device.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
///
/// # Panics
/// If a column is outside the block.
pub(super) fn upload<T: Real>(
    ctx: &Context,
    part: &Part<'_>,
    dictionary: &Dictionary,
    factor: f64,
    shape: Shape,
) -> Result<DeviceRows<T>> {
    let (n, n_cols) = (part.n_owned(), part.n_owned() + part.halo.len);
    dictionary.check_columns(n_cols);
    // single work-items take rows of a pattern together, which suits a CPU better
    let main = if shape == Shape::Gpu { Main::of(dictionary) } else { None };
    let width = dictionary.width();
    let values = dictionary.values.as_ref().map(|values| T::scaled(values, factor));
    let entry = |(k, &distance): (usize, &i32)| {
        [values.as_ref().map_or(T::default(), |values| values[k]), T::with_low_word(distance)]
    };
    let entries: Vec<T> = dictionary.distances.iter().enumerate().flat_map(entry).collect();
    let runs: Vec<[u32; 2]> = dictionary.starts.windows(2).map(|run| [run[0], run[1]]).collect();
    // values by pattern are the table's
    let width_of_rows = if values.is_some() { 0 } else { width };
    let slices = std::iter::repeat_n(SLICE * width_of_rows, n.div_ceil(SLICE));
    let segment = |slices: Range<usize>| {
        let rows = n.min(slices.start * SLICE)..n.min(slices.end * SLICE);
        let of_rows = sliced::<T>(part, rows.clone(), dictionary, main.as_ref(), width_of_rows, factor);
        let values = DeviceVec::from_slice(ctx, &of_rows, "the values of the matrix")?;
        Ok(DictionarySegment { rows: rows.start as u32..rows.end as u32, values })
    };
    let segments: Vec<DictionarySegment<T>> =
        segments::cut(ctx, slices, size_of::<T>()).into_iter().map(segment).collect::<Result<_>>()?;
    let interior = early::<T>(part, dictionary.interior(n));
    let interior = interior.start as u32..interior.end as u32;
    let sets: Vec<[RowSet; 2]> =
        segments.iter().enumerate().map(|(k, segment)| RowSet::around(k, &segment.rows, &interior)).collect();
    let of_main = main.as_ref().map_or(0..0, |main| main.entries(dictionary));
    let main_values = values.as_ref().map_or(&[][..], |values| &values[of_main.clone()]);
    let slice_masks = main.as_ref().map_or(Vec::new(), |main| main.slice_masks(dictionary, SLICE));
    // where a slice has no mask, the patterns of its rows are read
    let patterns_bytes = match slice_masks.iter().filter(|&&mask| mask != 0).count() {
        0 => 2 * n,
        alike => 4 * slice_masks.len() + 2 * n.saturating_sub(SLICE * alike),
    };
    let (masks, rows) = main.map_or_else(|| (vec![0; runs.len()], 0..0), |main| (main.masks, main.rows));
    let block = DictionaryBlock {
        n_rows: n,
        n_cols,
        patterns: DeviceVec::from_slice(ctx, &dictionary.of_row, "the patterns of the rows")?,
        runs: DeviceVec::from_slice(ctx, &runs, "the lengths of the patterns")?,
        entries: DeviceVec::from_slice(ctx, &entries, "the entries of the patterns")?,
        segments,
        width: dictionary.values.is_none().then_some(width as u32),
        masks: DeviceVec::from_slice(ctx, &masks, "the parts of the main pattern")?,
        slice_masks: DeviceVec::from_slice(ctx, &slice_masks, "the parts of the main pattern in slices")?,
        main: MainPattern::new(main_values, &dictionary.distances[of_main.clone()], rows),
        main_len: of_main.len(),
    };
    let (format, own) =
        if dictionary.values.is_some() { (Format::Dictionary, 0) } else { (Format::Pattern, part.nnz()) };
    let tables = 12 * runs.len() + entries.len() * size_of::<T>();
    let room: usize = block.segments.iter().map(|segment| segment.values.len()).sum();
    Ok(DeviceRows {
        format,
        memory: 2 * n + 4 * slice_masks.len() + tables + room * size_of::<T>(),
        bytes: patterns_bytes + tables + own * size_of::<T>(),
        arrays: Arrays::Dictionary(Box::new(block), launches(&sets, |set| set.count == 0)),
    })
}

/// The values of some rows with room for `width` entries each, in slices of 32 rows: see `cl/dictionary.cl`.
fn sliced<T: Real>(
    part: &Part<'_>,
    rows: Range<usize>,
    dictionary: &Dictionary,
    main: Option<&Main>,
    width: usize,
    factor: f64,
) -> Vec<T> {
    if width == 0 {
        return Vec::new();
    }
    let (base, of_rows) = (part.row_ptr[0], part.row_ptr[rows.start]..part.row_ptr[rows.end]);
    let values = T::scaled(&part.values[of_rows.start - base..of_rows.end - base], factor);
    let mut all = vec![T::default(); rows.len().div_ceil(SLICE) * SLICE * width];
    all.par_chunks_mut((SLICE * width).max(1)).enumerate().for_each(|(k, slice)| {
        let begin = rows.start + k * SLICE;
        for (lane, row) in (begin..rows.end.min(begin + SLICE)).enumerate() {
            let values = &values[part.row_ptr[row] - of_rows.start..part.row_ptr[row + 1] - of_rows.start];
            let put = |(e, &value): (usize, &T)| slice[e * SLICE + lane] = value;
            match main {
                Some(main) => main.positions(row, dictionary.of_row[row], values.len()).zip(values).for_each(put),
                None => values.iter().enumerate().for_each(put),
            }
        }
    });
    all
}
