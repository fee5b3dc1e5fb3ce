//! Launcher of generated kernels in which each group has a column of its own: see `src/backend/source/batch.rs`.

use super::pass::interned;
use super::products::{InPersistent, Rows};
use super::{
    Argument, BATCH, PASSES, PERSISTENT, PRELUDE, Tuning, USUAL_STD, count, launch, main_option, options_of, sources,
};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// What is done for many columns, with the rows of one block.
pub(crate) struct Batch {
    begin: Kernel,
    iterate: Kernel,
    end: Option<Kernel>,
    group_size: usize,
    sizes: Sizes,
    /// For each vector, whether all columns share one, if it is there at all.
    shared: Vec<bool>,
}

/// What a column has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Elements of a vector,
    pub(crate) n: usize,
    /// in so many tiles.
    pub(crate) tiles: usize,
    /// Partial sums of passes, and behind them those of products, which leave two each.
    pub(crate) pass_sums: usize,
    pub(crate) products: usize,
    /// Rows of the log, and numbers that a column has in each.
    pub(crate) log: [usize; 2],
}

impl Sizes {
    /// Partial sums of a column.
    pub(crate) fn sums_room(&self) -> usize {
        self.first_product() + 2 * self.products
    }

    /// Where those of products begin: with a pair.
    pub(crate) fn first_product(&self) -> usize {
        self.pass_sums.next_multiple_of(2)
    }
}

/// What a launch works on: of each column, one behind the other.
pub(crate) struct Columns<'a, T, A> {
    pub(crate) count: usize,
    /// In this iteration's turn, and in the one before.
    pub(crate) sums: [&'a DeviceVec<A>; 2],
    pub(crate) vectors: &'a [&'a DeviceVec<T>],
}

impl<T: Real, A> Columns<'_, T, A> {
    /// The last arguments of all kernels: what each column has, and the vectors.
    fn arguments<'a>(&'a self, each: &'a [u32; 3]) -> impl Iterator<Item = &'a dyn Argument> {
        let sizes = each.iter().map(|size| size as &dyn Argument);
        sizes.chain(self.vectors.iter().map(|v| *v as &dyn Argument))
    }
}

/// What iterations need beside that.
pub(crate) struct Iterations<'a, A> {
    /// The row of the first one in the log.
    pub(crate) at: usize,
    pub(crate) count: usize,
    pub(crate) has_former: bool,
    /// ‖r‖² that ends the run of each column,
    pub(crate) limits: &'a DeviceVec<A>,
    /// and whether it is over.
    pub(crate) done: &'a DeviceVec<i32>,
    pub(crate) log: &'a DeviceVec<A>,
}

