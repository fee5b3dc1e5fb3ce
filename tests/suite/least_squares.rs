//! Least squares by `lsmr`, of matrices of any shape and rank. Each test recomputes b − A x and Aᵀ (b − A x) by itself.

use std::sync::Mutex;
use std::time::Duration;

use crate::common::process::{Place, Run, array, on_three_devices};
use crate::common::{PRECONDS, choice, choices, relative_residual, setup, solve, solve_with, system};
use declive::matrix::gallery::random_vector;
use declive::matrix::{Complex64, Csr};
use declive::solve::{
    Checkpoint, Checkpoints, ComplexSolver, Criterion, Exchange, Format, Method, Precision, Precond, Reorder, Shares,
};
use declive::{Control, Error, HostOperator, OperatorSolver, Outcome, Reason, Setup, Solver, Stop};

/// The matrix with these rows.
fn dense(rows: &[&[f64]]) -> Csr {
    let n = rows.first().map_or(0, |row| row.len());
    let row_ptr = (0..=rows.len()).map(|i| i * n).collect();
    let cols = rows.iter().flat_map(|_| 0..n as u32).collect();
    Csr::new(rows.len(), n, row_ptr, cols, rows.concat()).unwrap()
}

/// A random matrix with some entries a row, of full rank for all that is known.
fn random(m: usize, n: usize, seed: u64) -> Csr {
    let per_row = 4.min(n);
    let numbers = random_vector(2 * m * per_row, seed);
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..m {
        for k in 0..per_row {
            let [place, value] = [0, 1].map(|part| numbers[2 * (i * per_row + k) + part]);
            // the first is near the diagonal from corner to corner, so that no column is empty if there are rows enough
            let near = if m >= n { i * n / m } else { i * n / m + k * (n / m) / per_row };
            let j = if k == 0 || m < n { near } else { ((place + 1.0) / 2.0 * n as f64) as usize };
            t.0.push(i as u32);
            t.1.push(j.min(n - 1) as u32);
            t.2.push(value + value.signum());
        }
    }
    Csr::from_triplets(m, n, &t.0, &t.1, &t.2).unwrap()
}

/// A, and a copy of each of its rows, its columns twice: of half the rank that its shape lets it have.
fn deficient(a: &Csr) -> Csr {
    let (rows, cols, values) = a.to_triplets();
    let (m, n) = (a.n_rows() as u32, a.n_cols() as u32);
    let twice = |v: &[u32], by: [u32; 4]| by.iter().flat_map(|by| v.iter().map(move |v| v + by)).collect::<Vec<_>>();
    let values = [&values[..]; 4].concat();
    Csr::from_triplets(
        2 * a.n_rows(),
        2 * a.n_cols(),
        &twice(&rows, [0, 0, m, m]),
        &twice(&cols, [0, n, 0, n]),
        &values,
    )
    .unwrap()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn residual(a: &Csr, b: &[f64], x: &[f64]) -> Vec<f64> {
    a.mul_vec(x).iter().zip(b).map(|(y, b)| b - y).collect()
}

/// Aᵀ v by the plainest of means.
fn transposed_product(a: &Csr, v: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.n_cols()];
    for (i, v) in v.iter().enumerate() {
        a.row(i).0.iter().zip(a.row(i).1).for_each(|(&j, value)| y[j as usize] += value * v);
    }
    y
}

/// The root mean square of the norms of the columns that are not 0.
fn column_norm(a: &Csr) -> f64 {
    let transpose = a.transposed().unwrap();
    let is_there = |column: &usize| transpose.row(*column).1.iter().any(|v| *v != 0.0);
    norm(a.values()) / ((0..a.n_cols()).filter(is_there).count() as f64).sqrt()
}

