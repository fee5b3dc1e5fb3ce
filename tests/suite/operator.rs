//! Solves with functions in place of matrices. Each test forms b − A x from the matrix that the function stands for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{PRECONDS, relative_residual, setup, solve, system};
use declive::matrix::gallery;
use declive::solve::{Checkpoint, Checkpoints, Criterion, Indefinite, Method, Precision, Precond, Progress};
use declive::{Control, Csr, Error, HostOperator, OperatorSolver, Outcome, Reason, Setup, Stop};

/// The products of a matrix.
fn function(a: &Csr) -> HostOperator<'_> {
    HostOperator::new(a.n_rows(), |x: &[f64], y: &mut [f64]| y.copy_from_slice(&a.mul_vec(x)))
}

fn host(method: Method, precond: Precond) -> Setup {
    setup(method, precond, Precision::F64, &"host".parse().unwrap())
}

fn solved(a: HostOperator<'_>, b: &[f64], setup: &Setup, rtol: f64) -> Outcome {
    let mut solver = OperatorSolver::new(a, setup).unwrap();
    solver.solve(b, None, &Stop::default().with_rtol(rtol), Control::default()).unwrap()
}

#[test]
fn every_method_takes_the_iterations_that_it_takes_with_the_matrix() {
    for name in ["tridiagonal:1", "poisson2d:13x9", "jumps:9,contrast=100,seed=3", "elasticity3d:4"] {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for &method in Method::FORCED {
            for precond in PRECONDS {
                let setup = host(method, precond);
                let what = format!("{name}, {method}, {precond}");
                let o = solved(function(&a).with_diagonal(a.diagonal()), &b, &setup, 1e-9);
                let found = relative_residual(&a, &b, &o.x);
                assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
                assert!(found <= 1.01e-9 && o.residual.relative_2 <= 1e-9, "{what}: {found:e}");
                assert!((o.residual.relative_2 - found).abs() <= 1e-3 * found, "{what}: {found:e}, {:?}", o.residual);
                assert!(o.residual.backward_error.is_nan() && o.residual.norm_inf <= o.residual.norm_2, "{what}");
                assert_eq!((o.history.len() as u64, o.split.len()), (o.iterations + 1, 1), "{what}");
                let by_rows = solve(&a, &b, &setup, 1e-9);
                let few = by_rows.iterations / 20 + 2;
                assert!(
                    o.iterations.abs_diff(by_rows.iterations) <= few,
                    "{what}: {}, {}",
                    o.iterations,
                    by_rows.iterations
                );
            }
        }
    }
}

/// A function computes in double precision, and vectors may be in single: mixed gets as far as double does, single as far as it can.
#[test]
fn functions_in_every_precision() {
    let a = system("jumps:9,contrast=100,seed=3");
    let b = gallery::random_vector(a.n_rows(), 5);
    for method in [Method::Cg, Method::CgPipelined, Method::Minres, Method::Bicgstab, Method::Gmres] {
        for (precision, rtol) in [(Precision::F32, 1e-4), (Precision::Mixed, 1e-10)] {
            let setup = host(method, Precond::Jacobi).with_precision(precision);
            let o = solved(function(&a).with_diagonal(a.diagonal()), &b, &setup, rtol);
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01 * rtol, "{method}, {precision}: {}, {found:e}", o.reason);
            let by_rows = solve(&a, &b, &setup, rtol);
            let few = by_rows.iterations / 10 + 3;
            let taken = o.iterations;
            assert!(
                taken.abs_diff(by_rows.iterations) <= few,
                "{method}, {precision}: {taken}, {}",
                by_rows.iterations
            );
        }
    }
}