impl Batch {
    /// Compiles the kernels of these names from a generated text for `rows`, of which `format` is known, in groups of `group_size`, in which
    /// `lanes` work-items share a tile.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build<T: Real, A: Real>(
        ctx: &Context,
        tuning: &Tuning,
        (rows, format): (Rows<'_, T>, InPersistent),
        ([begin, iterate], end, text): ([&str; 2], Option<&str>, &str),
        (group_size, lanes): (usize, usize),
        (sizes, shared): (Sizes, Vec<bool>),
    ) -> Result<Self> {
        let of_rows = rows.products();
        let [_, products] = sources(of_rows.names[0]);
        let files = [
            ("batch", BATCH),
            ("prelude", PRELUDE),
            ("products", products),
            ("passes", PASSES),
            ("persistent", PERSISTENT),
            ("generated", text),
        ];
        let source: String = files.map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).concat();
        let options = options_of::<T, A>(USUAL_STD, ctx.info(), group_size, tuning.block_nnz)
            + &main_option(of_rows.main)
            + &format!(" -D FORMAT={} -D LANES={lanes}", format.macros);
        let program = ctx.build(&source, &options)?;
        let kernel = |name| ctx.kernel(&program, interned(name), [T::CL_NAME, A::CL_NAME]);
        let [begin, iterate] = [kernel(begin)?, kernel(iterate)?];
        Ok(Self { begin, iterate, end: end.map(kernel).transpose()?, group_size, sizes, shared })
    }

    /// Forms the residuals of columns, and does what comes before their first iteration.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn begin<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        b: &DeviceVec<T>,
        columns: &Columns<'_, T, A>,
    ) -> Result<()> {
        self.check(rows, columns);
        assert!(b.len() >= columns.count * self.sizes.n);
        let [n, tiles] = [self.sizes.n, self.sizes.tiles].map(count);
        let each = self.each();
        let mut args = rows.arguments(1);
        args.extend([b as &dyn Argument, &n, &tiles, columns.sums[0]]);
        args.extend(columns.arguments(&each));
        // SAFETY: arguments as the source is generated; sizes checked above, the matrix by the maker of the block.
        unsafe { launch(ctx, &self.begin, self.grid(columns.count), &args) }
    }

    /// Does iterations of each column, up to the one in which its run turns out to be over.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn iterate<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        columns: &Columns<'_, T, A>,
        iterations: &Iterations<'_, A>,
    ) -> Result<()> {
        self.check(rows, columns);
        let (sizes, Iterations { at, has_former, limits, done, log, .. }) = (&self.sizes, iterations);
        assert!(
            limits.len().min(done.len()) >= columns.count && log.len() >= columns.count * sizes.log[0] * sizes.log[1]
        );
        assert!(*at < sizes.log[0] && iterations.count + 2 <= sizes.log[0]);
        let [n, tiles, at, log_len, row_len, iterations] =
            [sizes.n, sizes.tiles, *at, sizes.log[0], columns.count * sizes.log[1], iterations.count].map(count);
        let has_former = u32::from(*has_former);
        let first: Vec<u32> = (0..sizes.products).map(|k| count(sizes.first_product() / 2 + k)).collect();
        let each = self.each();
        let mut args = rows.arguments(1);
        args.extend([*done as &dyn Argument, *done, &n, &tiles, &at, &log_len, &row_len, &has_former]);
        args.extend([*limits as &dyn Argument, *log, &iterations, columns.sums[0], columns.sums[1]]);
        args.extend(first.iter().map(|first| first as &dyn Argument));
        args.extend(columns.arguments(&each));
        // SAFETY: as above; rows of the log and what tells of the end of runs checked above, too.
        unsafe { launch(ctx, &self.iterate, self.grid(columns.count), &args) }
    }

    /// Makes the updates of x that were deferred, if there are such, by what row `row` of the log says.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn end<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        columns: &Columns<'_, T, A>,
        (log, row): (&DeviceVec<A>, usize),
    ) -> Result<()> {
        let Some(kernel) = &self.end else { return Ok(()) };
        self.check(rows, columns);
        let row_len = columns.count * self.sizes.log[1];
        assert!(row < self.sizes.log[0] && log.len() >= self.sizes.log[0] * row_len);
        let [row, row_len, n, tiles] = [row, row_len, self.sizes.n, self.sizes.tiles].map(count);
        let each = self.each();
        let mut args: Vec<&dyn Argument> = vec![log, &row, &row_len, &n, &tiles, columns.sums[0]];
        args.extend(columns.arguments(&each));
        // SAFETY: as above.
        unsafe { launch(ctx, kernel, self.grid(columns.count), &args) }
    }

    /// The distance of partial sums, and what a column has of vectors and sums.
    fn each(&self) -> [u32; 3] {
        [self.sizes.tiles, self.sizes.n, self.sizes.sums_room()].map(count)
    }

    /// A group for each column.
    fn grid(&self, columns: usize) -> Grid {
        Grid { groups: columns, group_size: self.group_size }
    }

    fn check<T: Real, A: Real>(&self, rows: Rows<'_, T>, columns: &Columns<'_, T, A>) {
        let n = self.sizes.n;
        assert!(rows.is_there() && rows.lens() == [n; 2] && columns.vectors.len() == self.shared.len());
        let has_room = |(v, is_shared): (&&DeviceVec<T>, &bool)| {
            v.len() >= if *is_shared { n } else { columns.count * n } || *is_shared && v.len() == 0
        };
        assert!(columns.vectors.iter().zip(&self.shared).all(has_room));
        assert!(columns.sums.iter().all(|sums| sums.len() >= columns.count * self.sizes.sums_room()));
    }
}
