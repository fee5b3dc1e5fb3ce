//! Launchers of `cl/amg_prolongation.cl`.

use super::aggregate::DeviceAggregates;
use super::{AmgKernels, DeviceSparse};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::Argument;
use crate::real::Real;

impl<A: Real> AmgKernels<A> {
    /// The entry of each row of the tentative prolongation of `b`, or 0, and the near-null vector of the next level.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn tentative(
        &self,
        ctx: &Context,
        aggregates: &DeviceAggregates,
        b: &DeviceVec<f32>,
    ) -> Result<[DeviceVec<f32>; 2]> {
        let DeviceAggregates { of, count } = aggregates;
        let n = of.len();
        assert!(n <= b.len());
        let keys = DeviceVec::uninit(ctx, n, "aggregates to sort by")?;
        let most = crate::kernels::count(*count);
        // SAFETY: types as declared in the file; n aggregates below `count`, or none.
        unsafe { self.run(ctx, "aggregate_keys", n, &[&[&most, of, &keys]]) }?;
        let (sorted, members) = self.sorted(ctx, &keys, count + 1)?;
        let starts = self.key_starts(ctx, &sorted, *count)?;
        let coarse = DeviceVec::uninit(ctx, *count, "the next near-null vector")?;
        // SAFETY: types as declared in the file; members below n, and where those of each aggregate begin.
        unsafe { self.run(ctx, "coarse_vector", *count, &[&[&starts, &members, b, &coarse]]) }?;
        let t = DeviceVec::uninit(ctx, n, "the tentative prolongation")?;
        // SAFETY: types as declared in the file; vectors of n elements, and one of `count`.
        unsafe { self.run(ctx, "tentative", n, &[&[of, b, &coarse, &t]]) }?;
        Ok([t, coarse])
    }

    /// P = (I − ω D⁻¹ A) T. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn smoothed(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        [b, largest, t]: [&DeviceVec<f32>; 3],
        aggregates: &DeviceAggregates,
    ) -> Result<DeviceSparse> {
        let n = a.n_rows;
        assert!(n == a.n_cols && n <= b.len().min(largest.len()).min(t.len()).min(aggregates.of.len()));
        let args: Vec<&dyn Argument> = [&a.rows()[..], &[b, largest, &aggregates.of, t]].concat();
        self.by_rows(ctx, (n, aggregates.count), ["smoothed_lengths", "smoothed_rows"], &args)
    }

    /// T as a matrix. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn unsmoothed(
        &self,
        ctx: &Context,
        aggregates: &DeviceAggregates,
        t: &DeviceVec<f32>,
    ) -> Result<DeviceSparse> {
        let n = aggregates.of.len();
        assert!(n <= t.len());
        let lengths = DeviceVec::uninit(ctx, n, "lengths of rows")?;
        // SAFETY: types as declared in the file; vectors of n elements.
        unsafe { self.run(ctx, "tentative_lengths", n, &[&[&aggregates.of, &lengths]]) }?;
        let p = self.with_lengths(ctx, aggregates.count, &lengths)?;
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe { self.run(ctx, "tentative_rows", n, &[&[&aggregates.of, t], &p.rows()]) }?;
        Ok(p)
    }

    /// A matrix whose rows two kernels count and make, from these arguments.
    fn by_rows(
        &self,
        ctx: &Context,
        (n, n_cols): (usize, usize),
        [counts, makes]: [&'static str; 2],
        args: &[&dyn Argument],
    ) -> Result<DeviceSparse> {
        let lengths = DeviceVec::uninit(ctx, n, "lengths of rows")?;
        // SAFETY: the callers': arguments as declared in the file, of n rows.
        unsafe { self.run(ctx, counts, n, &[args, &[&lengths]]) }?;
        let matrix = self.with_lengths(ctx, n_cols, &lengths)?;
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe { self.run(ctx, makes, n, &[args, &matrix.rows()]) }?;
        Ok(matrix)
    }

    /// A matrix of rows of these lengths, whose entries are not there yet.
    pub(super) fn with_lengths(&self, ctx: &Context, n_cols: usize, lengths: &DeviceVec<u32>) -> Result<DeviceSparse> {
        let (starts, nnz) = self.starts(ctx, lengths)?;
        let columns = DeviceVec::uninit(ctx, nnz, "columns of a level")?;
        let values = DeviceVec::uninit(ctx, nnz, "values of a level")?;
        Ok(DeviceSparse { n_rows: lengths.len(), n_cols, starts, columns, values })
    }

    /// The transpose, whose rows are sorted.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn transposed(&self, ctx: &Context, a: &DeviceSparse) -> Result<DeviceSparse> {
        let nnz = a.nnz();
        let rows = DeviceVec::<u32>::uninit(ctx, nnz, "rows of entries")?;
        // SAFETY: types as declared in the file; n + 1 row starts, and a place for each entry.
        unsafe { self.run(ctx, "entry_rows", a.n_rows, &[&[&a.starts, &rows]]) }?;
        let (sorted, places) = self.sorted(ctx, &a.columns, a.n_cols)?;
        let starts = self.key_starts(ctx, &sorted, a.n_cols)?;
        let columns = sorted; // its place is free now
        let values = DeviceVec::uninit(ctx, nnz, "values of a level")?;
        // SAFETY: types as declared in the file; places below nnz, and arrays of nnz elements.
        unsafe { self.run(ctx, "entries_at", nnz, &[&[&places, &rows, &a.values, &columns, &values]]) }?;
        Ok(DeviceSparse { n_rows: a.n_cols, n_cols: a.n_rows, starts, columns, values })
    }

    /// Scales Pᵀ A P so that its diagonal is 1, and Pᵀ and the near-null vector to match; P gets the other sign, too.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn scale_levels(
        &self,
        ctx: &Context,
        [p, restriction, next]: [&mut DeviceSparse; 3],
        coarse: &mut DeviceVec<f32>,
    ) -> Result<()> {
        let n = next.n_rows;
        assert!(n == next.n_cols && n == restriction.n_rows && n == p.n_cols && n <= coarse.len());
        let factors = DeviceVec::<f32>::uninit(ctx, n, "factors of the next level")?;
        let of_rows: [&dyn Argument; 4] = [&restriction.starts, &restriction.values, &factors, coarse];
        // SAFETY, of all: types as declared in the file; n rows here and there, n factors, and columns of p and of next below n.
        unsafe { self.run(ctx, "scale_factors", n, &[&next.rows(), &of_rows]) }?;
        // SAFETY: as above.
        unsafe { self.run(ctx, "scale_both", n, &[&[&next.starts, &next.columns, &factors, &next.values]]) }?;
        // SAFETY: as above.
        unsafe { self.run(ctx, "scale_rows", n, &[&[&restriction.starts, &factors, &restriction.values]]) }?;
        // SAFETY: as above; the kernel takes entries.
        unsafe { self.run(ctx, "scale_columns", p.nnz(), &[&[&p.columns, &factors, &p.values]]) }
    }
}
