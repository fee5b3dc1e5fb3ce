//! Other values in the same pattern.

use crate::common::{choice, choices, relative_residual, setup, setups_in_pairs, solve, solve_with, system};
use declive::matrix::{Complex64, gallery};
use declive::solve::{ComplexSolver, Format, Method, Precision, Precond, Reorder};
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

/// The same in each format, and for several right-hand sides.
#[test]
fn in_each_format() {
    let formats = [
        ("jumps:9,contrast=100,seed=3", Format::Csr),
        ("variable:14", Format::Pattern),
        ("jumps:9,contrast=100,seed=3", Format::Sell),
        ("random-spd:400,seed=7", Format::Sell),
    ];
    let kinds = [
        (Precision::F64, Precond::None, 1e-10),
        (Precision::F64, Precond::Jacobi, 1e-10),
        (Precision::F32, Precond::Jacobi, 1e-4),
        (Precision::Mixed, Precond::None, 1e-10),
    ];
    for ((spec, format), devices) in formats.into_iter().flat_map(|of| ["D", "D,host,D"].map(|devices| (of, devices))) {
        let a = system(spec);
        let n = a.n_rows();
        let on_diagonal = |i, v| if i % 2 == 0 { 2.0 * v } else { v };
        // single precision has another factor for the last
        let steps =
            [1.25, 3e5].map(|factor| with_values(&a, |i, j, v| factor * if i == j { on_diagonal(i, v) } else { v }));
        let b = gallery::random_vector(2 * n, 4);
        for (precision, precond, rtol) in kinds {
            let setup = setup(Method::Cg, precond, precision, &choice(devices)).with_format(format);
            let stop = Stop::default().with_rtol(rtol);
            let of = |solver: &mut Solver| {
                let single = solver.solve(&b[..n], None, &stop, Control::default()).unwrap();
                assert!(single.reason.converged(), "{spec} {setup:?}: {}", single.reason);
                let mut x = vec![0.0; 2 * n];
                solver.solve_columns(&b, &mut x, &stop, Control::default()).unwrap();
                (single.x, x)
            };
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            of(&mut solver);
            for step in &steps {
                solver.update_values(step.values().to_vec()).unwrap();
                let expected = of(&mut Solver::new(step.clone(), &setup).unwrap());
                assert!(of(&mut solver) == expected, "{spec} {setup:?}");
            }
        }
    }
}

/// The same by each method, after a run that was cut off.
#[test]
fn by_each_method() {
    let a = system("jumps:7,contrast=10,seed=3");
    let other = with_values(&a, |i, j, v| if i == j { (1.0 + 0.1 * (i % 3) as f64) * v } else { v });
    let b = gallery::random_vector(a.n_rows(), 4);
    for setup in setups_in_pairs(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let _begun = solver.solve(&b, None, &Stop::default().with_max_iters(5), Control::default()).unwrap();
        solver.update_values(other.values().to_vec()).unwrap();
        let (one, two) = (solve_with(&mut solver, &b, 1e-9), solve(&other, &b, &setup, 1e-9));
        assert!(one.x == two.x && one.iterations == two.iterations, "{setup:?}");
    }
}

/// Slices have values in as few bytes as these need, and complex numbers as such.
#[test]
fn wider_values_in_slices() {
    let a = system("random-spd:400,seed=7");
    let whole = with_values(&a, |i, j, v| if i == j { 64.0 } else { (4.0 * v).round() });
    let wide = with_values(&whole, |i, j, v| if i == 300 && j == 300 { 64.1 } else { v });
    let b = gallery::random_vector(400, 4);
    for devices in ["D", "D,D"] {
        let setup = setup(Method::Cg, Precond::None, Precision::F64, &choice(devices)).with_format(Format::Sell);
        let mut solver = Solver::new(whole.clone(), &setup).unwrap();
        for a in [&wide, &whole, &with_values(&whole, |_, _, v| 1e3 * v), &whole] {
            solver.update_values(a.values().to_vec()).unwrap();
            assert_eq!(solve_with(&mut solver, &b, 1e-10).x, solve(a, &b, &setup, 1e-10).x);
        }
    }
}

/// What is decided by the values is decided anew.
#[test]
fn other_values_are_another_system() {
    let a = system("poisson2d:12x9");
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 4));
    let sums = a.mul_vec(&vec![1.0; n]);
    let uneven = |i: usize| 1.0 + (i % 3) as f64;
    let others = [
        with_values(&a, |i, j, v| if i == j { v * uneven(i) } else { v }), // to be scaled
        a.clone(),
        with_values(&a, |i, j, v| if i < j { 0.5 * v } else { v }),
        with_values(&a, |i, j, v| if (i, j) == (7, 7) { -v } else { v }),
        with_values(&a, |i, j, v| if (i, j) == (7, 7) { 0.0 } else { v }),
        with_values(&a, |i, j, v| if i == j { v - sums[i] } else { v }), // singular
        with_values(&a, |_, _, v| 1e-200 * v),                           // squares out of range
        a.clone(),
    ];
    for (devices, method) in
        ["host", "D", "D,D"].into_iter().flat_map(|d| [Method::Auto, Method::Minres].map(|m| (d, m)))
    {
        let setup = setup(method, Precond::Jacobi, Precision::F64, &choice(devices)).with_format(Format::Csr);
        let setup = setup.with_assume_symmetric(method == Method::Minres);
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        for (k, other) in others.iter().enumerate() {
            solver.update_values(other.values().to_vec()).unwrap();
            let mut new = Solver::new(other.clone(), &setup).unwrap();
            let of = |solver: &mut Solver| (solver.method(), solver.method_reason(), solver.stats().clone());
            assert_eq!(of(&mut solver), of(&mut new), "{k} on {devices}");
            let stop = Stop::default().with_max_iters(400);
            let solved = |solver: &mut Solver| solver.solve(&b, None, &stop, Control::default()).unwrap();
            let (one, two) = (solved(&mut solver), solved(&mut new));
            assert_eq!((one.x, one.iterations, one.reason), (two.x, two.iterations, two.reason), "{k} on {devices}");
        }
    }
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
    for devices in ["host", "D", "D,D,D", "D,host,D"].map(choice) {
        let setup = Setup::default().with_devices(devices);
        let mut solver = ComplexSolver::new(a.clone(), &setup).unwrap();
        solver.update_values(other.values().to_vec()).unwrap();
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && complex_residual(&other, &b, &o.x).relative_2 <= 1.01e-8);
        let mut new = ComplexSolver::new(other.clone(), &setup).unwrap();
        assert_eq!(o.x, new.solve(&b, None, &Stop::default(), Control::default()).unwrap().x);
        let nan = solver.update_values(vec![Complex64::new(0.0, f64::NAN); a.nnz()]).unwrap_err();
        assert!(matches!(nan, Error::NotFinite { index: 1, .. }), "{nan}");
        assert!(matches!(solver.update_values(vec![]), Err(Error::SizeMismatch { .. })));
    }
}
