//! The generated test systems: entries, symmetry, definiteness, reproducibility, and their names.

use declive::matrix::equivalent::real_form;
use declive::matrix::gallery::{self, Class, Problem, Spec};
use declive::matrix::reorder::permuted;
use declive::matrix::stats::Stats;
use declive::matrix::{AnyCsr, Scalar};
use declive::matrix_market::Reader;
use declive::{Csr, Error};
use proptest::prelude::*;

use crate::common::process::Place;

fn build(spec: &str) -> Csr {
    spec.parse::<Spec>().unwrap().build().unwrap()
}

fn built(spec: &str) -> AnyCsr {
    spec.parse::<Spec>().unwrap().build_any().unwrap()
}

fn class(spec: &str) -> Class {
    spec.parse::<Spec>().unwrap().problem().class
}

/// The small cases whose kind of matrix is `which`.
fn small(which: impl Fn(Class) -> bool) -> impl Iterator<Item = &'static str> {
    SMALL.iter().copied().filter(move |spec| which(class(spec)))
}

/// The matrix, or if it is complex the real one of twice the order with the same eigenvalues, twice each if it is Hermitian.
fn as_real(spec: &str) -> Csr {
    match built(spec) {
        AnyCsr::Real(a) => a,
        AnyCsr::Complex(a) => real_form(&a).unwrap(),
    }
}

fn dense(a: &Csr) -> Vec<Vec<f64>> {
    let row = |i| (0..a.n_cols()).map(|j| a.get(i, j).unwrap_or(0.0)).collect();
    (0..a.n_rows()).map(row).collect()
}

/// One small case of every problem and of every branch in it.
const SMALL: &[&str] = &[
    "poisson2d:7",
    "poisson2d:5x9",
    "poisson2d:1x6",
    "poisson3d:5",
    "poisson3d:2x3x7",
    "poisson3d27:5",
    "poisson3d27:1x4x6",
    "anisotropic:5",
    "anisotropic:4,epsilon=1e3",
    "jumps:6",
    "jumps:10x9x2,seed=5,contrast=1e-3",
    "variable:6",
    "variable:7x1x9,sigma=3",
    "reservoir:5",
    "reservoir:3x1x8,seed=4",
    "reservoir:1x4x2",
    "circuit:9",
    "circuit:1,pads=1",
    "circuit:12x5,layers=3,pads=2,missing=1,seed=6",
    "circuit:4x13,layers=7,missing=0",
    "elasticity3d:3",
    "elasticity3d:1",
    "elasticity3d:4x2x1",
    "elasticity3d-jumps:3",
    "elasticity3d-jumps:4x1x2,contrast=1e-3,seed=8",
    "tetrahedra:3",
    "tetrahedra:1",
    "tetrahedra:4x2x1,seed=3,shuffle=2",
    "graph-laplacian:200",
    "graph-laplacian:2",
    "graph-laplacian:150,skew=3",
    "random-spd:200",
    "random-spd:5,degree=9",
    "tridiagonal:50",
    "tridiagonal:1",
    "band:60",
    "band:5,width=100",
    "dense-rows:70",
    "dense-rows:9,dense=3",
    "dense-rows:1",
    "poisson2d:7x5,scramble=3",
    "jumps:4,seed=2,scramble=9",
    "neumann2d:7",
    "neumann2d:1x6",
    "neumann2d:5x4,scramble=2",
    "helmholtz3d:4,wavenumber=2",
    "helmholtz3d:3x1x5,wavenumber=2.5",
    "stokes2d:5",
    "stokes2d:3x7",
    "stokes2d:1x4",
    "stokes2d:4x3,scramble=6",
    "convection3d:5",
    "convection3d:4x3x6,peclet=50",
    "convection3d:1x5x3,peclet=2",
    "markov:1",
    "markov:12",
    "fit2d:5",
    "fit2d:1x4,points=1",
    "fit2d:3x2,seed=7,scramble=2",
    "helmholtz3d-absorbing:4",
    "helmholtz3d-absorbing:3x1x5,wavenumber=1.5,damping=0.1",
    "gauge2d:6",
    "gauge2d:2x5,disorder=1,seed=3",
    "gauge2d:1x2,shift=2",
    "gauge2d:4x5,scramble=3",
];

