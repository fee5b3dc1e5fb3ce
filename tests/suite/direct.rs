//! Factors of the matrix in place of iterations, and the chain of methods that ends with them. Each test recomputes b − A x by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::{Place, array};
use crate::common::{relative_residual, setup, solve, system};
use declive::device::Choice;
use declive::matrix::{Shortage, gallery};
use declive::solve::{Criterion, Method, Precision, Precond, Singularity};
use declive::{Control, Csr, HostOperator, OperatorSolver, Reason, Setup, Solver, Stop};

fn general(n: usize, entries: &[(u32, u32, f64)]) -> Csr {
    let column = |f: fn(&(u32, u32, f64)) -> u32| entries.iter().map(f).collect::<Vec<_>>();
    let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
    Csr::from_triplets(n, n, &column(|e| e.0), &column(|e| e.1), &values).unwrap()
}

fn host() -> Choice {
    "host".parse().unwrap()
}

/// A skew-symmetric matrix: A r is orthogonal to r, so that methods which step along A r alone get nowhere; nor does `bicgstab2` where entries
/// differ by factors of 10.
fn skew(n: usize) -> Csr {
    let value = |i: u32| 10f64.powi((i % 7) as i32);
    let pair = |i: u32| [(i - 1, i, value(i)), (i, i - 1, -value(i))];
    general(n, &(1..n as u32).flat_map(pair).collect::<Vec<_>>())
}

#[test]
fn by_hand() {
    let a = general(2, &[(0, 1, 2.0), (1, 0, 4.0)]);
    for precision in Precision::ALL {
        let setup = setup(Method::Direct, Precond::Jacobi, *precision, &host());
        let o = solve(&a, &[6.0, 8.0], &setup, 1e-14);
        assert_eq!((o.reason, &o.x[..]), (Reason::Converged(Criterion::Rtol), &[2.0, 3.0][..]), "{precision}");
        assert_eq!(o.history.len() as u64, o.iterations + 1);
    }
}

/// Nobody waits longer for factors than the limit, and x is what it was; the next one has them.
#[test]
fn limits_and_interruptions() {
    let a = system("poisson3d:40");
    let n = a.n_rows();
    let (b, guess) = (gallery::random_vector(n, 1), gallery::random_vector(n, 2));
    let direct = setup(Method::Direct, Precond::None, Precision::F64, &host());
    let mut solver = Solver::new(a.clone(), &direct).unwrap();
    let stop = Stop::default().with_time_limit(Duration::from_millis(100));
    let o = solver.solve(&b, Some(&guess), &stop, Control::default()).unwrap();
    assert_eq!((o.reason, o.iterations, o.x), (Reason::TimeLimit, 0, guess.clone()));
    let cancel = AtomicBool::new(false);
    let o = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            cancel.store(true, Ordering::Relaxed);
        });
        solver.solve(&b, Some(&guess), &Stop::default(), Control::default().with_cancel(&cancel)).unwrap()
    });
    assert_eq!((o.reason, o.iterations, &o.x), (Reason::Interrupted, 0, &guess));
    let o = solver.solve(&b, Some(&guess), &Stop::default(), Control::default()).unwrap();
    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-8, "{}", o.reason);
    // an x that meets the test is told so, whatever the limit
    let mut solver = Solver::new(a, &direct).unwrap();
    let stop = Stop::default().with_time_limit(Duration::from_millis(1));
    assert!(solver.solve(&b, Some(&o.x), &stop, Control::default()).unwrap().reason.converged());
}

/// On the host whatever devices are named, definite or not, from a guess or from 0, for one b after the other.
#[test]
fn any_matrix_of_the_gallery() {
    for (spec, consistent) in [
        ("poisson2d:17", false),
        ("jumps:9", false),
        ("convection3d:9", false),
        ("helmholtz3d:12,wavenumber=1.5", false),
        ("stokes2d:12", false),
        ("markov:20", true),
        ("neumann2d:11", true),
    ] {
        let a = system(spec);
        let n = a.n_rows();
        let setup = setup(Method::Direct, Precond::None, Precision::F64, &crate::common::choice("D,D"));
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        assert_eq!((solver.method(), solver.ranks().len(), solver.ranks()[0].index), (Method::Direct, 1, None));
        for seed in [1, 2] {
            let random = gallery::random_vector(n, seed);
            let b = if consistent { a.mul_vec(&random) } else { random.clone() };
            let stop = Stop::default().with_rtol(1e-12);
            let o = solver.solve(&b, Some(&random), &stop, Control::default()).unwrap();
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1e-11, "{spec}: {}, {found:e}", o.reason);
        }
    }
}