/// Of a matrix nearby, here A itself or that without its smallest couplings, a function has every preconditioner that needs entries.
#[test]
fn a_matrix_nearby_serves_the_preconditioner() {
    let a = system("jumps:9,contrast=100,seed=3");
    let b = gallery::random_vector(a.n_rows(), 5);
    let (n, _, row_ptr, cols, values) = a.clone().into_raw_parts();
    let nearby: Vec<f64> = values.iter().map(|v| if v.abs() < 2.0 { 0.9 * v } else { *v }).collect();
    let nearby = Csr::new(n, n, row_ptr, cols, nearby).unwrap();
    let none = solved(function(&a), &b, &host(Method::Cg, Precond::None), 1e-9).iterations;
    for (method, precond) in [
        (Method::Cg, Precond::Amg),
        (Method::Cg, Precond::Fsai),
        (Method::CgTextbook, Precond::BlockJacobi),
        (Method::Gmres, Precond::Ilu0),
        (Method::Gmres, Precond::Amg),
    ] {
        for (matrix, precision) in [(&a, Precision::F64), (&nearby, Precision::F64), (&a, Precision::Mixed)] {
            let setup = host(method, precond).with_precision(precision);
            let mut solver = OperatorSolver::with_matrix(function(&a), &setup, matrix.clone()).unwrap();
            let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-9), Control::default()).unwrap();
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01e-9, "{method}, {precond}: {}, {found:e}", o.reason);
            assert!(2 * o.iterations < none, "{method}, {precond}: {} and {none}", o.iterations);
            if std::ptr::eq(matrix, &a) && precision == Precision::F64 {
                let by_rows = solve(&a, &b, &setup, 1e-9).iterations;
                assert!(o.iterations.abs_diff(by_rows) <= 2, "{method}, {precond}: {}, {by_rows}", o.iterations);
            }
        }
    }
    // auto takes what the method can have
    let auto = Setup::default().with_devices("host".parse().unwrap()).with_precond(Precond::Ilu0);
    let solver = OperatorSolver::with_matrix(function(&a), &auto, a.clone()).unwrap();
    assert_eq!((solver.method(), solver.precond()), (Method::Cg, Precond::Jacobi));
    // a diagonal that is not known is that of the matrix
    let mut solver = OperatorSolver::with_matrix(function(&a), &host(Method::Cg, Precond::Jacobi), a.clone()).unwrap();
    let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-9), Control::default()).unwrap();
    assert!(o.iterations < none && relative_residual(&a, &b, &o.x) <= 1.01e-9, "{} and {none}", o.iterations);

    let refused = |setup: &Setup, matrix: Option<Csr>| match matrix {
        Some(matrix) => OperatorSolver::with_matrix(function(&a), setup, matrix).unwrap_err(),
        None => OperatorSolver::new(function(&a), setup).unwrap_err(),
    };
    let error = refused(&host(Method::Cg, Precond::Amg), Some(system("tridiagonal:5")));
    assert!(matches!(error, Error::SizeMismatch { expected: 729, found: 5, .. }), "{error}");
    for precond in [Precond::Amg, Precond::Fsai, Precond::BlockJacobi] {
        let words = refused(&host(Method::Cg, precond), None).to_string();
        assert!(words.contains(&format!("no entries for precond = {precond}; give it a matrix")), "{words}");
    }
}

/// Without a diagonal, jacobi is as none; with it, a system of great contrasts takes far fewer iterations.
#[test]
fn a_diagonal_serves_the_preconditioner() {
    let a = system("jumps:9,contrast=1e4,seed=3");
    let b = vec![1.0; a.n_rows()];
    for method in [Method::Cg, Method::CgClassic, Method::CgTextbook, Method::Minres] {
        let setup = host(method, Precond::Jacobi);
        let with = solved(function(&a).with_diagonal(a.diagonal()), &b, &setup, 1e-8);
        let without = solved(function(&a), &b, &setup, 1e-8);
        let none = solved(function(&a), &b, &host(method, Precond::None), 1e-8);
        for o in [&with, &without] {
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01e-8, "{method}: {}, {found:e}", o.reason);
        }
        assert_eq!((&without.x, without.iterations), (&none.x, none.iterations), "{method}");
        assert!(2 * with.iterations < without.iterations, "{method}: {} and {}", with.iterations, without.iterations);
    }
}

/// A function that keeps something from call to call, and borrows what it needs. Right-hand sides of any unit.
#[test]
fn a_function_with_a_state_of_its_own() {
    let n = 200;
    let a = system("tridiagonal:200");
    let (diagonal, calls) = (a.diagonal(), AtomicU64::new(0));
    let mut before = vec![0.0; n];
    let product = |x: &[f64], y: &mut [f64]| {
        calls.fetch_add(1, Ordering::Relaxed);
        before.copy_from_slice(x);
        for i in 0..n {
            let left = if i > 0 { before[i - 1] } else { 0.0 };
            let right = if i + 1 < n { before[i + 1] } else { 0.0 };
            y[i] = diagonal[i] * before[i] - left - right;
        }
    };
    let setup = host(Method::Cg, Precond::Jacobi).with_assume_symmetric(true);
    let mut solver = OperatorSolver::new(HostOperator::new(n, product), &setup).unwrap();
    for unit in [1.0, 1e-200, 1e200] {
        let b: Vec<f64> = gallery::random_vector(n, 3).iter().map(|v| v * unit).collect();
        let mut x = vec![0.0; n];
        let already = calls.load(Ordering::Relaxed);
        let o = solver.solve_into(&b, &mut x, &Stop::default(), Control::default()).unwrap();
        let [b, x] = [b, x].map(|v| v.iter().map(|v| v / unit).collect::<Vec<_>>());
        assert!(o.reason.converged() && relative_residual(&a, &b, &x) <= 1.01e-8, "{unit:e}: {}", o.reason);
        // one each, the first and the last residual, and that of the host's check
        let calls = calls.load(Ordering::Relaxed) - already;
        assert!((o.iterations..=o.iterations + 4).contains(&calls), "{calls} products, {} iterations", o.iterations);
        assert!(o.iterations > 10);
    }
}

