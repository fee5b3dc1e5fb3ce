//! Other values in the same pattern.

use crate::common::{choices, relative_residual, setup, solve, solve_with, system};
use declive::matrix::{Complex64, gallery};
use declive::solve::{ComplexSolver, Method, Precision, Precond, Reorder};
use declive::verify::complex_residual;
use declive::{Control, Csr, Error, Setup, Solver, Stop};

fn with_values(a: &Csr, map: impl Fn(usize, usize, f64) -> f64) -> Csr {
    let (rows, columns, values) = a.to_triplets();
    let entries = rows.iter().zip(&columns).zip(&values);
    let values: Vec<f64> = entries.map(|((&i, &j), &v)| map(i as usize, j as usize, v)).collect();
    Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
}

/// The same bits as of a solver that is made for them, on all kinds of ranks, in another order of rows, too.
#[test]
fn as_a_solver_of_their_own() {
    let a = system("jumps:9,contrast=100,seed=3");
    let shifted = with_values(&a, |i, j, v| if i == j { 1.5 * v + 1.0 } else { v });
    let b = gallery::random_vector(a.n_rows(), 4);
    for devices in choices() {
        for (precision, reorder) in
            [(Precision::F64, Reorder::None), (Precision::F64, Reorder::Rcm), (Precision::Mixed, Reorder::Auto)]
        {
            let setup = setup(Method::Auto, Precond::Jacobi, precision, &devices).with_reorder(reorder);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let first = solve_with(&mut solver, &b, 1e-10);
            for (a, x) in [(&shifted, solve(&shifted, &b, &setup, 1e-10).x), (&a, first.x)] {
                solver.update_values(a.values().to_vec()).unwrap();
                let o = solve_with(&mut solver, &b, 1e-10);
                assert!(relative_residual(a, &b, &o.x) <= 1.01e-10, "{setup:?}: {}", o.reason);
                assert_eq!(o.x, x, "{setup:?}");
            }
        }
    }
}

/// What is decided by the values is decided anew.
#[test]
fn other_values_are_another_system() {
    let a = system("poisson2d:12x9");
    let b = gallery::random_vector(a.n_rows(), 4);
    let setup = Setup::default().with_devices("host".parse().unwrap());
    let mut solver = Solver::new(a.clone(), &setup).unwrap();
    let upwind = with_values(&a, |i, j, v| if i < j { 0.5 * v } else { v });
    solver.update_values(upwind.values().to_vec()).unwrap();
    assert!(!solver.stats().numerically_symmetric && solver.method() != Method::Cg);
    assert!(relative_residual(&upwind, &b, &solve_with(&mut solver, &b, 1e-9).x) <= 1.01e-9);
    solver.update_values(a.values().to_vec()).unwrap();
    assert_eq!(solver.method(), Solver::new(a, &setup).unwrap().method());
}

#[test]
fn values_that_are_none() {
    let a = system("poisson2d:12x9");
    let b = gallery::random_vector(a.n_rows(), 4);
    let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &"host".parse().unwrap());
    let mut solver = Solver::new(a.clone(), &setup).unwrap();
    let short = solver.update_values(vec![1.0; 3]).unwrap_err();
    assert!(matches!(short, Error::SizeMismatch { found: 3, .. }), "{short}");
    let mut values = a.values().to_vec();
    values[5] = f64::NAN;
    let nan = solver.update_values(values).unwrap_err();
    assert!(matches!(nan, Error::NotFinite { index: 6, .. }), "{nan}");
    // as it was
    assert!(relative_residual(&a, &b, &solve_with(&mut solver, &b, 1e-9).x) <= 1.01e-9);
    // not what the method needs: nothing to solve until there are others
    let skew = with_values(&a, |i, j, v| if i < j { -v } else { v });
    assert!(matches!(solver.update_values(skew.values().to_vec()), Err(Error::NotSymmetric { .. })));
    let broken = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap_err();
    assert!(matches!(broken, Error::SolverBroken), "{broken}");
    solver.update_values(a.values().to_vec()).unwrap();
    assert!(relative_residual(&a, &b, &solve_with(&mut solver, &b, 1e-9).x) <= 1.01e-9);
}

#[test]
fn complex_values() {
    let real = system("poisson2d:9x8");
    let of = |turn: Complex64| {
        let values = real.values().iter().map(|v| turn * *v).collect();
        Csr::new(real.n_rows(), real.n_cols(), real.row_ptr().to_vec(), real.col_idx().to_vec(), values).unwrap()
    };
    let [a, other] = [Complex64::new(1.0, 0.5), Complex64::new(0.0, 2.0)].map(of);
    let b: Vec<Complex64> = (0..a.n_rows()).map(|k| Complex64::new(1.0, k as f64 / 50.0)).collect();
    for devices in choices() {
        let mut solver = ComplexSolver::new(a.clone(), &Setup::default().with_devices(devices)).unwrap();
        solver.update_values(other.values().to_vec()).unwrap();
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && complex_residual(&other, &b, &o.x).relative_2 <= 1.01e-8);
        assert!(matches!(solver.update_values(vec![]), Err(Error::SizeMismatch { .. })));
    }
}
