//! Matrices with a narrow band, and the bench of tridiagonal systems.

use declive::matrix::gallery;
use declive::solve::{Method, Reason};
use declive::{Control, Csr, Error, Setup, Solver, Stop};
use serde_json::Value;

use crate::common::process::{Place, Run};

/// A matrix of these diagonals: numbers as if by chance, by `on` on the main one.
fn banded(n: usize, lower: usize, upper: usize, on: impl Fn(usize) -> f64) -> Csr {
    let mut entries = Vec::new();
    for i in 0..n {
        for j in i.saturating_sub(lower)..n.min(i + upper + 1) {
            let value = if i == j { on(i) } else { ((7 * i + 13 * j) % 11) as f64 - 5.5 };
            entries.push((i, j, value));
        }
    }
    let mut row_ptr = vec![0; n + 1];
    entries.iter().for_each(|(i, ..)| row_ptr[i + 1] += 1);
    (0..n).for_each(|i| row_ptr[i + 1] += row_ptr[i]);
    let (columns, values) = entries.iter().map(|(_, j, v)| (*j as u32, *v)).unzip();
    Csr::new(n, n, row_ptr, columns, values).unwrap()
}

/// The largest residual of a row, beside numbers of this size.
fn residual(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
    let row = |i: usize| {
        let (columns, values) = a.row(i);
        b[i] - columns.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum::<f64>()
    };
    let largest = x.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
    (0..b.len()).map(|i| row(i).abs()).fold(0.0, f64::max) / (50.0 * largest)
}

fn solved(a: &Csr, method: Method) -> (Solver, Vec<f64>, Reason) {
    let mut solver = Solver::new(a.clone(), &Setup::default().with_method(method)).unwrap();
    let b = gallery::random_vector(a.n_rows(), 5);
    let outcome = solver.solve(&b, None, &Stop::default().with_rtol(1e-12), Control::default()).unwrap();
    let x = outcome.x.to_vec();
    if outcome.reason.converged() {
        assert!(residual(a, &x, &b) < 1e-14, "{:e}", residual(a, &x, &b));
    }
    (solver, x, outcome.reason)
}

#[test]
fn narrow_bands_are_eliminated() {
    for (n, lower, upper) in [(1000, 1, 1), (777, 2, 2), (600, 8, 8), (300, 0, 3), (400, 5, 0), (96, 1, 1)] {
        // zeros on the diagonal have rows exchanged
        let on = |i: usize| if lower * upper > 0 && i.is_multiple_of(3) { 0.0 } else { 30.0 };
        let a = banded(n, lower, upper, on);
        for method in [Method::Auto, Method::Tridiagonal] {
            let (solver, _, reason) = solved(&a, method);
            assert!(reason.converged(), "{n} rows, {lower} and {upper}: {reason}");
            assert_eq!((solver.method(), solver.ranks().len()), (Method::Tridiagonal, 1));
        }
    }
}

#[test]
fn other_matrices_are_not() {
    let wide = banded(500, 9, 1, |_| 60.0);
    assert_ne!(solved(&wide, Method::Auto).0.method(), Method::Tridiagonal);
    let setup = Setup::default().with_method(Method::Tridiagonal);
    let error = Solver::new(wide, &setup).err().unwrap();
    assert!(matches!(error, Error::NotBanded { row: 10, col: 1, most: 8 }), "{error}");
    // small beside its band
    assert_eq!(solved(&banded(95, 1, 1, |_| 30.0), Method::Auto).0.method(), Method::Direct);
    assert_eq!(solved(&banded(95, 1, 1, |_| 30.0), Method::Tridiagonal).0.method(), Method::Tridiagonal);
}

