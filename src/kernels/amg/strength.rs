//! Launchers of `cl/amg_strength.cl`.

use super::{AmgKernels, Blocked, DeviceSparse};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::Result;
use crate::kernels::Argument;
use crate::real::Real;

/// Rows that are cut into blocks together.
const CHUNK: usize = 256;

/// Rows and entries at most of the blocks that [`Blocked`] has.
pub(crate) const BLOCK: (usize, usize) = (256, 2048);

/// The strong neighbours of each row.
pub(crate) struct DeviceGraph {
    pub(super) n: usize,
    pub(super) starts: DeviceVec<u32>,
    pub(super) neighbours: DeviceVec<u32>,
}

impl DeviceGraph {
    pub(super) fn arguments(&self) -> [&dyn Argument; 2] {
        [&self.starts, &self.neighbours]
    }
}

impl<A: Real> AmgKernels<A> {
    /// The largest entry of each row beside the diagonal, as strong couplings are measured by it; and bounds of the eigenvalues by rows, not
    /// weighted and weighted by `b`. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn strength(
        &self,
        ctx: &Context,
        a: Blocked<'_>,
        b: &DeviceVec<f32>,
    ) -> Result<(DeviceVec<f32>, [f32; 2])> {
        let (n, groups) = (a.matrix.n_rows, self.grid_of_blocks(a).groups);
        let n_cols = a.matrix.n_cols;
        assert!(n <= n_cols && n_cols <= b.len());
        let largest = self.short(ctx, n_cols, "the largest entries of rows")?;
        let bounds: DeviceVec<f32> = self.short(ctx, 2 * groups, "bounds of eigenvalues")?;
        // SAFETY: types as declared in the file; vectors as long as columns are many, and two numbers for each group.
        unsafe { self.run_blocks(ctx, "strength", a, &[b, &largest, &bounds]) }?;
        let mut of_groups = vec![0f32; 2 * groups];
        bounds.read(ctx, 0, &mut of_groups)?;
        let most = of_groups.as_chunks::<2>().0.iter();
        Ok((largest, most.fold([0f32; 2], |m, s| [m[0].max(s[0]), m[1].max(s[1])])))
    }

    /// The mean of a square matrix and its transpose, the rows of both of which are sorted. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn mean(&self, ctx: &Context, a: &DeviceSparse, transpose: &DeviceSparse) -> Result<DeviceSparse> {
        let n = a.n_rows;
        assert!(a.n_cols == n && transpose.n_rows == n && transpose.n_cols == n);
        let lengths = self.short(ctx, n, "lengths of rows")?;
        let patterns: [&dyn Argument; 4] = [&a.starts, &a.columns, &transpose.starts, &transpose.columns];
        // SAFETY: types as declared in the file; n rows of both, and as many lengths.
        unsafe { self.run(ctx, "mean_lengths", n, &[&patterns, &[&lengths]]) }?;
        let mean = self.with_lengths(ctx, n, &lengths, Stay::Short)?;
        let args = [&patterns[..], &[&a.values, &transpose.values], &mean.rows()];
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe { self.run(ctx, "mean_rows", n, &args) }?;
        Ok(mean)
    }

    /// The graph of strong couplings among the rows that are there. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn graph(&self, ctx: &Context, a: Blocked<'_>, largest: &DeviceVec<f32>) -> Result<DeviceGraph> {
        let n = a.matrix.n_rows;
        assert!(n <= a.matrix.n_cols && a.matrix.n_cols <= largest.len());
        let owned = crate::kernels::count(n);
        let lengths = self.short(ctx, n, "lengths of rows")?;
        // SAFETY: types as declared in the file; vectors of n elements.
        unsafe { self.run_blocks(ctx, "graph_lengths", a, &[&owned, largest, &lengths]) }?;
        let (starts, count) = self.starts(ctx, &lengths, Stay::Short)?;
        let neighbours = self.short(ctx, count, "strong neighbours")?;
        // SAFETY: the same, and room for as many neighbours as were counted.
        unsafe { self.run_blocks(ctx, "graph_neighbours", a, &[&owned, largest, &starts, &neighbours]) }?;
        Ok(DeviceGraph { n, starts, neighbours })
    }

    /// Row blocks for products, of so many rows and entries at most, but for single longer rows. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn row_blocks(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        (most_rows, most_entries): (usize, usize),
    ) -> Result<DeviceVec<[u32; 2]>> {
        let chunks = a.n_rows.div_ceil(CHUNK);
        let most = [most_rows, most_entries].map(|most| most as u32);
        let lengths = self.short(ctx, chunks, "row blocks of chunks")?;
        let cut = |name, to: &[&dyn Argument]| {
            let rows = crate::kernels::count(a.n_rows);
            let mut all: Vec<&dyn Argument> = vec![&rows, &a.starts, &most[0], &most[1]];
            all.extend(to);
            // SAFETY: types as declared in the file; n + 1 row starts, a number for each 256 rows, and room for as many blocks as were counted.
            unsafe { super::launch(ctx, &self.kernels[name], self.grid(chunks), &all) }
        };
        cut("blocks_count", &[&lengths])?;
        let (firsts, count) = self.starts(ctx, &lengths, Stay::Short)?;
        let blocks = self.pool.array(ctx, count, Stay::Long, "the row blocks")?;
        cut("blocks_cut", &[&firsts, &blocks])?;
        Ok(blocks)
    }

    /// A vector of zeros.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn zeros(&self, ctx: &Context, n: usize) -> Result<DeviceVec<f32>> {
        let v = self.short(ctx, n, "a vector of Lanczos' process")?;
        v.fill(ctx, 0)?;
        Ok(v)
    }

    /// A vector of numbers from −1 to 1 as if by chance.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn random(&self, ctx: &Context, n: usize) -> Result<DeviceVec<f32>> {
        let v = self.short(ctx, n, "a vector of Lanczos' process")?;
        // SAFETY: types as declared in the file; n elements.
        unsafe { self.run(ctx, "lanczos_begin", n, &[&[&v]]) }?;
        Ok(v)
    }

    /// w = A v − β `before`; gives w·v. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn lanczos_product(
        &self,
        ctx: &Context,
        a: Blocked<'_>,
        beta: f32,
        [v, before]: [&DeviceVec<f32>; 2],
        w: &mut DeviceVec<f32>,
    ) -> Result<f64> {
        let (n, groups) = (a.matrix.n_rows, self.grid_of_blocks(a).groups);
        assert!(a.matrix.n_cols <= v.len() && n <= before.len().min(w.len()));
        self.summed(ctx, groups, |partials| {
            // SAFETY: types as declared in the file; vectors of n elements, and a number for each group.
            unsafe { self.run_blocks(ctx, "lanczos_product", a, &[&beta, v, before, w, partials]) }
        })
    }

    /// w −= α v; gives w·w. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn lanczos_remove(
        &self,
        ctx: &Context,
        n: usize,
        alpha: f32,
        v: &DeviceVec<f32>,
        w: &mut DeviceVec<f32>,
    ) -> Result<f64> {
        assert!(n <= v.len().min(w.len()));
        self.summed(ctx, self.grid(n).groups, |partials| {
            // SAFETY: types as declared in the file; vectors of n elements, and a number for each group.
            unsafe { self.run(ctx, "lanczos_remove", n, &[&[&alpha, v, w, partials]]) }
        })
    }

    /// w *= `factor`.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn scale(&self, ctx: &Context, n: usize, factor: f32, w: &mut DeviceVec<f32>) -> Result<()> {
        assert!(n <= w.len());
        // SAFETY: types as declared in the file; n elements.
        unsafe { self.run(ctx, "lanczos_scale", n, &[&[&factor, w]]) }
    }

    /// The sum of what each group leaves.
    fn summed(&self, ctx: &Context, groups: usize, leave: impl FnOnce(&DeviceVec<A>) -> Result<()>) -> Result<f64> {
        let partials = self.short(ctx, groups, "partial sums")?;
        leave(&partials)?;
        let mut sums = vec![A::default(); groups];
        partials.read(ctx, 0, &mut sums)?;
        Ok(sums.iter().map(|sum| sum.to_f64()).sum())
    }
}
