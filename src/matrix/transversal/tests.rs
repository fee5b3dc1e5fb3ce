use proptest::prelude::*;

use super::{Deficiency, Equilibration, Matching, Transversal};
use crate::matrix::equivalent::{is_real_form, real_form};
use crate::matrix::power::scaled;
use crate::matrix::{Complex64, Csr, gallery};

fn rows(rows: &[&[f64]]) -> Csr {
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for (i, row) in rows.iter().enumerate() {
        for (j, &value) in row.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
            r.push(i as u32);
            c.push(j as u32);
            v.push(value);
        }
    }
    Csr::from_triplets(rows.len(), rows[0].len(), &r, &c, &v).unwrap()
}

/// No entry.
const X: f64 = f64::NAN;

fn transversal(a: &Csr) -> Transversal {
    Transversal::maximum_product(a).unwrap().unwrap()
}

/// log₂ of the product of a transversal; minus infinity if there is none.
fn log_product(a: &Csr, col_of_row: impl IntoIterator<Item = u32>) -> f64 {
    let entries = (0..a.n_rows()).zip(col_of_row);
    entries.map(|(i, j)| a.get(i, j as usize).unwrap_or(0.0).abs().log2()).sum()
}

/// That a transversal's scalings do what they are for.
fn check(a: &Csr, t: &Transversal) {
    for i in 0..a.n_rows() {
        let (cols, values) = a.row(i);
        for (&j, &value) in cols.iter().zip(values) {
            let log = value.abs().log2() + (t.row_log2[i] + t.col_log2[j as usize]);
            assert!(log < 1e-9, "{log} at {i}, {j}");
            if t.col_of_row[i] == j {
                assert!(log.abs() < 1e-9, "{log} on the transversal at {i}, {j}");
            }
        }
    }
}

/// That k rows really have entries in k − 1 columns.
fn check_deficiency(a: &Csr, d: &Deficiency) {
    let mut cols: Vec<u32> = vec![];
    for &i in &d.rows {
        let (c, v) = a.row(i as usize);
        cols.extend(c.iter().zip(v).filter(|(_, v)| **v != 0.0).map(|(j, _)| *j));
    }
    cols.sort_unstable();
    cols.dedup();
    assert_eq!(cols.len() + 1, d.rows.len(), "{d:?}");
    assert!(d.rows.windows(2).all(|w| w[0] < w[1]));
    assert!(d.rank < a.n_rows());
}

fn permutations(n: u32) -> Vec<Vec<u32>> {
    if n == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(n - 1);
    (0..n as usize)
        .flat_map(|at| {
            shorter.iter().map(move |p| {
                let mut p = p.clone();
                p.insert(at, n - 1);
                p
            })
        })
        .collect()
}

#[test]
fn by_hand() {
    // 4 · 3 is more than 5 · 1
    let a = rows(&[&[5.0, 4.0], &[3.0, 1.0]]);
    let t = transversal(&a);
    assert_eq!(t.col_of_row, [1, 0]);
    check(&a, &t);

    let a = rows(&[&[X, -2.0, X], &[X, X, 1e-9], &[7.0, X, X]]);
    assert_eq!(transversal(&a).col_of_row, [1, 2, 0]);
    assert_eq!(transversal(&Csr::new(0, 0, vec![0], vec![], vec![]).unwrap()).col_of_row, [0; 0]);
}

#[test]
fn rows_that_share_too_few_columns_are_named() {
    let a = rows(&[&[1.0, 1.0, 1.0], &[X, X, 2.0], &[X, 0.0, 3.0]]);
    let d = Transversal::maximum_product(&a).unwrap().unwrap_err();
    assert_eq!((d.rank, &d.rows[..]), (2, &[1, 2][..]));
    assert_eq!(d.to_string(), "structural rank 2 of 3: 2 rows (2, 3) have entries in 1 column only");

    let a = rows(&[&[1.0, X], &[0.0, X]]);
    let d = Deficiency::of(&a, &Matching::maximum(&a)).unwrap();
    assert_eq!(d.to_string(), "structural rank 1 of 2: row 2 has no entry other than 0");

    // ten rows in three columns: four of them say it
    let all: Vec<&[f64]> = vec![&[1.0, 1.0, 1.0, X, X, X, X, X, X, X]; 10];
    let a = rows(&all);
    let d = Deficiency::of(&a, &Matching::maximum(&a)).unwrap();
    assert_eq!((d.rank, d.rows.len()), (3, 4));
    check_deficiency(&a, &d);
}

