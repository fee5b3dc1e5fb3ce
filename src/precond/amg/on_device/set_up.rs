//! The levels of a matrix, made on a device: the same aggregates as on the host, and the same numbers but for sums over all rows.

use std::mem::swap;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::super::smoother::{Lanczos, largest_eigenvalue, steps};
use super::super::sparse::Sparse;
use super::super::{DENSE, Dense, FEW_ROWS, Hierarchy, LEAST_FACTOR, LevelInfo, MOST_LEVELS, scales};
use super::{All, Coarse, OnDevice, Vectors, multiples};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::{Error, Result};
use crate::kernels::Tuning;
use crate::kernels::amg::first::{FirstKernels, FirstVectors};
use crate::kernels::amg::strength::BLOCK;
use crate::kernels::amg::{AmgKernels, Blocked, DeviceSparse};
use crate::kernels::coarse::{CoarseLevel, CoarseLevels};
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::kernels::cycle::Polynomial;
use crate::kernels::dictionary::DictionaryBlock;
use crate::matrix::Csr;
use crate::operator::by_dictionary;
use crate::operator::csr::{columns, made};
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// Elements that are worth a thread.
const FEW: usize = 1 << 14;

/// Levels of so many entries at most are done together, in one launch,
const MOST_TOGETHER: usize = 1_500_000;
/// or of so many, where a single group does them.
const MOST_OF_A_GROUP: usize = 30_000;

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

