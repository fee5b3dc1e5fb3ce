//! A device with its columns.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::columns::Columns;
use super::element::Element;
use super::pool::{Coming, Pool};
use super::room::Room;
use crate::device::{Context, DeviceVec, Event, Info, PendingRead, PendingWrite, Pinned, Queue};
use crate::error::Result;
use crate::kernels::dense::DenseKernels;
use crate::kernels::gemm::{Block, Gemm, Lower, Tiles};
use crate::kernels::lu_panel::{Cut, Factorised, LuPanel};
use crate::tune;

/// Who factorises panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panels {
    /// P A = L U by the host,
    OfHost,
    /// or by the device that has the columns;
    OfDevice,
    /// A = L Lᵀ of the diagonal block by the host, and the rows below by the device;
    Definite,
    /// the same with A = L D Lᵀ, of which D Lᵀ is in the place of U.
    Indefinite,
}

impl Panels {
    /// Whether what is above the diagonal follows from what is below it.
    pub(super) fn are_symmetric(self) -> bool {
        matches!(self, Self::Definite | Self::Indefinite)
    }
}

/// What memory is for, in errors.
const WHAT: &str = "the dense matrix";

pub(super) struct Rank<T: Element> {
    pub(super) ctx: Context,
    /// For products beside a panel.
    beside: Context,
    gemm: Gemm<T>,
    kernels: DenseKernels<T>,
    lu: Option<LuPanel<T>>,
    columns: Columns,
    rank: usize,
    /// Its columns, of n rows each.
    own: DeviceVec<T>,
    /// The inverses of its diagonal blocks, one behind the other.
    inverses: DeviceVec<T>,
    /// Panels come and go in turn, as do rows that move.
    panels: [DeviceVec<T>; 2],
    moves: [DeviceVec<u32>; 2],
    /// U of a panel's rows.
    strip: DeviceVec<T>,
    /// When what reads the panels is done.
    used: [Option<Event>; 2],
    /// What the host has sent.
    sent: Vec<PendingWrite>,
    /// How long it took to get its columns.
    pub(super) upload: Duration,
    /// Of a solve.
    x: Option<(DeviceVec<T>, DeviceVec<T>)>,
}

impl<T: Element> Rank<T> {
    /// Takes the columns of `values` that belong to it: 8 n² / P bytes in double precision, and those of some panels, which it may factorise
    /// if there is a `cut` for it. Products are in the tiles that are given, or else in those that tuning has found.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); a failing device.
    pub(super) fn new(
        info: &Info,
        (columns, tiles): (Columns, Option<Tiles>),
        rank: usize,
        values: &[T],
        cut: impl Fn(&Context) -> Option<Cut>,
    ) -> Result<Self> {
        let ctx = Context::open(info)?;
        let Columns { n, block, ranks } = columns;
        let gemm = Gemm::build(&ctx, tiles.unwrap_or_else(|| tune::products::tiles::<T>(&ctx)))?;
        let kernels = DenseKernels::build(&ctx)?;
        let build = |cut| {
            LuPanel::build(&ctx, [n, block], cut)
                .inspect_err(|e| log::warn!("{}: the host factorises panels: {e}", info.label()))
                .ok()
        };
        let lu = cut(&ctx).and_then(build);
        let mine = columns.of_rank(rank);
        let mut own = DeviceVec::uninit(&ctx, n * mine, WHAT)?;
        let start = Instant::now();
        for j in (rank..columns.blocks()).step_by(ranks) {
            let (first, width) = (columns.first(j), columns.width(j));
            own.write(&ctx, columns.place(j) * n, &values[first * n..(first + width) * n])?;
        }
        let upload = start.elapsed();
        let room = columns.room(0).panel().end;
        let (width, blocks) = (block * block, columns.blocks().div_ceil(ranks));
        ctx.set_timing(Some(0))?;
        Ok(Self {
            inverses: DeviceVec::uninit(&ctx, 2 * width * blocks, "inverses of triangles")?,
            panels: [DeviceVec::uninit(&ctx, room, "a panel")?, DeviceVec::uninit(&ctx, room, "a panel")?],
            moves: [DeviceVec::uninit(&ctx, 4 * block, "moves")?, DeviceVec::uninit(&ctx, 4 * block, "moves")?],
            strip: DeviceVec::uninit(&ctx, block * mine, "rows of U")?,
            used: [None, None],
            sent: Vec::new(),
            x: None,
            upload,
            beside: ctx.beside()?,
            ctx,
            gemm,
            kernels,
            lu,
            columns,
            rank,
            own,
        })
    }

