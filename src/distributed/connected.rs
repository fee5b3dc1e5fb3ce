//! Which sets of rows of several processes are connected.
//!
//! Each process has sets of its own rows, and knows which of them have a neighbour in a set of another process. Every set points to one with
//! a smaller name, at last to the smallest of all that it is connected with: in each round a set takes the pointer of its pointer, and what
//! its neighbours point to if that is smaller. So there are about as many rounds as the logarithm of the number of sets in a row, and a process
//! needs memory for its own sets and neighbours alone.
//!
//! Y. Zhang, A. Azad, Z. Hu, "FastSV: a distributed-memory connected component algorithm with fast convergence", SIAM PP 2020,
//! doi 10.1137/1.9781611976137.5.

use super::share::Share;
use crate::comm::processes::{any, exchange};
use crate::error::Result;

/// The smallest name of all sets that each own one is connected with. A set is named by one of its own rows; `names` rise. `neighbours` are own
/// sets, by their places, and names of others' next to them. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn smallest_names(share: &Share, names: &[u64], neighbours: &[(u32, u64)]) -> Result<Vec<u64>> {
    let (to_sets, others): (Vec<u32>, Vec<u64>) = neighbours.iter().copied().unzip();
    let mut pointers = names.to_vec();
    loop {
        let second = looked_up(share, names, &pointers, &pointers)?;
        let of_others = looked_up(share, names, &second, &others)?;
        let mut next = second.clone();
        let mut hooks: Vec<Vec<[u64; 2]>> = vec![Vec::new(); share.processes.count()];
        for (&set, &other) in to_sets.iter().zip(&of_others) {
            let (set, own) = (set as usize, second[set as usize]);
            next[set] = next[set].min(other);
            // what either points to learns of the other, too
            for [name, smaller] in [[pointers[set], other], [own, other], [other, own]] {
                if smaller < name {
                    hooks[share.process_of(name)].push([name, smaller]);
                }
            }
        }
        for [name, smaller] in exchange(&*share.processes, hooks)?.into_iter().flatten() {
            if let Ok(set) = names.binary_search(&name) {
                next[set] = next[set].min(smaller);
            }
        }
        let has_changed = next != pointers;
        pointers = next;
        if !any(&*share.processes, has_changed)? {
            return Ok(pointers);
        }
    }
}

/// What the owners of some sets have for them, of `values` for all sets of each process. Collective.
fn looked_up(share: &Share, names: &[u64], values: &[u64], wanted: &[u64]) -> Result<Vec<u64>> {
    let count = share.processes.count();
    let mut asked: Vec<Vec<u64>> = vec![Vec::new(); count];
    for name in wanted {
        asked[share.process_of(*name)].push(*name);
    }
    let value = |name: u64| names.binary_search(&name).map_or(name, |set| values[set]);
    let answers = exchange(&*share.processes, asked)?.into_iter().map(|names| names.into_iter().map(value).collect());
    let mut told: Vec<_> =
        exchange::<u64>(&*share.processes, answers.collect())?.into_iter().map(IntoIterator::into_iter).collect();
    Ok(wanted.iter().map(|name| told[share.process_of(*name)].next().unwrap_or(*name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::distributed::rows::tests::divided;
    use crate::matrix::Csr;

    /// Rows of a path that visits them in this order, each a set of its own.
    fn path(order: &[u32], starts: &[u64]) -> Vec<Vec<u64>> {
        let n = order.len();
        let ends = order.windows(2).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]);
        let (rows, columns): (Vec<u32>, Vec<u32>) = ends.unzip();
        let a = Csr::from_triplets(n, n, &rows, &columns, &vec![1.0; rows.len()]).unwrap();
        processes(starts.len() - 1, |all| {
            let rows = divided(&a, starts).swap_remove(all.process());
            let (share, window) = crate::distributed::share::Share::new(all, rows).unwrap();
            let names: Vec<u64> = share.own.clone().map(|place| share.global(place)).collect();
            let of_row = |k: usize| {
                let (columns, share) = (window.row(k + share.own.start).0, &share);
                columns.iter().map(move |&j| (k as u32, share.global(j as usize)))
            };
            let neighbours: Vec<_> = (0..names.len()).flat_map(of_row).collect();
            smallest_names(&share, &names, &neighbours).unwrap()
        })
    }

    #[test]
    fn paths_from_process_to_process() {
        // rows that go from one end to the other, and in any order
        let to_and_fro: Vec<u32> = (0..100).flat_map(|k| [k, 199 - k]).collect();
        let any: Vec<u32> = (0..211).map(|k| k * 77 % 211).collect();
        for order in [&to_and_fro, &any] {
            let n = order.len() as u64;
            for starts in [vec![0, n], vec![0, n / 2, n], vec![0, 0, 3, 3, n / 2, n]] {
                let found = path(order, &starts).concat();
                assert_eq!(found, vec![0; order.len()]);
            }
        }
    }
}
