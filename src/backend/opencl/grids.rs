//! How many groups a device's kernels run on: as tuning found, or as trials want.

use super::OpenClOps;
use crate::backend::Ops;
use crate::backend::opencl::trials::Tried;
use crate::device::Grid;
use crate::error::Result;
use crate::kernels::Launch;
use crate::real::Real;

impl<T: Real, A: Real> OpenClOps<T, A> {
    /// The grid of a vector kernel.
    pub(super) fn grid(&self, kernel: &'static str) -> Grid {
        self.grid_for(kernel, self.n_owned())
    }

    /// The grid of a kernel for `n` elements.
    pub(crate) fn grid_for(&self, kernel: &'static str, n: usize) -> Grid {
        self.tried(kernel, |launch| launch.grid(n))
    }

    /// The grid of a kernel for `count` row blocks.
    pub(crate) fn block_grid(&self, kernel: &'static str, count: usize) -> Grid {
        self.tried(kernel, |launch| launch.block_grid(count))
    }

    /// The grid that a launch gives, with the number of groups that trials want.
    fn tried(&self, kernel: &'static str, grid: impl Fn(Launch) -> Grid) -> Grid {
        let usual = self.kernels.tuning.launch(kernel);
        if self.kernels.tuning.is_set(kernel) {
            return grid(usual);
        }
        let most = grid(Launch { max_groups: usize::MAX, ..usual }).groups.div_ceil(self.units);
        let usual_per_unit = usual.max_groups / self.units;
        let groups_per_unit = self.trials.borrow_mut().groups_per_unit(kernel, usual_per_unit, most);
        let max_groups =
            if groups_per_unit == usual_per_unit { usual.max_groups } else { groups_per_unit * self.units };
        grid(Launch { max_groups, ..usual })
    }

    /// What trials have found since this was last asked.
    pub(crate) fn take_found(&self) -> Vec<Tried> {
        self.trials.borrow_mut().take_found()
    }

    /// Judges the trials whose iterations are done before `iteration`.
    pub(super) fn judge_trials(&self, iteration: u64) -> Result<()> {
        let enqueued = self.trials.borrow().is_enqueued(iteration);
        if let Some(last) = enqueued.filter(|&last| last <= self.known_done.get()) {
            self.take_timed(last)?;
            if self.trials.borrow_mut().end_round() {
                for tried in self.trials.borrow().found() {
                    let (kernel, groups) = (tried.kernel, tried.groups_per_unit);
                    log::info!(
                        "{}: {kernel} is launched with {groups} groups a unit from now on",
                        self.ctx.info().name
                    );
                }
            }
        }
        Ok(())
    }
}
