//! Lanczos' process on a device.

use std::mem::swap;

use super::super::smoother::Lanczos;
use super::ranks::{Among, Halo};
use super::set_up::SetUp;
use crate::device::DeviceVec;
use crate::error::{Error, Result};
use crate::kernels::amg::Blocked;
use crate::real::Real;

/// The process for a matrix.
pub(super) struct Process<'a, T, A> {
    on: &'a SetUp<T, A>,
    a: Blocked<'a>,
    /// What ranks exchange, if each has some of the rows.
    among: Option<(&'a Halo, Among<'a>)>,
    /// None before it begins: most matrices need no process.
    vectors: Option<[DeviceVec<f32>; 3]>,
}

impl<'a, T: Real, A: Real> Process<'a, T, A> {
    pub(super) fn new(on: &'a SetUp<T, A>, a: Blocked<'a>) -> Self {
        Self { on, a, among: None, vectors: None }
    }

    /// The same for this rank's rows.
    pub(super) fn among(on: &'a SetUp<T, A>, a: Blocked<'a>, among: (&'a Halo, Among<'a>)) -> Self {
        Self { among: Some(among), ..Self::new(on, a) }
    }

    /// The sum of what each rank has.
    fn of_all(&self, own: f64) -> Result<f64> {
        self.among.map_or(Ok(own), |(_, among)| among.board.sum(own))
    }

    fn vectors(&mut self) -> Result<&mut [DeviceVec<f32>; 3]> {
        self.vectors.as_mut().ok_or(Error::SolverBroken)
    }
}

impl<T: Real, A: Real> Lanczos for Process<'_, T, A> {
    type Error = Error;

    fn n(&self) -> usize {
        // ranks take the same steps, whatever they have
        if self.among.is_some() { usize::MAX } else { self.a.matrix.n_rows }
    }

    fn begin(&mut self) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.a.matrix.n_cols);
        let (v, before, mut w) = (kernels.zeros(ctx, n)?, kernels.zeros(ctx, n)?, kernels.random(ctx, n)?);
        let square = kernels.lanczos_remove(ctx, self.a.matrix.n_rows, 0.0, &v, &mut w)?;
        self.vectors = Some([v, before, w]);
        self.of_all(square)
    }

    fn advance(&mut self, factor: f32) -> Result<()> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.a.matrix.n_rows);
        let [v, before, w] = self.vectors()?;
        // the place of what was before is free
        swap(v, before);
        swap(v, w);
        kernels.scale(ctx, n, factor, v)
    }

    fn product(&mut self, beta: f32) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, a, on, among) = (self.on, self.a, self.on, self.among);
        let [v, before, w] = self.vectors()?;
        if let Some((halo, among)) = among {
            among.fill(on, halo, v)?;
        }
        let own = kernels.lanczos_product(ctx, a, beta, [v, before], w)?;
        self.of_all(own)
    }

    fn remove(&mut self, alpha: f32) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.a.matrix.n_rows);
        let [v, _, w] = self.vectors()?;
        let own = kernels.lanczos_remove(ctx, n, alpha, v, w)?;
        self.of_all(own)
    }
}
