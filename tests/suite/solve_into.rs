//! Solves into the caller's memory: the same as those that give x, from and to what the caller has there.

use std::sync::Mutex;

use crate::common::{choices, relative_residual, setup, solve_with, system};
use declive::matrix::gallery;
use declive::solve::{Criterion, Method, Precision, Precond, Reorder};
use declive::{Control, Csr, Error, Outcome, Reason, Setup, Solver, Stop};

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|v| v.to_bits()).collect()
}

fn into(solver: &mut Solver, b: &[f64], x: &mut [f64], stop: &Stop) -> Outcome<()> {
    solver.solve_into(b, x, stop, Control::default()).unwrap()
}

fn host() -> Setup {
    setup(Method::Cg, Precond::Jacobi, Precision::F64, &"host".parse().unwrap())
}

/// Reordered, scaled, in other units and in less precision: x comes back as it does from a solve that makes it.
#[test]
fn the_bits_of_a_solve() {
    let a = system("jumps:9,contrast=100,seed=3");
    let unit = 2f64.powi(70);
    let b: Vec<f64> = gallery::random_vector(a.n_rows(), 11).iter().map(|v| v * unit).collect();
    let x0: Vec<f64> = gallery::random_vector(a.n_rows(), 12).iter().map(|v| v * unit).collect();
    let stop = Stop::default().with_rtol(1e-9);
    for devices in choices() {
        for (method, precision) in
            [(Method::Cg, Precision::F64), (Method::Minres, Precision::F64), (Method::Cg, Precision::Mixed)]
        {
            for reorder in [Reorder::None, Reorder::Rcm] {
                let setup = setup(method, Precond::Jacobi, precision, &devices).with_reorder(reorder);
                let mut solver = Solver::new(a.clone(), &setup).unwrap();
                let given = solver.solve(&b, Some(&x0), &stop, Control::default()).unwrap();
                let mut x = x0.clone();
                let place = x.as_ptr();
                let o = into(&mut solver, &b, &mut x, &stop);
                let found = relative_residual(&a, &b, &x);
                assert!(o.reason.converged() && found <= 1.01e-9, "{setup:?}: {}, {found:e}", o.reason);
                assert_eq!((bits(&x), x.as_ptr()), (bits(&given.x), place), "{setup:?}");
                assert_eq!((o.history, o.iterations), (given.history, given.iterations), "{setup:?}");
            }
        }
    }
}

/// A chain of systems, each from the x of the one before.
#[test]
fn x_is_the_first_guess() {
    let a = system("poisson2d:30");
    let n = a.n_rows();
    let mut solver = Solver::new(a.clone(), &host()).unwrap();
    let (mut x, mut b) = (vec![0.0; n], gallery::random_vector(n, 3));
    let cold = into(&mut solver, &b, &mut x, &Stop::default());
    let again = into(&mut solver, &b, &mut x, &Stop::default());
    assert_eq!((again.reason.converged(), again.iterations), (true, 0));
    b.iter_mut().for_each(|b| *b *= 1.0 + 1e-5);
    let warm = into(&mut solver, &b, &mut x, &Stop::default());
    assert!(0 < warm.iterations && warm.iterations < cold.iterations, "{} and {}", warm.iterations, cold.iterations);
    assert!(relative_residual(&a, &b, &x) <= 1.01e-8);
}

#[test]
fn x_where_there_is_nothing_to_do_or_no_end() {
    let a = system("poisson2d:30");
    let n = a.n_rows();
    let mut solver = Solver::new(a.clone(), &host()).unwrap();
    let mut x = vec![7.0; n];
    let o = into(&mut solver, &vec![0.0; n], &mut x, &Stop::default());
    assert_eq!((o.reason, &x), (Reason::Converged(Criterion::ZeroRhs), &vec![0.0; n]));
    // no time: x stays as it is, and its residual is told
    let (mut x, b) = (vec![7.0; n], vec![1.0; n]);
    let o = into(&mut solver, &b, &mut x, &Stop::default().with_time_limit(std::time::Duration::ZERO));
    assert_eq!((o.reason, o.iterations, &x), (Reason::TimeLimit, 0, &vec![7.0; n]));
    let found = relative_residual(&a, &b, &x);
    assert!((o.residual.relative_2 - found).abs() <= 1e-12 * found);
    // a few iterations: their x
    let mut x = vec![0.0; n];
    let o = into(&mut solver, &b, &mut x, &Stop::default().with_max_iters(5));
    let found = relative_residual(&a, &b, &x);
    assert_eq!((o.reason, o.iterations), (Reason::MaxIters, 5));
    assert!((o.history[5] - found).abs() < 1e-10 && x != vec![0.0; n], "{found:e}, not {:?}", o.history);
}

