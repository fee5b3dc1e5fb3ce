//! Factors of dense matrices by `--method dense`, and by itself where a matrix is dense. Each test recomputes b − A x by itself.

use std::fmt::Write;

use crate::common::process::Place;
use crate::common::{choice, general, relative_residual, setup, solve, system};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::solve::{ComplexSolver, Criterion, Exchanges, Method, Precision, Precond, Singularity, is_dense};
use declive::tune::store::{Device, Store};
use declive::tune::{self, Watch};
use declive::{Control, Csr, Error, HostOperator, OperatorSolver, Reason, Setup, Solver, Stop, dense};

fn host() -> Choice {
    "host".parse().unwrap()
}

fn by_dense(precision: Precision, devices: &Choice) -> Setup {
    setup(Method::Dense, Precond::Jacobi, precision, devices)
}

/// All elements are entries.
fn full(n: usize, element: impl Fn(usize, usize) -> f64) -> Csr {
    let elements = (0..n * n).map(|k| (k / n, k % n));
    general(n, elements.map(|(i, j)| (i, j, element(i, j))))
}

/// A number between −½ and ½ as if by chance.
fn number(i: usize, j: usize) -> f64 {
    let z = ((i * 8191 + j + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// Not symmetric; symmetric and not definite; symmetric and definite.
fn kinds(n: usize) -> [(Csr, dense::Kind); 3] {
    let symmetric = |i: usize, j: usize| number(i.max(j), i.min(j));
    let definite = |i, j| if i == j { n as f64 } else { symmetric(i, j) };
    [
        (full(n, number), dense::Kind::Lu),
        (full(n, symmetric), dense::Kind::Ldlt),
        (full(n, definite), dense::Kind::Cholesky),
    ]
}

#[test]
fn by_hand() {
    let a = general(2, [(0, 1, 2.0), (1, 0, 4.0)]);
    for precision in Precision::ALL {
        for devices in [host(), choice("D"), choice("D,D")] {
            let o = solve(&a, &[6.0, 8.0], &by_dense(*precision, &devices), 1e-14);
            assert_eq!((o.reason, &o.x[..]), (Reason::Converged(Criterion::Rtol), &[2.0, 3.0][..]), "{precision}");
            assert_eq!(o.history.len() as u64, o.iterations + 1);
        }
    }
}

#[test]
fn every_kind_of_matrix_in_every_precision() {
    let n = 150;
    for (a, kind) in kinds(n) {
        let b = gallery::random_vector(n, 3);
        for precision in Precision::ALL {
            let mut first: Option<Vec<f64>> = None;
            for devices in [host(), choice("D"), choice("D,D,D")] {
                let mut solver = Solver::new(a.clone(), &by_dense(*precision, &devices)).unwrap();
                let (stop, control) = (Stop::default().with_rtol(1e-12), Control::default());
                let o = solver.solve(&b, None, &stop, control).unwrap();
                assert!(o.reason.converged(), "{kind}, {precision}, {devices}: {}", o.reason);
                assert!(relative_residual(&a, &b, &o.x) <= 1e-12, "{kind}, {precision}, {devices}");
                let factors = solver.dense_factors().unwrap();
                let is_on_host = devices == host();
                assert_eq!((factors.kind, factors.devices.is_empty()), (kind, is_on_host));
                assert!(factors.exchanges.is_none());
                if !is_on_host {
                    // the same bits on one rank and on three
                    assert!(first.get_or_insert_with(|| o.x.clone()) == &o.x, "{kind}, {precision}, {devices}");
                }
                // the same factors for another right-hand side
                let c = gallery::random_vector(n, 4);
                let o = solver.solve(&c, None, &stop, control).unwrap();
                assert!(o.reason.converged() && relative_residual(&a, &c, &o.x) <= 1e-12);
            }
        }
    }
}

/// A matrix that single precision takes for one nearby gets factors in double precision; in single precision alone that is said.
#[test]
fn single_precision_that_does_not_serve() {
    let n = 12;
    let a = full(n, |i, j| 1.0 / (i + j + 1) as f64);
    let b = vec![1.0; n];
    for devices in [host(), choice("D")] {
        let mut solver = Solver::new(a.clone(), &by_dense(Precision::Mixed, &devices)).unwrap();
        let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-6), Control::default()).unwrap();
        let factors = solver.dense_factors().unwrap();
        assert!(o.reason.converged() && factors.precision == Precision::F64, "{}", o.reason);
        assert!(relative_residual(&a, &b, &o.x) <= 1e-6);
    }
    let o = solve(&a, &b, &by_dense(Precision::F32, &host()), 1e-6);
    assert!(!o.reason.converged(), "{}", o.reason);
}

#[test]
fn singular_matrices_are_named_by_their_column() {
    let a = full(5, |i, j| if j == 3 { 0.0 } else { number(i, j) });
    for devices in [host(), choice("D,D")] {
        let o = solve(&a, &[1.0; 5], &by_dense(Precision::F64, &devices), 1e-8);
        assert_eq!(o.reason, Reason::Singular(Singularity::Column { column: 4 }));
        assert!(o.reason.to_string().contains("no pivot in column 4"), "{}", o.reason);
    }
}

/// Devices come to L U where L D Lᵀ without pivots ends, or is too inexact.
#[test]
fn rows_are_exchanged_where_butterflies_do_not_serve() {
    let n = 12;
    let uneven = full(n, |i, j| match (i == j, i % 5) {
        (false, _) => 0.0,
        (true, 1) => -1e-20,
        (true, _) => 1.0 + i as f64,
    });
    // Hilbert's with signs, less the identity turned upside down: elements grow by 10¹⁵
    let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    let growing = full(128, |i, j| sign(i) * sign(j) / (i + j + 1) as f64 - f64::from(u8::from(i + j == 127)));
    for (a, precision, is_pivot) in
        [(&uneven, Precision::F64, true), (&uneven, Precision::Mixed, true), (&growing, Precision::F64, false)]
    {
        let b = gallery::random_vector(a.n_rows(), 3);
        let mut first: Option<Vec<f64>> = None;
        for devices in [choice("D"), choice("D,D")] {
            let mut solver = Solver::new(a.clone(), &by_dense(precision, &devices)).unwrap();
            let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-10), Control::default()).unwrap();
            assert!(o.reason.converged() && relative_residual(a, &b, &o.x) <= 1e-10, "{}", o.reason);
            let factors = solver.dense_factors().unwrap();
            assert_eq!(factors.kind, dense::Kind::Lu);
            let why = factors.exchanges.unwrap();
            assert_eq!(matches!(why, Exchanges::Pivot { .. }), is_pivot, "{why}");
            assert!(why.to_string().contains("LDLᵀ"), "{why}");
            assert!(first.get_or_insert_with(|| o.x.clone()) == &o.x, "{devices}");
        }
    }
    // singular ones are named by these factors
    let singular = full(5, |i, j| if i == 3 || j == 3 { 0.0 } else { number(i.max(j), i.min(j)) });
    let o = solve(&singular, &[1.0; 5], &by_dense(Precision::F64, &choice("D,D")), 1e-8);
    assert_eq!(o.reason, Reason::Singular(Singularity::Column { column: 4 }));
}

