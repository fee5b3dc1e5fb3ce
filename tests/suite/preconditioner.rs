//! Preconditioners of the caller's own. Each test recomputes b − A x by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{choice, choices, general, relative_residual, setup, solve_with, system};
use declive::matrix::gallery;
use declive::solve::{Method, Precision, Precond, Preconditioner, Reorder};
use declive::{
    Control, Csr, Error, HostOperator, HostPreconditioner, OperatorSolver, Outcome, Reason, Setup, Solver, Stop,
};

/// A sweep of Gauss and Seidel's forwards, and one backwards: symmetric and positive definite if A is.
struct Sweeps(Csr);

impl HostPreconditioner for Sweeps {
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        z.fill(0.0);
        for i in (0..r.len()).chain((0..r.len()).rev()) {
            let (columns, values) = self.0.row(i);
            let az: f64 = columns.iter().zip(values).map(|(&j, v)| v * z[j as usize]).sum();
            z[i] += (r[i] - az) / self.0.get(i, i).unwrap();
        }
    }
}

fn solve(a: &Csr, m: Arc<dyn HostPreconditioner>, setup: &Setup, rtol: f64) -> Outcome {
    let b = gallery::random_vector(a.n_rows(), 3);
    let outcome = solve_with(&mut Solver::with_preconditioner(a.clone(), setup, m).unwrap(), &b, rtol);
    if outcome.reason.converged() {
        let found = relative_residual(a, &b, &outcome.x);
        assert!(found <= 1.01 * rtol, "{setup:?}: {found:e}");
    }
    outcome
}

/// M is that of the whole system, however its rows are shared, ordered and rounded: it takes the same iterations everywhere.
#[test]
fn the_same_iterations_everywhere() {
    let a = system("jumps:8,contrast=100,seed=3");
    let diagonal = a.diagonal();
    let by_diagonal: Arc<dyn HostPreconditioner> = Arc::new(move |r: &[f64], z: &mut [f64]| {
        z.iter_mut().zip(r).zip(&diagonal).for_each(|((z, r), d)| *z = r / d);
    });
    let textbook =
        Solver::new(a.clone(), &Setup::default().with_method(Method::CgTextbook).with_devices("host".parse().unwrap()));
    let textbook = solve_with(&mut textbook.unwrap(), &gallery::random_vector(a.n_rows(), 3), 1e-9).iterations;
    for devices in choices() {
        for (precision, reorder) in
            [(Precision::F64, Reorder::None), (Precision::F64, Reorder::Rcm), (Precision::Mixed, Reorder::None)]
        {
            let setup = setup(Method::Cg, Precond::Jacobi, precision, &devices).with_reorder(reorder);
            let outcome = solve(&a, Arc::clone(&by_diagonal), &setup, 1e-9);
            let swept = solve(&a, Arc::new(Sweeps(a.clone())), &setup, 1e-9);
            assert!(
                outcome.reason.converged() && swept.reason.converged(),
                "{setup:?}: {}, {}",
                outcome.reason,
                swept.reason
            );
            if precision == Precision::F64 {
                assert!(outcome.iterations.abs_diff(textbook) <= 1, "{setup:?}: {}, {textbook}", outcome.iterations);
            }
            assert!(
                2 * swept.iterations < outcome.iterations + 4,
                "{setup:?}: {}, {}",
                swept.iterations,
                outcome.iterations
            );
        }
    }
    let single = solve(
        &a,
        Arc::new(Sweeps(a.clone())),
        &setup(Method::Cg, Precond::None, Precision::F32, &"host".parse().unwrap()),
        1e-4,
    );
    assert!(single.reason.converged());
}

/// One that is another each time costs few iterations more.
#[test]
fn one_that_varies() {
    let a = system("poisson2d:30");
    let still = solve(
        &a,
        Arc::new(Sweeps(a.clone())),
        &Setup::default().with_method(Method::Cg).with_devices("host".parse().unwrap()),
        1e-9,
    );
    let (sweeps, calls) = (Sweeps(a.clone()), AtomicUsize::new(0));
    let varying = Arc::new(move |r: &[f64], z: &mut [f64]| {
        sweeps.apply(r, z);
        let factor = [1.0, 0.5, 3.0][calls.fetch_add(1, Ordering::Relaxed) % 3];
        z.iter_mut().enumerate().for_each(|(i, z)| *z *= factor * (1.0 + 0.02 * (i % 3) as f64));
    });
    for method in [Method::Cg, Method::Gmres] {
        let setup = Setup::default().with_method(method).with_devices("host".parse().unwrap());
        let outcome = solve(&a, varying.clone(), &setup, 1e-9);
        assert!(
            outcome.reason.converged() && outcome.iterations < 2 * still.iterations,
            "{method}: {}",
            outcome.iterations
        );
    }
}

