//! Launchers of `cl/cycle.cl`: what a multigrid cycle in single precision does beside products.

use std::marker::PhantomData;
use std::ops::Range;

use super::{Argument, PRELUDE, Shape, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
const KERNELS: [&str; 5] = ["cycle_enter", "cycle_leave", "cycle_from_zero", "cycle_smooth", "cycle_dense"];

/// A polynomial of degree 2: d₁ = `add`₁ r, d₂ = `keep` d₁ + `add`₂ (r − A d₁), x += `weight`₁ d₁ + `weight`₂ d₂.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Polynomial {
    pub(crate) keep: f32,
    pub(crate) add: [f32; 2],
    pub(crate) weight: [f32; 2],
}

impl Polynomial {
    /// c and d of c r + d A r, which is what both steps add to x.
    pub(crate) fn of_residual(&self) -> [f32; 2] {
        let Self { keep, add: [first, second], weight: [of_first, of_second] } = *self;
        [of_first * first + of_second * (keep * first + second), -of_second * second * first]
    }

    /// As kernels take it.
    fn arguments(&self) -> [&dyn Argument; 5] {
        let Self { keep, add: [first, second], weight: [of_first, of_second] } = self;
        [first, keep, second, of_first, of_second]
    }
}

/// The kernels, for an iteration whose vectors are in `T`.
pub(crate) struct CycleKernels<T> {
    kernels: [Kernel; KERNELS.len()],
    group_size: usize,
    most_groups: usize,
    types: PhantomData<fn() -> T>,
}

impl<T: Real> CycleKernels<T> {
    /// Compiles them in that shape, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, shape: Shape) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("cycle", include_str!("../../cl/cycle.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let (most, units) = (ctx.info().max_work_group.max(1), ctx.info().compute_units.max(1) as usize);
        let group_size = if shape == Shape::Cpu { 1 } else { 256.min(1 << most.ilog2()).max(2) };
        let options = options_of::<f32, T>(super::USUAL_STD, ctx.info(), group_size, group_size);
        let program = ctx.build(&source, &options)?;
        let [a, b, c, d, e] = KERNELS.map(|name| ctx.kernel(&program, name, [f32::CL_NAME, T::CL_NAME]));
        Ok(Self { kernels: [a?, b?, c?, d?, e?], group_size, most_groups: 8 * units, types: PhantomData })
    }

    /// to = scale from, rounded, on the elements of `to` that are told.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn enter(
        &self,
        ctx: &Context,
        [scale, from]: [&DeviceVec<T>; 2],
        (to, part): (&mut DeviceVec<f32>, &Range<usize>),
    ) -> Result<()> {
        let n = part.len();
        assert!(n <= scale.len().min(from.len()) && part.end <= to.len());
        // SAFETY: types as declared in the file; elements 0..n, and the part, checked above.
        unsafe { launch(ctx, &self.kernels[0], self.elements(n), &[&count(n), &count(part.start), scale, from, to]) }
    }

    /// to = scale from, of the elements of `from` that are told.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn leave(
        &self,
        ctx: &Context,
        scale: &DeviceVec<T>,
        (from, part): (&DeviceVec<f32>, &Range<usize>),
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        let n = part.len();
        assert!(n <= scale.len().min(to.len()) && part.end <= from.len());
        // SAFETY: types as declared in the file; elements 0..n, and the part, checked above.
        unsafe { launch(ctx, &self.kernels[1], self.elements(n), &[&count(n), &count(part.start), scale, from, to]) }
    }

    /// Smooths from x = 0, for b and t = A b. Reads 2 n, writes n.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn smooth_from_zero(
        &self,
        ctx: &Context,
        n: usize,
        of: &Polynomial,
        bt: [&DeviceVec<f32>; 2],
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.steps(&self.kernels[2], ctx, n, of, bt, x)
    }

    /// Smooths from the x that is there, for its residual r and t = A r. Reads 3 n, writes n.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn smooth(
        &self,
        ctx: &Context,
        n: usize,
        of: &Polynomial,
        rt: [&DeviceVec<f32>; 2],
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.steps(&self.kernels[3], ctx, n, of, rt, x)
    }

    /// The two steps of a polynomial, for r and t = A r.
    fn steps(
        &self,
        kernel: &Kernel,
        ctx: &Context,
        n: usize,
        of: &Polynomial,
        [r, t]: [&DeviceVec<f32>; 2],
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        assert!(n <= r.len().min(t.len()).min(x.len()));
        let elements = n as u32;
        let mut all: Vec<&dyn Argument> = vec![&elements];
        all.extend(of.arguments());
        all.extend([r as &dyn Argument, t, x]);
        // SAFETY: types as declared in the file; elements 0..n, checked above.
        unsafe { launch(ctx, kernel, self.elements(n), &all) }
    }

    /// x = X b with an n × n matrix.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn dense(
        &self,
        ctx: &Context,
        n: usize,
        [matrix, b]: [&DeviceVec<f32>; 2],
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        assert!(n * n <= matrix.len() && n <= b.len().min(x.len()));
        let grid = Grid { groups: n.clamp(1, self.most_groups), group_size: self.group_size };
        // SAFETY: types as declared in the file; a matrix of n² elements and vectors of n, checked above.
        unsafe { launch(ctx, &self.kernels[4], grid, &[&(n as u32), matrix, b, x]) }
    }

    fn elements(&self, n: usize) -> Grid {
        let each = if self.group_size == 1 { 1024 } else { self.group_size };
        Grid { groups: n.div_ceil(each).clamp(1, self.most_groups), group_size: self.group_size }
    }
}
