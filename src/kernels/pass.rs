//! Launchers of generated passes (`src/backend/source.rs`).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::live::most_looks;
use super::persistent::Shared;
use super::{Argument, launch};
use crate::comm::live::MOST_VALUES;
use crate::device::{Context, DeviceVec, Grid, Kernel, Program};
use crate::error::Result;
use crate::real::Real;

/// A pass whose factors the host gives.
pub(crate) struct GivenPass {
    kernel: Kernel,
    factors: usize,
    vectors: usize,
}

/// A pass that forms its factors from the log, and from partial sums, or among several ranks from totals.
pub(crate) struct AheadPass {
    kernel: Kernel,
    /// Among several ranks, whether it sums over them.
    sums_over_ranks: Option<bool>,
    products: Vec<usize>,
    vectors: Vec<usize>,
    /// Whether it begins with what the iteration before has left to be formed.
    finishes: bool,
    /// Whether one of its vectors is that whose halo arrives.
    has_arriving: bool,
}

/// What a device among several ranks has to do with the others in a pass: see `cl/together.cl`.
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
        assert!(self.shared.has_room() && self.behind as usize + 2 + 2 * MOST_VALUES <= log.len());
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
    pub(super) fn has_room(&self) -> bool {
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
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it is missing.
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
    /// The kernel of this name, in a program whose `real` and `acc` are `types`, with the numbers of the products whose sums it adds, and of its
    /// vectors; among several ranks also whether it sums over them.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it is missing.
    pub(crate) fn load(
        ctx: &Context,
        program: &Program,
        (name, sums_over_ranks): (&str, Option<bool>),
        types: [&'static str; 2],
        [products, vectors]: [Vec<usize>; 2],
        [finishes, has_arriving]: [bool; 2],
    ) -> Result<Self> {
        let kernel = ctx.kernel(program, interned(name), types)?;
        Ok(Self { kernel, sums_over_ranks, products, vectors, finishes, has_arriving })
    }

    /// The products whose sums it adds.
    pub(crate) fn products(&self) -> &[usize] {
        &self.products
    }

    /// Its vectors, by their numbers.
    pub(crate) fn vectors(&self) -> &[usize] {
        &self.vectors
    }

    /// Whether it sums over ranks.
    pub(crate) fn sums_over_ranks(&self) -> bool {
        self.sums_over_ranks == Some(true)
    }

    /// Does the pass with the first `n` elements; as one of several ranks, with what it has to do with the others: of the vector `y` if that
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
        let Ahead { log, width, rows, has_former, limit, done, done_next, products, former } = ahead;
        assert!(products.len() == self.products.len() && vectors.len() == self.vectors.len() && sums.has_room());
        assert!(vectors.iter().all(|v| n <= v.len()), "{}: {n} elements", self.kernel.name);
        assert!(rows.iter().all(|row| (row + width) as usize <= log.len()) && done.len().min(done_next.len()) > 0);
        assert!(products.iter().all(|(partials, first, count)| 2 * (first + count) as usize <= partials.len()));
        assert!(
            PassSums { partials: former, ..sums }.has_room() && meeting.is_some() == self.sums_over_ranks.is_some()
        );
        let is_shared = meeting.is_some();
        let (count, has_former) = (super::count(n), u32::from(*has_former));
        let mut args: Vec<&dyn Argument> = vec![*done, *done_next, &count, &sums.tiles, &rows[0], &rows[1]];
        if self.finishes {
            args.extend([&rows[2] as &dyn Argument, &has_former]);
        }
        args.extend([limit as &dyn Argument, *log]);
        for (partials, first, count) in products {
            assert!(
                !is_shared || partials.id() == former.id(),
                "there is room for the product's sums among the others"
            );
            args.extend((!is_shared).then_some(*partials as &dyn Argument));
            args.extend([first as &dyn Argument, count]);
        }
        args.push(sums.partials);
        args.extend((self.finishes || is_shared && !products.is_empty()).then_some(*former as &dyn Argument));
        args.push(&sums.stride);
        args.extend(vectors.iter().map(|v| *v as &dyn Argument));
        let Some((meeting, y)) = meeting else {
            // SAFETY: arguments as the source is generated; sizes checked above.
            return unsafe { launch(ctx, &self.kernel, grid, &args) };
        };
        meeting.check(log);
        let Meeting {
            shared: Shared { memory, places, indices, next: [sum, exchange], .. },
            behind,
            units,
            is_arriving,
        } = meeting;
        assert!(vectors.iter().all(|v| v.len() == n || n + places.halo <= v.len()));
        assert!(!is_arriving || n + places.halo <= y.len(), "indices are below n: the halo's plan vouches for that");
        // in front those that work on the halo, behind the one that sums; one of them says that what is sent is there
        let has_work = *is_arriving || !self.vectors.is_empty();
        let on_halo = if has_work { places.pieces.clamp(1, *units) } else { 0 };
        let front = super::count((1 + on_halo) * grid.group_size);
        let grid = Grid { groups: grid.groups + 1 + on_halo, ..grid };
        let [sent, halo, pieces] = [places.sent, places.halo, places.pieces].map(super::count);
        let (is_arriving, exchange) = (u32::from(*is_arriving), exchange.wrapping_add(1));
        let most_looks = most_looks(ctx.info().kind);
        args.extend([*memory as &dyn Argument, *indices, &sent, &halo, &pieces, &front, sum, &exchange, behind]);
        args.extend([&most_looks as &dyn Argument, &is_arriving]);
        args.extend((!self.has_arriving).then_some(y as &dyn Argument));
        // SAFETY: arguments as the source is generated; sizes checked above.
        unsafe { launch(ctx, &self.kernel, grid, &args) }
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