#[test]
fn dense_ones_are_recognised() {
    let n = 300;
    let sparse = system("poisson2d:17");
    let (a, _) = kinds(n).into_iter().next().unwrap();
    // a tenth of all elements is enough
    let few = general(
        n,
        (0..n * n)
            .map(|k| (k / n, k % n))
            .filter(|(i, j)| i == j || (i + 7 * j) % 10 == 0)
            .map(|(i, j)| (i, j, if i == j { 1.0 } else { number(i, j) })),
    );
    assert!(is_dense(&a) && is_dense(&few) && !is_dense(&sparse) && !is_dense(&kinds(200)[0].0));
    for a in [a, few] {
        for (devices, is_host) in [(host(), true), (Choice::Auto, true), (choice("D"), false)] {
            let auto = setup(Method::Auto, Precond::Jacobi, Precision::F64, &devices);
            let mut solver = Solver::new(a.clone(), &auto).unwrap();
            assert_eq!(solver.method(), Method::Dense);
            let o = solver.solve(&vec![1.0; n], None, &Stop::default(), Control::default()).unwrap();
            assert!(o.reason.converged() && relative_residual(&a, &vec![1.0; n], &o.x) <= 1e-8, "{}", o.reason);
            // a small one is not worth opening a device
            assert_eq!(solver.dense_factors().unwrap().devices.is_empty(), is_host, "{devices}");
        }
        // what was asked for stays
        let jacobi = setup(Method::Idr, Precond::Jacobi, Precision::F64, &host());
        assert_eq!(Solver::new(a, &jacobi).unwrap().method(), Method::Idr);
    }
}

