//! Kernels compiled for different launches, and a block of a matrix to time them on.

use std::time::{Duration, Instant};

use super::bed::Bed;
use super::contest::choose;
use super::device::MAX_SEARCHED_PER_UNIT;
use super::found::{Launch, Point};
use super::watch::Watch;
use crate::device::Context;
use crate::error::Result;
use crate::kernels::{Kernels, Made, PRODUCTS, Tuning};
use crate::partition::Part;
use crate::real::Real;
use crate::timing::{Timing, timing};

/// Rounds in which launches that are to be compared take turns: so many at least, and more while they are short, so that
/// a bad moment of the machine decides nothing.
const ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 64;

/// The time for each of these launches from which on rounds are long enough.
const ENOUGH: Duration = Duration::from_millis(4);

/// Launches of a turn.
const TURN: usize = 3;

/// A launch, and which of the compiled kernels are made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) compiled: usize,
    pub(super) launch: Launch,
}

/// A device with a block of a matrix on it, and what was compiled so far.
pub(super) struct Lab<'a, T: Real, A: Real> {
    pub(super) bed: Bed<'a, T, A>,
    compiled: Vec<Kernels<T, A>>,
    made: Made,
    units: usize,
    watch: Watch<'a>,
}

impl<'a, T: Real, A: Real> Lab<'a, T, A> {
    /// Moves the block to the device. What takes long here ends if `watch` says so.
    pub(super) fn new(ctx: Context, part: &'a Part<'a>, default: &Tuning, watch: Watch<'a>) -> Result<Self> {
        let units = ctx.info().compute_units.max(1) as usize;
        let bed = Bed::new(ctx, part, default, MAX_SEARCHED_PER_UNIT * units)?;
        Ok(Self { bed, compiled: Vec::new(), made: Made::default(), units, watch })
    }

    /// The device's compute units.
    pub(super) fn units(&self) -> usize {
        self.units
    }

    /// The same launch for all kernels.
    pub(super) fn uniform(&self, launch: Launch) -> Tuning {
        let Launch { group_size, block_nnz, items_per_row, .. } = launch;
        let max_groups = MAX_SEARCHED_PER_UNIT * self.units;
        Tuning::uniform(group_size, block_nnz, max_groups).sharing(items_per_row)
    }

    /// Compiles kernels, unless that was done before; gives their number.
    pub(super) fn compile(&mut self, tuning: &Tuning) -> Result<usize> {
        if let Some(known) = self.compiled.iter().position(|kernels| kernels.tuning == *tuning) {
            return Ok(known);
        }
        self.watch.check()?;
        let start = Instant::now();
        let kernels = Kernels::compile(&self.bed.ctx, tuning.clone(), &self.made)?;
        self.bed.complete(&kernels)?;
        self.compiled.push(kernels);
        log::debug!("{}: kernels for other launches compiled in {:?}", self.bed.ctx.info().name, start.elapsed());
        Ok(self.compiled.len() - 1)
    }

    /// The work-items that the device takes at a time, by the usual kernels.
    pub(super) fn preferred_multiple(&mut self, usual: Launch) -> Result<usize> {
        let compiled = self.compile(&self.uniform(usual))?;
        let multiple = self.compiled[compiled].preferred_multiple(&self.bed.ctx, "dot_partial")?;
        Ok(multiple.unwrap_or(1).max(1))
    }

    /// Whether the device runs a kernel with groups of this size.
    pub(super) fn fits(&self, way: &Way, kernel: &str) -> Result<bool> {
        let most = self.compiled[way.compiled].max_group_size(&self.bed.ctx, kernel)?;
        Ok(most.is_some_and(|most| way.launch.group_size <= most))
    }

    /// Cuts row blocks, if the kernel is a product.
    fn prepare(&mut self, way: &Way, kernel: &str) -> Result<()> {
        if PRODUCTS.contains(&kernel) { self.bed.recut(&self.uniform(way.launch)) } else { Ok(()) }
    }

    /// The most groups for each unit that have something to do.
    pub(super) fn most(&mut self, way: &Way, kernel: &str) -> Result<usize> {
        self.prepare(way, kernel)?;
        let items = self.bed.items(kernel);
        let is_product = PRODUCTS.contains(&kernel);
        let groups = if is_product { items } else { self.compiled[way.compiled].tuning.grid(kernel, items).groups };
        Ok(groups.div_ceil(self.units).clamp(1, MAX_SEARCHED_PER_UNIT))
    }

    /// The time on so many groups for each unit.
    pub(super) fn measure(&mut self, way: &Way, kernel: &str, groups_per_unit: usize) -> Result<Point> {
        self.watch.check()?;
        self.prepare(way, kernel)?;
        let groups = groups_per_unit * self.units;
        let timing = self.bed.measure(&self.compiled[way.compiled], kernel, groups)?;
        Ok(Point { groups_per_unit, groups, timing })
    }

    /// The times of several ways, which take turns.
    pub(super) fn in_turns(&mut self, kernel: &str, ways: &[Way]) -> Result<Vec<Timing>> {
        self.bed.refresh()?;
        let mut times = vec![Vec::new(); ways.len()];
        let (start, enough) = (Instant::now(), ENOUGH * ways.len() as u32);
        for _ in (0..MOST_ROUNDS).take_while(|&round| round < ROUNDS || start.elapsed() < enough) {
            for (way, times) in ways.iter().zip(&mut times) {
                self.watch.check()?;
                let groups = way.launch.groups_per_unit.min(self.most(way, kernel)?) * self.units;
                times.extend(self.bed.times(&self.compiled[way.compiled], kernel, groups, TURN)?);
            }
        }
        Ok(times.into_iter().map(timing).collect())
    }

    /// The best of several ways in turns; the first one, unless a change gains enough or it is not `allowed`.
    pub(super) fn best(&mut self, kernel: &str, ways: &[Way], allowed: impl Fn(&Way) -> bool) -> Result<Way> {
        if let [only] = ways {
            return Ok(*only);
        }
        let timings = self.in_turns(kernel, ways)?;
        Ok(ways[choose(ways, &timings, 0, allowed)])
    }
}
