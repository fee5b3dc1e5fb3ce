//! Other values in slices that are there.

use std::sync::Arc;

use rayon::prelude::*;

use super::{List, Piece, Sell, Slice, Value, is_complex};
use crate::device::{Context, Filling};
use crate::error::Result;
use crate::kernels::sell::SellBlock;
use crate::operator::device_rows::Values;
use crate::partition::{HaloPlan, NewValues, Part};
use crate::real::Real;

/// What places in slices follow from: 8 bytes a row.
pub(super) struct Places<T> {
    on_device: Arc<SellBlock<T>>,
    factor: f64,
    block: usize,
    lists: Arc<Vec<List>>,
    pieces: Arc<Vec<Piece>>,
    slices: Arc<Vec<Slice>>,
}

impl<T: Real> Values<T> for Places<T> {
    /// What is stored in fewer bytes must fit into as few. Columns lie between values, and are written again.
    fn replace(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool> {
        let Self { on_device, factor, block, .. } = self;
        let part = Part {
            rows: new.rows.clone(),
            row_ptr: new.row_ptr(),
            col_idx: new.col_idx[..].into(),
            values: new.values()?.into(),
            halo: HaloPlan { len: on_device.n_cols - on_device.n_rows, ..HaloPlan::default() },
            of: None,
        };
        let (lists, pieces, slices) = (&self.lists, &self.pieces, &self.slices);
        let sell = Sell::<T> {
            lists: Arc::clone(lists),
            pieces: Arc::clone(pieces),
            slices: Arc::clone(slices),
            ..Sell::empty(&part, *factor, *block)
        };
        if new.factor != *factor || !slices.par_iter().all(|slice| sell.suits(slice)) {
            return Ok(false);
        }
        for segment in &on_device.segments {
            sell.fill_all(Filling::of(ctx, &segment.data), &segment.slices)?;
        }
        Ok(true)
    }
}

impl<T: Real> Sell<'_, T> {
    /// What has to be kept to put other values into the slices.
    pub(super) fn places(&self, on_device: Arc<SellBlock<T>>) -> Places<T> {
        let (lists, pieces, slices) = (Arc::clone(&self.lists), Arc::clone(&self.pieces), Arc::clone(&self.slices));
        Places { on_device, factor: self.factor, block: self.block, lists, pieces, slices }
    }

    /// Whether the device gets the same bits from the values as a slice stores them.
    fn suits(&self, slice: &Slice) -> bool {
        let List { block, units, .. } = &self.lists[slice.list];
        let entry_suits = |at: usize| {
            let values = &self.part.values[at..at + block];
            slice.value == Value::Real || values.iter().all(|&v| self.survives(slice.value, v))
        };
        let block_suits = |unit, e| {
            let row = |row| self.entry(*block, unit, e, row);
            let of_row = |at: usize| [at, at + 1].map(|at| self.worth(self.part.values[at]));
            (0..*block).all(|k| entry_suits(row(k)))
                && (!slice.is_complex || is_complex([of_row(row(0)), of_row(row(1))]))
        };
        let units = &units[slice.first..slice.first + slice.count];
        let is_stored_as_given = slice.value == Value::Real && !slice.is_complex;
        is_stored_as_given || units.iter().all(|&unit| (0..self.len(*block, unit)).all(|e| block_suits(unit, e)))
    }
}