/// A level that is made.
struct Made {
    a: DeviceSparse,
    /// Its row blocks, and its rows as the cycle multiplies them, where these are others.
    blocks: Option<DeviceVec<[u32; 2]>>,
    rows: Option<DeviceRows<f32>>,
    smoother: Polynomial,
    /// P with the other sign, and its transpose; none of the last.
    transfer: Option<[DeviceSparse; 2]>,
}

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
    ) -> Result<([DeviceVec<T>; 2], All<T>, Hierarchy)> {
        let start = Instant::now();
        let of_patterns = patterns.map(|block| self.first_of_patterns(block, factor)).transpose()?.flatten();
        let First { mut matrix, mut rows, vectors } = match of_patterns {
            Some(first) => first,
            None => self.first_of_rows(a, factor)?,
        };
        let FirstVectors { mut b, multiples, scale } = vectors;
        drop(scale);
        let (mut made, mut infos, mut began) = (Vec::new(), Vec::<LevelInfo>::new(), start);
        loop {
            let (n, nnz, time) = (matrix.n_rows, matrix.nnz(), began.elapsed());
            infos.push(LevelInfo { rows: n, nnz, time });
            log::info!("level {} of multigrid: {n} rows, {nnz} entries, {time:?}", infos.len());
            began = Instant::now();
            if n <= FEW_ROWS {
                break;
            }
            let blocks = self.kernels.row_blocks(&self.ctx, &matrix, BLOCK)?;
            let blocked = Blocked { matrix: &matrix, blocks: &blocks };
            let (largest, bounds) = self.kernels.strength(&self.ctx, blocked, &b)?;
            let smoother = (&steps(largest_eigenvalue(bounds, &mut OnDeviceLanczos::new(self, blocked))?)).into();
            let next = if infos.len() < MOST_LEVELS { self.coarser(blocked, &b, &largest)? } else { None };
            let Some((p, restriction, next, next_b)) = next else {
                made.push(Made { a: matrix, blocks: Some(blocks), rows, smoother, transfer: None });
                return Ok((multiples, self.laid_out(made, None)?, Hierarchy::of(infos, start.elapsed())));
            };
            let (a, transfer) = (std::mem::replace(&mut matrix, next), Some([p, restriction]));
            made.push(Made { a, blocks: Some(blocks), rows: rows.take(), smoother, transfer });
            b = next_b;
        }
        let inverse = Dense::of(&self.read(&matrix)?).inverse();
        let smoother = (&steps(1.0)).into(); // of no use
        made.push(Made { a: matrix, blocks: None, rows, smoother, transfer: None });
        Ok((multiples, self.laid_out(made, Some(inverse))?, Hierarchy::of(infos, start.elapsed())))
    }

    /// Levels as a cycle takes them: small ones together, if there are several; of the last, the inverse.
    fn laid_out(&self, mut made: Vec<Made>, inverse: Option<Vec<f32>>) -> Result<All<T>> {
        let ctx = &self.ctx;
        let most = if CoarseLevels::<T>::groups(ctx) > 1 { MOST_TOGETHER } else { MOST_OF_A_GROUP };
        let is_small = |level: &&Made| level.rows.is_none() && level.a.nnz() <= most;
        let small = made.iter().rev().take_while(is_small).count();
        let together = made.split_off(made.len() - if small > 1 { small } else { 1 });
        let (mut levels, mut above) = (Vec::new(), 0);
        for Made { a, blocks, rows, smoother, transfer } in made {
            let [p, restriction] = transfer.ok_or(Error::SolverBroken)?;
            let n = a.n_rows;
            let a = rows.map_or_else(|| self.rows(a, blocks), Ok)?;
            let (p, restriction) = (self.rows(p, None)?, self.rows(restriction, None)?);
            levels.push(OnDevice { a, smoother, p, restriction, v: Vectors::new(ctx, n, above)? });
            above = n;
        }
        let n = together.first().map_or(0, |level| level.a.n_rows);
        if together.len() > 1 {
            let of = |Made { a, smoother, transfer, .. }: Made| {
                let (smoother, is_solved) = (smoother.of_residual(), transfer.is_none() && inverse.is_some());
                let a = match &inverse {
                    Some(inverse) if is_solved => self.full(a.n_rows, inverse)?,
                    _ => a,
                };
                Ok(CoarseLevel { a, transfer, smoother, is_solved })
            };
            let coarse = CoarseLevels::new(ctx, &together.into_iter().map(of).collect::<Result<Vec<_>>>()?)?;
            let last = Vectors::of_several(ctx, n, above, coarse.room())?;
            return Ok((levels, Coarse::Together(Box::new(coarse)), last));
        }
        let last = Vectors::new(ctx, n, above)?;
        let coarsest = match (together.into_iter().next(), inverse) {
            (Some(Made { a, blocks, rows, smoother, .. }), None) => {
                Coarse::Smoothed(rows.map_or_else(|| self.rows(a, blocks), Ok)?, smoother)
            }
            (_, inverse) => {
                let inverse = inverse.unwrap_or_default();
                Coarse::Exact(DeviceVec::from_slice(ctx, &inverse, "the coarsest level")?)
            }
        };
        Ok((levels, coarsest, last))
    }

    /// A matrix all of whose entries are there.
    fn full(&self, n: usize, values: &[f32]) -> Result<DeviceSparse> {
        let ctx = &self.ctx;
        let starts: Vec<u32> = (0..=n).map(|i| (i * n) as u32).collect();
        let columns: Vec<u32> = (0..n).flat_map(|_| 0..n as u32).collect();
        Ok(DeviceSparse {
            n_rows: n,
            n_cols: n,
            starts: DeviceVec::from_slice(ctx, &starts, "where rows begin")?,
            columns: DeviceVec::from_slice(ctx, &columns, "columns of a level")?,
            values: DeviceVec::from_slice(ctx, values, "values of a level")?,
        })
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
        blocked: Blocked<'_>,
        b: &DeviceVec<f32>,
        largest: &DeviceVec<f32>,
    ) -> Result<Option<Coarser>> {
        let (Self { ctx, kernels, .. }, a) = (self, blocked.matrix);
        let mut stages = Stages { ctx, began: Instant::now() };
        let graph = kernels.graph(ctx, blocked, largest)?;
        stages.end("graph")?;
        let aggregates = kernels.aggregates(ctx, a, largest, &graph)?;
        drop(graph);
        stages.end("aggregates")?;
        if aggregates.count as f64 * LEAST_FACTOR > a.n_rows as f64 || aggregates.count == 0 {
            return Ok(None);
        }
        let [t, mut coarse] = kernels.tentative(ctx, &aggregates, b)?;
        stages.end("tentative prolongation")?;
        let mut p = kernels.smoothed(ctx, blocked, [b, largest, &t], &aggregates)?;
        stages.end("prolongation")?;
        let mut restriction = kernels.transposed(ctx, &p)?;
        stages.end("restriction")?;
        let lengths = kernels.product_lengths(ctx, a, &p, Stay::Short)?;
        stages.end("lengths of A P")?;
        let mut ap = kernels.product(ctx, a, &p, lengths, false)?;
        stages.end("A P")?;
        let mut lengths = kernels.product_lengths(ctx, &restriction, &ap, Stay::Long)?;
        stages.end("lengths of the next matrix")?;
        if lengths.nnz as f64 > DENSE * a.nnz() as f64 {
            p = kernels.unsmoothed(ctx, &aggregates, &t)?;
            restriction = kernels.transposed(ctx, &p)?;
            ap = kernels.product(ctx, a, &p, kernels.product_lengths(ctx, a, &p, Stay::Short)?, false)?;
            lengths = kernels.product_lengths(ctx, &restriction, &ap, Stay::Long)?;
        }
        let mut next = kernels.product(ctx, &restriction, &ap, lengths, true)?;
        drop(ap);
        stages.end("the next matrix")?;
        kernels.scale_levels(ctx, [&mut p, &mut restriction, &mut next], &mut coarse)?;
        stages.end("scaling")?;
        Ok(Some((p, restriction, next, coarse)))
    }

    /// A matrix as the cycle multiplies it, by the row blocks that it has already, if these suit.
    fn rows(&self, a: DeviceSparse, blocks: Option<DeviceVec<[u32; 2]>>) -> Result<DeviceRows<f32>> {
        let blocks = match blocks {
            Some(blocks) if self.row_block == BLOCK => blocks,
            _ => self.kernels.row_blocks(&self.ctx, &a, self.row_block)?,
        };
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
    a: Blocked<'a>,
    /// None before it begins: most matrices need no process.
    vectors: Option<[DeviceVec<f32>; 3]>,
}

