//! The cycle on a device that has all rows: products in the formats of rows, and few kernels between them (`cl/cycle.cl`).
//!
//! Launches for a level, and the elements a row that each moves beside its matrix:
//!
//! | launch | elements |
//! |---|---|
//! | t = A b | 2 |
//! | both steps of the smoother from x = 0 | 3 |
//! | r = b − A x, Pᵀ r | 3, 1 |
//! | x + P e | 2 |
//! | r = b − A x, t = A r | 3, 2 |
//! | both steps of the smoother | 4 |
//!
//! Small levels are done together, in one launch (`kernels::coarse`).
//!
//! *Several devices* share the levels that have many rows: each makes and multiplies its own, and ranks exchange halos. Of the first small level all of
//! them get all of b, and do the rest alike. Of levels of a lattice they share slabs. Levels of nodes with several unknowns are all done alike.

mod distributed;
mod exchanged;
mod first;
mod lanczos;
mod lattice;
mod nodes;
pub(crate) mod ranks;
mod set_up;
#[cfg(test)]
mod tests;

use std::mem::swap;
use std::sync::Arc;

use rayon::prelude::*;

use self::exchanged::Exchanged;
use self::first::Diagonals;
use self::lattice::LatticeLevels;
use self::ranks::Among;
use self::set_up::SetUp;
use super::cycle::{Coarsest, Level};
use super::dense::Dense;
use super::levels::Levels;
use super::smoother::Step;
use super::sparse::Sparse;
use super::{Amg, Hierarchy};
use crate::backend::Backend;
use crate::backend::opencl::OpenClBackend;
use crate::comm::{Alone, Communicator};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::coarse::CoarseLevels;
use crate::kernels::cycle::{CycleKernels, Polynomial};
use crate::kernels::dictionary::DictionaryBlock;
use crate::kernels::products::Product;
use crate::kernels::{Kernels, ProductsFor, Shape, Tuning};
use crate::operator::Format;
use crate::operator::device_rows::{DeviceRows, Which};
use crate::operator::opencl::target;
use crate::operator::plan::Offer;
use crate::partition::{HaloPlan, Part};
use crate::precond::OnRank;
use crate::real::Real;

/// The rows that the ranks have of a matrix, whose levels are to be made.
pub(crate) struct OfRanks<'a, T: Real> {
    /// What they are multiplied by.
    pub(crate) factor: f64,
    /// Those of this rank on its device.
    pub(crate) rows: Option<&'a DeviceRows<T>>,
    /// The diagonal of `factor` times its rows, if the system is [scaled](crate::precond::scaling) by that.
    pub(crate) scaled_by: Option<&'a DeviceVec<T>>,
}

impl<T: Real> Clone for OfRanks<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Real> Copy for OfRanks<'_, T> {}

impl<'a, T: Real> OfRanks<'a, T> {
    /// The rank's rows, if they are by their patterns.
    fn patterns(&self) -> Option<&'a DictionaryBlock<T>> {
        self.rows.and_then(DeviceRows::patterns)
    }

    /// What makes of a rank's values those of the matrix, or of the scaled one.
    fn times(&self) -> T {
        T::from_f64(if self.scaled_by.is_some() { 1.0 } else { self.factor.recip() })
    }
}

/// A cycle on a device, for an iteration in `T`.
pub(crate) struct DeviceCycle<T: Real> {
    on: Launcher<T>,
    /// How many rows of the matrix this rank has.
    own: usize,
    /// What r is multiplied by, and what comes of it.
    scales: [DeviceVec<T>; 2],
    levels: Vec<OnDevice>,
    coarsest: Coarse<T>,
    /// Of the coarsest level, or of all that are done together.
    last: Vectors,
}

/// What launches kernels.
struct Launcher<T: Real> {
    /// In single precision; there are no sums.
    backend: OpenClBackend<f32, T>,
    kernels: CycleKernels<T>,
}

/// A level that has one below it.
struct OnDevice {
    a: DeviceRows<f32>,
    smoother: Polynomial,
    /// −P.
    p: DeviceRows<f32>,
    restriction: DeviceRows<f32>,
    v: Vectors,
}

/// Levels, what ends the cycle, and its vectors.
type All<T> = (Vec<OnDevice>, Coarse<T>, Vectors);

