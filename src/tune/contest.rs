//! A kernel's contest: from the best of the curves to the last round, in which the launch is chosen.

use super::device::Work;
use super::found::{Chosen, Curve, KernelFound, Launch};
use super::lab::{Lab, Way};
use super::search::fastest;
use crate::device::Kind;
use crate::error::Result;
use crate::kernels::PRODUCTS;
use crate::real::Real;
use crate::timing::Timing;

/// Candidates for the last round, beside the default.
const FINALISTS: usize = 4;

/// How much longer larger groups may take than single work-items, which there is nothing to unroll for, to be unrolled.
const NEAR: f64 = 1.25;

/// What a change has to gain before it is made.
const WORTH: f64 = 0.01;

/// A kernel with what is known of it so far.
pub(super) struct Contest {
    pub(super) kernel: &'static str,
    pub(super) curves: Vec<(Way, Curve)>,
    /// What it is launched with without tuning.
    pub(super) default: Way,
    /// What it is launched with, unless something better turns up.
    pub(super) best: Way,
}

impl Contest {
    fn is_product(&self) -> bool {
        PRODUCTS.contains(&self.kernel)
    }

    /// The best of each curve with its time, the fastest first.
    fn bests(&self) -> Vec<(Way, f64)> {
        let best_of = |(way, curve): &(Way, Curve)| {
            let best = &curve.points[fastest(&curve.points)?];
            let launch = Launch { groups_per_unit: best.groups_per_unit, ..way.launch };
            Some((Way { launch, ..*way }, best.timing.median))
        };
        let mut bests: Vec<(Way, f64)> = self.curves.iter().filter_map(best_of).collect();
        bests.sort_by(|a, b| a.1.total_cmp(&b.1));
        bests
    }

    /// What is tried with other unrolling: the best, or larger groups that come near it if it is of single work-items.
    /// Not so of products, which share their sizes.
    pub(super) fn to_unroll(&self) -> Way {
        let is_near = |(way, time): &(Way, f64)| way.launch.group_size > 1 && *time <= NEAR * self.least();
        match self.best.launch.group_size {
            1 if !self.is_product() => self.bests().into_iter().find(is_near).map_or(self.best, |(way, _)| way),
            _ => self.best,
        }
    }

    /// The least time that is known; infinite if there is none.
    pub(super) fn least(&self) -> f64 {
        self.curves.iter().map(|(_, curve)| curve.least()).fold(f64::INFINITY, f64::min)
    }
}

/// The last round of a kernel's contest: what was measured in turns, first the default, and which of it is chosen.
pub(super) struct Round {
    pub(super) contest: Contest,
    ways: Vec<Way>,
    timings: Vec<Timing>,
    winner: usize,
}

