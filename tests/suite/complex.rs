//! Complex systems. Each test recomputes b − A x in complex arithmetic by itself.

use declive::device::Choice;
use declive::matrix::gallery::{Spec, random_vector};
use declive::matrix::{AnyCsr, AnyVectors, Complex64, equivalent};
use declive::matrix_market::read_any_vectors;
use declive::solve::{ComplexSolver, Criterion, Format, Indefinite, Method, Precision, Precond, Reorder, Singularity};
use declive::verify::complex_residual;
use declive::{Control, Csr, Error, Outcome, Reason, Setup, Stop};

use crate::common::process::Place;
use crate::common::{choice, choices, setup};

const I: Complex64 = Complex64::I;

type Matrix = Csr<Complex64>;

fn z(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// The matrix with these entries.
fn matrix(n: usize, entries: impl IntoIterator<Item = (usize, usize, Complex64)>) -> Matrix {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for (i, j, v) in entries.into_iter().filter(|(i, j, _)| *i < n && *j < n) {
        t.0.push(i as u32);
        t.1.push(j as u32);
        t.2.push(v);
    }
    Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

/// A line of `diagonal`, with `upper` and `lower` beside it.
fn line(n: usize, diagonal: Complex64, upper: Complex64, lower: Complex64) -> Matrix {
    matrix(n, (0..n).flat_map(|i| [(i, i, diagonal), (i, i + 1, upper), (i + 1, i, lower)]))
}

fn definite(n: usize) -> Matrix {
    line(n, z(2.5, 0.0), z(0.6, 0.8), z(0.6, -0.8))
}

/// Hermitian, with as many eigenvalues below 0 as above, none of them near 0.
fn indefinite(n: usize) -> Matrix {
    let sign = |i: usize| if i.is_multiple_of(2) { 2.0 } else { -2.0 };
    matrix(n, (0..n).flat_map(|i| [(i, i, sign(i).into()), (i, i + 1, I), (i + 1, i, -I)]))
}

fn symmetric(n: usize) -> Matrix {
    line(n, z(2.0, 3.0), z(-1.0, 0.5), z(-1.0, 0.5))
}

fn general(n: usize) -> Matrix {
    line(n, z(3.0, 1.0), z(0.0, -1.0), z(0.5, 0.25))
}

fn random(n: usize, seed: u64) -> Vec<Complex64> {
    random_vector(2 * n, seed).chunks_exact(2).map(|part| z(part[0], part[1])).collect()
}

/// ‖b − A x‖₂ / ‖b‖₂ by the plainest of means.
fn relative_residual(a: &Matrix, b: &[Complex64], x: &[Complex64]) -> f64 {
    let r: f64 = a.mul_vec(x).iter().zip(b).map(|(ax, b)| (b - ax).norm_sqr()).sum();
    let b: f64 = b.iter().map(Complex64::norm_sqr).sum();
    (r / b).sqrt()
}

fn solve(a: &Matrix, b: &[Complex64], setup: &Setup, rtol: f64) -> Outcome<Vec<Complex64>> {
    let mut solver = ComplexSolver::new(a.clone(), setup).unwrap();
    solver.solve(b, None, &Stop::default().with_rtol(rtol), Control::default()).unwrap()
}

fn on_host(method: Method) -> Setup {
    setup(method, Precond::None, Precision::F64, &"host".parse().unwrap())
}

#[test]
fn every_kind_on_every_rank() {
    for (n, choices) in [(1, vec![choice("host"), choice("D,D")]), (2, vec![choice("D,D,D,D,D")]), (257, choices())] {
        let kinds = [
            ("definite", definite(n), Method::Cg),
            ("indefinite", indefinite(n), if n == 1 { Method::Cg } else { Method::Minres }),
            ("symmetric", symmetric(n), Method::Idr),
            ("general", general(n), Method::Idr),
        ];
        for (turn, (kind, a, first)) in kinds.into_iter().enumerate() {
            let b = random(n, 7);
            // where there are many choices, kinds take turns
            for (k, devices) in choices.iter().enumerate().filter(|(k, _)| choices.len() < 3 || (k + turn) % 2 == 0) {
                let precond = [Precond::None, Precond::Jacobi][k / 2 % 2];
                let setup = setup(Method::Auto, precond, Precision::F64, devices);
                let mut solver = ComplexSolver::new(a.clone(), &setup).unwrap();
                assert_eq!(solver.real().method(), first, "{kind}, {n}");
                assert_eq!(solver.matrix(), &a);
                let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-10), Control::default()).unwrap();
                let found = relative_residual(&a, &b, &o.x);
                let what = format!("{kind}, {n} rows, {precond}, {devices}: {}", o.reason);
                assert!(o.reason.converged() && found <= 1.01e-10, "{what}, {found:e}");
                assert!((o.residual.relative_2 - found).abs() <= 1e-13, "{what}");
            }
        }
    }
}

