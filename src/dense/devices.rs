//! Factors on devices, blocks of columns in turn on each.

use std::result::Result as StdResult;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::columns::Columns;
use super::element::Element;
use super::factor::{Kind, Times};
use super::host::Host;
use super::panel;
use super::rank::{Panels, Rank};
use super::room::Room;
use crate::device::{Context, Info, PendingRead, Pinned};
use crate::error::Result;
use crate::kernels::gemm::Tiles;
use crate::kernels::lu_panel::{Cut, is_refused};
use crate::memory::zeros;

/// Columns of a block on a GPU: what a product needs to be faster than memory.
pub(super) const BLOCK: usize = 128;

/// How a factorisation on devices is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    /// Columns of a block.
    pub(crate) columns: usize,
    /// Tiles of the product; none are those found by tuning, or the usual ones.
    pub(crate) tiles: Option<Tiles>,
}

impl From<usize> for Blocks {
    fn from(columns: usize) -> Self {
        Self { columns, tiles: None }
    }
}

/// Elements that a thread copies at once.
const CHUNK: usize = 1 << 16;

/// A panel, factorised, and its rows that moved: where to, and where from, counted from its first.
type Panel<T> = (Arc<Pinned<T>>, Vec<[u32; 2]>);

/// Factors in the place of the matrix.
pub(super) struct Devices<T: Element> {
    columns: Columns,
    kind: Kind,
    pub(super) panels: Panels,
    ranks: Vec<Rank<T>>,
    /// Which row of A is row i of L.
    rows: Vec<usize>,
    pub(super) times: Times,
}

impl<T: Element> Devices<T> {
    /// Puts the columns of a matrix on the devices, and factorises it there: L U or L Lᵀ. The matrix goes there
    /// once; of panels, their diagonal blocks come to the host, and all of them if there are several devices.
    /// Panels, n² / 2 × `blocks.columns` × 2 flops, are factorised by the devices if all can, or else by the host while the devices do the rest.
    ///
    /// # Errors
    /// The column, counted from 0, that has no pivot; [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); a failing device.
    pub(super) fn new(
        n: usize,
        values: Vec<T>,
        kind: Kind,
        devices: &[Info],
        blocks: Blocks,
    ) -> Result<StdResult<Self, usize>> {
        Self::with_cut(n, values, kind, devices, blocks, |ctx| Cut::of(ctx, n))
    }

    /// The same with panels of L U that devices cut like this, or leave to the host.
    pub(super) fn with_cut(
        n: usize,
        values: Vec<T>,
        kind: Kind,
        devices: &[Info],
        blocks: impl Into<Blocks>,
        cut: impl Fn(&Context) -> Option<Cut>,
    ) -> Result<StdResult<Self, usize>> {
        let Blocks { columns: block, tiles } = blocks.into();
        let columns = Columns { n, block: block.min(n), ranks: devices.len() };
        let start = Instant::now();
        let cut = |ctx: &Context| if kind == Kind::Lu { cut(ctx) } else { None };
        let ranks =
            devices.iter().enumerate().map(|(rank, info)| Rank::new(info, (columns, tiles), rank, &values, cut));
        let mut ranks = ranks.collect::<Result<Vec<_>>>()?;
        drop(values);
        let panels = match kind {
            Kind::Lu if ranks.iter().all(Rank::has_panels) => Panels::OfDevice,
            Kind::Lu => Panels::OfHost,
            Kind::Cholesky | Kind::Ldlt => Panels::Definite,
        };
        ranks.iter_mut().try_for_each(|rank| rank.pin(panels))?;
        let upload = ranks.iter().map(|rank| rank.upload.as_secs_f64()).sum();
        let times = Times { open: start.elapsed().as_secs_f64() - upload, upload, ..Times::default() };
        let mut all = Self { columns, kind, panels, ranks, rows: (0..n).collect(), times };
        let start = Instant::now();
        let found = all.factorise()?;
        let of_panels = all.ranks.iter_mut().map(Rank::finish).sum::<Result<f64>>()?;
        all.times.factorise = start.elapsed().as_secs_f64();
        all.times.panels += of_panels;
        Ok(found.map(|()| all))
    }