/// That the outcome is what it says it is, and a success.
#[track_caller]
fn check(a: &Csr, b: &[f64], o: &Outcome, rtol: f64, what: &str) {
    assert_eq!(o.x.len(), a.n_cols(), "{what}");
    let r = residual(a, b, &o.x);
    let optimality = norm(&transposed_product(a, &r)) / column_norm(a) / norm(&r);
    let relative = norm(&r) / norm(b);
    let what = format!("{what}: {} after {}, {relative:e}, {optimality:e}", o.reason, o.iterations);
    match o.reason {
        Reason::Converged(Criterion::Rtol) => assert!(relative <= 1.01 * rtol, "{what}"),
        Reason::LeastSquares => {
            assert!(relative > rtol && optimality <= 1.01 * rtol + 1e-15, "{what}");
            let told = o.residual.optimality.unwrap();
            assert!(told <= rtol && (told - optimality).abs() <= 1e-3 * optimality + 1e-15, "{what}: {told:e}");
        }
        _ => panic!("{what}"),
    }
    assert!((o.residual.relative_2 - relative).abs() <= 1e-3 * relative + 1e-14, "{what}: {:?}", o.residual);
    assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
}

fn lsmr(precond: Precond, precision: Precision, devices: &str) -> Setup {
    setup(Method::Lsmr, precond, precision, &choice(devices))
}

/// The line 3.5 + 1.4 t is the nearest to four points.
#[test]
fn a_line_through_points() {
    let a = dense(&[&[1.0, 1.0], &[1.0, 2.0], &[1.0, 3.0], &[1.0, 4.0]]);
    let b = [6.0, 5.0, 7.0, 10.0];
    for devices in choices() {
        for precond in PRECONDS {
            let setup = setup(Method::Lsmr, precond, Precision::F64, &devices);
            let o = solve(&a, &b, &setup, 1e-12);
            check(&a, &b, &o, 1e-12, &format!("{setup:?}"));
            assert_eq!((o.reason, o.iterations), (Reason::LeastSquares, 2), "{setup:?}");
            assert!((o.x[0] - 3.5).abs() < 1e-12 && (o.x[1] - 1.4).abs() < 1e-12, "{setup:?}: {:?}", o.x);
            assert!((o.residual.norm_2 - 4.2f64.sqrt()).abs() < 1e-12, "{setup:?}");
        }
    }
}

/// Of all solutions of [1 0 1; 0 1 1] x = (2, 3), the shortest is (1, 4, 5) / 3.
#[test]
fn the_shortest_of_many_solutions() {
    let a = dense(&[&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0]]);
    let b = [2.0, 3.0];
    for devices in ["host", "D", "D,D", "D,host,D", "D,D,D,D,D"] {
        let o = solve(&a, &b, &lsmr(Precond::None, Precision::F64, devices), 1e-13);
        check(&a, &b, &o, 1e-13, devices);
        let expected = [1.0 / 3.0, 4.0 / 3.0, 5.0 / 3.0];
        assert!(o.x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-12), "{devices}: {:?}", o.x);
        // scaled by the norms of the columns, D = (1, 1, √2), it is D x that is the shortest: x = (3, 7, 5) / 4
        let o = solve(&a, &b, &lsmr(Precond::Jacobi, Precision::F64, devices), 1e-13);
        check(&a, &b, &o, 1e-13, devices);
        assert!(o.x.iter().zip([0.75, 1.75, 1.25]).all(|(x, e)| (x - e).abs() < 1e-12), "{devices}: {:?}", o.x);
    }
}

/// From another x than 0, the nearest solution: (1, 1, 1) and what is orthogonal to the null space, (1, 1, −1).
#[test]
fn the_nearest_solution_to_a_guess() {
    let a = dense(&[&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0]]);
    let mut solver = Solver::new(a.clone(), &lsmr(Precond::None, Precision::F64, "D,D")).unwrap();
    let mut x = [1.0, 1.0, 1.0];
    let stop = Stop::default().with_rtol(1e-13);
    let o = solver.solve_into(&[2.0, 3.0], &mut x, &stop, Control::default()).unwrap();
    assert!(o.reason.converged() && relative_residual(&a, &[2.0, 3.0], &x) < 1e-12);
    let away = x[0] + x[1] - x[2] - 1.0;
    assert!(away.abs() < 1e-12, "{x:?}");
}

