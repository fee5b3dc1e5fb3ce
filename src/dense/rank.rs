//! A device with its columns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::columns::Columns;
use super::element::Element;
use super::panel::Pivots;
use crate::device::{Context, DeviceVec, Event, Info, PendingRead, PendingWrite, Pinned, Queue};
use crate::error::Result;
use crate::kernels::dense::DenseKernels;
use crate::kernels::gemm::{Block, Gemm, Lower};
use crate::tune;

/// A panel as it travels: the inverses of its diagonal block, and all of it.
pub(super) const INVERSES: usize = 2;

/// What memory is for, in errors.
const WHAT: &str = "the dense matrix";

pub(super) struct Rank<T: Element> {
    pub(super) ctx: Context,
    gemm: Gemm<T>,
    kernels: DenseKernels<T>,
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
    /// What the host sends and gets.
    pinned: Vec<Pinned<T>>,
    sent: Vec<(PendingWrite, Arc<Pinned<T>>)>,
    sent_moves: Vec<PendingWrite>,
    /// How long it took to get its columns.
    pub(super) upload: Duration,
    /// Of a solve.
    x: Option<(DeviceVec<T>, DeviceVec<T>)>,
}

impl<T: Element> Rank<T> {
    /// Takes the columns of `values` that belong to it: 8 n² / P bytes in double precision, and those of some panels.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); a failing device.
    pub(super) fn new(info: &Info, columns: Columns, rank: usize, values: &[T]) -> Result<Self> {
        let ctx = Context::open(info)?;
        let Columns { n, block, ranks } = columns;
        let gemm = Gemm::build(&ctx, tune::products::tiles::<T>(&ctx))?;
        let kernels = DenseKernels::build(&ctx)?;
        let mine = columns.of_rank(rank);
        let mut own = DeviceVec::uninit(&ctx, n * mine, WHAT)?;
        let start = Instant::now();
        for j in (rank..columns.blocks()).step_by(ranks) {
            let (first, width) = (columns.first(j), columns.width(j));
            own.write(&ctx, columns.place(j) * n, &values[first * n..(first + width) * n])?;
        }
        let upload = start.elapsed();
        let room = block * (INVERSES * block + n);
        let (width, blocks) = (block * block, columns.blocks().div_ceil(ranks));
        Ok(Self {
            inverses: DeviceVec::uninit(&ctx, INVERSES * width * blocks, "inverses of triangles")?,
            panels: [DeviceVec::uninit(&ctx, room, "a panel")?, DeviceVec::uninit(&ctx, room, "a panel")?],
            moves: [DeviceVec::uninit(&ctx, 4 * block, "moves")?, DeviceVec::uninit(&ctx, 4 * block, "moves")?],
            strip: DeviceVec::uninit(&ctx, block * mine, "rows of U")?,
            pinned: vec![Pinned::zeros(&ctx, room)?, Pinned::zeros(&ctx, room)?],
            used: [None, None],
            sent: Vec::new(),
            sent_moves: Vec::new(),
            x: None,
            upload,
            ctx,
            gemm,
            kernels,
            columns,
            rank,
            own,
        })
    }