    fn factorise(&mut self) -> Result<StdResult<(), usize>> {
        let columns = self.columns;
        let mut coming = self.ranks[0].start_panel(0, self.panels)?;
        for j in 0..columns.blocks() {
            let (panel, moves) = match self.panel(j, coming)? {
                Ok(found) => found,
                Err(column) => return Ok(Err(column)),
            };
            // whoever has the next panel begins with that
            let (owner, next) = (columns.owner(j), j + 1);
            let ahead = columns.owner(next);
            let mut order: Vec<usize> = (0..columns.ranks).collect();
            order.swap(0, ahead);
            let mut read = None;
            for rank in order {
                if rank != owner {
                    self.send(rank, j, &panel, &moves)?;
                }
                let panels = self.panels;
                let rank_of = &mut self.ranks[rank];
                rank_of.begin(j, panels, moves.len())?;
                let mine = rank_of.behind_block(j);
                if next < columns.blocks() && rank == ahead {
                    let width = columns.width(next);
                    rank_of.update(j, panels, 0, width)?;
                    // where the groups of a panel wait for each other, they are to be there before those of the product
                    let ready = rank_of.ctx.marker()?;
                    read = Some(rank_of.start_panel(next, panels)?);
                    rank_of.update_beside(&ready, j, panels, width, mine - width)?;
                } else {
                    rank_of.update(j, panels, 0, mine)?;
                }
                rank_of.end(j)?;
            }
            if let Some(memory) = Arc::into_inner(panel) {
                self.ranks[owner].keep(memory);
            }
            match read {
                Some(read) => coming = read,
                None => break,
            }
        }
        Ok(Ok(()))
    }

    /// Waits for what the host needs of the panel of block `j`, does the host's part, and lets the owner have it; gives the panel, if others
    /// need it, with the rows that moved.
    fn panel(&mut self, j: usize, coming: PendingRead<Pinned<T>>) -> Result<StdResult<Panel<T>, usize>> {
        let columns = self.columns;
        let (first, room, owner) = (columns.first(j), columns.room(j), columns.owner(j));
        let mut memory = self.wait(owner, coming)?;
        if self.panels == Panels::OfDevice && is_refused(&memory) {
            log::warn!("{}: not all work-groups run at once; the host factorises panels", self.names()[owner]);
            self.panels = Panels::OfHost;
            self.ranks.iter_mut().try_for_each(|rank| rank.pin(Panels::OfHost))?;
            let coming = self.ranks[owner].start_panel(j, self.panels)?;
            memory = self.wait(owner, coming)?;
        }
        let start = Instant::now();
        let (found, sent) = match self.panels {
            Panels::OfHost => (panel::lu(&mut memory[room.panel()], room), room.lower().start..room.panel().end),
            Panels::OfDevice => (panel::moves_told(&memory[room.told()], room.m), room.lower().start..room.upper().end),
            Panels::Definite => {
                let found = panel::cholesky(&mut memory[room.block()], room.w);
                (found.map(|()| Vec::new()), room.block().start..room.upper().end)
            }
        };
        let moves = match found {
            Ok(moves) => moves,
            Err(column) => return Ok(Err(first + column)),
        };
        let (before, rest) = memory.split_at_mut(room.lower().start);
        let (inverses, behind) = rest.split_at_mut(2 * room.w * room.w);
        let (lower, upper) = inverses.split_at_mut(room.w * room.w);
        let (factors, rows) = if self.panels == Panels::OfHost {
            (&behind[..room.m * room.w], room.m)
        } else {
            (&before[room.block()], room.w)
        };
        panel::inverses(factors, Room { m: rows, ..room }, self.panels != Panels::Definite, lower, upper);
        let from: Vec<usize> = moves.iter().map(|&[_, from]| self.rows[first + from as usize]).collect();
        moves.iter().zip(from).for_each(|(&[to, _], row)| self.rows[first + to as usize] = row);
        self.times.panels += start.elapsed().as_secs_f64();

        let mut memory = Arc::new(memory);
        self.ranks[owner].send(j, Arc::clone(&memory), sent, &moves)?;
        if self.panels == Panels::Definite {
            self.ranks[owner].complete(j)?;
            if columns.ranks > 1 {
                let coming = self.ranks[owner].read_panel(j)?;
                memory = Arc::new(self.wait(owner, coming)?);
            }
        }
        Ok(Ok((memory, moves)))
    }

    fn wait(&mut self, rank: usize, coming: PendingRead<Pinned<T>>) -> Result<Pinned<T>> {
        let start = Instant::now();
        let memory = coming.wait(&self.ranks[rank].ctx)?;
        self.times.waits += start.elapsed().as_secs_f64();
        Ok(memory)
    }

    /// Sends a panel to a rank that has not made it, from memory of its own.
    fn send(&mut self, rank: usize, j: usize, panel: &Arc<Pinned<T>>, moves: &[[u32; 2]]) -> Result<()> {
        let rank = &mut self.ranks[rank];
        let mut copy = rank.memory()?;
        let all = self.columns.room(j).lower().start..self.columns.room(j).panel().end;
        let pieces = panel[all.clone()].par_chunks(CHUNK);
        copy[all.clone()].par_chunks_mut(CHUNK).zip(pieces).for_each(|(to, from)| to.copy_from_slice(from));
        rank.send(j, Arc::new(copy), all, moves)
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
