//! Launchers of `cl/amg_first.cl`: the first level from what a device has.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{AmgKernels, DeviceSparse, GROUP, GROUPS_OF_A_UNIT};
use crate::device::{Context, DeviceVec, Grid, Kernel, Stay};
use crate::error::Result;
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::kernels::dictionary::{DictionaryBlock, DictionarySegment, SLICE};
use crate::kernels::{Argument, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::real::Real;

const KERNELS: [&str; 9] = [
    "first_diagonal",
    "first_diagonal_of_rows",
    "first_range",
    "first_vectors",
    "first_lengths",
    "first_entries",
    "first_values",
    "first_slices",
    "first_patterns",
];

/// The kernels, for rows in `T`.
pub(crate) struct FirstKernels<T> {
    kernels: BTreeMap<&'static str, Kernel>,
    most_groups: usize,
    types: PhantomData<fn() -> T>,
}

/// Vectors of the first level.
pub(crate) struct FirstVectors<T> {
    /// d^(−½) of A's diagonal d, or ones if A is scaled by that already,
    pub(crate) scale: DeviceVec<T>,
    /// multiples of it,
    pub(crate) multiples: [DeviceVec<T>; 2],
    /// and √d, whose largest element is 1.
    pub(crate) b: DeviceVec<f32>,
}

impl<T: Real> FirstKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("amg_first", include_str!("../../../cl/amg_first.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let program = ctx.build(&source, &options_of::<T, T>(USUAL_STD, ctx.info(), GROUP, GROUP))?;
        let kernel = |name| Ok((name, ctx.kernel(&program, name, [T::CL_NAME, T::CL_NAME])?));
        Ok(Self {
            kernels: KERNELS.into_iter().map(kernel).collect::<Result<_>>()?,
            most_groups: GROUPS_OF_A_UNIT * ctx.info().compute_units.max(1) as usize,
            types: PhantomData,
        })
    }

    /// The diagonal of rows by patterns, times `times`. None unless their values are in one piece.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn diagonal(&self, ctx: &Context, block: &DictionaryBlock<T>, times: T) -> Result<Option<DeviceVec<T>>> {
        if block.segments.len() != 1 {
            return Ok(None);
        }
        let diagonal = DeviceVec::uninit(ctx, block.n_rows, "the diagonal")?;
        // SAFETY: n rows, as the block vouches, and as many elements.
        unsafe { self.of_patterns(ctx, "first_diagonal", block, times, &[&diagonal]) }?;
        Ok(Some(diagonal))
    }

    /// The diagonal of compressed rows in one piece, times `times`.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn diagonal_of_rows(&self, ctx: &Context, rows: &CsrBlock<T>, times: T) -> Result<DeviceVec<T>> {
        let diagonal = DeviceVec::uninit(ctx, rows.n_rows, "the diagonal")?;
        let [CsrSegment { col_idx, values, .. }] = &rows.segments[..] else { panic!("rows in one piece") };
        // SAFETY: types as declared in the file; n rows, as the block vouches, and as many elements.
        unsafe {
            let args: [&dyn Argument; 5] = [&rows.row_ptr, col_idx, values, &times, &diagonal];
            self.run(ctx, "first_diagonal_of_rows", rows.n_rows, &args)
        }?;
        Ok(diagonal)
    }

    /// D^(−½) A D^(−½) in compressed rows, for A `times` those of a block in one piece.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    ///
    /// # Panics
    /// If `scale` has not an element for each column.
    pub(crate) fn of_rows(
        &self,
        ctx: &Context,
        (rows, times): (CsrBlock<T>, T),
        scale: &DeviceVec<T>,
    ) -> Result<DeviceSparse> {
        let CsrBlock { n_rows, n_cols, row_ptr: starts, mut segments } = rows;
        assert_eq!((scale.len(), segments.len()), (n_cols, 1));
        let CsrSegment { col_idx: columns, values: from, .. } = segments.swap_remove(0);
        let values = DeviceVec::uninit(ctx, from.len(), "values of a level")?;
        // SAFETY: types as declared in the file; n rows, as the block vouches, a scale for each column, and as many values.
        unsafe {
            let args: [&dyn Argument; 6] = [&starts, &columns, &from, &times, scale, &values];
            self.run(ctx, "first_values", n_rows, &args)
        }?;
        Ok(DeviceSparse { n_rows, n_cols, starts, columns, values })
    }

    /// The least and the largest element. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn range(&self, ctx: &Context, diagonal: &DeviceVec<T>) -> Result<[f64; 2]> {
        let (n, groups) = (diagonal.len(), self.grid(diagonal.len()).groups);
        let range = DeviceVec::uninit(ctx, 2 * groups, "the range of the diagonal")?;
        // SAFETY: types as declared in the file; n elements, and two numbers for each group.
        unsafe { self.run(ctx, "first_range", n, &[diagonal, &range]) }?;
        let mut of_groups = vec![T::default(); 2 * groups];
        range.read(ctx, 0, &mut of_groups)?;
        let all = of_groups.as_chunks::<2>().0.iter().map(|range| range.map(T::to_f64));
        Ok(all.fold([f64::INFINITY, 0.0], |[low, high], [least, most]| [low.min(least), high.max(most)]))
    }

    /// The vectors of a diagonal with that largest element: d^(−½), its multiples, and √d. For rows that are scaled by it already, the
    /// first are ones.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn vectors(
        &self,
        ctx: &Context,
        (diagonal, are_scaled): (&DeviceVec<T>, bool),
        largest: f64,
        multiples: [f64; 2],
    ) -> Result<FirstVectors<T>> {
        let n = diagonal.len();
        let vector = || DeviceVec::uninit(ctx, n, "the scales of the matrix");
        let [largest, enter, leave] = [largest, multiples[0], multiples[1]].map(T::from_f64);
        let all = FirstVectors {
            scale: vector()?,
            multiples: [vector()?, vector()?],
            b: DeviceVec::uninit(ctx, n, "the near-null vector")?,
        };
        let FirstVectors { scale, multiples: [entering, leaving], b } = &all;
        // SAFETY: types as declared in the file; vectors of n elements.
        unsafe {
            let numbers: [&dyn Argument; 4] = [&u32::from(are_scaled), &largest, &enter, &leave];
            let args = [&[diagonal as &dyn Argument][..], &numbers, &[scale, entering, leaving, b]].concat();
            self.run(ctx, "first_vectors", n, &args)
        }?;
        Ok(all)
    }

    /// D^(−½) A D^(−½) in compressed rows, for A `times` those of a block in one piece. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    ///
    /// # Panics
    /// If `scale` has not an element for each column.
    pub(crate) fn matrix<A: Real>(
        &self,
        ctx: &Context,
        levels: &AmgKernels<A>,
        (block, times): (&DictionaryBlock<T>, T),
        scale: &DeviceVec<T>,
    ) -> Result<DeviceSparse> {
        let n = block.n_rows;
        assert!(block.n_cols == scale.len() && block.segments.len() == 1);
        let lengths = DeviceVec::uninit(ctx, n, "lengths of rows")?;
        // SAFETY: types as declared in the file; n rows, as the block vouches, and as many numbers.
        unsafe { self.run(ctx, "first_lengths", n, &[&*block.patterns, &*block.runs, &lengths]) }?;
        let matrix = levels.with_lengths(ctx, block.n_cols, &lengths, Stay::Short)?;
        // SAFETY: the same, and room for as many entries as were counted.
        unsafe {
            self.of_patterns(
                ctx,
                "first_entries",
                block,
                times,
                &[&[scale as &dyn Argument][..], &matrix.rows()].concat(),
            )
        }?;
        Ok(matrix)
    }

    /// The same by its patterns: these have the values if `all_alike`, the scale of all rows, is given; else rows have theirs, in room for
    /// `width` entries.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    ///
    /// # Panics
    /// As [`FirstKernels::matrix`].
    pub(crate) fn by_patterns(
        &self,
        ctx: &Context,
        (block, times): (&DictionaryBlock<T>, T),
        scale: &DeviceVec<T>,
        all_alike: Option<f64>,
        width: usize,
    ) -> Result<DictionaryBlock<f32>> {
        let n = block.n_rows;
        assert!(block.n_cols == scale.len() && block.segments.len() == 1);
        let square = times.to_f64() * all_alike.map_or(1.0, |scale| scale * scale);
        let entries = DeviceVec::uninit(ctx, block.entries.len(), "the entries of the patterns")?;
        // SAFETY: types as declared in the file; two numbers for each entry here and there.
        unsafe {
            self.run(ctx, "first_patterns", entries.len() / 2, &[&block.entries, &T::from_f64(square), &entries])
        }?;
        let room = if all_alike.is_some() { 0 } else { n.div_ceil(SLICE) * SLICE * width };
        let values = DeviceVec::zeros(ctx, room, "the values of the matrix")?;
        if all_alike.is_none() {
            let width = count(width);
            // SAFETY: types as declared in the file; n rows, as the block vouches, and room for the entries of each, padded.
            unsafe { self.of_patterns(ctx, "first_slices", block, times, &[scale, &width, &values]) }?;
        }
        Ok(DictionaryBlock {
            n_rows: n,
            n_cols: block.n_cols,
            patterns: Arc::clone(&block.patterns),
            runs: Arc::clone(&block.runs),
            entries,
            segments: vec![DictionarySegment { rows: 0..n as u32, values }],
            width: all_alike.is_none().then_some(width as u32),
            masks: Arc::clone(&block.masks),
            slice_masks: Arc::clone(&block.slice_masks),
            main: block.main.narrowed(square),
            main_len: block.main_len,
        })
    }

    /// Launches a kernel on the rows of a block in one piece.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn of_patterns(
        &self,
        ctx: &Context,
        name: &'static str,
        block: &DictionaryBlock<T>,
        times: T,
        more: &[&dyn Argument],
    ) -> Result<()> {
        let (main_rows, width) = (block.main.rows(), block.width.unwrap_or(0));
        let rows: [&dyn Argument; 9] = [
            &*block.patterns,
            &*block.runs,
            &block.entries,
            &block.segments[0].values,
            &*block.masks,
            &main_rows.start,
            &main_rows.end,
            &width,
            &times,
        ];
        // SAFETY: the caller's promise.
        unsafe { self.run(ctx, name, block.n_rows, &[&rows, more].concat()) }
    }

    /// Launches a kernel on so many rows, or entries.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn run(&self, ctx: &Context, name: &'static str, rows: usize, args: &[&dyn Argument]) -> Result<()> {
        let n = count(rows);
        // SAFETY: the caller's promise.
        unsafe { launch(ctx, &self.kernels[name], self.grid(rows), &[&[&n as &dyn Argument], args].concat()) }
    }

    fn grid(&self, rows: usize) -> Grid {
        Grid { groups: rows.div_ceil(GROUP).clamp(1, self.most_groups), group_size: GROUP }
    }
}
