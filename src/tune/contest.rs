//! A kernel's contest: from the best of the curves to the last round, in which the launch is chosen.

use super::device::Work;
use super::found::{Chosen, Curve, KernelFound, Launch};
use super::kernel_bench::{Candidate, KernelBench};
use super::search::fastest;
use crate::error::Result;
use crate::kernels::PRODUCTS;
use crate::real::Real;
use crate::timing::Timing;

/// Candidates for the last round, beside the default.
const FINALISTS: usize = 4;

/// What a change has to gain before it is made.
const WORTH: f64 = 0.01;

/// A kernel with what is known of it so far.
pub(super) struct Contest {
    pub(super) kernel: &'static str,
    pub(super) curves: Vec<(Candidate, Curve)>,
    /// What it is launched with without tuning.
    pub(super) default: Candidate,
    /// What it is launched with, unless something better turns up.
    pub(super) best: Candidate,
}

impl Contest {
    fn is_product(&self) -> bool {
        PRODUCTS.contains(&self.kernel)
    }

    /// The best of each curve with its time, the fastest first.
    fn bests(&self) -> Vec<(Candidate, f64)> {
        let best_of = |(candidate, curve): &(Candidate, Curve)| {
            let best = &curve.points[fastest(&curve.points)?];
            let launch = Launch { groups_per_unit: best.groups_per_unit, ..candidate.launch };
            Some((Candidate { launch, ..*candidate }, best.timing.median))
        };
        let mut bests: Vec<(Candidate, f64)> = self.curves.iter().filter_map(best_of).collect();
        bests.sort_by(|a, b| a.1.total_cmp(&b.1));
        bests
    }
}

impl Work<'_> {
    /// The contests from the best of the curves to what is found in the last rounds.
    pub(super) fn rounds<T: Real, A: Real>(
        &self,
        bench: &mut KernelBench<'_, T, A>,
        contests: Vec<Contest>,
        step: &mut dyn FnMut(),
    ) -> Result<Vec<KernelFound>> {
        // row blocks are cut once for all products: those that are part of an iteration decide how
        let (first, rest) = contests.into_iter().partition(|contest| contest.kernel == "spmv_dot_csr");
        let mut found: Vec<KernelFound> = Vec::new();
        let mut cut = None;
        for mut batch in [first, rest] as [Vec<Contest>; 2] {
            for contest in &mut batch {
                let finalists = self.finalists(contest, cut);
                contest.best = bench.best(contest.kernel, &finalists, |one| fits_cut(one, contest.kernel, cut))?;
                if cut.is_none() {
                    let mut candidates = vec![contest.best];
                    candidates.extend(self.with_other_items(contest.best));
                    contest.best = bench.best(contest.kernel, &candidates, |_| true)?;
                }
            }
            for contest in batch {
                found.push(self.last_round(bench, contest, cut)?);
                step();
            }
            cut = cut.or(found.first().map(|found| found.chosen.launch));
        }
        Ok(found)
    }

    /// What takes part in a kernel's contest: the usual launch, the start of the search, and the best of the curves; of
    /// a product those whose row blocks are `cut` already, if they are.
    fn finalists(&self, contest: &Contest, cut: Option<Launch>) -> Vec<Candidate> {
        let mut finalists = vec![contest.best];
        for (mut candidate, _) in contest.bests() {
            if let Some(cut) = cut.filter(|_| contest.is_product()) {
                candidate.launch.items_per_row = cut.items_per_row;
            }
            let fits = fits_cut(&candidate, contest.kernel, cut);
            if fits && !finalists.contains(&candidate) && finalists.len() <= FINALISTS {
                finalists.push(candidate);
            }
        }
        finalists
    }

    /// Measures the best launch of a kernel in turns with the default and, of a product, with other work-items for a row, and chooses.
    fn last_round<T: Real, A: Real>(
        &self,
        bench: &mut KernelBench<'_, T, A>,
        contest: Contest,
        cut: Option<Launch>,
    ) -> Result<KernelFound> {
        let Contest { kernel, default, best, .. } = contest;
        let mut candidates = vec![default, best];
        if contest.is_product() {
            candidates.extend(self.with_other_items(best));
        }
        let timings = bench.in_turns(kernel, &candidates)?;
        let winner = choose(&candidates, &timings, 1, |one| fits_cut(one, kernel, cut));
        let [default, chosen] = [0, winner].map(|k| Chosen { launch: candidates[k].launch, timing: timings[k] });
        let bytes = bench.workload.bytes(kernel);
        let curves = contest.curves.into_iter().map(|(_, curve)| curve).collect();
        Ok(KernelFound { kernel: kernel.into(), bytes, elements: bench.workload.n(), curves, default, chosen })
    }
}

