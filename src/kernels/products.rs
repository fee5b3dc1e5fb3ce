//! Products of a block's rows with a vector: one launcher for the kernels of all formats, which differ in what they take of the
//! matrix.

use std::sync::Arc;

use super::live::Lines64;
use super::{Argument, Kernels, Launch, PRELUDE, ProductsFor, Tuning, USUAL_STD};
use super::{launch, load_bytes, options_of, persistent_group};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// The kernels of a format's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Products {
    /// y = A x; the same with x·y and y·y; r = b − A x.
    pub(crate) names: [&'static str; 3],
    /// The entries of the main pattern that they are compiled for: 0 where there is none.
    pub(crate) main: usize,
}

/// Rows in a format that one launch works on: what is to be known to launch kernels on them.
pub(crate) trait ProductRows<T>: Send + Sync {
    /// Their kernels, which all take [`arguments`](Self::arguments), x and what [`Product`] adds.
    fn products(&self) -> Products;

    /// The program that has them, if they are of no family; it is for vectors of one column.
    fn own_program(&self) -> Option<&OwnProgram> {
        None
    }

    /// Whether groups leave partial sums.
    fn leaves_sums(&self) -> bool {
        true
    }

    /// How many rows the block has, and how long a vector is that is multiplied.
    fn lens(&self) -> [usize; 2];

    /// Whether the block has these rows.
    fn is_there(&self) -> bool;

    /// What there is to share among groups: row blocks, or rows.
    fn items(&self) -> usize;

    /// The grid of a launch with vectors of so many columns.
    fn grid(&self, launch: Launch, columns: usize) -> Grid {
        launch.rows_grid::<T>(self.items(), columns, load_bytes(self.products().names[0]))
    }

    /// Makes room for what products with vectors of so many columns keep beside the rows.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    fn make_room(&self, _ctx: &Context, _columns: usize) -> Result<()> {
        Ok(())
    }

    /// The arguments that a kernel for vectors of so many columns begins with.
    ///
    /// # Panics
    /// If there has been [made](Self::make_room) no room for several.
    fn arguments(&self, columns: usize) -> Vec<&dyn Argument>;

    /// Bytes of the matrix that a launch reads, if it is apart from the products of other rows; else it has its share of what they
    /// read together.
    fn bytes(&self) -> Option<usize> {
        None
    }

    /// What kernels that do several iterations need to know, in groups of `group_size`; `None` if they can't have such rows.
    fn in_persistent(&self, _tuning: &Tuning, _group_size: usize) -> Option<InPersistent> {
        None
    }
}

/// Rows that one launch works on.
pub(crate) type Rows<'a, T> = &'a dyn ProductRows<T>;

/// A program of an operator's own: all of its operators on a device have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnProgram {
    /// The texts behind `prelude.cl`, with the names that compilers' complaints have.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Options beside the usual ones.
    pub(crate) options: String,
    /// Work-items of a group.
    pub(crate) group_size: usize,
    pub(crate) kernels: Vec<&'static str>,
}

/// What `cl/persistent.cl` needs of a format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InPersistent {
    /// What the names of the format's macros `…_ROWS_ARGS`, `…_ROWS_LOCAL` and `…_ROWS_TIMES` begin with.
    pub(crate) macros: &'static str,
    /// Groups that have something to do.
    pub(crate) groups: usize,
    /// Elements in a group's local memory.
    pub(crate) local_elements: usize,
    /// Bytes of an iteration of two launches up to which it is rather these that it waits for; of more launches, in proportion.
    pub(crate) most_bytes: u64,
}

/// [`InPersistent::most_bytes`] of most formats.
pub(super) const PERSISTENT_BYTES: u64 = 48 << 20;

/// Bytes of an iteration of two launches of one of several ranks up to which they make several in one launch; of more launches, in proportion;
pub(crate) const TOGETHER_BYTES: u64 = 80 << 20;
/// and up to which they meet between launches: beyond, the host's way hides what it costs.
pub(crate) const MEETING_BYTES: u64 = 2 << 30;

/// Where products put what other ranks need: see `cl/prelude.cl`.
#[derive(Clone)]
pub(crate) struct Sending {
    pub(crate) memory: Arc<dyn Lines64 + Send + Sync>,
    /// Where the elements of this exchange are in it.
    pub(crate) slot: u32,
    /// Places of rows, from `first_place` on: see [`SentRows`](crate::comm::live::sending::SentRows).
    pub(crate) indices: Arc<DeviceVec<u32>>,
    pub(crate) first_place: u32,
    /// Rows that are not sent,
    pub(crate) kept: [u32; 2],
    /// of so many.
    pub(crate) rows: usize,
}

impl Sending {
    /// Whether it is made for so many rows, and all of their places are in the memory.
    fn has_room(&self, rows: usize) -> bool {
        let others = self.rows - (self.kept[1] - self.kept[0]) as usize;
        let sent = self.indices.len().checked_sub(self.first_place as usize + others + 1);
        self.rows == rows && sent.is_some_and(|sent| self.slot as usize + sent <= self.memory.len())
    }
}

/// What becomes of A x. Vectors have one column or several, side by side: element (row, c) is number `row * columns + c`.
pub(crate) enum Product<'a, T, A> {
    /// y = A x.
    Store(&'a mut DeviceVec<T>),
    /// y = A x, and the partial sums of x·y and of y·y over the rows: for each group, of which `first` come before, those of x·y, column
    /// by column, and behind them those of y·y. Nothing is done if `done[0]` is set. What other ranks need of y goes where `sending` says,
    /// if there is one column.
    Dots {
        y: &'a mut DeviceVec<T>,
        partials: &'a DeviceVec<A>,
        first: u32,
        done: &'a DeviceVec<i32>,
        sending: Option<&'a Sending>,
    },
    /// r = b − A x.
    Residual { b: &'a DeviceVec<T>, r: &'a mut DeviceVec<T> },
}

