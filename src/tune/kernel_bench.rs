//! Kernels compiled for different launches, and a block of a matrix to time them on.

use std::time::{Duration, Instant};

use super::contest::choose;
use super::device::MAX_SEARCHED_PER_UNIT;
use super::found::{Launch, Point};
use super::watch::Watch;
use super::workload::Workload;
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
pub(super) struct Candidate {
    pub(super) compiled: usize,
    pub(super) launch: Launch,
}

/// A device with a block of a matrix on it, and what was compiled so far.
pub(super) struct KernelBench<'a, T: Real, A: Real> {
    pub(super) workload: Workload<'a, T, A>,
    compiled: Vec<Kernels<T, A>>,
    made: Made,
    units: usize,
    watch: Watch<'a>,
}

impl<'a, T: Real, A: Real> KernelBench<'a, T, A> {
    /// Moves the block to the device. What takes long here ends if `watch` says so.
    pub(super) fn new(ctx: Context, part: &'a Part<'a>, default: &Tuning, watch: Watch<'a>) -> Result<Self> {
        let units = ctx.info().compute_units.max(1) as usize;
        let workload = Workload::new(ctx, part, default, MAX_SEARCHED_PER_UNIT * units)?;
        Ok(Self { workload, compiled: Vec::new(), made: Made::default(), units, watch })
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
        let kernels = Kernels::compile(&self.workload.ctx, tuning.clone(), &self.made)?;
        self.workload.complete(&kernels)?;
        self.compiled.push(kernels);
        log::debug!("{}: kernels for other launches compiled in {:?}", self.workload.ctx.info().name, start.elapsed());
        Ok(self.compiled.len() - 1)
    }

    /// The work-items that the device takes at a time, by the usual kernels.
    pub(super) fn preferred_multiple(&mut self, usual: Launch) -> Result<usize> {
        let compiled = self.compile(&self.uniform(usual))?;
        let multiple = self.compiled[compiled].preferred_multiple(&self.workload.ctx, "dot_partial")?;
        Ok(multiple.unwrap_or(1).max(1))
    }

    /// Whether the device runs a kernel with groups of this size.
    pub(super) fn fits(&self, candidate: &Candidate, kernel: &str) -> Result<bool> {
        let most = self.compiled[candidate.compiled].max_group_size(&self.workload.ctx, kernel)?;
        Ok(most.is_some_and(|most| candidate.launch.group_size <= most))
    }

    /// Cuts row blocks, if the kernel is a product.
    fn prepare(&mut self, candidate: &Candidate, kernel: &str) -> Result<()> {
        if PRODUCTS.contains(&kernel) { self.workload.recut(&self.uniform(candidate.launch)) } else { Ok(()) }
    }

    /// The most groups for each unit that have something to do.
    pub(super) fn most(&mut self, candidate: &Candidate, kernel: &str) -> Result<usize> {
        self.prepare(candidate, kernel)?;
        let items = self.workload.items(kernel);
        let is_product = PRODUCTS.contains(&kernel);
        let groups =
            if is_product { items } else { self.compiled[candidate.compiled].tuning.grid(kernel, items).groups };
        Ok(groups.div_ceil(self.units).clamp(1, MAX_SEARCHED_PER_UNIT))
    }

    /// The time on so many groups for each unit.
    pub(super) fn measure(&mut self, candidate: &Candidate, kernel: &str, groups_per_unit: usize) -> Result<Point> {
        self.watch.check()?;
        self.prepare(candidate, kernel)?;
        let groups = groups_per_unit * self.units;
        let timing = self.workload.measure(&self.compiled[candidate.compiled], kernel, groups)?;
        Ok(Point { groups_per_unit, groups, timing })
    }

    /// The times of several candidates, which take turns.
    pub(super) fn in_turns(&mut self, kernel: &str, candidates: &[Candidate]) -> Result<Vec<Timing>> {
        self.workload.refresh()?;
        let mut times = vec![Vec::new(); candidates.len()];
        let (start, enough) = (Instant::now(), ENOUGH * candidates.len() as u32);
        for _ in (0..MOST_ROUNDS).take_while(|&round| round < ROUNDS || start.elapsed() < enough) {
            for (candidate, times) in candidates.iter().zip(&mut times) {
                self.watch.check()?;
                let groups = candidate.launch.groups_per_unit.min(self.most(candidate, kernel)?) * self.units;
                times.extend(self.workload.times(&self.compiled[candidate.compiled], kernel, groups, TURN)?);
            }
        }
        Ok(times.into_iter().map(timing).collect())
    }

    /// The best of several candidates in turns; the first one, unless a change gains enough or it is not `allowed`.
    pub(super) fn best(
        &mut self,
        kernel: &str,
        candidates: &[Candidate],
        allowed: impl Fn(&Candidate) -> bool,
    ) -> Result<Candidate> {
        if let [only] = candidates {
            return Ok(*only);
        }
        let timings = self.in_turns(kernel, candidates)?;
        Ok(candidates[choose(candidates, &timings, 0, allowed)])
    }
}