#[test]
fn indefinite_functions() {
    let n = 300;
    // eigenvalues from −1 on, though no element of the diagonal tells
    let eigenvalues: Vec<f64> = (0..n).map(|i| if i == 7 { -1.0 } else { 1.0 + i as f64 / 10.0 }).collect();
    let w = {
        let w = gallery::random_vector(n, 6);
        let norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        w.iter().map(|w| w / norm).collect::<Vec<_>>()
    };
    // H D H with the reflection H = 1 − 2 w wᵀ
    let reflect = |v: &mut [f64]| {
        let s = 2.0 * w.iter().zip(&*v).map(|(w, v)| w * v).sum::<f64>();
        v.iter_mut().zip(&w).for_each(|(v, w)| *v -= s * w);
    };
    let product = |x: &[f64], y: &mut [f64]| {
        y.copy_from_slice(x);
        reflect(y);
        y.iter_mut().zip(&eigenvalues).for_each(|(y, d)| *y *= d);
        reflect(y);
    };
    let b = gallery::random_vector(n, 8);
    let residual = |x: &[f64]| {
        let mut ax = vec![0.0; n];
        product(x, &mut ax);
        let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
        norm(&mut b.iter().zip(&ax).map(|(b, y)| b - y)) / norm(&mut b.iter().copied())
    };
    let o = solved(HostOperator::new(n, product), &b, &host(Method::Minres, Precond::None), 1e-9);
    assert!(o.reason.converged() && residual(&o.x) <= 1.01e-9, "{}", o.reason);
    // cg says what it has met; auto goes on by minres, and stays with it
    let cg = solved(HostOperator::new(n, product), &b, &host(Method::Cg, Precond::None), 1e-9);
    let Reason::IndefiniteOperator(Indefinite::Direction { iteration, curvature }) = cg.reason else {
        panic!("{}", cg.reason);
    };
    let mut solver = OperatorSolver::new(HostOperator::new(n, product), &host(Method::Auto, Precond::Jacobi)).unwrap();
    assert_eq!((solver.method(), solver.method_reason()), (Method::Cg, None));
    for switches in [true, false] {
        let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-9), Control::default()).unwrap();
        assert!(o.reason.converged() && residual(&o.x) <= 1.01e-9, "{}", o.reason);
        let found: Vec<_> = o.switches.iter().map(|s| (s.iteration, s.from, s.to, s.why)).collect();
        let expected = if switches { vec![(iteration - 1, Method::Cg, Method::Minres, cg.reason)] } else { Vec::new() };
        assert_eq!((found, solver.method()), (expected, Method::Minres), "{curvature}");
    }
}

#[test]
fn a_diagonal_that_is_not_positive_is_known_before() {
    let a = Csr::from_triplets(3, 3, &[0, 1, 2, 0, 1], &[0, 1, 2, 1, 0], &[2.0, 3.0, -1.0, 1.0, 1.0]).unwrap();
    let of = |method| {
        let a = function(&a).with_diagonal(a.diagonal());
        OperatorSolver::new(a, &host(method, Precond::Jacobi)).unwrap()
    };
    let reason = Indefinite::Diagonal { row: 3, value: -1.0 };
    let mut auto = of(Method::Auto);
    assert_eq!((auto.method(), auto.method_reason()), (Method::Minres, Some(reason)));
    let o = auto.solve(&[1.0, 2.0, 3.0], None, &Stop::default(), Control::default()).unwrap();
    assert!(o.reason.converged() && relative_residual(&a, &[1.0, 2.0, 3.0], &o.x) <= 1.01e-8);
    let o = of(Method::Cg).solve(&[1.0; 3], None, &Stop::default(), Control::default()).unwrap();
    assert_eq!((o.reason, o.iterations, &o.x[..]), (Reason::IndefiniteOperator(reason), 0, &[0.0; 3][..]));
}

