//! Preconditioners that multiply, most of them by matrices of their own. Each test recomputes b − A x by itself.

use crate::common::process::Place;
use crate::common::{choice, choices, relative_residual, setup, solve_with, system};
use declive::matrix::gallery;
use declive::solve::{Method, Precision, Precond, Reorder};
use declive::{Control, Csr, Error, HostOperator, OperatorSolver, Outcome, Setup, Solver, Stop};

/// Those for symmetric matrices, and for any.
const DEFINITE: [Precond; 3] = [Precond::BlockJacobi, Precond::Fsai, Precond::Chebyshev];
const GENERAL: [Precond; 2] = [Precond::BlockJacobi, Precond::Ilu0];
const METHODS: [Method; 4] = [Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::Gmres];

fn solve(a: &Csr, setup: &Setup, rtol: f64) -> Outcome {
    let b = gallery::random_vector(a.n_rows(), 3);
    let outcome = solve_with(&mut Solver::new(a.clone(), setup).unwrap(), &b, rtol);
    assert!(outcome.reason.converged(), "{setup:?}: {}", outcome.reason);
    let found = relative_residual(a, &b, &outcome.x);
    assert!(found <= 1.01 * rtol, "{setup:?}: {found:e}");
    outcome
}

/// The tolerance that a precision can meet.
fn rtol(precision: Precision) -> f64 {
    if precision == Precision::F32 { 1e-4 } else { 1e-9 }
}