    fn own_block(&self, row: usize, place: usize) -> Block<'_, T> {
        Block { array: &self.own, at: row + place * self.columns.n, ld: self.columns.n }
    }

    /// Where the panel of block `j` begins behind its inverses.
    fn behind(&self, j: usize) -> usize {
        INVERSES * self.columns.width(j).pow(2)
    }

    /// Elements of the panel of block `j` with its inverses.
    pub(super) fn room(&self, j: usize) -> usize {
        self.behind(j) + (self.columns.n - self.columns.first(j)) * self.columns.width(j)
    }

    /// Starts to send block `j`, which is its own, to the host, from the diagonal on.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn start_panel(&mut self, j: usize) -> Result<PendingRead<Pinned<T>>> {
        let (first, width) = (self.columns.first(j), self.columns.width(j));
        let m = self.columns.n - first;
        let to = Block { array: &self.panels[j % 2], at: self.behind(j), ld: m };
        self.kernels.copy(&self.ctx, [m, width], self.own_block(first, self.columns.place(j)), to)?;
        let ready = self.ctx.marker()?;
        self.ctx.flush(Queue::Compute)?;
        let memory = match self.pinned.pop() {
            Some(memory) => memory,
            None => Pinned::zeros(&self.ctx, self.panels[0].len())?,
        };
        let pieces = [(&self.panels[j % 2], 0..self.room(j))];
        let read = DeviceVec::start_reads(&self.ctx, Queue::Transfer, &pieces, memory, Some(&ready), "a panel")?;
        self.ctx.flush(Queue::Transfer)?;
        Ok(read)
    }

    /// Memory for a panel on its way to this rank.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn memory(&mut self) -> Result<Pinned<T>> {
        self.take_back();
        match self.pinned.pop() {
            Some(memory) => Ok(memory),
            None => Pinned::zeros(&self.ctx, self.panels[0].len()),
        }
    }

    /// Waits for what was sent.
    fn take_back(&mut self) {
        self.sent_moves.clear();
        for (write, memory) in self.sent.drain(..) {
            drop(write);
            self.pinned.extend(Arc::into_inner(memory));
        }
    }

    /// Lets the device have the panel of block `j`, factorised, and the rows that moved for its pivots.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn send(&mut self, j: usize, panel: Arc<Pinned<T>>, moves: &[[u32; 2]]) -> Result<()> {
        self.take_back();
        if let Some(used) = self.used[j % 2].take() {
            self.ctx.wait(&used, "a panel")?;
        }
        let room = self.room(j);
        let (ctx, queue) = (&self.ctx, Queue::Transfer);
        let write = self.panels[j % 2].start_write(ctx, queue, 0, Arc::clone(&panel), 0..room)?;
        ctx.compute_after(std::slice::from_ref(&write))?;
        self.sent.push((write, panel));
        if !moves.is_empty() {
            let moves: Arc<Vec<u32>> = Arc::new(moves.iter().flatten().copied().collect());
            let all = 0..moves.len();
            let write = self.moves[j % 2].start_write(ctx, queue, 0, moves, all)?;
            ctx.compute_after(std::slice::from_ref(&write))?;
            self.sent_moves.push(write);
        }
        self.ctx.flush(Queue::Transfer)
    }

    /// Takes part in step `j` with the panel that was [sent](Self::send): moves rows, keeps the panel if it is its own, and makes U of the
    /// rows of the panel.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn begin(&mut self, j: usize, pivots: Pivots, moves: usize) -> Result<()> {
        let Self { ctx, gemm, kernels, columns, .. } = &*self;
        let (first, width) = (columns.first(j), columns.width(j));
        let (m, mine) = (columns.n - first, columns.of_rank(self.rank));
        let panel = Block { array: &self.panels[j % 2], at: self.behind(j), ld: m };
        let is_own = columns.owner(j) == self.rank;
        let (place, next) = (columns.place(j), self.next_place(j));
        let skip = if is_own { place..place + width } else { 0..0 };
        kernels.move_rows(ctx, [m, mine], skip, (&self.moves[j % 2], moves), self.own_block(first, 0))?;
        if is_own {
            kernels.copy(ctx, [m, width], panel, self.own_block(first, place))?;
            let (from, to) = (&self.panels[j % 2], INVERSES * columns.block * place);
            let to = Block { array: &self.inverses, at: to, ld: width };
            kernels.copy(ctx, [width, INVERSES * width], Block { array: from, at: 0, ld: width }, to)?;
        }
        let rest = mine - next;
        if rest == 0 {
            return Ok(());
        }
        let (strip, above) = (Block { array: &self.strip, at: 0, ld: width }, self.own_block(first, next));
        match pivots {
            Pivots::Partial => {
                let inverse = Block { array: &self.panels[j % 2], at: 0, ld: width };
                let factors = (T::from_f64(1.0), T::from_f64(0.0));
                gemm.launch(ctx, [width, rest, width], factors, (inverse, above), strip, None)?;
            }
            Pivots::Definite => {
                let lower = Lower { first: self.lower(j).first + width, ..self.lower(j) };
                kernels.mirror(ctx, [width, rest], lower, panel, strip)?;
            }
        }
        kernels.copy(ctx, [width, rest], strip, above)
    }

    /// The first column of its own behind block `j`.
    fn next_place(&self, j: usize) -> usize {
        let next = self.columns.next_of(self.rank, j);
        if next < self.columns.blocks() { self.columns.place(next) } else { self.columns.of_rank(self.rank) }
    }

    /// Where its columns behind block `j` are among all, from the end of that block on.
    fn lower(&self, j: usize) -> Lower {
        let Columns { block, ranks, .. } = self.columns;
        let next = self.columns.next_of(self.rank, j);
        Lower { block, stride: block * ranks, first: (next - j - 1) * block }
    }

    /// A −= L U below the panel of block `j`, in `count` of its own columns behind it but the first `skip`.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn update(&mut self, j: usize, pivots: Pivots, skip: usize, count: usize) -> Result<()> {
        let (first, width) = (self.columns.first(j), self.columns.width(j));
        let (m, place) = (self.columns.n - first, self.next_place(j) + skip);
        let below = Block { array: &self.panels[j % 2], at: self.behind(j) + width, ld: m };
        let right = Block { array: &self.strip, at: skip * width, ld: width };
        let lower = self.lower(j);
        // a block of its own that was skipped
        let lower = Lower { first: lower.first + skip / lower.block * lower.stride, ..lower };
        let lower = Some(lower).filter(|_| pivots == Pivots::Definite);
        let factors = (T::from_f64(-1.0), T::from_f64(1.0));
        let c = self.own_block(first + width, place);
        self.gemm.launch(&self.ctx, [m - width, count, width], factors, (below, right), c, lower)
    }

    /// Its own columns behind block `j`.
    pub(super) fn behind_block(&self, j: usize) -> usize {
        self.columns.of_rank(self.rank) - self.next_place(j)
    }

    /// Ends step `j`: from then on the place of its panel is free.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn end(&mut self, j: usize) -> Result<()> {
        self.used[j % 2] = Some(self.ctx.marker()?);
        self.ctx.flush(Queue::Compute)
    }

    /// Waits for all, and lets go of what only a factorisation needs.
    ///
    /// # Errors
    /// A failing device.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.take_back();
        self.ctx.finish()?;
        self.pinned.clear();
        Ok(())
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
        let inverse = INVERSES * block * place + if is_lower { 0 } else { width * width };
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
