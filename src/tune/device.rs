//! Tunes all kernels on one device.

use std::ops::Range;
use std::time::Instant;

use super::contest::Contest;
use super::found::{Curve, DeviceFacts, Found, KernelFound, Launch, Search};
use super::kernel_bench::{Candidate, KernelBench};
use super::search::search;
use super::store::Size;
use super::watch::Watch;
use crate::bandwidth;
use crate::device::{Context, Info};
use crate::error::Result;
use crate::kernels::{FAMILIES, PRODUCTS, Shape, Tuning};
use crate::matrix::Csr;
use crate::partition::{Part, row_ranges, split};
use crate::real::{Precision, Real};

/// The most groups for each compute unit that are searched, where a kernel is timed alone, and that are believed of
/// what is kept.
pub const MAX_SEARCHED_PER_UNIT: usize = 64;

/// Finds launch parameters for every kernel on a device, working on the block of rows of `a` that rank `k` of `ranks` has in a
/// solve on so many devices, with the columns of its halo; `matrix` says what `a` is.
///
/// # Errors
/// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory) if the block and seven vectors do not fit;
/// [`Error::Interrupted`](crate::Error::Interrupted) if `watch` says so; errors of the device.
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

/// The same as [`rank`] for the block of a rank, called `name`.
///
/// # Errors
/// As [`rank`].
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
        device: DeviceFacts::from(info),
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

/// What is to be done.
pub(super) struct Work<'a> {
    pub(super) info: &'a Info,
    pub(super) part: &'a Part<'a>,
    pub(super) how: Search,
    pub(super) watch: Watch<'a>,
}

impl Work<'_> {
    fn run<T: Real, A: Real>(&self) -> Result<Vec<KernelFound>> {
        let ctx = Context::open(self.info)?;
        let default = Tuning::default_for(self.info, Shape::of(self.info));
        let mut bench = KernelBench::<T, A>::new(ctx, self.part, &default, self.watch)?;
        let [products, vectors] = self.candidates(&mut bench, &default)?;
        let all_names = FAMILIES.iter().flat_map(|(_, _, kernels)| *kernels).copied();
        let names: Vec<&'static str> = all_names.filter(|name| bench.workload.has(name)).collect();
        let candidates = |name: &str| if PRODUCTS.contains(&name) { &products } else { &vectors };
        // a part for each candidate of each kernel, and one for each kernel's last round
        let all = names.iter().map(|name| candidates(name).len() + 1).sum();
        let mut done = 0;
        let mut step = || {
            done += 1;
            self.watch.update(done, all);
        };

        let mut contests = Vec::new();
        for &kernel in &names {
            let default = self.usual(&mut bench, candidates(kernel), kernel, &default)?;
            let mut contest = Contest { kernel, curves: Vec::new(), default, best: default };
            // the largest first: the search of the dissertation is at the largest size that the kernel can have
            for &candidate in candidates(kernel).iter().rev() {
                let is_wanted = self.how != Search::FirstMinimum || contest.curves.is_empty();
                if is_wanted && bench.fits(&candidate, kernel)? {
                    let curve = self.curve(&mut bench, &candidate, kernel)?;
                    contest.curves.push((candidate, curve));
                }
                step();
            }
            contests.push(contest);
        }

        let mut found = self.rounds(&mut bench, contests, &mut step)?;
        found.sort_by_key(|found| names.iter().position(|&name| name == found.kernel));
        Ok(found)
    }

    /// Searches for the number of groups of one candidate.
    pub(super) fn curve<T: Real, A: Real>(
        &self,
        bench: &mut KernelBench<'_, T, A>,
        candidate: &Candidate,
        kernel: &str,
    ) -> Result<Curve> {
        let most = bench.most(candidate, kernel)?;
        let points = search(self.how, most, |groups_per_unit| bench.measure(candidate, kernel, groups_per_unit))?;
        let Launch { group_size, block_nnz, .. } = candidate.launch;
        Ok(Curve { group_size, block_nnz, points })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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
        let ended = super::rank(&device, &a, (0, 1), "cube", Precision::F64, Search::FirstMinimum, watch);
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
        assert!(kernel("spmv_csr").bytes >= 12 * parts[1].nnz() as u64);
    }

    /// What two ranks need counts twice in the message.
    #[test]
    fn a_block_that_sends_more_than_it_has() {
        let device = list().devices.remove(0);
        let a: gallery::Spec = "random-spd:120".parse().unwrap();
        let a = a.build().unwrap();
        let halo = split(&a, &row_ranges(&a, 3)).remove(1).halo;
        let found =
            rank(&device, &a, (1, 3), "random", Precision::F64, Search::FirstMinimum, Watch::default()).unwrap();
        assert!(halo.send.len() > found.order, "{} of {}", halo.send.len(), found.order);
        let bytes = |name: &str| found.kernels.iter().find(|k| k.kernel == name).unwrap().bytes;
        assert_eq!(bytes("halo_pack"), 20 * halo.send.len() as u64);
    }
}
