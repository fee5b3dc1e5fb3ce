//! Slices made on a device, of rows that were moved there as they are: entries are looked through, and put into their places, by kernels;
//! what is done for a row or a slice, the host does. Lists, slices and their bytes are those of the host's way, but for values in single precision that
//! become whole numbers only by rounding to it: these are narrow here.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::moved::{FEW, Moved, scale};
use super::upload::WHAT;
use super::{List, Piece, Sell, Slice, UNITS, Value, WHOLE};
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::Tuning;
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::kernels::sell::{SellBlock, SliceSet};
use crate::kernels::sell_layout::{Entries, LayoutKernels, SHAPE_WORDS, UnitList, Units};
use crate::operator::device_rows::{DeviceRows, Sets, Values};
use crate::operator::plan::{Layout, Target};
use crate::operator::{Format, csr};
use crate::partition::{NewValues, Part};
use crate::real::Real;

/// The units of slices that are made on a device.
pub(super) struct OnDevice<T> {
    moved: Arc<Moved<T>>,
    units: Arc<Units>,
    lists: Vec<UnitList>,
}

impl<T: Real> OnDevice<T> {
    /// Moves the units of these lists, which are sorted.
    fn new(ctx: &Context, moved: &Arc<Moved<T>>, lists: &[List], pieces: &[Piece]) -> Result<Self> {
        let mut begin = 0;
        let list_of = |list: &List| {
            let units = begin..begin + list.units.len();
            begin = units.end;
            UnitList { units, block: list.block as u32, has_pieces: list.has_pieces }
        };
        let of_device: Vec<UnitList> = lists.iter().map(list_of).collect();
        let mut rows_of_pieces = vec![0; pieces.len()];
        let units = lists.iter().flat_map(|list| &list.units).filter(|unit| unit.piece != WHOLE);
        units.for_each(|unit| rows_of_pieces[unit.piece as usize] = unit.row);
        let of_piece = |(row, piece): (&u32, &Piece)| [*row, piece.first, piece.step, piece.target];
        let words: Vec<[u32; 4]> = rows_of_pieces.iter().zip(pieces).map(of_piece).collect();
        let numbers = DeviceVec::made(ctx, begin, 1, "the order of rows", |at, to| {
            for (list, of_device) in lists.iter().zip(&of_device) {
                let UnitList { units, .. } = of_device;
                let common = at.start.max(units.start)..at.end.min(units.end);
                if common.is_empty() {
                    continue;
                }
                let from = &list.units[common.start - units.start..common.end - units.start];
                let to = to[common.start - at.start..common.end - at.start].par_iter_mut().with_min_len(FEW);
                to.zip(from).for_each(|(to, unit)| *to = if list.has_pieces { unit.piece } else { unit.row });
            }
        })?;
        let pieces = DeviceVec::from_slice(ctx, words.as_flattened(), "pieces of long rows")?;
        Ok(Self { moved: Arc::clone(moved), units: Arc::new(Units { numbers, pieces }), lists: of_device })
    }

    /// The slices of a list.
    fn slices(&self, ctx: &Context, list: usize, factor: f64) -> Result<Vec<Slice>> {
        let of = &self.lists[list];
        if of.units.is_empty() {
            return Ok(Vec::new());
        }
        let entries = Entries::of(&self.moved.rows);
        let shapes = self.moved.kernels()?.shapes(ctx, (of, &self.units), &entries, factor)?;
        let slice = |(k, shape): (usize, &[u32; SHAPE_WORDS])| {
            let &[blocks, width, row_low, row_high, column_low, column_high, phases, flags] = shape;
            let is_empty = blocks == 0;
            let have_one_phase = phases & 0xff >= 0xff - (phases >> 8);
            Slice {
                list,
                first: k * UNITS,
                count: (of.units.len() - k * UNITS).min(UNITS),
                blocks: blocks as usize,
                width: width as usize,
                value: Value::narrowest::<T>(|value| flags & value.flag() != 0),
                rows: [row_low, row_high],
                columns: if is_empty { [0; 2] } else { [column_low, column_high] },
                step: if have_one_phase { of.block as usize } else { 1 },
                is_complex: flags & COMPLEX != 0,
            }
        };
        Ok(shapes.par_iter().enumerate().with_min_len(FEW).map(slice).collect())
    }
}