/// Symmetric, and not definite: by L D Lᵀ, and by L U where the pivots of that are too bad.
#[test]
fn symmetric_and_not_definite() {
    let symmetric = |n: usize, entries: &[(u32, u32, f64)]| {
        let mirrored = entries.iter().filter(|(i, j, _)| i != j).map(|&(i, j, v)| (j, i, v));
        general(n, &entries.iter().copied().chain(mirrored).collect::<Vec<_>>())
    };
    let (one, other) = (-0.01 + 1e-6 - 1.0, -0.01 + 1e-7 - 1e-8);
    for a in [
        symmetric(2, &[(1, 0, 3.0)]),
        symmetric(3, &[(0, 0, 2.0), (1, 1, 1.0), (2, 0, 1.0), (2, 1, -1.0)]),
        symmetric(3, &[(0, 0, 1e-16), (1, 0, one), (2, 1, other)]),
        // singular: the second row of the constraints is twice the first
        symmetric(4, &[(0, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0), (2, 1, 1.0), (3, 0, 2.0), (3, 1, 2.0)]),
        system("stokes2d:30"),
        system("helmholtz3d:10"),
    ] {
        let n = a.n_rows();
        let b = a.mul_vec(&gallery::random_vector(n, 3));
        for method in [Method::Direct, Method::Auto] {
            let o = solve(&a, &b, &setup(method, Precond::None, Precision::F64, &host()), 1e-10);
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1e-10, "{n}, {method}: {}, {found:e}", o.reason);
        }
    }
}

#[test]
fn what_is_singular_is_told() {
    // two rows with entries in one column only
    let a = general(4, &[(0, 2, 1.0), (1, 2, 3.0), (2, 0, 1.0), (3, 1, 1.0), (2, 3, 1.0), (3, 3, 2.0)]);
    let direct = setup(Method::Direct, Precond::None, Precision::F64, &host());
    let auto = setup(Method::Auto, Precond::Jacobi, Precision::F64, &host());
    for setup in [&direct, &auto] {
        let o = solve(&a, &[1.0, 1.0, 1.0, 1.0], setup, 1e-8);
        let Reason::Singular(Singularity::Structural(Shortage { rank: 3, n_rows: 4, rows: 2, named, .. })) = o.reason
        else {
            panic!("{}", o.reason);
        };
        assert_eq!(named[..3], [1, 2, 0]);
        assert!(o.reason.to_string().contains("structural rank 3 of 4: 2 rows (1, 2) have entries in 1 column only"));
        assert!(o.x.iter().all(|v| v.is_finite()));
    }
    // singular by its values, and b not in the range
    let a = general(3, &[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0), (2, 2, 1.0)]);
    let o = solve(&a, &[1.0; 3], &direct, 1e-8);
    assert!(matches!(o.reason, Reason::Singular(Singularity::Numerical { .. })), "{}", o.reason);
    assert!(relative_residual(&a, &[1.0; 3], &o.x) > 0.1);
}

/// A small matrix that is not definite is factorised sooner than a device is opened; on devices that were named it is iterated, and
/// factors come last.
#[test]
fn auto_takes_factors_first_or_last() {
    let a = skew(40);
    let b = gallery::random_vector(40, 3);
    let mut solver = Solver::new(a.clone(), &Setup::default()).unwrap();
    assert_eq!((solver.method(), solver.ranks()[0].index), (Method::Direct, None));
    let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-8 && o.switches.is_empty());
    for devices in ["D", "D,D,D", "host"] {
        // by a transversal it would not come to that
        let setup = setup(Method::Auto, Precond::None, Precision::F64, &crate::common::choice(devices));
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        assert_eq!(solver.method(), Method::Idr);
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-8, "{devices}: {}", o.reason);
        let to: Vec<_> = o.switches.iter().map(|switch| switch.to).collect();
        assert_eq!(to, [Method::Bicgstab2, Method::Direct], "{devices}");
        assert_eq!(o.history.len() as u64, o.iterations + 1, "{devices}");
        // from now on
        let again = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(again.reason.converged() && again.switches.is_empty());
    }
    // a limit is a limit, and a method that is named stays
    let named = setup(Method::Bicgstab, Precond::None, Precision::F64, &host());
    assert!(!solve(&a, &b, &named, 1e-8).reason.converged());
    let limited = setup(Method::Auto, Precond::None, Precision::F64, &host());
    let stop = Stop::default().with_max_iters(3).with_time_limit(Duration::from_secs(60));
    let o = Solver::new(system("convection3d:12"), &limited).unwrap();
    let o = { o }.solve(&gallery::random_vector(1728, 1), None, &stop, Control::default()).unwrap();
    assert_eq!((o.reason, o.iterations, o.switches.len()), (Reason::MaxIters, 3, 0));
}

