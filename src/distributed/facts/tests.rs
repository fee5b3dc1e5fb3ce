//! The facts are those of the whole matrix.

use proptest::prelude::*;

use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::{divided, shifted};
use crate::matrix::gallery::Spec;

/// What each of several processes finds that have these parts of a matrix, with so many empty rows before them.
fn found(a: &Csr, starts: &[u64], before: u64) -> Vec<Stats> {
    processes(starts.len() - 1, |all| {
        let rows = shifted(divided(a, starts).swap_remove(all.process()), before);
        let (share, window) = Share::new(all, rows).unwrap();
        stats(&share, &window).unwrap()
    })
}

fn check(a: &Csr, starts: &[u64], what: &str) {
    let expected = Stats::of(a);
    for found in found(a, starts, 0) {
        // which pair is told first is another matter
        assert_eq!(found.asymmetry.is_some(), expected.asymmetry.is_some(), "{what}");
        assert_eq!(Stats { asymmetry: expected.asymmetry, ..found }, expected, "{what}");
    }
}

#[test]
fn as_of_one() {
    for spec in
        ["poisson2d:7", "jumps:5", "convection3d:5", "markov:6", "stokes2d:4", "graph-laplacian:60", "random-spd:50"]
    {
        let a = spec.parse::<Spec>().unwrap().build().unwrap();
        let n = a.n_rows() as u64;
        for starts in [vec![0, n], vec![0, n / 2, n], vec![0, 0, n / 3, n / 3, n], vec![0, 1, 2, n]] {
            check(&a, &starts, &format!("{spec} from {starts:?}"));
        }
    }
}

#[test]
fn rows_beyond_32_bits() {
    const BASE: u64 = 5_000_000_000;
    let starts = [0, 100, 100, 343];
    let mut entries: Vec<(u32, u32, f64)> = (0..343).map(|i| (i, i, if i == 120 { -1.0 } else { 2.0 })).collect();
    // one without a partner, and one that has another one, each of two processes
    entries.extend([(90, 200, 1.0), (330, 40, 3.0), (40, 330, 2.0)]);
    let column = |of: fn(&(u32, u32, f64)) -> u32| entries.iter().map(of).collect::<Vec<_>>();
    let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
    let a = Csr::from_triplets(343, 343, &column(|entry| entry.0), &column(|entry| entry.1), &values).unwrap();
    let moved = |row: usize| row + BASE as usize;
    for (near, far) in found(&a, &starts, 0).into_iter().zip(found(&a, &starts, BASE)) {
        let pair = near.asymmetry.map(|pair| Pair { row: moved(pair.row), col: moved(pair.col), ..pair });
        assert!(pair.is_some_and(|pair| pair.row == moved(40)), "{pair:?}");
        let diagonal = Diagonal {
            missing_or_zero: near.diagonal.missing_or_zero.map(moved),
            negative: near.diagonal.negative.map(moved),
            uneven: near.diagonal.uneven.map(moved),
        };
        assert_eq!(diagonal.negative, Some(moved(120)));
        let (n_rows, row_mean) = (moved(343), far.row_mean);
        assert_eq!(Stats { n_rows, n_cols: n_rows, row_mean, asymmetry: pair, diagonal, ..near }, far);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any pattern, and values of which some are equal across the diagonal.
    #[test]
    fn of_any_matrix(
        n in 1usize..9,
        entries in prop::collection::vec((0u32..9, 0u32..9, -2i32..3), 0..40),
        cuts in prop::collection::vec(0usize..10, 0..4),
    ) {
        let m = n as u32;
        let at: std::collections::BTreeMap<(u32, u32), f64> =
            entries.iter().map(|&(i, j, v)| ((i % m, j % m), f64::from(v))).collect();
        let column = |of: fn(&(u32, u32)) -> u32| at.keys().map(of).collect::<Vec<_>>();
        let values: Vec<f64> = at.values().copied().collect();
        let a = Csr::from_triplets(n, n, &column(|at| at.0), &column(|at| at.1), &values).unwrap();
        let mut starts: Vec<u64> = [0, n].into_iter().chain(cuts.into_iter().map(|cut| cut.min(n))).map(|cut| cut as u64).collect();
        starts.sort_unstable();
        check(&a, &starts, "random");
    }
}
