//! The methods whose ranks synchronise for one sum an iteration, by recurrence of A p: as far as `cg`, in about as many
//! iterations, on any ranks. Each test recomputes b − A x by itself.

use std::path::Path;

use crate::common::{PRECONDS, choice, choices, relative_residual, setup, solve, solve_with, system};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::matrix_market::read_matrix;
use declive::solve::{Format, Indefinite, Method, Precision, Precond};
use declive::{Control, Csr, Outcome, Reason, Solver, Stop};

/// With the iterations that they may take more than `cg`, in parts of them, where rounding decides.
const METHODS: &[(Method, f64)] = &[(Method::CgSingleReduction, 0.05), (Method::CgPipelined, 0.15)];

/// The host, a device, and three ranks of both kinds.
fn few_choices() -> [Choice; 3] {
    ["host", "0", "0,host,0"].map(|s| s.parse().unwrap())
}

fn data(name: &str) -> Csr {
    read_matrix(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)).unwrap().a
}

/// D A D with powers of ten from 10⁻³ to 10³ in D.
fn ill_scaled(a: &Csr) -> Csr {
    let exponents = gallery::random_vector(a.n_rows(), 8);
    let factor = |i: usize| 10f64.powf(3.0 * exponents[i]);
    let rows = (0..a.n_rows()).flat_map(|i| std::iter::repeat_n(i, a.row_ptr()[i + 1] - a.row_ptr()[i]));
    let values = rows.zip(a.col_idx()).zip(a.values()).map(|((i, &j), v)| v * (factor(i) * factor(j as usize)));
    Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values.collect()).unwrap()
}

#[test]
fn hard_systems_are_solved_as_far_as_by_cg() {
    let (none, jacobi) = (Precond::None, Precond::Jacobi);
    for (name, a, precond, least) in [
        ("jumps.mtx", data("jumps.mtx"), none, 1e-12),
        ("jumps.mtx, jacobi", data("jumps.mtx"), jacobi, 1e-12),
        ("elasticity3d.mtx", data("elasticity3d.mtx"), none, 1e-12),
        ("jumps of 1e8, jacobi", system("jumps:9,contrast=1e8,seed=3"), jacobi, 1e-12),
        ("a long beam", system("elasticity3d:24x2x2"), none, 1e-8),
        ("ill-scaled, jacobi", ill_scaled(&system("poisson3d:9")), jacobi, 1e-10),
        ("a graph", system("graph-laplacian:700,seed=5"), none, 1e-10),
    ] {
        let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 4));
        for devices in few_choices() {
            let of = |method| Solver::new(a.clone(), &setup(method, precond, Precision::F64, &devices)).unwrap();
            let mut cg = of(Method::Cg);
            let mut others: Vec<_> = METHODS.iter().map(|&(method, slack)| (method, slack, of(method))).collect();
            for rtol in [1e-8, least] {
                let cg = solve_with(&mut cg, &b, rtol);
                assert!(cg.reason.converged(), "{name}: {}", cg.reason);
                for (method, slack, solver) in &mut others {
                    let o = solve_with(solver, &b, rtol);
                    let (found, most) = (relative_residual(&a, &b, &o.x), (1.0 + *slack) * cg.iterations as f64 + 2.0);
                    let what = format!(
                        "{name}, {method} on {devices} to {rtol:e}: {found:e} in {}, cg in {}",
                        o.iterations, cg.iterations
                    );
                    assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}: {}", o.reason);
                    assert!(o.iterations as f64 <= most, "{what}");
                }
            }
        }
    }
}

#[test]
fn any_ranks_take_the_same_iterations() {
    for name in ["poisson3d:12", "variable:9", "elasticity3d:4"] {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 3);
        for &(method, _) in METHODS {
            for precond in PRECONDS {
                let of = |devices: &Choice| solve(&a, &b, &setup(method, precond, Precision::F64, devices), 1e-8);
                let alone = of(&"0".parse().unwrap()).iterations;
                for devices in choices() {
                    let o = of(&devices);
                    let what = format!("{name}, {method}, {precond} on {devices}: {}, not {alone}", o.iterations);
                    assert!(relative_residual(&a, &b, &o.x) <= 1.01e-8, "{what}");
                    assert!(o.iterations.abs_diff(alone) <= (alone / 100).max(1), "{what}");
                }
            }
        }
    }
}

