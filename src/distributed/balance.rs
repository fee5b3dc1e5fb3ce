//! Boundaries of rows such that all parts cost as much, or as their shares say.

use super::nodes::{between, unknowns};
use super::rows::Rows;
use crate::comm::processes::{Processes, gathered};
use crate::error::Result;

/// By how much the costliest part may exceed the mean before rows are moved.
const TOLERABLE: f64 = 1.05;

/// Boundaries such that the work of each part, entries and 7 for each row, is in proportion to its share, up to one row: the first
/// row of each part, and the end; the same on all processes. There may be more parts than processes. Collective.
///
/// # Errors
/// A failed process.
///
/// # Panics
/// If there is no share above 0, or one that is negative or not finite.
pub(crate) fn balanced(processes: &dyn Processes, rows: &Rows, shares: &[f64]) -> Result<Vec<u64>> {
    let whole: f64 = shares.iter().sum();
    assert!(shares.iter().all(|share| *share >= 0.0) && whole > 0.0 && whole.is_finite(), "shares {shares:?}");
    let (own, own_cost) = (processes.process(), rows.cost());
    let costs = gathered(processes, own_cost)?;
    let (before, all): (u64, u64) = (costs[..own].iter().sum(), costs.iter().sum());
    let [first, last] = [rows.starts[0], rows.starts[rows.starts.len() - 1]];
    let mut share_before = 0.0;
    let targets = shares.iter().map(|share| {
        share_before += share;
        // of all shares, the product and the quotient need not give all
        if share_before < whole { ((all as f64 * share_before / whole) as u64).min(all) } else { all }
    });
    // a row costs more than nothing, so that one process alone has the first row with so much before it
    let cut = |target: u64| match target.checked_sub(before) {
        Some(target) if 0 < target && target <= own_cost => rows.starts[own] + first_with(rows, target),
        _ => 0,
    };
    let found: Vec<u64> = targets.map(cut).collect();
    let mut of_all = vec![0; found.len() * processes.count()];
    processes.gather(&found, &mut of_all)?;
    let mut cuts = vec![first; shares.len() + 1];
    for (k, cut) in of_all.into_iter().enumerate() {
        let cut_here = &mut cuts[1 + k % shares.len()];
        *cut_here = cut.max(*cut_here);
    }
    debug_assert!(cuts.is_sorted() && cuts[shares.len()] == last, "{cuts:?}");
    Ok(cuts)
}

/// The first of the own rows before which so much work is, or the end.
fn first_with(rows: &Rows, cost: u64) -> u64 {
    let (mut low, mut high) = (0, rows.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if rows.cost_before(middle) < cost { low = middle + 1 } else { high = middle }
    }
    low as u64
}

/// The same rows, moved if one process has much more work than the others, or where nodes of several unknowns are cut. Collective.
///
/// # Errors
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::Usage`](crate::Error::Usage) if a process had 2³² rows; a failed process.
pub(super) fn rebalanced(processes: &dyn Processes, rows: Rows) -> Result<Rows> {
    let costs = gathered(processes, rows.cost())?;
    let mean = costs.iter().map(|cost| *cost as f64).sum::<f64>() / costs.len() as f64;
    let is_even = costs.iter().all(|cost| *cost as f64 <= TOLERABLE * mean);
    let starts = match is_even {
        true => rows.starts.clone(),
        false => balanced(processes, &rows, &vec![1.0; processes.count()])?,
    };
    let starts = between(&starts, unknowns(processes, &rows)?);
    if starts == rows.starts { Ok(rows) } else { rows.moved(processes, starts) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rows::tests::divided;
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::matrix::Csr;
    use crate::partition::row_ranges_by;

    #[test]
    fn beyond_32_bits() {
        let base: u64 = 1 << 40;
        let found = processes(2, |all| {
            let len = [4, 12][all.process()];
            let rows = Rows {
                n_rows: base + 16,
                n_cols: 1,
                starts: vec![base, base + 4, base + 16],
                row_ptr: (0..=len).collect(),
                columns: vec![0; len],
                values: vec![1.0; len],
            };
            let by = |shares: &[f64]| balanced(&*all, &rows, shares).unwrap();
            let moved = rebalanced(&*all, rows.clone()).unwrap();
            assert_eq!((moved.starts.clone(), moved.len()), (vec![base, base + 8, base + 16], 8));
            (by(&[1.0, 1.0]), by(&[1.0, 0.0, 2.0, 1.0]), by(&[0.0, 1.0]))
        });
        let expected = (
            vec![base, base + 8, base + 16],
            vec![base, base + 4, base + 4, base + 12, base + 16],
            vec![base, base, base + 16],
        );
        assert!(found.into_iter().all(|found| found == expected));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn as_by_one(
            lens in prop::collection::vec(0usize..30, 0..60),
            count in 1usize..6,
            cuts in prop::collection::vec(any::<usize>(), 4),
            shares in prop::collection::vec(0u8..9, 1..9),
            one in 0usize..9,
        ) {
            let n = lens.len();
            let row_ptr: Vec<usize> = (0..=n).map(|i| lens[..i].iter().sum()).collect();
            let columns = lens.iter().flat_map(|len| 0..*len as u32).collect();
            let a = Csr::new(n, 30, row_ptr.clone(), columns, vec![1.0; row_ptr[n]]).unwrap();
            let mut shares: Vec<f64> = shares.into_iter().map(f64::from).collect();
            let one = one % shares.len();
            shares[one] += 0.3;
            let mut starts: Vec<u64> = cuts[..count - 1].iter().map(|cut| (cut % (n + 1)) as u64).collect();
            starts.extend([0, n as u64]);
            starts.sort_unstable();
            let parts = divided(&a, &starts);
            let found = processes(count, |all| balanced(&*all, &parts[all.process()], &shares).unwrap());
            let mut expected = vec![0];
            expected.extend(row_ranges_by(&a, &shares).iter().map(|range| range.end as u64));
            prop_assert!(found.iter().all(|found| *found == expected), "{:?} {:?}", found, expected);
        }
    }
}