/// Where x = 0 is as good as any, or there is nothing to find.
#[test]
fn nothing_to_gain() {
    for devices in ["host", "D", "D,D,D"] {
        let setup = lsmr(Precond::Jacobi, Precision::F64, devices);
        for (a, b) in [
            (dense(&[&[1.0], &[0.0]]), vec![0.0, 3.0]),
            (dense(&[&[1.0, 1.0], &[1.0, 1.0]]), vec![2.0, -2.0]),
            (Csr::new(2, 3, vec![0; 3], vec![], vec![]).unwrap(), vec![1.0, 2.0]),
            (Csr::new(2, 0, vec![0; 3], vec![], vec![]).unwrap(), vec![1.0, 2.0]),
        ] {
            let o = solve(&a, &b, &setup, 1e-10);
            assert_eq!((o.reason, o.iterations, &o.x), (Reason::LeastSquares, 0, &vec![0.0; a.n_cols()]), "{devices}");
            assert_eq!((o.residual.relative_2, o.residual.optimality), (1.0, Some(0.0)), "{devices}");
        }
        let o = solve(&dense(&[&[1.0, 2.0]]), &[0.0], &setup, 1e-10);
        assert_eq!((o.reason, &o.x[..]), (Reason::Converged(Criterion::ZeroRhs), &[0.0, 0.0][..]));
    }
}

/// Tall and wide ones, of full rank and not.
fn shapes() -> Vec<(&'static str, Csr)> {
    let of = |m, n| random(m, n, (m * 100 + n) as u64);
    vec![
        ("tall", of(97, 31)),
        ("hardly tall", of(41, 40)),
        ("wide", of(29, 88)),
        ("one row", of(1, 7)),
        ("one column", of(9, 1)),
        ("a deficient one", deficient(&of(33, 20))),
        ("a square one", deficient(&of(19, 19))),
    ]
}

/// Tall and wide, of full rank and not, with a solution and without, everywhere.
#[test]
fn shapes_and_ranks_on_every_device() {
    let systems = shapes();
    for (name, a) in &systems {
        let solvable = a.mul_vec(&random_vector(a.n_cols(), 3));
        let any = random_vector(a.n_rows(), 4);
        for (k, devices) in choices().iter().enumerate() {
            let precond = Precond::ALL[k % 2];
            let setup = setup(Method::Lsmr, precond, Precision::F64, devices);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            for (b, rtol) in [(&solvable, 1e-9), (&any, 1e-8), (&any, 1e-3)] {
                let o = solve_with(&mut solver, b, rtol);
                check(a, b, &o, rtol, &format!("{name}, {devices}, {precond}"));
            }
            let o = solve_with(&mut solver, &solvable, 1e-9);
            assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{name}, {devices}");
            let rows: usize = solver.ranks().iter().map(|rank| rank.rows).sum();
            let nnz: usize = solver.ranks().iter().map(|rank| rank.nnz).sum();
            assert_eq!((rows, nnz), (a.n_rows(), a.nnz()), "{name}, {devices}");
        }
    }
}

/// Against the normal equations, by elimination.
#[test]
fn normal_equations_agree() {
    for (m, n, seed) in [(30, 12, 1), (60, 25, 2), (25, 24, 3)] {
        let a = random(m, n, seed);
        let b = random_vector(m, seed + 10);
        let mut system: Vec<Vec<f64>> = (0..n)
            .map(|j| {
                let mut unit = vec![0.0; n];
                unit[j] = 1.0;
                transposed_product(&a, &a.mul_vec(&unit))
            })
            .collect();
        let right = transposed_product(&a, &b);
        system.iter_mut().zip(&right).for_each(|(row, b)| row.push(*b));
        for k in 0..n {
            for i in (0..n).filter(|i| *i != k) {
                let factor = system[i][k] / system[k][k];
                let pivot = system[k].clone();
                system[i].iter_mut().zip(pivot).for_each(|(v, p)| *v -= factor * p);
            }
        }
        let expected: Vec<f64> = (0..n).map(|k| system[k][n] / system[k][k]).collect();
        for devices in ["host", "D", "host,host,host"] {
            let o = solve(&a, &b, &lsmr(Precond::Jacobi, Precision::F64, devices), 1e-12);
            check(&a, &b, &o, 1e-12, devices);
            let error: Vec<f64> = o.x.iter().zip(&expected).map(|(x, e)| x - e).collect();
            assert!(norm(&error) < 1e-8 * norm(&expected), "{m} × {n}, {devices}: {:e}", norm(&error));
        }
    }
}

