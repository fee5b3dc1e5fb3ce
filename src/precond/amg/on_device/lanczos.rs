//! Lanczos' process on a device.

use std::mem::swap;

use super::super::smoother::Lanczos;
use super::set_up::SetUp;
use crate::device::DeviceVec;
use crate::error::{Error, Result};
use crate::kernels::amg::Blocked;
use crate::real::Real;

/// The process for a matrix.
pub(super) struct Process<'a, T, A> {
    on: &'a SetUp<T, A>,
    a: Blocked<'a>,
    /// None before it begins: most matrices need no process.
    vectors: Option<[DeviceVec<f32>; 3]>,
}

impl<'a, T: Real, A: Real> Process<'a, T, A> {
    pub(super) fn new(on: &'a SetUp<T, A>, a: Blocked<'a>) -> Self {
        Self { on, a, vectors: None }
    }

    fn vectors(&mut self) -> Result<&mut [DeviceVec<f32>; 3]> {
        self.vectors.as_mut().ok_or(Error::SolverBroken)
    }
}

impl<T: Real, A: Real> Lanczos for Process<'_, T, A> {
    type Error = Error;

    fn n(&self) -> usize {
        self.a.matrix.n_rows
    }

    fn begin(&mut self) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.n());
        let (v, before, mut w) = (kernels.zeros(ctx, n)?, kernels.zeros(ctx, n)?, kernels.random(ctx, n)?);
        let square = kernels.lanczos_remove(ctx, n, 0.0, &v, &mut w)?;
        self.vectors = Some([v, before, w]);
        Ok(square)
    }

    fn advance(&mut self, factor: f32) -> Result<()> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.n());
        let [v, before, w] = self.vectors()?;
        // the place of what was before is free
        swap(v, before);
        swap(v, w);
        kernels.scale(ctx, n, factor, v)
    }

    fn product(&mut self, beta: f32) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, a) = (self.on, self.a);
        let [v, before, w] = self.vectors()?;
        kernels.lanczos_product(ctx, a, beta, [v, before], w)
    }

    fn remove(&mut self, alpha: f32) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.n());
        let [v, _, w] = self.vectors()?;
        kernels.lanczos_remove(ctx, n, alpha, v, w)
    }
}
