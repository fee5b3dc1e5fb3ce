//! A Krylov basis on an OpenCL device.

use std::time::Instant;

use super::sums::PARTIAL_SUMS;
use super::{Backend, OpenClBackend};
use crate::backend::basis::BasisBackend;
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::basis::{Band, TileSums};
use crate::real::Real;

/// Columns, cut into bands of rows as a buffer may be no larger.
pub(crate) struct DeviceBasis<T, A> {
    bands: Vec<Band<T>>,
    partials: DeviceVec<A>,
    totals: DeviceVec<A>,
    factors: DeviceVec<A>,
}

impl<T: Real, A: Real> DeviceBasis<T, A> {
    fn tiles(&self) -> usize {
        self.bands.last().map_or(0, |band| band.tiles.end)
    }

    /// Puts factors where kernels find them.
    fn place(&mut self, ctx: &Context, f: &[f64]) -> Result<()> {
        let factors: Vec<A> = f.iter().map(|f| A::from_f64(*f)).collect();
        if factors.is_empty() { Ok(()) } else { self.factors.write(ctx, 0, &factors) }
    }
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// The first totals of what kernels have left, waited for.
    fn fetch_totals(&self, v: &mut DeviceBasis<T, A>, len: usize) -> Result<Vec<f64>> {
        let sums = TileSums { partials: &v.partials, tiles: v.tiles() };
        self.kernels.basis_totals(&self.ctx, len, sums, &mut v.totals)?;
        let start = Instant::now();
        let memory = self.end_fetch(self.start_fetch(&[(&v.totals, 0..len)])?)?;
        let values = memory[..len].iter().map(|total| total.to_f64()).collect();
        self.keep_landing(memory);
        self.waited(start);
        Ok(values)
    }
}

impl<T: Real, A: Real> BasisBackend for OpenClBackend<T, A> {
    type Basis = DeviceBasis<T, A>;

    fn basis(&self, columns: usize) -> Result<DeviceBasis<T, A>> {
        let (ctx, n) = (&self.ctx, self.n_owned());
        let most = ((ctx.max_band_bytes / (columns.max(1) * size_of::<T>()) as u64) as usize).max(1);
        let count = n.div_ceil(most).max(1);
        let rows = n.div_ceil(count).next_multiple_of(2); // of whole pairs, where there are pairs
        let group_size = self.kernels.tuning.launch("basis_dots").group_size;
        let mut bands: Vec<Band<T>> = Vec::with_capacity(count);
        for k in 0..count {
            let first_tile = bands.last().map_or(0, |band| band.tiles.end);
            let rows = n.min(k * rows)..n.min((k + 1) * rows);
            bands.push(Band::zeros(ctx, rows, columns, first_tile, group_size)?);
        }
        let tiles = bands.last().map_or(0, |band| band.tiles.end);
        Ok(DeviceBasis {
            bands,
            partials: DeviceVec::zeros(ctx, (2 * columns + 1) * tiles, PARTIAL_SUMS)?,
            totals: DeviceVec::zeros(ctx, 2 * columns + 1, PARTIAL_SUMS)?,
            factors: DeviceVec::zeros(ctx, columns, PARTIAL_SUMS)?,
        })
    }

    fn column_dots(
        &self,
        v: &mut DeviceBasis<T, A>,
        (columns, newest): (usize, usize),
        w: &DeviceVec<T>,
    ) -> Result<Vec<f64>> {
        let sums = TileSums { partials: &v.partials, tiles: v.tiles() };
        let most = self.kernels.most_columns().min(columns.max(1));
        for band in &v.bands {
            for first in (0..columns.max(1)).step_by(most) {
                let some = (first..columns.min(first + most), columns, newest);
                self.kernels.basis_dots(&self.ctx, band, some, w, sums)?;
            }
        }
        self.fetch_totals(v, 2 * columns + 1)
    }

    fn next_column(
        &self,
        v: &mut DeviceBasis<T, A>,
        f: &[f64],
        (scale, w): (f64, &DeviceVec<T>),
        place: (usize, bool),
        to: &mut DeviceVec<T>,
    ) -> Result<f64> {
        v.place(&self.ctx, f)?;
        let (scale, tiles) = (T::from_f64(scale), v.tiles());
        let sums = TileSums { partials: &v.partials, tiles };
        for band in &mut v.bands {
            self.kernels.basis_next(&self.ctx, band, (f.len(), &v.factors), (scale, w), (place, to), sums)?;
        }
        Ok(self.fetch_totals(v, 1)?[0])
    }

    fn add_columns(&self, v: &mut DeviceBasis<T, A>, f: &[f64], x: &mut DeviceVec<T>) -> Result<()> {
        v.place(&self.ctx, f)?;
        v.bands.iter().try_for_each(|band| self.kernels.basis_add(&self.ctx, band, (f.len(), &v.factors), x))
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }
}
