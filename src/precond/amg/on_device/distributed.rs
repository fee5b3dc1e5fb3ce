//! Levels that several ranks make together: each has the rows that it owns, with its columns first and then those of others' rows that
//! it needs. Aggregates are of rows of one rank; interpolation is smoothed across. The next matrix takes the rows of P and of A P that belong to
//! the halo from their owners, so that each rank has all of its own rows of Pᵀ A P. The first small level is gathered: from there on every rank
//! has all.

use std::time::Instant;

use super::super::levels::Levels;
use super::super::smoother::{largest_eigenvalue, steps};
use super::super::{DENSE, LEAST_FACTOR, LevelInfo, MOST_LEVELS, scales};
use super::OfRanks;
use super::lanczos::Process;
use super::nodes::By;
use super::ranks::{Among, Halo};
use super::set_up::{Descent, Made, SetUp, Stages, Top, Transfer};
use crate::device::{DeviceVec, Stay};
use crate::error::{Error, Result};
use crate::kernels::amg::first::FirstVectors;
use crate::kernels::amg::strength::BLOCK;
use crate::kernels::amg::{Blocked, DeviceSparse};
use crate::kernels::csr::CsrBlock;
use crate::kernels::dictionary::DictionaryBlock;
use crate::operator::by_dictionary;
use crate::operator::device_rows::DeviceRows;
use crate::real::Real;

/// A rank's rows of the matrix as its device has them.
enum Rows<'a, T> {
    ByPatterns(&'a DictionaryBlock<T>),
    Compressed(CsrBlock<T>),
}

