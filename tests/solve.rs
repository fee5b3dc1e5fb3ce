//! Whole solves, on every kind of rank.

mod common;

use common::{choices, relative_residual, setup, solve};
use declive::Reason;
use declive::matrix::gallery::{self, Spec};
use declive::solver::{Criterion, Method, Precision, Precond};

const SYSTEMS: &[&str] = &[
    "tridiagonal:1",
    "tridiagonal:7",
    "poisson2d:13x9",
    "poisson3d:12",
    "jumps:9,contrast=100,seed=3",
    "graph-laplacian:700,seed=5",
    "elasticity3d:4",
    "random-spd:1500,seed=7",
];

#[test]
fn every_method_converges_on_every_system_and_device() {
    for name in SYSTEMS {
        let a = name.parse::<Spec>().unwrap().build().unwrap();
        let b = gallery::random_vector(a.n_rows(), 11);
        for devices in choices() {
            for &method in Method::ALL {
                for &precond in Precond::ALL {
                    let o = solve(&a, &b, &setup(method, precond, Precision::F64, &devices), 1e-9);
                    let what = format!("{name}, {devices}, {method}, {precond}: {} in {}", o.reason, o.iterations);
                    assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
                    assert!(relative_residual(&a, &b, &o.x) <= 1.01e-9, "{what}");
                    assert!(o.residual.relative_2 <= 1e-9, "{what}");
                    assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
                }
            }
        }
    }
}
