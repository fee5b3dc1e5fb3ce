//! Published matrices, where there are any: the environment variable `DECLIVE_MATRICES` names a folder of `.mtx` files. Without it
//! the test has nothing to do, and says so.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;

use common::{relative_residual, setup};
use declive::matrix_market::read_matrix;
use declive::solver::{Method, Precision, Precond};
use declive::{Control, Error, Reason, Solver, Stop};

#[test]
fn published_matrices_are_solved_or_refused_with_a_reason() {
    let Some(folder) = std::env::var_os("DECLIVE_MATRICES") else {
        eprintln!("DECLIVE_MATRICES is not set: no published matrices were tried");
        return;
    };
    common::require_opencl();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "mtx"));
    files.sort();
    assert!(!files.is_empty(), "no .mtx file in {}", folder.display());
    for file in files {
        let a = match read_matrix(&file) {
            Ok(matrix) => matrix.a,
            Err(Error::MatrixMarket(e)) => {
                eprintln!("{e}");
                continue;
            }
            Err(e) => panic!("{}: {e}", file.display()),
        };
        let b = a.mul_vec(&vec![1.0; a.n_cols()]);
        for devices in ["host", "0", "0,0,host"] {
            let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &devices.parse().unwrap());
            let mut solver = match Solver::new(a.clone(), &setup) {
                Ok(solver) => solver,
                Err(e @ (Error::NotSquare { .. } | Error::NotSymmetric { .. })) => {
                    eprintln!("{}: {e}", file.display());
                    break;
                }
                Err(e) => panic!("{}: {e}", file.display()),
            };
            let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            eprintln!("{}, {devices}: {} ({} iterations)", file.display(), o.reason, o.iterations);
            let residual = relative_residual(&a, &b, &o.x);
            assert!(o.x.iter().all(|v| v.is_finite()));
            match o.reason {
                // the plain residual here is less exact than the solver's own
                Reason::Converged(_) => assert!(o.residual.relative_2 <= 1e-8 && residual <= 1e-7, "{residual:e}"),
                Reason::Stagnation | Reason::MaxIters | Reason::IndefiniteOperator(_) => {
                    assert!(o.residual.relative_2 > 1e-8);
                }
                other => panic!("{}: {other}", file.display()),
            }
        }
    }
}
