//! Launcher of generated kernels that do several iterations in one launch: see `cl/persistent.cl`.

use std::cell::Cell;

use super::live::most_looks;
use super::pass::interned;
use super::products::{InPersistent, Rows};
use super::{
    Argument, PASSES, PERSISTENT, PRELUDE, SENDS, TOGETHER, Tuning, USUAL_STD, WORDS, launch, main_option, options_of,
    sources,
};
use crate::comm::live::MOST_VALUES;
use crate::comm::live::halos::Places;
use crate::device::{Context, DeviceVec, Grid, Kernel, LiveMemory};
use crate::error::Result;
use crate::real::Real;

/// Iterations that stay on the device, with the rows of one block.
pub(crate) struct Persistent {
    kernel: Kernel,
    grid: Grid,
    /// What its groups tell each other.
    words: DeviceVec<u32>,
    /// 1 and 2 from launch to launch.
    turn: Cell<u32>,
    is_shared: bool,
}

/// What a launch does, and works on.
pub(crate) struct Span<'a, T, A> {
    /// The row of its first iteration in the log,
    pub(crate) at: u32,
    /// which has so many, of so many numbers each, and one number behind them, which then tells what was refused.
    pub(crate) rows: [u32; 2],
    pub(crate) log: &'a DeviceVec<A>,
    /// How many iterations.
    pub(crate) count: u32,
    /// Elements, and tiles of them.
    pub(crate) n: usize,
    pub(crate) tiles: u32,
    /// Whether there was an iteration before.
    pub(crate) has_former: bool,
    /// ‖r‖² that ends the run.
    pub(crate) limit: A,
    /// Set if the run is over.
    pub(crate) done: &'a DeviceVec<i32>,
    /// The same for what comes after the launch.
    pub(crate) done_next: &'a DeviceVec<i32>,
    /// Where the first iteration leaves partial sums, and where those of the one before are.
    pub(crate) sums: [&'a DeviceVec<A>; 2],
    /// Where those of each product begin, in groups.
    pub(crate) first: &'a [u32],
    /// All vectors.
    pub(crate) vectors: &'a [DeviceVec<T>],
    /// What the launch has to do with other ranks.
    pub(crate) shared: Option<Shared<'a>>,
}

/// What ranks share in a launch: see `cl/together.cl`.
pub(crate) struct Shared<'a> {
    pub(crate) memory: &'a LiveMemory,
    pub(crate) places: Places,
    /// Which of the vectors have a halo.
    pub(crate) has_halo: &'a [bool],
    /// The first elements of the pieces of the halo, and its end; then the places of rows that are sent.
    pub(crate) indices: &'a DeviceVec<u32>,
    /// Rows that are not.
    pub(crate) kept: [u32; 2],
    /// The numbers of the next sum, and of the last exchange.
    pub(crate) next: [u32; 2],
    pub(crate) ranks: u32,
}

impl Shared<'_> {
    /// Whether there is room for all that kernels look at.
    pub(crate) fn has_room(&self) -> bool {
        let Self { memory, places, indices, .. } = self;
        memory.len() >= places.room() && indices.len() > places.sent + places.pieces
    }
}

impl Persistent {
    /// Compiles the kernel `name` of a generated source for `rows`, of which `format` is known, to be launched in so many groups of `group_size`, in
    /// which `lanes` work-items share a tile; if it `is_shared`, as one of several ranks.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild), or not enough memory.
    pub(crate) fn build<T: Real, A: Real>(
        ctx: &Context,
        tuning: &Tuning,
        (rows, format): (Rows<'_, T>, InPersistent),
        (name, text): (&str, &str),
        (group_size, lanes): (usize, usize),
        (groups, is_shared): (usize, bool),
    ) -> Result<Self> {
        let of_rows = rows.products();
        let [_, products] = sources(of_rows.names[0]);
        let sends = if is_shared { SENDS } else { "" };
        let files = [("prelude", PRELUDE), ("products", products), ("passes", PASSES), ("persistent", PERSISTENT)];
        let of_ranks = [("words", WORDS), ("together", TOGETHER)];
        let source: String = files
            .into_iter()
            .chain(of_ranks.into_iter().filter(|_| is_shared))
            .chain([("generated", text)])
            .map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}"))
            .collect();
        let fence = ctx.fence_options();
        let std = fence.as_deref().unwrap_or(USUAL_STD);
        let options = options_of::<T, A>(std, ctx.info(), group_size, tuning.block_nnz)
            + &main_option(of_rows.main)
            + &format!(" -D FORMAT={} -D LANES={lanes}{sends}", format.macros);
        let program = ctx.build(&source, &options)?;
        Ok(Self {
            kernel: ctx.kernel(&program, interned(name), [T::CL_NAME, A::CL_NAME])?,
            grid: Grid { groups, group_size },
            words: DeviceVec::from_slice(ctx, &[0, 0, 2, 2], "what groups tell each other")?,
            turn: Cell::new(1),
            is_shared,
        })
    }