/// Whether a kernel can have this launch with the row blocks that all products share.
fn fits_cut(candidate: &Candidate, kernel: &str, cut: Option<Launch>) -> bool {
    let blocks = |launch: Launch| (launch.group_size, launch.block_nnz, launch.items_per_row);
    !PRODUCTS.contains(&kernel) || cut.is_none_or(|cut| blocks(candidate.launch) == blocks(cut))
}

/// The best of some candidates: `current`, unless a change gains enough; and the first, which is the default, unless that gains
/// enough. Only what is `allowed`.
pub(super) fn choose(
    candidates: &[Candidate],
    timings: &[Timing],
    current: usize,
    allowed: impl Fn(&Candidate) -> bool,
) -> usize {
    let time = |k: usize| timings[k].median;
    let gains = |k: usize, over: usize| time(k) <= (1.0 - WORTH) * time(over);
    let best = (0..candidates.len()).filter(|&k| allowed(&candidates[k])).min_by(|&a, &b| time(a).total_cmp(&time(b)));
    let best = best.filter(|&best| gains(best, current) || !allowed(&candidates[current])).unwrap_or(current);
    if allowed(&candidates[0]) && !gains(best, 0) { 0 } else { best }
}

#[cfg(test)]
mod tests {
    use super::super::found::Search;
    use super::super::watch::Watch;
    use super::*;
    use crate::device::{Context, list};
    use crate::kernels::Tuning;
    use crate::matrix::gallery;
    use crate::partition::{row_ranges, split};

    #[test]
    fn a_change_has_to_gain() {
        let launch = |groups_per_unit| Launch { groups_per_unit, group_size: 64, block_nnz: 0, items_per_row: 1 };
        let candidates = [1, 2, 3, 4].map(|groups| Candidate { compiled: 0, launch: launch(groups) });
        let chosen = |times: [f64; 4], current: usize, banned: &[usize]| {
            let timings = times.map(|time| Timing { median: time, low: time, high: time, runs: 1 });
            choose(&candidates, &timings, current, |one| !banned.contains(&one.launch.groups_per_unit))
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

    /// With work-groups as on a GPU, row blocks are tried on any device.
    #[test]
    fn both_stages() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([8, 8, 8]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let work = Work { info: &device, part: &part, how: Search::Refine, watch: Watch::default() };
        let default = Tuning::uniform(64, 1024, 4 * device.compute_units as usize);
        let ctx = Context::open(&device).unwrap();
        let mut bench = KernelBench::<f64, f64>::new(ctx, &part, &default, Watch::default()).unwrap();
        let launch = Launch { group_size: 64, groups_per_unit: 1, block_nnz: 1024, items_per_row: 1 };
        let candidate = Candidate { compiled: bench.compile(&bench.uniform(launch)).unwrap(), launch };
        assert_eq!(bench.compile(&bench.uniform(launch)).unwrap(), candidate.compiled, "nothing is compiled twice");
        let kernel = "spmv_dot_csr";
        let curves = vec![(candidate, work.curve(&mut bench, &candidate, kernel).unwrap())];
        let contest = Contest { kernel, curves, default: candidate, best: candidate };
        let found = work.last_round(&mut bench, contest, None).unwrap();
        assert!([1, 2, 4, 8].contains(&found.chosen.launch.items_per_row) && found.curves.len() == 1);
        assert!(found.chosen.timing.median <= found.default.timing.median);
    }
}