#[test]
fn a_long_chain_of_exchanges() {
    // row i has the columns i − 1 and i; the last row only the last but one: all rows but the last must move
    let n = 3000u32;
    let mut triplets: Vec<(u32, u32)> = (0..n - 1).flat_map(|i| [(i, i), (i, i + 1)]).collect();
    triplets.push((n - 1, 0));
    let (r, c): (Vec<u32>, Vec<u32>) = triplets.into_iter().unzip();
    let a = Csr::from_triplets(n as usize, n as usize, &r, &c, &vec![1.0; r.len()]).unwrap();
    assert_eq!(Matching::maximum(&a).len(), n as usize);
    let t = transversal(&a);
    assert_eq!(t.col_of_row[..3], [1, 2, 3]);
    check(&a, &t);
}

#[test]
fn entries_of_all_sizes() {
    let a = rows(&[&[1e-300, 1e300, X], &[1.0, 1e290, 1e-5], &[5e-324, X, 1e-300]]);
    let t = transversal(&a);
    assert_eq!(t.col_of_row, [1, 0, 2]);
    check(&a, &t);
    // a triangle has one transversal; its scalings go beyond any floating-point number
    let mut triplets = (vec![], vec![], vec![]);
    for i in 0..8u32 {
        for (j, v) in [(i, 1.0), (i + 1, 1e300)].into_iter().filter(|(j, _)| *j < 8) {
            triplets.0.push(i);
            triplets.1.push(j);
            triplets.2.push(v);
        }
    }
    let a = Csr::from_triplets(8, 8, &triplets.0, &triplets.1, &triplets.2).unwrap();
    let t = transversal(&a);
    check(&a, &t);
}

#[test]
fn a_grid_keeps_its_diagonal() {
    let a = gallery::poisson2d([30, 20]).unwrap();
    let t = transversal(&a);
    assert!((0..600).all(|i| t.col_of_row[i] == i as u32));
    check(&a, &t);
}

#[test]
fn square_only() {
    let a = rows(&[&[1.0, 2.0]]);
    assert!(Transversal::maximum_product(&a).is_err());
    assert_eq!(Matching::maximum(&a).len(), 1);
}

fn matrix_of(m: usize, n: usize) -> impl Strategy<Value = Csr> {
    let power = (-300i32..300).prop_map(|e| 10f64.powi(e));
    let entry = prop_oneof![3 => Just(X), 1 => Just(0.0), 3 => -1.0..1.0f64, 1 => power];
    let all = prop::collection::vec(prop::collection::vec(entry, n), m);
    all.prop_map(|all| rows(&all.iter().map(|r| &r[..]).collect::<Vec<_>>()))
}

fn square(most: usize) -> impl Strategy<Value = Csr> {
    (1..=most).prop_flat_map(|n| matrix_of(n, n))
}

fn matrix(most: usize) -> impl Strategy<Value = Csr> {
    (1..=most, 1..=most).prop_flat_map(|(m, n)| matrix_of(m, n))
}