/// A rank's rows of a level.
pub(super) struct Level {
    pub(super) matrix: DeviceSparse,
    /// As the cycle multiplies them, if that is otherwise.
    pub(super) rows: Option<DeviceRows<f32>>,
    pub(super) halo: Halo,
    /// The near-null vector, with its halo.
    pub(super) b: DeviceVec<f32>,
    /// Rows and entries of all ranks.
    pub(super) of_all: usize,
    pub(super) nnz: usize,
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// The first level of a matrix whose rows ranks share: of those that the device has, or of those of the host; and multiples of the scales.
    pub(super) fn first_among(
        &self,
        levels: &Levels,
        of: OfRanks<'_, T>,
        among: Among<'_>,
    ) -> Result<(Level, [DeviceVec<T>; 2])> {
        let Self { ctx, kernels, .. } = self;
        let of_rows = &self.diagonals.kernels;
        let (a, n, place) = (&levels.a, among.own.1, among.place);
        let patterns = of.patterns().filter(|block| block.segments.len() == 1);
        let compressed = match (patterns, of.rows) {
            (None, Some(rows)) => rows.compressed(ctx)?,
            _ => None,
        };
        // all ranks do the same
        let are_there = among.sum(usize::from(patterns.is_none() && compressed.is_none()))? == 0;
        let on_device = match (patterns, compressed) {
            _ if !are_there => None,
            (Some(block), _) => Some(Rows::ByPatterns(block)),
            (None, compressed) => compressed.map(Rows::Compressed),
        };
        let of_device = |rows: &Rows<'_, T>| match rows {
            _ if of.scaled_by.is_some() => self.diagonals.moved(&levels.diagonal()[place..place + n]).map(Some),
            Rows::ByPatterns(block) => of_rows.diagonal(ctx, block, of.times()),
            Rows::Compressed(rows) => of_rows.diagonal_of_rows(ctx, rows, of.times()).map(Some),
        };
        let of_device = on_device.as_ref().map(of_device).transpose()?.flatten();
        let (moved, own) = match of_device {
            Some(diagonal) => (None, diagonal),
            None => {
                let diagonal = levels.diagonal();
                let mut matrix = self.moved(a, &scales(&diagonal), place..place + n)?;
                let others = kernels.others(ctx, &matrix, (place, n))?;
                kernels.number_columns(ctx, &mut matrix, (place, n), &others)?;
                (Some(matrix), self.diagonals.moved(&diagonal[place..place + n])?)
            }
        };
        let halo = among.first_halo(ctx)?;
        let of_row = |&i: &u32| a.get(place + i as usize, place + i as usize).unwrap_or_default();
        let of_others = among.exchanged(&halo.plan, halo.plan.send.iter().map(of_row).collect())?;
        let of_others: Vec<T> = of_others.into_iter().map(T::from_f64).collect();
        let mut diagonal = DeviceVec::uninit(ctx, n + of_others.len(), "the diagonal")?;
        own.copy_to(ctx, &mut diagonal, n)?;
        diagonal.write(ctx, n, &of_others)?;
        let [least, largest] = among.range(of_rows.range(ctx, &diagonal)?)?;
        let vectors = self.diagonals.vectors(&diagonal, [least, largest], of)?;
        let FirstVectors { scale, multiples, b } = vectors;
        let (matrix, rows) = match (moved, on_device) {
            (Some(moved), _) => (moved, None),
            (None, Some(Rows::ByPatterns(block))) => {
                let matrix = of_rows.matrix(ctx, kernels, (block, of.times()), &scale)?;
                let rows = self.by_patterns((block, of), &scale, [least, largest])?;
                (matrix, Some(by_dictionary::made(rows)))
            }
            (None, Some(Rows::Compressed(rows))) => (of_rows.of_rows(ctx, (rows, of.times()), &scale)?, None),
            (None, None) => return Err(Error::SolverBroken),
        };
        let (of_all, nnz) = among.of_all;
        Ok((Level { matrix, rows, halo, b, of_all, nnz }, multiples))
    }

    /// Goes down from a level that ranks share to one of few rows, or that is the last, which all of them get.
    pub(super) fn descend_among(&self, mut level: Level, descent: &mut Descent, among: Among<'_>) -> Result<Top> {
        while level.nnz > among.most && descent.infos.len() + 1 < MOST_LEVELS {
            let (nnz, time, began) = (level.nnz, descent.began.elapsed(), Instant::now());
            let blocks = self.kernels.row_blocks(&self.ctx, &level.matrix, BLOCK)?;
            let Some((largest, transfer, next)) = self.coarser_among(&level, &blocks, among)? else { break };
            descent.note(LevelInfo { rows: level.of_all, nnz, time });
            descent.began = began;
            let Level { matrix, rows, halo, .. } = std::mem::replace(&mut level, next);
            let smoother = (&steps(largest)).into();
            let (blocks, transfer, halo) = (Some(blocks), Some(transfer), Some(halo.plan));
            descent.made.push(Made { a: matrix, blocks, rows, smoother, transfer, halo });
        }
        self.gathered(level, descent, among)
    }

    /// The bound of the eigenvalues, −P and its transpose, and the rank's rows of the next level, unless that would hardly be smaller.
    fn coarser_among(
        &self,
        level: &Level,
        blocks: &DeviceVec<[u32; 2]>,
        among: Among<'_>,
    ) -> Result<Option<(f64, Transfer, Level)>> {
        let Self { ctx, kernels, .. } = self;
        let Level { matrix: a, halo, b, of_all, nnz, .. } = level;
        let (blocked, mut stages) = (Blocked { matrix: a, blocks }, Stages::of(ctx));
        let (mut entries, bounds) = kernels.strength(ctx, blocked, b)?;
        among.fill(self, halo, &mut entries)?;
        let bounds = among.board.gather(bounds)?;
        let bounds = bounds.iter().fold([0f32; 2], |m, s| [m[0].max(s[0]), m[1].max(s[1])]);
        let largest = largest_eigenvalue(bounds, &mut Process::among(self, blocked, (halo, among)))?;
        stages.end("strength")?;
        let own = kernels.aggregates(ctx, a, &entries, &kernels.graph(ctx, blocked, &entries)?)?;
        let (first, all) = among.places(own.count)?;
        if all as f64 * LEAST_FACTOR > *of_all as f64 || all == 0 {
            return Ok(None);
        }
        stages.end("aggregates")?;
        let [mut t, coarse] = kernels.tentative(ctx, &own, b)?;
        let mut aggregates = kernels.among_all(ctx, &own, halo.plan.len, (first, all))?;
        among.fill(self, halo, &mut aggregates.of)?;
        among.fill(self, halo, &mut t)?;
        let owned = (first, own.count);
        let mut p = kernels.smoothed(ctx, blocked, [b, &entries, &t], &aggregates)?;
        stages.end("prolongation")?;
        let galerkin = |p: &DeviceSparse, stages: &mut Stages<'_>| {
            let p = among.with_halo_rows(self, halo, p)?;
            stages.end("P of the halo")?;
            let restriction = kernels.transposed_own(ctx, &p, owned)?;
            stages.end("restriction")?;
            let lengths = kernels.product_lengths(ctx, a, &p, Stay::Short)?;
            stages.end("lengths of A P")?;
            let ap = kernels.product(ctx, a, &p, lengths, false)?;
            stages.end("A P")?;
            let ap = among.with_halo_rows(self, halo, &ap)?;
            stages.end("A P of the halo")?;
            let lengths = kernels.product_lengths(ctx, &restriction, &ap, Stay::Long)?;
            let of_all = among.sum(lengths.nnz)?;
            stages.end("lengths of the next matrix")?;
            Ok::<_, Error>((restriction, ap, lengths, of_all))
        };
        let (mut restriction, mut ap, mut lengths, mut next_nnz) = galerkin(&p, &mut stages)?;
        if next_nnz as f64 > DENSE * *nnz as f64 {
            p = kernels.unsmoothed(ctx, a.n_rows, &aggregates, &t)?;
            (restriction, ap, lengths, next_nnz) = galerkin(&p, &mut stages)?;
        }
        let mut next = kernels.product(ctx, &restriction, &ap, lengths, true)?;
        drop(ap);
        stages.end("the next matrix")?;
        let others = kernels.others(ctx, &next, owned)?;
        kernels.number_columns(ctx, &mut next, owned, &others)?;
        kernels.number_columns(ctx, &mut p, owned, &others)?;
        let next_halo = among.halo(ctx, owned, others.list)?;
        let mut b = kernels.with_halo(ctx, &coarse, own.count, next_halo.plan.len)?;
        let mut factors = kernels.level_factors(ctx, [&restriction, &next], &mut b)?;
        among.fill(self, &next_halo, &mut factors)?;
        among.fill(self, &next_halo, &mut b)?;
        kernels.scale_by(ctx, [&mut p, &mut restriction, &mut next], &factors)?;
        stages.end("scaling")?;
        let next = Level { matrix: next, rows: None, halo: next_halo, b, of_all: all, nnz: next_nnz };
        Ok(Some((largest, [p, restriction], next)))
    }

    /// All rows of a level, which all ranks get; the columns of the last P become those of all.
    fn gathered(&self, level: Level, descent: &mut Descent, among: Among<'_>) -> Result<Top> {
        let Self { ctx, kernels, .. } = self;
        let Level { mut matrix, halo: Halo { own, others, .. }, b, of_all, .. } = level;
        kernels.number_among_all(ctx, &mut matrix, own, (&others, of_all))?;
        if let Some(Made { transfer: Some([p, _]), .. }) = descent.made.last_mut() {
            kernels.number_among_all(ctx, p, own, (&others, of_all))?;
        }
        let mut own_b = vec![0f32; own.1];
        b.read(ctx, 0, &mut own_b)?;
        let (starts, columns, values) = kernels.on_host(ctx, &matrix)?;
        let lengths = among.board.all(starts.windows(2).map(|ends| ends[1] - ends[0]).collect::<Vec<u32>>())?;
        let (columns, values) = (among.board.all(columns)?, among.board.all(values)?);
        let parts: Vec<(&[u32], &[u32], &[f32])> =
            lengths.iter().zip(&columns).zip(&values).map(|((l, c), v)| (&l[..], &c[..], &v[..])).collect();
        let matrix = kernels.joined(ctx, (&matrix, among.board.rank()), &parts)?;
        let b: Vec<f32> = among.board.all(own_b)?.iter().flat_map(|part| part.iter().copied()).collect();
        descent.gathers = Some(among.all_of(own)?);
        Ok(Top { matrix, rows: None, by: By::Vector(DeviceVec::from_slice(ctx, &b, "the near-null vector")?) })
    }
}

#[cfg(test)]
mod tests;