/// What ends the cycle.
enum Coarse<T> {
    /// The inverse of a matrix,
    Exact(DeviceVec<f32>),
    /// or the smoother,
    Smoothed(DeviceRows<f32>, Polynomial),
    /// or small levels, down to one of these, in one launch,
    Together(Box<CoarseLevels<T>>),
    /// or all levels of a lattice.
    Lattice(Box<LatticeLevels>),
}

/// What d^(−½) is multiplied by on the way into a cycle and out of it, for `factor` times the matrix: powers of two which keep all in the range of
/// single precision, as its largest element is that.
fn multiples(largest: f64, factor: f64) -> [f64; 2] {
    let unit = if largest.is_normal() { largest.log2().floor().exp2() } else { 1.0 };
    [unit.recip(), unit / factor]
}

impl<T> Coarse<T> {
    fn exact(ctx: &Context, dense: &Dense) -> Result<Self> {
        Ok(Self::Exact(DeviceVec::from_slice(ctx, &dense.inverse(), "the coarsest level")?))
    }

    /// Rows that are multiplied.
    fn rows(&self) -> Option<&DeviceRows<f32>> {
        match self {
            Self::Exact(_) | Self::Together(_) | Self::Lattice(_) => None,
            Self::Smoothed(rows, _) => Some(rows),
        }
    }
}

/// Vectors of a level.
struct Vectors {
    /// Rows that this device has.
    n: usize,
    b: DeviceVec<f32>,
    x: DeviceVec<f32>,
    r: DeviceVec<f32>,
    t: DeviceVec<f32>,
    exchanged: Exchanged,
}

impl Vectors {
    /// Of a level of `n` rows, below one of `above`: products take vectors that are as long as their rows are many.
    fn new(ctx: &Context, n: usize, above: usize, exchanged: Exchanged) -> Result<Self> {
        let room = |len| DeviceVec::uninit(ctx, len, "the vectors of a level"); // written before they are read
        let with_halo = n + exchanged.halo();
        let long = with_halo.max(above);
        Ok(Self { n, b: room(with_halo)?, x: room(long)?, r: room(long)?, t: room(n)?, exchanged })
    }

    /// Of levels that are done together.
    fn of_several(ctx: &Context, n: usize, above: usize, [v, xs]: [usize; 2], exchanged: Exchanged) -> Result<Self> {
        let room = |len| DeviceVec::uninit(ctx, len, "the vectors of coarse levels");
        Ok(Self { n, b: room(v)?, x: room(xs.max(above))?, r: room(0)?, t: room(0)?, exchanged })
    }
}

impl From<&[Step; 2]> for Polynomial {
    fn from([first, second]: &[Step; 2]) -> Self {
        Self { keep: second.keep, add: [first.add, second.add], weight: [first.weight, second.weight] }
    }
}

impl<T: Real> DeviceCycle<T> {
    /// The levels of a matrix on a device whose sums are in `A`: made there, of the rows that it has if these are by their patterns, or, by a
    /// processor as a device, on the host. On several devices `among` ranks; `None` where one of them can't have them. Tells how large they are,
    /// unless the host has made them.
    ///
    /// # Errors
    /// Not enough memory, a failing compiler, or a failing rank.
    pub(crate) fn new<A: Real>(
        ctx: &Arc<Context>,
        tuning: &Tuning,
        levels: &Levels,
        of: OfRanks<'_, T>,
        among: Option<Among<'_>>,
    ) -> Result<Option<(Self, Option<Hierarchy>)>> {
        let (shape, all) = (Shape::of_group(tuning.launch("spmv_csr").group_size), levels.a.n_rows());
        let tables = levels.lattice().filter(|_| shape == Shape::Gpu);
        let set_up = match tables {
            None if shape == Shape::Gpu => SetUp::<T, A>::new(ctx, tuning)?,
            _ => None,
        };
        if let Some(among) = among
            && among.sum(usize::from(set_up.is_none() && tables.is_none()))? > 0
        {
            return Ok(None);
        }
        let products = Kernels::<f32, T>::build(ctx, tuning.clone())?;
        let backend = OpenClBackend::new(Arc::clone(ctx), products, 0, Box::new(Alone::default()))?;
        let on = Launcher { backend, kernels: CycleKernels::build(ctx, shape)? };
        let made = match (tables, set_up) {
            (Some(tables), _) => Some(Diagonals::new(ctx)?.levels_of_lattice(levels, tables, of, among)?),
            (None, Some(set_up)) => Some(set_up.levels(levels, of, among)?),
            (None, None) => None,
        };
        let (scales, (levels, coarsest, last), hierarchy) = match made {
            Some((scales, made, hierarchy)) => (scales, made, Some(hierarchy)),
            None => {
                let amg = levels.on_host()?;
                let largest = amg.scale.par_iter().copied().reduce(|| 0.0, f64::max);
                let (is_scaled, factor) = (of.scaled_by.is_some(), of.factor);
                let multiples =
                    if is_scaled { multiples(largest / factor.sqrt(), 1.0) } else { multiples(largest, factor) };
                let [enter, leave] = multiples.map(|times| {
                    let of_row = |scale: &f64| T::from_f64(if is_scaled { times } else { times * scale });
                    let scales: Vec<T> = amg.scale.par_iter().map(of_row).collect();
                    DeviceVec::from_slice(ctx, &scales, "the scales of the matrix")
                });
                ([enter?, leave?], on.move_levels(&amg)?, None)
            }
        };
        let rows = levels.iter().flat_map(|OnDevice { a, p, restriction, .. }| [a, p, restriction]);
        on.prepare(rows.chain(coarsest.rows()))?;
        let own = among.map_or(all, |among| among.own.1);
        Ok(Some((Self { on, own, scales, levels, coarsest, last }, hierarchy)))
    }

