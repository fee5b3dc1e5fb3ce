//! Factors on devices, blocks of columns in turn on each.

use std::result::Result as StdResult;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::columns::Columns;
use super::element::Element;
use super::factor::{Kind, Times};
use super::host::Host;
use super::panel::{self, Pivots};
use super::rank::{INVERSES, Rank};
use crate::device::{Info, PendingRead, Pinned};
use crate::error::Result;
use crate::memory::zeros;

/// Columns of a block on a GPU: what a product needs to be faster than memory.
pub(super) const BLOCK: usize = 128;

/// Elements that a thread copies at once.
const CHUNK: usize = 1 << 16;

/// A panel, factorised, and its rows that moved: where to, and where from, counted from its first.
type Panel<T> = (Pinned<T>, Vec<[u32; 2]>);

/// Factors in the place of the matrix.
pub(super) struct Devices<T: Element> {
    columns: Columns,
    kind: Kind,
    ranks: Vec<Rank<T>>,
    /// Which row of A is row i of L.
    rows: Vec<usize>,
    pub(super) times: Times,
}

impl<T: Element> Devices<T> {
    /// Puts the columns of a matrix on the devices, and factorises it there: L U or L Lᵀ. Between the host and each device go n² elements; the
    /// host factorises panels, n² / 2 × `block` × 2 flops, while the devices do the rest.
    ///
    /// # Errors
    /// The column, counted from 0, that has no pivot; [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); a failing device.
    pub(super) fn new(
        n: usize,
        values: Vec<T>,
        kind: Kind,
        devices: &[Info],
        block: usize,
    ) -> Result<StdResult<Self, usize>> {
        let columns = Columns { n, block: block.min(n), ranks: devices.len() };
        let start = Instant::now();
        let ranks = devices.iter().enumerate().map(|(rank, info)| Rank::new(info, columns, rank, &values));
        let ranks = ranks.collect::<Result<Vec<_>>>()?;
        drop(values);
        let uploads = ranks.iter().map(|rank| rank.upload.as_secs_f64()).sum();
        let open = start.elapsed().as_secs_f64() - uploads;
        let times = Times { open, upload: uploads, ..Times::default() };
        let mut all = Self { columns, kind, ranks, rows: (0..n).collect(), times };
        let start = Instant::now();
        let found = all.factorise()?;
        all.ranks.iter_mut().try_for_each(Rank::finish)?;
        all.times.factorise = start.elapsed().as_secs_f64();
        Ok(found.map(|()| all))
    }

    fn factorise(&mut self) -> Result<StdResult<(), usize>> {
        let pivots = if self.kind == Kind::Lu { Pivots::Partial } else { Pivots::Definite };
        let columns = self.columns;
        let mut coming = self.ranks[0].start_panel(0)?;
        for j in 0..columns.blocks() {
            let (panel, moves) = match self.panel(j, coming, pivots)? {
                Ok(found) => found,
                Err(column) => return Ok(Err(column)),
            };
            let panel = Arc::new(panel);
            // whoever has the next panel begins with that
            let next = j + 1;
            let ahead = columns.owner(next);
            let mut order: Vec<usize> = (0..columns.ranks).collect();
            order.swap(0, ahead);
            let mut read = None;
            for rank in order {
                self.send(rank, j, &panel, &moves)?;
                let rank_of = &mut self.ranks[rank];
                rank_of.begin(j, pivots, moves.len())?;
                let mut skip = 0;
                if next < columns.blocks() && rank == ahead {
                    skip = columns.width(next);
                    rank_of.update(j, pivots, 0, skip)?;
                    read = Some(rank_of.start_panel(next)?);
                }
                let count = rank_of.behind_block(j) - skip;
                rank_of.update(j, pivots, skip, count)?;
                rank_of.end(j)?;
            }
            match read {
                Some(read) => coming = read,
                None => break,
            }
        }
        Ok(Ok(()))
    }