#[test]
fn a_function_has_no_factors() {
    let a = HostOperator::new(2, |x: &[f64], y: &mut [f64]| y.copy_from_slice(x));
    let error = OperatorSolver::new(a, &Setup::default().with_method(Method::Direct)).unwrap_err();
    assert!(error.to_string().contains("has no factors"), "{error}");
}

/// A relative residual that no x has in double precision: x is as good as can be asked for, and that can be asked for.
#[test]
fn backward_errors() {
    // x is 1e12 times as large as b
    let a = general(2, &[(0, 0, 1.0), (0, 1, 1.0 / 3.0), (1, 0, 3.0), (1, 1, 1.0 + 1e-12)]);
    let b = [1.0, -1.0];
    for method in [Method::Direct, Method::Auto] {
        let setup = setup(method, Precond::None, Precision::F64, &host());
        let o = solve(&a, &b, &setup, 1e-8);
        assert_eq!(o.reason, Reason::Rounding, "{method}");
        assert!(o.residual.backward_error < 1e-15);
        let stop = Stop::default().with_rtol(0.0).with_backward_error(1e-15);
        let o = Solver::new(a.clone(), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
        assert_eq!(o.reason, Reason::Converged(Criterion::BackwardError), "{method}");
    }
    // by iterations: enough, and not many more than that
    let a = system("variable:12");
    let b = gallery::random_vector(1728, 2);
    for (method, precision) in [
        (Method::Cg, Precision::F64),
        (Method::Cg, Precision::Mixed),
        (Method::Minres, Precision::F64),
        (Method::Bicgstab, Precision::F64),
        (Method::Idr, Precision::F64),
    ] {
        let setup = setup(method, Precond::Jacobi, precision, &host());
        let of =
            |stop: &Stop| Solver::new(a.clone(), &setup).unwrap().solve(&b, None, stop, Control::default()).unwrap();
        let mut former = 0;
        for error in [1e-4, 1e-8, 1e-12] {
            let o = of(&Stop::default().with_rtol(0.0).with_backward_error(error));
            let what = format!("{method}, {precision}, {error:e}: {}, {:e}", o.reason, o.residual.backward_error);
            assert_eq!(o.reason, Reason::Converged(Criterion::BackwardError), "{what}");
            assert!(o.residual.backward_error <= error && o.iterations >= former, "{what}");
            assert!(o.residual.backward_error > 1e-5 * error, "{what}");
            former = o.iterations;
        }
        let o = of(&Stop::default().with_backward_error(1e-30));
        assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{method}: either will do");
    }
}

#[test]
fn the_command() {
    let place = Place::new();
    let a = skew(40);
    let of_row = |i: usize| a.row(i).0.iter().zip(a.row(i).1).map(move |(j, v)| format!("{} {} {v}\n", i + 1, j + 1));
    let lines: String = (0..40).flat_map(of_row).collect();
    place.write("A.mtx", format!("%%MatrixMarket matrix coordinate real general\n40 40 78\n{lines}"));
    let b = [gallery::random_vector(40, 1), gallery::random_vector(40, 2)];
    place.write("b.mtx", array(&b));
    let report = place.run("solve A.mtx -b b.mtx -o x.mtx --json").ends(0).json();
    assert_eq!(report["options"]["method"], "direct");
    for (x, b) in place.vectors("x.mtx").iter().zip(&b) {
        assert!(relative_residual(&a, b, x) <= 1e-8);
    }
    let text = place.run("solve A.mtx -b b.mtx --devices host --precond none").ok();
    assert!(text.contains("idr, then bicgstab2, then direct"), "{text}");
    let report = place.run("solve A.mtx -b b.mtx --method direct --backward-error 1e-15 --json").ends(0).json();
    assert_eq!(report["options"]["stop"]["rtol"].as_f64().or(report["options"]["rtol"].as_f64()), Some(0.0));
    assert!(report["reason_text"].as_str().unwrap().contains("backward error"), "{report}");
    place.write("S.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 1 1\n");
    let text = place.run("solve S.mtx --method direct").ends(1).out;
    assert!(text.contains("structural rank 1 of 2: 2 rows (1, 2) have entries in 1 column only"), "{text}");
    place.run("bench --order 100 --methods direct").misused(&["direct has no iterations"]);
    place.run("solve A.mtx --backward-error -1").misused(&["--backward-error"]);
}