proptest! {
    #[test]
    fn the_best_of_all_permutations(a in square(6)) {
        let n = a.n_rows();
        let best = permutations(n as u32).into_iter().map(|p| log_product(&a, p)).fold(f64::NEG_INFINITY, f64::max);
        match Transversal::maximum_product(&a).unwrap() {
            Ok(t) => {
                let mut cols = t.col_of_row.clone();
                cols.sort_unstable();
                prop_assert!(cols.iter().copied().eq(0..n as u32));
                let found = log_product(&a, t.col_of_row.iter().copied());
                prop_assert!((found - best).abs() <= 1e-9 * (1.0 + best.abs()), "{found} {best}");
                check(&a, &t);
            }
            Err(d) => {
                prop_assert_eq!(best, f64::NEG_INFINITY);
                check_deficiency(&a, &d);
            }
        }
    }

    #[test]
    fn no_matching_is_larger(a in matrix(6)) {
        let (m, n) = (a.n_rows(), a.n_cols());
        let matching = Matching::maximum(&a);
        let mut used = vec![false; n];
        for i in 0..m {
            let j = matching.col_of_row[i];
            if j != super::NONE {
                prop_assert!(a.get(i, j as usize).unwrap() != 0.0);
                prop_assert!(!std::mem::replace(&mut used[j as usize], true));
                prop_assert_eq!(matching.row_of_col[j as usize], i as u32);
            }
        }
        // by Hall's theorem with defect, the rank is the least of m − |rows| + |their columns|
        let least = (0u32..1 << m).map(|set| {
            let rows: Vec<usize> = (0..m).filter(|i| set >> i & 1 == 1).collect();
            let cols = (0..n).filter(|&j| rows.iter().any(|&i| a.get(i, j).is_some_and(|v| v != 0.0))).count();
            m - rows.len() + cols
        }).min().unwrap();
        prop_assert_eq!(matching.len(), least);
        match Deficiency::of(&a, &matching) {
            Some(d) => check_deficiency(&a, &d),
            None => prop_assert_eq!(least, m),
        }
    }

    #[test]
    fn larger_sparse_ones(n in 20..200usize, entries in prop::collection::vec((0..1u32 << 20, 0..1u32 << 20, -8.0..8.0f64), 100..1000)) {
        let (mut r, mut c, mut v): (Vec<u32>, Vec<u32>, Vec<f64>) = (vec![], vec![], vec![]);
        for (i, j, log) in entries {
            let place = (i % n as u32, j % n as u32);
            r.push(place.0);
            c.push(place.1);
            v.push(10f64.powf(log));
        }
        let a = Csr::from_triplets(n, n, &r, &c, &v).unwrap();
        match Transversal::maximum_product(&a).unwrap() {
            Ok(t) => check(&a, &t),
            Err(d) => check_deficiency(&a, &d),
        }
    }
}

fn equilibration(a: &Csr) -> Equilibration {
    Equilibration::of(a, false).unwrap().unwrap()
}

/// [[0, 8, 4], [1/4, 0, 0], [0, 0, 1/2]]: 8, ¼ and ½ are the transversal.
#[test]
fn equilibrated_by_hand() {
    let a = rows(&[&[X, 8.0, 4.0], &[0.25, X, X], &[X, X, 0.5]]);
    let by = equilibration(&a);
    let summary = by.summary();
    assert_eq!(summary.moved, 2);
    let system = by.matrix(&a).unwrap();
    assert_eq!(system.diagonal(), [1.0; 3]);
    // x = (4, 1, 2) gives b = (16, 1, 1)
    let (b, y) = (by.of_rhs(&[16.0, 1.0, 1.0]), by.of_iterate(&[4.0, 1.0, 2.0]));
    assert_eq!(system.mul_vec(&y), b);
    let mut x = y;
    by.undo(&mut x);
    assert_eq!(x, [4.0, 1.0, 2.0]);
    // residuals of (16, 0, 0) and so on are what they were
    let residual = [[16.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 5.0]];
    for r in residual {
        let weighed: f64 = by.of_rhs(&r).iter().zip(by.weights()).map(|(r, w)| w * r * r).sum();
        assert_eq!(weighed, r.iter().map(|r| r * r).sum::<f64>());
    }
}

/// [[1, −4], [8, 32]] is no real form of a complex matrix, but in other units [[1, −1], [1, 1]] is one.
#[test]
fn units_make_a_real_form() {
    let a = rows(&[&[1.0, -4.0], &[8.0, 32.0]]);
    assert!(!is_real_form(&a));
    check_equilibrated(&a, false);
    assert!(is_real_form(&equilibration(&a).matrix(&a).unwrap()));
}