/// Slices have two values for each entry, in rows that are scaled, by factors of either sign, and in each precision.
#[test]
fn slices_of_complex_numbers() {
    let scaled = |n: usize, sign: fn(usize) -> f64| {
        let diagonal = (0..n).map(|i| (i, i, z(sign(i) * (3.0 + (i % 5) as f64 / 3.0), 0.0)));
        let beside = (0..n).flat_map(|i| [(i, i + 1, z(-1.0, 0.0)), (i, i + 7, z(0.3, 0.1)), (i + 7, i, z(0.3, -0.1))]);
        matrix(n, diagonal.chain(beside).chain((0..n).map(|i| (i + 1, i, z(-1.0, 0.0)))))
    };
    let sizes = [1, 2, 33, 257].map(|n| (scaled(n, |_| 1.0), Method::Cg));
    let signs = (scaled(300, |i| if i % 3 == 0 { -1.0 } else { 1.0 }), Method::Idr);
    for (a, method) in sizes.into_iter().chain([signs]) {
        let n = a.n_rows();
        let b = random(n, 7);
        for devices in ["D", "D,D,D", "D,host,D"].map(choice) {
            let precisions = [(Precision::F64, 1e-10), (Precision::F32, 1e-4), (Precision::Mixed, 1e-10)];
            for (precision, rtol) in precisions.into_iter().take(if method == Method::Cg { 3 } else { 1 }) {
                let setup = setup(method, Precond::Jacobi, precision, &devices);
                let of = |format| solve(&a, &b, &setup.clone().with_format(format), rtol);
                let [slices, rows] = [Format::Sell, Format::Csr].map(of);
                let what = format!("{n} rows, {method}, {precision}, {devices}: {}", slices.reason);
                let found = relative_residual(&a, &b, &slices.x);
                assert!(slices.reason.converged() && found <= 1.01 * rtol, "{what}, {found:e}");
                // partial sums are of other rows
                assert!(slices.iterations.abs_diff(rows.iterations) <= 1 + rows.iterations / 50, "{what}");
                if n > 200 && precision == Precision::F64 && !devices.to_string().contains("host") {
                    // 48 bytes an entry, and 18 but for what slices have besides
                    let [slices, rows] = [slices, rows].map(|o| o.bytes_per_iteration);
                    assert!(slices + 20 * a.nnz() as u64 <= rows, "{what}: {slices}, {rows}");
                }
            }
        }
    }
}

#[test]
fn methods_and_precisions() {
    let (n, b) = (200, random(200, 3));
    let of = |a: &Matrix, method, precision, rtol| {
        let setup = on_host(method).with_precision(precision);
        let o = solve(a, &b, &setup, rtol);
        let found = relative_residual(a, &b, &o.x);
        assert!(o.reason.converged() && found <= 1.01 * rtol, "{method}, {precision}: {}, {found:e}", o.reason);
    };
    for &method in Method::FORCED {
        of(&definite(n), method, Precision::F64, 1e-10);
    }
    for method in [Method::Idr, Method::Bicgstab, Method::Bicgstab2, Method::Gmres, Method::Direct] {
        of(&general(n), method, Precision::F64, 1e-10);
        of(&symmetric(n), method, Precision::F64, 1e-10);
    }
    of(&definite(n), Method::Cg, Precision::Mixed, 1e-10);
    of(&definite(n), Method::Cg, Precision::F32, 1e-4);
}