#[test]
fn a_singular_one_goes_on_to_least_squares() {
    let n = 260;
    // of rank n - 1, and b in its range
    let a = full(n, |i, j| if j == n - 1 { 0.0 } else { number(i, j) });
    let x = gallery::random_vector(n, 5);
    let b: Vec<f64> = (0..n).map(|i| (0..n - 1).map(|j| number(i, j) * x[j]).sum()).collect();
    let auto = setup(Method::Auto, Precond::Jacobi, Precision::F64, &host());
    let mut solver = Solver::new(a.clone(), &auto).unwrap();
    let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-6), Control::default()).unwrap();
    assert_eq!((o.switches[0].from, solver.method()), (Method::Dense, Method::Lsmr));
    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-6, "{}", o.reason);
}

/// Hilbert's matrix, whose inverse has integers.
#[test]
fn conditions_are_estimated() {
    let hilbert = full(5, |i, j| 1.0 / (i + j + 1) as f64);
    for devices in [host(), choice("D"), choice("D,D")] {
        let mut solver = Solver::new(hilbert.clone(), &by_dense(Precision::F64, &devices)).unwrap();
        assert_eq!(solver.estimate_condition().unwrap(), None);
        solver.solve(&[1.0; 5], None, &Stop::default(), Control::default()).unwrap();
        assert_eq!(solver.dense_factors().unwrap().condition, None);
        let condition = solver.estimate_condition().unwrap().unwrap();
        assert!((condition / 943_656.0 - 1.0).abs() < 1e-8, "{condition} on {devices}");
        assert_eq!(solver.dense_factors().unwrap().condition, Some(condition));
    }
}

#[test]
fn complex_and_functions() {
    let a = general(2, [(0, 1, 2.0), (1, 0, 4.0)]);
    let operator = HostOperator::new(2, move |x: &[f64], y: &mut [f64]| {
        (0..2).for_each(|i| y[i] = a.row(i).0.iter().zip(a.row(i).1).map(|(&j, v)| v * x[j as usize]).sum());
    });
    let found = OperatorSolver::new(operator, &by_dense(Precision::F64, &host()));
    assert!(matches!(found.err(), Some(Error::Usage(why)) if why.contains("no factors")));
    let i = declive::matrix::Complex64::new(0.0, 1.0);
    let a = Csr::<declive::matrix::Complex64>::new(1, 1, vec![0, 1], vec![0], vec![2.0 * i]).unwrap();
    let mut solver = ComplexSolver::new(a, &by_dense(Precision::F64, &host())).unwrap();
    let o = solver.solve(&[4.0 * i], None, &Stop::default(), Control::default()).unwrap();
    assert_eq!(o.x, [declive::matrix::Complex64::new(2.0, 0.0)]);
}

/// Columns after the first are solved and refined together: each as one alone, with its own outcome.
#[test]
fn several_right_hand_sides_by_the_same_factors() {
    let n = 90;
    for (a, kind) in kinds(n) {
        for (precision, devices) in
            [(Precision::F64, host()), (Precision::F64, choice("D,D")), (Precision::Mixed, choice("D"))]
        {
            let mut b: Vec<f64> = (0..5).flat_map(|k| gallery::random_vector(n, k)).collect();
            // small, and zero
            b[n..2 * n].iter_mut().for_each(|v| *v *= 1e-60);
            b[3 * n..4 * n].fill(0.0);
            let (stop, mut x) = (Stop::default().with_rtol(1e-12), vec![0.5; 5 * n]);
            let mut solver = Solver::new(a.clone(), &by_dense(precision, &devices)).unwrap();
            let outcomes = solver.solve_columns(&b, &mut x, &stop, Control::default()).unwrap();
            assert_eq!((outcomes.len(), solver.dense_factors().unwrap().kind), (5, kind));
            for (k, (outcome, (b, x))) in outcomes.iter().zip(b.chunks(n).zip(x.chunks(n))).enumerate() {
                let what = format!("column {k}, {kind}, {precision}, {devices}: {}", outcome.reason);
                assert!(outcome.reason.converged(), "{what}");
                assert_eq!(outcome.history.len() as u64, outcome.iterations + 1, "{what}");
                if k == 3 {
                    assert!(x.iter().all(|&x| x == 0.0), "{what}");
                } else {
                    assert!(outcome.iterations > 0 && relative_residual(&a, b, x) <= 1e-12, "{what}");
                }
            }
        }
    }
}

/// What single precision does not serve for goes on alone.
#[test]
fn a_column_for_which_the_factors_do_not_serve() {
    let n = 12;
    let a = full(n, |i, j| 1.0 / (i + j + 1) as f64);
    let mut b = vec![1.0; 3 * n];
    // of the first column, A e₁, single precision makes enough
    b[..n].iter_mut().enumerate().for_each(|(i, b)| *b = 1.0 / (i + 1) as f64);
    let mut x = vec![0.0; 3 * n];
    let mut solver = Solver::new(a.clone(), &by_dense(Precision::Mixed, &choice("D"))).unwrap();
    let outcomes = solver.solve_columns(&b, &mut x, &Stop::default().with_rtol(1e-6), Control::default()).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.reason.converged()));
    assert_eq!(solver.dense_factors().unwrap().precision, Precision::F64);
    assert!(b.chunks(n).zip(x.chunks(n)).all(|(b, x)| relative_residual(&a, b, x) <= 1e-6));
}

