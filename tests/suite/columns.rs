//! Several right-hand sides side by side. Each test recomputes b − A x of each column by itself.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use crate::common::process::{Place, array};
use crate::common::{choice, choices, is_general, relative_residual, setup, system};
use declive::matrix::gallery;
use declive::solve::{Format, Method, Precision, Precond};
use declive::{Control, Csr, Error, Outcome, Reason, Setup, Solver, Stop};

/// Right-hand sides that differ in size, of a system of order n.
fn columns(n: usize, count: usize) -> Vec<f64> {
    let of = |k: usize| {
        let scale = 10f64.powi(k as i32 % 7 - 3);
        gallery::random_vector(n, k as u64).into_iter().map(move |v| v * scale)
    };
    (0..count).flat_map(of).collect()
}

fn solve(a: &Csr, b: &[f64], setup: &Setup, rtol: f64) -> (Vec<f64>, Vec<Outcome<()>>) {
    let mut x = vec![0.0; b.len()];
    let mut solver = Solver::new(a.clone(), setup).unwrap();
    let outcomes = solver.solve_columns(b, &mut x, &Stop::default().with_rtol(rtol), Control::default()).unwrap();
    (x, outcomes)
}

/// Checks each column, and what its outcome says of it.
fn check(a: &Csr, b: &[f64], (x, outcomes): &(Vec<f64>, Vec<Outcome<()>>), rtol: f64, what: &str) {
    let n = a.n_rows();
    assert_eq!(outcomes.len(), b.len() / n, "{what}");
    for (k, outcome) in outcomes.iter().enumerate() {
        let column = k * n..(k + 1) * n;
        if b[column.clone()].iter().all(|b| *b == 0.0) {
            assert!(x[column].iter().all(|x| *x == 0.0) && outcome.iterations == 0, "{what}, {k}");
            continue;
        }
        let found = relative_residual(a, &b[column.clone()], &x[column]);
        assert!(outcome.reason.converged() && found <= 1.01 * rtol, "{what}, {k}: {}, {found:e}", outcome.reason);
        assert!((outcome.residual.relative_2 - found).abs() <= 1e-3 * rtol, "{what}, {k}");
        assert!(outcome.history.len() as u64 == outcome.iterations + 1, "{what}, {k}");
    }
}

#[test]
fn every_rank_method_and_precision() {
    let methods = [Method::Cg, Method::Minres, Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::CgPipelined];
    let precisions = [(Precision::F64, 1e-9), (Precision::F32, 1e-4)];
    for (k, method) in methods.into_iter().enumerate() {
        let a = system(if is_general(method) { "convection3d:5" } else { "jumps:6" });
        let b = columns(a.n_rows(), 8);
        for (l, devices) in choices().into_iter().enumerate() {
            let (precision, rtol) = precisions[(k + l) % 2];
            let setup = setup(method, Precond::Jacobi, precision, &devices).with_format(Format::Csr);
            let solved = solve(&a, &b, &setup, rtol);
            check(&a, &b, &solved, rtol, &format!("{method}, {precision}, {devices}"));
            assert_eq!(solved.1[0].side_by_side, 8, "{method}, {precision}, {devices}");
        }
    }
}

#[test]
fn any_number_of_columns_on_any_number_of_rows() {
    for n in [1, 2, 3, 5, 17, 257] {
        let a = system(&format!("band:{n},width=2"));
        for count in [0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 35] {
            let b = columns(n, count);
            for devices in ["host", "D", "D,D,host"] {
                let setup =
                    setup(Method::Cg, Precond::Jacobi, Precision::F64, &choice(devices)).with_format(Format::Csr);
                let solved = solve(&a, &b, &setup, 1e-10);
                check(&a, &b, &solved, 1e-10, &format!("{n} rows, {count} columns, {devices}"));
            }
        }
    }
}

#[test]
fn every_format() {
    for (spec, formats) in [
        ("poisson3d:14", &[Format::Pattern, Format::Sell, Format::Csr][..]),
        ("variable:12", &[Format::Pattern, Format::Sell, Format::Csr]),
        ("elasticity3d:3", &[Format::Sell, Format::Csr]),
        ("dense-rows:700", &[Format::Sell, Format::Csr]),
    ] {
        let a = system(spec);
        let b = columns(a.n_rows(), 8);
        for (format, devices) in formats.iter().flat_map(|format| ["D", "D,D,D"].map(|devices| (*format, devices))) {
            let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &choice(devices)).with_format(format);
            check(&a, &b, &solve(&a, &b, &setup, 1e-9), 1e-9, &format!("{spec}, {format}, {devices}"));
        }
    }
}