#[test]
fn every_problem_is_tried() {
    for p in Problem::ALL {
        assert!(SMALL.iter().any(|s| s.split(':').next() == Some(p.name)), "{}", p.name);
    }
}

#[test]
fn entries_by_hand() {
    let a = gallery::tridiagonal(3).unwrap();
    assert_eq!(dense(&a), [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]);
    let a = gallery::band(4, 2).unwrap();
    assert_eq!(dense(&a)[0], [4.0, -1.0, -1.0, 0.0]);
    assert_eq!(dense(&a)[1], [-1.0, 4.0, -1.0, -1.0]);
    let a = gallery::poisson2d([2, 2]).unwrap();
    let rows = [[4.0, -1.0, -1.0, 0.0], [-1.0, 4.0, 0.0, -1.0], [-1.0, 0.0, 4.0, -1.0], [0.0, -1.0, -1.0, 4.0]];
    assert_eq!(dense(&a), rows);
    assert_eq!(a.nnz(), 12);
    let a = gallery::poisson3d([2; 3]).unwrap();
    assert_eq!(a.row(0), (&[0, 1, 2, 4][..], &[6.0, -1.0, -1.0, -1.0][..]));
    assert_eq!(a.row(5), (&[1, 4, 5, 7][..], &[-1.0, -1.0, 6.0, -1.0][..]));
    assert_eq!((a.n_rows(), a.nnz()), (8, 32));
    let a = gallery::poisson3d([3; 3]).unwrap();
    assert_eq!(a.row(13), (&[4, 10, 12, 13, 14, 16, 22][..], &[-1.0, -1.0, -1.0, 6.0, -1.0, -1.0, -1.0][..]));
    let a = gallery::poisson3d27([3; 3]).unwrap();
    assert_eq!(a.row(13).0, (0..27).collect::<Vec<u32>>());
    assert!(a.row(13).1.iter().enumerate().all(|(j, v)| *v == if j == 13 { 26.0 } else { -1.0 }));
    let a = gallery::anisotropic([2; 3], 0.25).unwrap();
    assert_eq!(a.row(0), (&[0, 1, 2, 4][..], &[4.5, -1.0, -1.0, -0.25][..]));
    // one material: −1 between cells, 2 for a face on the boundary
    let a = gallery::jumps([3, 1, 1], 1.0, 1).unwrap();
    assert_eq!(dense(&a), [[11.0, -1.0, 0.0], [-1.0, 10.0, -1.0], [0.0, -1.0, 11.0]]);
}

#[test]
fn entries_are_as_many_as_the_formulas_say() {
    let (x, y, z) = (6, 4, 5);
    let nnz = |spec: &str| build(spec).nnz();
    assert_eq!(nnz("poisson2d:6x4"), 5 * x * y - 2 * (x + y));
    assert_eq!(nnz("poisson3d:6x4x5"), 7 * x * y * z - 2 * (x * y + y * z + z * x));
    assert_eq!(nnz("variable:6x4x5"), nnz("poisson3d:6x4x5"));
    assert_eq!(nnz("reservoir:6x4x5"), nnz("poisson3d:6x4x5"));
    assert_eq!(nnz("elasticity3d-jumps:6x4x5"), nnz("elasticity3d:6x4x5"));
    assert_eq!(nnz("poisson3d27:6x4x5"), (3 * x - 2) * (3 * y - 2) * (3 * z - 2));
    assert_eq!(nnz("elasticity3d:6x4x5"), 9 * (3 * x - 2) * (3 * y + 1) * (3 * z + 1));
    assert_eq!(build("elasticity3d:6x4x5").n_rows(), 3 * x * (y + 1) * (z + 1));
    assert_eq!(build("tetrahedra:6x4x5").n_rows(), 3 * x * (y + 1) * (z + 1));
    assert_eq!(nnz("band:50,width=7"), 50 * 15 - 7 * 8);
    // a dense row of n in both directions, and the line beside it, less the two ties that are in both
    assert_eq!(nnz("dense-rows:50,dense=1"), (3 * 50 - 2) + 2 * (50 - 1) - 2 * 2);
    assert_eq!(Stats::of(&build("elasticity3d:4")).row_max, 81);
}