/// Flags of shapes.
const COMPLEX: u32 = 8;

impl Value {
    /// The flag that says that all values can be stored so.
    fn flag(self) -> u32 {
        match self {
            Self::Char => 1,
            Self::Short => 2,
            Self::Float => 4,
            Self::Real => 0,
        }
    }
}

/// Does something with the units of each list that fill some of the slices of a range, and tells which of these is their first.
fn each_of(lists: &[UnitList], range: &Range<usize>, mut f: impl FnMut(&UnitList, usize) -> Result<()>) -> Result<()> {
    let mut first = 0;
    for list in lists {
        let behind = first + list.units.len().div_ceil(UNITS);
        let common = first.max(range.start)..behind.min(range.end);
        if !common.is_empty() {
            f(&list.within(common.start - first..common.end - first), common.start)?;
        }
        first = behind;
    }
    Ok(())
}

/// Rows of a part that the device has, in slices that it makes.
pub(crate) struct SellOfMoved<'a, T> {
    pub(super) sell: Sell<'a, T>,
    on_device: OnDevice<T>,
}

impl<'a, T: Real> SellOfMoved<'a, T> {
    /// Lays out the rows of `part`, times `factor`, which the device has. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn plan(ctx: &Context, part: &'a Part<'a>, factor: f64, moved: &Arc<Moved<T>>) -> Result<Self> {
        log::debug!("{}: makes slices of the rows that it has", ctx.info().name);
        let marks = moved.kernels()?.marks(ctx, &moved.rows)?;
        let mut sell = Sell::listed(part, factor, &marks);
        let on_device = OnDevice::new(ctx, moved, &sell.lists, &sell.pieces)?;
        let slices = (0..sell.lists.len()).map(|list| on_device.slices(ctx, list, factor));
        sell.take(slices.collect::<Result<_>>()?);
        Ok(Self { sell, on_device })
    }

    /// Makes the slices.
    pub(super) fn block(&self, ctx: &Context) -> Result<(Arc<SellBlock<T>>, Sets<SliceSet>)> {
        let Self { sell, on_device: OnDevice { moved, units, lists } } = self;
        sell.block_of(ctx, |range, slices, bytes| {
            let data = DeviceVec::zeros(ctx, bytes, WHAT)?;
            let entries = Entries::of(&moved.rows);
            each_of(lists, range, |list, first| {
                moved.kernels()?.fill(ctx, (list, units), &entries, sell.factor, (first, slices, &data))
            })?;
            Ok(data)
        })
    }
}

impl<T: Real> SellOfMoved<'_, T> {
    /// What has to be kept to put other values into the slices.
    fn places(&self, ctx: &Context, block: Arc<SellBlock<T>>) -> Result<Places<T>> {
        let Self { sell, on_device: OnDevice { moved, units, lists } } = self;
        let starts = moved.rows.row_ptr.copied(ctx)?;
        Ok(Places {
            block,
            kernels: Arc::clone(&moved.kernels),
            factor: sell.factor,
            starts,
            nnz: sell.part.nnz(),
            units: Arc::clone(units),
            lists: lists.clone(),
            slices: Arc::clone(&sell.slices),
        })
    }
}

impl<T: Real> Layout<T> for SellOfMoved<'_, T> {
    fn format(&self) -> Format {
        self.sell.format()
    }

    fn bytes(&self) -> usize {
        Layout::bytes(&self.sell)
    }

    fn is_trusted(&self, target: Target) -> bool {
        self.sell.is_trusted(target)
    }

    fn upload(&self, ctx: &Context, _: &Tuning) -> Result<DeviceRows<T>> {
        let (block, sets) = self.block(ctx)?;
        let rows = self.sell.launched(&block, sets);
        Ok(rows.with_values(self.places(ctx, block)?))
    }
}

