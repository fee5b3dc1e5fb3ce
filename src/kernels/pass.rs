//! Launchers of generated passes (`src/backend/source.rs`).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::live::most_looks;
use super::persistent::Shared;
use super::{Argument, launch};
use crate::comm::live::MOST_VALUES;
use crate::comm::live::halos::BLOCK;
use crate::device::{Context, DeviceVec, Grid, Kernel, Program};
use crate::error::{Error, Result};
use crate::real::Real;

/// What a kernel of a pass that forms its factors is given. The driver takes longer for each array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Partial sums, and vectors,
    All,
    /// the first alone, which come to totals,
    Partials,
    /// or these, and vectors.
    Totals,
}

/// A pass whose factors the host gives.
pub(crate) struct GivenPass {
    kernel: Kernel,
    factors: usize,
    vectors: usize,
}

/// A pass that forms its factors from the log, and from partial sums, or among several ranks from totals.
pub(crate) struct AheadPass {
    kernel: Kernel,
    /// In which ranks meet before it, and how many totals it then has.
    meeting: Option<(Kernel, usize)>,
    products: Vec<usize>,
    vectors: Vec<usize>,
    /// Whether it begins with what the iteration before has left to be formed.
    finishes: bool,
    /// Whether one of its vectors is that whose halo arrives.
    has_arriving: bool,
}

/// What a device among several ranks has to do with the others before a pass and in it: see `cl/together.cl`.
pub(crate) struct Meeting<'a> {
    pub(crate) shared: Shared<'a>,
    /// Where the numbers behind the log are.
    pub(crate) behind: u32,
    /// Compute units.
    pub(crate) units: usize,
    /// Whether the halo of a vector is to be exchanged.
    pub(crate) is_arriving: bool,
}

impl Meeting<'_> {
    /// That there is room for all that kernels look at.
    fn check<A: Real>(&self, log: &DeviceVec<A>) {
        assert!(self.shared.has_room() && self.behind as usize + 2 + MOST_VALUES <= log.len());
    }
}

/// Where the partial sums of passes are: those of sum `k` are the `stride` numbers from `k stride` on.
#[derive(Clone, Copy)]
pub(crate) struct PassSums<'a, A> {
    pub(crate) partials: &'a DeviceVec<A>,
    /// The largest number of a sum of this program.
    pub(crate) last: usize,
    pub(crate) stride: u32,
    /// Partial sums that a pass leaves for each of its sums.
    pub(crate) tiles: u32,
}

impl<A: Real> PassSums<'_, A> {
    fn has_room(&self) -> bool {
        self.tiles <= self.stride && (self.last + 1) * self.stride as usize <= self.partials.len()
    }
}

/// What tells a device that works alone, and is told by it, in a pass.
pub(crate) struct Ahead<'a, A> {
    /// Rows of scalars.
    pub(crate) log: &'a DeviceVec<A>,
    /// Numbers in a row,
    pub(crate) width: u32,
    /// where that of this iteration begins, and those of the two before.
    pub(crate) rows: [u32; 3],
    /// Whether there was an iteration before.
    pub(crate) has_former: bool,
    /// ‖r‖² that ends the run.
    pub(crate) limit: A,
    /// Set if the run is over.
    pub(crate) done: &'a DeviceVec<i32>,
    /// The same for what comes after the pass.
    pub(crate) done_next: &'a DeviceVec<i32>,
    /// Pairs of partial sums of products: how many come before them, and how many there are.
    pub(crate) products: Vec<(&'a DeviceVec<A>, u32, u32)>,
    /// Where the partial sums of the passes of the iteration before are.
    pub(crate) former: &'a DeviceVec<A>,
}

