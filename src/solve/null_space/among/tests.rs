//! The same null vectors as of one process, whatever the rows of each.

use proptest::prelude::*;

use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::divided;
use crate::matrix::gallery::{Spec, random_vector};

/// What processes with these rows find: the dimension, and of a vector the means along each null vector in its place, and its norm.
fn found(a: &Csr, starts: &[u64], is_symmetric: bool) -> Option<(usize, Vec<f64>, f64)> {
    let v = random_vector(a.n_rows(), 5);
    let of_each = processes(starts.len() - 1, |all| {
        let process = all.process();
        let rows = divided(a, starts).swap_remove(process);
        let (share, window) = Share::new(all, rows).unwrap();
        let processes = &*share.processes;
        let found = NullSpace::of_share(&share, &window, is_symmetric).unwrap()?;
        let own = share.padded(&v[starts[process] as usize..starts[process + 1] as usize]);
        let means = found.means_among(processes, &own).unwrap();
        let norm = found.norm_among(processes, &means).unwrap();
        let mut along = own.clone();
        found.subtract(&means, &mut along);
        let along = share.own.clone().map(|k| own[k] - along[k]).collect::<Vec<_>>();
        Some((found.dimension(), along, norm))
    });
    assert!(of_each.iter().all(|one| one.is_some() == of_each[0].is_some()));
    let of_each: Vec<_> = of_each.into_iter().flatten().collect();
    let (dimension, _, norm) = of_each.first()?.clone();
    assert!(of_each.iter().all(|one| (one.0, one.2) == (dimension, norm)));
    Some((dimension, of_each.into_iter().flat_map(|one| one.1).collect(), norm))
}

fn check(a: &Csr, starts: &[u64], is_symmetric: bool, what: &str) {
    let alone = NullSpace::of(a, is_symmetric);
    let found = found(a, starts, is_symmetric);
    assert_eq!(found.is_some(), alone.is_some(), "{what}");
    let (Some(alone), Some((dimension, along, norm))) = (alone, found) else { return };
    let v = random_vector(a.n_rows(), 5);
    let means = alone.means(&v);
    let mut rest = v.clone();
    alone.subtract(&means, &mut rest);
    assert_eq!(dimension, alone.dimension(), "{what}");
    assert!((norm - alone.norm(&means)).abs() <= 1e-14 * norm, "{what}");
    for (k, along) in along.iter().enumerate() {
        assert!((along - (v[k] - rest[k])).abs() < 1e-15, "{what}: row {k}");
    }
}

#[test]
fn as_of_one() {
    let specs = ["neumann2d:9", "neumann2d:12x7,scramble=3", "poisson2d:8", "graph-laplacian:60", "tridiagonal:9"];
    for spec in specs {
        let a = spec.parse::<Spec>().unwrap().build().unwrap();
        let n = a.n_rows() as u64;
        for starts in [vec![0, n], vec![0, n / 2, n], vec![0, 0, n / 3, n / 3, n], vec![0, 1, 2, 3, n - 1, n]] {
            check(&a, &starts, true, &format!("{spec} from {starts:?}"));
        }
    }
    for spec in ["markov:9", "convection3d:4"] {
        let a = spec.parse::<Spec>().unwrap().build().unwrap();
        let n = a.n_rows() as u64;
        for starts in [vec![0, n], vec![0, n / 2, n], vec![0, 0, n / 3, n / 3, n], vec![0, 1, 2, 3, n - 1, n]] {
            check(&a, &starts, false, &format!("{spec} from {starts:?}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Graphs of few edges, so that there are many parts, some tied to the ground.
    #[test]
    fn of_any_graph(
        n in 1usize..24,
        edges in prop::collection::vec((0u32..24, 0u32..24, 1u32..5), 0..24),
        grounded in prop::collection::vec(0u32..24, 0..3),
        cuts in prop::collection::vec(0usize..24, 0..4),
    ) {
        let m = n as u32;
        let mut entries: Vec<(u32, u32, f64)> = grounded.into_iter().map(|i| (i % m, i % m, 1e-3)).collect();
        for (i, j, w) in edges {
            let (i, j, w) = (i % m, j % m, f64::from(w));
            entries.extend([(i, j, -w), (j, i, -w), (i, i, w), (j, j, w)]);
        }
        let column = |of: fn(&(u32, u32, f64)) -> u32| entries.iter().map(of).collect::<Vec<_>>();
        let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
        let a = Csr::from_triplets(n, n, &column(|e| e.0), &column(|e| e.1), &values).unwrap();
        let mut starts: Vec<u64> = [0, n].into_iter().chain(cuts.into_iter().map(|cut| cut.min(n))).map(|cut| cut as u64).collect();
        starts.sort_unstable();
        check(&a, &starts, true, "random");
    }
}
