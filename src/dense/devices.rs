//! Factors on devices, blocks of columns in turn on each.

use std::result::Result as StdResult;
use std::sync::Arc;
use std::time::Instant;

use super::butterfly::Butterflies;
use super::columns::Columns;
use super::element::{Element, epsilon};
use super::factor::{Kind, Times};
use super::host::Host;
use super::panel;
use super::pool::{Coming, Pool, Shared};
use super::rank::{Panels, Rank};
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

/// Pivots of L D Lᵀ that are no larger beside all elements, in roundings, are nothing else.
const LEAST_PIVOT: f64 = 8.0;

/// Memory for diagonal blocks, and for panels, that is under way at once.
const UNDER_WAY: usize = 3;

/// A panel, if others than its owner need it, and how many rows moved; or the column that has no pivot.
type Found<T> = StdResult<(Option<Shared<T>>, usize), usize>;

/// Factors in the place of the matrix.
pub(super) struct Devices<T: Element> {
    columns: Columns,
    kind: Kind,
    pub(super) panels: Panels,
    ranks: Vec<Rank<T>>,
    pool: Pool<T>,
    /// Which row of A is row i of L.
    rows: Vec<usize>,
    /// Of L D Lᵀ, which is that of Uᵀ A U, and the size that a pivot has to be above.
    butterflies: Option<Butterflies<T>>,
    least_pivot: f64,
    pub(super) times: Times,
}

