//! Systems that are permuted and scaled by a transversal of the largest product. Each test recomputes b − A x by itself.

use crate::common::process::Place;
use crate::common::{choice, choices, relative_residual, setup, solve, system};
use declive::matrix::{Complex64, gallery};
use declive::solve::{ComplexSolver, Method, Precision, Precond, Singularity};
use declive::{Control, Csr, Error, HostOperator, OperatorSolver, Reason, Setup, Solver, Stop};

const METHODS: [Method; 3] = [Method::Bicgstab, Method::Bicgstab2, Method::Idr];

/// A diagonally dominant matrix whose rows are in another order, and whose rows and columns are in units of 2^±r and 2^±c.
fn shuffled(n: usize, [r, c]: [i32; 2]) -> Csr {
    let unit = |k: usize, range: i32| 2f64.powi((k * 37 % (2 * range + 1) as usize) as i32 - range);
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for k in 0..n {
        let row = (k * 7 + 3) % n;
        for (j, v) in [(k, 4.0 + (k % 3) as f64), ((k + 1) % n, -2.0), ((k + n / 2) % n, 0.75)] {
            if j != k || v > 1.0 {
                rows.push(row as u32);
                cols.push(j as u32);
                values.push(v * unit(row, r) * unit(j + 5, c));
            }
        }
    }
    Csr::from_triplets(n, n, &rows, &cols, &values).unwrap()
}

fn by_transversal(method: Method, precision: Precision, devices: &str) -> Setup {
    setup(method, Precond::Transversal, precision, &choice(devices))
}

#[test]
fn every_rank_and_precision() {
    for n in [1, 257] {
        let a = shuffled(n, [6, 6]);
        let b = gallery::random_vector(n, 7);
        for method in METHODS {
            for devices in choices() {
                let limits = [(Precision::F64, 1e-10), (Precision::F32, 1e-4), (Precision::Mixed, 1e-10)];
                for (precision, rtol) in limits {
                    let o = solve(&a, &b, &setup(method, Precond::Transversal, precision, &devices), rtol);
                    let found = relative_residual(&a, &b, &o.x);
                    let what = format!("{n} rows, {method}, {precision}, {devices}: {}", o.reason);
                    assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}, {found:e}");
                    assert!(n < 10 || o.iterations < 40, "{what}: {}", o.iterations);
                }
            }
        }
    }
}

/// Units are undone: where those of columns are all that differs, x is the same but for them.
#[test]
fn units_do_not_matter() {
    for devices in ["host", "D", "D,D,D"] {
        for method in METHODS {
            let of = |a: &Csr| {
                let mut solver = Solver::new(a.clone(), &by_transversal(method, Precision::F64, devices)).unwrap();
                let stop = Stop::default().with_rtol(1e-11);
                let o = solver.solve(&gallery::random_vector(257, 5), None, &stop, Control::default()).unwrap();
                assert!(o.reason.converged(), "{method}, {devices}: {}", o.reason);
                (o, solver.equilibrated().unwrap())
            };
            let ((plain, few), (other, many)) = (of(&shuffled(257, [0, 0])), of(&shuffled(257, [0, 480])));
            assert!(plain.iterations.abs_diff(other.iterations) <= 5, "{method}, {devices}");
            assert!(few.cols[1] - few.cols[0] <= 4 && many.cols[1] - many.cols[0] > 900, "{few}, {many}");
            assert!(few.moved > 200 && few.moved == many.moved);
            let unit = |k: usize| 2f64.powi(((k + 5) * 37 % 961) as i32 - 480);
            assert!(
                plain.x.iter().zip(&other.x).enumerate().all(|(k, (x, y))| (x - y * unit(k)).abs() < 1e-9),
                "{method}, {devices}"
            );
        }
    }
}