#[test]
fn single_precision() {
    let tall = random(97, 31, 9731);
    let wide = random(29, 88, 8829);
    for devices in choices() {
        let setup = setup(Method::Lsmr, Precond::Jacobi, Precision::F32, &devices);
        for a in [&tall, &wide] {
            let b = random_vector(a.n_rows(), 5);
            check(a, &b, &solve(a, &b, &setup, 1e-4), 1e-4, &format!("{devices}"));
        }
    }
    // what it can't have is not said to be there
    let b = random_vector(97, 5);
    let o = solve(&tall, &b, &lsmr(Precond::Jacobi, Precision::F32, "host"), 1e-12);
    assert_eq!(o.reason, Reason::Stagnation);
}

/// In mixed precision as in double: with a solution and without, of any shape and rank.
#[test]
fn mixed_precision() {
    let mut systems = shapes();
    systems.retain(|(name, _)| *name != "a square one"); // see the next test
    systems.extend(
        [("convection", "convection3d:7"), ("a singular one", "neumann2d:12"), ("a fit", "fit2d:9")]
            .map(|(name, spec)| (name, system(spec))),
    );
    for (name, a) in &systems {
        let solvable = a.mul_vec(&random_vector(a.n_cols(), 3));
        let any = random_vector(a.n_rows(), 4);
        for (k, devices) in choices().iter().enumerate() {
            let precond = Precond::ALL[k % 2];
            let mut solver = Solver::new(a.clone(), &setup(Method::Lsmr, precond, Precision::Mixed, devices)).unwrap();
            for (b, rtol) in [(&solvable, 1e-10), (&any, 1e-10), (&any, 1e-3)] {
                let o = solve_with(&mut solver, b, rtol);
                check(a, b, &o, rtol, &format!("{name}, {devices}, {precond}"));
            }
            let o = solve_with(&mut solver, &solvable, 1e-10);
            assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{name}, {devices}");
        }
    }
}

