//! What is tried of a kernel's launches, but for the number of groups.

use super::device::{MAX_SEARCHED_PER_UNIT, Work};
use super::found::{Launch, Search};
use super::kernel_bench::{Candidate, KernelBench};
use crate::device::Kind;
use crate::error::Result;
use crate::kernels::{self, PRODUCTS, Shape, Tuning};
use crate::real::Real;

/// Entries of a row block that are tried.
const BLOCKS: &[usize] = &[1024, 2048, 4096];

impl Work<'_> {
    /// The sizes of groups that are tried.
    fn sizes(&self, preferred: usize, usual: usize) -> Vec<usize> {
        let largest = 1 << self.info.max_work_group.max(1).ilog2();
        let mut sizes: Vec<usize> = match (self.how, self.info.kind) {
            // powers of two above what the device works on at a time, which has never been best, to the most that it takes
            (_, Kind::Gpu) => std::iter::successors(Some(2 * preferred.next_power_of_two()), |size| Some(2 * size))
                .take_while(|&size| size <= largest)
                .collect(),
            (Search::FirstMinimum, _) => vec![usual],
            (Search::Refine, _) => vec![1, 64],
        };
        sizes.push(usual);
        sizes.retain(|&size| size <= largest);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// What is tried, but for the number of groups: for products, and for the other kernels.
    pub(super) fn candidates<T: Real, A: Real>(
        &self,
        bench: &mut KernelBench<'_, T, A>,
        default: &Tuning,
    ) -> Result<[Vec<Candidate>; 2]> {
        let usual_size = default.launch("dot_partial").group_size;
        let usual =
            Launch { group_size: usual_size, groups_per_unit: 1, block_nnz: default.block_nnz, items_per_row: 1 };
        let preferred = bench.preferred_multiple(usual)?;
        let room = self.info.local_memory_bytes as usize / (2 * size_of::<T>());
        let [mut products, mut vectors] = [const { Vec::<Candidate>::new() }; 2];
        for group_size in self.sizes(preferred, usual_size) {
            let mut blocks: Vec<usize> = match (Shape::of_group(group_size), self.how) {
                (Shape::Cpu, _) => vec![1],
                (Shape::Gpu, Search::FirstMinimum) => vec![default.block_nnz.max(group_size)],
                (Shape::Gpu, _) => BLOCKS.iter().copied().filter(|&nnz| nnz >= group_size && nnz <= room).collect(),
            };
            // larger ones would not fit either
            let launch = Launch { group_size, block_nnz: default.block_nnz.max(group_size), ..usual };
            let candidate = Candidate { compiled: bench.compile(&bench.uniform(launch))?, launch };
            if group_size > usual_size && !bench.fits(&candidate, "dot_partial")? {
                break;
            }
            if group_size == usual_size {
                blocks.push(default.block_nnz);
            }
            blocks.sort_unstable();
            blocks.dedup();
            let mut first = None;
            for &block_nnz in &blocks {
                let launch = Launch { group_size, block_nnz, ..usual };
                let candidate = Candidate { compiled: bench.compile(&bench.uniform(launch))?, launch };
                first.get_or_insert(candidate.compiled);
                products.push(candidate);
            }
            // row blocks are no matter of vectors
            let launch = Launch { group_size, block_nnz: 0, ..usual };
            vectors.extend(first.map(|compiled| Candidate { compiled, launch }));
        }
        Ok([products, vectors])
    }

    /// A product's candidate with other numbers of work-items for a row: powers of two, up to the mean length of rows.
    pub(super) fn with_other_items(&self, candidate: Candidate) -> Vec<Candidate> {
        let Launch { group_size, items_per_row, .. } = candidate.launch;
        if self.how == Search::FirstMinimum || group_size == 1 {
            return Vec::new();
        }
        let mean = self.part.nnz().div_ceil(self.part.n_owned().max(1));
        let most = mean.next_power_of_two().min(group_size);
        let items = std::iter::successors(Some(1), |items| Some(2 * items)).take_while(|&items| items <= most);
        let others = items.filter(|&items| items != items_per_row);
        others
            .map(|items_per_row| Candidate { launch: Launch { items_per_row, ..candidate.launch }, ..candidate })
            .collect()
    }

    /// The launch without tuning, which need not be among the `candidates` that are tried.
    pub(super) fn usual<T: Real, A: Real>(
        &self,
        bench: &mut KernelBench<'_, T, A>,
        candidates: &[Candidate],
        kernel: &'static str,
        default: &Tuning,
    ) -> Result<Candidate> {
        let kernels::Launch { group_size, max_groups } = default.launch(kernel);
        let block_nnz = if PRODUCTS.contains(&kernel) { default.block_nnz } else { 0 };
        let groups_per_unit = max_groups / bench.units();
        let launch = Launch { group_size, groups_per_unit, block_nnz, items_per_row: default.items_per_row };
        let is_usual = |candidate: &&Candidate| Launch { groups_per_unit, ..candidate.launch } == launch;
        let compiled = match candidates.iter().find(is_usual) {
            Some(candidate) => candidate.compiled,
            None => {
                let mut tuning = bench.uniform(Launch { block_nnz: default.block_nnz, ..launch });
                let max_groups = MAX_SEARCHED_PER_UNIT * bench.units();
                tuning.set(kernel, kernels::Launch { group_size, max_groups });
                bench.compile(&tuning)?
            }
        };
        Ok(Candidate { compiled, launch })
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::Watch;
    use super::*;
    use crate::device::{Context, list};
    use crate::matrix::gallery;
    use crate::partition::{row_ranges, split};

    #[test]
    fn what_is_tried_for_a_row() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([8, 8, 8]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let items = |how, group_size, items_per_row| -> Vec<usize> {
            let launch = Launch { group_size, groups_per_unit: 3, block_nnz: 1024, items_per_row };
            let work = Work { info: &device, part: &part, how, watch: Watch::default() };
            let others = work.with_other_items(Candidate { compiled: 5, launch });
            assert!(others.iter().all(|one| Launch { items_per_row, ..one.launch } == launch && one.compiled == 5));
            others.iter().map(|one| one.launch.items_per_row).collect()
        };
        // rows have 6.25 entries on average: 7, and the power of two above
        assert_eq!(items(Search::Refine, 64, 1), [2, 4, 8]);
        assert_eq!(items(Search::Refine, 64, 4), [1, 2, 8]);
        assert_eq!(items(Search::Refine, 4, 1), [2, 4]);
        assert_eq!([items(Search::Refine, 1, 1), items(Search::FirstMinimum, 64, 1)], [[0; 0]; 2]);
    }

    #[test]
    fn the_launch_without_tuning_is_the_one_that_is_measured() {
        let device = list().devices.remove(0);
        let a = gallery::poisson3d([5, 5, 5]).unwrap();
        let part = split(&a, &row_ranges(&a, 1)).remove(0);
        let default = Tuning::default_for(&device, Shape::Gpu);
        let work = Work { info: &device, part: &part, how: Search::Refine, watch: Watch::default() };
        let mut bench =
            KernelBench::<f64, f64>::new(Context::open(&device).unwrap(), &part, &default, Watch::default()).unwrap();
        for kernel in ["dot_partial", "next_iterate", "spmv_dot_csr"] {
            let kernels::Launch { group_size, max_groups } = default.launch(kernel);
            let candidate = work.usual(&mut bench, &[], kernel, &default).unwrap();
            let launch = candidate.launch;
            assert_eq!(launch.group_size, group_size, "{kernel}");
            assert_eq!(launch.groups_per_unit * bench.units(), max_groups, "{kernel}");
            assert!(
                bench.fits(&candidate, kernel).unwrap()
                    && bench.measure(&candidate, kernel, 1).unwrap().timing.median > 0.0
            );
            assert_eq!(work.usual(&mut bench, &[candidate], kernel, &default).unwrap(), candidate, "{kernel}");
        }
    }
}