/// An `array` file as a process solves it.
#[test]
fn an_array_file() {
    let (place, n) = (Place::new(), 260);
    let mut text = format!("%%MatrixMarket matrix array real general\n{n} {n}\n");
    (0..n * n).for_each(|k| writeln!(text, "{:e}", number(k % n, k / n)).unwrap());
    place.write("A.mtx", text);
    let out = place.run("solve A.mtx -o x.mtx --devices host").ok();
    let factors = out.lines().find(|line| line.trim_start().starts_with("factors")).unwrap();
    assert!(
        out.contains("method          dense") && factors.contains("lu of a dense matrix in f64, on the host"),
        "{out}"
    );
    let (a, x) = (place.matrix("A.mtx"), place.vectors("x.mtx").remove(0));
    assert!(relative_residual(&a, &vec![1.0; n], &x) <= 1e-8);
    let conditioned = place.run("solve A.mtx --condition --devices host").ok();
    assert!(conditioned.contains("condition       about ") && !out.contains("condition  "), "{conditioned}");
    let without = place.run("solve A.mtx --condition --method gmres --devices host --max-iters 1").ends(1);
    assert!(without.err.contains("no --condition: it needs the factors of a dense matrix"), "{}", without.err);
    let report = place.run("solve A.mtx --method dense --devices 0,0 --precision mixed --json").ends(0).json();
    assert_eq!(report["dense"]["precision"], "f32");
    assert_eq!(report["dense"]["devices"].as_array().unwrap().len(), 2);
}

/// What tuning finds of products is kept for later ones, in one file with all else.
#[test]
fn tiles_are_kept() {
    let place = Place::new();
    let info = declive::device::list().devices.remove(0);
    let (store, device) = (Store::at(place.cache()), Device::from(&info));
    let times = tune::products(&info, 40, Precision::F32, Watch::default()).unwrap();
    assert!(times.windows(2).all(|pair| pair[0].time.median <= pair[1].time.median));
    let last = times.last().unwrap();
    assert!(tune::keep_product(&store, &info, Precision::F32, last).is_some());
    assert!(tune::keep_product(&store, &info, Precision::F32, &times[0]).is_some());
    assert!(tune::keep_product(&store, &info, Precision::F64, last).is_some());
    let known = store.load(&device);
    let tiles: Vec<_> = known.products.iter().map(|entry| (entry.key.element.as_str(), entry.tiles)).collect();
    assert_eq!(tiles, [("double", last.tiles), ("float", times[0].tiles)]);
    assert_eq!(known.product(&known.products[1].key), Some(&known.products[1]));
    // what makes no sense is left out
    let mut bad = known.products[0].clone();
    bad.flops_per_second = f64::NAN;
    store.insert_product(&device, bad);
    assert_eq!(store.load(&device).products, known.products);
}

#[test]
fn bench_blas_has_products_and_factorisations() {
    let place = Place::new();
    let report = place.run("bench blas --size 100 --devices 0 --repeat 1 --json").ends(0).json();
    let products = report["devices"][0]["products"].as_array().unwrap();
    assert!(products.len() >= 2 && products.iter().all(|one| one["flops_per_second"].as_f64().unwrap() > 0.0));
    let vectors = report["devices"][0]["vectors"].as_array().unwrap();
    assert_eq!(vectors.iter().map(|one| one["task"].as_str().unwrap()).collect::<Vec<_>>(), ["axpy", "dot", "scan"]);
    assert!(vectors.iter().all(|one| one["is_right"] == true && one["n"] == 10_000), "{vectors:?}");
    assert_eq!(report["hosts"][0]["vectors"].as_array().unwrap().len(), 3);
    let all = report["factorisations"].as_array().unwrap();
    let kinds: Vec<&str> = all.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["lu", "cholesky", "ldlt", "lu", "cholesky", "ldlt"]);
    let text = place.run("bench blas --size 64 --devices 0 --repeat 1 --products-only --precision f32").ok();
    assert!(text.contains("tuned") && text.contains("4,096 elements") && !text.contains("Factorisations"), "{text}");
    let refused = place.run("bench blas --precision mixed").ends(2);
    assert!(refused.err.contains("--precision mixed"), "{}", refused.err);
}
