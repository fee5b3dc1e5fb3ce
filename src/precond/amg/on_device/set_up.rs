//! The levels of a matrix, made on a device: the same aggregates as on the host, and the same numbers but for sums over all rows.

use std::mem::swap;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::super::smoother::{Lanczos, largest_eigenvalue, steps};
use super::super::sparse::Sparse;
use super::super::{DENSE, Dense, FEW_ROWS, Hierarchy, LEAST_FACTOR, LevelInfo, MOST_LEVELS, scales};
use super::{All, Coarse, OnDevice, Vectors, multiples};
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::Tuning;
use crate::kernels::amg::first::{FirstKernels, FirstVectors};
use crate::kernels::amg::{AmgKernels, DeviceSparse};
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::kernels::dictionary::DictionaryBlock;
use crate::matrix::Csr;
use crate::operator::by_dictionary;
use crate::operator::csr::{columns, made};
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// Elements that are worth a thread.
const FEW: usize = 1 << 14;

/// What makes levels, on a device that has rows in `T`, and whose sums are in `A`.
pub(super) struct SetUp<T, A> {
    ctx: Arc<Context>,
    of_rows: FirstKernels<T>,
    kernels: AmgKernels<A>,
    /// Rows and entries of a row block, at most.
    row_block: (usize, usize),
}

/// A level below another: P with the other sign, its transpose, the matrix, and the near-null vector.
pub(super) type Coarser = (DeviceSparse, DeviceSparse, DeviceSparse, DeviceVec<f32>);

/// The first level.
struct First<T> {
    /// D^(−½) A D^(−½),
    matrix: DeviceSparse,
    /// and as the cycle multiplies it, if that is not so.
    rows: Option<DeviceRows<f32>>,
    vectors: FirstVectors<T>,
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// Compiles the kernels; `None` where there are none for the device.
    ///
    /// # Errors
    /// A failing compiler.
    pub(super) fn new(ctx: &Arc<Context>, tuning: &Tuning) -> Result<Option<Self>> {
        let (Some(row_block), Some(kernels)) = (tuning.row_block(), AmgKernels::build(ctx)?) else { return Ok(None) };
        Ok(Some(Self { ctx: Arc::clone(ctx), of_rows: FirstKernels::build(ctx)?, kernels, row_block }))
    }

    /// The levels of a symmetric matrix whose diagonal is positive, of which the device has `factor` times the rows, maybe by their
    /// patterns: what residuals are multiplied by on the way in, and what comes of them on the way out; levels; and their numbers.
    ///
    /// # Errors
    /// Not enough memory, or a failing device.
    pub(super) fn levels(
        &self,
        a: &Csr,
        factor: f64,
        patterns: Option<&DictionaryBlock<T>>,
    ) -> Result<([DeviceVec<T>; 2], All, Hierarchy)> {
        let start = Instant::now();
        let of_patterns = patterns.map(|block| self.first_of_patterns(block, factor)).transpose()?.flatten();
        let First { mut matrix, mut rows, vectors } = match of_patterns {
            Some(first) => first,
            None => self.first_of_rows(a, factor)?,
        };
        let FirstVectors { mut b, multiples, scale } = vectors;
        drop(scale);
        let (mut levels, mut infos, mut began, mut above) = (Vec::new(), Vec::<LevelInfo>::new(), start, 0);
        let (n, coarsest) = loop {
            let (n, nnz, time) = (matrix.n_rows, matrix.nnz(), began.elapsed());
            infos.push(LevelInfo { rows: n, nnz, time });
            log::info!("level {} of multigrid: {n} rows, {nnz} entries, {time:?}", infos.len());
            began = Instant::now();
            if n <= FEW_ROWS {
                break (n, Coarse::exact(&self.ctx, &Dense::of(&self.read(&matrix)?))?);
            }
            let (largest, bounds) = self.kernels.strength(&self.ctx, &matrix, &b)?;
            let smoother = (&steps(largest_eigenvalue(bounds, &mut OnDeviceLanczos::new(self, &matrix))?)).into();
            let next = if infos.len() < MOST_LEVELS { self.coarser(&matrix, &b, &largest)? } else { None };
            let Some((p, restriction, next, next_b)) = next else {
                break (n, Coarse::Smoothed(self.rows(matrix, rows)?, smoother));
            };
            let a = self.rows(std::mem::replace(&mut matrix, next), rows.take())?;
            let (p, restriction) = (self.rows(p, None)?, self.rows(restriction, None)?);
            levels.push(OnDevice { a, smoother, p, restriction, v: Vectors::new(&self.ctx, n, above)? });
            (b, above) = (next_b, n);
        };
        let last = Vectors::new(&self.ctx, n, above)?;
        Ok((multiples, (levels, coarsest, last), Hierarchy::of(infos, start.elapsed())))
    }

