//! The passes of a program on a device, and where what they leave is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::DeviceSums;
use super::columns::ColumnPasses;
use super::together::Together;
use crate::backend::log::Log;
use crate::backend::pass_backend::{Turn, Which};
use crate::backend::source::{Partials, Style};
use crate::device::{DeviceVec, Grid, SumsRead};
use crate::kernels::columns::Series;
use crate::kernels::pass::{Ahead, AheadPass, GivenPass, PassSums};
use crate::kernels::persistent::Persistent;
use crate::real::Real;

/// The compiled passes of a program on a device, and what they leave.
pub(crate) struct DevicePasses<A: Real> {
    pub(super) given: BTreeMap<Which, GivenPass>,
    /// The same for vectors of several columns.
    pub(super) of_columns: Option<ColumnPasses<A>>,
    /// Those of an iteration that form their factors themselves,
    pub(super) ahead: Vec<AheadPass>,
    /// and what forms the end of an iteration without beginning the next one.
    pub(super) last: Option<AheadPass>,
    pub(super) style: Style,
    pub(super) grid: Grid,
    pub(super) tiles: usize,
    /// Groups of the kernels that work on halos.
    pub(super) group_size: usize,
    /// Partial sums, of iterations in turns.
    pub(super) sets: [Set<A>; 2],
    pub(super) last_sum: usize,
    pub(super) partials: BTreeMap<usize, Partials>,
    /// Sums on their way to the host, and which they are.
    pub(super) coming: Option<Coming<A>>,
    pub(super) log: Log<A>,
    /// The grid of launches of several iterations that several ranks would make if they could meet,
    pub(super) several: Option<Grid>,
    /// and such launches, alone or among ranks, if they are worth while, and possible.
    pub(super) persistent: Option<Persistent>,
    /// What ranks have to do with each other in them.
    pub(super) together: Option<Together>,
    /// Whether ranks would meet in iterations, if all could.
    pub(super) would_meet: bool,
    /// Whether the run is over, as each pass says, in even and in odd iterations.
    pub(super) done: [Vec<Arc<DeviceVec<i32>>>; 2],
    /// The same of what forms the end of an iteration.
    pub(super) done_last: DeviceVec<i32>,
}

/// Sums on their way, and which they are.
pub(super) type Coming<A> = (SumsRead<A>, Vec<(usize, Turn)>);

/// Partial sums: those of the passes of an iteration, and behind them those of the products of the next one, which the host so reads
/// at once.
pub(super) struct Set<A> {
    pub(super) array: Arc<DeviceVec<A>>,
    /// Of each product.
    pub(super) dots: Vec<Option<DeviceSums<A>>>,
}

/// Partial sums so close to each other are read at once.
const GAP: usize = 64;

impl<A: Real> DevicePasses<A> {
    pub(super) fn sums(&self, turn: Turn) -> PassSums<'_, A> {
        let Self { sets, last_sum, tiles, .. } = self;
        let tiles = *tiles as u32;
        PassSums { partials: &sets[turn.0].array, last: *last_sum, stride: tiles, tiles }
    }

    /// What a pass of iteration `iteration` is told, with where it finds and says whether the run is over.
    pub(super) fn ahead<'a>(
        &'a self,
        pass: &AheadPass,
        iteration: u64,
        limit: f64,
        [done, done_next]: [&'a DeviceVec<i32>; 2],
    ) -> Ahead<'a, A> {
        let of_products = &self.sets[Turn::of_products(iteration).0];
        let dots = |k: usize| of_products.dots[k].as_ref().unwrap_or_else(|| unreachable!("the product is over"));
        Ahead {
            log: &self.log.entries,
            width: self.log.size()[1],
            rows: [iteration, iteration - 1, iteration.saturating_sub(2)].map(|iteration| self.log.begin_of(iteration)),
            has_former: iteration > 1,
            limit: A::from_f64(limit),
            done,
            done_next,
            products: pass.products().iter().map(|k| dots(*k).parts()).collect(),
            former: &of_products.array,
        }
    }

    /// Where the partial sums of a sum are, in steps of so many.
    pub(super) fn place(&self, sum: usize, turn: Turn) -> (&DeviceVec<A>, Range<usize>, usize) {
        let set = &self.sets[turn.0];
        match self.partials.get(&sum) {
            Some(Partials::Product(k, is_second)) => {
                let dots = set.dots[*k].as_ref().unwrap_or_else(|| unreachable!("the product is over"));
                let (array, first, count) = dots.parts();
                let begin = 2 * first as usize + usize::from(*is_second);
                (array, begin..2 * (first + count) as usize, 2)
            }
            Some(Partials::Pass) | None => (&set.array, sum * self.tiles..(sum + 1) * self.tiles, 1),
        }
    }

    /// Where the partial sums of a sum's columns are.
    pub(super) fn series(&self, sum: usize, turn: Turn, columns: usize) -> (&DeviceVec<A>, Series) {
        let set = &self.sets[turn.0];
        let series = |base, step, count| Series {
            base,
            per: columns,
            further: 0,
            step,
            count,
            sums: columns,
            to: sum * columns,
        };
        match self.partials.get(&sum) {
            Some(Partials::Product(k, is_second)) => {
                let dots = set.dots[*k].as_ref().unwrap_or_else(|| unreachable!("the product is over"));
                let (array, first, count) = dots.parts();
                let base = (2 * first as usize + usize::from(*is_second)) * columns;
                (array, series(base, 2 * columns, count as usize))
            }
            Some(Partials::Pass) | None => (&set.array, series(sum * self.tiles * columns, columns, self.tiles)),
        }
    }

    /// The parts of arrays that have these sums, each once, and together what lies together.
    pub(super) fn runs(&self, wanted: &[(usize, Turn)]) -> Vec<(&DeviceVec<A>, Range<usize>)> {
        let mut places: Vec<(&DeviceVec<A>, Range<usize>)> =
            wanted.iter().map(|(sum, turn)| self.place(*sum, *turn)).map(|(array, run, _)| (array, run)).collect();
        places.sort_by_key(|(array, run)| (array.id(), run.start));
        let mut runs: Vec<(&DeviceVec<A>, Range<usize>)> = Vec::new();
        for (array, place) in places {
            match runs.last_mut() {
                Some((of, run)) if of.id() == array.id() && place.start <= run.end + GAP => {
                    run.end = run.end.max(place.end);
                }
                _ => runs.push((array, place)),
            }
        }
        runs
    }

    /// Where it is said whether the run is over, before pass `number` of an iteration.
    pub(super) fn done_before(&self, iteration: u64, number: usize) -> Arc<DeviceVec<i32>> {
        let of = |iteration: u64| &self.done[(iteration % 2) as usize];
        let flag = if number > 0 { of(iteration).get(number - 1) } else { of(iteration + 1).last() };
        Arc::clone(flag.unwrap_or_else(|| unreachable!("an iteration has a pass")))
    }
}
