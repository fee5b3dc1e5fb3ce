//! Launchers of generated passes over vectors of several columns (`src/backend/source/columns.rs`), and of `cl/columns.cl`.

use super::pass::{PassSums, interned};
use super::{Argument, MAX_COLUMNS, count, launch};
use crate::device::{Context, DeviceVec, Grid, Kernel, Program};
use crate::error::Result;
use crate::real::Real;

/// A pass whose factors the host gives, in an array.
pub(crate) struct ColumnsPass {
    kernel: Kernel,
    columns: usize,
    /// Numbers for each column: its factors, and whether the pass is done for it.
    numbers: usize,
    /// For each vector, whether all columns share one.
    shared: Vec<bool>,
}

impl ColumnsPass {
    /// The kernel of this name, in a program whose `real` and `acc` are `types`.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it is missing.
    pub(crate) fn load(
        ctx: &Context,
        program: &Program,
        name: &str,
        types: [&'static str; 2],
        [columns, factors]: [usize; 2],
        shared: Vec<bool>,
    ) -> Result<Self> {
        let kernel = ctx.kernel(program, interned(name), types)?;
        Ok(Self { kernel, columns, numbers: factors + 1, shared })
    }

    /// Does the pass with the `n` elements from `begin` on, those of whole rows.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real, A: Real>(
        &self,
        ctx: &Context,
        grid: Grid,
        [begin, n]: [usize; 2],
        factors: &DeviceVec<A>,
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
    ) -> Result<()> {
        let columns = self.columns;
        assert!(factors.len() >= self.numbers * columns && begin.is_multiple_of(columns) && n.is_multiple_of(columns));
        assert!(PassSums { stride: count(sums.stride as usize * columns), ..sums }.has_room());
        let has_room = |(v, is_shared): (&&DeviceVec<T>, &bool)| {
            let end = begin + n;
            v.len() >= if *is_shared { end / columns } else { end }
        };
        assert!(vectors.len() == self.shared.len() && vectors.iter().zip(&self.shared).all(has_room));
        let (begin, n) = (count(begin), count(n));
        let mut args: Vec<&dyn Argument> = vec![&begin, &n, &sums.tiles, factors, sums.partials, &sums.stride];
        args.extend(vectors.iter().map(|v| *v as &dyn Argument));
        // SAFETY: arguments as the source is generated; sizes checked above.
        unsafe { launch(ctx, &self.kernel, grid, &args) }
    }
}

/// Partial sums that are to be added up for each of some columns, or of two sums of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Series {
    /// Where the first one begins.
    pub(crate) base: usize,
    /// How many begin side by side,
    pub(crate) per: usize,
    /// and how far behind the others do.
    pub(crate) further: usize,
    /// How far apart the partial sums of one are, and how many there are.
    pub(crate) step: usize,
    pub(crate) count: usize,
    /// How many sums there are, and where they go.
    pub(crate) sums: usize,
    pub(crate) to: usize,
}

impl Series {
    /// Takes others in that one launch can add up, too; says whether it can.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let so_far = self.sums / self.per;
        let fits = next.base > self.base
            && (next.base - self.base).is_multiple_of(so_far)
            && [next.per, next.sums] == [self.per; 2]
            && [next.step, next.count] == [self.step, self.count]
            && next.to == self.to + self.sums;
        let further = if fits { (next.base - self.base) / so_far } else { 0 };
        let fits = fits && (so_far == 1 || further == self.further);
        if fits {
            (self.further, self.sums) = (further, self.sums + next.sums);
        }
        fits
    }

    /// The first element that is behind all partial sums.
    fn end(&self) -> usize {
        let last = self.sums.saturating_sub(1);
        self.base + last / self.per * self.further + last % self.per + self.count.saturating_sub(1) * self.step + 1
    }
}

/// What adds up partial sums.
pub(crate) struct AddColumns(Kernel);

impl AddColumns {
    /// The kernel in a program of generated passes.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it is missing.
    pub(crate) fn load(ctx: &Context, program: &Program, types: [&'static str; 2]) -> Result<Self> {
        ctx.kernel(program, "add_columns", types).map(Self)
    }

    /// Adds partial sums in `sums` up, in groups of `group_size`.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<A: Real>(
        &self,
        ctx: &Context,
        group_size: usize,
        sums: &DeviceVec<A>,
        series: Series,
        totals: &DeviceVec<A>,
    ) -> Result<()> {
        assert!(series.per > 0 && series.sums > 0 && series.end() <= sums.len());
        assert!(series.to + series.sums <= totals.len());
        let Series { base, per, further, step, count: parts, to, .. } = series;
        let [base, per, further, step, parts, to] = [base, per, further, step, parts, to].map(count);
        let grid = Grid { groups: series.sums, group_size };
        // SAFETY: types as declared in the file; sizes checked above.
        unsafe { launch(ctx, &self.0, grid, &[sums, &base, &per, &further, &step, &parts, totals, &to]) }
    }
}

/// What takes some columns of a vector.
pub(crate) struct TakeColumns(Kernel);

impl TakeColumns {
    /// The kernel in a program of generated passes.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it is missing.
    pub(crate) fn load(ctx: &Context, program: &Program, types: [&'static str; 2]) -> Result<Self> {
        ctx.kernel(program, "take_columns", types).map(Self)
    }

    /// `to`, which has the program's number of columns, = columns `which` of `from`, which has `of`.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real>(
        &self,
        ctx: &Context,
        grid: Grid,
        columns: usize,
        (from, of): (&DeviceVec<T>, usize),
        which: &[usize],
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(which.len() <= columns && which.iter().all(|k| *k < of) && of <= MAX_COLUMNS);
        let n = to.len();
        assert!(n.is_multiple_of(columns) && n / columns * of <= from.len(), "{n} elements of {}", from.len());
        // four bits for each
        let places = which.iter().enumerate().fold(0_u64, |places, (k, from)| places | (*from as u64) << (4 * k));
        let [low, high] = [places as u32, (places >> 32) as u32];
        let (n, of) = (count(n), count(of));
        // SAFETY: types as declared in the file; sizes checked above.
        unsafe { launch(ctx, &self.0, grid, &[&n, from, &of, &low, &high, to]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_are_added_up_together() {
        // sums 3 and 4 of a pass, of four columns in ten tiles, and then 6
        let of = |sum: usize| Series { base: 40 * sum, per: 4, further: 0, step: 4, count: 10, sums: 4, to: 4 * sum };
        let mut all = of(3);
        assert_eq!(all.end(), 160);
        assert!(all.join(&of(4)));
        assert_eq!(all, Series { further: 40, sums: 8, ..of(3) });
        assert_eq!(all.end(), 200);
        assert!(!all.clone().join(&of(6)) && !all.clone().join(&Series { count: 9, ..of(5) }));
        assert!(all.join(&of(5)) && all.sums == 12);
        // the two sums of a product, which twelve groups have left side by side
        let of =
            |is_second: usize| Series { base: 4 * is_second, per: 4, step: 8, count: 12, to: 4 * is_second, ..of(0) };
        let mut both = of(0);
        assert!(both.join(&of(1)));
        assert_eq!((both.further, both.sums, both.end()), (4, 8, 96));
        assert!(!both.join(&Series { base: 0, to: 8, ..of(0) }), "what lies in front");
    }
}
