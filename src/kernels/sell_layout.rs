//! Launchers of `cl/sell_layout.cl`: slices of compressed rows that a device has.

use std::ops::Range;

use super::csr::{CsrBlock, CsrSegment};
use super::sell::{SellBlock, SliceSet};
use super::{Argument, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// Work-items of a group, and groups for each compute unit at most.
const GROUP: usize = 256;
const GROUPS_OF_A_UNIT: usize = 32;

/// What units of a slice come to, as `sell_shapes` numbers it.
pub(crate) const SHAPE_WORDS: usize = 8;

/// The kernels, for rows in `T`.
pub(crate) struct LayoutKernels<T> {
    marks: Kernel,
    shapes: Kernel,
    fill: Kernel,
    unpack: Kernel,
    scale: Kernel,
    most_groups: usize,
    types: std::marker::PhantomData<fn() -> T>,
}

/// Units of all lists, one list behind the other: rows, and numbers of pieces. Made by `crate::operator::sell` alone, which vouches for it: rows
/// are those of the block, and so are the blocks of pieces.
pub(crate) struct Units {
    pub(crate) numbers: DeviceVec<u32>,
    /// Of each piece its row, its first block, how far apart blocks are, and where its sum goes.
    pub(crate) pieces: DeviceVec<u32>,
}

/// A list among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitList {
    pub(crate) units: Range<usize>,
    pub(crate) block: u32,
    pub(crate) has_pieces: bool,
}

impl UnitList {
    /// The units of some of its slices.
    pub(crate) fn within(&self, slices: Range<usize>) -> Self {
        let behind = |slice: usize| self.units.end.min(self.units.start + slice * SliceSet::UNITS);
        Self { units: behind(slices.start)..behind(slices.end), ..*self }
    }

    fn arguments<'a>(&'a self, [n, first, has_pieces]: &'a [u32; 3], units: &'a Units) -> [&'a dyn Argument; 6] {
        [n, first, &self.block, has_pieces, &units.numbers, &units.pieces]
    }

    fn numbers(&self) -> [u32; 3] {
        [count(self.units.len()), count(self.units.start), u32::from(self.has_pieces)]
    }
}

/// Entries in compressed rows: where rows begin, columns if they are needed, values.
pub(crate) struct Entries<'a, T> {
    pub(crate) starts: &'a DeviceVec<u32>,
    pub(crate) columns: Option<&'a DeviceVec<u32>>,
    pub(crate) values: &'a DeviceVec<T>,
}

impl<'a, T> Entries<'a, T> {
    /// Those of rows that lie in one piece.
    ///
    /// # Panics
    /// If they don't.
    pub(crate) fn of(rows: &'a CsrBlock<T>) -> Self {
        let [CsrSegment { col_idx, values, .. }] = &rows.segments[..] else { panic!("rows in one piece") };
        Self { starts: &rows.row_ptr, columns: Some(col_idx), values }
    }

    /// As the kernels take them: who needs no columns looks at none.
    fn arguments(&self) -> [&'a dyn Argument; 3]
    where
        T: Real,
    {
        [self.starts, self.columns.unwrap_or(self.starts), self.values]
    }
}

impl<T: Real> LayoutKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("sell_layout", include_str!("../../cl/sell_layout.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let program = ctx.build(&source, &options_of::<T, T>(USUAL_STD, ctx.info(), GROUP, GROUP))?;
        let kernel = |name| ctx.kernel(&program, name, [T::CL_NAME, T::CL_NAME]);
        Ok(Self {
            marks: kernel("sell_marks")?,
            shapes: kernel("sell_shapes")?,
            fill: kernel("sell_fill")?,
            unpack: kernel("sell_unpack")?,
            scale: kernel("sell_scale")?,
            most_groups: GROUPS_OF_A_UNIT * ctx.info().compute_units.max(1) as usize,
            types: std::marker::PhantomData,
        })
    }

    /// Scales rows by the roots of each column, and by `factor`, in place.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If there is not a root for each column.
    pub(crate) fn scale(&self, ctx: &Context, rows: &CsrBlock<T>, roots: &DeviceVec<T>, factor: T) -> Result<()> {
        let (n, Entries { starts, values, .. }) = (count(rows.n_rows), Entries::of(rows));
        assert!(rows.n_cols <= roots.len() && rows.n_rows <= rows.n_cols);
        let args: [&dyn Argument; 6] = [&n, starts, &rows.segments[0].col_idx, roots, &factor, values];
        // SAFETY: types as declared in the file; the block vouches for its rows, and there is a root for each column, as checked.
        unsafe { launch(ctx, &self.scale, self.grid(rows.n_rows), &args) }
    }

    /// The marks of each row. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn marks(&self, ctx: &Context, rows: &CsrBlock<T>) -> Result<Vec<u8>> {
        let (n, has_halo) = (count(rows.n_rows), u32::from(rows.n_cols > rows.n_rows));
        let marks = DeviceVec::uninit(ctx, rows.n_rows, "marks of rows")?;
        let entries = Entries::of(rows).arguments();
        let args = [&[&n as &dyn Argument, &has_halo], &entries[..], &[&marks]].concat();
        // SAFETY: types as declared in the file; the block vouches for its rows, and there is a mark for each.
        unsafe { launch(ctx, &self.marks, self.grid(rows.n_rows), &args) }?;
        let mut all = vec![0; rows.n_rows];
        marks.read(ctx, 0, &mut all)?;
        Ok(all)
    }