/// M is that of the whole system on all devices, whatever the order of its rows: the iterations are the same but for rounding.
fn everywhere(a: &Csr, methods: &[Method], preconds: &[Precond]) {
    for &precond in preconds {
        for &method in methods.iter().filter(|method| method.takes(precond)) {
            let host = setup(method, precond, Precision::F64, &choice("host"));
            let usual = solve(a, &host, 1e-9).iterations;
            for (k, devices) in choices().into_iter().enumerate() {
                let others = [(Precision::Mixed, Reorder::Rcm), (Precision::F32, Reorder::None)];
                for (precision, reorder) in [(Precision::F64, Reorder::None), others[k % 2]] {
                    let setup = setup(method, precond, precision, &devices).with_reorder(reorder);
                    let first = solve(a, &setup, rtol(precision));
                    if precision != Precision::F64 {
                        assert_eq!(first.x, solve(a, &setup, rtol(precision)).x, "{setup:?}");
                    }
                    let may_differ = if METHODS.contains(&method) { 5 + usual / 2 } else { 2 + usual / 20 };
                    if precision == Precision::F64 {
                        assert!(
                            first.iterations.abs_diff(usual) <= may_differ,
                            "{setup:?}: {} for {usual}",
                            first.iterations
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn symmetric_systems_on_all_devices() {
    let a = system("elasticity3d-jumps:4x3x3,contrast=100");
    everywhere(&a, &[Method::Cg, Method::CgTextbook, Method::Minres], &DEFINITE);
}

#[test]
fn general_systems_on_all_devices() {
    everywhere(&system("convection3d:7,peclet=3"), &METHODS, &GENERAL);
}

#[test]
fn who_can_have_them() {
    let error = |a: Csr, method, precond| match Solver::new(a, &setup(method, precond, Precision::F64, &choice("host")))
    {
        Err(Error::Usage(text)) => text,
        other => panic!("{other:?}"),
    };
    for method in [Method::CgPipelined, Method::CgClassic, Method::CgSingleReduction, Method::Lsmr] {
        let text = error(system("poisson2d:9"), method, Precond::BlockJacobi);
        assert!(text.contains("cg, cg-textbook, minres, bicgstab"), "{text}");
    }
    let f = |x: &[f64], y: &mut [f64]| y.copy_from_slice(x);
    let of_method = |method: Method| move |precond: Precond| (method, precond);
    let all = DEFINITE.into_iter().map(of_method(Method::Cg)).chain(GENERAL.into_iter().map(of_method(Method::Gmres)));
    for (method, precond) in all {
        let setup = setup(method, precond, Precision::F64, &choice("host"));
        let function = OperatorSolver::new(HostOperator::new(5, f), &setup);
        let words = format!("for precond = {precond}");
        assert!(matches!(function, Err(Error::Usage(text)) if text.contains(&words)), "{method}, {precond}");
    }
}

/// Other values in the same pattern have another M.
#[test]
fn other_values() {
    let [a, other] = ["variable:9,seed=1", "variable:9,seed=2"].map(system);
    for precond in DEFINITE {
        let setup = setup(Method::Cg, precond, Precision::F64, &choice("0"));
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        solver.update_values(other.values().to_vec()).unwrap();
        let b = gallery::random_vector(other.n_rows(), 3);
        let outcome = solve_with(&mut solver, &b, 1e-9);
        assert!(outcome.reason.converged() && relative_residual(&other, &b, &outcome.x) < 1.01e-9);
        let anew = solve(&other, &setup, 1e-9);
        assert_eq!((outcome.x, outcome.iterations), (anew.x, anew.iterations));
    }
}

#[test]
fn fewer_iterations_than_by_the_diagonal() {
    let of = |a: &Csr, method, precond| {
        solve(a, &setup(method, precond, Precision::F64, &choice("host")), 1e-8).iterations as f64
    };
    for (spec, method, precond, part) in [
        ("elasticity3d-jumps:8x5x5", Method::Cg, Precond::BlockJacobi, 1.0),
        ("elasticity3d-jumps:8x5x5", Method::Cg, Precond::Fsai, 0.4),
        ("elasticity3d-jumps:8x5x5", Method::Cg, Precond::Chebyshev, 0.6),
        ("circuit:40", Method::Cg, Precond::Fsai, 0.3),
        ("jumps:12", Method::Minres, Precond::Fsai, 0.5),
        ("convection3d:12,peclet=10000", Method::Bicgstab, Precond::Ilu0, 0.6),
        ("convection3d:12,peclet=1", Method::Idr, Precond::Ilu0, 0.8),
        ("convection3d:12,peclet=1", Method::Bicgstab2, Precond::Ilu0, 0.8),
        ("convection3d:12,peclet=1", Method::Gmres, Precond::Ilu0, 0.7),
    ] {
        let a = system(spec);
        let (with, without) = (of(&a, method, precond), of(&a, method, Precond::Jacobi));
        assert!(with < part * without, "{spec}, {method}, {precond}: {with} for {without}");
    }
}

/// Several right-hand sides, one after the other or side by side.
#[test]
fn several_columns() {
    let a = system("elasticity3d:4x3x3");
    let b = gallery::random_vector(3 * a.n_rows(), 5);
    let by_cg = DEFINITE.map(|precond| (Method::Cg, precond));
    for (method, precond) in by_cg.into_iter().chain([(Method::CgTextbook, Precond::Jacobi)]) {
        for devices in ["host", "D", "D,D"] {
            let setup = setup(method, precond, Precision::F64, &choice(devices));
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let mut x = vec![0.0; b.len()];
            let outcomes = solver.solve_columns(&b, &mut x, &Stop::default(), Control::default()).unwrap();
            for ((b, x), outcome) in b.chunks(a.n_rows()).zip(x.chunks(a.n_rows())).zip(outcomes) {
                assert!(outcome.reason.converged() && relative_residual(&a, b, x) < 1.01e-8, "{setup:?}");
            }
        }
    }
}

/// `auto` has one for the methods that can have it, and the diagonal for others.
#[test]
fn auto_takes_them_where_it_can() {
    for (spec, precond, expected) in [
        ("poisson2d:30", Precond::Fsai, (Method::Cg, Precond::Fsai)),
        ("stokes2d:8", Precond::Fsai, (Method::Minres, Precond::Fsai)),
        ("convection3d:6", Precond::Fsai, (Method::Idr, Precond::Jacobi)),
        ("convection3d:6", Precond::Ilu0, (Method::Idr, Precond::Ilu0)),
        ("poisson2d:30", Precond::Ilu0, (Method::Cg, Precond::Jacobi)),
        ("stokes2d:8", Precond::BlockJacobi, (Method::Minres, Precond::BlockJacobi)),
    ] {
        let auto = setup(Method::Auto, precond, Precision::F64, &choice("host"));
        let mut solver = Solver::new(system(spec), &auto).unwrap();
        assert_eq!((solver.method(), solver.precond()), expected, "{spec}, {precond}");
        let b = vec![1.0; solver.stats().n_rows];
        assert!(solver.solve(&b, None, &Stop::default(), Control::default()).unwrap().reason.converged(), "{spec}");
    }
}

/// A matrix that is not definite is one for `cg` to find out, not for its preconditioner.
#[test]
fn what_is_not_definite() {
    let a = system("helmholtz3d:6");
    for precond in DEFINITE {
        let setup = setup(Method::Cg, precond, Precision::F64, &choice("host"));
        let outcome = solve_with(&mut Solver::new(a.clone(), &setup).unwrap(), &vec![1.0; a.n_rows()], 1e-9);
        assert!(!outcome.reason.converged() || relative_residual(&a, &vec![1.0; a.n_rows()], &outcome.x) < 1e-8);
    }
    let negative = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![-1.0, 2.0]).unwrap();
    let mut solver = Solver::new(negative, &setup(Method::Cg, Precond::Fsai, Precision::F64, &choice("host"))).unwrap();
    let outcome = solve_with(&mut solver, &[1.0, 1.0], 1e-9);
    assert!(!outcome.reason.converged());
}

/// Pivots that vanish are moved; a saddle point has none below.
#[test]
fn pivots_that_vanish() {
    let turn = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, -1.0]).unwrap();
    solve(&turn, &setup(Method::Gmres, Precond::Ilu0, Precision::F64, &choice("host")), 1e-9);
    let saddle = system("stokes2d:6");
    let outcome = Solver::new(saddle, &setup(Method::Idr, Precond::Ilu0, Precision::F64, &choice("host")));
    assert!(outcome.is_ok());
}

/// They count in the memory of a rank and in the bytes of an iteration.
#[test]
fn what_they_take() {
    let a = system("elasticity3d:6x5x4");
    let with = |precond| {
        let setup = setup(Method::Cg, precond, Precision::F64, &choice("D"));
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let entries: usize = solver.precond_entries().iter().sum();
        let outcome = solve_with(&mut solver, &vec![1.0; a.n_rows()], 1e-8);
        (entries as u64, solver.ranks()[0].bytes, outcome.bytes_per_iteration, solver.times().precond)
    };
    let (none, bytes, per_iteration, _) = with(Precond::Jacobi);
    assert_eq!(none, 0);
    for precond in [Precond::BlockJacobi, Precond::Fsai] {
        let (entries, more_bytes, more_per_iteration, time) = with(precond);
        assert!(entries > 0 && !time.is_zero());
        assert!(more_bytes > bytes + 4 * entries && more_per_iteration > per_iteration + 4 * entries, "{precond}");
    }
}

#[test]
fn by_the_command() {
    let place = Place::new();
    let solve = "solve --generate elasticity3d:5x4x4 --method cg --devices host --precond";
    let json = place.run(&format!("{solve} fsai --json")).ends(0).json();
    assert_eq!(json["precond_entries"].as_array().unwrap().len(), 2);
    assert!(json["seconds"]["precond"].as_f64().unwrap() > 0.0);
    let text = place.run(&format!("{solve} block-jacobi")).ok();
    assert!(text.contains("preconditioner block-jacobi") && text.contains("1 product with "), "{text}");
    place.run(&format!("{solve} ilu0")).fails(2, &["ilu0", "bicgstab, bicgstab2, idr and gmres"]);
}