    /// z = M⁻¹ r.
    fn apply(&mut self, r: &DeviceVec<T>, z: &mut DeviceVec<T>) -> Result<()> {
        let Self { on, own, scales: [enter, leave], levels, coarsest, last } = self;
        let ctx = Arc::clone(&on.backend.ctx);
        let first = levels.first_mut().map_or(&mut *last, |level| &mut level.v);
        let own = first.exchanged.own(*own);
        on.kernels.enter(&ctx, [enter, r], (&mut first.b, &own))?;
        if let Exchanged::All(gather) = &first.exchanged {
            gather.fill(&on.backend, &mut first.b)?;
        }
        on.cycle(levels, coarsest, last)?;
        let first = levels.first_mut().map_or(&mut *last, |level| &mut level.v);
        on.kernels.leave(&ctx, leave, (&first.x, &own), z)
    }
}

impl<T: Real, A: Real> OnRank<OpenClBackend<T, A>> for DeviceCycle<T> {
    fn connect(&mut self, comm: Box<dyn Communicator<f32>>) {
        self.on.backend.set_comm(comm);
    }

    fn apply(&mut self, from: &DeviceVec<T>, to: &mut DeviceVec<T>) -> Result<()> {
        DeviceCycle::apply(self, from, to)
    }
}

impl<T: Real> Launcher<T> {
    /// Levels that the host has made.
    fn move_levels(&self, amg: &Amg) -> Result<All<T>> {
        let (mut levels, mut above) = (Vec::new(), 0);
        for Level { a, steps, p, restriction } in &amg.levels {
            let v = Vectors::new(&self.backend.ctx, a.n_rows(), above, Exchanged::Nothing)?;
            above = a.n_rows();
            let (a, p, restriction) = (self.upload(a, 1.0)?, self.upload(p, -1.0)?, self.upload(restriction, 1.0)?);
            levels.push(OnDevice { a, smoother: steps.into(), p, restriction, v });
        }
        let (n, coarsest) = match &amg.coarsest {
            Coarsest::Exact(dense) => (dense.n(), Coarse::exact(&self.backend.ctx, dense)?),
            Coarsest::Smoothed(a, steps) => (a.n_rows(), Coarse::Smoothed(self.upload(a, 1.0)?, steps.into())),
            Coarsest::Lattice(tables) => {
                let (ctx, n) = (&self.backend.ctx, tables.hierarchy.levels[0].rows);
                let all = LatticeLevels::new(ctx, Shape::Cpu, tables, None)?;
                let vectors = Vectors::of_several(ctx, n, 0, [n, n], Exchanged::Nothing)?;
                return Ok((levels, Coarse::Lattice(Box::new(all)), vectors));
            }
        };
        Ok((levels, coarsest, Vectors::new(&self.backend.ctx, n, above, Exchanged::Nothing)?))
    }