#[test]
fn symmetric_to_the_bit() {
    fn check<T: Scalar>(spec: &str, a: &Csr<T>, image: impl Fn(T) -> T) {
        for i in 0..a.n_rows() {
            let (cols, values) = a.row(i);
            for (&j, &v) in cols.iter().zip(values) {
                let mirror = a.get(j as usize, i).unwrap_or_else(|| panic!("{spec}: ({j}, {i}) is missing"));
                assert_eq!(v, image(mirror), "{spec}: at ({i}, {j}) and across");
            }
        }
    }
    for spec in small(|class| class.is_symmetric() || class.is_hermitian()) {
        match built(spec) {
            AnyCsr::Real(a) => check(spec, &a, |v| v),
            AnyCsr::Complex(a) if class(spec).is_hermitian() => check(spec, &a, |v| v.conj()),
            AnyCsr::Complex(a) => check(spec, &a, |v| v),
        }
    }
}

#[test]
fn others_are_not_symmetric() {
    for spec in small(|class| !class.is_symmetric() && !class.is_hermitian()) {
        assert!(!Stats::of(&build(spec)).numerically_symmetric, "{spec}");
    }
    let AnyCsr::Complex(a) = built("gauge2d:4") else { panic!("gauge2d is real") };
    assert!((0..16).any(|i| a.row(i).0.iter().any(|&j| a.get(i, j as usize) != a.get(j as usize, i))));
    let AnyCsr::Complex(a) = built("helmholtz3d-absorbing:3") else { panic!("it is real") };
    assert!(a.diagonal().iter().any(|v| v.im != 0.0));
}

#[test]
fn positive_definite() {
    for spec in small(Class::is_positive_definite) {
        let mut l = dense(&as_real(spec));
        for j in 0..l.len() {
            for i in j..l.len() {
                let (above, below) = l.split_at_mut(i);
                let left = above.get(j).map_or(&below[0][..j], |row| &row[..j]);
                let s: f64 = left.iter().zip(&below[0][..j]).map(|(a, b)| a * b).sum();
                let pivot = below[0][j] - s;
                if i == j {
                    assert!(pivot > 0.0, "{spec}: pivot {j} is {pivot}");
                    l[j][j] = pivot.sqrt();
                } else {
                    l[i][j] = pivot / l[j][j];
                }
            }
        }
    }
}

/// The eigenvalues of a symmetric matrix, rising, by Jacobi's rotations.
fn eigenvalues(a: &Csr) -> Vec<f64> {
    let mut a = dense(a);
    let n = a.len();
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-18 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = if theta < 0.0 { -1.0 } else { 1.0 } / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (above, below) = a.split_at_mut(q);
                for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
    }
    let mut all: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn as_many_eigenvalues_are_negative_as_there_should_be() {
    // of the shifted Laplacian, known one by one
    for (text, sides, kappa) in
        [("helmholtz3d:4,wavenumber=2", [4; 3], 2.0f64), ("helmholtz3d:3x1x5,wavenumber=2.5", [3, 1, 5], 2.5)]
    {
        let along = |m: usize| {
            let angle = move |a: usize| std::f64::consts::PI * a as f64 / (2 * (m + 1)) as f64;
            (1..=m).map(move |a| 4.0 * angle(a).sin().powi(2))
        };
        let mut expected = Vec::new();
        for x in along(sides[0]) {
            for y in along(sides[1]) {
                expected.extend(along(sides[2]).map(|z| x + y + z - kappa * kappa));
            }
        }
        expected.sort_by(f64::total_cmp);
        let found = eigenvalues(&build(text));
        assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-12), "{text}: {found:?} {expected:?}");
        assert!(found[0] < -0.1 && found[found.len() - 1] > 0.1);
        assert!(found.iter().all(|f| f.abs() > 1e-3), "{text} is singular");
    }
    // of saddle points, one for each pressure but one
    for (text, cells) in
        [("stokes2d:5", 25), ("stokes2d:3x7", 21), ("stokes2d:1x4", 4), ("stokes2d:4x3,scramble=6", 12)]
    {
        let found = eigenvalues(&build(text));
        assert_eq!(found.iter().filter(|v| **v < -1e-3).count(), cells - 1, "{text}: {found:?}");
        assert_eq!(found.iter().filter(|v| **v > 1e-3).count(), found.len() + 1 - cells, "{text}: {found:?}");
    }
}