/// Columns that need few iterations, many, and none: those that go on are taken into narrower vectors.
#[test]
fn columns_leave_when_they_are_there() {
    let a = system("poisson2d:40");
    let n = a.n_rows();
    let eigenvector: Vec<f64> = (0..n)
        .map(|i| [i / 40, i % 40].map(|k| ((k + 1) as f64 * std::f64::consts::PI / 41.0).sin()).iter().product())
        .collect();
    let mut b: Vec<f64> = (0..13).flat_map(|_| eigenvector.clone()).collect();
    b[3 * n..4 * n].fill(0.0);
    b[7 * n..8 * n].copy_from_slice(&gallery::random_vector(n, 1));
    b[12 * n..].copy_from_slice(&gallery::random_vector(n, 2));
    for devices in ["host", "D", "D,D,D", "D,host"] {
        for method in [Method::Cg, Method::Minres, Method::Bicgstab] {
            let setup = setup(method, Precond::None, Precision::F64, &choice(devices)).with_format(Format::Csr);
            let solved = solve(&a, &b, &setup, 1e-9);
            check(&a, &b, &solved, 1e-9, &format!("{method}, {devices}"));
            assert_eq!(solved.1[7].side_by_side, 12, "that with b = 0 is known");
            let iterations: Vec<u64> = solved.1.iter().map(|outcome| outcome.iterations).collect();
            let few = |k: &u64| *k <= 2;
            assert!(iterations[3] == 0 && iterations.iter().filter(|k| few(k)).count() == 11, "{iterations:?}");
            // those of a solve alone, but for rounding
            for k in [7, 12] {
                let mut x = vec![0.0; n];
                let mut solver = Solver::new(a.clone(), &setup).unwrap();
                let stop = Stop::default().with_rtol(1e-9);
                let alone =
                    solver.solve_into(&b[k * n..(k + 1) * n], &mut x, &stop, Control::default()).unwrap().iterations;
                assert!(iterations[k].abs_diff(alone) <= 1 + alone / 8, "{method}, {devices}: {iterations:?}, {alone}");
            }
        }
    }
}

/// What a solve for one right-hand side looks into is looked into: each column has a true reason.
#[test]
fn columns_end_as_they_would_alone() {
    // one eigenvalue is negative: the third element alone meets it
    let mut t = (vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![2.0, 3.0, 1.0, 4.0]);
    t.0.extend([2, 3]);
    t.1.extend([3, 2]);
    t.2.extend([3.0, 3.0]);
    let a = Csr::from_triplets(4, 4, &t.0, &t.1, &t.2).unwrap();
    let b = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0; 4]].concat();
    let of = |method: Method| solve(&a, &b, &setup(method, Precond::None, Precision::F64, &choice("host")), 1e-10);
    let (_, outcomes) = of(Method::Cg);
    assert!(outcomes[0].reason.converged() && outcomes[2].reason.converged() && outcomes[3].reason.converged());
    assert!(matches!(outcomes[1].reason, Reason::IndefiniteOperator(_)), "{}", outcomes[1].reason);
    let solved = of(Method::Auto);
    check(&a, &b, &solved, 1e-10, "auto");
    assert_eq!(solved.1.iter().map(|outcome| outcome.switches.len()).sum::<usize>(), 1);
}

