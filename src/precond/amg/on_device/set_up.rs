//! The levels of a matrix, made on a device: the same aggregates as on the host, and the same numbers but for sums over all rows.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::super::levels::Levels;
use super::super::smoother::{damped, largest_eigenvalue, steps};
use super::super::sparse::Sparse;
use super::super::{DENSE, Dense, FEW_ROWS, Hierarchy, LEAST_FACTOR, LevelInfo, MOST_LEVELS};
use super::exchanged::{Exchanged, Gather};
use super::first::{Diagonals, First};
use super::lanczos::Process;
use super::nodes::By;
use super::ranks::Among;
use super::{All, Coarse, OfRanks, OnDevice, Vectors};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::{Error, Result};
use crate::kernels::Tuning;
use crate::kernels::amg::first::FirstVectors;
use crate::kernels::amg::strength::BLOCK;
use crate::kernels::amg::{AmgKernels, Blocked, DeviceSparse};
use crate::kernels::coarse::{CoarseLevel, CoarseLevels};
use crate::kernels::csr::{CsrBlock, CsrSegment};
use crate::kernels::cycle::Polynomial;
use crate::operator::Exchange;
use crate::operator::csr::made;
use crate::operator::device_rows::DeviceRows;
use crate::operator::exchange::HaloExchange;
use crate::partition::HaloPlan;
use crate::real::Real;

/// Levels of so many entries at most are done together, in one launch,
const MOST_TOGETHER: usize = 1_500_000;
/// or of so many, where a single group does them.
const MOST_OF_A_GROUP: usize = 30_000;

/// What makes levels, on a device that has rows in `T`, and whose sums are in `A`.
pub(super) struct SetUp<T, A> {
    pub(super) ctx: Arc<Context>,
    pub(super) diagonals: Diagonals<T>,
    pub(super) kernels: AmgKernels<A>,
    /// Rows and entries of a row block, at most.
    row_block: (usize, usize),
}

/// A level below another: P with the other sign, its transpose, the matrix, and what is to be interpolated.
pub(super) type Coarser<N> = (DeviceSparse, DeviceSparse, DeviceSparse, N);

/// P with the other sign, and its transpose.
pub(super) type Transfer = [DeviceSparse; 2];

/// A level that is made.
pub(super) struct Made {
    pub(super) a: DeviceSparse,
    /// Its row blocks, and its rows as the cycle multiplies them, where these are others.
    pub(super) blocks: Option<DeviceVec<[u32; 2]>>,
    pub(super) rows: Option<DeviceRows<f32>>,
    pub(super) smoother: Polynomial,
    /// None of the last.
    pub(super) transfer: Option<Transfer>,
    /// What ranks exchange of its vectors, if each has some of its rows.
    pub(super) halo: Option<HaloPlan>,
}

/// The level from which a device goes on alone.
pub(super) struct Top {
    pub(super) matrix: DeviceSparse,
    /// As the cycle multiplies it, if that is otherwise.
    pub(super) rows: Option<DeviceRows<f32>>,
    pub(super) by: By,
}

/// The way down.
pub(super) struct Descent {
    pub(super) made: Vec<Made>,
    pub(super) infos: Vec<LevelInfo>,
    pub(super) is_symmetric: bool,
    /// What is exchanged so that all ranks have all of a vector of the first level that all of them have; which elements of it a rank
    /// brings.
    pub(super) gathers: Option<(Range<usize>, HaloPlan)>,
    pub(super) start: Instant,
    /// When the level that comes next was begun.
    pub(super) began: Instant,
}