/// What single precision can't tell from singular is not said to be solved.
#[test]
fn mixed_precision_has_its_limits() {
    // whose condition is beyond what single precision minimises with
    let (_, square) = shapes().pop().unwrap();
    let any = random_vector(square.n_rows(), 4);
    let o = solve(&square, &any, &lsmr(Precond::None, Precision::Mixed, "host"), 1e-10);
    assert_eq!(o.reason, Reason::Stagnation);
    let o = solve(&square, &any, &lsmr(Precond::None, Precision::F64, "host"), 1e-10);
    check(&square, &any, &o, 1e-10, "a square one in double precision");
    let (a, b) = (random(80, 30, 7), random_vector(80, 8));
    let scaled = |power: i32| {
        let values = a.col_idx().iter().zip(a.values()).map(|(&j, v)| v * 10f64.powi(j as i32 % 2 * power)).collect();
        Csr::new(80, 30, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    };
    for power in [0, -2, -4, -6, -8] {
        let a = scaled(power);
        for devices in ["host", "D,D"] {
            let o = solve(&a, &b, &lsmr(Precond::None, Precision::Mixed, devices), 1e-10);
            if o.reason == Reason::Stagnation {
                assert!(power < -2, "{power}, {devices}");
            } else {
                check(&a, &b, &o, 1e-10, &format!("{power}, {devices}"));
            }
            let o = solve(&a, &b, &lsmr(Precond::Jacobi, Precision::Mixed, devices), 1e-10);
            assert_eq!(o.reason, Reason::LeastSquares, "{power}, {devices}");
            check(&a, &b, &o, 1e-10, &format!("{power}, {devices}"));
        }
    }
}

/// Scaled columns take as many iterations whatever the columns' units; so does any unit of A and b.
#[test]
fn units_do_not_matter() {
    let a = random(80, 30, 7);
    let b = random_vector(80, 8);
    let count = |a: &Csr, b: &[f64], precond| {
        let o = solve(a, b, &lsmr(precond, Precision::F64, "D,D"), 1e-9);
        check(a, b, &o, 1e-9, "units");
        o.iterations
    };
    let usual = count(&a, &b, Precond::Jacobi);
    let scaled = |by: &dyn Fn(usize) -> f64| {
        let values = a.col_idx().iter().zip(a.values()).map(|(&j, v)| v * by(j as usize)).collect();
        Csr::new(80, 30, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    };
    let uneven = scaled(&|j| 2f64.powi(j as i32 % 7 * 2));
    let with = count(&uneven, &b, Precond::Jacobi);
    let without = count(&uneven, &b, Precond::None);
    assert!(with <= usual + 3 && 2 * with < without, "{usual}, {with}, {without}");
    for (of_a, of_b) in [(1e60, 1e-40), (1e-60, 1e50)] {
        let huge = scaled(&|_| of_a);
        let b: Vec<f64> = b.iter().map(|b| b * of_b).collect();
        for precond in [Precond::Jacobi, Precond::None] {
            let o = solve(&huge, &b, &lsmr(precond, Precision::F64, "D,D"), 1e-9);
            assert_eq!(o.reason, Reason::LeastSquares, "{of_a:e}, {precond}");
            check(&huge, &b, &o, 1e-9, &format!("{of_a:e}"));
        }
    }
}

/// A singular system without a solution: named, `lsmr` finds the least squares; `auto` does as it did.
#[test]
fn singular_systems() {
    let grid = system("poisson2d:9x8");
    let sums: Vec<f64> = grid.mul_vec(&[1.0; 72]);
    // less its row sums on the diagonal, it has constants in its null space
    let (rows, cols, mut values) = grid.to_triplets();
    for (k, value) in values.iter_mut().enumerate().filter(|(k, _)| rows[*k] == cols[*k]) {
        *value -= sums[rows[k] as usize];
    }
    let a = Csr::from_triplets(72, 72, &rows, &cols, &values).unwrap();
    let b = random_vector(72, 2);
    for devices in ["host", "D", "D,D,D"] {
        let setup = lsmr(Precond::Jacobi, Precision::F64, devices);
        let o = solve(&a, &b, &setup, 1e-9);
        assert_eq!(o.reason, Reason::LeastSquares, "{devices}");
        check(&a, &b, &o, 1e-9, devices);
        let mean = b.iter().sum::<f64>() / 72f64.sqrt();
        assert!((o.residual.norm_2 - mean.abs()).abs() < 1e-8, "{devices}: what is left is the part along constants");
    }
    let o = solve(&a, &b, &setup(Method::Auto, Precond::Jacobi, Precision::F64, &choice("host")), 1e-9);
    assert!(!o.reason.converged(), "{}", o.reason);
    assert_eq!(o.residual.optimality, None);
}

#[test]
fn formats_shares_and_exchanges() {
    let a = random(300, 90, 12);
    let b = random_vector(300, 13);
    for format in [Format::Csr, Format::Sell] {
        let setup = lsmr(Precond::Jacobi, Precision::F64, "D,D").with_format(format);
        check(&a, &b, &solve(&a, &b, &setup, 1e-9), 1e-9, format.name());
    }
    for &exchange in Exchange::ALL {
        let setup = lsmr(Precond::Jacobi, Precision::F64, "D,D,D").with_exchange(exchange);
        check(&a, &b, &solve(&a, &b, &setup, 1e-9), 1e-9, exchange.name());
    }
    for shares in ["1:0:2", "0:1:0", "5:1:1"] {
        let shares: Shares = shares.parse().unwrap();
        let setup = lsmr(Precond::Jacobi, Precision::F64, "D,host,D").with_shares(shares.clone());
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        check(&a, &b, &solve_with(&mut solver, &b, 1e-9), 1e-9, &shares.to_string());
        let whole: f64 = shares.parts().iter().sum();
        for (rank, share) in solver.ranks().iter().zip(shares.parts()) {
            assert!((rank.share - share / whole).abs() < 0.02, "{shares}: {}", rank.share);
        }
    }
}

/// Who stops early has the x that was reached; who looks on the way sees x as it will be.
#[test]
fn limits_and_iterates_on_the_way() {
    let a = random(400, 150, 21);
    let b = random_vector(400, 22);
    for devices in ["host", "D", "D,D,D"] {
        let mut solver = Solver::new(a.clone(), &lsmr(Precond::Jacobi, Precision::F64, devices)).unwrap();
        let seen = Mutex::new(Vec::new());
        let take = |at: &Checkpoint<'_>| seen.lock().unwrap().push((at.x.to_vec(), at.rel_residual_2));
        let control = Control::default().with_checkpoint(Checkpoints::new(Duration::ZERO, &take));
        let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-11), control).unwrap();
        check(&a, &b, &o, 1e-11, devices);
        for (x, told) in seen.lock().unwrap().iter() {
            let found = relative_residual(&a, &b, x);
            assert!((found - told).abs() < 1e-9, "{devices}: {found:e}, {told:e}");
        }
        let o = solver.solve(&b, None, &Stop::default().with_max_iters(3), Control::default()).unwrap();
        let found = relative_residual(&a, &b, &o.x);
        assert_eq!((o.reason, o.iterations), (Reason::MaxIters, 3), "{devices}");
        assert!(found < 1.0 && (found - o.recurrence_rel_residual_2).abs() < 1e-12, "{devices}: {found:e}");
    }
}

