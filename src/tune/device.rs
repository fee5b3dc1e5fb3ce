//! Tunes all kernels on one device.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use super::found::{Chosen, Curve, DeviceFacts, Found, KernelFound, Launch, Search, Timing};
use super::lab::{Lab, Way};
use super::occupancy::{Unit, registers_in};
use super::search::{fastest, first_minimum, search};
use super::store::Size;
use super::watch::Watch;
use crate::bandwidth;
use crate::device::{Context, Info, Kind};
use crate::error::Result;
use crate::kernels::{self, FAMILIES, PRODUCTS, Shape, Tuning};
use crate::matrix::Csr;
use crate::partition::{Part, row_ranges, split};
use crate::real::Real;
use crate::solver::Precision;

/// The most groups for each compute unit that are searched, where a kernel is timed alone, and that are believed of
/// what is kept.
pub const MAX_SEARCHED_PER_UNIT: usize = 64;

/// Candidates for the last round, beside the default.
const FINALISTS: usize = 4;

/// Entries of a row block that are tried.
const BLOCKS: &[usize] = &[1024, 2048, 4096];

/// Iterations under way that are tried.
const UNROLLS: &[usize] = &[1, 2, 4];

/// How much longer larger groups may take than single work-items, which there is nothing to unroll for, to be unrolled.
const NEAR: f64 = 1.25;

/// What a change has to gain before it is made.
const WORTH: f64 = 0.01;

/// Finds launch parameters for every kernel on a device, working on `a`; `matrix` says what it is.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory) if the matrix and seven vectors do not fit;
/// [`Error::Interrupted`](crate::Error::Interrupted) if `watch` says so; errors of the device.
pub fn device(
    info: &Info,
    a: &Csr,
    matrix: &str,
    precision: Precision,
    how: Search,
    watch: Watch<'_>,
) -> Result<Found> {
    rank(info, a, (0, 1), matrix, precision, how, watch)
}

/// The same for the block of rows that rank `k` of `ranks` has in a solve on so many devices, with the columns of its halo.
///
/// # Errors
/// As [`device()`].
///
/// # Panics
/// If there is no rank `k`.
pub fn rank(
    info: &Info,
    a: &Csr,
    (k, ranks): (usize, usize),
    matrix: &str,
    precision: Precision,
    how: Search,
    watch: Watch<'_>,
) -> Result<Found> {
    let part = split(a, &row_ranges(a, ranks)).swap_remove(k);
    let name = if ranks == 1 { matrix.into() } else { format!("{matrix}, rank {k} of {ranks}") };
    block(info, &part, &name, precision, how, watch)
}

/// Which of `candidates`, ranks of a solve of `a` on `ranks` devices, to tune for after the whole matrix: those whose size
/// is served ([`Size::serves`]) neither by the whole nor by a rank before. Blocks are of equal cost, so that this is one
/// rank or none, unless rows differ much from one end of the matrix to the other. A rank in the middle, whose halo has two
/// sides, comes first; ranks without rows are left out.
#[must_use]
pub fn ranks_to_tune(a: &Csr, ranks: usize, candidates: &[usize]) -> Vec<usize> {
    let rows = row_ranges(a, ranks.max(1));
    let size = |rows: &Range<usize>| Size::of_matrix(rows.len(), a.row_ptr()[rows.end] - a.row_ptr()[rows.start]);
    let mut tuned = vec![size(&(0..a.n_rows()))];
    let mut order: Vec<usize> = candidates.iter().copied().filter(|&k| k < ranks && !rows[k].is_empty()).collect();
    order.sort_by_key(|&k| (2 * k + 1).abs_diff(ranks));
    order.retain(|&k| {
        let size = size(&rows[k]);
        let is_new = !tuned.iter().any(|known| known.serves(size));
        tuned.extend(is_new.then_some(size));
        is_new
    });
    order
}