impl<'a, T: Real, A: Real> OnDeviceLanczos<'a, T, A> {
    fn new(on: &'a SetUp<T, A>, a: Blocked<'a>) -> Self {
        Self { on, a, vectors: None }
    }

    fn vectors(&mut self) -> Result<&mut [DeviceVec<f32>; 3]> {
        self.vectors.as_mut().ok_or(Error::SolverBroken)
    }
}

impl<T: Real, A: Real> Lanczos for OnDeviceLanczos<'_, T, A> {
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
            let blocks = on.kernels.row_blocks(&on.ctx, &same, BLOCK).unwrap();
            let blocked = Blocked { matrix: &same, blocks: &blocks };
            let (largest, _) = on.kernels.strength(&on.ctx, blocked, &same_b).unwrap();
            let made = on.coarser(blocked, &same_b, &largest).unwrap();
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
            compare(on, "a star", &laplacian(40, &star));
            compare(on, "no edges", &laplacian(3, &[]));
            compare(on, "two parts", &laplacian(7, &[(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6)]));
            compare(on, "jumps", &system("jumps:4,seed=3"));
            if is_simulated {
                return;
            }
            let complete: Vec<(u32, u32)> = (0..60).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
            compare(on, "all with all", &laplacian(60, &complete));
            let small = ["jumps:5,seed=3", "poisson2d:20", "tridiagonal:300"];
            small.iter().for_each(|spec| compare(on, spec, &system(spec)));
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
            if is_simulated {
                return; // it takes long
            }
            let n = 3600;
            let of_hub = |hub: u32| (0..n / 2 - 1).map(move |k| (hub, 2 + 2 * k + hub));
            let ring = |hub: u32| (0..n / 2 - 2).map(move |k| (2 + 2 * k + hub, 4 + 2 * k + hub));
            let edges: Vec<(u32, u32)> = (0..2).flat_map(|hub| of_hub(hub).chain(ring(hub))).collect();
            let a = laplacian(n as usize, &edges);
            let (matrix, _) = first(&a);
            let on_device = on.moved(&a, &scales(&a.diagonal())).unwrap();
            let lengths = on.kernels.product_lengths(&on.ctx, &on_device, &on_device, Stay::Short).unwrap();
            let square = on.read(&on.kernels.product(&on.ctx, &on_device, &on_device, lengths, true).unwrap()).unwrap();
            let expected = crate::precond::amg::product(&matrix, &matrix, true);
            assert!(square.compressed() == expected.compressed());
            compare(on, "two hubs", &a);
        });
    }
}
