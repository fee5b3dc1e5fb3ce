//! Rows far beyond 32 bits, of which each process holds a few.

use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::{divided, shifted};
use crate::matrix::gallery::Spec;

/// The first row that anybody has.
const BASE: u64 = 5_000_000_000;

fn matrix() -> Csr {
    "convection3d:6".parse::<Spec>().unwrap().build().unwrap()
}

/// What each process makes of its rows, where the first one of all is `by`.
fn with<R: Send>(starts: &[u64], by: u64, of: impl Fn(&Share, &Csr) -> R + Sync) -> Vec<R> {
    let a = matrix();
    processes(starts.len() - 1, |all| {
        let rows = shifted(divided(&a, starts).swap_remove(all.process()), by);
        let (share, window) = Share::new(all, rows).unwrap();
        of(&share, &window)
    })
}

/// A window doesn't depend on where its rows are, but for their global numbers.
#[test]
fn windows_are_those_of_rows_from_zero_on() {
    for starts in [vec![0, 216], vec![0, 100, 216], vec![0, 36, 36, 150, 216]] {
        let [near, far] = [0, BASE].map(|by| {
            with(&starts, by, |share, window| {
                let numbers: Vec<u64> = (0..share.order()).map(|place| share.global(place) - by).collect();
                (window.clone(), share.own.clone(), numbers, share.n - by, share.nnz)
            })
        });
        assert_eq!(near, far);
    }
}

#[test]
fn numbers_go_there_and_back() {
    let starts = [0, 36, 36, 150, 216];
    with(&starts, BASE, |share, _| {
        for place in 0..share.order() {
            assert_eq!(share.place(share.global(place)), Some(place));
        }
        let own = starts[share.processes.process()] + BASE..starts[share.processes.process() + 1] + BASE;
        for row in BASE..BASE + 216 {
            let owner = share.process_of(row);
            assert!((starts[owner] + BASE..starts[owner + 1] + BASE).contains(&row));
            assert_eq!(owner == share.processes.process(), own.contains(&row));
            // what has the same lower 32 bits is another row
            assert_eq!(share.place(row - (1 << 32)), None);
        }
    });
}

#[test]
fn elements_of_others_arrive() {
    with(&[0, 36, 36, 150, 216], BASE, |share, _| {
        let own: Vec<f64> = share.own.clone().map(|place| share.global(place) as f64).collect();
        let mut v = share.padded(&own);
        share.fill(&mut v).unwrap();
        let all: Vec<f64> = (0..share.order()).map(|place| share.global(place) as f64).collect();
        assert_eq!(v, all);
    });
}

/// Ranks are told to send the same elements wherever the rows are, and each sends what the other expects.
#[test]
fn plans_are_those_of_rows_from_zero_on() {
    for (starts, ranks) in [(vec![0, 100, 216], [2, 1]), (vec![0, 30, 216], [1, 3])] {
        let [near, far] = [0, BASE].map(|by| {
            with(&starts, by, |share, window| {
                let group = Group::new(Arc::clone(&share.processes), &ranks).unwrap();
                let count = ranks[share.processes.process()];
                let cut = |k: usize| share.own.start + share.own.len() * k / count;
                let ranges: Vec<Range<usize>> = (0..count).map(|k| cut(k)..cut(k + 1)).collect();
                let parts = share.split(window, &ranges, &group).unwrap();
                parts.into_iter().map(|part| (part.halo, part.col_idx.to_vec())).collect::<Vec<_>>()
            })
        });
        assert!(far.iter().flatten().all(|(halo, _)| halo.len > 0 && !halo.send.is_empty()));
        assert_eq!(near, far);
    }
}

/// Processes between whose rows there are more than 2³² others: what one of them needs of the other is found.
#[test]
fn a_gap_of_more_than_32_bits_between_columns() {
    let far = BASE + 3;
    let found = processes(2, |all| {
        // rows 0 and 1, and those from BASE on; nobody has what is between, and no entry is there
        let (starts, columns) = match all.process() {
            0 => (vec![0, BASE, BASE + 4], vec![0, far, 1]),
            _ => (vec![0, BASE, BASE + 4], vec![1, BASE, far]),
        };
        // the first process says that it has BASE rows: its arrays have but the first two
        let own = if all.process() == 0 { 2 } else { 4 };
        let row_ptr = if own == 2 { vec![0, 2, 3] } else { vec![0, 2, 2, 2, 3] };
        let rows = Rows { n_rows: BASE + 4, n_cols: BASE + 4, starts, row_ptr, columns, values: vec![1.0; 3] };
        let (share, window) = Share::new(all, rows).unwrap();
        let numbers: Vec<u64> = (0..share.order()).map(|place| share.global(place)).collect();
        let mut v = share.padded(&vec![10.0 + share.processes.process() as f64; own]);
        share.fill(&mut v).unwrap();
        (numbers, window.col_idx().to_vec(), v)
    });
    assert_eq!(found[0], (vec![0, 1, far], vec![0, 2, 1], vec![10.0, 10.0, 11.0]));
    assert_eq!(found[1].0, [1, BASE, BASE + 1, BASE + 2, far]);
    assert_eq!((&found[1].1[..], &found[1].2[..]), (&[0, 1, 4][..], &[10.0, 11.0, 11.0, 11.0, 11.0][..]));
}
