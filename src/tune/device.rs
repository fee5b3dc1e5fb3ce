//! Tunes all kernels on one device.

use std::ops::Range;
use std::time::Instant;

use super::bed::Bed;
use super::found::{Chosen, Curve, DeviceFacts, Found, KernelFound, Launch, Point, Search, Timing};
use super::search::{fastest, first_minimum, search, timing};
use super::store::Size;
use crate::bandwidth;
use crate::device::{Context, Info, Kind};
use crate::error::Result;
use crate::kernels::{FAMILIES, Kernels, PRODUCTS, Shape, Tuning};
use crate::matrix::Csr;
use crate::partition::{Part, row_ranges, split};
use crate::real::Real;
use crate::solver::Precision;

/// The most groups for each compute unit that are tried.
pub const MAX_GROUPS_PER_UNIT: usize = 64;

/// Candidates for the last round, beside the default.
const FINALISTS: usize = 4;

/// Rounds in which the finalists take turns.
const ROUNDS: usize = 8;

/// Launches of a turn.
const TURN: usize = 3;

/// What a change has to gain before it is made.
const WORTH: f64 = 0.01;

/// Finds launch parameters for every kernel on a device, working on `a`; `matrix` says what it is.
///
/// `progress` is called with the parts of the work that are done and their number.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory) if the matrix and six vectors do not fit; errors of the
/// device.
pub fn device(
    info: &Info,
    a: &Csr,
    matrix: &str,
    precision: Precision,
    how: Search,
    progress: &dyn Fn(usize, usize),
) -> Result<Found> {
    rank(info, a, (0, 1), matrix, precision, how, progress)
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
    progress: &dyn Fn(usize, usize),
) -> Result<Found> {
    let part = split(a, &row_ranges(a, ranks)).swap_remove(k);
    let name = if ranks == 1 { matrix.into() } else { format!("{matrix}, rank {k} of {ranks}") };
    block(info, &part, &name, precision, how, progress)
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
    progress: &dyn Fn(usize, usize),
) -> Result<Found> {
    let work = Work { info, part, how, progress };
    let start = Instant::now();
    let kernels = match (precision, info.has_f64) {
        (Precision::F64, _) => work.run::<f64, f64>()?,
        (Precision::F32, true) => work.run::<f32, f64>()?,
        (Precision::F32, false) => work.run::<f32, f32>()?,
    };
    let limit = bandwidth::of_device(info)?;
    Ok(Found {
        device: facts(info),
        precision: precision.name().into(),
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
    progress: &'a dyn Fn(usize, usize),
}

/// Kernels compiled for one size of groups.
struct Variant<T, A> {
    group_size: usize,
    block_nnz: usize,
    kernels: Kernels<T, A>,
}

/// One way to launch a kernel: the index of its variant, and the groups for each unit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Candidate {
    variant: usize,
    groups_per_unit: usize,
}

impl Work<'_> {
    fn units(&self) -> usize {
        self.info.compute_units.max(1) as usize
    }

    fn run<T: Real, A: Real>(&self) -> Result<Vec<KernelFound>> {
        let ctx = Context::open(self.info)?;
        let default = Tuning::default_for(self.info, Shape::of(self.info));
        let variants = self.variants::<T, A>(&ctx, &default)?;
        let mut bed = Bed::<T, A>::new(ctx, self.part, &default, MAX_GROUPS_PER_UNIT * self.units())?;
        let names: Vec<&'static str> = FAMILIES.iter().flat_map(|(_, _, kernels)| *kernels).copied().collect();
        // a part for each kernel of each variant, and one for each kernel's last round
        let all = names.len() * (variants.len() + 1);
        let mut done = 0;
        let mut step = || {
            done += 1;
            (self.progress)(done.min(all), all);
        };

        let mut curves: Vec<Vec<(usize, Curve)>> = names.iter().map(|_| Vec::new()).collect();
        // the largest first
        for (v, variant) in variants.iter().enumerate().rev() {
            bed.recut(&variant.kernels.tuning)?;
            for (name, curves) in names.iter().zip(&mut curves) {
                // the size of row blocks matters to products alone
                let is_new = variants[..v].iter().all(|other| other.group_size != variant.group_size);
                let fits =
                    variant.kernels.max_group_size(&bed.ctx, name)?.is_some_and(|most| variant.group_size <= most);
                // the search of the dissertation is at the largest size that the kernel can have
                let is_wanted = self.how != Search::FirstMinimum || curves.is_empty();
                if fits && is_wanted && (is_new || PRODUCTS.contains(name)) {
                    curves.push((v, self.curve(&mut bed, variant, name)?));
                }
                step();
            }
        }
        // row blocks are cut once for all products: those that are part of an iteration decide how
        let decides = names.iter().position(|&name| name == "spmv_dot_csr").unwrap_or_default();
        let mut found: Vec<Option<KernelFound>> = names.iter().map(|_| None).collect();
        let mut cut = None;
        for k in std::iter::once(decides).chain((0..names.len()).filter(|&k| k != decides)) {
            let curves = std::mem::take(&mut curves[k]);
            let (variant, kernel) = self.last_round(&mut bed, &variants, names[k], curves, &default, cut)?;
            if k == decides {
                cut = Some(variant);
            }
            found[k] = Some(kernel);
            step();
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The sizes of groups that are tried, and of row blocks.
    fn variants<T: Real, A: Real>(&self, ctx: &Context, default: &Tuning) -> Result<Vec<Variant<T, A>>> {
        let largest = 1 << self.info.max_work_group.max(1).ilog2();
        let usual = default.launch("dot_partial").group_size;
        let mut sizes: Vec<usize> = match (self.how, self.info.kind) {
            (Search::FirstMinimum | Search::Refine, Kind::Gpu) => vec![64, 128, 256, 512, 1024],
            (Search::FirstMinimum, _) => vec![usual],
            (Search::Refine, _) => vec![1, 64],
            (Search::Exhaustive, Kind::Gpu) => vec![32, 64, 128, 256, 512, 1024],
            (Search::Exhaustive, _) => vec![1, 16, 64, 256],
        };
        sizes.push(usual);
        sizes.retain(|&size| size <= largest);
        sizes.sort_unstable();
        sizes.dedup();
        let room = self.info.local_memory_bytes as usize / (2 * size_of::<T>());
        let pairs = sizes.into_iter().flat_map(|size| {
            let mut blocks: Vec<usize> = match (Shape::of_group(size), self.how) {
                (Shape::Cpu, _) => vec![1],
                (Shape::Gpu, Search::FirstMinimum) => vec![default.block_nnz.max(size)],
                (Shape::Gpu, _) => [1024, 2048, 4096].into_iter().filter(|&nnz| nnz >= size && nnz <= room).collect(),
            };
            if size == usual {
                blocks.push(default.block_nnz);
            }
            blocks.sort_unstable();
            blocks.dedup();
            blocks.into_iter().map(move |nnz| (size, nnz))
        });
        pairs
            .map(|(group_size, block_nnz)| {
                let tuning = Tuning::uniform(group_size, block_nnz, MAX_GROUPS_PER_UNIT * self.units());
                Ok(Variant { group_size, block_nnz, kernels: Kernels::compile(ctx, tuning)? })
            })
            .collect()
    }

    fn curve<T: Real, A: Real>(&self, bed: &mut Bed<T, A>, variant: &Variant<T, A>, kernel: &str) -> Result<Curve> {
        let points = search(self.how, self.most(bed, variant, kernel), |groups_per_unit| {
            let groups = groups_per_unit * self.units();
            let timing = bed.measure(&variant.kernels, kernel, groups)?;
            Ok::<_, crate::Error>(Point { groups_per_unit, groups, timing })
        })?;
        let first_minimum = first_minimum(&points);
        let block_nnz = if PRODUCTS.contains(&kernel) { variant.block_nnz } else { 0 };
        Ok(Curve { group_size: variant.group_size, block_nnz, points, first_minimum })
    }

    /// The most groups for each unit that have something to do.
    fn most<T: Real, A: Real>(&self, bed: &Bed<T, A>, variant: &Variant<T, A>, kernel: &str) -> usize {
        let items = if PRODUCTS.contains(&kernel) {
            bed.items(kernel)
        } else {
            variant.kernels.tuning.grid(kernel, bed.items(kernel)).groups
        };
        items.div_ceil(self.units()).clamp(1, MAX_GROUPS_PER_UNIT)
    }

    /// What takes part in the last round of a kernel: the usual launch, the start of the search, and the best of the curves.
    fn finalists<T, A>(
        &self,
        variants: &[Variant<T, A>],
        kernel: &str,
        curves: &[(usize, Curve)],
        default: &Tuning,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<Candidate> {
        let launch = default.launch(kernel);
        let is_usual = |v: &Variant<T, A>| {
            v.group_size == launch.group_size && (!PRODUCTS.contains(&kernel) || v.block_nnz == default.block_nnz)
        };
        let usual = Candidate {
            variant: variants.iter().position(is_usual).unwrap_or_default(),
            groups_per_unit: launch.max_groups / self.units(),
        };
        // one group a unit, of the largest size on a GPU
        let of_size = |v: &usize| self.info.kind == Kind::Gpu || *v == usual.variant;
        let start = curves.iter().map(|(v, _)| *v).filter(of_size).max_by_key(|&v| variants[v].group_size);
        let start = Candidate { variant: start.unwrap_or(usual.variant), groups_per_unit: 1 };

        let best_of = |(v, curve): &(usize, Curve)| {
            let best = &curve.points[fastest(&curve.points)?];
            Some((Candidate { variant: *v, groups_per_unit: best.groups_per_unit }, best.timing.median))
        };
        let mut best: Vec<(Candidate, f64)> = curves.iter().filter(|(v, _)| allowed(*v)).filter_map(best_of).collect();
        best.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut finalists = vec![usual, start];
        for (candidate, _) in best.into_iter().take(FINALISTS) {
            if !finalists.contains(&candidate) {
                finalists.push(candidate);
            }
        }
        finalists
    }

    /// The times of candidates, which take turns.
    fn in_turns<T: Real, A: Real>(
        &self,
        bed: &mut Bed<T, A>,
        variants: &[Variant<T, A>],
        kernel: &str,
        candidates: &[Candidate],
    ) -> Result<Vec<Timing>> {
        bed.refresh()?;
        let mut times = vec![Vec::new(); candidates.len()];
        for _ in 0..ROUNDS {
            for (candidate, times) in candidates.iter().zip(&mut times) {
                let variant = &variants[candidate.variant];
                if PRODUCTS.contains(&kernel) {
                    bed.recut(&variant.kernels.tuning)?;
                }
                let groups = candidate.groups_per_unit.min(self.most(bed, variant, kernel)) * self.units();
                times.extend(bed.times(&variant.kernels, kernel, groups, TURN)?);
            }
        }
        Ok(times.into_iter().map(timing).collect())
    }

    /// Measures the best of all curves again, in turns with the default, and chooses: of a product those whose row blocks
    /// are `cut` already, if they are. Gives the variant, too.
    fn last_round<T: Real, A: Real>(
        &self,
        bed: &mut Bed<T, A>,
        variants: &[Variant<T, A>],
        kernel: &str,
        curves: Vec<(usize, Curve)>,
        default: &Tuning,
        cut: Option<usize>,
    ) -> Result<(usize, KernelFound)> {
        let is_product = PRODUCTS.contains(&kernel);
        let allowed = |v: usize| !is_product || cut.is_none_or(|cut| v == cut);
        let finalists = self.finalists(variants, kernel, &curves, default, allowed);
        let timings = self.in_turns(bed, variants, kernel, &finalists)?;

        let usual = 0;
        let time = |k: &usize| timings[*k].median;
        let eligible = (0..finalists.len()).filter(|&k| allowed(finalists[k].variant));
        let best = eligible.min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(usual);
        let is_worth_it = time(&best) <= (1.0 - WORTH) * time(&usual);
        let winner = if is_worth_it || !allowed(finalists[usual].variant) { best } else { usual };

        let chosen = |k: usize| {
            let Candidate { variant, groups_per_unit } = finalists[k];
            let block_nnz = if is_product { variants[variant].block_nnz } else { 0 };
            let launch = Launch { group_size: variants[variant].group_size, groups_per_unit, block_nnz };
            Chosen { launch, timing: timings[k] }
        };
        let (bytes, flops) = bed.cost(kernel);
        let found = KernelFound {
            kernel: kernel.into(),
            bytes,
            flops,
            elements: bed.n(),
            curves: curves.into_iter().map(|(_, curve)| curve).collect(),
            one_per_unit: timings[1],
            default: chosen(usual),
            chosen: chosen(winner),
        };
        Ok((finalists[winner].variant, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
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
    fn a_block_with_a_halo() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([9, 9, 9]).unwrap();
        let parts: Vec<_> = split(&a, &row_ranges(&a, 3));
        let how = Search::FirstMinimum;
        let done = std::cell::Cell::new((0, 0));
        let progress = |now, all| done.set((now, all));
        let found = rank(&device, &a, (1, 3), "cube", Precision::F64, how, &progress).unwrap();
        assert_eq!((found.order, found.nnz, found.halo), (parts[1].n_owned(), parts[1].nnz(), parts[1].halo.len));
        assert_eq!((&*found.matrix, found.halo > 0), ("cube, rank 1 of 3", true));
        assert_eq!(done.get().0, done.get().1);
        let kernel = |name: &str| found.kernels.iter().find(|k| k.kernel == name).unwrap();
        // 4 bytes of an index, and 8 read and 8 written, for each element that the block sends
        assert_eq!(kernel("halo_pack").bytes, 20 * parts[1].halo.send.len() as u64);
        assert_eq!(kernel("spmv_csr").flops, 2 * parts[1].nnz() as u64);
    }
}