/// Entries from 1e-270 to 1e270. Small rows have no part in ‖b − A x‖; the test is met all the same, and told truly.
#[test]
fn entries_of_all_sizes() {
    let a = shuffled(1000, [480, 480]);
    let sizes = a.values().iter().map(|v| v.abs());
    assert!(sizes.clone().fold(f64::INFINITY, f64::min) < 1e-270 && sizes.fold(0.0, f64::max) > 1e270);
    let y: Vec<f64> = (0..1000).map(|k| 2f64.powi(480 - ((k + 5) * 37 % 961))).collect();
    let b = a.mul_vec(&y);
    let scale = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    for (precision, rtol) in [(Precision::F64, 1e-10), (Precision::F32, 1e-4)] {
        for devices in ["host", "D,D"] {
            let o = solve(&a, &b, &by_transversal(Method::Idr, precision, devices), rtol);
            // squares of these are out of range
            let r: Vec<f64> = a.mul_vec(&o.x).iter().zip(&b).map(|(ax, b)| (b - ax) / scale).collect();
            let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let relative = norm(&r) / norm(&b.iter().map(|b| b / scale).collect::<Vec<_>>());
            assert!(
                o.reason.converged() && relative <= 1.01 * rtol,
                "{precision}, {devices}: {}, {relative:e}",
                o.reason
            );
        }
    }
}

#[test]
fn rows_in_another_order_and_several_columns() {
    let a = shuffled(1000, [6, 6]);
    for reorder in ["none", "rcm"] {
        for method in METHODS {
            let setup = by_transversal(method, Precision::F64, "D,D").with_reorder(reorder.parse().unwrap());
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let b: Vec<f64> = (0..3).flat_map(|seed| gallery::random_vector(1000, seed)).collect();
            let mut x = vec![0.0; 3000];
            let stop = Stop::default().with_rtol(1e-10);
            let outcomes = solver.solve_columns(&b, &mut x, &stop, Control::default()).unwrap();
            for (k, o) in outcomes.iter().enumerate() {
                let columns = k * 1000..(k + 1) * 1000;
                let found = relative_residual(&a, &b[columns.clone()], &x[columns]);
                assert!(o.reason.converged() && found <= 1.01e-10, "{reorder}, {method}: {}, {found:e}", o.reason);
            }
        }
    }
}

/// A complex matrix whose rows are in another order, in complex arithmetic.
#[test]
fn complex_systems() {
    let n = 300;
    let z = |re: f64, im: f64| Complex64::new(re, im);
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for k in 0..n {
        for (j, v) in [(k, z(0.5, 4.0)), ((k + 1) % n, z(1.0, -1.0)), ((k + 9) % n, z(0.25, 0.5))] {
            rows.push(((k * 7 + 3) % n) as u32);
            cols.push(j as u32);
            values.push(v);
        }
    }
    let a = Csr::from_triplets(n, n, &rows, &cols, &values).unwrap();
    let b: Vec<Complex64> = (0..n).map(|k| z((k % 5) as f64 - 2.0, (k % 3) as f64)).collect();
    for devices in ["host", "D,D"] {
        for method in METHODS {
            let setup = by_transversal(method, Precision::F64, devices);
            let mut solver = ComplexSolver::new(a.clone(), &setup).unwrap();
            let stop = Stop::default().with_rtol(1e-10);
            let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
            let norm = |v: &[Complex64]| v.iter().map(|z| z.re * z.re + z.im * z.im).sum::<f64>().sqrt();
            let ax = a.mul_vec(&o.x);
            let r: Vec<Complex64> = ax.iter().zip(&b).map(|(ax, b)| z(b.re - ax.re, b.im - ax.im)).collect();
            let found = norm(&r) / norm(&b);
            assert!(o.reason.converged() && found <= 1.01e-10, "{devices}, {method}: {}, {found:e}", o.reason);
            assert!(o.iterations < 30, "{devices}, {method}: {}", o.iterations);
        }
    }
}

