//! On how many GPUs multigrid is worth it.

use crate::device::{Choice, Info, Kind, Rejected};
use crate::matrix::Csr;
use crate::precond::Precond;
use crate::runtime::{Placement, ShareSource, Whole, memory_check};

/// Entries for each GPU, beside the first, that levels have to have. On one H200 and on two, levels and iterations took 0.09 and 0.10 s for 69
/// million entries, 0.25 and 0.23 for 228 million, 0.79 and 0.50 for 698 million.
const ENTRIES: usize = 100_000_000;

/// Fewer of the GPUs that were chosen by iterations, where multigrid is next and was left to choose; and why others are left out. Levels of
/// lattices take so little that one does them, and those of nodes with several unknowns, and of matrices that are not symmetric, are not shared at all.
pub(crate) fn for_multigrid(whole: &Whole, rows: &Csr, placement: Placement) -> (Placement, Vec<Rejected>) {
    let devices = &placement.devices;
    let is_gpu = |device: &Option<Info>| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu);
    let is_next = whole.setup.precond == Precond::Amg && whole.setup.applies_given();
    let is_open = whole.setup.devices == Choice::Auto && whole.setup.shares.is_none();
    // several processes have theirs already
    if whole.share.is_some() || devices.len() == 1 || !is_next || !is_open || !devices.iter().all(is_gpu) {
        return (placement, Vec::new());
    }
    let mut count = (rows.nnz() / ENTRIES).clamp(1, devices.len());
    if count > 1 && (whole.is_on_lattice() || !whole.is_symmetric || !whole.near_null(rows).is_constant()) {
        count = 1;
    }
    let is_enough = count > 1 || memory_check::holds(rows, devices[0].as_ref(), &whole.setup);
    if count == devices.len() || !is_enough {
        return (placement, Vec::new());
    }
    let (kept, others) = devices.split_at(count);
    let reason = "multigrid takes no less time with more GPUs";
    let left_out = others.iter().flatten().map(|device| Rejected { device: device.clone(), reason: reason.into() });
    let ranges = whole.row_ranges(rows, &vec![1.0; count], kept);
    let fewer = Placement { devices: kept.to_vec(), rows: ranges, source: ShareSource::Even };
    (fewer, left_out.collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::list;
    use crate::krylov::Method;
    use crate::matrix::gallery;
    use crate::runtime::Setup;
    use crate::tune::store::Store;

    #[test]
    fn small_systems_have_one() {
        let device = list().devices.remove(0);
        let gpu = |index| {
            let mut gpu = device.clone();
            (gpu.index, gpu.kind) = (index, Kind::Gpu);
            Some(gpu)
        };
        let a = Arc::new(gallery::poisson2d([20, 20]).unwrap());
        let auto = Setup { method: Method::Cg, precond: Precond::Amg, devices: Choice::Auto, ..Setup::default() };
        let placed = |setup: &Setup, devices: Vec<Option<Info>>| {
            let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, setup, Store::none());
            let rows = whole.row_ranges(&a, &vec![1.0; devices.len()], &devices);
            let (placement, left_out) =
                for_multigrid(&whole, &a, Placement { devices, rows, source: ShareSource::Even });
            assert_eq!(placement.devices.len(), placement.rows.len());
            assert_eq!(placement.rows.last().unwrap().end, 400);
            (placement.devices.len(), left_out.len())
        };
        assert_eq!(placed(&auto, vec![gpu(0), gpu(1), gpu(2)]), (1, 2));
        assert_eq!(placed(&auto, vec![gpu(0)]), (1, 0));
        assert_eq!(placed(&auto, vec![gpu(0), None]), (2, 0));
        assert_eq!(placed(&Setup { precond: Precond::Jacobi, ..auto.clone() }, vec![gpu(0), gpu(1)]), (2, 0));
        let told = Setup { devices: Choice::List(Vec::new()), ..auto };
        assert_eq!(placed(&told, vec![gpu(0), gpu(1)]), (2, 0));
    }
}