impl GivenPass {
    /// The kernel of this name, in a program whose `real` and `acc` are `types`.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if it is missing.
    pub(crate) fn load(
        ctx: &Context,
        program: &Program,
        name: &str,
        types: [&'static str; 2],
        [factors, vectors]: [usize; 2],
    ) -> Result<Self> {
        let kernel = ctx.kernel(program, interned(name), types)?;
        Ok(Self { kernel, factors, vectors })
    }

    /// Does the pass with the `n` elements from `begin` on.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real, A: Real>(
        &self,
        ctx: &Context,
        grid: Grid,
        begin: usize,
        n: usize,
        factors: &[A],
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
    ) -> Result<()> {
        assert!(factors.len() == self.factors && vectors.len() == self.vectors && sums.has_room());
        assert!(vectors.iter().all(|v| begin + n <= v.len()), "{}: {begin} + {n} elements", self.kernel.name);
        let (begin, n) = (super::count(begin), super::count(n));
        let mut args: Vec<&dyn Argument> = vec![&begin, &n, &sums.tiles];
        args.extend(factors.iter().map(|factor| factor as &dyn Argument));
        args.extend([sums.partials as &dyn Argument, &sums.stride]);
        args.extend(vectors.iter().map(|v| *v as &dyn Argument));
        // SAFETY: arguments as the source is generated; sizes checked above.
        unsafe { launch(ctx, &self.kernel, grid, &args) }
    }
}