/// What the diagonal comes to nothing for, and factors are not allowed for by the time: the transversal goes on.
#[test]
fn auto_goes_on_by_a_transversal() {
    // a circulant far from the diagonal, whose eigenvalues lie around 0
    let n = 997;
    let entries = (0..n)
        .flat_map(|i| [((i + 400) % n, 10f64.powi((i % 9) as i32)), ((i + 77) % n, 0.25)].map(|(j, v)| (i, j, v)));
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    entries.for_each(|(i, j, v)| {
        rows.push(i as u32);
        cols.push(j as u32);
        values.push(v);
    });
    let a = Csr::from_triplets(n, n, &rows, &cols, &values).unwrap();
    let b = gallery::random_vector(n, 3);
    let o = solve(&a, &b, &setup(Method::Auto, Precond::Jacobi, Precision::F64, &choice("D,D")), 1e-10);
    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-10, "{}", o.reason);
    let to: Vec<String> = o.switches.iter().map(|switch| switch.candidate().to_string()).collect();
    assert_eq!(to, ["bicgstab2", "idr by a transversal"]);
    let none = solve(&a, &b, &setup(Method::Auto, Precond::None, Precision::F64, &choice("D,D")), 1e-10);
    let to: Vec<String> = none.switches.iter().map(|switch| switch.candidate().to_string()).collect();
    assert_eq!(to, ["bicgstab2", "direct"]);
}

#[test]
fn a_structurally_singular_matrix_is_named() {
    let a = Csr::from_triplets(3, 3, &[0, 1, 2, 2], &[0, 0, 1, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let o = solve(&a, &[1.0, 1.0, 1.0], &by_transversal(Method::Idr, Precision::F64, "host"), 1e-10);
    let Reason::Singular(Singularity::Structural(shortage)) = o.reason else { panic!("{}", o.reason) };
    assert_eq!((shortage.rank, shortage.rows, &shortage.named[..2]), (2, 2, &[1, 2][..]));
    // auto has others, and the first two rows say the same
    let b = [1.0, 2.0, 3.0];
    let o = solve(&a, &b, &by_transversal(Method::Auto, Precision::F64, "host"), 1e-10);
    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-10, "{}", o.reason);
    let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
    assert!(solve(&none, &[], &by_transversal(Method::Idr, Precision::F64, "host"), 1e-10).reason.converged());
}

#[test]
fn who_cannot_have_it_says_so() {
    for method in [Method::Cg, Method::Minres, Method::Gmres, Method::Lsmr, Method::CgTextbook] {
        let error = Solver::new(system("poisson2d:4"), &by_transversal(method, Precision::F64, "host")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(method.name()) && text.contains("precond = transversal"), "{text}");
    }
    let wide = Csr::from_triplets(1, 2, &[0, 0], &[0, 1], &[1.0, 2.0]).unwrap();
    for method in [Method::Auto, Method::Lsmr] {
        let refused = Solver::new(wide.clone(), &by_transversal(method, Precision::F64, "host")).unwrap_err();
        assert!(refused.to_string().contains("lsmr can't have precond = transversal"), "{refused}");
    }
    let product = |x: &[f64], y: &mut [f64]| y.copy_from_slice(x);
    let function = HostOperator::new(2, product);
    let refused = OperatorSolver::new(function, &by_transversal(Method::Idr, Precision::F64, "host"));
    assert!(matches!(refused, Err(Error::Usage(text)) if text.contains("transversal")));
}

#[test]
fn the_command_tells_what_was_done() {
    let place = Place::new();
    let solved = place.run("solve --generate convection3d:6,peclet=3 --precond transversal --method bicgstab2 --devices host --json -o x.mtx");
    let report = solved.ends(0).json();
    assert_eq!((&report["options"]["precond"], &report["equilibrated"]["moved"]), (&"transversal".into(), &0.into()));
    assert!(place.read("x.mtx").contains("216 1"));
    let text = place.run("solve --generate poisson2d:9 --precond transversal --devices host").ends(0);
    assert!(text.out.contains("0 rows moved; rows scaled by 2^"), "{}", text.out);
    let refused = place.run("solve --generate poisson2d:9 --precond transversal --method cg --devices host");
    refused.fails(2, &["cg", "transversal", "bicgstab"]);
}