    /// The rows of a matrix, times `factor`.
    fn upload(&self, a: &Sparse, factor: f64) -> Result<DeviceRows<f32>> {
        let OpenClBackend { ctx, kernels: products, .. } = &self.backend;
        let (n, (row_ptr, col_idx, values)) = (a.n_rows(), a.compressed());
        let values: Vec<f64> = values.par_iter().map(|v| f64::from(*v)).collect();
        let halo = HaloPlan { len: a.n_cols.saturating_sub(n), ..HaloPlan::default() };
        let part = Part { rows: 0..n, row_ptr, col_idx: col_idx.into(), values: values.into(), halo, of: None };
        let offer = Offer::<f32>::of(&part, factor, Format::Auto, target(ctx, &products.tuning))?;
        log::debug!("{n} rows, {} columns: {}", a.n_cols, offer.format);
        offer.upload(ctx, &products.tuning)
    }

    /// Builds the products with these rows.
    fn prepare<'a>(&self, mut all: impl Iterator<Item = &'a DeviceRows<f32>>) -> Result<()> {
        let OpenClBackend { ctx, kernels: products, .. } = &self.backend;
        all.try_for_each(|rows| {
            let mut launches = rows.launches(Which::All);
            launches.try_for_each(|rows| products.prepare(ctx, rows, ProductsFor::Columns(1)))
        })
    }

    /// x of the first of these levels for its b.
    fn cycle(&self, levels: &mut [OnDevice], coarsest: &mut Coarse<T>, last: &mut Vectors) -> Result<()> {
        let Self { backend, kernels } = self;
        let ctx = &backend.ctx;
        let Some((OnDevice { a, smoother, p, restriction, v }, below)) = levels.split_first_mut() else {
            return match coarsest {
                Coarse::Exact(inverse) => kernels.dense(ctx, last.n, [inverse, &last.b], &mut last.x),
                Coarse::Smoothed(a, smoother) => self.smooth_from_zero(a, smoother, last),
                Coarse::Together(coarse) => coarse.cycle(ctx, &mut last.b, &mut last.x),
                Coarse::Lattice(levels) => levels.cycle(self, last),
            };
        };
        self.smooth_from_zero(a, smoother, v)?;
        v.exchanged.fill(backend, &mut v.x)?;
        self.residual(a, &v.b, &v.x, &mut v.r)?;
        v.exchanged.fill(backend, &mut v.r)?;
        let next = below.first_mut().map_or(&mut *last, |level| &mut level.v);
        match &mut next.exchanged {
            Exchanged::All(gather) => {
                self.multiply(restriction, &v.r, &mut v.t)?;
                v.t.copy_part(ctx, 0..gather.own.len(), &mut next.b, gather.own.start)?;
                gather.fill(backend, &mut next.b)?;
            }
            _ => self.multiply(restriction, &v.r, &mut next.b)?,
        }
        self.cycle(below, coarsest, last)?;
        let next = below.first_mut().map_or(&mut *last, |level| &mut level.v);
        next.exchanged.fill(backend, &mut next.x)?;
        self.residual(p, &v.x, &next.x, &mut v.r)?; // x + P e
        swap(&mut v.x, &mut v.r);
        v.exchanged.fill(backend, &mut v.x)?;
        self.residual(a, &v.b, &v.x, &mut v.r)?;
        v.exchanged.fill(backend, &mut v.r)?;
        self.multiply(a, &v.r, &mut v.t)?;
        kernels.smooth(ctx, v.n, smoother, [&v.r, &v.t], &mut v.x)
    }

    /// Both steps from x = 0.
    fn smooth_from_zero(&self, a: &DeviceRows<f32>, smoother: &Polynomial, v: &mut Vectors) -> Result<()> {
        v.exchanged.fill(&self.backend, &mut v.b)?;
        self.multiply(a, &v.b, &mut v.t)?;
        self.kernels.smooth_from_zero(&self.backend.ctx, v.n, smoother, [&v.b, &v.t], &mut v.x)
    }

    /// y = A x.
    fn multiply(&self, a: &DeviceRows<f32>, x: &DeviceVec<f32>, y: &mut DeviceVec<f32>) -> Result<()> {
        self.product(a, x, &Product::Store(y))
    }

    /// r = b − A x.
    fn residual(
        &self,
        a: &DeviceRows<f32>,
        b: &DeviceVec<f32>,
        x: &DeviceVec<f32>,
        r: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.product(a, x, &Product::Residual { b, r })
    }

    fn product(&self, a: &DeviceRows<f32>, x: &DeviceVec<f32>, product: &Product<'_, f32, T>) -> Result<()> {
        let OpenClBackend { ctx, kernels: products, .. } = &self.backend;
        a.launches(Which::All).try_for_each(|rows| products.product(ctx, rows, 1, x, product, None).map(|_| ()))
    }
}
