//! Right-hand sides one after the other, of which one is checked while the ranks iterate for the next.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{choice, is_general, relative_residual, setup, system};
use declive::matrix::gallery;
use declive::solve::{Method, Precision, Precond};
use declive::{Control, Csr, Outcome, Reason, Setup, Solver, Stop};

/// Right-hand sides that differ in size, the third one 0.
fn columns(n: usize) -> Vec<Vec<f64>> {
    let of = |k: u64| {
        gallery::random_vector(n, k).into_iter().map(move |v| v * if k == 2 { 0.0 } else { 10f64.powi(3 * k as i32) })
    };
    (0..5).map(|k| of(k).collect()).collect()
}

/// Solves in turns, and for each alone: x and outcomes of both.
fn both(a: &Csr, b: &[Vec<f64>], setup: &Setup, stop: &Stop) -> [Vec<(Vec<f64>, Outcome<()>)>; 2] {
    let mut solver = Solver::new(a.clone(), &setup.clone().with_columns(1)).unwrap();
    let mut x = vec![0.0; b.len() * a.n_cols()];
    let mut told = Vec::new();
    let mut done = |k: usize, outcome: &Outcome<()>| told.push((k, outcome.iterations));
    let of_b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
    let mut of_x: Vec<&mut [f64]> = x.chunks_mut(a.n_cols()).collect();
    let outcomes = solver.solve_each(&of_b, &mut of_x, stop, Control::default(), &mut done).unwrap();
    told.sort_unstable();
    assert_eq!(told, outcomes.iter().enumerate().map(|(k, o)| (k, o.iterations)).collect::<Vec<_>>());
    let in_turns = x.chunks(a.n_cols()).map(<[f64]>::to_vec).zip(outcomes).collect();
    let mut solver = Solver::new(a.clone(), setup).unwrap();
    let alone = |b: &Vec<f64>| {
        let mut x = vec![0.0; a.n_cols()];
        let outcome = solver.solve_into(b, &mut x, stop, Control::default()).unwrap();
        (x, outcome)
    };
    [in_turns, b.iter().map(alone).collect()]
}

#[test]
fn the_same_bits_as_alone() {
    for method in [Method::Cg, Method::Minres, Method::Gmres, Method::CgClassic, Method::Lsmr, Method::Idr] {
        let a = system(if is_general(method) { "convection3d:5" } else { "jumps:6" });
        let b = columns(a.n_rows());
        for devices in ["host", "D", "D,host,D"].map(choice) {
            for precision in [Precision::F64, Precision::Mixed] {
                let setup = setup(method, Precond::None, precision, &devices);
                if precision == Precision::Mixed && matches!(method, Method::Gmres | Method::Lsmr) {
                    continue;
                }
                let what = format!("{method}, {precision}, {devices}");
                let rtol = 1e-9;
                let stop = Stop::default().with_rtol(rtol);
                let [in_turns, alone] = both(&a, &b, &setup, &stop);
                for (k, (turn, alone)) in in_turns.iter().zip(&alone).enumerate() {
                    assert!(
                        turn.1.reason.converged() || turn.1.reason == Reason::LeastSquares,
                        "{what}, {k}: {}",
                        turn.1.reason
                    );
                    assert_eq!(turn.1.reason, alone.1.reason, "{what}, {k}");
                    if turn.1.restarts == 0 {
                        assert_eq!((&turn.0, turn.1.iterations), (&alone.0, alone.1.iterations), "{what}, {k}");
                    }
                    if k != 2 {
                        let found = relative_residual(&a, &b[k], &turn.0);
                        assert!((turn.1.residual.relative_2 - found).abs() <= 1e-3 * rtol, "{what}, {k}");
                        assert_eq!(turn.1.history.len() as u64, turn.1.iterations + 1, "{what}, {k}");
                    }
                }
            }
        }
    }
}

/// Limits, singular systems, and methods that come to nothing: each column ends as it would alone.
#[test]
fn the_same_ends_as_alone() {
    let stop = Stop::default().with_rtol(1e-9);
    let ends = |a: &Csr, b: &[Vec<f64>], method: Method, stop: &Stop| {
        let setup = setup(method, Precond::None, Precision::F64, &choice("host"));
        let [in_turns, alone] = both(a, b, &setup, stop);
        for (k, (turn, alone)) in in_turns.iter().zip(&alone).enumerate() {
            assert_eq!(turn.1.reason.name(), alone.1.reason.name(), "{k}");
            let [turn, alone] = [turn.1.residual.norm_2, alone.1.residual.norm_2];
            let least = alone.min(turn);
            assert!(
                (turn - alone).abs() <= 1e-2 * least
                    || turn.max(alone) <= stop.rtol * b[k].iter().map(|b| b * b).sum::<f64>().sqrt(),
                "{k}: {turn:e}, {alone:e}"
            );
        }
        in_turns.into_iter().map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    let grid = system("poisson2d:30");
    let few = ends(&grid, &columns(900), Method::Cg, &stop.clone().with_max_iters(7));
    assert_eq!(few.iter().filter(|o| o.reason == Reason::MaxIters).count(), 4);
    // consistent, and not
    let singular = system("neumann2d:20");
    let mut b = columns(400);
    b[1] = singular.mul_vec(&b[1]);
    let of_singular = ends(&singular, &b, Method::Cg, &stop);
    assert!(of_singular[1].reason.converged() && matches!(of_singular[0].reason, Reason::Singular(_)));
    // one eigenvalue is negative, and the second column alone meets it
    let (rows, cols) = (&[0, 1, 2, 3, 2, 3], &[0, 1, 2, 3, 3, 2]);
    let a = Csr::from_triplets(4, 4, rows, cols, &[2.0, 3.0, 1.0, 4.0, 3.0, 3.0]).unwrap();
    let b =
        [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]].map(|b| b.to_vec());
    let by_cg = ends(&a, &b, Method::Cg, &stop);
    assert!(matches!(by_cg[1].reason, Reason::IndefiniteOperator(_)) && by_cg[3].reason.converged());
    let by_auto = ends(&system("helmholtz3d:6"), &columns(216), Method::Auto, &stop);
    assert!(by_auto.iter().all(|o| o.reason.converged()));
}

/// What was solved for before stays solved, and the rest ends before its first iteration.
#[test]
fn a_cancelled_solve_has_an_outcome_for_each() {
    let a = system("poisson2d:60");
    let b = columns(3600);
    let setup = setup(Method::Cg, Precond::None, Precision::F64, &choice("host")).with_columns(1);
    let mut solver = Solver::new(a, &setup).unwrap();
    let (cancel, mut x) = (AtomicBool::new(false), vec![0.0; 5 * 3600]);
    let mut x: Vec<&mut [f64]> = x.chunks_mut(3600).collect();
    let b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
    let control = Control::default().with_cancel(&cancel);
    let mut done = |k: usize, _: &Outcome<()>| {
        cancel.fetch_or(k == 0, Ordering::Relaxed);
    };
    let outcomes = solver.solve_each(&b, &mut x, &Stop::default(), control, &mut done).unwrap();
    let converged = outcomes.iter().filter(|o| o.reason.converged()).count();
    assert!(outcomes[0].reason.converged() && outcomes[2].reason.converged(), "the first, and b = 0");
    assert!(converged >= 2 && outcomes[4].reason == Reason::Interrupted && outcomes[4].iterations == 0);
}