#[test]
fn tiny_ones_by_hand() {
    let direct = on_host(Method::Direct);
    // i x = 1
    let o = solve(&matrix(1, [(0, 0, I)]), &[z(1.0, 0.0)], &direct, 1e-12);
    assert!((o.x[0] + I).norm() < 1e-14, "{}", o.x[0]);
    // [1, i; −i, 3] x = [1 + i, 3 − i], x = [1, 1]
    let a = matrix(2, [(0, 0, z(1.0, 0.0)), (0, 1, I), (1, 0, -I), (1, 1, z(3.0, 0.0))]);
    for method in [Method::Auto, Method::Direct, Method::Cg, Method::Minres] {
        let o = solve(&a, &[z(1.0, 1.0), z(3.0, -1.0)], &on_host(method), 1e-12);
        assert!(o.x.iter().all(|x| (x - 1.0).norm() < 1e-11), "{method}: {:?}", o.x);
    }
    // [0, 1 + i; 2, 0] x = [2i, 2i], x = [i, 1 + i]
    let a = matrix(2, [(0, 1, z(1.0, 1.0)), (1, 0, z(2.0, 0.0))]);
    let o = solve(&a, &[2.0 * I, 2.0 * I], &direct, 1e-12);
    assert!((o.x[0] - I).norm() < 1e-14 && (o.x[1] - z(1.0, 1.0)).norm() < 1e-14, "{:?}", o.x);
    let zero = solve(&a, &[z(0.0, 0.0); 2], &direct, 1e-12);
    assert_eq!((zero.reason, &zero.x[..]), (Reason::Converged(Criterion::ZeroRhs), &[z(0.0, 0.0); 2][..]));
}

#[test]
fn residuals_by_hand() {
    // r = [3 + 4i, 0], b = [3 + 4i, 12], A = [i, 0; 0, 3 − 4i], x = 0
    let a = matrix(2, [(0, 0, I), (1, 1, z(3.0, -4.0))]);
    let r = complex_residual(&a, &[z(3.0, 4.0), z(12.0, 0.0)], &[z(0.0, 0.0), z(0.0, 0.0)]);
    assert_eq!((r.norm_2, r.rhs_norm_2, r.norm_inf, r.backward_error), (13.0, 13.0, 12.0, 1.0));
    // x = [0, 1]: r = [3 + 4i, 9 + 4i]
    let r = complex_residual(&a, &[z(3.0, 4.0), z(12.0, 0.0)], &[z(0.0, 0.0), z(1.0, 0.0)]);
    assert!((r.norm_inf - 97f64.sqrt()).abs() < 1e-14);
    assert!((r.backward_error - 97f64.sqrt() / 17.0).abs() < 1e-15);
    assert!((r.norm_2 - 122f64.sqrt()).abs() < 1e-14);
}

#[test]
fn guesses_count() {
    let (a, x) = (general(50), random(50, 5));
    let b = a.mul_vec(&x);
    let mut solver = ComplexSolver::new(a.clone(), &on_host(Method::Idr)).unwrap();
    let o = solver.solve(&b, Some(&x), &Stop::default(), Control::default()).unwrap();
    assert_eq!((o.iterations, &o.x), (0, &x));
}