/// What places in slices follow from, on the device: 8 bytes a row.
struct Places<T> {
    block: Arc<SellBlock<T>>,
    kernels: Arc<Mutex<LayoutKernels<T>>>,
    factor: f64,
    starts: DeviceVec<u32>,
    nnz: usize,
    units: Arc<Units>,
    lists: Vec<UnitList>,
    slices: Arc<Vec<Slice>>,
}

impl<T: Real> Places<T> {
    /// Values that are given in double precision, scaled on the device; `None` for what the host has to scale.
    fn scaled(&self, ctx: &Context, new: &NewValues<'_>) -> Result<Option<DeviceVec<T>>> {
        let Some(roots) = new.roots().filter(|_| size_of::<T>() == size_of::<f64>()) else { return Ok(None) };
        let halo = self.block.n_cols - self.block.n_rows;
        let (true, Some(mut rows)) = (new.col_idx.others().len() == halo, self.compressed(ctx)?) else {
            return Ok(None);
        };
        let given = new.given();
        rows.segments[0].values.make_anew(ctx, 1, |at, to| csr::fill(&given[at], 1.0, to))?;
        let kernels = self.kernels.lock().map_err(|_| Error::SolverBroken)?;
        scale((ctx, &*kernels), &rows, (roots, &new.rows, &new.col_idx), self.factor)?;
        Ok(Some(rows.segments.swap_remove(0).values))
    }
}

impl<T: Real> Values<T> for Places<T> {
    /// What is stored in fewer bytes must fit into as few.
    fn replace(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool> {
        let Self { block, kernels, factor, starts, units, lists, slices, .. } = self;
        if new.factor != *factor {
            return Ok(false);
        }
        let scaled = match self.scaled(ctx, new) {
            Err(Error::OutOfDeviceMemory { .. }) => None, // the host has some
            scaled => scaled?,
        };
        let values = scaled.map_or_else(|| csr::values(ctx, new.values()?, *factor), Ok)?;
        let kernels = &*kernels.lock().map_err(|_| Error::SolverBroken)?;
        let entries = Entries { starts, columns: None, values: &values };
        let mut first = 0;
        for list in lists.iter().filter(|list| !list.units.is_empty()) {
            let behind = first + list.units.len().div_ceil(UNITS);
            let of_list = &slices[first..behind];
            first = behind;
            if of_list.par_iter().all(|slice| slice.value == Value::Real && !slice.is_complex) {
                continue;
            }
            let suits = |(slice, shape): (&Slice, &[u32; SHAPE_WORDS])| {
                let flags = shape[SHAPE_WORDS - 1];
                (slice.value == Value::Real || flags & slice.value.flag() != 0)
                    && (!slice.is_complex || flags & COMPLEX != 0)
            };
            let shapes = kernels.shapes(ctx, (list, units), &entries, *factor)?;
            if !of_list.par_iter().zip(&shapes).all(suits) {
                return Ok(false);
            }
        }
        for segment in &block.segments {
            each_of(lists, &segment.slices, |list, first| {
                kernels.fill(ctx, (list, units), &entries, *factor, (first, &block.slices, &segment.data))
            })?;
        }
        ctx.finish()?; // the values go
        Ok(true)
    }

    fn compressed(&self, ctx: &Context) -> Result<Option<CsrBlock<T>>> {
        let Self { block, kernels, factor, starts, units, lists, nnz, .. } = self;
        let kernels = kernels.lock().map_err(|_| Error::SolverBroken)?;
        let segment = CsrSegment {
            rows: 0..block.n_rows,
            before: 0,
            col_idx: DeviceVec::uninit(ctx, *nnz, "the column indices")?,
            values: DeviceVec::uninit(ctx, *nnz, "the values of the matrix")?,
        };
        let segments = vec![segment];
        let rows = CsrBlock { n_rows: block.n_rows, n_cols: block.n_cols, row_ptr: starts.copied(ctx)?, segments };
        for segment in &block.segments {
            each_of(lists, &segment.slices, |list, first| {
                kernels.unpack(ctx, (list, units), &rows, *factor, (first, &block.slices, &segment.data))
            })?;
        }
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests;