/// The same as [`device()`] for the block of a rank, called `name`.
///
/// # Errors
/// As [`device()`].
pub(crate) fn block(
    info: &Info,
    part: &Part<'_>,
    name: &str,
    precision: Precision,
    how: Search,
    watch: Watch<'_>,
) -> Result<Found> {
    let work = Work { info, part, how, watch };
    let start = Instant::now();
    let kernels = match (precision, info.has_f64) {
        (Precision::F64, _) => work.run::<f64, f64>()?,
        (Precision::F32 | Precision::Mixed, true) => work.run::<f32, f64>()?,
        (Precision::F32 | Precision::Mixed, false) => work.run::<f32, f32>()?,
    };
    let limit = bandwidth::of_device(info)?;
    Ok(Found {
        device: facts(info),
        precision: precision.of_vectors().name().into(),
        matrix: name.into(),
        order: part.n_owned(),
        nnz: part.nnz(),
        halo: part.halo.len,
        search: how,
        limit_bytes_per_second: limit,
        seconds: start.elapsed().as_secs_f64(),
        kernels,
    })
}

fn facts(info: &Info) -> DeviceFacts {
    DeviceFacts {
        name: info.name.clone(),
        vendor: info.vendor.clone(),
        platform: info.platform.clone(),
        driver: info.driver.clone(),
        opencl: info.opencl.clone(),
        kind: info.kind.to_string(),
        compute_units: info.compute_units,
        clock_mhz: info.clock_mhz,
        memory_bytes: info.memory_bytes,
        local_memory_bytes: info.local_memory_bytes,
        max_work_group: info.max_work_group,
    }
}

/// What is to be done.
struct Work<'a> {
    info: &'a Info,
    part: &'a Part<'a>,
    how: Search,
    watch: Watch<'a>,
}

/// A kernel with what is known of it so far.
struct Contest {
    kernel: &'static str,
    curves: Vec<(Way, Curve)>,
    /// What it is launched with without tuning.
    default: Way,
    /// What it is launched with, unless something better turns up.
    best: Way,
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
    fn to_unroll(&self) -> Way {
        let is_near = |(way, time): &(Way, f64)| way.launch.group_size > 1 && *time <= NEAR * self.least();
        match self.best.launch.group_size {
            1 if !self.is_product() => self.bests().into_iter().find(is_near).map_or(self.best, |(way, _)| way),
            _ => self.best,
        }
    }

    /// The least time that is known; infinite if there is none.
    fn least(&self) -> f64 {
        self.curves.iter().map(|(_, curve)| curve.least()).fold(f64::INFINITY, f64::min)
    }
}

/// The last round of a kernel's contest: what was measured in turns, first the default, and which of it is chosen.
struct Round {
    contest: Contest,
    ways: Vec<Way>,
    timings: Vec<Timing>,
    winner: usize,
}