#[test]
fn what_is_said_names_complex_rows() {
    let names = |a: &Matrix| ComplexSolver::new(a.clone(), &on_host(Method::Auto)).unwrap().method_reason();
    assert_eq!(names(&definite(5)), None);
    let (row, col, upper, lower) = (1, 2, z(0.0, -1.0), z(0.5, 0.25));
    let a = matrix(3, [(0, 0, z(1.0, 0.0)), (0, 1, upper), (1, 0, lower), (1, 1, z(1.0, 0.0)), (2, 2, I)]);
    let why = Indefinite::NotHermitian { row, col, upper, lower };
    assert_eq!(names(&a), Some(why));
    assert_eq!(why.to_string(), "a(1,2) = 0e0-1e0i is not the conjugate of a(2,1) = 5e-1+2.5e-1i");
    let imaginary = matrix(2, [(0, 0, z(1.0, 0.0)), (1, 1, z(1.0, 2.0))]);
    assert_eq!(names(&imaginary).unwrap().to_string(), "a(2,2) = 1e0+2e0i is not real");
    let negative = matrix(2, [(0, 0, z(1.0, 0.0)), (1, 1, z(-1.0, 0.0))]);
    assert_eq!(names(&negative), Some(Indefinite::Diagonal { row: 2, value: -1.0 }));

    let refused = ComplexSolver::new(a.clone(), &on_host(Method::Cg)).unwrap_err();
    let parts = ["not Hermitian", "a(1,2) = 0e0-1e0i", "a(2,1) = 5e-1+2.5e-1i", "cg needs a Hermitian one"];
    assert!(parts.iter().all(|part| refused.to_string().contains(part)), "{refused}");

    // the last row is empty
    let a = matrix(3, [(0, 0, z(1.0, 0.0)), (1, 1, I)]);
    let o = solve(&a, &[z(1.0, 0.0), I, I], &on_host(Method::Idr), 1e-8);
    assert_eq!(o.reason, Reason::IndefiniteOperator(Indefinite::EmptyRow { row: 3 }));
    // two rows for one column
    let a = matrix(3, [(0, 0, I), (1, 2, z(1.0, 1.0)), (2, 2, z(2.0, 0.0))]);
    let o = solve(&a, &[I, I, I], &on_host(Method::Direct), 1e-8);
    let Reason::Singular(Singularity::Structural(shortage)) = o.reason else { panic!("{}", o.reason) };
    assert_eq!(shortage.to_string(), "structural rank 2 of 3: 2 rows (2, 3) have entries in 1 column only");

    let mut solver = ComplexSolver::new(definite(3), &on_host(Method::Cg)).unwrap();
    let mut of = |b: &[Complex64]| solver.solve(b, None, &Stop::default(), Control::default()).unwrap_err();
    assert!(matches!(of(&[I]), Error::SizeMismatch { expected: 3, found: 1, .. }));
    assert!(matches!(of(&[I, z(0.0, f64::NAN), I]), Error::NotFinite { index: 2, .. }));
    let wide = Csr::from_triplets(1, 2, &[0], &[1], &[I]).unwrap();
    let wide = ComplexSolver::new(wide, &on_host(Method::Cg)).unwrap_err();
    assert!(matches!(wide, Error::Rectangular { rows: 1, cols: 2, .. }));
}

/// A file of a matrix.
fn coordinate(a: &Matrix) -> String {
    let (rows, cols, values) = a.to_triplets();
    let mut text = format!("%%MatrixMarket matrix coordinate complex general\n{0} {0} {1}\n", a.n_rows(), a.nnz());
    for (k, v) in values.iter().enumerate() {
        text += &format!("{} {} {:e} {:e}\n", rows[k] + 1, cols[k] + 1, v.re, v.im);
    }
    text
}

/// A file of columns.
fn array(columns: &[Vec<Complex64>]) -> String {
    let mut text = format!("%%MatrixMarket matrix array complex general\n{} {}\n", columns[0].len(), columns.len());
    for v in columns.iter().flatten() {
        text += &format!("{:e} {:e}\n", v.re, v.im);
    }
    text
}

/// The columns of a file, which must be a complex one.
#[track_caller]
fn solutions(place: &Place, name: &str) -> Vec<Vec<Complex64>> {
    assert!(place.read(name).starts_with("%%MatrixMarket matrix array complex general\n"));
    match read_any_vectors(&place.path(name)).unwrap() {
        AnyVectors::Complex(x) => x,
        AnyVectors::Real(_) => panic!("{name} is real"),
    }
}