impl Work<'_> {
    /// The contests from the best of the curves to the last rounds.
    pub(super) fn rounds<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        contests: Vec<Contest>,
        step: &mut dyn FnMut(),
    ) -> Result<Vec<Round>> {
        // row blocks are cut once for all products: those that are part of an iteration decide how
        let (first, rest) = contests.into_iter().partition(|contest| contest.kernel == "spmv_dot_csr");
        let mut rounds: Vec<Round> = Vec::new();
        let mut cut = None;
        for mut batch in [first, rest] as [Vec<Contest>; 2] {
            for contest in &mut batch {
                let finalists = self.finalists(contest, cut);
                contest.best = lab.best(contest.kernel, &finalists, |way| fits_cut(way, contest.kernel, cut))?;
                if cut.is_none() {
                    let mut ways = vec![contest.best];
                    ways.extend(self.with_other_items(contest.best));
                    contest.best = lab.best(contest.kernel, &ways, |_| true)?;
                }
            }
            let unrolled = self.unrolled(lab, &batch)?;
            for contest in batch {
                rounds.push(self.last_round(lab, contest, &unrolled, cut)?);
                step();
            }
            cut = cut.or(rounds.first().map(|round| round.ways[round.winner].launch));
        }
        Ok(rounds)
    }

    /// What takes part in a kernel's contest: the usual launch, the start of the search, and the best of the curves; of
    /// a product those whose row blocks are `cut` already, if they are.
    fn finalists(&self, contest: &Contest, cut: Option<Launch>) -> Vec<Way> {
        let mut finalists = vec![contest.best];
        for (mut way, _) in contest.bests() {
            if let Some(cut) = cut.filter(|_| contest.is_product()) {
                way.launch.items_per_row = cut.items_per_row;
            }
            let fits = fits_cut(&way, contest.kernel, cut);
            if fits && !finalists.contains(&way) && finalists.len() <= FINALISTS {
                finalists.push(way);
            }
        }
        finalists
    }

    /// One group a unit, of the largest size on a GPU: where the search of the dissertation begins.
    fn start(&self, curves: &[(Way, Curve)], usual: Way) -> Way {
        let is_plain = |way: &Way| {
            let size = self.info.kind == Kind::Gpu || way.launch.group_size == usual.launch.group_size;
            size && (way.launch.items_per_row, way.launch.unroll) == (1, 1)
        };
        let ways = curves.iter().map(|(way, _)| *way).filter(is_plain);
        let largest = ways.max_by_key(|way| way.launch.group_size).unwrap_or(usual);
        Way { launch: Launch { groups_per_unit: 1, ..largest.launch }, ..largest }
    }

    /// Measures the best launch of a kernel in turns with the default, with one group a unit, and with its neighbours
    /// along the parameters that are searched last, and chooses.
    fn last_round<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        contest: Contest,
        unrolled: &[(&str, Way)],
        cut: Option<Launch>,
    ) -> Result<Round> {
        let Contest { kernel, default, best, .. } = contest;
        let mut ways = vec![default, self.start(&contest.curves, default), best];
        for (_, way) in unrolled.iter().filter(|(other, _)| *other == kernel) {
            if lab.fits(way, kernel)? {
                ways.push(*way);
            }
        }
        if contest.is_product() {
            ways.extend(self.with_other_items(best));
        }
        let timings = lab.in_turns(kernel, &ways)?;
        let winner = choose(&ways, &timings, 2, |way| fits_cut(way, kernel, cut));
        Ok(Round { contest, ways, timings, winner })
    }

    /// All about a kernel after its last round.
    pub(super) fn found<T: Real, A: Real>(&self, lab: &mut Lab<'_, T, A>, round: Round) -> Result<KernelFound> {
        let Round { contest: Contest { kernel, curves, .. }, ways, timings, winner } = round;
        // the winner first, the others as they are, each launch once
        let mut tried: Vec<Chosen> = Vec::new();
        for k in [winner].into_iter().chain(0..ways.len()) {
            let one = Chosen { launch: ways[k].launch, timing: timings[k] };
            if tried.iter().all(|other| other.launch != one.launch) {
                tried.push(one);
            }
        }
        let (bytes, flops) = lab.bed.cost(kernel);
        Ok(KernelFound {
            kernel: kernel.into(),
            bytes,
            flops,
            elements: lab.bed.n(),
            curves: curves.into_iter().map(|(_, curve)| curve).collect(),
            one_per_unit: timings[1],
            default: Chosen { launch: ways[0].launch, timing: timings[0] },
            chosen: tried[0],
            tried,
        })
    }
}

/// Whether a kernel can have this launch with the row blocks that all products share.
fn fits_cut(way: &Way, kernel: &str, cut: Option<Launch>) -> bool {
    let blocks = |launch: Launch| (launch.group_size, launch.block_nnz, launch.items_per_row);
    !PRODUCTS.contains(&kernel) || cut.is_none_or(|cut| blocks(way.launch) == blocks(cut))
}

/// The best of some ways: `current`, unless a change gains enough; and the first, which is the default, unless that gains
/// enough. Only what is `allowed`.
pub(super) fn choose(ways: &[Way], timings: &[Timing], current: usize, allowed: impl Fn(&Way) -> bool) -> usize {
    let time = |k: usize| timings[k].median;
    let gains = |k: usize, over: usize| time(k) <= (1.0 - WORTH) * time(over);
    let best = (0..ways.len()).filter(|&k| allowed(&ways[k])).min_by(|&a, &b| time(a).total_cmp(&time(b)));
    let best = best.filter(|&best| gains(best, current) || !allowed(&ways[current])).unwrap_or(current);
    if allowed(&ways[0]) && !gains(best, 0) { 0 } else { best }
}

#[cfg(test)]
mod tests {
    use super::super::found::{Point, Search};
    use super::super::watch::Watch;
    use super::*;
    use crate::device::{Context, list};
    use crate::kernels::Tuning;
    use crate::matrix::gallery;
    use crate::partition::{row_ranges, split};