#[test]
fn what_is_refused() {
    let wide = dense(&[&[1.0, 2.0, 0.0], &[2.0, 5.0, 0.0]]);
    let host = || Setup::default().with_devices("host".parse().unwrap());
    for &method in Method::FORCED.iter().chain(&[Method::Direct]) {
        let error = Solver::new(wide.clone(), &host().with_method(method)).unwrap_err();
        assert!(matches!(error, Error::Rectangular { rows: 2, cols: 3, .. }), "{error}");
        assert!(error.to_string().contains("method = lsmr"), "{error}");
    }
    let solver = Solver::new(wide.clone(), &host()).unwrap();
    assert_eq!((solver.method(), solver.method_reason()), (Method::Lsmr, None));
    let error = Solver::new(wide.clone(), &host().with_reorder(Reorder::Rcm)).unwrap_err();
    let words = "lsmr has rows and columns as they are given";
    assert!(matches!(&error, Error::Usage(why) if why.contains(words)), "{error}");
    let mut solver = Solver::new(wide, &host()).unwrap();
    let mut of = |b: &[f64], x0: &[f64]| solver.solve(b, Some(x0), &Stop::default(), Control::default()).unwrap_err();
    assert!(matches!(of(&[1.0; 3], &[0.0; 3]), Error::SizeMismatch { expected: 2, found: 3, .. }));
    assert!(matches!(of(&[1.0; 2], &[0.0; 2]), Error::SizeMismatch { expected: 3, found: 2, .. }));
    let function = HostOperator::new(2, |x: &[f64], y: &mut [f64]| y.copy_from_slice(x));
    let error = OperatorSolver::new(function, &host().with_method(Method::Lsmr)).unwrap_err();
    assert!(error.to_string().contains("has no transpose"), "{error}");
}