impl Descent {
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Self { made: Vec::new(), infos: Vec::new(), is_symmetric: true, gathers: None, start, began: start }
    }

    /// Takes note of a level.
    pub(super) fn note(&mut self, info: LevelInfo) {
        self.infos.push(info);
        let LevelInfo { rows, nnz, time } = info;
        log::info!("level {} of multigrid: {rows} rows, {nnz} entries, {time:?}", self.infos.len());
    }
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// Compiles the kernels; `None` where there are none for the device.
    ///
    /// # Errors
    /// A failing compiler.
    pub(super) fn new(ctx: &Arc<Context>, tuning: &Tuning) -> Result<Option<Self>> {
        let (Some(row_block), Some(kernels)) = (tuning.row_block(), AmgKernels::build(ctx)?) else { return Ok(None) };
        Ok(Some(Self { ctx: Arc::clone(ctx), diagonals: Diagonals::new(ctx)?, kernels, row_block }))
    }

    /// The levels of a matrix whose diagonal is positive, of which the device has the rows, or some of them `among` ranks: what
    /// residuals are multiplied by on the way in, and what comes of them on the way out; levels; and their numbers. Ranks share large levels if these are of one positive near-null vector.
    ///
    /// # Errors
    /// Not enough memory, or a failing device or rank.
    pub(super) fn levels(
        &self,
        levels: &Levels,
        of: OfRanks<'_, T>,
        among: Option<Among<'_>>,
    ) -> Result<([DeviceVec<T>; 2], All<T>, Hierarchy)> {
        let Levels { a, is_as_given, near_null, is_symmetric, .. } = levels;
        let of = OfRanks { rows: of.rows.filter(|_| *is_as_given), ..of };
        let mut descent = Descent { is_symmetric: *is_symmetric, ..Descent::new() };
        let (top, multiples) = match among {
            Some(among)
                if among.board.spans_processes()
                    || *is_symmetric && near_null.is_constant() && a.nnz() > among.most =>
            {
                let (first, multiples) = self.first_among(levels, of, among)?;
                (self.descend_among(first, &mut descent, among)?, multiples)
            }
            Some(among) => {
                let (top, multiples) = self.top(levels, OfRanks { rows: None, ..of })?;
                (top, self.own_of(multiples, among, &mut descent)?)
            }
            None => self.top(levels, of)?,
        };
        let inverse = self.descend(top, &mut descent)?;
        let Descent { made, infos, gathers, start, .. } = descent;
        Ok((multiples, self.laid_out(made, inverse, gathers)?, Hierarchy::of(infos, start.elapsed())))
    }

    /// What a rank has of the multiples of the scales, where all of them get all of a vector of the first level.
    fn own_of(
        &self,
        [enter, leave]: [DeviceVec<T>; 2],
        among: Among<'_>,
        descent: &mut Descent,
    ) -> Result<[DeviceVec<T>; 2]> {
        descent.gathers = Some(among.all_of(among.own)?);
        let own = |all: DeviceVec<T>| -> Result<DeviceVec<T>> {
            let (first, n) = among.own;
            let mut own = DeviceVec::uninit(&self.ctx, n, "the scales of the matrix")?;
            all.copy_part(&self.ctx, first..first + n, &mut own, 0)?;
            Ok(own)
        };
        Ok([own(enter)?, own(leave)?])
    }

    /// The first level of all rows, and multiples of the scales.
    fn top(&self, Levels { a, near_null, .. }: &Levels, of: OfRanks<'_, T>) -> Result<(Top, [DeviceVec<T>; 2])> {
        let mut stages = Stages::of(&self.ctx);
        let of_patterns = of.patterns().map(|block| self.first_of_patterns(block, of)).transpose()?.flatten();
        let First { matrix, rows, blocks, diagonal, vectors } = match of_patterns {
            Some(first) => first,
            None => match of.rows.map(|rows| rows.compressed(&self.ctx)).transpose()?.flatten() {
                Some(rows) => self.first_of_compressed(rows, of, near_null.unknowns())?,
                None => self.first_of_rows(a, of, near_null.unknowns())?,
            },
        };
        let FirstVectors { b, multiples, scale } = vectors;
        drop(scale);
        stages.end("the first level")?;
        let by = if near_null.is_constant() {
            By::Vector(b)
        } else {
            let diagonal = diagonal.unwrap_or_else(|| a.diagonal());
            self.told((&matrix, blocks), &diagonal, near_null)?
        };
        stages.end("near-null vectors")?;
        Ok((Top { matrix, rows, by }, multiples))
    }

    /// Goes down from a level to the last; the inverse of that, if it is small.
    fn descend(&self, Top { mut matrix, mut rows, mut by }: Top, descent: &mut Descent) -> Result<Option<Vec<f32>>> {
        loop {
            let (n, nnz, time) = (matrix.n_rows, matrix.nnz(), descent.began.elapsed());
            descent.note(LevelInfo { rows: n, nnz, time });
            descent.began = Instant::now();
            if n <= FEW_ROWS {
                break;
            }
            let blocks = self.kernels.row_blocks(&self.ctx, &matrix, BLOCK)?;
            let blocked = Blocked { matrix: &matrix, blocks: &blocks };
            let eigenvalue = |bounds| largest_eigenvalue(bounds, &mut Process::new(self, blocked));
            let is_last = descent.infos.len() == MOST_LEVELS;
            let of_vector = |(p, restriction, next, b)| (p, restriction, next, By::Vector(b));
            let (steps, next) = match &by {
                By::Vector(b) if !descent.is_symmetric => {
                    let next = if is_last { None } else { self.coarser_unsymmetric(blocked, b)? };
                    (damped(), next.map(of_vector))
                }
                By::Vector(b) => {
                    let (entries, bounds) = self.kernels.strength(&self.ctx, blocked, b)?;
                    let next = if is_last { None } else { self.coarser(blocked, None, b, &entries)? };
                    (steps(eigenvalue(bounds)?), next.map(of_vector))
                }
                By::Nodes(blocks, modes) => {
                    let largest = eigenvalue([f32::INFINITY; 2])?;
                    (steps(largest), if is_last { None } else { self.coarser_nodes(blocks, modes, largest)? })
                }
            };
            let smoother = (&steps).into();
            let blocks = Some(blocks);
            let Some((p, restriction, next, next_by)) = next else {
                descent.made.push(Made { a: matrix, blocks, rows, smoother, transfer: None, halo: None });
                return Ok(None);
            };
            let (a, transfer) = (std::mem::replace(&mut matrix, next), Some([p, restriction]));
            descent.made.push(Made { a, blocks, rows: rows.take(), smoother, transfer, halo: None });
            by = next_by;
        }
        let last = self.read(&matrix)?;
        let inverse = if descent.is_symmetric { Dense::of(&last) } else { Dense::inverted(&last) }.inverse();
        let smoother = (&steps(1.0)).into(); // of no use
        descent.made.push(Made { a: matrix, blocks: None, rows, smoother, transfer: None, halo: None });
        Ok(Some(inverse))
    }

    /// Levels as a cycle takes them: small ones together, if there are several; of the last, the inverse.
    fn laid_out(
        &self,
        mut made: Vec<Made>,
        inverse: Option<Vec<f32>>,
        gathers: Option<(Range<usize>, HaloPlan)>,
    ) -> Result<All<T>> {
        let ctx = &self.ctx;
        let mut gather = gathers.map(|(own, plan)| Gather::new(ctx, own, &plan)).transpose()?;
        let most = if CoarseLevels::<T>::groups(ctx) > 1 { MOST_TOGETHER } else { MOST_OF_A_GROUP };
        let is_small = |level: &&Made| level.rows.is_none() && level.halo.is_none() && level.a.nnz() <= most;
        let small = made.iter().rev().take_while(is_small).count();
        let together = made.split_off(made.len() - if small > 1 { small } else { 1 });
        let (mut levels, mut above) = (Vec::new(), 0);
        for Made { a, blocks, rows, smoother, transfer, halo } in made {
            let [p, restriction] = transfer.ok_or(Error::SolverBroken)?;
            let n = a.n_rows;
            let exchanged = match halo {
                Some(plan) => Exchanged::Halo(HaloExchange::new(ctx, n, &plan, Exchange::HostStaged)?),
                None => Exchanged::from(gather.take()),
            };
            let a = rows.map_or_else(|| self.rows(a, blocks), Ok)?;
            let (p, restriction) = (self.rows(p, None)?, self.rows(restriction, None)?);
            levels.push(OnDevice { a, smoother, p, restriction, v: Vectors::new(ctx, n, above, exchanged)? });
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
            let last = Vectors::of_several(ctx, n, above, coarse.room(), gather.take().into())?;
            return Ok((levels, Coarse::Together(Box::new(coarse)), last));
        }
        let last = Vectors::new(ctx, n, above, gather.take().into())?;
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

    /// The same of a matrix that is not symmetric.
    pub(super) fn coarser_unsymmetric(
        &self,
        blocked: Blocked<'_>,
        b: &DeviceVec<f32>,
    ) -> Result<Option<Coarser<DeviceVec<f32>>>> {
        let (Self { ctx, kernels, .. }, mut stages) = (self, Stages::of(&self.ctx));
        let transpose = kernels.transposed(ctx, blocked.matrix)?;
        let mean = kernels.mean(ctx, blocked.matrix, &transpose)?;
        let [of_transpose, of_mean] = [&transpose, &mean].map(|a| kernels.row_blocks(ctx, a, BLOCK));
        let (transpose, of_mean) = ((&transpose, &of_transpose?), of_mean?);
        let [transpose, mean] = [transpose, (&mean, &of_mean)].map(|(matrix, blocks)| Blocked { matrix, blocks });
        stages.end("the mean of A and its transpose")?;
        let (largest, _) = kernels.strength(ctx, mean, b)?;
        self.coarser(blocked, Some([transpose, mean]), b, &largest)
    }

    /// What `precond::amg::coarser` makes: of a symmetric matrix, or with its transpose and their mean.
    pub(super) fn coarser(
        &self,
        blocked: Blocked<'_>,
        across: Option<[Blocked<'_>; 2]>,
        b: &DeviceVec<f32>,
        largest: &DeviceVec<f32>,
    ) -> Result<Option<Coarser<DeviceVec<f32>>>> {
        let (Self { ctx, kernels, .. }, a) = (self, blocked.matrix);
        let mut stages = Stages::of(ctx);
        let symmetric = across.map_or(blocked, |[_, mean]| mean);
        let graph = kernels.graph(ctx, symmetric, largest)?;
        stages.end("graph")?;
        let aggregates = kernels.aggregates(ctx, symmetric.matrix, largest, &graph)?;
        drop(graph);
        stages.end("aggregates")?;
        if aggregates.count as f64 * LEAST_FACTOR > a.n_rows as f64 || aggregates.count == 0 {
            return Ok(None);
        }
        let [t, mut coarse] = kernels.tentative(ctx, &aggregates, b)?;
        stages.end("tentative prolongation")?;
        let mut p = kernels.smoothed(ctx, blocked, [b, largest, &t], &aggregates)?;
        stages.end("prolongation")?;
        let mut restriction = match across {
            Some([transpose, _]) => {
                let smoothed = kernels.smoothed(ctx, transpose, [b, largest, &t], &aggregates)?;
                kernels.transposed(ctx, &smoothed)?
            }
            None => kernels.transposed(ctx, &p)?,
        };
        stages.end("restriction")?;
        let lengths = kernels.product_lengths(ctx, a, &p, Stay::Short)?;
        stages.end("lengths of A P")?;
        let mut ap = kernels.product(ctx, a, &p, lengths, false)?;
        stages.end("A P")?;
        let mut lengths = kernels.product_lengths(ctx, &restriction, &ap, Stay::Long)?;
        stages.end("lengths of the next matrix")?;
        if lengths.nnz as f64 > DENSE * a.nnz() as f64 {
            p = kernels.unsmoothed(ctx, a.n_rows, &aggregates, &t)?;
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
        let (starts, columns, values) = self.kernels.on_host(&self.ctx, a)?;
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