    /// The first level of what the device has, `factor` times the matrix, if that is in one piece.
    fn first_of_patterns(&self, block: &DictionaryBlock<T>, factor: f64) -> Result<Option<First<T>>> {
        let Self { ctx, of_rows, kernels, .. } = self;
        let times = T::from_f64(factor.recip());
        let Some(diagonal) = of_rows.diagonal(ctx, block, times)? else { return Ok(None) };
        let [least, largest] = of_rows.range(ctx, &diagonal)?;
        let vectors = of_rows.vectors(ctx, &diagonal, largest, multiples(least.sqrt().recip(), factor))?;
        let matrix = of_rows.matrix(ctx, kernels, (block, times), &vectors.scale)?;
        let all_alike = (block.width.is_none() && least == largest).then(|| least.sqrt().recip());
        let width = match block.width {
            Some(width) => width as usize,
            None => self.longest(block)?,
        };
        let rows = of_rows.by_patterns(ctx, (block, times), &vectors.scale, all_alike, width)?;
        Ok(Some(First { matrix, rows: Some(by_dictionary::made(rows)), vectors }))
    }

    /// The most entries of a pattern.
    fn longest(&self, block: &DictionaryBlock<T>) -> Result<usize> {
        let mut runs = vec![[0; 2]; block.runs.len()];
        block.runs.read(&self.ctx, 0, &mut runs)?;
        Ok(runs.iter().map(|[begin, end]| end - begin).max().unwrap_or(0) as usize)
    }