/// `auto` takes the method that the matrix asks for.
#[test]
fn matrices_of_any_kind() {
    for (spec, method) in
        [("poisson2d:20", Some(Method::Cg)), ("convection3d:6", Some(Method::Gmres)), ("helmholtz3d:6", None)]
    {
        let a = system(spec);
        for devices in choices() {
            let setup = setup(Method::Auto, Precond::Jacobi, Precision::F64, &devices);
            let mut solver = Solver::with_preconditioner(a.clone(), &setup, Arc::new(Sweeps(a.clone()))).unwrap();
            assert!(method.is_none_or(|method| solver.method() == method), "{spec}");
            let b = gallery::random_vector(a.n_rows(), 3);
            let outcome = solve_with(&mut solver, &b, 1e-9);
            assert!(
                outcome.reason.converged() && relative_residual(&a, &b, &outcome.x) <= 1.01e-9,
                "{spec}: {}",
                outcome.reason
            );
        }
    }
}

/// What is no preconditioner ends with a true reason, or others take over.
#[test]
fn bad_ones() {
    let a = system("poisson2d:20");
    let host = |method: Method| Setup::default().with_method(method).with_devices("host".parse().unwrap());
    let negative = Arc::new(|r: &[f64], z: &mut [f64]| z.iter_mut().zip(r).for_each(|(z, r)| *z = -r));
    assert_eq!(solve(&a, negative.clone(), &host(Method::Cg), 1e-9).reason, Reason::Breakdown);
    let by_auto = solve(&a, negative, &host(Method::Auto), 1e-9);
    assert!(by_auto.reason.converged() && by_auto.switches.len() == 1 && by_auto.switches[0].to == Method::Gmres);
    let zero = Arc::new(|_: &[f64], z: &mut [f64]| z.fill(0.0));
    assert!(!solve(&a, zero, &host(Method::Cg), 1e-9).reason.converged());
    let nan = Arc::new(|_: &[f64], z: &mut [f64]| z.fill(f64::NAN));
    for method in [Method::Cg, Method::Gmres] {
        let outcome = solve(&a, nan.clone(), &host(method), 1e-9);
        assert!(!outcome.reason.converged() && outcome.x.iter().all(|x| x.is_finite()), "{method}: {}", outcome.reason);
    }
    let panics = Arc::new(|_: &[f64], _: &mut [f64]| panic!("no such luck"));
    for devices in choices() {
        let setup = setup(Method::Cg, Precond::None, Precision::F64, &devices);
        let mut solver = Solver::with_preconditioner(a.clone(), &setup, panics.clone()).unwrap();
        let error = solver.solve(&[1.0; 400], None, &Stop::default(), Control::default()).unwrap_err();
        assert!(matches!(&error, Error::RankPanicked { message, .. } if message.contains("no such luck")), "{error}");
    }
    for method in [Method::Minres, Method::CgClassic, Method::Bicgstab, Method::Direct] {
        let made = Solver::with_preconditioner(a.clone(), &host(method), panics.clone());
        assert!(matches!(made.unwrap_err(), Error::Usage(words) if words.contains("cg, gmres or auto")), "{method}");
    }
}