#[test]
fn files_of_several_columns() {
    let place = Place::new();
    let (n, a) = (30, general(30));
    let b = [random(n, 1), random(n, 2)];
    place.write("A.mtx", coordinate(&a));
    place.write("b.mtx", array(&b));
    let run = place.run("solve A.mtx -b b.mtx -o x.mtx --devices host --rtol 1e-10 --json --report r.html").ends(0);
    let x = solutions(&place, "x.mtx");
    for (x, b) in x.iter().zip(&b) {
        assert!(relative_residual(&a, b, x) <= 1.01e-10);
    }
    assert_eq!(x.len(), 2);
    let report = run.json();
    let matrix = &report["matrix"];
    assert_eq!((&matrix["rows"], &matrix["nnz"]), (&30.into(), &88.into()));
    assert_eq!((&matrix["complex"], &matrix["hermitian"]), (&true.into(), &false.into()));
    assert_eq!((&matrix["symmetric"], &matrix["bandwidth"]), (&false.into(), &1.into()));
    assert_eq!((&matrix["row_min"], &matrix["row_max"]), (&2.into(), &3.into()));
    assert_eq!(matrix["real_form"], serde_json::json!({"rows": 60, "nnz": 352}));
    assert!(report["options"]["method_reason"].as_str().unwrap().contains("is not real"), "{report}");
    assert!(place.read("r.html").contains("a real system of twice the order: 60 rows, 352 entries"));

    // from the solution on, and from one guess for both
    place.write("x0.mtx", array(&x[..1]));
    let again = place.run("solve A.mtx -b b.mtx -x x.mtx --devices host --json").ends(0).json();
    assert_eq!(again["iterations"], 0);
    place.run("solve A.mtx -b b.mtx -x x0.mtx --devices host -o x1.mtx").ends(0);
    assert!(relative_residual(&a, &b[1], &solutions(&place, "x1.mtx")[1]) <= 1.01e-8);

    // norms are those of complex numbers
    let (r, solve) = (complex_residual(&a, &b[0], &x[0]), &report["solves"][0]);
    let close = |name: &str, value: f64| (solve[name].as_f64().unwrap() - value).abs() <= 1e-12 * value;
    assert!(close("residual_inf", r.norm_inf) && close("backward_error", r.backward_error), "{solve}");
    assert!(close("residual_2", r.norm_2) && close("rhs_2", r.rhs_norm_2), "{solve}");
}

#[test]
fn real_right_hand_sides_and_real_matrices() {
    let place = Place::new();
    let a = symmetric(20);
    place.write("A.mtx", coordinate(&a));
    let b: Vec<f64> = random_vector(20, 4);
    place.write("b.mtx", crate::common::process::array(std::slice::from_ref(&b)));
    let text = place.run("solve A.mtx -b b.mtx -o x.mtx --devices host").ok();
    for part in ["complex, symmetric; bandwidth 1", "a real system of twice the order: 40 rows, 232 entries"] {
        assert!(text.contains(part), "{text}");
    }
    let b: Vec<Complex64> = b.into_iter().map(Complex64::from).collect();
    assert!(relative_residual(&a, &b, &solutions(&place, "x.mtx")[0]) <= 1.01e-8);

    place.write("R.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 1\n");
    place.write("c.mtx", array(&[vec![I, I]]));
    for option in ["-b", "-x"] {
        let run = place.run(&format!("solve R.mtx {option} c.mtx --devices host"));
        run.fails(2, &["c.mtx is complex, but the matrix is real"]);
    }
    place.run("solve A.mtx -b c.mtx --devices host").fails(2, &["c.mtx has 2 rows, but the matrix has 20"]);
    place.run("solve A.mtx --method cg --devices host").fails(2, &["A.mtx", "not Hermitian", "a(1,1) = 2e0+3e0i"]);
}

#[test]
fn generated_systems_and_right_hand_sides() {
    let place = Place::new();
    for spec in ["gauge2d:6", "helmholtz3d-absorbing:4"] {
        let AnyCsr::Complex(a) = spec.parse::<Spec>().unwrap().build_any().unwrap() else { panic!("{spec} is real") };
        let n = a.n_rows();
        let ones = vec![Complex64::ONE; n];
        for (rhs, b) in [
            ("ones", ones.clone()),
            ("A*ones", a.mul_vec(&ones)),
            ("random:3", random(n, 3)),
            ("A*random:3", a.mul_vec(&random(n, 3))),
        ] {
            place.run(&format!("solve --generate {spec} --rhs {rhs} -o x.mtx --devices host -q")).ends(0);
            let found = relative_residual(&a, &b, &solutions(&place, "x.mtx")[0]);
            assert!(found <= 1.01e-8, "{spec} {rhs}: {found:e}");
        }
    }
    let info = place.run("info --generate gauge2d:6 --json").json();
    assert_eq!(info["solve"]["method"], "cg");
    let info = place.run("info --generate helmholtz3d-absorbing:4 --json").json();
    assert_eq!((&info["solve"]["method"], &info["solve"]["precond"]), (&"idr".into(), &"jacobi".into()));
}