#[test]
fn null_spaces() {
    for spec in small(Class::is_singular) {
        let a = build(spec);
        let (rows, cols, values) = a.to_triplets();
        let transpose = Csr::from_triplets(a.n_rows(), a.n_rows(), &cols, &rows, &values).unwrap();
        let sums = transpose.mul_vec(&vec![1.0; a.n_rows()]);
        assert!(sums.into_iter().all(|s| s.abs() < 1e-15), "{spec}");
    }
    for spec in small(|class| class == Class::Semidefinite) {
        let a = build(spec);
        assert!(a.mul_vec(&vec![1.0; a.n_rows()]).into_iter().all(|r| r == 0.0), "{spec}");
        let found = eigenvalues(&a);
        assert!(found[0].abs() < 1e-13 && found[1] > 1e-2, "{spec}: {found:?}");
    }
}

#[test]
fn entries_of_the_others_by_hand() {
    let a = gallery::neumann2d([2, 2]).unwrap();
    assert_eq!(dense(&a)[0], [2.0, -1.0, -1.0, 0.0]);
    assert_eq!(build("neumann2d:6x4").nnz(), 5 * 24 - 2 * 10);
    assert_eq!(build("convection3d:6x4x5").nnz(), build("poisson3d:6x4x5").nnz());
    assert_eq!(built("helmholtz3d-absorbing:6x4x5").nnz(), build("poisson3d:6x4x5").nnz());
    assert_eq!((build("stokes2d:6x4").n_rows(), built("gauge2d:6x4").nnz()), (5 * 4 + 6 * 3 + 23, 5 * 24));
    let fit = build("fit2d:6x4,points=3");
    assert_eq!((fit.n_rows(), fit.n_cols(), fit.nnz()), (6 * 4 * 3, 7 * 5, 4 * 72));
    // the cell in the second column of the second row; heights x + 10 y are what they are anywhere
    assert_eq!(fit.row(3 * 7).0, [8, 9, 15, 16]);
    let heights: Vec<f64> = (0..35).map(|k| f64::from(k % 7) + 10.0 * f64::from(k / 7)).collect();
    for (i, height) in fit.mul_vec(&heights).into_iter().enumerate() {
        let (x, y) = (f64::from((i / 3 % 6) as u32), f64::from((i / 18) as u32));
        assert!((x + 10.0 * y..x + 1.0 + 10.0 * (y + 1.0)).contains(&height), "{i}: {height}");
    }
    assert_eq!((build("markov:9").n_rows(), build("markov:9").nnz()), (55, 3 * 45 + 55));
}

#[test]
fn unsymmetric_matrices_have_eigenvalues_on_the_right() {
    // rows dominate: no entry off the diagonal is positive, and no sum of a row negative
    for spec in small(|class| class == Class::Unsymmetric) {
        let a = build(spec);
        let (rows, cols, values) = a.to_triplets();
        assert!(values.iter().zip(rows.iter().zip(&cols)).all(|(v, (i, j))| (*v > 0.0) == (i == j)), "{spec}");
        let sums = a.mul_vec(&vec![1.0; a.n_rows()]);
        assert!(sums.iter().all(|s| *s > -1e-12) && sums.iter().any(|s| *s >= 2.0), "{spec}");
    }
}