impl AheadPass {
    /// The kernel of the first name, in a program whose `real` and `acc` are `types`, with the numbers of the products whose sums it adds,
    /// and of its vectors; among several ranks also that of the second name, in which they meet before it, and so many totals.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if one is missing.
    pub(crate) fn load(
        ctx: &Context,
        program: &Program,
        (name, meeting): (&str, Option<(String, usize)>),
        types: [&'static str; 2],
        [products, vectors]: [Vec<usize>; 2],
        [finishes, has_arriving]: [bool; 2],
    ) -> Result<Self> {
        let kernel = ctx.kernel(program, interned(name), types)?;
        let meet = |(name, totals): (String, usize)| {
            let kernel = ctx.kernel(program, interned(&name), types)?;
            Ok::<_, Error>((kernel, totals))
        };
        let meeting = meeting.map(meet).transpose()?;
        Ok(Self { kernel, meeting, products, vectors, finishes, has_arriving })
    }

    /// The products whose sums it adds.
    pub(crate) fn products(&self) -> &[usize] {
        &self.products
    }

    /// Its vectors, by their numbers.
    pub(crate) fn vectors(&self) -> &[usize] {
        &self.vectors
    }

    /// Totals over all ranks that it needs.
    pub(crate) fn totals(&self) -> usize {
        self.meeting.as_ref().map_or(0, |(_, totals)| *totals)
    }

    /// Does the pass with the first `n` elements; as one of several ranks, with the halo behind them, once that of the vector `y` has come if it
    /// is arriving.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn launch<T: Real, A: Real>(
        &self,
        ctx: &Context,
        grid: Grid,
        n: usize,
        ahead: &Ahead<'_, A>,
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
        meeting: Option<(&Meeting<'_>, &DeviceVec<T>)>,
    ) -> Result<()> {
        assert!(meeting.is_some() == self.meeting.is_some());
        let Some((meeting, y)) = meeting else {
            return self.launch_one(ctx, (&self.kernel, Given::All), grid, n, ahead, sums, vectors, &[]);
        };
        let Meeting { shared: Shared { memory, places, firsts, next: [_, exchange], .. }, behind, units, is_arriving } =
            meeting;
        meeting.check(ahead.log);
        assert!(vectors.iter().all(|v| v.len() == n || n + places.halo <= v.len()));
        assert!(!is_arriving || n + places.halo <= y.len());
        let groups_on_halo = places.pieces.min(*units);
        let first = super::count(groups_on_halo * grid.group_size);
        let grid = Grid { groups: grid.groups + groups_on_halo, ..grid };
        let most_looks = most_looks(ctx.info().kind);
        let [sent, halo, pieces] = [places.sent, places.halo, places.pieces].map(super::count);
        let (is_arriving, exchange) = (u32::from(*is_arriving), exchange.wrapping_add(1));
        let mut of_ranks: Vec<&dyn Argument> =
            vec![*memory, *firsts, &sent, &halo, &pieces, &first, &exchange, behind, &most_looks, &is_arriving];
        of_ranks.extend((!self.has_arriving).then_some(y as &dyn Argument));
        self.launch_one(ctx, (&self.kernel, Given::Totals), grid, n, ahead, sums, vectors, &of_ranks)
    }

    /// Meets the other ranks before the pass: leaves totals, and sends what they need of `y` if that is arriving.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn meet<T: Real, A: Real>(
        &self,
        ctx: &Context,
        group_size: usize,
        n: usize,
        ahead: &Ahead<'_, A>,
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
        (meeting, y): (&Meeting<'_>, &DeviceVec<T>),
    ) -> Result<()> {
        let Some((kernel, totals_here)) = &self.meeting else { return Ok(()) };
        let Meeting { shared: Shared { memory, places, send, next: [sum, exchange], .. }, behind, units, is_arriving } =
            meeting;
        meeting.check(ahead.log);
        let sent = if *is_arriving { places.sent } else { 0 };
        if *totals_here == 0 && sent == 0 {
            return Ok(());
        }
        assert!(sent == 0 || n <= y.len(), "indices are below n: the halo's plan vouches for that");
        let others = sent.div_ceil(BLOCK).min(*units);
        let grid = Grid { groups: 1 + others, group_size };
        let (sent, most_looks) = (super::count(sent), most_looks(ctx.info().kind));
        let exchange = exchange.wrapping_add(1);
        let of_ranks: [&dyn Argument; 8] = [*memory, *send, &sent, sum, &exchange, behind, &most_looks, y];
        self.launch_one(ctx, (kernel, Given::Partials), grid, n, ahead, sums, vectors, &of_ranks)
    }

    /// Launches the pass, or the meeting before it, with what it is given, and with arguments `of_ranks`.
    fn launch_one<T: Real, A: Real>(
        &self,
        ctx: &Context,
        (kernel, given): (&Kernel, Given),
        grid: Grid,
        n: usize,
        ahead: &Ahead<'_, A>,
        sums: PassSums<'_, A>,
        vectors: &[&DeviceVec<T>],
        of_ranks: &[&dyn Argument],
    ) -> Result<()> {
        let Ahead { log, width, rows, has_former, limit, done, done_next, products, former } = ahead;
        assert!(products.len() == self.products.len() && vectors.len() == self.vectors.len() && sums.has_room());
        assert!(vectors.iter().all(|v| n <= v.len()), "{}: {n} elements", self.kernel.name);
        assert!(rows.iter().all(|row| (row + width) as usize <= log.len()) && done.len().min(done_next.len()) > 0);
        assert!(products.iter().all(|(partials, first, count)| 2 * (first + count) as usize <= partials.len()));
        assert!(PassSums { partials: former, ..sums }.has_room());
        let (n, has_former) = (super::count(n), u32::from(*has_former));
        let mut args: Vec<&dyn Argument> = vec![*done];
        args.extend((given != Given::Partials).then_some(*done_next as &dyn Argument));
        args.extend([&n as &dyn Argument, &sums.tiles, &rows[0], &rows[1]]);
        if self.finishes {
            args.extend([&rows[2] as &dyn Argument, &has_former]);
        }
        args.extend([limit as &dyn Argument, *log]);
        for (partials, first, count) in products.iter().filter(|_| given != Given::Totals) {
            args.extend([*partials as &dyn Argument, first, count]);
        }
        args.push(sums.partials);
        args.extend((self.finishes && given != Given::Totals).then_some(*former as &dyn Argument));
        args.push(&sums.stride);
        args.extend(vectors.iter().filter(|_| given != Given::Partials).map(|v| *v as &dyn Argument));
        args.extend(of_ranks);
        // SAFETY: arguments as the source is generated; sizes checked above, and for those of ranks by the caller.
        unsafe { launch(ctx, kernel, grid, &args) }
    }
}

/// The same text for ever: kernels are known by their names, of which there are few.
pub(crate) fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
