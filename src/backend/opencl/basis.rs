//! A Krylov basis on an OpenCL device.

use std::ops::Range;
use std::time::Instant;

use super::sums::PARTIAL_SUMS;
use super::{Backend, OpenClBackend};
use crate::backend::basis::BasisBackend;
use crate::device::DeviceVec;
use crate::error::Result;
use crate::kernels::basis::{Band, Factors, TileSums};
use crate::real::Real;

/// Columns, cut into bands of rows as a buffer may be no larger.
pub(crate) struct DeviceBasis<T, A> {
    bands: Vec<Band<T>>,
    columns: usize,
    partials: DeviceVec<A>,
    /// Vᵀ w, and behind all columns that of what is left of w; as factors for the next kernel, too.
    totals: DeviceVec<A>,
    /// What is known to be there, and where it begins.
    known: (Vec<f64>, usize),
}

impl<T: Real, A: Real> DeviceBasis<T, A> {
    fn tiles(&self) -> usize {
        self.bands.last().map_or(0, |band| band.tiles.end)
    }
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// Enqueues what leaves Vᵀ w, from `totals[0]` on.
    fn enqueue_dots(&self, v: &mut DeviceBasis<T, A>, columns: usize, w: &DeviceVec<T>) -> Result<()> {
        let sums = TileSums { partials: &v.partials, tiles: v.tiles() };
        for band in &v.bands {
            for columns in self.at_once(0..columns) {
                self.kernels.basis_dots(&self.ctx, band, columns, w, sums)?;
            }
        }
        self.kernels.basis_totals(&self.ctx, columns, sums, &mut v.totals, 0)
    }

    /// Enqueues w = w − V f with the totals from `first` on for f, and what leaves Vᵀ w and w·w behind those of all columns.
    fn enqueue_subtract_dots(
        &self,
        v: &mut DeviceBasis<T, A>,
        (first, columns): (usize, usize),
        w: &mut DeviceVec<T>,
    ) -> Result<()> {
        let sums = TileSums { partials: &v.partials, tiles: v.tiles() };
        for band in &v.bands {
            self.kernels.basis_subtract_dots(&self.ctx, band, columns, Factors(&v.totals, first), w, sums)?;
            for more in self.at_once(0..columns).skip(1) {
                self.kernels.basis_dots(&self.ctx, band, more, w, sums)?;
            }
        }
        self.kernels.basis_totals(&self.ctx, columns + 1, sums, &mut v.totals, v.columns)
    }

    /// Columns, as many in each part as a launch has sums for.
    fn at_once(&self, columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let most = self.kernels.most_columns().min(columns.len().max(1));
        columns.clone().step_by(most).map(move |first| first..columns.end.min(first + most))
    }

    /// Some totals, waited for.
    fn fetch_totals(&self, v: &DeviceBasis<T, A>, range: Range<usize>) -> Result<Vec<f64>> {
        let (start, len) = (Instant::now(), range.len());
        let memory = self.end_fetch(self.start_fetch(&[(&v.totals, range)])?)?;
        let values = memory[..len].iter().map(|total| total.to_f64()).collect();
        self.keep_landing(memory);
        self.waited(start);
        Ok(values)
    }

    /// Where factors are on the device: they are written if they are not there.
    fn place(&self, v: &mut DeviceBasis<T, A>, f: &[f64]) -> Result<usize> {
        if v.known.0 != f {
            let factors: Vec<A> = f.iter().map(|f| A::from_f64(*f)).collect();
            v.totals.write(&self.ctx, 0, &factors)?;
            v.known = (f.to_vec(), 0);
        }
        Ok(v.known.1)
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
            columns,
            partials: DeviceVec::zeros(ctx, (columns + 1) * tiles, PARTIAL_SUMS)?,
            totals: DeviceVec::zeros(ctx, 2 * columns + 1, PARTIAL_SUMS)?,
            known: (Vec::new(), 0),
        })
    }

    fn column_dots(&self, v: &mut DeviceBasis<T, A>, columns: usize, w: &DeviceVec<T>) -> Result<Vec<f64>> {
        self.enqueue_dots(v, columns, w)?;
        let h = self.fetch_totals(v, 0..columns)?;
        v.known = (h.clone(), 0);
        Ok(h)
    }

    fn subtract_dots(&self, v: &mut DeviceBasis<T, A>, f: &[f64], w: &mut DeviceVec<T>) -> Result<Vec<f64>> {
        let first = self.place(v, f)?;
        self.enqueue_subtract_dots(v, (first, f.len()), w)?;
        let d = self.fetch_totals(v, v.columns..v.columns + f.len() + 1)?;
        v.known = (d[..f.len()].to_vec(), v.columns);
        Ok(d)
    }

    /// The host waits once.
    fn project(&self, v: &mut DeviceBasis<T, A>, columns: usize, w: &mut DeviceVec<T>) -> Result<[Vec<f64>; 2]> {
        self.enqueue_dots(v, columns, w)?;
        self.enqueue_subtract_dots(v, (0, columns), w)?;
        let mut h = self.fetch_totals(v, 0..v.columns + columns + 1)?;
        let d = h.split_off(v.columns);
        h.truncate(columns);
        v.known = (d[..columns].to_vec(), v.columns);
        Ok([h, d])
    }

    fn next_column(
        &self,
        v: &mut DeviceBasis<T, A>,
        f: &[f64],
        (scale, w): (f64, &DeviceVec<T>),
        place: (usize, bool),
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        let first = self.place(v, f)?;
        let factors = Factors(&v.totals, first);
        for band in &mut v.bands {
            self.kernels.basis_next(&self.ctx, band, f.len(), factors, (T::from_f64(scale), w), place, to)?;
        }
        Ok(())
    }

    fn add_columns(&self, v: &mut DeviceBasis<T, A>, f: &[f64], x: &mut DeviceVec<T>) -> Result<()> {
        let first = self.place(v, f)?;
        let factors = Factors(&v.totals, first);
        v.bands.iter().try_for_each(|band| self.kernels.basis_add(&self.ctx, band, f.len(), factors, x))
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }
}