    /// The first level of rows that the host has.
    fn first_of_rows(&self, a: &Csr, factor: f64) -> Result<First<T>> {
        let Self { ctx, of_rows, .. } = self;
        let diagonal = a.diagonal();
        let scale = scales(&diagonal);
        let matrix = self.moved(a, &scale)?;
        let on_device = DeviceVec::made(ctx, diagonal.len(), 1, "the diagonal", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&diagonal[at]).for_each(|(to, d)| *to = T::from_f64(*d));
        })?;
        let [least, largest] = of_rows.range(ctx, &on_device)?;
        let vectors = of_rows.vectors(ctx, &on_device, largest, multiples(least.sqrt().recip(), factor))?;
        Ok(First { matrix, rows: None, vectors })
    }

    /// D^(−½) A D^(−½), of rows that the host has.
    pub(super) fn moved(&self, a: &Csr, scale: &[f64]) -> Result<DeviceSparse> {
        let (ctx, row_ptr, col_idx, values) = (&self.ctx, a.row_ptr(), a.col_idx(), a.values());
        if u32::try_from(a.nnz()).is_err() {
            return Err(too_many(ctx, a.nnz()));
        }
        let starts = DeviceVec::made(ctx, row_ptr.len(), 1, "where rows begin", |at, to| {
            to.par_iter_mut().with_min_len(FEW).zip(&row_ptr[at]).for_each(|(to, &start)| *to = start as u32);
        })?;
        let columns = columns(ctx, col_idx, a.n_cols())?;
        let values = DeviceVec::made(ctx, values.len(), 1, "values of a level", |at, to| {
            to.par_chunks_mut(FEW).enumerate().for_each(|(k, to)| {
                let first = at.start + k * FEW;
                let mut row = row_ptr.partition_point(|&start| start <= first) - 1;
                for (entry, to) in (first..).zip(to) {
                    while row_ptr[row + 1] <= entry {
                        row += 1;
                    }
                    let j = col_idx[entry] as usize;
                    // the same bits for (i, j) and (j, i)
                    *to = if j == row { 1.0 } else { (values[entry] * (scale[row] * scale[j])) as f32 };
                }
            });
        })?;
        Ok(DeviceSparse { n_rows: a.n_rows(), n_cols: a.n_cols(), starts, columns, values })
    }

    /// What `precond::amg::coarser` makes.
    pub(super) fn coarser(
        &self,
        a: &DeviceSparse,
        b: &DeviceVec<f32>,
        largest: &DeviceVec<f32>,
    ) -> Result<Option<Coarser>> {
        let Self { ctx, kernels, .. } = self;
        let mut stages = Stages { ctx, began: Instant::now() };
        let graph = kernels.graph(ctx, a, largest)?;
        stages.end("graph")?;
        let aggregates = kernels.aggregates(ctx, a, largest, &graph)?;
        drop(graph);
        stages.end("aggregates")?;
        if aggregates.count as f64 * LEAST_FACTOR > a.n_rows as f64 || aggregates.count == 0 {
            return Ok(None);
        }
        let [t, mut coarse] = kernels.tentative(ctx, &aggregates, b)?;
        stages.end("tentative prolongation")?;
        let mut p = kernels.smoothed(ctx, a, [b, largest, &t], &aggregates)?;
        stages.end("prolongation")?;
        let mut restriction = kernels.transposed(ctx, &p)?;
        stages.end("restriction")?;
        let lengths = kernels.product_lengths(ctx, a, &p)?;
        stages.end("lengths of A P")?;
        let mut ap = kernels.product(ctx, a, &p, lengths)?;
        stages.end("A P")?;
        let mut lengths = kernels.product_lengths(ctx, &restriction, &ap)?;
        stages.end("lengths of the next matrix")?;
        if lengths.nnz as f64 > DENSE * a.nnz() as f64 {
            p = kernels.unsmoothed(ctx, &aggregates, &t)?;
            restriction = kernels.transposed(ctx, &p)?;
            ap = kernels.product(ctx, a, &p, kernels.product_lengths(ctx, a, &p)?)?;
            lengths = kernels.product_lengths(ctx, &restriction, &ap)?;
        }
        let mut next = kernels.product(ctx, &restriction, &ap, lengths)?;
        drop(ap);
        stages.end("the next matrix")?;
        kernels.scale_levels(ctx, [&mut p, &mut restriction, &mut next], &mut coarse)?;
        stages.end("scaling")?;
        Ok(Some((p, restriction, next, coarse)))
    }

    /// A matrix as the cycle multiplies it: as it is, or in the `rows` that it has already.
    fn rows(&self, a: DeviceSparse, rows: Option<DeviceRows<f32>>) -> Result<DeviceRows<f32>> {
        if let Some(rows) = rows {
            return Ok(rows);
        }
        let blocks = self.kernels.row_blocks(&self.ctx, &a, self.row_block)?;
        let DeviceSparse { n_rows, n_cols, starts, columns, values } = a;
        let segments = vec![CsrSegment { rows: 0..n_rows, before: 0, col_idx: columns, values }];
        Ok(made(CsrBlock { n_rows, n_cols, row_ptr: starts, segments }, blocks))
    }

    /// A matrix on the host.
    pub(super) fn read(&self, a: &DeviceSparse) -> Result<Sparse> {
        let (mut starts, mut columns) = (vec![0; a.n_rows + 1], vec![0; a.nnz()]);
        let mut values = vec![0.0; a.nnz()];
        a.starts.read(&self.ctx, 0, &mut starts)?;
        a.columns.read(&self.ctx, 0, &mut columns)?;
        a.values.read(&self.ctx, 0, &mut values)?;
        Ok(Sparse::new(a.n_cols, starts.iter().map(|&start| start as usize).collect::<Vec<_>>(), columns, values))
    }
}

/// Tells how long stages of a level take, to who asks for it.
struct Stages<'a> {
    ctx: &'a Context,
    began: Instant,
}

impl Stages<'_> {
    fn end(&mut self, stage: &str) -> Result<()> {
        if log::log_enabled!(log::Level::Debug) {
            self.ctx.finish()?; // else nothing waits
            log::debug!("amg, {stage}: {:?}", self.began.elapsed());
            self.began = Instant::now();
        }
        Ok(())
    }
}