/// x = (1 + i, 2) is nearest to b: what is left is orthogonal to both columns.
#[test]
fn complex_least_squares() {
    let i = Complex64::I;
    let one = Complex64::ONE;
    let (rows, cols) = ([0, 1, 2, 2], [0, 1, 0, 1]);
    let a = Csr::from_triplets(3, 2, &rows, &cols, &[one, i, i, one]).unwrap();
    let x = [one + i, 2.0 * one];
    let orthogonal = [-i, i, -one]; // to both columns
    let b: Vec<Complex64> = (0..3)
        .map(|k| {
            let (cols, values) = a.row(k);
            cols.iter().zip(values).map(|(&j, &v)| v * x[j as usize]).sum::<Complex64>() + orthogonal[k]
        })
        .collect();
    for method in [Method::Auto, Method::Lsmr] {
        for devices in ["host", "D,D"] {
            let setup = setup(method, Precond::Jacobi, Precision::F64, &choice(devices));
            let mut solver = ComplexSolver::new(a.clone(), &setup).unwrap();
            let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-12), Control::default()).unwrap();
            let r: Vec<Complex64> = (0..3)
                .map(|k| {
                    let (cols, values) = a.row(k);
                    b[k] - cols.iter().zip(values).map(|(&j, &v)| v * o.x[j as usize]).sum::<Complex64>()
                })
                .collect();
            let gradient = [r[0] - i * r[2], -i * r[1] + r[2]];
            assert_eq!(o.reason, Reason::LeastSquares, "{method}, {devices}");
            assert!(gradient.iter().all(|g| g.norm() < 1e-11), "{method}, {devices}: {gradient:?}");
            assert!(o.x.iter().zip(x).all(|(found, x)| (*found - x).norm() < 1e-11), "{method}, {devices}: {:?}", o.x);
            assert!(o.residual.optimality.is_some_and(|found| found <= 1e-12), "{method}, {devices}");
        }
    }
}

/// As a file.
fn file(a: &Csr) -> String {
    let (rows, cols, values) = a.to_triplets();
    let head = format!("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", a.n_rows(), a.n_cols(), a.nnz());
    let lines = (0..a.nnz()).map(|k| format!("{} {} {:e}\n", rows[k] + 1, cols[k] + 1, values[k]));
    head + &lines.collect::<String>()
}

#[test]
fn the_command_fits_a_line() {
    let place = Place::new();
    place.write("A.mtx", file(&dense(&[&[1.0, 1.0], &[1.0, 2.0], &[1.0, 3.0], &[1.0, 4.0]])));
    place.write("b.mtx", array(&[vec![6.0, 5.0, 7.0, 10.0]]));
    let text = place.run("solve A.mtx -b b.mtx --devices 0 -o x.mtx --rtol 1e-12").ok();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Least squares found in 2 iterations: ‖b − A x‖ = 2.05e0, and no x has less.",
        "4 rows, 2 columns, 8 entries",
        "rectangular",
        "lsmr, preconditioner jacobi",
        "LeastSquares: no x has a smaller residual, which is not 0: the system has no solution",
        "‖Aᵀ r‖ / (α ‖r‖) = ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let x = &place.vectors("x.mtx")[0];
    assert!(x.len() == 2 && (x[0] - 3.5).abs() < 1e-11 && (x[1] - 1.4).abs() < 1e-11, "{x:?}");

    let json = place.run("solve A.mtx -b b.mtx --devices 0,host --rtol 1e-12 -x x.mtx --json").ok();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["reason"], &value["converged"]), (&"LeastSquares".into(), &true.into()));
    assert!(value["optimality"].as_f64().unwrap() <= 1e-12);
    assert_eq!((&value["matrix"]["rows"], &value["matrix"]["columns"]), (&4.into(), &2.into()));
    assert!((value["residual_2"].as_f64().unwrap() - 4.2f64.sqrt()).abs() < 1e-12);

    // a right-hand side that has a solution
    let text = place.run("solve A.mtx --rhs A*ones --devices host").ok();
    assert!(text.starts_with("Converged in 2 iterations"), "{text}");
    place.run("solve A.mtx --method minres").fails(2, &["A.mtx", "4 rows and 2 columns", "--method lsmr"]);
    place.run("solve A.mtx -b x.mtx").fails(2, &["x.mtx has 2 rows, but the matrix has 4"]);
    place.run("solve A.mtx -x b.mtx").fails(2, &["b.mtx has 4 rows, but the matrix has 2"]);
    let text = place.run("solve A.mtx -b b.mtx --devices 0,host --rtol 1e-12 --precision mixed").ok();
    assert!(text.contains("LeastSquares: no x has a smaller residual"), "{text}");
}