#[test]
fn checkpoints_of_complex_systems() {
    let place = Place::new();
    let run = |args: &str| place.run(&format!("solve --generate gauge2d:12 --devices host --json {args}"));
    run("--max-iters 5 --checkpoint c.ckpt").ends(1);
    let report = run("--resume c.ckpt -o x.mtx").ends(0).json();
    assert_eq!(report["resumed_iterations"], 5);
    let AnyCsr::Complex(a) = "gauge2d:12".parse::<Spec>().unwrap().build_any().unwrap() else { panic!("real") };
    let x = solutions(&place, "x.mtx").remove(0);
    assert!(relative_residual(&a, &vec![Complex64::ONE; 144], &x) <= 1.01e-8);
    place.run("solve --generate gauge2d:11 --devices host --resume c.ckpt").ends(2);
    assert_eq!(equivalent::real_form(&a).unwrap().n_rows(), 288);
}

#[test]
fn archives_with_complex_right_hand_sides() {
    let place = Place::new();
    let (a, b) = (general(8), random(8, 9));
    let files = [("C/C.mtx", coordinate(&a)), ("C/C_b.mtx", array(std::slice::from_ref(&b)))];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    place.write("C.tar.gz", crate::convert::archive(&files));
    place.run("solve C.tar.gz -o x.mtx --devices host -q").ends(0);
    assert!(relative_residual(&a, &b, &solutions(&place, "x.mtx")[0]) <= 1.01e-8);
}

/// e^(iθ) H has the iterates of H, whatever the angle: nothing is lost to the real form. With rows in any order, on any ranks, of which none
/// has half a number.
#[test]
fn scalars_of_general_methods_are_complex() {
    let (n, b) = (301, random(301, 5));
    for method in [Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::Gmres] {
        let of = |angle: f64, devices: &Choice, reorder: Reorder| {
            let turn = Complex64::from_polar(1.0, angle);
            let line =
                |i: usize| [(i, i, z(2.5 + i as f64 % 5.0, 0.0)), (i, i + 1, z(0.6, 0.8)), (i + 1, i, z(0.6, -0.8))];
            let entries = (0..n).flat_map(line).filter(|(i, j, _)| *i < n && *j < n);
            let a = matrix(n, entries.map(|(i, j, v)| (i * 5 % n, j * 5 % n, turn * v)));
            let setup = setup(method, Precond::Jacobi, Precision::F64, devices).with_reorder(reorder);
            let outcome = solve(&a, &b, &setup, 1e-9);
            let found = relative_residual(&a, &b, &outcome.x);
            let what = format!("{method}, {angle}, {devices}, {reorder}: {}", outcome.reason);
            assert!(outcome.reason.converged() && found <= 1.01e-9, "{what}, {found:e}");
            outcome.iterations
        };
        let straight = of(0.0, &choice("host"), Reorder::None);
        assert!(straight < 100, "{method}: {straight}");
        for (k, devices) in choices().into_iter().enumerate() {
            let (angle, reorder) = [(1.5, Reorder::None), (2.5, Reorder::Rcm)][k % 2];
            let count = of(angle, &devices, reorder);
            let what = format!("{method}, {angle}, {devices}, {reorder}");
            assert!(count.abs_diff(straight) <= 2 + straight / 10, "{what}: {count}, {straight}");
        }
    }
}

/// Preconditioners that multiply: block-jacobi is that of the complex matrix, and with ilu0 scalars are real.
#[test]
fn preconditioners_that_multiply() {
    for (a, methods, preconds) in [
        (definite(257), &[Method::Cg, Method::Minres][..], [Precond::Fsai, Precond::BlockJacobi]),
        (
            general(257),
            &[Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::Gmres],
            [Precond::Ilu0, Precond::BlockJacobi],
        ),
    ] {
        let b = random(257, 7);
        for precond in preconds {
            for &method in methods {
                for devices in ["host", "D", "D,D,D"] {
                    let setup = setup(method, precond, Precision::F64, &choice(devices));
                    let o = solve(&a, &b, &setup, 1e-9);
                    assert!(o.reason.converged(), "{setup:?}: {}", o.reason);
                    assert!(relative_residual(&a, &b, &o.x) <= 1.01e-9, "{setup:?}");
                }
            }
        }
    }
}