    /// What the slices of a list come to, for values that are `factor` times those of the matrix. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn shapes(
        &self,
        ctx: &Context,
        (list, units): (&UnitList, &Units),
        entries: &Entries<'_, T>,
        factor: f64,
    ) -> Result<Vec<[u32; SHAPE_WORDS]>> {
        assert!(list.units.end <= units.numbers.len());
        let n_slices = list.units.len().div_ceil(SliceSet::UNITS);
        let shapes = DeviceVec::uninit(ctx, n_slices * SHAPE_WORDS, "the shapes of slices")?;
        let (numbers, with_columns) = (list.numbers(), u32::from(entries.columns.is_some()));
        let [factor, unscale] = [factor, factor.recip()].map(T::from_f64);
        let more: [&dyn Argument; 4] = [&factor, &unscale, &with_columns, &shapes];
        let args = [&list.arguments(&numbers, units)[..], &entries.arguments(), &more].concat();
        // SAFETY: types as declared in the file; the units are there, as checked, and are vouched for; numbers for each slice.
        unsafe { launch(ctx, &self.shapes, self.grid(list.units.len()), &args) }?;
        let mut all = vec![[0; SHAPE_WORDS]; n_slices];
        shapes.read(ctx, 0, all.as_flattened_mut())?;
        Ok(all)
    }

    /// Fills the slices of a list from `first` on, which are all of its units, into `data`: zeros, if columns are filled as well.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn fill(
        &self,
        ctx: &Context,
        (list, units): (&UnitList, &Units),
        entries: &Entries<'_, T>,
        factor: f64,
        (first, slices, data): (usize, &DeviceVec<u32>, &DeviceVec<u8>),
    ) -> Result<()> {
        let behind = first + list.units.len().div_ceil(SliceSet::UNITS);
        assert!(list.units.end <= units.numbers.len() && behind * SellBlock::<T>::SLICE_WORDS <= slices.len());
        let (numbers, with_columns) = (list.numbers(), u32::from(entries.columns.is_some()));
        let (unscale, first) = (T::from_f64(factor.recip()), count(first));
        let more: [&dyn Argument; 5] = [&unscale, &with_columns, &first, slices, data];
        let args = [&list.arguments(&numbers, units)[..], &entries.arguments(), &more].concat();
        // SAFETY: types as declared in the file; units and slices are there, as checked, and are vouched for, as is the room of slices.
        unsafe { launch(ctx, &self.fill, self.grid(list.units.len()), &args) }
    }

    /// Puts the entries of the slices of a list from `first` on, which are all of its units, into compressed rows.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn unpack(
        &self,
        ctx: &Context,
        (list, units): (&UnitList, &Units),
        rows: &CsrBlock<T>,
        factor: f64,
        (first, slices, data): (usize, &DeviceVec<u32>, &DeviceVec<u8>),
    ) -> Result<()> {
        let behind = first + list.units.len().div_ceil(SliceSet::UNITS);
        assert!(list.units.end <= units.numbers.len() && behind * SellBlock::<T>::SLICE_WORDS <= slices.len());
        let (numbers, factor, first) = (list.numbers(), T::from_f64(factor), count(first));
        let [starts, columns, values] = Entries::of(rows).arguments();
        let more: [&dyn Argument; 7] = [starts, &factor, &first, slices, data, columns, values];
        let args = [&list.arguments(&numbers, units)[..], &more].concat();
        // SAFETY: types as declared in the file; units and slices are there, as checked, and are vouched for, as is the room for their entries.
        unsafe { launch(ctx, &self.unpack, self.grid(list.units.len()), &args) }
    }

    fn grid(&self, items: usize) -> Grid {
        Grid { groups: items.div_ceil(GROUP).clamp(1, self.most_groups), group_size: GROUP }
    }
}