    #[test]
    fn a_change_has_to_gain() {
        let launch =
            |groups_per_unit| Launch { groups_per_unit, group_size: 64, block_nnz: 0, items_per_row: 1, unroll: 1 };
        let ways = [1, 2, 3, 4].map(|groups| Way { compiled: 0, launch: launch(groups) });
        let chosen = |times: [f64; 4], current: usize, banned: &[usize]| {
            let timings = times.map(|time| Timing { median: time, low: time, high: time, runs: 1 });
            choose(&ways, &timings, current, |way| !banned.contains(&way.launch.groups_per_unit))
        };
        assert_eq!(chosen([1.0, 0.995, 0.992, 0.991], 0, &[]), 0, "less than a hundredth");
        assert_eq!(chosen([1.0, 0.95, 0.9, 0.98], 0, &[]), 2);
        assert_eq!(chosen([1.0, 0.95, 0.9, 0.895], 2, &[]), 2, "not worth another change");
        assert_eq!(chosen([1.0, 0.95, 0.999, 1.1], 2, &[]), 1);
        assert_eq!(chosen([1.0, 1.2, 1.1, 1.3], 2, &[]), 0);
        // what can't be had is left out, even if it is the default
        assert_eq!(chosen([1.0, 0.5, 0.9, 0.98], 0, &[2]), 2);
        assert_eq!(chosen([1.0, 1.5, 1.2, 1.3], 0, &[1]), 2);
    }

    /// With work-groups as on a GPU, row blocks and unrolling are tried on any device.
    #[test]
    fn both_stages() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([8, 8, 8]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let work = Work { info: &device, part: &part, how: Search::Refine, watch: Watch::default() };
        let default = Tuning::uniform(64, 1024, 4 * device.compute_units as usize);
        let ctx = Context::open(&device).unwrap();
        let mut lab = Lab::<f64, f64>::new(ctx, &part, &default, Watch::default()).unwrap();
        let launch = Launch { group_size: 64, groups_per_unit: 1, block_nnz: 1024, items_per_row: 1, unroll: 1 };
        let way = Way { compiled: lab.compile(&lab.uniform(launch)).unwrap(), launch };
        assert_eq!(lab.compile(&lab.uniform(launch)).unwrap(), way.compiled, "nothing is compiled twice");
        let kernel = "spmv_dot_csr";
        let curves = vec![(way, work.curve(&mut lab, &way, kernel).unwrap())];
        let contest = Contest { kernel, curves, default: way, best: way };
        let unrolled = work.unrolled(&mut lab, std::slice::from_ref(&contest)).unwrap();
        assert_eq!(unrolled.iter().map(|(_, way)| way.launch.unroll).collect::<Vec<_>>(), [2, 4]);
        let round = work.last_round(&mut lab, contest, &unrolled, None).unwrap();
        let found = work.found(&mut lab, round).unwrap();
        let mut tried: Vec<[usize; 2]> =
            found.tried.iter().map(|one| [one.launch.items_per_row, one.launch.unroll]).collect();
        tried.sort_unstable();
        assert_eq!(tried, [[1, 1], [1, 2], [1, 4], [2, 1], [4, 1], [8, 1]]);
        assert!(found.chosen.timing.median <= found.default.timing.median);
    }

    #[test]
    fn what_is_unrolled() {
        let way = |group_size| {
            let launch = Launch { group_size, groups_per_unit: 1, block_nnz: 0, items_per_row: 1, unroll: 1 };
            Way { compiled: group_size, launch }
        };
        let curve = |group_size: usize, times: &[f64]| {
            let timing = |time| Timing { median: time, low: time, high: time, runs: 1 };
            let point = |(&time, groups)| Point { groups_per_unit: groups, groups, timing: timing(time) };
            let points = times.iter().zip(1..).map(point).collect();
            (way(group_size), Curve { group_size, block_nnz: 0, points })
        };
        let curves = vec![curve(256, &[9.0, 8.0]), curve(1, &[5.0, 4.0]), curve(64, &[7.0, 6.0, 5.0])];
        let mut contest = Contest { kernel: "cg_step", curves, default: way(256), best: way(256) };
        let to_unroll = |contest: &Contest| {
            let Launch { group_size, groups_per_unit, .. } = contest.to_unroll().launch;
            (group_size, groups_per_unit)
        };
        assert_eq!(to_unroll(&contest), (256, 1), "the best as it is");
        contest.best = way(1);
        assert_eq!(to_unroll(&contest), (64, 3), "a quarter slower");
        contest.kernel = "spmv_csr";
        assert_eq!(to_unroll(&contest), (1, 1));
        contest.kernel = "cg_step";
        contest.curves[1] = curve(1, &[3.9]);
        assert_eq!(to_unroll(&contest), (1, 1));
    }
}
