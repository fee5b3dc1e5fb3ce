//! Iterations by the diagonal that multigrid takes as long as, with its set-up.
//!
//! Of constants and numbers of the matrix alone, so that equal runs decide alike. Both sides are as fast as the memory is, so that their ratio
//! holds for slower devices, too; the constants are those of an H200, and of two cores of a server.

use super::memory::FEW_ROWS;
use crate::device::{Info, Kind};
use crate::krylov::Method;
use crate::matrix::Csr;
use crate::operator::Format;
use crate::precond::amg::unsymmetric::is_near_m;
use crate::precond::{Precond, amg};
use crate::runtime::patience::Patience;
use crate::runtime::{RankInfo, Setup};

/// Iterations that multigrid should take at the most: with more to come, the diagonal goes on.
pub(super) const OF_TRIAL: u64 = 200;

/// What decides.
struct Rates {
    /// Seconds to leave one and set the other up, and 25 iterations of that: at least, for each row, and for each entry.
    start: f64,
    row: f64,
    entry: f64,
    /// Seconds of an iteration by the diagonal at least, for each of its products, and for each byte.
    iteration: f64,
    byte: f64,
}

const OF_GPU: Rates = Rates { start: 0.04, row: 0.0, entry: 1.2e-9, iteration: 11e-6, byte: 1.0 / 4.2e12 };
/// Ranks may share large levels, or all have all.
const OF_GPUS: Rates = Rates { start: 0.06, row: 0.0, entry: 1.0e-9, iteration: 20e-6, byte: 1.0 / 4.2e12 };
const OF_PROCESSOR: Rates = Rates { start: 0.005, row: 0.0, entry: 480e-9, iteration: 20e-6, byte: 1.0 / 20e9 };
/// Of levels of a lattice, which are set up in hardly any time, and take ten iterations.
const OF_GPU_ON_LATTICE: Rates = Rates { start: 0.011, row: 1.2e-9, entry: 0.0, ..OF_GPU };
const OF_PROCESSOR_ON_LATTICE: Rates = Rates { start: 0.01, row: 450e-9, entry: 0.0, ..OF_PROCESSOR };

/// Whether none is a GPU.
pub(super) fn are_processors(ranks: &[RankInfo]) -> bool {
    ranks.iter().all(|rank| rank.kind != Kind::Gpu)
}

/// Whether these devices have multigrid at its best: all of them GPUs, or processors.
pub(super) fn is_for(devices: &[Option<Info>]) -> bool {
    let is_gpu = |device: &Option<Info>| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu);
    devices.iter().all(is_gpu) || !devices.iter().any(is_gpu)
}

/// That number, if these ranks can have multigrid at its best: GPUs, or processors.
pub(super) fn of(setup: &Setup, ranks: &[RankInfo], is_on_lattice: bool) -> Option<u64> {
    let are_gpus = ranks.iter().all(|rank| rank.kind == Kind::Gpu);
    let (rates, share) = match ranks {
        all if are_processors(all) => (alone(Kind::Cpu, is_on_lattice), 1.0),
        [_] if are_gpus => (alone(Kind::Gpu, is_on_lattice), 1.0),
        // the slowest makes the others wait
        all if are_gpus => (OF_GPUS, all.iter().map(|rank| rank.share).fold(0.0, f64::max)),
        _ => return None,
    };
    let sum = |of: fn(&RankInfo) -> usize| ranks.iter().map(of).sum::<usize>();
    let size = (sum(|rank| rank.rows), sum(|rank| rank.nnz));
    (!setup.is_complex).then(|| iterations(&rates, setup, ranks[0].format, size, share))?
}

/// What decides for one device, or processors.
fn alone(kind: Kind, is_on_lattice: bool) -> Rates {
    match (kind, is_on_lattice) {
        (Kind::Gpu, false) => OF_GPU,
        (Kind::Gpu, true) => OF_GPU_ON_LATTICE,
        (_, false) => OF_PROCESSOR,
        (_, true) => OF_PROCESSOR_ON_LATTICE,
    }
}

/// The same for a system of so many rows and entries that are stored so, of which a rank has a share.
fn iterations(rates: &Rates, setup: &Setup, format: Format, (n, nnz): (usize, usize), share: f64) -> Option<u64> {
    if n < FEW_ROWS {
        return None;
    }
    let products = setup.method.products(setup.precond).iter().sum::<u64>().max(1) as f64;
    let of_entries = products * format.entry_bytes() * nnz as f64;
    let bytes = of_entries + setup.method.row_bytes(setup.precond, setup.restart) * n as f64;
    let iterations = (rates.start + rates.row * n as f64 + rates.entry * nnz as f64)
        / (rates.iteration * products + rates.byte * bytes * share);
    Some(iterations.ceil() as u64)
}

/// Iterations of `cg` or `idr` by the diagonal after which [`Method::Auto`] first looks whether multigrid had better go on, for a real matrix: on a GPU
/// that stores it so and works alone, or by processors. `None` if it never looks.
#[must_use]
pub fn first_look(kind: Kind, format: Format, a: &Csr, method: Method) -> Option<u64> {
    let is_symmetric = match method {
        Method::Cg => true,
        Method::Idr if is_near_m(a) => false,
        _ => return None,
    };
    let (rates, rows, entries) = (alone(kind, is_symmetric && amg::is_on_lattice(a)), a.n_rows(), a.nnz());
    let by_diagonal = Setup { method, precond: Precond::Jacobi, ..Setup::default() };
    let iterations = iterations(&rates, &by_diagonal, format, (rows, entries), 1.0)?;
    Some(Patience::new(iterations, 0).next())
}
