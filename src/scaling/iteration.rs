//! An iteration of conjugate gradients.

use serde::Serialize;

use super::exchange::{self, Way};
use super::halo::Halo;
use super::{Layout, Machine, System};
pub use crate::krylov::Method;
use crate::precond::Precond;

/// What the time of an iteration goes to, in seconds: what nothing else hides, so that the parts add up to all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// What kernels read and write, by the bandwidth of memory.
    pub kernels: f64,
    /// Their launches.
    pub launches: f64,
    /// To meet on a node or in a process.
    pub meeting: f64,
    /// Sums over processes.
    pub sums: f64,
    /// Halos.
    pub halo: f64,
    /// Of multigrid, levels that all ranks have alike, and to gather the first of them.
    pub coarse: f64,
}

impl Parts {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.kernels + self.launches + self.meeting + self.sums + self.halo + self.coarse
    }

    /// The largest part, and what it is.
    #[must_use]
    pub fn largest(&self) -> (&'static str, f64) {
        let all = [
            ("bandwidth", self.kernels),
            ("launches", self.launches),
            ("meeting", self.meeting),
            ("sums", self.sums),
            ("halo", self.halo),
            ("coarse levels", self.coarse),
        ];
        all.into_iter().fold(("bandwidth", 0.0), |most, one| if one.1 > most.1 { one } else { most })
    }

    /// Both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            kernels: self.kernels + other.kernels,
            launches: self.launches + other.launches,
            meeting: self.meeting + other.meeting,
            sums: self.sums + other.sums,
            halo: self.halo + other.halo,
            coarse: self.coarse + other.coarse,
        }
    }
}

/// An iteration, and what limits it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Iteration {
    /// Its time, in seconds.
    pub seconds: f64,
    /// The largest part.
    pub limited_by: &'static str,
    /// The parts.
    pub parts: Parts,
}

impl From<Parts> for Iteration {
    fn from(parts: Parts) -> Self {
        Self { seconds: parts.total(), limited_by: parts.largest().0, parts }
    }
}

/// Launches of an iteration: the product, and the step.
const LAUNCHES: f64 = 2.0;

/// Iterations to a relative residual of 10⁻⁸ with the diagonal, on a cube of so many points along a side: 2.4 for each, from what was measured
/// (159, 249, 516 and 1109 for 64, 100, 215 and 464).
#[must_use]
pub fn iterations(system: &System) -> f64 {
    (2.4 * system.side()).ceil()
}

/// What a rank's kernels read and write: of the product, and in all, by the byte rule of the method.
fn bytes(system: &System, layout: &Layout, method: Method) -> [f64; 2] {
    let rows = system.rows / layout.gpus as f64;
    let entries = system.entry_bytes() * system.entries() / layout.gpus as f64;
    // x, y and 4 bytes for where a row begins, or what stands for it
    [20.0 * rows + entries, method.row_bytes(Precond::None, 30) * rows + entries]
}

/// An iteration of `cg`, `cg-single-reduction` or `cg-pipelined` without a preconditioner:
///
/// ```text
/// one GPU                    k
/// GPUs of one process        max(m, e m + k + h)
/// several, through the host  s + k + halo + sum
/// several, direct            max(m, e m + k + h) + what is left of the wire behind the product + sum
/// ```
///
/// k is the bytes by the bandwidth, and the launches. `cg-pipelined` hides the sum over processes behind the product and the halo.
#[must_use]
pub fn iteration(machine: &Machine, system: &System, layout: &Layout, method: Method, way: Way) -> Iteration {
    let [of_product, kernels] = bytes(system, layout, method).map(|bytes| bytes / (1e9 * machine.gpu.bandwidth_gb_s));
    let launches = 1e-6 * LAUNCHES * machine.gpu.launch_us;
    let alone = Parts { kernels, launches, ..Parts::default() };
    if layout.gpus == 1 {
        return alone.into();
    }
    let halo = Halo::of(way.cut(), system, layout);
    let sum = exchange::sum(machine, layout, way);
    let is_one_process = layout.processes == 1;
    if is_one_process || way == Way::Direct {
        let meeting = exchange::meeting(machine, layout.on_node);
        let with_halo = 1e-9 * machine.node.meet_halo_ns * halo.elements();
        let busy = kernels + launches + with_halo;
        let waiting = (machine.node.meet_exposed * meeting).max(meeting - busy);
        let wire = exchange::wire(machine, layout, &halo, 8.0);
        let behind = if method == Method::CgPipelined { of_product } else { 0.0 };
        let parts = Parts {
            meeting: waiting,
            sums: (sum - behind).max(0.0),
            halo: with_halo + (wire - of_product).max(0.0),
            ..alone
        };
        return parts.into();
    }
    let meeting = exchange::meeting_of_processes(machine, layout.of_process);
    let halo = exchange::through_host(machine, layout, &halo, 8.0);
    let behind = if method == Method::CgPipelined { of_product + halo } else { 0.0 };
    Parts { meeting, halo, sums: (sum - behind).max(0.0), ..alone }.into()
}

