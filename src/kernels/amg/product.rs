//! Launchers of `cl/amg_product.cl`.

use super::{AmgKernels, DeviceSparse, PRODUCT_GROUP, launch};
use crate::device::{Context, DeviceVec, Grid, Stay};
use crate::error::Result;
use crate::kernels::{Argument, count};
use crate::real::Real;

/// Lanes of a row in each bin; rows of the last one, which has all of a group, have tables in global memory.
const LANES: [usize; 6] = [2, 4, 8, 32, PRODUCT_GROUP, PRODUCT_GROUP];
const LONG: usize = LANES.len() - 1;

/// Slots of all tables in global memory, but for those of one group.
const SLOTS: usize = 1 << 25;

/// Which rows are in which bin.
struct Bins {
    /// Rows, bin by bin,
    list: DeviceVec<u32>,
    /// and where each begins.
    firsts: [u32; LANES.len() + 1],
    /// The length of the longest row.
    longest: usize,
}

/// How many entries the rows of a product have.
pub(crate) struct ProductLengths {
    lengths: DeviceVec<u32>,
    starts: DeviceVec<u32>,
    pub(crate) nnz: usize,
    stay: Stay,
}

impl<A: Real> AmgKernels<A> {
    /// How many entries the rows of A B have, which is to stay so long. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn product_lengths(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        b: &DeviceSparse,
        stay: Stay,
    ) -> Result<ProductLengths> {
        let (n, n_columns) = (a.n_rows, count(b.n_cols));
        assert!(a.n_cols == b.n_rows);
        let lengths = self.short(ctx, n, "lengths of rows")?;
        let args: [&dyn Argument; 5] = [&n_columns, &a.starts, &a.columns, &b.starts, &lengths];
        // SAFETY: types as declared in the file; n rows, whose columns are rows of b.
        unsafe { self.run_in(ctx, "product_bounds", self.product_grid(n, 1), n, &[&args]) }?;
        let bins = self.bins(ctx, &lengths)?;
        let args: [&dyn Argument; 5] = [&a.starts, &a.columns, &b.starts, &b.columns, &lengths];
        // SAFETY: types as declared in the file; n rows, whose columns are rows of b, and a bound for the entries of each.
        unsafe { self.by_bins(ctx, &bins, ["product_count", "product_count_long"], &args, false) }?;
        let (starts, nnz) = self.starts(ctx, &lengths, stay)?;
        Ok(ProductLengths { lengths, starts, nnz, stay })
    }

    /// A B; rows are in no order unless they are to be sorted. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn product(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        b: &DeviceSparse,
        of: ProductLengths,
        is_sorted: bool,
    ) -> Result<DeviceSparse> {
        assert!(a.n_cols == b.n_rows && of.lengths.len() == a.n_rows);
        let ProductLengths { lengths, starts, nnz, stay } = of;
        let c = self.with_starts(ctx, (a.n_rows, b.n_cols), starts, nnz, stay)?;
        let bins = self.bins(ctx, &lengths)?;
        let operands: [&dyn Argument; 6] = [&a.starts, &a.columns, &b.starts, &b.columns, &a.values, &b.values];
        let is_sorted = u32::from(is_sorted);
        let args: Vec<&dyn Argument> = [&operands[..], &c.rows(), &[&is_sorted]].concat();
        // SAFETY: types as declared in the file; n rows, whose columns are rows of b, and as many entries of each as were counted.
        unsafe { self.by_bins(ctx, &bins, ["product_fill", "product_fill_long"], &args, true) }?;
        Ok(c)
    }

    /// The bins of rows of these lengths, or of bounds of them. Waits.
    fn bins(&self, ctx: &Context, lengths: &DeviceVec<u32>) -> Result<Bins> {
        let n = lengths.len();
        let mut counts = [0; LANES.len() + 1];
        let of_bins = self.numbers(ctx, &counts, "counts of bins")?;
        // SAFETY: types as declared in the file; n lengths, and a number for each bin and one more.
        unsafe { self.run_in(ctx, "bins_count", self.product_grid(n, 1), n, &[&[lengths, &of_bins]]) }?;
        of_bins.read(ctx, 0, &mut counts)?;
        let longest = counts[LANES.len()] as usize;
        let mut firsts = [0; LANES.len() + 1];
        (0..LANES.len()).for_each(|bin| firsts[bin + 1] = firsts[bin] + counts[bin]);
        let next = self.numbers(ctx, &firsts, "where bins begin")?;
        let list = self.short(ctx, n, "rows by their bins")?;
        // SAFETY: types as declared in the file; n lengths, whose bins were counted.
        unsafe { self.run_in(ctx, "bins_fill", self.product_grid(n, 1), n, &[&[lengths, &next, &list]]) }?;
        Ok(Bins { list, firsts, longest })
    }

    /// Launches a kernel for each bin that has rows: the first of them, or the second for those with tables in global memory, of columns and,
    /// if there are, of sums.
    ///
    /// # Safety
    /// As [`launch`]; rows must have no more entries than their bin says.
    unsafe fn by_bins(
        &self,
        ctx: &Context,
        bins: &Bins,
        [short, long]: [&'static str; 2],
        args: &[&dyn Argument],
        has_sums: bool,
    ) -> Result<()> {
        for (bin, &lanes) in LANES.iter().enumerate() {
            let [begin, count] = [bins.firsts[bin], bins.firsts[bin + 1] - bins.firsts[bin]];
            if count == 0 {
                continue;
            }
            if bin < LONG {
                let grid = self.product_grid(count as usize, lanes);
                let head: [&dyn Argument; 4] = [&(lanes as u32), &begin, &count, &bins.list];
                // SAFETY: the caller's promise.
                unsafe { launch(ctx, &self.kernels[short], grid, &[&head, args].concat()) }?;
                continue;
            }
            let slots = (2 * bins.longest).next_power_of_two().max(16 * PRODUCT_GROUP);
            let groups = (count as usize).min(SLOTS / slots).min(self.most_groups).max(1);
            let tables = self.short::<u32>(ctx, slots * groups, "tables of columns")?;
            let sums = self.short::<f32>(ctx, if has_sums { slots * groups } else { 0 }, "tables of sums")?;
            let head: [&dyn Argument; 4] = [&(slots as u32), &begin, &count, &bins.list];
            let tail: &[&dyn Argument] = if has_sums { &[&tables, &sums] } else { &[&tables] };
            let grid = Grid { groups, group_size: PRODUCT_GROUP };
            // SAFETY: the caller's promise, and tables of twice as many slots as a row has entries, for each group.
            unsafe { launch(ctx, &self.kernels[long], grid, &[&head, args, tail].concat()) }?;
        }
        Ok(())
    }

    /// Groups that take so many rows, each of so many lanes.
    fn product_grid(&self, rows: usize, lanes: usize) -> Grid {
        let groups = (rows * lanes).div_ceil(PRODUCT_GROUP).clamp(1, self.most_groups);
        Grid { groups, group_size: PRODUCT_GROUP }
    }
}