/// With a function in place of the matrix, and other values in place of the first.
#[test]
fn functions_and_other_values() {
    let a = system("poisson2d:20");
    let b = gallery::random_vector(400, 3);
    let of_a = a.clone();
    let function = HostOperator::new(400, move |x: &[f64], y: &mut [f64]| y.copy_from_slice(&of_a.mul_vec(x)));
    let m = Arc::new(Sweeps(a.clone()));
    let mut solver = OperatorSolver::with_preconditioner(function, &Setup::default(), m.clone()).unwrap();
    let outcome = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
    assert!(outcome.reason.converged() && relative_residual(&a, &b, &outcome.x) <= 1.01e-8);
    let mut solver = Solver::with_preconditioner(a.clone(), &Setup::default(), m).unwrap();
    let first = solve_with(&mut solver, &b, 1e-8);
    assert!(outcome.iterations.abs_diff(first.iterations) <= 1);
    solver.update_values(a.values().iter().map(|v| 2.0 * v).collect::<Vec<f64>>()).unwrap();
    let second = solve_with(&mut solver, &b, 1e-8);
    assert!(second.reason.converged() && second.iterations == first.iterations);
    assert!(
        second
            .x
            .iter()
            .zip(&first.x)
            .all(|(second, first)| (2.0 * second - first).abs() <= 1e-6 * first.abs().max(1e-3))
    );
}

/// Whatever the units, also beyond the range of single precision, and for other values in place of the first.
#[test]
fn the_unit_does_not_matter() {
    let a = system("poisson2d:13x9");
    let scaled = |unit: f64| {
        let values = a.values().iter().map(|v| v * unit).collect();
        Csr::new(117, 117, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    };
    for (precision, rtol, units) in [(Precision::F64, 1e-8, [1e-290, 1e290]), (Precision::F32, 1e-4, [1e-50, 1e200])] {
        for (method, devices) in
            [Method::Cg, Method::Gmres].into_iter().flat_map(|m| ["host", "D,host"].map(|d| (m, d)))
        {
            let setup = setup(method, Precond::None, precision, &choice(devices));
            let plain = solve(&a, Arc::new(Sweeps(a.clone())), &setup, rtol).iterations;
            for unit in units {
                let outcome = solve(&scaled(unit), Arc::new(Sweeps(scaled(unit))), &setup, rtol);
                assert!(outcome.reason.converged(), "{setup:?}, {unit:e}: {}", outcome.reason);
                assert!(outcome.iterations.abs_diff(plain) <= 1, "{setup:?}, {unit:e}");
            }
        }
    }
}

/// A preconditioner alone is the one that a solver has: a method takes the same iterations by either.
#[test]
fn made_alone_it_is_that_of_a_solver() {
    let host = choice("host");
    let definite = system("jumps:8,contrast=100,seed=3");
    let other = system("convection3d:8");
    for (a, precond, own, given) in [
        (&definite, Precond::None, Method::CgTextbook, Method::Cg),
        (&definite, Precond::Jacobi, Method::CgTextbook, Method::Cg),
        (&definite, Precond::Fsai, Method::CgTextbook, Method::Cg),
        (&definite, Precond::Chebyshev, Method::CgTextbook, Method::Cg),
        (&definite, Precond::BlockJacobi, Method::CgTextbook, Method::Cg),
        (&definite, Precond::Amg, Method::Cg, Method::Cg),
        (&other, Precond::Ilu0, Method::Gmres, Method::Gmres),
        (&other, Precond::BlockJacobi, Method::Gmres, Method::Gmres),
    ] {
        let setup = setup(own, precond, Precision::F64, &host);
        let b = gallery::random_vector(a.n_rows(), 3);
        let inside = solve_with(&mut Solver::new(a.clone(), &setup).unwrap(), &b, 1e-9);
        let m = Arc::new(Preconditioner::new(a.clone(), &setup).unwrap());
        let outside = solve(a, m, &setup.with_method(given), 1e-9);
        assert!(inside.reason.converged() && outside.reason.converged(), "{precond}");
        let difference = inside.iterations.abs_diff(outside.iterations);
        assert!(difference <= 1, "{precond}: {} and {}", inside.iterations, outside.iterations);
    }
}

#[test]
fn what_can_not_be_made_alone() {
    let refused = |a: &Csr, precond: Precond| {
        Preconditioner::new(a.clone(), &Setup::default().with_precond(precond)).unwrap_err().to_string()
    };
    let unsymmetric = system("convection3d:4");
    assert!(refused(&general(2, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 1.0)]), Precond::Amg).contains("none in row 2"));
    assert!(refused(&unsymmetric, Precond::Transversal).contains("ilu0"));
    assert!(refused(&system("fit2d:4"), Precond::Jacobi).contains("square"));
}