#[test]
fn files_have_the_symmetry_of_the_matrix() {
    let place = Place::new();
    for (spec, banner) in [
        ("neumann2d:4", "real symmetric"),
        ("stokes2d:3", "real symmetric"),
        ("convection3d:3", "real general"),
        ("markov:3", "real general"),
        ("helmholtz3d-absorbing:3", "complex symmetric"),
        ("gauge2d:3", "complex hermitian"),
    ] {
        let file = place.run(&format!("generate {spec}")).ends(0).out;
        let first = file.lines().next().unwrap();
        assert_eq!(first, format!("%%MatrixMarket matrix coordinate {banner}"), "{spec}");
        let read = Reader::new().any_matrix_from(file.as_bytes(), spec).unwrap().a;
        assert_eq!(read, built(spec), "{spec}");
    }
    place.run("generate gauge2d:3 -o A.npz").ends(0);
    assert_eq!(declive::npz::read(&place.path("A.npz")).unwrap(), built("gauge2d:3"));
    place.run("solve --generate gauge2d:3 --devices host").ends(0);
    let refused = place.run("bench --generate gauge2d:3 --devices host").ends(2);
    assert!(refused.err.contains("gauge2d:3 is complex"), "{}", refused.err);
    let help = place.run("generate --help").ends(0).out;
    assert!(help.contains("Hermitian positive definite") && help.contains("complex symmetric"), "{help}");
}

#[test]
fn complex_matrices_where_real_ones_are_needed() {
    for spec in small(Class::is_complex) {
        let err = spec.parse::<Spec>().unwrap().build().unwrap_err();
        assert!(matches!(&err, Error::Usage(message) if message.contains("is complex")), "{err}");
    }
}

#[test]
fn extreme_eigenvalues_of_the_laplacian() {
    // the eigenvector of k = 1 on every axis, exact to rounding
    let m = 9;
    let a = gallery::poisson3d([m; 3]).unwrap();
    let s = |k: usize| (std::f64::consts::PI * (k + 1) as f64 / (m + 1) as f64).sin();
    let v: Vec<f64> = (0..m * m * m).map(|i| s(i % m) * s(i / m % m) * s(i / m / m)).collect();
    let lambda = 12.0 * (std::f64::consts::PI / (2.0 * (m + 1) as f64)).sin().powi(2);
    assert!(a.mul_vec(&v).iter().zip(&v).all(|(av, v)| (av - lambda * v).abs() < 1e-14));
}

#[test]
fn the_same_for_any_number_of_threads() {
    let larger = [
        "poisson3d:40",
        "variable:30",
        "jumps:30",
        "reservoir:20x30x40",
        "circuit:150",
        "elasticity3d:9",
        "elasticity3d-jumps:9",
        "tetrahedra:9",
        "graph-laplacian:20000",
        "random-spd:9000",
        "neumann2d:300",
        "helmholtz3d:30",
        "stokes2d:150",
        "convection3d:30",
        "markov:200",
        "fit2d:90",
        "helmholtz3d-absorbing:30",
        "gauge2d:200",
    ];
    for spec in SMALL.iter().chain(&larger) {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| built(spec))
        };
        let one = with(1);
        assert!([2, 7].into_iter().all(|threads| with(threads) == one), "{spec}");
    }
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| gallery::random_vector(100_000, 8))
    };
    assert_eq!(with(1), with(5));
}

#[test]
fn seeds_matter_and_repeat() {
    for p in Problem::ALL.iter().filter(|p| p.seeded) {
        let with = |seed: u64| built(&format!("{}:12,seed={seed}", p.name));
        assert_eq!(with(1), built(&format!("{}:12", p.name)));
        assert_eq!(with(u64::MAX), with(u64::MAX));
        assert_ne!(with(1), with(2), "{}", p.name);
        assert_ne!(with(0), with(u64::MAX), "{}", p.name);
    }
}

#[test]
fn scrambled_systems_are_the_same_in_another_order() {
    fn back<T: Scalar>(b: &Csr<T>) -> Csr<T> {
        let (m, n) = (b.n_rows(), b.n_cols());
        if m != n {
            let [of_rows, of_columns] = [m, n].map(|len| gallery::random_permutation(len, 4));
            let (rows, cols, values) = b.to_triplets();
            let moved = |places: Vec<u32>, to: &[u32]| places.iter().map(|&k| to[k as usize]).collect::<Vec<_>>();
            return Csr::from_triplets(m, n, &moved(rows, of_rows.order()), &moved(cols, of_columns.order()), &values)
                .unwrap();
        }
        permuted(b, &gallery::random_permutation(b.n_rows(), 4).inverse()).unwrap()
    }
    for p in Problem::ALL {
        let (a, b) = (built(&format!("{}:12", p.name)), built(&format!("{}:12,scramble=4", p.name)));
        assert_ne!(a, b, "{}", p.name);
        assert_ne!(b, built(&format!("{}:12,scramble=5", p.name)), "{}", p.name);
        let again: AnyCsr = match b {
            AnyCsr::Real(b) => back(&b).into(),
            AnyCsr::Complex(b) => back(&b).into(),
        };
        assert_eq!(again, a, "{}", p.name);
    }
}