#[test]
fn the_command_goes_on_from_a_checkpoint() {
    let place = Place::new();
    let a = random(300, 120, 31);
    let b = random_vector(300, 32);
    place.write("A.mtx", file(&a));
    place.write("b.mtx", array(std::slice::from_ref(&b)));
    place.run("solve A.mtx -b b.mtx --devices 0 --max-iters 8 --checkpoint A.ckpt").ends(1);
    let text = place.run("solve A.mtx -b b.mtx --devices host --resume A.ckpt -o x.mtx").ok();
    assert!(text.contains("A.ckpt, after 8 iterations"), "{text}");
    let r = residual(&a, &b, &place.vectors("x.mtx")[0]);
    assert!(norm(&transposed_product(&a, &r)) <= 1.01e-8 * column_norm(&a) * norm(&r));
    place.write("T.mtx", file(&a.transposed().unwrap()));
    place
        .run("solve T.mtx --resume A.ckpt")
        .fails(2, &["A.ckpt", "another system, with 120 unknowns; this one has 300"]);
}

/// A lax test in single precision: that Aᵀ r is small on the whole, as A has many columns, makes no least residual.
#[test]
fn a_smooth_residual_is_not_the_least() {
    let a = system("convection3d:16");
    let b = random_vector(a.n_rows(), 9);
    for devices in ["host", "D"] {
        for rtol in [1e-2, 1e-3] {
            let o = solve(&a, &b, &lsmr(Precond::Jacobi, Precision::F32, devices), rtol);
            check(&a, &b, &o, rtol, devices);
            assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{devices}, {rtol:e}: {:?}", o.residual);
        }
    }
}

/// A device that fails at any time, in the product with A or with its transpose: the others go on.
#[test]
fn the_command_goes_on_without_a_device() {
    let place = Place::new();
    let a = random(300, 120, 31);
    let b = random_vector(300, 32);
    place.write("A.mtx", file(&a));
    place.write("b.mtx", array(std::slice::from_ref(&b)));
    let mut failures = 0;
    for count in [2, 20, 61, 90] {
        let args = "solve A.mtx -b b.mtx --devices 0,1,host --on-failure continue --checkpoint-every 0s -o x.mtx";
        let run = Run::in_time(on_three_devices(place.command(args), &format!("1:launch:{count}")));
        failures += usize::from(run.err.contains("the other devices"));
        run.ok();
        let r = residual(&a, &b, &place.vectors("x.mtx")[0]);
        let optimality = norm(&transposed_product(&a, &r)) / column_norm(&a) / norm(&r);
        assert!(optimality <= 1.01e-8, "{count}: {optimality:e}");
    }
    assert!(failures >= 3, "{failures}");
}

/// A problem of the gallery, and one that has fewer rows than columns; x of both by all kinds of ranks.
#[test]
fn surfaces_through_points() {
    for name in ["fit2d:12x9", "fit2d:9x12,points=1", "fit2d:8,scramble=3"] {
        let a = system(name);
        let b = random_vector(a.n_rows(), 6);
        for devices in ["host", "D,D,D"] {
            let o = solve(&a, &b, &lsmr(Precond::Jacobi, Precision::F64, devices), 1e-9);
            check(&a, &b, &o, 1e-9, &format!("{name}, {devices}"));
            assert_eq!(o.reason == Reason::LeastSquares, a.n_rows() > a.n_cols(), "{name}, {devices}");
        }
    }
}