impl<T: Real, A: Real> Product<'_, T, A> {
    /// Which of a format's three kernels does it, and its arguments behind x.
    fn arguments(&self) -> (usize, Vec<&dyn Argument>) {
        match self {
            Self::Store(y) => (0, vec![&**y]),
            Self::Dots { y, partials, first, done, sending } => {
                let mut all: Vec<&dyn Argument> = vec![&**y, *partials, first, *done];
                if let Some(Sending { memory, slot, indices, first_place, kept: [begin, end], .. }) = sending {
                    all.extend([&**memory as &dyn Argument, slot, &**indices, first_place, begin, end]);
                }
                (1, all)
            }
            Self::Residual { b, r } => (2, vec![*b, &**r]),
        }
    }

    fn sends(&self) -> bool {
        matches!(self, Self::Dots { sending: Some(_), .. })
    }

    /// Whether all vectors are as long as the kernel will address.
    fn fits(&self, lens: [usize; 2], columns: usize, x: usize, groups: usize) -> bool {
        let [n_rows, n_cols] = lens.map(|len| len * columns);
        match self {
            Self::Store(y) => x >= n_cols && y.len() >= n_rows,
            Self::Dots { y, partials, first, done, sending } => {
                let has_room = 2 * columns * (*first as usize + groups) <= partials.len() && done.len() > 0;
                let has_room = has_room && sending.is_none_or(|sending| sending.has_room(n_rows));
                x >= n_cols.max(n_rows) && y.len() >= n_rows && has_room
            }
            Self::Residual { b, r } => x >= n_cols && b.len().min(r.len()) >= n_rows,
        }
    }
}

impl<T: Real, A: Real> Kernels<T, A> {
    /// Compiles the products of these rows, or else the first of them waits for the compiler.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn prepare(&self, ctx: &Context, rows: Rows<'_, T>, of: ProductsFor) -> Result<()> {
        match rows.own_program() {
            Some(program) => self.of_own(ctx, program, rows.products().names[0]).map(|_| ()),
            None => self.of_products(ctx, rows.products(), 0, of).map(|_| ()),
        }
    }

    /// A kernel of an operator's own program, which is compiled when it is first asked for.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    fn of_own(&self, ctx: &Context, program: &OwnProgram, name: &str) -> Result<&Kernel> {
        let kernels = match self.own.get() {
            Some(kernels) => kernels,
            None => {
                let OwnProgram { files, options, group_size, kernels } = program;
                let texts =
                    std::iter::once(("prelude", PRELUDE)).chain(files.iter().map(|(name, text)| (*name, &**text)));
                let source: String = texts.map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
                let options = options_of::<T, A>(USUAL_STD, ctx.info(), *group_size, *group_size) + " " + options;
                let made = ctx.build(&source, &options)?;
                let types = [T::CL_NAME, A::CL_NAME];
                let kernels = kernels.iter().map(|name| ctx.kernel(&made, name, types)).collect::<Result<_>>()?;
                self.own.get_or_init(|| kernels)
            }
        };
        let kernel = kernels.iter().find(|kernel| kernel.name == name);
        Ok(kernel.unwrap_or_else(|| unreachable!("{name} is a kernel of the operator's")))
    }

    /// Launches a product of some rows with a vector of 1, 2, 4, 8 or 16 columns, in groups as tuning has found them, or with one column
    /// in a grid that is given; tells on how many groups that leave sums.
    ///
    /// # Errors
    /// A failing device, or a failing compiler.
    ///
    /// # Panics
    /// If a vector is too short, or there are other numbers of columns, or groups of another size than those of tuning or of launches of
    /// several iterations.
    pub(crate) fn product(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        columns: usize,
        x: &DeviceVec<T>,
        product: &Product<'_, T, A>,
        grid: Option<Grid>,
    ) -> Result<usize> {
        let (index, others) = product.arguments();
        let usual = rows.grid(self.tuning.launch(rows.products().names[index]), columns);
        let grid = grid.unwrap_or(usual);
        let is_usual = grid.group_size == usual.group_size;
        let of = match (product.sends(), is_usual) {
            (false, true) => ProductsFor::Columns(columns),
            (false, false) => ProductsFor::Several,
            (true, _) => ProductsFor::Sending,
        };
        let is_compiled = match of {
            ProductsFor::Columns(_) => true,
            ProductsFor::Sending => is_usual && columns == 1,
            ProductsFor::Several => grid.group_size == persistent_group(ctx.info()) && columns == 1,
        };
        assert!(is_compiled, "{grid:?}, {columns} columns, {of:?}");
        let kernel = match rows.own_program() {
            Some(program) => {
                assert!(of == ProductsFor::Columns(1), "{of:?}");
                self.of_own(ctx, program, rows.products().names[index])?
            }
            None => self.of_products(ctx, rows.products(), index, of)?,
        };
        assert!(rows.is_there() && product.fits(rows.lens(), columns, x.len(), grid.groups));
        let mut all = rows.arguments(columns);
        all.push(x);
        all.extend(others);
        // SAFETY: types as declared in the files; sizes checked above, and by the maker of the block.
        unsafe { launch(ctx, kernel, grid, &all)? };
        Ok(if rows.leaves_sums() { grid.groups } else { 0 })
    }
}