/// Where the last iterate of a singular system without a solution is worse than the first, the first one comes back.
#[test]
fn a_lost_iterate_is_given_back() {
    let n = 60;
    let places = (0..n as u32).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % 60, -1.0), ((i + 1) % 60, i, -1.0)]);
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, j, v) in places {
        rows.push(i);
        cols.push(j);
        values.push(v);
    }
    let ring = Csr::from_triplets(n, n, &rows, &cols, &values).unwrap();
    let b: Vec<f64> = gallery::random_vector(n, 9).iter().map(|b| b + 0.5).collect();
    let setup = setup(Method::Minres, Precond::None, Precision::F64, &"host".parse().unwrap());
    let mut solver = Solver::new(ring.clone(), &setup).unwrap();
    let mut x = vec![0.0; n];
    let o = into(&mut solver, &b, &mut x, &Stop::default());
    let found = relative_residual(&ring, &b, &x);
    assert!(!o.reason.converged() && found <= 1.0 + 1e-12, "{}: {found:e}", o.reason);
    assert!((o.residual.relative_2 - found).abs() <= 1e-9 * found, "{:e}, not {found:e}", o.residual.relative_2);
    assert_eq!(x, solve_with(&mut solver, &b, 1e-8).x);
}

#[test]
fn unusable_vectors_are_refused_and_left_alone() {
    let mut solver = Solver::new(system("tridiagonal:7"), &host()).unwrap();
    let mut refused = |b: &[f64], x: &mut [f64]| {
        solver.solve_into(b, x, &Stop::default(), Control::default()).map(|o| o.reason).unwrap_err()
    };
    let mut short = [3.0; 6];
    let error = refused(&[1.0; 7], &mut short);
    assert!(matches!(&error, Error::SizeMismatch { what, expected: 7, found: 6 } if what == "x"), "{error}");
    assert_eq!(short, [3.0; 6]);
    let mut x = [1.0, f64::INFINITY, 1.0, 1.0, 1.0, 1.0, 1.0];
    let error = refused(&[1.0; 7], &mut x);
    assert!(matches!(&error, Error::NotFinite { what, index: 2, .. } if what == "x"), "{error}");
    assert!(matches!(&refused(&[1.0; 8], &mut [0.0; 7]), Error::SizeMismatch { what, .. } if what == "b"));
}

/// Whoever gets x early has the answer, if the outcome says so; and it does where the check agrees with the ranks.
#[test]
fn the_answer_before_it_is_checked() {
    let a = system("jumps:9,contrast=100,seed=3");
    let b = gallery::random_vector(a.n_rows(), 11);
    for (method, precision, rtol, most, is_early) in [
        (Method::Cg, Precision::F64, 1e-9, 1000, true),
        (Method::Minres, Precision::Mixed, 1e-9, 1000, true),
        (Method::Cg, Precision::F64, 1e-9, 3, false),
        (Method::Cg, Precision::F32, 1e-12, 1000, false),
        (Method::Direct, Precision::F64, 1e-9, 1000, false),
    ] {
        let setup = setup(method, Precond::Jacobi, precision, &"host".parse().unwrap());
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let last = Mutex::new(Vec::new());
        let early = |x: &[f64]| *last.lock().unwrap() = x.to_vec();
        let (stop, control) =
            (Stop::default().with_rtol(rtol).with_max_iters(most), Control::default().with_early(&early));
        let o = solver.solve(&b, None, &stop, control).unwrap();
        assert_eq!(o.early.is_some(), is_early, "{setup:?}: {}", o.reason);
        assert!(!is_early || o.reason.converged() && bits(&o.x) == bits(&last.lock().unwrap()), "{setup:?}");
        let without = solver.solve(&b, None, &stop, Control::default()).unwrap();
        assert_eq!((bits(&without.x), without.early), (bits(&o.x), None), "{setup:?}");
    }
}