impl Work<'_> {
    fn run<T: Real, A: Real>(&self) -> Result<Vec<KernelFound>> {
        let ctx = Context::open(self.info)?;
        let default = Tuning::default_for(self.info, Shape::of(self.info));
        let mut lab = Lab::<T, A>::new(ctx, self.part, &default, self.watch)?;
        let [products, vectors] = self.ways(&mut lab, &default)?;
        let all_names = FAMILIES.iter().flat_map(|(_, _, kernels)| *kernels).copied();
        let names: Vec<&'static str> = all_names.filter(|name| lab.bed.has(name)).collect();
        let ways = |name: &str| if PRODUCTS.contains(&name) { &products } else { &vectors };
        // a part for each way of each kernel, and one for each kernel's last round
        let is_exhaustive = self.how == Search::Exhaustive;
        let rounds = 1 + usize::from(is_exhaustive);
        let all = names.iter().map(|name| ways(name).len() + rounds).sum();
        let mut done = 0;
        let mut step = || {
            done += 1;
            self.watch.update(done, all);
        };

        let mut contests = Vec::new();
        for &kernel in &names {
            let default = usual(ways(kernel), kernel, &default, lab.units());
            let mut contest = Contest { kernel, curves: Vec::new(), default, best: default };
            // the largest first; where the rest is compared with what is known, the usual size before them
            let mut order: Vec<Way> = ways(kernel).iter().rev().copied().collect();
            if is_exhaustive {
                order.sort_by_key(|way| way.launch.group_size != default.launch.group_size);
            }
            for way in order {
                // the search of the dissertation is at the largest size that the kernel can have
                let is_wanted = self.how != Search::FirstMinimum || contest.curves.is_empty();
                if is_wanted && lab.fits(&way, kernel)? {
                    let curve = self.curve(&mut lab, &way, kernel, contest.least())?;
                    contest.curves.push((way, curve));
                }
                step();
            }
            contests.push(contest);
        }

        let refined =
            if is_exhaustive { self.refined(&mut lab, &default, &mut contests, &mut step)? } else { BTreeMap::new() };
        let mut found: Vec<KernelFound> = Vec::new();
        for round in self.rounds(&mut lab, contests, &refined, &mut step)? {
            let refined = refined.get(round.contest.kernel);
            found.push(self.found(&mut lab, round, refined)?);
        }
        if let Err(e) = self.add_occupancy(&mut lab, &names, &mut found) {
            log::debug!("{}: registers are not known: {e}", self.info.name);
        }
        found.sort_by_key(|found| names.iter().position(|&name| name == found.kernel));
        Ok(found)
    }

    /// The contests from the best of the curves to the last rounds, in which `guests` take part.
    fn rounds<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        contests: Vec<Contest>,
        guests: &BTreeMap<&'static str, Way>,
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
                let guest = guests.get(contest.kernel).copied();
                rounds.push(self.last_round(lab, contest, &unrolled, guest, cut)?);
                step();
            }
            cut = cut.or(rounds.first().map(|round| round.ways[round.winner].launch));
        }
        Ok(rounds)
    }

    /// What [`Search::Refine`] chooses of each kernel. It goes along the curves that an exhaustive search has measured,
    /// among which are all of its own, and measures what they lack; then its rounds are those of a search by itself.
    fn refined<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        default: &Tuning,
        contests: &mut [Contest],
        step: &mut dyn FnMut(),
    ) -> Result<BTreeMap<&'static str, Way>> {
        let refine = Work { how: Search::Refine, ..*self };
        let [products, vectors] = refine.ways(lab, default)?;
        let mut own = Vec::new();
        for contest in contests {
            let Contest { kernel, default, .. } = *contest;
            let ways = if contest.is_product() { &products } else { &vectors };
            let mut curves = Vec::new();
            for (way, known) in contest.curves.iter_mut().filter(|(way, _)| ways.contains(way)) {
                let most = lab.most(way, kernel)?;
                let points = search(refine.how, most, f64::INFINITY, |groups| {
                    if let Some(point) = known.points.iter().find(|point| point.groups_per_unit == groups) {
                        return Ok(*point);
                    }
                    let point = lab.measure(way, kernel, groups)?;
                    known.points.push(point);
                    Result::Ok(point)
                })?;
                known.points.sort_by_key(|point| point.groups_per_unit);
                curves.push((*way, Curve { points, ..known.clone() }));
            }
            own.push(Contest { kernel, curves, default, best: default });
        }
        let rounds = refine.rounds(lab, own, &BTreeMap::new(), step)?;
        Ok(rounds.into_iter().map(|round| (round.contest.kernel, round.ways[round.winner])).collect())
    }

    /// Adds what NVIDIA's compiler and the published limits of its devices tell of the chosen launches.
    fn add_occupancy<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        names: &[&'static str],
        found: &mut [KernelFound],
    ) -> Result<()> {
        let Some(capability) = lab.bed.ctx.compute_capability() else { return Ok(()) };
        let mut tuning = Tuning::default_for(self.info, Shape::of(self.info));
        for one in &*found {
            let Launch { group_size, block_nnz, unroll, .. } = one.chosen.launch;
            if let Some(name) = names.iter().find(|name| **name == one.kernel) {
                let max_groups = MAX_SEARCHED_PER_UNIT * lab.units();
                tuning.set(name, kernels::Launch { group_size, max_groups, unroll });
            }
            tuning.block_nnz = if one.kernel == "spmv_dot_csr" { block_nnz.max(1) } else { tuning.block_nnz };
        }
        let mut said = BTreeMap::new();
        for one in found {
            let Launch { group_size, groups_per_unit, .. } = one.chosen.launch;
            // no more than there is work for
            let of_rows = self.part.n_owned().div_ceil(group_size * lab.units()).max(1);
            let groups_per_unit = groups_per_unit.min(of_rows);
            if let Some(resources) = &mut one.resources {
                let log = kernels::nvidia_log::<T, A>(
                    &lab.bed.ctx,
                    &tuning,
                    &one.kernel,
                    lab.bed.main_len(&one.kernel),
                    &mut said,
                )?;
                resources.registers = registers_in(&log, &one.kernel);
                let unit = Unit::of_nvidia(capability).zip(resources.registers);
                resources.occupancy = unit.and_then(|(unit, registers)| {
                    unit.occupancy(group_size, registers, resources.local_bytes, groups_per_unit)
                });
            }
        }
        Ok(())
    }

    /// The sizes of groups that are tried.
    fn sizes(&self, preferred: usize, usual: usize) -> Vec<usize> {
        let largest = 1 << self.info.max_work_group.max(1).ilog2();
        let mut sizes: Vec<usize> = match (self.how, self.info.kind) {
            // powers of two from what the device works on at a time to the most that it takes; so little has never been best
            (how, Kind::Gpu) => std::iter::successors(Some(preferred.next_power_of_two()), |size| Some(2 * size))
                .skip(usize::from(how == Search::Refine))
                .take_while(|&size| size <= largest)
                .collect(),
            (Search::FirstMinimum, _) => vec![usual],
            (Search::Refine, _) => vec![1, 64],
            (Search::Exhaustive, _) => vec![1, 16, 64, 256],
        };
        sizes.push(usual);
        sizes.retain(|&size| size <= largest);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// What is tried, but for the number of groups: for products, and for the other kernels.
    fn ways<T: Real, A: Real>(&self, lab: &mut Lab<'_, T, A>, default: &Tuning) -> Result<[Vec<Way>; 2]> {
        let usual_size = default.launch("dot_partial").group_size;
        let usual = Launch {
            group_size: usual_size,
            groups_per_unit: 1,
            block_nnz: default.block_nnz,
            items_per_row: 1,
            unroll: 1,
        };
        let preferred = lab.preferred_multiple(usual)?;
        let room = self.info.local_memory_bytes as usize / (2 * size_of::<T>());
        let [mut products, mut vectors] = [const { Vec::<Way>::new() }; 2];
        for group_size in self.sizes(preferred, usual_size) {
            let is_exhaustive = self.how == Search::Exhaustive;
            let mut blocks: Vec<usize> = match (Shape::of_group(group_size), self.how) {
                (Shape::Cpu, _) => vec![1],
                (Shape::Gpu, Search::FirstMinimum) => vec![default.block_nnz.max(group_size)],
                (Shape::Gpu, _) => BLOCKS.iter().copied().filter(|&nnz| nnz >= group_size && nnz <= room).collect(),
            };
            // larger ones would not fit either
            let launch = Launch { group_size, block_nnz: default.block_nnz.max(group_size), ..usual };
            let way = Way { compiled: lab.compile(&lab.uniform(launch))?, launch };
            if group_size > usual_size && !lab.fits(&way, "dot_partial")? {
                break;
            }
            if group_size == usual_size {
                blocks.push(default.block_nnz);
            }
            blocks.sort_unstable();
            blocks.dedup();
            let unrolls: &[usize] = if is_exhaustive { unrolls(group_size) } else { &[1] };
            for &unroll in unrolls {
                let mut first = None;
                for &block_nnz in &blocks {
                    let launch = Launch { group_size, groups_per_unit: 1, block_nnz, items_per_row: 1, unroll };
                    let way = Way { compiled: lab.compile(&lab.uniform(launch))?, launch };
                    first.get_or_insert(way.compiled);
                    products.push(way);
                    if is_exhaustive {
                        products.extend(self.with_other_items(way));
                    }
                }
                // row blocks are no matter of vectors
                let launch = Launch { group_size, groups_per_unit: 1, block_nnz: 0, items_per_row: 1, unroll };
                vectors.extend(first.map(|compiled| Way { compiled, launch }));
            }
        }
        Ok([products, vectors])
    }

    /// A product's way with other numbers of work-items for a row: powers of two, up to the mean length of rows.
    fn with_other_items(&self, way: Way) -> Vec<Way> {
        let Launch { group_size, items_per_row, .. } = way.launch;
        if self.how == Search::FirstMinimum || group_size == 1 {
            return Vec::new();
        }
        let mean = self.part.nnz().div_ceil(self.part.n_owned().max(1));
        let most = mean.next_power_of_two().min(group_size);
        let items = std::iter::successors(Some(1), |items| Some(2 * items)).take_while(|&items| items <= most);
        let others = items.filter(|&items| items != items_per_row);
        others.map(|items_per_row| Way { launch: Launch { items_per_row, ..way.launch }, ..way }).collect()
    }

    /// Each kernel's best, as far as it can be, with other unrolling, by as many groups and by half as many. All are
    /// compiled together: a program for each size of groups in use.
    fn unrolled<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        contests: &[Contest],
    ) -> Result<Vec<(&'static str, Way)>> {
        let mut ways = Vec::new();
        if self.how == Search::FirstMinimum {
            return Ok(ways);
        }
        for &unroll in UNROLLS {
            let mut tuning = None;
            let mut new = Vec::new();
            for contest in contests {
                let (kernel, best) = (contest.kernel, contest.to_unroll());
                if unrolls(best.launch.group_size).contains(&unroll) && best.launch.unroll != unroll {
                    let launch = Launch { unroll, ..best.launch };
                    let tuning = tuning.get_or_insert_with(|| lab.uniform(launch));
                    if launch.block_nnz > 0 {
                        tuning.block_nnz = launch.block_nnz;
                    }
                    let max_groups = MAX_SEARCHED_PER_UNIT * lab.units();
                    tuning.set(kernel, kernels::Launch { group_size: launch.group_size, max_groups, unroll });
                    new.push((kernel, launch));
                    // work-items that do more at a time may be fewer
                    let fewer = launch.groups_per_unit / 2;
                    new.extend((fewer > 0).then_some((kernel, Launch { groups_per_unit: fewer, ..launch })));
                }
            }
            if let Some(tuning) = tuning {
                let compiled = lab.compile(&tuning)?;
                ways.extend(new.into_iter().map(|(kernel, launch)| (kernel, Way { compiled, launch })));
            }
        }
        Ok(ways)
    }

    /// Searches along one way, where the kernel takes `known` the other ways, at least.
    fn curve<T: Real, A: Real>(&self, lab: &mut Lab<'_, T, A>, way: &Way, kernel: &str, known: f64) -> Result<Curve> {
        let most = lab.most(way, kernel)?;
        let points = search(self.how, most, known, |groups_per_unit| lab.measure(way, kernel, groups_per_unit))?;
        let first_minimum = first_minimum(&points);
        let coarse = self.how == Search::Exhaustive && points.len() < most;
        let Launch { group_size, block_nnz, items_per_row, unroll, .. } = way.launch;
        Ok(Curve { group_size, block_nnz, items_per_row, unroll, points, first_minimum, coarse })
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

    /// Measures the best launch of a kernel in turns with the default, with one group a unit, with its neighbours along
    /// the parameters that are searched last, and with a `guest`, and chooses.
    fn last_round<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        contest: Contest,
        unrolled: &[(&str, Way)],
        guest: Option<Way>,
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
        ways.extend(guest.filter(|guest| ways.iter().all(|way| way.launch != guest.launch)));
        let timings = lab.in_turns(kernel, &ways)?;
        let winner = choose(&ways, &timings, 2, |way| fits_cut(way, kernel, cut));
        Ok(Round { contest, ways, timings, winner })
    }

    /// All about a kernel after its last round, in which `refined` took part, if there is one.
    fn found<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        round: Round,
        refined: Option<&Way>,
    ) -> Result<KernelFound> {
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
        let (curve_ways, curves): (Vec<Way>, Vec<Curve>) = curves.into_iter().unzip();
        let mut found = KernelFound {
            kernel: kernel.into(),
            bytes,
            flops,
            elements: lab.bed.n(),
            curves,
            one_per_unit: timings[1],
            default: Chosen { launch: ways[0].launch, timing: timings[0] },
            chosen: tried[0],
            refined: refined.and_then(|way| tried.iter().find(|one| one.launch == way.launch)).copied(),
            tried,
            resources: lab.resources(&ways[winner], kernel)?,
        };
        self.find_first_minimum(lab, &curve_ways, &mut found)?;
        Ok(found)
    }

    /// Fills in, on the curve that the dissertation's search goes along, the points up to its end.
    fn find_first_minimum<T: Real, A: Real>(
        &self,
        lab: &mut Lab<'_, T, A>,
        ways: &[Way],
        found: &mut KernelFound,
    ) -> Result<()> {
        let Some(early) = found.early_curve().filter(|curve| curve.first_minimum.is_none()).cloned() else {
            return Ok(());
        };
        for (way, curve) in ways.iter().zip(&mut found.curves).filter(|(_, curve)| **curve == early) {
            for groups_per_unit in 1..=lab.most(way, &found.kernel)? {
                if curve.points.iter().all(|point| point.groups_per_unit != groups_per_unit) {
                    curve.points.push(lab.measure(way, &found.kernel, groups_per_unit)?);
                    curve.points.sort_by_key(|point| point.groups_per_unit);
                }
                curve.first_minimum = first_minimum(&curve.points);
                if curve.first_minimum.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What is tried of [`Launch::unroll`]; single work-items stream through memory, and leave it to the compiler.
fn unrolls(group_size: usize) -> &'static [usize] {
    if group_size == 1 { &[1] } else { UNROLLS }
}

/// Whether a kernel can have this launch with the row blocks that all products share.
fn fits_cut(way: &Way, kernel: &str, cut: Option<Launch>) -> bool {
    let blocks = |launch: Launch| (launch.group_size, launch.block_nnz, launch.items_per_row);
    !PRODUCTS.contains(&kernel) || cut.is_none_or(|cut| blocks(way.launch) == blocks(cut))
}

/// The launch without tuning.
fn usual(ways: &[Way], kernel: &str, default: &Tuning, units: usize) -> Way {
    let kernels::Launch { group_size, max_groups, unroll } = default.launch(kernel);
    let block_nnz = if PRODUCTS.contains(&kernel) { default.block_nnz } else { 0 };
    let items_per_row = default.items_per_row;
    let launch = Launch { group_size, groups_per_unit: max_groups / units, block_nnz, items_per_row, unroll };
    let is_usual = |way: &&Way| Launch { groups_per_unit: launch.groups_per_unit, ..way.launch } == launch;
    // the default is among what is tried
    let way = ways.iter().find(is_usual).unwrap_or(&ways[0]);
    Way { launch: Launch { groups_per_unit: launch.groups_per_unit, ..way.launch }, ..*way }
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::found::Point;
    use super::*;
    use crate::device::list;
    use crate::error::Error;
    use crate::matrix::gallery;

    #[test]
    fn which_blocks_need_measuring() {
        let a = gallery::poisson3d([16, 16, 16]).unwrap();
        let all = |ranks: usize| ranks_to_tune(&a, ranks, &(0..ranks).collect::<Vec<_>>());
        // half of it is served by the whole; of more blocks, one in the middle stands for all
        assert_eq!([all(1), all(2)], [[0; 0]; 2]);
        assert_eq!([all(4), all(5), all(8)], [[1], [2], [3]]);
        assert_eq!(ranks_to_tune(&a, 8, &[0, 7, 9]), [0]);
        // 64 rows of 64 entries, then 4096 of one: equal costs are very different sizes
        let row_ptr: Vec<usize> = (0..=4160).map(|i: usize| 64 * i.min(64) + i.saturating_sub(64)).collect();
        let nnz = row_ptr[4160];
        let a = Csr::new(4160, 4160, row_ptr, (0..nnz).map(|k| (k % 64) as u32).collect(), vec![1.0; nnz]).unwrap();
        let of_both_kinds = ranks_to_tune(&a, 16, &(0..16).collect::<Vec<_>>());
        assert!(of_both_kinds.len() > 1, "{of_both_kinds:?}");
        let empty = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert_eq!(ranks_to_tune(&empty, 3, &[0, 1, 2]), [0; 0]);
    }

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

    #[test]
    fn what_is_tried_for_a_row() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([8, 8, 8]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let items = |how, group_size, items_per_row| -> Vec<usize> {
            let launch = Launch { group_size, groups_per_unit: 3, block_nnz: 1024, items_per_row, unroll: 2 };
            let work = Work { info: &device, part: &part, how, watch: Watch::default() };
            let others = work.with_other_items(Way { compiled: 5, launch });
            assert!(others.iter().all(|way| Launch { items_per_row, ..way.launch } == launch && way.compiled == 5));
            others.iter().map(|way| way.launch.items_per_row).collect()
        };
        // rows have 6.25 entries on average: 7, and the power of two above
        assert_eq!(items(Search::Refine, 64, 1), [2, 4, 8]);
        assert_eq!(items(Search::Exhaustive, 64, 4), [1, 2, 8]);
        assert_eq!(items(Search::Refine, 4, 1), [2, 4]);
        assert_eq!([items(Search::Refine, 1, 1), items(Search::FirstMinimum, 64, 1)], [[0; 0]; 2]);
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
        let curves = vec![(way, work.curve(&mut lab, &way, kernel, f64::INFINITY).unwrap())];
        let contest = Contest { kernel, curves, default: way, best: way };
        let unrolled = work.unrolled(&mut lab, std::slice::from_ref(&contest)).unwrap();
        assert_eq!(unrolled.iter().map(|(_, way)| way.launch.unroll).collect::<Vec<_>>(), [2, 4]);
        let guest = Way { launch: Launch { groups_per_unit: 3, ..launch }, ..way };
        let round = work.last_round(&mut lab, contest, &unrolled, Some(guest), None).unwrap();
        let found = work.found(&mut lab, round, Some(&guest)).unwrap();
        assert_eq!(found.refined.unwrap().launch, guest.launch);
        let mut tried: Vec<[usize; 2]> =
            found.tried.iter().map(|one| [one.launch.items_per_row, one.launch.unroll]).collect();
        tried.sort_unstable();
        assert_eq!(tried, [[1, 1], [1, 1], [1, 2], [1, 4], [2, 1], [4, 1], [8, 1]]);
        assert!(found.chosen.timing.median <= found.default.timing.median);
        let resources = found.resources.unwrap();
        assert!(resources.max_group_size >= 64, "{resources:?}");
    }

    /// An exhaustive search has all that refining tries, so that it can tell what that would choose.
    #[test]
    fn refining_is_part_of_everything() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([5, 5, 5]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let default = Tuning::default_for(&device, Shape::of(&device));
        let ctx = Context::open(&device).unwrap();
        let mut lab = Lab::<f32, f32>::new(ctx, &part, &default, Watch::default()).unwrap();
        let [all, refine] = [Search::Exhaustive, Search::Refine].map(|how| {
            let work = Work { info: &device, part: &part, how, watch: Watch::default() };
            work.ways(&mut lab, &default).unwrap()
        });
        for (all, refine) in all.iter().zip(&refine) {
            assert!(refine.len() > 1 && refine.len() < all.len());
            assert!(refine.iter().all(|way| all.contains(way)), "{refine:?} {all:?}");
        }
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
            let first_minimum = None;
            let curve =
                Curve { group_size, block_nnz: 0, items_per_row: 1, unroll: 1, points, first_minimum, coarse: false };
            (way(group_size), curve)
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

    #[test]
    fn a_watch_ends_it() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([5, 5, 5]).unwrap();
        let cancel = AtomicBool::new(false);
        let last = std::cell::Cell::new(0);
        let progress = |done, _| {
            last.set(done);
            cancel.store(done == 3, Ordering::Relaxed);
        };
        let watch = Watch { cancel: Some(&cancel), progress: Some(&progress) };
        let ended = super::device(&device, &a, "cube", Precision::F64, Search::FirstMinimum, watch);
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert_eq!(last.get(), 3);
    }

    #[test]
    fn a_block_with_a_halo() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([9, 9, 9]).unwrap();
        let parts: Vec<_> = split(&a, &row_ranges(&a, 3));
        let how = Search::FirstMinimum;
        let done = std::cell::Cell::new((0, 0));
        let progress = |now, all| done.set((now, all));
        let watch = Watch { progress: Some(&progress), ..Watch::default() };
        let found = rank(&device, &a, (1, 3), "cube", Precision::F64, how, watch).unwrap();
        assert_eq!((found.order, found.nnz, found.halo), (parts[1].n_owned(), parts[1].nnz(), parts[1].halo.len));
        assert_eq!((&*found.matrix, found.halo > 0), ("cube, rank 1 of 3", true));
        assert_eq!(done.get().0, done.get().1);
        let kernel = |name: &str| found.kernels.iter().find(|k| k.kernel == name).unwrap();
        // 4 bytes of an index, and 8 read and 8 written, for each element that the block sends
        assert_eq!(kernel("halo_pack").bytes, 20 * parts[1].halo.send.len() as u64);
        assert_eq!(kernel("spmv_csr").flops, 2 * parts[1].nnz() as u64);
    }
}