/// A matrix with more entries than 32-bit numbers count.
fn too_many(ctx: &Context, nnz: usize) -> Error {
    Error::OutOfDeviceMemory {
        device: ctx.info().label(),
        what: "a level of amg".into(),
        need_bytes: 8 * nnz as u64,
        limit: "what 32-bit numbers count",
        have_bytes: 8 * u64::from(u32::MAX),
        hint: "the host has no such limit".into(),
    }
}

/// Lanczos' process on the device.
struct OnDeviceLanczos<'a, T, A> {
    on: &'a SetUp<T, A>,
    a: &'a DeviceSparse,
    /// None before it begins: most matrices need no process.
    vectors: Option<[DeviceVec<f32>; 3]>,
}

impl<'a, T: Real, A: Real> OnDeviceLanczos<'a, T, A> {
    fn new(on: &'a SetUp<T, A>, a: &'a DeviceSparse) -> Self {
        Self { on, a, vectors: None }
    }

    fn vectors(&mut self) -> Result<&mut [DeviceVec<f32>; 3]> {
        self.vectors.as_mut().ok_or(Error::SolverBroken)
    }
}

impl<T: Real, A: Real> Lanczos for OnDeviceLanczos<'_, T, A> {
    type Error = Error;

    fn n(&self) -> usize {
        self.a.n_rows
    }

    fn begin(&mut self) -> Result<f64> {
        let (SetUp { ctx, kernels, .. }, n) = (self.on, self.n());
        let zeros = || DeviceVec::zeros(ctx, n, "a vector of Lanczos' process");
        let (v, mut w) = (zeros()?, kernels.random(ctx, n)?);
        let square = kernels.lanczos_remove(ctx, n, 0.0, &v, &mut w)?;
        self.vectors = Some([v, zeros()?, w]);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::tests::{first, laplacian, system};
    use super::*;
    use crate::device::list;
    use crate::kernels::products::Product;
    use crate::kernels::{Kernels, ProductsFor, Shape};
    use crate::operator::Format;
    use crate::operator::device_rows::Which;
    use crate::operator::opencl::DeviceBlock;
    use crate::partition::split;
    use crate::precond::amg::coarser;

    /// On a device of each platform, and whether that is simulated.
    fn each(test: impl Fn(&SetUp<f64, f64>, bool)) {
        let devices = list().devices;
        let platforms: BTreeSet<&str> = devices.iter().map(|device| device.platform.as_str()).collect();
        for platform in platforms {
            let device = devices.iter().find(|device| device.platform == platform).unwrap();
            let ctx = Arc::new(Context::open(device).unwrap());
            let tuning = Tuning::default_for(device, Shape::Gpu);
            test(&SetUp::new(&ctx, &tuning).unwrap().unwrap(), platform == "Oclgrind");
        }
    }

    fn down(on: &SetUp<f64, f64>, v: &DeviceVec<f32>) -> Vec<f32> {
        let mut all = vec![0.0; v.len()];
        v.read(&on.ctx, 0, &mut all).unwrap();
        all
    }

    /// Level by level the host's integers, and the same numbers.
    fn compare(on: &SetUp<f64, f64>, name: &str, a: &Csr) {
        let (mut matrix, mut b) = first(a);
        let mut same = on.moved(a, &scales(&a.diagonal())).unwrap();
        let mut same_b = DeviceVec::from_slice(&on.ctx, &b, "b").unwrap();
        for level in 0.. {
            let read = on.read(&same).unwrap();
            assert!(read.compressed() == matrix.compressed(), "{name}, matrix of level {level}");
            assert_eq!(down(on, &same_b), b, "{name}, near-null vector of level {level}");
            let (largest, _) = on.kernels.strength(&on.ctx, &same, &same_b).unwrap();
            let made = on.coarser(&same, &same_b, &largest).unwrap();
            assert_eq!(made.is_some(), coarser(&matrix, &b).is_some(), "{name}, level {level}");
            let (Some((p, restriction, next, coarse)), Some(expected)) = (made, coarser(&matrix, &b)) else { break };
            let mut p = on.read(&p).unwrap();
            p.change(|_, _, values| values.iter_mut().for_each(|v| *v = -*v));
            assert!(p.compressed() == expected.0.compressed(), "{name}, P of level {level}");
            let restriction = on.read(&restriction).unwrap();
            assert!(restriction.compressed() == expected.1.compressed(), "{name}, its transpose of level {level}");
            (matrix, b, same, same_b) = (expected.2, expected.3, next, coarse);
        }
    }

    #[test]
    fn levels_are_those_of_the_host() {
        each(|on, is_simulated| {
            let star: Vec<(u32, u32)> = (1..40).map(|j| (0, j)).collect();
            let complete: Vec<(u32, u32)> = (0..60).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
            compare(on, "a star", &laplacian(40, &star));
            compare(on, "all with all", &laplacian(60, &complete));
            compare(on, "no edges", &laplacian(3, &[]));
            compare(on, "two parts", &laplacian(7, &[(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6)]));
            let small = ["jumps:5,seed=3", "poisson2d:20", "tridiagonal:300"];
            small.iter().for_each(|spec| compare(on, spec, &system(spec)));
            if is_simulated {
                return;
            }
            let large = [
                "poisson3d:17",
                "variable:13,sigma=2",
                "neumann2d:40x30",
                "circuit:40",
                "tetrahedra:9",
                "elasticity3d:7",
            ];
            large.iter().for_each(|spec| compare(on, spec, &system(spec)));
        });
    }

    /// Of rows by their patterns, with values of their own and without, with one diagonal and with several.
    #[test]
    fn first_level_of_patterns() {
        each(|on, _| {
            for (spec, format) in [
                ("poisson3d:8", Format::Dictionary),
                ("neumann2d:23x20", Format::Dictionary),
                ("poisson3d:8", Format::Pattern),
                ("variable:8,sigma=2", Format::Pattern),
                ("tridiagonal:77", Format::Pattern),
            ] {
                let a = system(spec);
                let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
                let tuning = Tuning::default_for(on.ctx.info(), Shape::Gpu);
                let block = DeviceBlock::<f64>::upload(&on.ctx, &tuning, &part, 0.5, format).unwrap();
                let made = on.first_of_patterns(block.patterns().unwrap(), 0.5).unwrap().unwrap();
                let (expected, b) = first(&a);
                assert!(on.read(&made.matrix).unwrap().compressed() == expected.compressed(), "{spec}");
                assert_eq!(down(on, &made.vectors.b), b, "{spec}");
                // with x = 1, 2, …
                let x: Vec<f32> = (0..a.n_rows()).map(|i| (i % 50 + 1) as f32).collect();
                let v = DeviceVec::from_slice(&on.ctx, &x, "x").unwrap();
                let mut y = DeviceVec::from_slice(&on.ctx, &x, "y").unwrap();
                let kernels = Kernels::<f32, f64>::build(&on.ctx, tuning).unwrap();
                for rows in made.rows.unwrap().launches(Which::All) {
                    kernels.prepare(&on.ctx, rows, ProductsFor::Columns(1)).unwrap();
                    kernels.product(&on.ctx, rows, 1, &v, &Product::Store(&mut y), None).unwrap();
                }
                for (i, y) in down(on, &y).into_iter().enumerate() {
                    assert!((y - expected.rows().times(i, &x)).abs() <= 1e-4, "{spec}: row {i}");
                }
            }
        });
    }

    /// Rows that no table in local memory holds: two hubs, each with a ring of its own around it.
    #[test]
    fn long_rows() {
        each(|on, is_simulated| {
            let n = if is_simulated { 600 } else { 9000 };
            let of_hub = |hub: u32| (0..n / 2 - 1).map(move |k| (hub, 2 + 2 * k + hub));
            let ring = |hub: u32| (0..n / 2 - 2).map(move |k| (2 + 2 * k + hub, 4 + 2 * k + hub));
            let edges: Vec<(u32, u32)> = (0..2).flat_map(|hub| of_hub(hub).chain(ring(hub))).collect();
            let a = laplacian(n as usize, &edges);
            let (matrix, _) = first(&a);
            let on_device = on.moved(&a, &scales(&a.diagonal())).unwrap();
            let lengths = on.kernels.product_lengths(&on.ctx, &on_device, &on_device).unwrap();
            let square = on.read(&on.kernels.product(&on.ctx, &on_device, &on_device, lengths).unwrap()).unwrap();
            let expected = crate::precond::amg::product(&matrix, &matrix, true);
            assert!(square.compressed() == expected.compressed());
            compare(on, "two hubs", &a);
        });
    }
}