    fn own_block(&self, row: usize, place: usize) -> Block<'_, T> {
        Block { array: &self.own, at: row + place * self.columns.n, ld: self.columns.n }
    }

    /// Whether it can factorise panels.
    pub(super) fn has_panels(&self) -> bool {
        self.lu.is_some()
    }

    /// A part of the panel of block `j`, in columns of so many rows.
    fn part(&self, j: usize, part: Range<usize>, ld: usize) -> Block<'_, T> {
        Block { array: &self.panels[j % 2], at: part.start, ld }
    }

    /// Starts to factorise block `j`, which is its own, from the diagonal on, as far as that is the device's, and to send to the host what it
    /// needs for the rest, and all of it if others need it.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn start_panel(&mut self, j: usize, panels: Panels, pool: &mut Pool<T>) -> Result<Coming<T>> {
        let room = self.columns.room(j);
        let Room { m, w } = room;
        let own = self.own_block(self.columns.first(j), self.columns.place(j));
        match (panels, &self.lu) {
            (Panels::OfDevice, Some(lu)) => {
                let (block_at, panel_at) = (room.block().start, room.panel().start);
                let array = &self.panels[j % 2];
                lu.launch(&self.ctx, [m, w], own, Factorised { array, block_at, panel_at })?;
            }
            (Panels::Definite | Panels::Indefinite, _) => {
                self.kernels.copy(&self.ctx, [w, w], own, self.part(j, room.block(), w))?;
            }
            _ => self.kernels.copy(&self.ctx, [m, w], own, self.part(j, room.panel(), m))?,
        }
        let head = (panels != Panels::OfHost).then(|| self.read(j, 0..room.block().end, pool.head(&self.ctx)?));
        let has_panel = panels == Panels::OfHost || panels == Panels::OfDevice && self.columns.ranks > 1;
        let panel = has_panel.then(|| self.read(j, room.panel(), pool.panel(&self.ctx)?));
        Ok(Coming { head: head.transpose()?, panel: panel.transpose()? })
    }

    /// Starts to send a part of the panel of block `j` to the host once all is done that is in the queue.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn read(&self, j: usize, part: Range<usize>, to: Pinned<T>) -> Result<PendingRead<Pinned<T>>> {
        let ready = self.ctx.marker()?;
        self.ctx.flush(Queue::Compute)?;
        let pieces = [(&self.panels[j % 2], part)];
        let read = DeviceVec::start_reads(&self.ctx, Queue::Transfer, &pieces, to, Some(&ready), "a panel")?;
        self.ctx.flush(Queue::Transfer)?;
        Ok(read)
    }

    /// Makes the rows of L of a [symmetric](Panels::are_symmetric) panel below the diagonal block, of which the host has sent the factors.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn complete(&self, j: usize) -> Result<()> {
        let room = self.columns.room(j);
        let Room { m, w } = room;
        let (first, place) = (self.columns.first(j), self.columns.place(j));
        let panel = self.part(j, room.panel(), m);
        self.kernels.copy(&self.ctx, [w, w], self.part(j, room.block(), w), panel)?;
        let factors = (T::from_f64(1.0), T::from_f64(0.0));
        let below = Block { at: panel.at + w, ..panel };
        let product = (self.own_block(first + w, place), self.part(j, room.upper(), w));
        self.gemm.launch(&self.ctx, [m - w, w, w], factors, product, below, None)
    }

    /// Lets the device have elements for a part of the panel of block `j`.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn send(&mut self, j: usize, part: Range<usize>, from: Arc<Pinned<T>>, at: usize) -> Result<()> {
        self.free(j)?;
        let (ctx, queue) = (&self.ctx, Queue::Transfer);
        let elements = at..at + part.len();
        let write = self.panels[j % 2].start_write(ctx, queue, part.start, from, elements)?;
        ctx.compute_after(std::slice::from_ref(&write))?;
        self.sent.push(write);
        self.ctx.flush(Queue::Transfer)
    }

    /// Lets it have the rows that moved for the pivots of block `j`.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn send_moves(&mut self, j: usize, moves: &[[u32; 2]]) -> Result<()> {
        self.free(j)?;
        if moves.is_empty() {
            return Ok(());
        }
        let (ctx, queue) = (&self.ctx, Queue::Transfer);
        let moves: Arc<Vec<u32>> = Arc::new(moves.iter().flatten().copied().collect());
        let all = 0..moves.len();
        let write = self.moves[j % 2].start_write(ctx, queue, 0, moves, all)?;
        ctx.compute_after(std::slice::from_ref(&write))?;
        self.sent.push(write);
        Ok(())
    }

    /// Waits until nothing reads the last panel that was in the place of that of block `j`.
    fn free(&mut self, j: usize) -> Result<()> {
        match self.used[j % 2].take() {
            Some(used) => {
                // what was sent for it is there
                self.sent.clear();
                self.ctx.wait(&used, "a panel")
            }
            None => Ok(()),
        }
    }

    /// Takes part in step `j` with a panel that was [sent](Self::send), beyond block `next`, if it has that; this comes first, so that its panel is
    /// on its way while products run.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn step(
        &mut self,
        j: usize,
        panels: Panels,
        moves: usize,
        pool: &mut Pool<T>,
    ) -> Result<Option<Coming<T>>> {
        let (next, behind) = (j + 1, self.next_place(j));
        let mine = self.columns.of_rank(self.rank);
        if next == self.columns.blocks() || self.columns.owner(next) != self.rank {
            self.advance(&self.ctx, j, panels, moves, behind..mine)?;
            self.settle(&self.ctx, j, moves)?;
            self.used[j % 2] = Some(self.ctx.marker()?);
            self.ctx.flush(Queue::Compute)?;
            return Ok(None);
        }
        let rest = behind + self.columns.width(next);
        self.advance(&self.ctx, j, panels, moves, behind..rest)?;
        // where the groups of a panel wait for each other, they are to be there before those of the product
        let ready = self.ctx.marker()?;
        let coming = self.start_panel(next, panels, pool)?;
        let beside = &self.beside;
        beside.compute_after_event(&ready)?;
        self.advance(beside, j, panels, moves, rest..mine)?;
        self.settle(beside, j, moves)?;
        let done = beside.marker()?;
        beside.flush(Queue::Compute)?;
        self.ctx.compute_after_event(&done)?;
        self.used[j % 2] = Some(done);
        Ok(Some(coming))
    }

    /// In some of its columns behind block `j`: moves rows, makes U of the rows of the panel, and takes L U from those below.
    fn advance(&self, ctx: &Context, j: usize, panels: Panels, moves: usize, own: Range<usize>) -> Result<()> {
        if own.is_empty() {
            return Ok(());
        }
        let Self { gemm, kernels, columns, .. } = self;
        let (first, room) = (columns.first(j), columns.room(j));
        let (Room { m, w }, count, skip) = (room, own.len(), own.start - self.next_place(j));
        let (panel, above) = (self.part(j, room.panel(), m), self.own_block(first, own.start));
        let strip = Block { array: &self.strip, at: skip * w, ld: w };
        let lower = self.lower(j, skip);
        let (zero, one) = (T::from_f64(0.0), T::from_f64(1.0));
        kernels.move_rows(ctx, [m, count], (&self.moves[j % 2], moves), above)?;
        if panels.are_symmetric() {
            let lower = Lower { first: lower.first + w, ..lower };
            kernels.mirror(ctx, [w, count], (lower, panels == Panels::Indefinite), panel, strip)?;
        } else {
            gemm.launch(ctx, [w, count, w], (one, zero), (self.part(j, room.lower(), w), above), strip, None)?;
        }
        kernels.copy(ctx, [w, count], strip, above)?;
        let below = Block { at: panel.at + w, ..panel };
        let lower = Some(lower).filter(|_| panels.are_symmetric());
        let c = self.own_block(first + w, own.start);
        gemm.launch(ctx, [m - w, count, w], (T::from_f64(-1.0), one), (below, strip), c, lower)
    }

    /// Moves rows of L in its columns before block `j`, and keeps the panel if that is its own.
    fn settle(&self, ctx: &Context, j: usize, moves: usize) -> Result<()> {
        let Self { kernels, columns, .. } = self;
        let (first, room) = (columns.first(j), columns.room(j));
        let (Room { m, w }, is_own, next) = (room, columns.owner(j) == self.rank, self.next_place(j));
        let before = if is_own { columns.place(j) } else { next };
        kernels.move_rows(ctx, [m, before], (&self.moves[j % 2], moves), self.own_block(first, 0))?;
        if is_own {
            kernels.copy(ctx, [m, w], self.part(j, room.panel(), m), self.own_block(first, before))?;
            let to = Block { array: &self.inverses, at: 2 * columns.block * before, ld: w };
            kernels.copy(ctx, [w, 2 * w], self.part(j, room.lower(), w), to)?;
        }
        Ok(())
    }

    /// The first column of its own behind block `j`.
    fn next_place(&self, j: usize) -> usize {
        let next = self.columns.next_of(self.rank, j);
        if next < self.columns.blocks() { self.columns.place(next) } else { self.columns.of_rank(self.rank) }
    }

    /// Where its columns behind block `j` but the first `skip`, which are whole blocks, are among all, from the end of that block on.
    fn lower(&self, j: usize, skip: usize) -> Lower {
        let Columns { block, ranks, .. } = self.columns;
        let (next, stride) = (self.columns.next_of(self.rank, j), block * ranks);
        Lower { block, stride, first: (next - j - 1) * block + skip / block * stride }
    }

    /// Waits for all, and lets go of what only a factorisation needs. Gives the seconds that it took for panels.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn finish(&mut self) -> Result<f64> {
        self.sent.clear();
        self.ctx.finish()?;
        self.lu = None;
        self.ctx.set_timing(None)?;
        let timed = self.ctx.take_timed(0)?;
        let of_panels = timed.iter().filter(|timed| timed.kernel == "lu_panel");
        Ok(of_panels.map(|timed| timed.end.saturating_sub(timed.start) as f64 * 1e-9).sum())
    }

    /// Takes right-hand sides, of n elements each.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn put(&mut self, x: &[T]) -> Result<()> {
        let columns = x.len() / self.columns.n.max(1);
        let has_room = self.x.as_ref().is_some_and(|(known, _)| known.len() == x.len());
        if !has_room {
            self.x = None;
            let part = DeviceVec::uninit(&self.ctx, self.columns.block * columns, "a part of x")?;
            self.x = Some((DeviceVec::uninit(&self.ctx, x.len(), "x")?, part));
        }
        self.x.iter_mut().try_for_each(|(known, _)| known.write(&self.ctx, 0, x))
    }

    /// Gives them back.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn get(&self, x: &mut [T]) -> Result<()> {
        self.x.iter().try_for_each(|(known, _)| known.read(&self.ctx, 0, x))
    }

    /// Solves by its block `j` of L, or of U, and takes what is below it, or above, from the right-hand sides.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn substitute(&self, j: usize, is_lower: bool) -> Result<()> {
        let Some((x, part)) = &self.x else { return Ok(()) };
        let Self { ctx, gemm, kernels, columns, .. } = self;
        let Columns { n, block, .. } = *columns;
        let (first, width, place) = (columns.first(j), columns.width(j), columns.place(j));
        let count = x.len() / n;
        let inverse = 2 * block * place + if is_lower { 0 } else { width * width };
        let inverse = Block { array: &self.inverses, at: inverse, ld: width };
        let (x, part) = (|row| Block { array: x, at: row, ld: n }, Block { array: part, at: 0, ld: width });
        let (zero, one) = (T::from_f64(0.0), T::from_f64(1.0));
        gemm.launch(ctx, [width, count, width], (one, zero), (inverse, x(first)), part, None)?;
        kernels.copy(ctx, [width, count], part, x(first))?;
        let (row, rows) = if is_lower { (first + width, n - first - width) } else { (0, first) };
        let factors = (T::from_f64(-1.0), one);
        if rows == 0 {
            return Ok(());
        }
        gemm.launch(ctx, [rows, count, width], factors, (self.own_block(row, place), part), x(row), None)
    }

    /// Its blocks of the factors, to where they are among all.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn read_factors(&self, to: &mut [T]) -> Result<()> {
        let columns = self.columns;
        for j in (self.rank..columns.blocks()).step_by(columns.ranks) {
            let (n, first, width) = (columns.n, columns.first(j), columns.width(j));
            self.own.read(&self.ctx, columns.place(j) * n, &mut to[first * n..(first + width) * n])?;
        }
        Ok(())
    }
}