impl<T: Element> Devices<T> {
    /// Puts the columns of a matrix on the devices, and factorises it there: L U, L Lᵀ, or L D Lᵀ after random butterflies, which are applied here. The matrix goes there
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
        mut values: Vec<T>,
        kind: Kind,
        devices: &[Info],
        blocks: impl Into<Blocks>,
        cut: impl Fn(&Context) -> Option<Cut>,
    ) -> Result<StdResult<Self, usize>> {
        let Blocks { columns: block, tiles } = blocks.into();
        let columns = Columns { n, block: block.min(n), ranks: devices.len() };
        let start = Instant::now();
        let butterflies = (kind == Kind::Ldlt).then(|| Butterflies::new(n));
        let largest = butterflies.as_ref().map_or(0.0, |butterflies| butterflies.around(&mut values));
        let least_pivot = LEAST_PIVOT * epsilon::<T>() * largest;
        let transform = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let cut = |ctx: &Context| if kind == Kind::Lu { cut(ctx) } else { None };
        let ranks =
            devices.iter().enumerate().map(|(rank, info)| Rank::new(info, (columns, tiles), rank, &values, cut));
        let ranks = ranks.collect::<Result<Vec<_>>>()?;
        drop(values);
        let panels = match kind {
            Kind::Lu if ranks.iter().all(Rank::has_panels) => Panels::OfDevice,
            Kind::Lu => Panels::OfHost,
            Kind::Cholesky => Panels::Definite,
            Kind::Ldlt => Panels::Indefinite,
        };
        let mut pool = Pool::new(columns.room(0));
        let travel = columns.ranks > 1 || panels == Panels::OfHost;
        ranks.first().map_or(Ok(()), |rank| pool.fill(&rank.ctx, UNDER_WAY, if travel { UNDER_WAY } else { 0 }))?;
        let upload = ranks.iter().map(|rank| rank.upload.as_secs_f64()).sum();
        let times = Times { open: start.elapsed().as_secs_f64() - upload, transform, upload, ..Times::default() };
        let rows = (0..n).collect();
        let mut all = Self { columns, kind, panels, ranks, pool, rows, butterflies, least_pivot, times };
        let start = Instant::now();
        let found = all.factorise()?;
        let of_panels = all.ranks.iter_mut().map(Rank::finish).sum::<Result<f64>>()?;
        all.pool = Pool::new(columns.room(0));
        all.times.factorise = start.elapsed().as_secs_f64();
        all.times.panels += of_panels;
        Ok(found.map(|()| all))
    }

    fn factorise(&mut self) -> Result<StdResult<(), usize>> {
        let columns = self.columns;
        let mut coming = Some(self.ranks[0].start_panel(0, self.panels, &mut self.pool)?);
        for j in 0..columns.blocks() {
            let Some(panel) = coming.take() else { break };
            let (panel, moves) = match self.panel(j, panel)? {
                Ok(found) => found,
                Err(column) => return Ok(Err(column)),
            };
            // whoever has the next panel begins with that
            let mut order: Vec<usize> = (0..columns.ranks).collect();
            order.swap(0, columns.owner(j + 1));
            for rank in order {
                if let Some(panel) = panel.as_ref().filter(|_| rank != columns.owner(j)) {
                    self.ranks[rank].send(j, columns.room(j).panel(), Arc::clone(panel), 0)?;
                }
                coming = coming.or(self.ranks[rank].step(j, self.panels, moves, &mut self.pool)?);
            }
        }
        Ok(Ok(()))
    }

    /// Waits for what the host needs of the panel of block `j`, does the host's part, and lets all ranks have what belongs to the diagonal
    /// block; gives the panel, if others than its owner need it, and how many rows moved.
    fn panel(&mut self, j: usize, mut coming: Coming<T>) -> Result<Found<T>> {
        let columns = self.columns;
        let (first, room, owner) = (columns.first(j), columns.room(j), columns.owner(j));
        let mut head = match coming.head.take() {
            Some(head) => self.wait(owner, head)?,
            None => self.pool.head(&self.ranks[owner].ctx)?,
        };
        if self.panels == Panels::OfDevice && is_refused(&head) {
            log::warn!("{}: not all work-groups run at once; the host factorises panels", self.names()[owner]);
            self.panels = Panels::OfHost;
            coming = self.ranks[owner].start_panel(j, self.panels, &mut self.pool)?;
        }
        let mut panel = None;
        if self.panels == Panels::OfHost {
            panel = coming.panel.take().map(|coming| self.wait(owner, coming)).transpose()?;
        }
        let start = Instant::now();
        let found = match (self.panels, &mut panel) {
            (Panels::OfHost, Some(panel)) => {
                let found = panel::lu(&mut panel[..room.m * room.w], room);
                let rows = panel.chunks_exact(room.m).map(|column| &column[..room.w]);
                head[room.block()].chunks_exact_mut(room.w).zip(rows).for_each(|(to, rows)| to.copy_from_slice(rows));
                found
            }
            (Panels::Definite, _) => panel::cholesky(&mut head[room.block()], room.w).map(|()| Vec::new()),
            (Panels::Indefinite, _) => {
                panel::ldlt(&mut head[room.block()], room.w, self.least_pivot).map(|()| Vec::new())
            }
            _ => panel::moves_told(&head[room.told()], room.m),
        };
        let moves = match found {
            Ok(moves) => moves,
            Err(column) => return Ok(Err(first + column)),
        };
        panel::inverses(&mut head, room, self.panels != Panels::Definite);
        self.times.panels += start.elapsed().as_secs_f64();
        let from: Vec<usize> = moves.iter().map(|&[_, from]| self.rows[first + from as usize]).collect();
        moves.iter().zip(from).for_each(|(&[to, _], row)| self.rows[first + to as usize] = row);

        let head = self.pool.share(head);
        let begin = if self.panels.are_symmetric() { room.block().start } else { room.lower().start };
        let part = begin..room.upper().end;
        for rank in &mut self.ranks {
            rank.send(j, part.clone(), Arc::clone(&head), part.start)?;
            rank.send_moves(j, &moves)?;
        }
        if self.panels.are_symmetric() {
            self.ranks[owner].complete(j)?;
            if columns.ranks > 1 {
                let memory = self.pool.panel(&self.ranks[owner].ctx)?;
                coming.panel = Some(self.ranks[owner].read(j, room.panel(), memory)?);
            }
        }
        if let Some(coming) = coming.panel {
            panel = Some(self.wait(owner, coming)?);
        }
        let panel = panel.map(|panel| self.pool.share(panel));
        if let Some(panel) = panel.as_ref().filter(|_| self.panels == Panels::OfHost) {
            self.ranks[owner].send(j, room.panel(), Arc::clone(panel), 0)?;
        }
        Ok(Ok((panel, moves.len())))
    }

    fn wait(&mut self, rank: usize, coming: PendingRead<Pinned<T>>) -> Result<Pinned<T>> {
        let start = Instant::now();
        let memory = coming.wait(&self.ranks[rank].ctx)?;
        self.times.waits += start.elapsed().as_secs_f64();
        Ok(memory)
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
        if let Some(butterflies) = &self.butterflies {
            x.chunks_exact_mut(columns.n).for_each(|x| butterflies.down(x));
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
        self.ranks[holder].get(x)?;
        if let Some(butterflies) = &self.butterflies {
            x.chunks_exact_mut(columns.n).for_each(|x| butterflies.up(x));
        }
        Ok(())
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
        Ok(Host::of_factors(n, values, self.kind, self.rows.clone(), self.butterflies.clone()))
    }

    /// The devices' names.
    pub(super) fn names(&self) -> Vec<String> {
        self.ranks.iter().map(|rank| rank.ctx.info().label()).collect()
    }
}