#[test]
fn rows_of_the_graph_are_irregular() {
    let s = Stats::of(&build("graph-laplacian:20000"));
    assert!(s.row_max > 500 && s.row_min <= 5 && s.numerically_symmetric, "{s:?}");
}

#[test]
fn requests_that_make_no_sense() {
    let err = |text: &str| match text.parse::<Spec>().and_then(|s| s.build_any()) {
        Err(Error::Usage(message)) => message,
        other => panic!("{text}: {other:?}"),
    };
    for p in Problem::ALL {
        assert!(err("poison3d:10").contains(p.name));
    }
    assert!(err("").contains("choose one of"));
    assert!(err("poisson3d").contains("poisson3d:100"));
    for text in
        ["poisson3d:", "poisson3d:x", "poisson3d:0", "poisson3d:-3", "poisson3d:+3", "poisson3d:1.5", "poisson3d:2x3"]
    {
        assert!(err(text).contains("one number or three"), "{text}: {}", err(text));
    }
    assert!(err("band:2x2").contains("must be one number,"));
    assert!(err("poisson2d:2x2x2").contains("one number or two"));
    assert!(err("poisson2d:99999999999999999999999").contains("one number or two"));
    assert!(err("poisson3d:5,seed=1").ends_with("it takes scramble"));
    assert!(err("jumps:5,epsilon=1").ends_with("it takes contrast, seed, scramble"));
    assert!(err("jumps:5,").contains("no parameter \"\""));
    assert!(err("jumps:5,seed=-1").contains("below 2^64"));
    assert!(err("jumps:5,seed").contains("below 2^64"));
    assert!(err("poisson3d:5,scramble=x").contains("below 2^64"));
    assert!(err("poisson3d:5,scramble=1,scramble=2").contains("twice"));
    assert!(err("jumps:5,seed=1,seed=1").contains("twice"));
    for value in ["", "0", "-1", "NaN", "inf", "1e13", "ten"] {
        assert!(err(&format!("anisotropic:5,epsilon={value}")).contains("from 1e-12 to 1e12"));
    }
    for value in ["0", "1.5", "-2", "1e20"] {
        assert!(err(&format!("band:5,width={value}")).contains("a whole number from 1"));
    }
    for text in ["poisson3d:1626", "poisson2d:65536", "tridiagonal:4294967296", "elasticity3d:1127", "tetrahedra:1127"]
    {
        assert!(err(text).contains("too large"), "{text}");
    }
    for text in [
        "reservoir:1626",
        "circuit:51000",
        "circuit:18446744073709551615",
        "elasticity3d-jumps:1127",
        "neumann2d:65536",
        "helmholtz3d:1626",
        "stokes2d:37838",
        "convection3d:1626",
        "markov:92681",
        "markov:18446744073709551615",
        "stokes2d:18446744073709551615",
        "helmholtz3d-absorbing:1626",
        "gauge2d:65536",
    ] {
        assert!(err(text).contains("too large"), "{text}");
    }
    assert!(err("circuit:5,layers=2").contains("a whole number from 3 to 16"));
    assert!(err("circuit:5,missing=2").contains("from 0 to 1"));
    assert!(err("stokes2d:1").contains("nothing flows"));
    assert!(err("gauge2d:5,disorder=2").contains("from 0 to 1"));
    assert!(err("helmholtz3d:5,wavenumber=0").contains("from 1e-3 to 10"));
    assert!(err("convection3d:5,peclet=-1").contains("from 0 to 1000000"));
    for text in ["poisson3d:18446744073709551615", "elasticity3d:18446744073709551615", "random-spd:4294967296"] {
        assert!(err(text).contains("too large"), "{text}");
    }
    assert!(err("graph-laplacian:4294967295,degree=4294967295").contains("too large"));
}

