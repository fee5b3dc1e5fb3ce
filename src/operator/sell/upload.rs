//! Slices on their way to the device: filled piece by piece.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{ALIGNED, List, Sell, Slice, Value};
use crate::device::{Context, DeviceVec, Filling};
use crate::error::Result;
use crate::kernels::sell::{Parts, SellBlock, SellSegment, SliceSet};
use crate::operator::device_rows::Sets;
use crate::operator::segments;
use crate::real::Real;

/// What the device is asked to make room for.
pub(super) const WHAT: &str = "the slices of the matrix";

impl<T: Real> Sell<'_, T> {
    /// Moves everything to the device.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// If a column is outside the block. Kernels check no index, and those of a matrix in a mapped file may change at any time:
    /// each is looked at when it is copied.
    pub(crate) fn block(&self, ctx: &Context) -> Result<(Arc<SellBlock<T>>, Sets<SliceSet>)> {
        self.block_of(ctx, |slices, _, bytes| self.fill_all(Filling::new(ctx, bytes, WHAT)?, slices))
    }

    /// The block whose segments have this data: of the slices of a range, which are described so, in so many bytes.
    ///
    /// # Errors
    /// As [`Sell::block`].
    pub(super) fn block_of(
        &self,
        ctx: &Context,
        data: impl Fn(&Range<usize>, &DeviceVec<u32>, usize) -> Result<DeviceVec<u8>>,
    ) -> Result<(Arc<SellBlock<T>>, Sets<SliceSet>)> {
        let ranges = segments::cut(ctx, self.slices.iter().map(|slice| self.size(slice) / ALIGNED), ALIGNED);
        let mut words = Vec::with_capacity(self.slices.len() * SellBlock::<T>::SLICE_WORDS);
        for range in &ranges {
            let mut start = 0;
            for slice in &self.slices[range.clone()] {
                words.extend(slice.words(&self.lists[slice.list], (start / ALIGNED) as u32));
                start += self.size(slice);
            }
        }
        let set = |segment: usize, k: usize| self.sets[k].within(segment, &ranges[segment]);
        let of_segments: Vec<[SliceSet; 2]> =
            (0..ranges.len()).map(|segment| [set(segment, 0), set(segment, 1)]).collect();
        let slices = DeviceVec::from_slice(ctx, &words, WHAT)?;
        let segment = |range: Range<usize>| {
            let bytes = self.slices[range.clone()].iter().map(|slice| self.size(slice)).sum();
            Ok(SellSegment { data: data(&range, &slices, bytes)?, slices: range })
        };
        let segments = ranges.into_iter().map(segment).collect::<Result<_>>()?;
        let block = SellBlock {
            n_rows: self.part.n_owned(),
            n_cols: self.n_cols(),
            block: self.block as u32,
            scale: T::from_f64(self.factor),
            slices,
            segments,
            parts: Parts::new(ctx, self.parts)?,
            long_rows: DeviceVec::from_slice(ctx, self.long_rows.as_flattened(), "the long rows")?,
            few: self.few as u32,
        };
        Ok((Arc::new(block), segments::launches(&of_segments, |set| set.len() == 0)))
    }

    /// Makes the data of some slices.
    pub(super) fn fill_all<V: Borrow<DeviceVec<u8>>>(
        &self,
        mut data: Filling<'_, u8, V>,
        slices: &Range<usize>,
    ) -> Result<V> {
        let mut rest = &self.slices[slices.clone()];
        while !rest.is_empty() {
            let (mut bytes, mut count) = (0, 0);
            while count < rest.len() && (count == 0 || bytes + self.size(&rest[count]) <= Filling::<u8>::piece_len()) {
                bytes += self.size(&rest[count]);
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            data.put(bytes, |mut free| {
                let mut places = Vec::with_capacity(count);
                for slice in now {
                    let (place, behind) = free.split_at_mut(self.size(slice));
                    places.push(place);
                    free = behind;
                }
                now.par_iter().zip(places).for_each(|(slice, place)| self.fill(slice, place));
            })?;
            rest = later;
        }
        data.finish()
    }

    fn n_cols(&self) -> usize {
        self.part.n_owned() + self.part.halo.len
    }

    /// The bytes of a slice.
    pub(super) fn fill(&self, slice: &Slice, out: &mut [u8]) {
        out.fill(0);
        let List { block, units, .. } = &self.lists[slice.list];
        let (block, units) = (*block, &units[slice.first..slice.first + slice.count]);
        let ([values, columns, rows, _], stored) = (slice.sections::<T>(block), slice.stored(block));
        let (value_bytes, column_bytes) = (slice.value.bytes::<T>(), slice.column_bytes());
        let row_bytes = slice.row_bytes();
        let index = |out: &mut [u8], v: u32| match out.len() {
            2 => out.copy_from_slice(&(v as u16).to_ne_bytes()),
            _ => out.copy_from_slice(&v.to_ne_bytes()),
        };
        for (unit, &of) in units.iter().enumerate() {
            index(&mut out[rows + unit * row_bytes..][..row_bytes], self.target(of) - slice.rows[0]);
        }
        let (mut before, mut active) = (0, units.len());
        for e in 0..slice.width {
            while self.len(block, units[active - 1]) <= e {
                active -= 1;
            }
            out[e] = active as u8;
            for (unit, &of) in units[..active].iter().enumerate() {
                let at = self.entry(block, of, e, 0);
                let column = self.part.col_idx[at];
                let [least, largest] = slice.columns;
                let is_inside = (least..=largest).contains(&column) && column as usize + block <= self.n_cols();
                let above = (column - least.min(column)) / slice.step as u32;
                assert!(
                    is_inside,
                    "column {column} of {}: was the matrix's file changed after it was read?",
                    self.n_cols()
                );
                let to = columns + (before + unit) * column_bytes;
                index(&mut out[to..to + column_bytes], above);
                for row in 0..block {
                    let at = self.entry(block, of, e, row);
                    for (k, &v) in self.part.values[at..at + stored].iter().enumerate() {
                        let place = before * block * stored + (k * active + unit) * block + row;
                        let to = values + place * value_bytes;
                        self.put(slice.value, v, &mut out[to..to + value_bytes]);
                    }
                }
            }
            before += active;
        }
    }

    /// Stores a value.
    fn put(&self, value: Value, v: f64, out: &mut [u8]) {
        match value {
            Value::Real if size_of::<T>() == 8 => out.copy_from_slice(&(v * self.factor).to_ne_bytes()),
            Value::Real => out.copy_from_slice(&((v * self.factor) as f32).to_ne_bytes()),
            Value::Float => out.copy_from_slice(&(v as f32).to_ne_bytes()),
            Value::Short => out.copy_from_slice(&(v as i16).to_ne_bytes()),
            Value::Char => out.copy_from_slice(&(v as i8).to_ne_bytes()),
        }
    }
}
