//! Preconditioners with matrices of their own. Each test recomputes b − A x by itself.

use crate::common::{choice, choices, relative_residual, setup, solve_with, system};
use declive::matrix::gallery;
use declive::solve::{Method, Precision, Precond, Reorder};
use declive::{Csr, Error, HostOperator, OperatorSolver, Outcome, Setup, Solver};

/// Those for symmetric matrices, and for any.
const DEFINITE: [Precond; 2] = [Precond::BlockJacobi, Precond::Fsai];
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
            for devices in choices() {
                for (precision, reorder) in [
                    (Precision::F64, Reorder::None),
                    (Precision::Mixed, Reorder::Rcm),
                    (Precision::F32, Reorder::None),
                ] {
                    let setup = setup(method, precond, precision, &devices).with_reorder(reorder);
                    let [first, second] = [(); 2].map(|()| solve(a, &setup, rtol(precision)));
                    assert_eq!(first.x, second.x, "{setup:?}");
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
    for precond in DEFINITE.into_iter().chain(GENERAL) {
        let setup = setup(Method::Auto, precond, Precision::F64, &choice("host"));
        let function = OperatorSolver::new(HostOperator::new(5, f), &setup);
        assert!(matches!(function, Err(Error::Usage(text)) if text.contains("no entries")));
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