    /// From now on no group is the last one to come.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, ctx: &Context) -> Result<()> {
        let mut words = [0; 3];
        self.words.read(ctx, 0, &mut words)?;
        let was_refused = words[2] == 3;
        if was_refused { Ok(()) } else { self.words.write(ctx, 0, &[1000, 0, 3 - self.turn.get()]) }
    }

    /// Local memory of a group that the kernel takes, in bytes.
    pub(crate) fn local_bytes<T, A>(format: InPersistent, group_size: usize) -> u64 {
        (4 * group_size * size_of::<A>() + format.local_elements * size_of::<T>() + 4) as u64
    }

    /// Does iterations up to the one in which the run turns out to be over; or nothing, if not all groups are on the device at once,
    /// which the last element of the log then tells.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real, A: Real>(
        &self,
        ctx: &Context,
        rows: Rows<'_, T>,
        span: &Span<'_, T, A>,
    ) -> Result<()> {
        let [n_rows, n_cols] = rows.lens();
        let Span { at, rows: [log_len, row_len], log, count, n, tiles, has_former, limit, .. } = span;
        let [sums, former] = span.sums;
        let least = if self.is_shared { n_rows } else { n_rows.max(n_cols) };
        let has_room = |v: &DeviceVec<T>| v.len() == 0 || v.len() >= least;
        assert!(rows.is_there() && *n == n_rows && span.vectors.iter().all(has_room));
        assert!(self.kernel.types == [T::CL_NAME, A::CL_NAME] && span.done.len().min(span.done_next.len()) > 0);
        assert!(at < log_len && log.len() >= (log_len * row_len) as usize + 2 + MOST_VALUES);
        let of_products = |first: &u32| 2 * (*first as usize + self.grid.groups);
        assert!(span.first.iter().map(of_products).all(|end| end <= sums.len().min(former.len())));
        let most_looks = most_looks(ctx.info().kind);
        let of_ranks = span
            .shared
            .as_ref()
            .map(|shared| (shared, shared.places))
            .map(|(shared, Places { sent, halo, pieces, .. })| (shared, [sent, halo, pieces].map(super::count)));
        let is_as_compiled = |shared: &Shared<'_>| {
            let halo = shared.places.halo;
            let is_there = shared.has_room();
            let mut with_halo = span.vectors.iter().zip(shared.has_halo).filter(|(_, has_halo)| **has_halo);
            let has_room = with_halo.all(|(v, _)| v.len() >= (*n + halo).max(n_cols));
            is_there && has_room
        };
        assert!(span.shared.is_some() == self.is_shared && span.shared.as_ref().is_none_or(is_as_compiled));
        let (n, has_former, turn) = (super::count(*n), u32::from(*has_former), self.turn.get());
        self.turn.set(3 - turn);
        let mut args = rows.arguments(1);
        args.extend([span.done as &dyn Argument, span.done_next, &n, tiles, at, log_len, row_len, &has_former]);
        args.extend([limit as &dyn Argument, *log, count, sums, former]);
        args.extend(span.first.iter().map(|first| first as &dyn Argument));
        args.extend([tiles as &dyn Argument, &self.words, &turn]);
        args.extend(span.vectors.iter().map(|v| v as &dyn Argument));
        if let Some((shared, [sent, halo, pieces])) = &of_ranks {
            let [sum, exchange] = &shared.next;
            let [begin, end] = &shared.kept;
            args.extend([shared.memory as &dyn Argument, shared.indices, begin, end, sent, halo, pieces]);
            args.extend([sum as &dyn Argument, exchange, &shared.ranks, &most_looks]);
        }
        // SAFETY: arguments as the source is generated; elements 0..n and those that the rows have columns for, pairs of partial sums
        // and the log, checked above; the matrix by the maker of the block. Vectors without elements are not used.
        unsafe { launch(ctx, &self.kernel, self.grid, &args) }
    }
}