/// The same of `cg` on GPUs of one process that meet by the host (`host-staged`): e m + max((1 − e) m + halo, k).
#[must_use]
pub fn by_host(machine: &Machine, system: &System, layout: &Layout) -> f64 {
    let [_, kernels] = bytes(system, layout, Method::Cg).map(|bytes| bytes / (1e9 * machine.gpu.bandwidth_gb_s));
    let kernels = kernels + 1e-6 * LAUNCHES * machine.gpu.launch_us;
    let meeting = exchange::meeting_by_host(machine, layout.gpus);
    let halo = 1e-9 * machine.node.host_halo_ns * Halo::of(Way::Today.cut(), system, layout).elements();
    let exposed = machine.node.host_exposed;
    exposed * meeting + ((1.0 - exposed) * meeting + halo).max(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: f64, gpus: u64, method: Method, way: Way) -> Iteration {
        let machine = Machine::default();
        iteration(&machine, &System::poisson3d(rows), &Layout::of(&machine, gpus), method, way)
    }

    #[test]
    fn one_gpu_by_hand() {
        let found = of(1e8, 1, Method::Cg, Way::Today);
        let expected = 68e8 / 3950e9 + 8e-6;
        assert!((found.seconds - expected).abs() < 1e-12, "{found:?}");
        assert_eq!((found.limited_by, of(1e5, 1, Method::Cg, Way::Today).limited_by), ("bandwidth", "launches"));
    }

    #[test]
    fn parts_are_all_of_it() {
        for gpus in [1, 2, 8, 16, 1000, 10_000] {
            for way in Way::ALL {
                for method in [Method::Cg, Method::CgSingleReduction, Method::CgPipelined] {
                    let found = of(1e10, gpus, method, *way);
                    let Parts { kernels, launches, meeting, sums, halo, coarse } = found.parts;
                    let all = [kernels, launches, meeting, sums, halo, coarse];
                    assert!(all.iter().all(|part| *part >= 0.0 && part.is_finite()), "{found:?}");
                    assert!((all.iter().sum::<f64>() - found.seconds).abs() < 1e-15);
                }
            }
        }
    }

    #[test]
    fn ways_of_one_node_are_alike() {
        for gpus in [1, 2] {
            let [a, b] = [Way::Today, Way::Direct].map(|way| of(1e8, gpus, Method::Cg, way).seconds);
            assert_eq!(a, b);
        }
    }

    /// Of slabs, the halo is the same whatever the number of ranks; that is what breaks first.
    #[test]
    fn slabs_break_first() {
        let found = of(1e12, 10_000, Method::Cg, Way::Today);
        assert_eq!(found.limited_by, "halo");
        assert!(found.seconds > 0.3, "{found:?}");
        let [blocks, direct] = [Way::Blocks, Way::Direct].map(|way| of(1e12, 10_000, Method::Cg, way));
        assert!(blocks.seconds < 0.02 * found.seconds && direct.seconds < blocks.seconds, "{blocks:?} {direct:?}");
        assert_eq!(direct.limited_by, "bandwidth");
    }

    #[test]
    fn a_pipeline_hides_sums() {
        let [plain, pipelined] = [Method::Cg, Method::CgPipelined].map(|m| of(1e12, 10_000, m, Way::Direct).parts);
        assert!(plain.sums > 5e-6 && pipelined.sums == 0.0);
    }

    #[test]
    fn iterations_by_hand() {
        let found = [64.0, 215.0, 464.0].map(|n: f64| iterations(&System::poisson3d(n.powi(3))));
        assert_eq!(found, [154.0, 516.0, 1114.0]);
    }
}