#[test]
fn sizes_of_zero_given_to_the_functions() {
    let all = [
        gallery::poisson2d([0, 3]),
        gallery::poisson3d([3, 0, 3]),
        gallery::poisson3d27([0; 3]),
        gallery::anisotropic([0; 3], 0.1),
        gallery::jumps([0; 3], 1e4, 1),
        gallery::variable([0; 3], 1.0, 1),
        gallery::reservoir([2, 0, 2], 1),
        gallery::circuit([0, 4], 3, 1, 0.0, 1),
        gallery::circuit([4, 4], 2, 1, 0.0, 1),
        gallery::circuit([4, 4], 3, 0, 0.0, 1),
        gallery::elasticity3d([2, 2, 0]),
        gallery::elasticity3d_jumps([0, 2, 2], 10.0, 1),
        gallery::tetrahedra([2, 0, 2], 1, 1),
        gallery::tetrahedra([2; 3], 0, 1),
        gallery::graph_laplacian(0, 4, 2, 0.1, 1),
        gallery::graph_laplacian(5, 0, 2, 0.1, 1),
        gallery::random_spd(0, 4, 1),
        gallery::tridiagonal(0),
        gallery::band(0, 1),
        gallery::band(4, 0),
        gallery::dense_rows(0, 1),
        gallery::dense_rows(4, 0),
        gallery::neumann2d([0, 2]),
        gallery::helmholtz3d([0; 3], 0.5),
        gallery::stokes2d([3, 0]),
        gallery::convection3d([2, 0, 2], 1.0),
        gallery::markov(0),
    ];
    assert!(all.iter().all(|r| matches!(r, Err(Error::Usage(_)))));
    assert!(matches!(gallery::helmholtz3d_absorbing([1, 1, 0], 0.5, 0.0), Err(Error::Usage(_))));
    assert!(matches!(gallery::gauge2d([0, 5], 0.1, 0.1, 1), Err(Error::Usage(_))));
}

/// A request with any problem, sizes, seed and parameters.
fn any_request() -> impl Strategy<Value = String> {
    let number = prop_oneof![(1u32..5).prop_map(f64::from), 1e-9..1e9f64, 1e-3..10f64];
    (
        0..Problem::ALL.len(),
        prop::array::uniform3(1..u32::MAX as usize),
        any::<(bool, u64, [bool; 4], Option<u64>)>(),
        [number.clone(), number.clone(), number],
    )
        .prop_map(|(k, sides, (cube, seed, given, scramble), numbers)| {
            let p = &Problem::ALL[k];
            let axes = p.syntax().matches('M').count();
            let sides: Vec<_> = sides[..if cube { 1 } else { axes }].iter().map(usize::to_string).collect();
            let mut text = format!("{}:{}", p.name, sides.join("x"));
            for (q, (number, given)) in p.parameters.iter().zip(numbers.iter().zip(given)) {
                let value = match q.name {
                    "width" | "degree" | "dense" | "shuffle" | "points" | "pads" => number.ceil(),
                    "skew" => number.ceil().min(16.0),
                    "layers" => number.ceil().clamp(3.0, 16.0),
                    "sigma" | "damping" => number.min(10.0),
                    "wavenumber" => number.clamp(1e-3, 10.0),
                    "disorder" | "missing" => number.min(1.0),
                    "peclet" => number.min(1e6),
                    _ => *number,
                };
                if given {
                    text += &format!(",{}={value:?}", q.name);
                }
            }
            if p.seeded && given[3] {
                text += &format!(",seed={seed}");
            }
            if let Some(seed) = scramble {
                text += &format!(",scramble={seed}");
            }
            text
        })
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(text in any_request()) {
        let spec: Spec = text.parse().unwrap();
        let printed = spec.to_string();
        prop_assert_eq!(&printed.parse::<Spec>().unwrap(), &spec);
        prop_assert_eq!(printed.parse::<Spec>().unwrap().to_string(), printed);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-z0-9:x,=.-]{0,30}", name in 0..Problem::ALL.len()) {
        for text in [text.clone(), format!("{}:{text}", Problem::ALL[name].name)] {
            if let Err(e) = text.parse::<Spec>() {
                prop_assert!(matches!(e, Error::Usage(_)));
            }
        }
    }
}