/// Row 0 has all columns; the condition is 13 for some 3000 rows.
fn arrow(n: usize) -> Csr {
    let (i, j): (Vec<u32>, Vec<u32>) = (1..n as u32).flat_map(|k| [(k, k), (0, k), (k, 0)]).chain([(0, 0)]).unzip();
    let value = |(&i, &j): (&u32, &u32)| if i == j { 2.0 } else { -1.0 / 32.0 };
    let values: Vec<f64> = i.iter().zip(&j).map(value).collect();
    Csr::from_triplets(n, n, &i, &j, &values).unwrap()
}

/// Two systems that know nothing of each other, the second one small.
fn apart(a: &Csr, b: &Csr) -> Csr {
    let n = a.n_rows() + b.n_rows();
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for (a, begin) in [(a, 0), (b, a.n_rows())] {
        for i in 0..a.n_rows() {
            for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
                t.0.push((begin + i) as u32);
                t.1.push(begin as u32 + j);
                t.2.push(v);
            }
        }
    }
    Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

#[test]
fn awkward_blocks_of_rows() {
    let grid = system("poisson2d:13x9");
    for (name, a) in [
        ("one row", system("tridiagonal:1")),
        ("fewer rows than ranks", system("tridiagonal:3")),
        ("a diagonal", apart(&system("tridiagonal:1"), &system("tridiagonal:1"))),
        ("two systems", apart(&grid, &system("tridiagonal:40"))),
        ("a huge row", arrow(3000)),
    ] {
        let b = gallery::random_vector(a.n_rows(), 5);
        for devices in choices() {
            for &(method, _) in METHODS {
                for (precision, format, rtol) in [
                    (Precision::F64, Format::Auto, 1e-11),
                    (Precision::F64, Format::Csr, 1e-11),
                    (Precision::F32, Format::Sell, 1e-4),
                    (Precision::Mixed, Format::Sell, 1e-11),
                ] {
                    let setup = setup(method, Precond::None, precision, &devices).with_format(format);
                    let o = solve(&a, &b, &setup, rtol);
                    let what = format!("{name}, {setup:?}: {} in {}", o.reason, o.iterations);
                    assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01 * rtol, "{what}");
                }
            }
        }
    }
}

#[test]
fn eight_ranks() {
    for (name, a) in [
        ("fewer rows than ranks", system("tridiagonal:5")),
        ("two systems", apart(&system("poisson2d:13x9"), &system("tridiagonal:40"))),
        ("a huge row", arrow(3000)),
        ("a grid", system("poisson3d:12")),
    ] {
        let b = gallery::random_vector(a.n_rows(), 5);
        for &method in Method::FORCED {
            let of = |devices| solve(&a, &b, &setup(method, Precond::Jacobi, Precision::F64, &choice(devices)), 1e-10);
            let alone = of("host").iterations;
            for devices in ["D,D,D,D,D,D,D,D", "D,host,D,D,host,D,D,D"] {
                let o = of(devices);
                let what = format!("{name}, {method} on {devices}: {} in {}, {alone} alone", o.reason, o.iterations);
                assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-10, "{what}");
                assert!(o.iterations.abs_diff(alone) <= 1 + alone / 100, "{what}");
            }
        }
    }
}

/// Where p·A p is negative, and r·A r is not.
#[test]
fn directions_are_looked_at_themselves() {
    let (rows, columns) = ([0, 0, 1, 2, 2], [0, 2, 1, 0, 2]);
    let a = Csr::from_triplets(3, 3, &rows, &columns, &[1.0, 0.5, 1.0, 0.5, 0.1]).unwrap();
    let b = [3.0, 2.0, 1.0];
    for devices in choices() {
        for &(method, _) in METHODS {
            let setup = setup(method, Precond::None, Precision::F64, &devices);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let o: Outcome = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            let Reason::IndefiniteOperator(Indefinite::Direction { iteration, curvature }) = o.reason else {
                panic!("{setup:?}: {}", o.reason);
            };
            assert!(iteration > 1 && curvature < 0.0, "{setup:?}: {curvature} in {iteration}");
        }
    }
}
