//! Launchers of `cl/amg_prolongation.cl`.

use super::aggregate::DeviceAggregates;
use super::{AmgKernels, Blocked, DeviceSparse};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::Result;
use crate::kernels::Argument;
use crate::real::Real;

impl<A: Real> AmgKernels<A> {
    /// The entry of each row of the tentative prolongation of `b`, or 0, with room for as many as `b` has, and the near-null vector of the next
    /// level.
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
        let (starts, members) = self.members(ctx, aggregates)?;
        let coarse = self.short(ctx, *count, "the next near-null vector")?;
        // SAFETY: types as declared in the file; members below n, and where those of each aggregate begin.
        unsafe { self.run(ctx, "coarse_vector", *count, &[&[&starts, &members, b, &coarse]]) }?;
        let t = self.short(ctx, b.len(), "the tentative prolongation")?;
        // SAFETY: types as declared in the file; vectors of n elements, and one of `count`.
        unsafe { self.run(ctx, "tentative", n, &[&[of, b, &coarse, &t]]) }?;
        Ok([t, coarse])
    }

    /// The rows of each aggregate, and where they begin.
    pub(super) fn members(
        &self,
        ctx: &Context,
        DeviceAggregates { of, count }: &DeviceAggregates,
    ) -> Result<(DeviceVec<u32>, DeviceVec<u32>)> {
        let (n, most) = (of.len(), crate::kernels::count(*count));
        let keys = self.short(ctx, n, "aggregates to sort by")?;
        // SAFETY: types as declared in the file; n aggregates below `count`, or none.
        unsafe { self.run(ctx, "aggregate_keys", n, &[&[&most, of, &keys]]) }?;
        let (sorted, members) = self.sorted(ctx, &keys, count + 1, Stay::Short)?;
        Ok((self.key_starts(ctx, &sorted, *count, Stay::Short)?, members))
    }

    /// P = (I − ω D⁻¹ A) T. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn smoothed(
        &self,
        ctx: &Context,
        a: Blocked<'_>,
        [b, largest, t]: [&DeviceVec<f32>; 3],
        aggregates: &DeviceAggregates,
    ) -> Result<DeviceSparse> {
        let (n, n_cols) = (a.matrix.n_rows, a.matrix.n_cols);
        assert!(n <= n_cols && n_cols <= b.len().min(largest.len()).min(t.len()).min(aggregates.of.len()));
        let needs = self.short::<[f32; 4]>(ctx, n_cols, "what is needed of neighbours")?;
        // SAFETY: types as declared in the file; vectors as long as columns are many.
        unsafe { self.run(ctx, "smoothed_needs", n_cols, &[&[b, largest, &aggregates.of, t, &needs]]) }?;
        let lengths = self.short(ctx, n, "lengths of rows")?;
        // SAFETY: as above.
        unsafe { self.run_blocks(ctx, "smoothed_lengths", a, &[&needs, &lengths]) }?;
        let p = self.with_lengths(ctx, aggregates.count, &lengths, Stay::Long)?;
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe { self.run_blocks(ctx, "smoothed_rows", a, &[&[&needs as &dyn Argument][..], &p.rows()].concat()) }?;
        Ok(p)
    }

    /// T as a matrix of n rows. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn unsmoothed(
        &self,
        ctx: &Context,
        n: usize,
        aggregates: &DeviceAggregates,
        t: &DeviceVec<f32>,
    ) -> Result<DeviceSparse> {
        assert!(n <= t.len().min(aggregates.of.len()));
        let lengths = self.short(ctx, n, "lengths of rows")?;
        // SAFETY: types as declared in the file; vectors of n elements.
        unsafe { self.run(ctx, "tentative_lengths", n, &[&[&aggregates.of, &lengths]]) }?;
        let p = self.with_lengths(ctx, aggregates.count, &lengths, Stay::Long)?;
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe { self.run(ctx, "tentative_rows", n, &[&[&aggregates.of, t], &p.rows()]) }?;
        Ok(p)
    }

    /// The transpose, whose rows are sorted.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn transposed(&self, ctx: &Context, a: &DeviceSparse) -> Result<DeviceSparse> {
        self.transposed_and_places(ctx, a).map(|(transpose, _)| transpose)
    }

    /// The same, and the place of each entry before.
    pub(super) fn transposed_and_places(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
    ) -> Result<(DeviceSparse, DeviceVec<u32>)> {
        self.transposed_by(ctx, a, &a.columns, a.n_cols, a.n_cols)
    }

    /// The first `rows` rows of the transpose where columns are these, all of them below `below`. Arrays may have room behind its entries.
    pub(super) fn transposed_by(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        columns: &DeviceVec<u32>,
        rows: usize,
        below: usize,
    ) -> Result<(DeviceSparse, DeviceVec<u32>)> {
        let (nnz, n_rows) = (a.nnz(), rows);
        let rows = self.short::<u32>(ctx, nnz, "rows of entries")?;
        // SAFETY: types as declared in the file; n + 1 row starts, and a place for each entry.
        unsafe { self.run_shared(ctx, "entry_rows", (a.n_rows, nnz), &[&a.starts, &rows]) }?;
        let (sorted, places) = self.sorted(ctx, columns, below, Stay::Long)?;
        let starts = self.key_starts(ctx, &sorted, n_rows, Stay::Long)?;
        let columns = sorted; // its place is free now
        let values = self.pool.array(ctx, nnz, Stay::Long, "values of a level")?;
        // SAFETY: types as declared in the file; places below nnz, and arrays of nnz elements.
        unsafe { self.run(ctx, "entries_at", nnz, &[&[&places, &rows, &a.values, &columns, &values]]) }?;
        Ok((DeviceSparse { n_rows, n_cols: a.n_rows, starts, columns, values }, places))
    }

    /// Scales Pᵀ A P so that its diagonal is 1, and Pᵀ and the near-null vector to match; P gets the other sign, too.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn scale_levels(
        &self,
        ctx: &Context,
        levels: [&mut DeviceSparse; 3],
        coarse: &mut DeviceVec<f32>,
    ) -> Result<()> {
        let factors = self.level_factors(ctx, [levels[1], levels[2]], coarse)?;
        self.scale_by(ctx, levels, &factors)
    }

    /// What makes the diagonal of Pᵀ A P 1, with room for that of other ranks' rows; the near-null vector is scaled to match.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn level_factors(
        &self,
        ctx: &Context,
        [restriction, next]: [&DeviceSparse; 2],
        coarse: &mut DeviceVec<f32>,
    ) -> Result<DeviceVec<f32>> {
        let n = next.n_rows;
        assert!(n <= next.n_cols && n == restriction.n_rows && n <= coarse.len());
        let factors = self.short::<f32>(ctx, next.n_cols, "factors of the next level")?;
        let of_rows: [&dyn Argument; 4] = [&restriction.starts, &restriction.values, &factors, coarse];
        // SAFETY: types as declared in the file; n rows here and there, and n factors.
        unsafe { self.run(ctx, "scale_factors", n, &[&next.rows(), &of_rows]) }?;
        Ok(factors)
    }

    /// Scales P, which gets the other sign, Pᵀ and Pᵀ A P.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn scale_by(
        &self,
        ctx: &Context,
        [p, restriction, next]: [&mut DeviceSparse; 3],
        factors: &DeviceVec<f32>,
    ) -> Result<()> {
        let n = next.n_rows;
        assert!(n == restriction.n_rows && p.n_cols.max(next.n_cols) <= factors.len());
        // SAFETY: types as declared in the file; n rows here and there, and columns of p and of next below as many as there are factors.
        unsafe {
            self.run_shared(ctx, "scale_both", (n, next.nnz()), &[&next.starts, &next.columns, factors, &next.values])
        }?;
        // SAFETY: as above.
        unsafe {
            self.run_shared(
                ctx,
                "scale_rows",
                (n, restriction.nnz()),
                &[&restriction.starts, factors, &restriction.values],
            )
        }?;
        // SAFETY: as above; the kernel takes entries.
        unsafe { self.run(ctx, "scale_columns", p.nnz(), &[&[&p.columns, factors, &p.values]]) }
    }
}
