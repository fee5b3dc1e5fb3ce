//! The levels of a matrix, made on a device: the same aggregates as on the host, and the same numbers but for sums over all rows.

use std::sync::Arc;
use std::time::Instant;

use super::super::levels::Levels;
use super::super::smoother::{largest_eigenvalue, steps};
use super::super::sparse::Sparse;
use super::super::{DENSE, Dense, FEW_ROWS, Hierarchy, LEAST_FACTOR, LevelInfo, MOST_LEVELS};
use super::first::First;
use super::lanczos::Process;
use super::nodes::By;
use super::{All, Coarse, OnDevice, Vectors};
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
use crate::operator::csr::made;
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// Levels of so many entries at most are done together, in one launch,
const MOST_TOGETHER: usize = 1_500_000;
/// or of so many, where a single group does them.
const MOST_OF_A_GROUP: usize = 30_000;

/// What makes levels, on a device that has rows in `T`, and whose sums are in `A`.
pub(super) struct SetUp<T, A> {
    pub(super) ctx: Arc<Context>,
    pub(super) of_rows: FirstKernels<T>,
    pub(super) kernels: AmgKernels<A>,
    /// Rows and entries of a row block, at most.
    row_block: (usize, usize),
}

/// A level below another: P with the other sign, its transpose, the matrix, and what is to be interpolated.
pub(super) type Coarser<N> = (DeviceSparse, DeviceSparse, DeviceSparse, N);

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
        Levels { a, is_as_given, near_null, .. }: &Levels,
        factor: f64,
        patterns: Option<&DictionaryBlock<T>>,
    ) -> Result<([DeviceVec<T>; 2], All<T>, Hierarchy)> {
        let start = Instant::now();
        let mut stages = Stages::of(&self.ctx);
        let of_patterns = patterns.filter(|_| *is_as_given);
        let of_patterns = of_patterns.map(|block| self.first_of_patterns(block, factor)).transpose()?.flatten();
        let First { mut matrix, mut rows, blocks, diagonal, vectors } = match of_patterns {
            Some(first) => first,
            None => self.first_of_rows(a, factor, near_null.unknowns())?,
        };
        let FirstVectors { b, multiples, scale } = vectors;
        drop(scale);
        stages.end("the first level")?;
        let mut by = if near_null.is_constant() {
            By::Vector(b)
        } else {
            let diagonal = diagonal.unwrap_or_else(|| a.diagonal());
            self.told((&matrix, blocks), &diagonal, near_null)?
        };
        stages.end("near-null vectors")?;
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
            let eigenvalue = |bounds| largest_eigenvalue(bounds, &mut Process::new(self, blocked));
            let is_last = infos.len() == MOST_LEVELS;
            let (largest, next) = match &by {
                By::Vector(b) => {
                    let (entries, bounds) = self.kernels.strength(&self.ctx, blocked, b)?;
                    let next = if is_last { None } else { self.coarser(blocked, b, &entries)? };
                    (eigenvalue(bounds)?, next.map(|(p, restriction, next, b)| (p, restriction, next, By::Vector(b))))
                }
                By::Nodes(blocks, modes) => {
                    let largest = eigenvalue([f32::INFINITY; 2])?;
                    (largest, if is_last { None } else { self.coarser_nodes(blocks, modes, largest)? })
                }
            };
            let smoother = (&steps(largest)).into();
            let Some((p, restriction, next, next_by)) = next else {
                made.push(Made { a: matrix, blocks: Some(blocks), rows, smoother, transfer: None });
                return Ok((multiples, self.laid_out(made, None)?, Hierarchy::of(infos, start.elapsed())));
            };
            let (a, transfer) = (std::mem::replace(&mut matrix, next), Some([p, restriction]));
            made.push(Made { a, blocks: Some(blocks), rows: rows.take(), smoother, transfer });
            by = next_by;
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

    /// What `precond::amg::coarser` makes.
    pub(super) fn coarser(
        &self,
        blocked: Blocked<'_>,
        b: &DeviceVec<f32>,
        largest: &DeviceVec<f32>,
    ) -> Result<Option<Coarser<DeviceVec<f32>>>> {
        let (Self { ctx, kernels, .. }, a) = (self, blocked.matrix);
        let mut stages = Stages::of(ctx);
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
pub(super) struct Stages<'a> {
    ctx: &'a Context,
    began: Instant,
}

impl<'a> Stages<'a> {
    pub(super) fn of(ctx: &'a Context) -> Self {
        Self { ctx, began: Instant::now() }
    }

    pub(super) fn end(&mut self, stage: &str) -> Result<()> {
        if log::log_enabled!(log::Level::Debug) {
            self.ctx.finish()?; // else nothing waits
            log::debug!("amg, {stage}: {:?}", self.began.elapsed());
            self.began = Instant::now();
        }
        Ok(())
    }
}