    /// Waits for the panel of block `j`, and factorises it on the host; gives it with the rows that moved, counted from its first.
    fn panel(
        &mut self,
        j: usize,
        coming: PendingRead<Pinned<T>>,
        pivots: Pivots,
    ) -> Result<StdResult<Panel<T>, usize>> {
        let columns = self.columns;
        let (first, width) = (columns.first(j), columns.width(j));
        let size = [columns.n - first, width];
        let start = Instant::now();
        let mut memory = coming.wait(&self.ranks[columns.owner(j)].ctx)?;
        self.times.waits += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let (inverses, panel) = memory.split_at_mut(INVERSES * width * width);
        let panel = &mut panel[..size[0] * width];
        let moves = match panel::factorise(panel, size, pivots) {
            Ok(moves) => moves,
            Err(column) => return Ok(Err(first + column)),
        };
        let (lower, upper) = inverses.split_at_mut(width * width);
        panel::inverses(panel, size, pivots, lower, upper);
        let from: Vec<usize> = moves.iter().map(|&[_, from]| self.rows[first + from as usize]).collect();
        moves.iter().zip(from).for_each(|(&[to, _], row)| self.rows[first + to as usize] = row);
        self.times.panels += start.elapsed().as_secs_f64();
        Ok(Ok((memory, moves)))
    }

    /// Sends a panel to a rank: to its owner from where it is, to others from memory of theirs.
    fn send(&mut self, rank: usize, j: usize, panel: &Arc<Pinned<T>>, moves: &[[u32; 2]]) -> Result<()> {
        let is_owner = self.columns.owner(j) == rank;
        let rank = &mut self.ranks[rank];
        if is_owner {
            return rank.send(j, Arc::clone(panel), moves);
        }
        let mut copy = rank.memory()?;
        let pieces = panel[..rank.room(j)].par_chunks(CHUNK);
        copy.par_chunks_mut(CHUNK).zip(pieces).for_each(|(to, from)| to[..from.len()].copy_from_slice(from));
        rank.send(j, Arc::new(copy), moves)
    }

    /// x = A⁻¹ b in place, column by column. The right-hand sides go from one device to the next with the blocks.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn solve(&mut self, x: &mut [T]) -> Result<()> {
        let columns = self.columns;
        if self.kind == Kind::Lu {
            let mut y = vec![T::default(); columns.n];
            for x in x.chunks_exact_mut(columns.n) {
                y.iter_mut().zip(&self.rows).for_each(|(y, &row)| *y = x[row]);
                x.copy_from_slice(&y);
            }
        }
        let mut holder = 0;
        self.ranks[holder].put(x)?;
        let blocks = columns.blocks();
        let down = (0..blocks).map(|j| (j, true));
        for (j, is_lower) in down.chain((0..blocks).rev().map(|j| (j, false))) {
            let owner = columns.owner(j);
            if owner != holder {
                self.ranks[holder].get(x)?;
                self.ranks[owner].put(x)?;
                holder = owner;
            }
            self.ranks[holder].substitute(j, is_lower)?;
        }
        self.ranks[holder].get(x)
    }

    /// The same factors on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); a failing device.
    pub(super) fn on_host(&self) -> Result<Host<T>> {
        let n = self.columns.n;
        let bytes = (n * n * size_of::<T>()) as u64;
        let what = "the dense factors on the host";
        let mut values: Vec<T> =
            zeros(n * n).map_err(|_| crate::error::Error::OutOfMemory { what: what.into(), bytes })?;
        self.ranks.iter().try_for_each(|rank| rank.read_factors(&mut values))?;
        Ok(Host::of_factors(n, values, self.kind, self.rows.clone()))
    }

    /// The devices' names.
    pub(super) fn names(&self) -> Vec<String> {
        self.ranks.iter().map(|rank| rank.ctx.info().label()).collect()
    }
}
