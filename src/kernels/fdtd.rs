//! Launchers of `cl/fdtd.cl`.

use std::marker::PhantomData;

use super::{Argument, PRELUDE, Shape, Tuning, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel, Program};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file, compiled for one device.
pub(crate) struct FdtdKernels<T> {
    program: Program,
    group_size: usize,
    /// In the CPU shape.
    max_groups: usize,
    elements: PhantomData<fn() -> T>,
}

/// Rows that a launch updates: the first cell, how many rows there are, and cells of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) nx: usize,
}

/// What is in the cells of a slab.
pub(crate) struct Media<T> {
    /// The material of each cell,
    pub(crate) index: DeviceVec<u8>,
    /// and the factors of all materials in the two halves of a step.
    pub(crate) factors: [DeviceVec<T>; 2],
    /// Whose number is below this.
    pub(crate) materials: usize,
}

/// What a launch does in layers.
pub(crate) struct Layer<'a, T> {
    /// The cells of the layers along each axis.
    pub(crate) size: [usize; 3],
    /// Along which axis they are,
    pub(crate) axis: usize,
    /// how many are before the first wall, and how far the others are behind these.
    pub(crate) low: usize,
    pub(crate) shift: usize,
    /// Cells along x of the slab, and in a plane of x and y.
    pub(crate) strides: [usize; 2],
    /// Bits of the axes whose first cells are left alone.
    pub(crate) walls: u32,
    /// Where a cell is in the target, and the two elements of the source.
    pub(crate) offsets: [usize; 3],
    pub(crate) adds: bool,
    pub(crate) source: &'a DeviceVec<T>,
    pub(crate) profile: &'a DeviceVec<T>,
}

impl<T: Real> FdtdKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context) -> Result<Self> {
        let launch = Tuning::default_for(ctx.info(), Shape::of(ctx.info())).launch("fdtd");
        Self::in_groups(ctx, launch.group_size, launch.max_groups)
    }

    /// The same in groups of this size; 1 is the CPU shape.
    pub(crate) fn in_groups(ctx: &Context, group_size: usize, max_groups: usize) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("fdtd", include_str!("../../cl/fdtd.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let program = ctx.build(&source, &options_of::<T, T>(USUAL_STD, ctx.info(), group_size, group_size))?;
        Ok(Self { program, group_size, max_groups, elements: PhantomData })
    }

    /// A kernel whose arguments are its own.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if there is none of this name.
    pub(crate) fn kernel(&self, ctx: &Context, name: &'static str) -> Result<Kernel> {
        ctx.kernel(&self.program, name, [T::CL_NAME; 2])
    }

    /// A work-item for each on a GPU; for each group of the CPU shape what is worth it.
    fn grid(&self, items: usize) -> Grid {
        let groups = match Shape::of_group(self.group_size) {
            Shape::Gpu => items.div_ceil(self.group_size).max(1),
            Shape::Cpu => items.div_ceil(1024).clamp(1, self.max_groups),
        };
        Grid { groups, group_size: self.group_size }
    }

    /// One half of a step in some rows of a slab whose planes have `plane` cells: `kernel` takes `more` numbers after the rows, and
    /// `arrays`, magnetic ones first.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn update(
        &self,
        ctx: &Context,
        kernel: &Kernel,
        rows: Rows,
        more: &[usize],
        (arrays, plane): (&[&DeviceVec<T>], usize),
        (media, half): (&Media<T>, usize),
    ) -> Result<()> {
        let Rows { first, rows, nx } = rows;
        let cells = media.index.len();
        assert!(first + rows * nx <= cells && first.is_multiple_of(nx) && nx <= plane);
        assert!(arrays.iter().all(|array| array.len() >= cells + plane));
        assert!(media.factors[half].len() >= 4 * media.materials);
        let numbers: Vec<u32> = [first, rows, nx].iter().chain(more).map(|&n| count(n)).collect();
        let mut args: Vec<&dyn Argument> = numbers.iter().map(|n| n as &dyn Argument).collect();
        args.extend(arrays.iter().map(|&array| array as &dyn Argument));
        args.extend([&media.index as &dyn Argument, &media.factors[half]]);
        // SAFETY: types as declared in the file. Cells are below `cells`, and what is read of an array is at most a plane farther, for
        // which there is room; indices of materials are below their number, as who made them vouches for.
        unsafe { launch(ctx, kernel, self.grid(rows * nx), &args) }
    }

    /// What layers add to `target`, in the cells `begin..end` of their box.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn layer(
        &self,
        ctx: &Context,
        kernel: &Kernel,
        (begin, end): (usize, usize),
        layer: &Layer<'_, T>,
        (target, psi): (&mut DeviceVec<T>, &mut DeviceVec<T>),
        (media, half): (&Media<T>, usize),
    ) -> Result<()> {
        let Layer { size, axis, low, shift, strides, walls, offsets, adds, source, profile } = layer;
        assert!(begin <= end && end <= psi.len() && psi.len() == size.iter().product::<usize>());
        assert!(profile.len() == 3 * size[*axis]);
        let mut last = size.map(|n| n.saturating_sub(1));
        last[*axis] += shift;
        let last = last[0] + last[1] * strides[0] + last[2] * strides[1];
        let [to, far, near] = *offsets;
        assert!(last < media.index.len() && last + to < target.len() && last + far.max(near) < source.len());
        let numbers = [begin, end - begin, size[0], size[1], *axis, *low, *shift, strides[0], strides[1]].map(count);
        let offsets = [to, far, near].map(count);
        let sign = T::from_f64(if *adds { 1.0 } else { -1.0 });
        let mut args: Vec<&dyn Argument> = numbers.iter().map(|n| n as &dyn Argument).collect();
        args.push(walls);
        args.extend(offsets.iter().map(|n| n as &dyn Argument));
        args.extend([&sign as &dyn Argument, target, *source, psi, *profile, &media.index, &media.factors[half]]);
        // SAFETY: types as declared in the file. The cell that is farthest in the slab is the last one of the box, as was checked.
        unsafe { launch(ctx, kernel, self.grid(end - begin), &args) }
    }

    /// Sets a box of `size` elements from `first` on to a value, or adds it.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn source(
        &self,
        ctx: &Context,
        kernel: &Kernel,
        (first, size): (usize, [usize; 3]),
        strides: [usize; 2],
        (value, is_hard): (T, bool),
        target: &mut DeviceVec<T>,
    ) -> Result<()> {
        let last = first + size[0] - 1 + (size[1] - 1) * strides[0] + (size[2] - 1) * strides[1];
        assert!(last < target.len());
        let all: usize = size.iter().product();
        let numbers = [all, size[0], size[1], first, strides[0], strides[1]].map(count);
        let is_hard = u32::from(is_hard);
        let mut args: Vec<&dyn Argument> = numbers.iter().map(|n| n as &dyn Argument).collect();
        args.extend([&is_hard as &dyn Argument, &value, target]);
        // SAFETY: types as declared in the file; the last element was checked.
        unsafe { launch(ctx, kernel, self.grid(all), &args) }
    }
}