#[test]
fn solves_are_watched_and_ended() {
    let a = system("poisson2d:40");
    let b = gallery::random_vector(a.n_rows(), 5);
    let mut solver = OperatorSolver::new(function(&a), &host(Method::CgTextbook, Precond::None)).unwrap();
    let mut run = |stop: &Stop, control: Control<'_>| solver.solve(&b, None, stop, control).unwrap();
    let few = run(&Stop::default().with_max_iters(7), Control::default());
    let found = relative_residual(&a, &b, &few.x);
    assert_eq!((few.reason, few.iterations), (Reason::MaxIters, 7));
    assert!((few.history[7] - found).abs() < 1e-10, "{found:e}");

    let cancel = AtomicBool::new(false);
    let watch = |_: &Progress| cancel.store(true, Ordering::Relaxed);
    let ended = run(&Stop::default(), Control::default().with_cancel(&cancel).with_progress(&watch));
    assert_eq!(ended.reason, Reason::Interrupted);
    let none = run(&Stop::default().with_time_limit(Duration::ZERO), Control::default());
    assert_eq!((none.reason, none.iterations), (Reason::TimeLimit, 0));

    let taken = Mutex::new(Vec::new());
    let take = |at: &Checkpoint<'_>| taken.lock().unwrap().push((at.rel_residual_2, at.x.to_vec()));
    let whole = run(&Stop::default(), Control::default().with_checkpoint(Checkpoints::new(Duration::ZERO, &take)));
    assert!(whole.reason.converged() && relative_residual(&a, &b, &whole.x) <= 1.01e-8);
    let taken = taken.into_inner().unwrap();
    assert!(!taken.is_empty());
    for (told, x) in &taken {
        assert!((told - relative_residual(&a, &b, x)).abs() <= 1e-9, "{told:e}");
    }
    let zero = solver.solve(&vec![0.0; 1600], Some(&vec![3.0; 1600]), &Stop::default(), Control::default()).unwrap();
    assert_eq!((zero.reason, zero.x), (Reason::Converged(Criterion::ZeroRhs), vec![0.0; 1600]));
}

#[test]
fn what_can_not_be_solved_is_refused() {
    let a = system("poisson2d:13x9");
    let refused = |a: HostOperator<'_>, setup: &Setup| OperatorSolver::new(a, setup).unwrap_err();
    let usual = Setup::default();
    let words = refused(function(&a), &usual.clone().with_devices("0".parse().unwrap())).to_string();
    assert!(words.contains("devices = 0; use devices = host or auto"), "{words}");
    let error = refused(function(&a).with_diagonal(vec![1.0; 4]), &usual);
    assert!(matches!(error, Error::SizeMismatch { expected: 117, found: 4, .. }), "{error}");
    let error = refused(function(&a).with_diagonal(vec![f64::NAN; 117]), &usual);
    assert!(matches!(error, Error::NotFinite { index: 1, .. }), "{error}");

    // one entry of 117 rows is not as its mirror image
    let (n, _, row_ptr, cols, mut values) = a.clone().into_raw_parts();
    values[1] *= 1.5;
    let lopsided = Csr::new(n, n, row_ptr, cols, values).unwrap();
    let error = refused(function(&lopsided), &usual);
    assert!(matches!(error, Error::OperatorNotSymmetric { uav, vau } if uav != vau), "{error}");
    assert!(OperatorSolver::new(function(&lopsided), &usual.clone().with_assume_symmetric(true)).is_ok());
    // a function that adds to what was there
    let sloppy = HostOperator::new(117, |x: &[f64], y: &mut [f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let error = refused(sloppy, &usual);
    assert!(matches!(error, Error::NotFinite { index: 1, .. }), "{error}");

    let mut solver = OperatorSolver::new(function(&a), &usual).unwrap();
    let mut x = [0.0; 116];
    let error = solver.solve_into(&[1.0; 117], &mut x, &Stop::default(), Control::default()).unwrap_err();
    assert!(matches!(&error, Error::SizeMismatch { what, .. } if what == "x"), "{error}");
}

/// What a function says that is no number, or not the truth, never counts as an answer.
#[test]
fn functions_that_fail() {
    let a = system("poisson2d:13x9");
    let b = vec![1.0; 117];
    let mut count = 0;
    let late = HostOperator::new(117, |x: &[f64], y: &mut [f64]| {
        count += 1;
        y.copy_from_slice(&a.mul_vec(x));
        if count > 8 {
            y[3] = f64::NAN;
        }
    });
    let o = solved(late, &b, &host(Method::Cg, Precond::None), 1e-9);
    assert!(!o.reason.converged() && o.x.iter().all(|x| x.is_finite()), "{}", o.reason);

    let calls = AtomicU64::new(0);
    let panics = HostOperator::new(117, |x: &[f64], y: &mut [f64]| {
        assert!(calls.fetch_add(1, Ordering::Relaxed) != 9, "out of luck");
        y.copy_from_slice(&a.mul_vec(x));
    });
    let mut solver = OperatorSolver::new(panics, &host(Method::Cg, Precond::None)).unwrap();
    let mut solve = || solver.solve(&b, None, &Stop::default(), Control::default()).map(|o| o.reason).unwrap_err();
    let error = solve();
    assert!(matches!(&error, Error::RankPanicked { message, .. } if message == "out of luck"), "{error}");
    assert!(matches!(solve(), Error::SolverBroken));
}