#[test]
fn limits_are_a_columns_own() {
    let a = system("poisson2d:30");
    let n = a.n_rows();
    let mut b = columns(n, 4);
    b[..n].copy_from_slice(&a.mul_vec(&vec![1.0; n]));
    let mut x = vec![0.0; 4 * n];
    x[..n].fill(1.0); // which is there already
    let setup = setup(Method::Cg, Precond::None, Precision::F64, &choice("D"));
    let mut solver = Solver::new(a, &setup).unwrap();
    let stop = Stop::default().with_max_iters(7);
    let outcomes = solver.solve_columns(&b, &mut x, &stop, Control::default()).unwrap();
    assert_eq!(outcomes.iter().map(|o| o.iterations).collect::<Vec<_>>(), [0, 7, 7, 7]);
    assert!(outcomes[0].reason.converged() && outcomes[1..].iter().all(|o| o.reason == Reason::MaxIters));
    let cancel = AtomicBool::new(true);
    let control = Control::default().with_cancel(&cancel);
    let outcomes = solver.solve_columns(&b, &mut x, &stop, control).unwrap();
    assert!(outcomes.iter().all(|o| o.reason == Reason::Interrupted));
    // arrays that are none
    let mut solve = |b: &[f64], x: &mut [f64]| solver.solve_columns(b, x, &stop, Control::default()).unwrap_err();
    assert!(matches!(solve(&b[1..], &mut x), Error::SizeMismatch { expected: 3600, found: 3599, .. }));
    assert!(matches!(solve(&b, &mut x[1..]), Error::SizeMismatch { expected: 3600, found: 3599, .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_system(n in 1usize..60, count in 1usize..20, seed in 0u64..1000, devices in prop::sample::select(vec!["host", "D", "D,D", "D,D,D,D,D"])) {
        let a = system(&format!("random-spd:{n},seed={seed}"));
        let b = columns(n, count);
        let setup = setup(Method::Auto, Precond::Jacobi, Precision::F64, &choice(devices));
        check(&a, &b, &solve(&a, &b, &setup, 1e-9), 1e-9, &format!("{n} rows, {count} columns, {devices}"));
    }
}

/// A line through three points, for two right-hand sides: one after the other, with x shorter than b.
#[test]
fn least_squares_of_several_columns() {
    let a =
        Csr::from_triplets(3, 2, &[0, 0, 1, 1, 2, 2], &[0, 1, 0, 1, 0, 1], &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]).unwrap();
    let setup = setup(Method::Lsmr, Precond::None, Precision::F64, &choice("host"));
    let mut solver = Solver::new(a, &setup).unwrap();
    let (b, mut x) = ([1.0, 3.0, 5.0, 0.0, 3.0, 0.0], [0.0; 4]);
    let stop = Stop::default().with_rtol(1e-12);
    let outcomes = solver.solve_columns(&b, &mut x, &stop, Control::default()).unwrap();
    assert!(outcomes[0].reason.converged() && outcomes[1].reason == Reason::LeastSquares);
    assert!(x.iter().zip([1.0, 2.0, 1.0, 0.0]).all(|(x, expected)| (x - expected).abs() < 1e-10), "{x:?}");

    let place = Place::new();
    place.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 5\n1 1 1\n2 1 1\n2 2 1\n3 1 1\n3 2 2\n");
    place.write("b.mtx", array(&[b[..3].to_vec(), b[3..].to_vec()]));
    place.run("solve A.mtx -b b.mtx -o x.mtx --devices host --rtol 1e-12").ok();
    let x = place.vectors("x.mtx").concat();
    assert!(x.iter().zip([1.0, 2.0, 1.0, 0.0]).all(|(x, expected)| (x - expected).abs() < 1e-10), "{x:?}");
}

/// Where the matrix is hardly read, there is nothing to share.
#[test]
fn columns_that_gain_nothing_are_solved_one_by_one() {
    let a = system("poisson2d:20");
    let setup = setup(Method::Cg, Precond::None, Precision::F64, &choice("host"));
    for (format, expected) in [(Format::Dictionary, 1), (Format::Csr, 4)] {
        let b = columns(a.n_rows(), 4);
        let solved = solve(&a, &b, &setup.clone().with_format(format), 1e-9);
        check(&a, &b, &solved, 1e-9, "poisson2d");
        assert!(solved.1.iter().all(|outcome| outcome.side_by_side == expected), "{format}");
    }
}

#[test]
fn the_command() {
    let place = Place::new();
    let n = 400;
    let b: Vec<Vec<f64>> = columns(n, 6).chunks(n).map(<[f64]>::to_vec).collect();
    place.write("b.mtx", array(&b));
    for (columns, expected) in [("", 6), ("--columns 4", 4), ("--columns 1", 1)] {
        let run = place.run(&format!(
            "solve --generate random-spd:400,seed=3 -b b.mtx --devices host {columns} --json -o x.mtx --quiet"
        ));
        let report = run.json();
        assert_eq!(run.code, Some(0), "{}", run.err);
        let a = system("random-spd:400,seed=3");
        for (b, x) in b.iter().zip(place.vectors("x.mtx")) {
            assert!(relative_residual(&a, b, &x) <= 1.01e-8);
        }
        let at_once = report["solves"].as_array().unwrap().iter().map(|solve| solve["side_by_side"].as_u64().unwrap());
        assert_eq!(at_once.max(), Some(expected), "{columns}");
    }
    let text = place.run("solve --generate random-spd:400,seed=3 -b b.mtx --devices host").ok();
    assert!(text.contains("6, 6 side by side"), "{text}");
    // one that can't be solved makes the command fail, and all are told
    let run = place.run("solve --generate random-spd:400,seed=3 -b b.mtx --devices host --max-iters 3").ends(1);
    assert_eq!(run.out.lines().filter(|line| line.ends_with(" MaxIters")).count(), 6, "{}", run.out);
    place
        .run("solve --generate random-spd:400,seed=3 --columns 1025")
        .misused(&["a number of columns is one from 1 to 1024"]);
    place
        .run("solve --generate random-spd:400,seed=3 --columns 0")
        .misused(&["a number of columns is one from 1 to 1024"]);
}