#[test]
fn what_cannot_be_equilibrated() {
    let a = rows(&[&[1.0, X], &[1.0, X]]);
    let shortage = Equilibration::of(&a, false).unwrap().unwrap_err();
    assert_eq!((shortage.rank, shortage.rows), (1, 2));
    let values = vec![Complex64::new(1.0, 2.0), Complex64::new(0.0, 1.0)];
    let complex = Csr::new(2, 2, vec![0, 1, 2], vec![1, 1], values).unwrap();
    let shortage = Equilibration::of(&real_form(&complex).unwrap(), false).unwrap().unwrap_err();
    assert_eq!(shortage.n_rows, 4, "{shortage}");
    let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
    let of_none = equilibration(&none);
    assert_eq!((of_none.summary().moved, of_none.matrix(&none).unwrap()), (0, none));
}

/// Rows and columns in units of all sizes, and rows in another order: the system that comes of it has none of that, in units of a limited
/// range for the rows.
fn check_equilibrated(a: &Csr, is_single: bool) {
    let (n, by) = (a.n_rows(), Equilibration::of(a, is_single).unwrap().unwrap());
    let system = by.matrix(a).unwrap();
    // a real matrix can become one, too: equal units may be all that it lacks
    assert!(is_real_form(&system) || !is_real_form(a));
    let x: Vec<f64> = (0..n).map(|k| (k % 7) as f64 - 3.0).collect();
    let scaled_x = by.of_iterate(&x);
    let mut back = scaled_x.clone();
    by.undo(&mut back);
    for ((back, x), scaled_x) in back.iter().zip(&x).zip(&scaled_x) {
        // a guess beyond the range of its unit is none
        assert!(scaled_x.is_finite() && (back == x || scaled_x.abs() < f64::MIN_POSITIVE), "{back} {x} {scaled_x}");
    }
    let weights = by.weights();
    let least = if is_single { 2f64.powi(-96) } else { 2f64.powi(-800) };
    assert!(weights.iter().all(|w| (least..=1.0).contains(w)) && weights.contains(&1.0));
    let in_range = |place: &usize| weights[*place] > least;
    for place in (0..n).filter(in_range) {
        let largest = system.row(place).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let on_diagonal = system.get(place, place).unwrap();
        // both parts of a complex number share what is there
        let pair = if is_real_form(a) { system.get(place, place ^ 1).unwrap() } else { 0.0 };
        assert!((0.49..2.01).contains(&on_diagonal.hypot(pair)) && largest <= 2.01, "{on_diagonal} {largest}");
    }
}

proptest! {
    #[test]
    fn equilibrated_systems(
        n in 1usize..25,
        entries in prop::collection::vec((0usize..25, 0usize..25, -9i32..9), 0..80),
        units in prop::collection::vec((-300i32..300, -300i32..300), 25),
        shift in 0usize..25,
        is_single: bool,
        is_complex: bool,
    ) {
        let mut all = std::collections::BTreeMap::new();
        for (i, j, v) in entries {
            all.insert(((i % n) as u32, (j % n) as u32), f64::from(v));
        }
        // a transversal, off the diagonal
        (0..n).for_each(|i| {
            all.insert((i as u32, ((i + shift) % n) as u32), 8.0);
        });
        let unit = |i: u32, j: u32, v: f64| scaled(v, units[i as usize].0 + units[j as usize].1);
        let (r, c): (Vec<u32>, Vec<u32>) = all.keys().copied().unzip();
        let v: Vec<f64> = all.iter().map(|(&(i, j), &v)| unit(i, j, v)).collect();
        if is_complex {
            let v: Vec<Complex64> = v.iter().map(|&v| Complex64::new(0.5 * v, v)).collect();
            check_equilibrated(&real_form(&Csr::from_triplets(n, n, &r, &c, &v).unwrap()).unwrap(), is_single);
        } else {
            check_equilibrated(&Csr::from_triplets(n, n, &r, &c, &v).unwrap(), is_single);
        }
    }
}