#[test]
fn a_singular_band_is_said_to_be_so() {
    // an empty column but for rounding: rows 5 and 6 are equal
    let n = 100;
    let mut a = vec![vec![0.0; n]; n];
    (0..n).for_each(|i| a[i][i] = 1.0);
    (a[5][5], a[5][6], a[6][5], a[6][6]) = (2.0, 3.0, 2.0, 3.0);
    let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in &a {
        for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            columns.push(j as u32);
            values.push(*v);
        }
        row_ptr.push(columns.len());
    }
    let a = Csr::new(n, n, row_ptr, columns, values).unwrap();
    let (_, _, reason) = solved(&a, Method::Tridiagonal);
    assert!(matches!(reason, Reason::Singular(_)), "{reason}");
}

#[test]
fn the_command_says_so() {
    let place = Place::new();
    let lines: String = (1..=200)
        .map(|i| if i < 200 { format!("{i} {i} 4\n{} {i} -1\n", i + 1) } else { format!("{i} {i} 4\n") })
        .collect();
    let text = format!("%%MatrixMarket matrix coordinate real symmetric\n200 200 399\n{lines}");
    std::fs::write(place.path("T.mtx"), text).unwrap();
    let report = place.run("solve T.mtx --json").ends(0).json();
    assert_eq!(report["options"]["method"], "tridiagonal", "{}", report["options"]);
    let text = place.run("solve T.mtx --method tridiagonal").ends(0).out;
    assert!(text.contains("tridiagonal"), "{text}");
    let text = place.run("info T.mtx").ends(0).out;
    assert!(text.contains("tridiagonal, if no devices are named"), "{text}");
    let failed = place.run("solve --generate poisson2d:12 --method tridiagonal");
    failed.fails(2, &["a(1,13) is 12 off the diagonal", "--method auto"]);
}

#[test]
fn methods_of_systems_are_timed() {
    let place = Place::new();
    let run = |args: &str| Run::of(place.command(&format!("bench tridiagonal --devices 0 --repeat 2 {args}")), "");
    for precision in ["f64", "f32"] {
        let json = run(&format!("--systems 9 --size 130 --precision {precision} --json")).ends(0).json();
        let entries = json["entries"].as_array().unwrap();
        let methods: Vec<&str> = entries.iter().map(|entry| entry["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["thomas", "partition", "pivoting", "thomas", "cr", "pcr", "hybrid", "partition"]);
        for entry in entries {
            let number = |field: &str| entry[field].as_f64().unwrap_or_else(|| panic!("{field} of {entry}"));
            assert!(number("error") < 1e-4 && number("rows_per_second") > 0.0, "{entry}");
            assert_eq!(
                (&entry["is_wrong"], &entry["systems"], &entry["size"]),
                (&false.into(), &9.into(), &130.into())
            );
            if entry["device"] != Value::Null {
                assert!(number("part_of_copy") > 0.0 && number("bytes") >= 5.0 * 9.0 * 130.0 * 4.0);
            }
        }
    }
    let text = run("--size 100000 --layout interleaved").ok();
    for part in ["(CPU), copies", "of copy", "thomas", "partition", "The host", "100,000"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // for smaller systems, all of them
    assert!(["pcr", "hybrid", "WRONG", "Notes"].iter().all(|part| !text.contains(part)), "{text}");
    assert_eq!(place.run("bench tridiagonal --systems 5").code, Some(2));
    run("--size 10 --precision mixed").fails(2, &["mixed"]);
    let json = run("--systems 9 --size 132 --block 4 --layout interleaved --json").ends(0).json();
    let entries = json["entries"].as_array().unwrap();
    let devices: Vec<bool> = entries.iter().map(|entry| entry["device"] != Value::Null).collect();
    assert_eq!((json["block"].as_u64(), devices), (Some(4), vec![false, true]));
    assert!(entries.iter().all(|entry| entry["error"].as_f64().unwrap() < 1e-12 && entry["method"] == "thomas"));
    let text = run("--systems 9 --size 40 --block 2").ok();
    assert!(text.contains("Tridiagonal systems of blocks of 2 rows"), "{text}");
    run("--size 10 --block 4").fails(2, &["--size 10 is no multiple of --block 4"]);
}
