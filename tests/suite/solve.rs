//! Whole solves, on every kind of rank. Each test recomputes b − A x by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{
    PRECONDS, choices, in_turns, is_general, relative_residual, setup, setups, setups_in_pairs, solve, solve_with,
    symmetric_setups, system,
};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::solve::{Criterion, Format, Indefinite, Method, Precision, Precond, Progress, RankInfo};
use declive::timeline::{FIRST_ITERATIONS, LATER_ITERATIONS, Lane};
use declive::{Control, Csr, Error, Outcome, Reason, Setup, Solver, Stop};
use proptest::prelude::*;

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

fn dense(rows: &[&[f64]]) -> Csr {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for (i, row) in rows.iter().enumerate() {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            t.0.push(i as u32);
            t.1.push(j as u32);
            t.2.push(v);
        }
    }
    Csr::from_triplets(rows.len(), rows[0].len(), &t.0, &t.1, &t.2).unwrap()
}

#[test]
fn every_method_converges_on_every_system_and_device() {
    for (turn, name) in SYSTEMS.iter().enumerate() {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for setup in in_turns(setups(Precision::F64), turn) {
            let o = solve(&a, &b, &setup, 1e-9);
            let what = format!("{name}, {setup:?}: {} in {}", o.reason, o.iterations);
            assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
            assert!(relative_residual(&a, &b, &o.x) <= 1.01e-9, "{what}");
            assert!(o.residual.relative_2 <= 1e-9, "{what}");
            assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
            assert_eq!(o.split.len(), setup.devices.to_string().split(',').count(), "{what}");
            assert!(o.iterations < 2 || o.split.iter().any(|s| !s.kernels.is_zero()), "{what}: kernels took time");
        }
    }
}

#[test]
fn single_precision_reaches_what_it_can() {
    for (turn, name) in ["poisson2d:13x9", "jumps:9,contrast=100,seed=3", "random-spd:1500,seed=7"].iter().enumerate() {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for setup in in_turns(setups_in_pairs(Precision::F32), turn) {
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let o = solve_with(&mut solver, &b, 1e-4);
            assert!(o.reason.converged(), "{name}, {setup:?}: {}", o.reason);
            assert!(relative_residual(&a, &b, &o.x) <= 1.01e-4, "{name}, {setup:?}");
            // beyond its reach it says so
            let o = solve_with(&mut solver, &b, 1e-13);
            assert_eq!(o.reason, Reason::Stagnation, "{name}, {setup:?}");
            assert!(relative_residual(&a, &b, &o.x) < 1e-4, "{name}, {setup:?}: the best x comes back");
        }
    }
}

#[test]
fn the_same_devices_give_the_same_bits() {
    let a = system("jumps:9,contrast=100,seed=3");
    let b = gallery::random_vector(a.n_rows(), 4);
    let bits = |x: &[f64]| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for setup in setups_in_pairs(Precision::F64) {
        let (one, two) = (solve(&a, &b, &setup, 1e-8), solve(&a, &b, &setup, 1e-8));
        assert_eq!(bits(&one.x), bits(&two.x), "{setup:?}");
        assert_eq!((bits(&one.history), one.iterations), (bits(&two.history), two.iterations), "{setup:?}");
    }
}

#[test]
fn the_unit_of_b_does_not_matter() {
    let a = system("poisson2d:13x9");
    let b = gallery::random_vector(a.n_rows(), 4);
    for devices in choices() {
        let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &devices);
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let plain = solve_with(&mut solver, &b, 1e-8);
        for exponent in [-900, -300, 300, 900] {
            let unit = 2f64.powi(exponent);
            let scaled = solve_with(&mut solver, &b.iter().map(|v| v * unit).collect::<Vec<_>>(), 1e-8);
            assert!(scaled.reason.converged(), "{devices}, 2^{exponent}: {}", scaled.reason);
            assert_eq!(scaled.iterations, plain.iterations);
            assert!(scaled.x.iter().zip(&plain.x).all(|(s, p)| *s == p * unit), "{devices}, 2^{exponent}");
        }
    }
}

#[test]
fn norms_out_of_range_are_no_excuse() {
    let a = system("poisson2d:13x9");
    for setup in setups_in_pairs(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        // ‖b‖₂ overflows; ‖b‖₂ underflows
        for value in [1e308, 1e-318] {
            let b = vec![value; a.n_rows()];
            let o = solve_with(&mut solver, &b, 1e-4);
            let largest = b.iter().zip(a.mul_vec(&o.x)).map(|(b, ax)| (b - ax).abs()).fold(0.0, f64::max);
            let ran_over = o.x.iter().any(|v| !v.is_finite());
            assert!(ran_over || !o.reason.converged() || largest <= 2e-3 * value, "{setup:?}, {value:e}: {}", o.reason);
            assert!(o.iterations > 0, "{setup:?}, {value:e}");
        }
    }
}

#[test]
fn the_unit_of_a_does_not_matter() {
    let a = system("poisson2d:13x9");
    let b = gallery::random_vector(a.n_rows(), 4);
    for (precision, rtol, units) in [(Precision::F64, 1e-8, [1e-290, 1e290]), (Precision::F32, 1e-4, [1e-50, 1e200])] {
        for setup in setups_in_pairs(precision) {
            for unit in units {
                let values = a.values().iter().map(|v| v * unit).collect();
                let scaled = Csr::new(117, 117, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
                let o = solve(&scaled, &b, &setup, rtol);
                assert!(o.reason.converged(), "{setup:?}, {unit:e}: {}", o.reason);
                assert!(relative_residual(&scaled, &b, &o.x) <= 1.01 * rtol, "{setup:?}, {unit:e}");
            }
        }
    }
}

#[test]
fn nothing_of_a_former_solve_comes_back() {
    let a = system("poisson2d:13x9");
    let b = vec![1.0; a.n_rows()];
    for setup in setups_in_pairs(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        solver.solve(&b, Some(&[7.0; 117]), &Stop::default(), Control::default()).unwrap();
        // A x0 overflows
        let o = solver.solve(&b, Some(&[1e308; 117]), &Stop::default(), Control::default()).unwrap();
        assert!(matches!(o.reason, Reason::NonFinite(_)), "{setup:?}: {}", o.reason);
        assert!(o.x.iter().all(|v| *v == 1e308), "{setup:?}: the first guess comes back, {:?}", &o.x[..3]);
    }
}

/// Every method and preconditioner on the host, a device, and three ranks, for systems that take many iterations.
fn few_setups() -> Vec<Setup> {
    let choices = choices();
    let few = [&choices[0], &choices[2], &choices[4]];
    setups(Precision::F64).into_iter().filter(|setup| few.contains(&&setup.devices)).collect()
}

#[test]
fn every_method_takes_the_same_iterations_everywhere() {
    // the second three are ill-conditioned: a small residual leaves room for the answer
    for (name, distance) in [
        ("poisson3d:12", 1e-5),
        ("elasticity3d:4", 1e-5),
        ("random-spd:1500,seed=7", 1e-5),
        ("jumps:9,seed=3", 1e-2),
        ("anisotropic:10,epsilon=1e-4", 1e-2),
        ("elasticity3d:24x2x2", 1e-2),
    ] {
        let a = system(name);
        let b = vec![1.0; a.n_rows()];
        for precond in PRECONDS {
            let host = "host".parse().unwrap();
            let reference = solve(&a, &b, &setup(Method::CgClassic, precond, Precision::F64, &host), 1e-8);
            let is_one = |s: &Setup| s.precond == precond && !is_general(s.method);
            for setup in few_setups().into_iter().filter(is_one) {
                let o = solve(&a, &b, &setup, 1e-8);
                // what comes by recurrence twice over is less exact
                let slack = reference.iterations / if setup.method == Method::CgPipelined { 10 } else { 50 } + 3;
                let what = format!("{name}, {setup:?}: {} and {} iterations", o.iterations, reference.iterations);
                assert!(o.iterations <= reference.iterations + slack, "{what}");
                // minres has the least residual of all methods here: it may well be done before
                let may_be_fewer = setup.method == Method::Minres;
                assert!(may_be_fewer || o.iterations + slack >= reference.iterations, "{what}");
                assert!(relative_residual(&a, &b, &o.x) <= 1.01e-8, "{what}");
                let norm: f64 = reference.x.iter().map(|v| v * v).sum::<f64>().sqrt();
                let apart: f64 = o.x.iter().zip(&reference.x).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
                assert!(apart <= distance * norm, "{what}: x is {apart:e} apart, of {norm:e}");
            }
        }
    }
}

/// With every entry a_ij as `f(i, j, a_ij)`.
fn mapped(a: &Csr, f: impl Fn(usize, usize, f64) -> f64) -> Csr {
    let rows = (0..a.n_rows()).flat_map(|i| std::iter::repeat_n(i, a.row_ptr()[i + 1] - a.row_ptr()[i]));
    let entries = rows.zip(a.col_idx()).zip(a.values());
    let values = entries.map(|((i, &j), &v)| f(i, j as usize, v)).collect();
    Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
}

/// A residual that nearly vanishes in one iteration leaves nothing of a direction's length that was predicted from it.
#[test]
fn a_residual_may_vanish_at_once() {
    let grid = system("poisson2d:13x9");
    for tiny in [1e-9, 1e-13] {
        let near_identity = mapped(&grid, |i, j, v| f64::from(u8::from(i == j)) + tiny * v);
        // powers of two from 2⁻²⁰ to 2²⁰ on the diagonal, which a scaling takes away
        let root = |i: usize| 2f64.powi((i % 21) as i32 - 10);
        let scaled = mapped(&near_identity, |i, j, v| v * (root(i) * root(j)));
        for (a, is_scaled) in [(near_identity, false), (scaled, true)] {
            let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 4));
            for setup in setups(Precision::F64).into_iter().filter(|s| !is_scaled || s.precond == Precond::Jacobi) {
                let o = solve(&a, &b, &setup, 1e-13);
                let what = format!("{tiny:e}, {is_scaled}, {setup:?}: {}, {:e}", o.reason, o.residual.relative_2);
                assert!(o.reason.converged() && o.iterations <= 5, "{what}, {} iterations", o.iterations);
                assert!(o.history[1] < 1e-8 * o.history[0], "{what}, {:?}", o.history);
                assert!(relative_residual(&a, &b, &o.x) <= 1.1e-13, "{what}");
            }
        }
    }
}

#[test]
fn both_methods_reach_the_same_accuracy() {
    for name in ["tridiagonal:60", "poisson2d:13x9", "random-spd:1500,seed=7"] {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for precond in PRECONDS {
            // as far as the precision goes
            let last = |solver: &mut Solver, setup: &Setup| {
                let o = solve_with(solver, &b, 1e-17);
                assert!(matches!(o.reason, Reason::Stagnation | Reason::Rounding), "{name}, {setup:?}: {}", o.reason);
                relative_residual(&a, &b, &o.x)
            };
            let host = setup(Method::CgClassic, precond, Precision::F64, &"host".parse().unwrap());
            let reference = last(&mut Solver::new(a.clone(), &host).unwrap(), &host);
            let is_one = |s: &Setup| s.precond == precond && !is_general(s.method);
            for setup in few_setups().into_iter().filter(is_one) {
                let mut solver = Solver::new(a.clone(), &setup).unwrap();
                let o = solve_with(&mut solver, &b, 1e-14);
                assert!(o.reason.converged(), "{name}, {setup:?}: {}", o.reason);
                assert!(relative_residual(&a, &b, &o.x) <= 1.1e-14, "{name}, {setup:?}");
                let reached = last(&mut solver, &setup);
                assert!(reached <= 3.0 * reference, "{name}, {setup:?}: {reached:e}, not {reference:e}");
            }
        }
    }
}

/// What is tested and told is the residual of the system as it was given, whatever is done to it.
#[test]
fn diagonals_over_many_magnitudes() {
    let grid = system("poisson3d:9");
    let exponents = gallery::random_vector(grid.n_rows(), 8);
    let roots: Vec<f64> = exponents.iter().map(|e| 10f64.powf(3.0 * e)).collect();
    let a = mapped(&grid, |i, j, v| v * (roots[i] * roots[j]) / 6.0);
    let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 4));
    for (precision, rtol, slack) in [(Precision::F64, 1e-7, 1e-6), (Precision::F32, 1e-3, 0.05)] {
        for setup in symmetric_setups(precision).into_iter().filter(|s| s.precond == Precond::Jacobi) {
            let o = solve(&a, &b, &setup, rtol);
            let found = relative_residual(&a, &b, &o.x);
            let what = format!("{setup:?}: {} in {}, {found:e}", o.reason, o.iterations);
            assert!(o.reason.converged() && found <= 1.01 * rtol && o.iterations > 5, "{what}");
            assert!((o.residual.relative_2 - found).abs() <= 1e-6 * found, "{what}");
            for told in [*o.history.last().unwrap(), o.recurrence_rel_residual_2] {
                assert!((told - found).abs() <= slack * found, "{what}, but {told:e} is told");
            }
        }
    }
}

#[test]
fn a_good_first_guess_is_used() {
    let a = system("poisson2d:13x9");
    let x = gallery::random_vector(a.n_rows(), 4);
    let b = a.mul_vec(&x);
    for setup in setups(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let o = solver.solve(&b, Some(&x), &Stop::default(), Control::default()).unwrap();
        assert_eq!((o.reason.converged(), o.iterations), (true, 0), "{setup:?}");
        assert_eq!(o.x, x);
        let cold = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        let near: Vec<f64> = x.iter().map(|v| v * (1.0 + 1e-5)).collect();
        let warm = solver.solve(&b, Some(&near), &Stop::default(), Control::default()).unwrap();
        assert!(0 < warm.iterations && warm.iterations < cold.iterations, "{setup:?}");
    }
}

#[test]
fn zero_right_hand_sides_and_empty_systems() {
    for setup in setups_in_pairs(Precision::F64) {
        let o = solve(&system("poisson2d:13x9"), &[0.0; 117], &setup, 1e-8);
        assert_eq!((o.reason, o.x), (Reason::Converged(Criterion::ZeroRhs), vec![0.0; 117]));
        let empty = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let o = solve(&empty, &[], &setup, 1e-8);
        assert!(o.reason.converged() && o.x.is_empty());
    }
}

#[test]
fn an_absolute_tolerance_is_enough() {
    let a = system("poisson2d:13x9");
    let b = vec![1.0; 117];
    for setup in setups_in_pairs(Precision::F64) {
        let stop = Stop::default().with_rtol(0.0).with_atol(1e-3);
        let o = Solver::new(a.clone(), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
        assert_eq!(o.reason, Reason::Converged(Criterion::Atol), "{setup:?}");
        assert!(relative_residual(&a, &b, &o.x) * 117f64.sqrt() <= 1e-3);
    }
}

#[test]
fn indefinite_matrices_are_recognised() {
    let zero = dense(&[&[2.0, 1.0, 0.0], &[1.0, 0.0, 0.0], &[0.0, 0.0, 3.0]]);
    let negative = dense(&[&[2.0, 1.0, 0.0], &[1.0, 4.0, 0.0], &[0.0, 0.0, -3.0]]);
    let hidden = dense(&[&[1.0, 2.0], &[2.0, 1.0]]); // eigenvalues 3 and −1
    let empty = Csr::new(3, 3, vec![0, 1, 1, 2], vec![0, 2], vec![2.0, 3.0]).unwrap();
    let (minres, cg): (Vec<_>, Vec<_>) =
        symmetric_setups(Precision::F64).into_iter().partition(|s| s.method == Method::Minres);
    for setup in minres {
        for a in [&zero, &negative] {
            let o = solve(a, &[1.0; 3], &setup, 1e-8);
            assert!(
                o.reason.converged() && relative_residual(a, &[1.0; 3], &o.x) <= 1.01e-8,
                "{setup:?}: {}",
                o.reason
            );
        }
    }
    for setup in cg {
        let diagonal = |row, value| Reason::IndefiniteOperator(Indefinite::Diagonal { row, value });
        assert_eq!(solve(&zero, &[1.0; 3], &setup, 1e-8).reason, diagonal(2, 0.0), "{setup:?}");
        assert_eq!(solve(&negative, &[1.0; 3], &setup, 1e-8).reason, diagonal(3, -3.0), "{setup:?}");
        let reason = solve(&empty, &[1.0; 3], &setup, 1e-8).reason;
        assert_eq!(reason, Reason::IndefiniteOperator(Indefinite::EmptyRow { row: 2 }), "{setup:?}");
        assert_eq!(reason.to_string(), "IndefiniteOperator: row 2 has no entries: the matrix is singular");
        let o = solve(&hidden, &[1.0, 0.0], &setup, 1e-8);
        let Reason::IndefiniteOperator(Indefinite::Direction { iteration, curvature }) = o.reason else {
            panic!("{setup:?}: {}", o.reason);
        };
        assert!(iteration <= 2 && curvature <= 0.0, "{setup:?}");
        assert!(o.x.iter().all(|v| v.is_finite()));
        assert!(o.reason.to_string().contains(&format!("iteration {iteration}")));
    }
}

#[test]
fn a_singular_inconsistent_system_never_converges() {
    // a ring of springs that nothing holds: constant vectors are in the null space, and b is not orthogonal to them
    let n = 60u32;
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        for (j, v) in [(i, 2.0), ((i + 1) % n, -1.0), ((i + n - 1) % n, -1.0)] {
            rows.push(i);
            cols.push(j);
            values.push(v);
        }
    }
    let a = Csr::from_triplets(60, 60, &rows, &cols, &values).unwrap();
    let mut b = gallery::random_vector(60, 9);
    b[0] += 3.0;
    for setup in setups(Precision::F64) {
        let o = solve(&a, &b, &setup, 1e-8);
        assert!(!o.reason.converged(), "{setup:?}: {}", o.reason);
        assert!(o.x.iter().all(|v| v.is_finite()), "{setup:?}");
        assert!(relative_residual(&a, &b, &o.x) > 1e-8);
    }
}

#[test]
fn numbers_out_of_range_are_not_solutions() {
    let a = dense(&[&[1e308, -9e307], &[-9e307, 1e308]]);
    for setup in setups(Precision::F64) {
        let stop = Stop::default().with_max_iters(50);
        let b = [1.0, -0.5];
        let o = Solver::new(a.clone(), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
        assert!(!o.reason.converged() || o.residual.relative_2 <= 1e-8, "{setup:?}: {}", o.reason);
        assert!(o.x.iter().all(|v| v.is_finite()), "{setup:?}");
    }
}

#[test]
fn limits_end_the_iteration_exactly() {
    let a = system("poisson3d:12");
    let b = vec![1.0; a.n_rows()];
    for setup in setups_in_pairs(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        for limit in [1, 2, 5] {
            let stop = Stop::default().with_max_iters(limit);
            let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert_eq!((o.reason, o.iterations), (Reason::MaxIters, limit), "{setup:?}");
            let last = *o.history.last().unwrap();
            // methods for any matrix give up an x that is worse than the first
            let claimed = if is_general(setup.method) { last.min(o.history[0]) } else { last };
            let true_one = relative_residual(&a, &b, &o.x);
            assert!(
                (claimed - true_one).abs() < 1e-10,
                "{setup:?}: x is not the iterate of {claimed:e}, but of {true_one:e}"
            );
        }
        let stop = Stop::default().with_rtol(0.0).with_time_limit(Duration::from_millis(30)).with_max_iters(u64::MAX);
        let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
        // with rtol = 0 the precision may be exhausted before the time is
        assert!(
            matches!(o.reason, Reason::TimeLimit | Reason::Stagnation | Reason::Rounding),
            "{setup:?}: {}",
            o.reason
        );
        let none = Stop::default().with_time_limit(Duration::ZERO);
        let o = solver.solve(&b, None, &none, Control::default()).unwrap();
        assert_eq!((o.reason, o.iterations), (Reason::TimeLimit, 0));
    }
}

#[test]
fn a_caller_can_watch_and_interrupt() {
    let a = system("poisson3d:14");
    let b = vec![1.0; a.n_rows()];
    for setup in setups(Precision::F64) {
        let cancel = AtomicBool::new(false);
        let watch = |p: &Progress| {
            assert!(p.target > 0.0 && p.rel_residual_2.is_finite());
            cancel.store(true, Ordering::Relaxed);
        };
        let control = Control::default().with_cancel(&cancel).with_progress(&watch);
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let o = solver.solve(&b, None, &Stop::default(), control).unwrap();
        assert_eq!(o.reason, Reason::Interrupted, "{setup:?}");
        assert!(o.x.iter().all(|v| v.is_finite()));
        // asked before the start, it does nothing
        let o = solver.solve(&b, None, &Stop::default(), control).unwrap();
        assert_eq!((o.reason, o.iterations), (Reason::Interrupted, 0), "{setup:?}");
        // and the solver is still good
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-8);
    }
}

/// A row that another rank needs, and that needs no other rank itself: its element of q is not among those of the rows
/// that are computed first.
#[test]
fn what_others_need_may_need_no_others() {
    let n = 900;
    let tridiagonal = system(&format!("tridiagonal:{n}"));
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        for (&j, &v) in tridiagonal.row(i).0.iter().zip(tridiagonal.row(i).1) {
            t.0.push(i as u32);
            t.1.push(j);
            t.2.push(v + if i == j as usize { 1.0 } else { 0.0 });
        }
    }
    // the middle of every other block of rows, on up to 5 ranks
    for (row, column) in [(3, n / 2), (n - 4, n / 4), (n / 2 + 7, 5)] {
        t.0.push(row as u32);
        t.1.push(column as u32);
        t.2.push(0.01);
    }
    let a = Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap();
    let b = gallery::random_vector(n, 3);
    let stop = Stop::default().with_max_iters(9).with_rtol(0.0);
    for format in [Format::Csr, Format::Dictionary, Format::Sell] {
        let history = |devices: &Choice| {
            let usual = setup(Method::Cg, Precond::None, Precision::F64, devices);
            let setup = usual.with_assume_symmetric(true).with_format(format);
            Solver::new(a.clone(), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap().history
        };
        let all = choices();
        let alone = history(all.iter().find(|choice| choice.to_string() != "host").unwrap());
        assert_eq!(alone.len(), 10);
        for devices in &all {
            let apart = history(devices).iter().zip(&alone).map(|(v, w)| (v / w - 1.0).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-9, "{format} on {devices}: {apart:e}");
        }
    }
}

#[test]
fn every_format_gives_the_same_answer() {
    // constant and other coefficients on a grid; what has no row patterns
    for (name, possible) in [
        ("poisson2d:40x50", &[Format::Dictionary, Format::Pattern, Format::Csr, Format::Sell][..]),
        ("variable:20", &[Format::Pattern, Format::Csr, Format::Sell]),
        ("random-spd:1500,seed=7", &[Format::Csr, Format::Sell]),
        // blocks, and a long row, on devices that are too small for slices to pay
        ("elasticity3d:3", &[Format::Csr, Format::Sell]),
        ("graph-laplacian:1500,shift=1", &[Format::Csr, Format::Sell]),
    ] {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 5);
        let is_pair = |s: &Setup| {
            [(Method::Cg, Precond::None), (Method::CgClassic, Precond::Jacobi)].contains(&(s.method, s.precond))
        };
        for setup in setups(Precision::F64).into_iter().filter(is_pair) {
            let of = |format| Solver::new(a.clone(), &setup.clone().with_format(format));
            let (mut auto, devices) = (of(Format::Auto).unwrap(), setup.devices.to_string());
            let expected = auto.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            // the host has the values of each row anyway
            let on_host = if possible[0] == Format::Dictionary { Format::Dictionary } else { Format::Csr };
            let chosen = |rank: &RankInfo| if rank.index.is_some() { possible[0] } else { on_host };
            assert!(auto.ranks().iter().all(|rank| rank.format == chosen(rank)), "{name} on {devices}");
            for &format in Format::ALL.iter().filter(|&&format| format != Format::Auto) {
                let what = format!("{name}, {format}, {setup:?}");
                let mut solver = match of(format) {
                    Ok(solver) => solver,
                    Err(e) => {
                        let is_asked =
                            format == Format::Dictionary || devices.split(',').any(|device| device != "host");
                        assert!(!possible.contains(&format) && is_asked, "{what}: {e}");
                        assert!(e.to_string().contains(&format!("format = {format}")), "{what}: {e}");
                        continue;
                    }
                };
                let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
                assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-8, "{what}");
                // partial sums are of other rows
                let apart = o.iterations.abs_diff(expected.iterations);
                assert!(apart <= 1 + expected.iterations / 50, "{what}: {apart}");
                let bytes = |o: &Outcome| o.bytes_per_iteration;
                let is_least = format == Format::Sell || bytes(&expected) <= bytes(&o);
                assert!(is_least, "{what}: the choice reads the least, but for slices, which are for large GPUs");
            }
        }
    }
}

#[test]
fn timelines_tell_what_each_rank_did_and_change_nothing() {
    let a = system("poisson2d:100x100");
    let b = gallery::random_vector(a.n_rows(), 3);
    for setup in setups_in_pairs(Precision::F64).into_iter().filter(|setup| !is_general(setup.method)) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let plain = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(plain.timelines.iter().all(|t| t.spans.is_empty()), "{setup:?}");
        let control = Control::default().with_timeline(true);
        let o = solver.solve(&b, None, &Stop::default(), control).unwrap();
        assert!(o.iterations > FIRST_ITERATIONS && o.x == plain.x, "{setup:?}: {}", o.iterations);
        assert_eq!(o.timelines.len(), solver.ranks().len());
        for timeline in &o.timelines {
            let recorded = FIRST_ITERATIONS + o.iterations / LATER_ITERATIONS - FIRST_ITERATIONS / LATER_ITERATIONS;
            assert_eq!(timeline.iterations(), recorded, "{setup:?}");
            let kernels = timeline.kernels();
            let product = kernels.iter().find(|k| k.kernel.starts_with("spmv_")).unwrap();
            assert_eq!(product.kernel.starts_with("spmv_dot_"), setup.method != Method::CgClassic);
            // two where some rows wait for a halo
            let launches = if solver.ranks().len() == 1 { 1 } else { 2 };
            assert!((recorded..=launches * recorded).contains(&product.calls), "{setup:?}: {product:?}");
            for lane in [Lane::Kernels, Lane::Host] {
                let spans: Vec<_> = timeline.spans.iter().filter(|s| s.lane == lane).collect();
                assert!(spans.iter().all(|s| s.start <= s.end), "{setup:?}");
                assert!(spans.iter().map(|s| s.iteration.unwrap_or(0)).max().unwrap_or(0) <= o.iterations);
                let overlap = spans.windows(2).find(|w| w[0].end > w[1].start);
                assert_eq!(overlap, None, "{setup:?}: one after the other");
            }
        }
    }
}

#[test]
fn one_solver_many_right_hand_sides() {
    let a = system("random-spd:1500,seed=7");
    for setup in setups_in_pairs(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let first = gallery::random_vector(a.n_rows(), 1);
        let x = solver.solve(&first, None, &Stop::default(), Control::default()).unwrap().x;
        for seed in 2..4 {
            let b = gallery::random_vector(a.n_rows(), seed);
            let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            assert!(relative_residual(&a, &b, &o.x) <= 1.01e-8, "{setup:?}");
        }
        let again = solver.solve(&first, None, &Stop::default(), Control::default()).unwrap();
        assert_eq!(again.x, x, "{setup:?}: nothing of the solves between is left");
    }
}

#[test]
fn solvers_in_several_threads() {
    let a = system("poisson3d:12");
    let choices = choices();
    std::thread::scope(|scope| {
        for (k, devices) in choices.iter().enumerate() {
            let a = &a;
            scope.spawn(move || {
                let b = gallery::random_vector(a.n_rows(), k as u64);
                let o = solve(a, &b, &setup(Method::Cg, Precond::Jacobi, Precision::F64, devices), 1e-8);
                assert!(relative_residual(a, &b, &o.x) <= 1.01e-8, "{devices}");
            });
        }
    });
}

#[test]
fn unusable_input_is_refused() {
    let host = Setup::default().with_devices("host".parse().unwrap());
    let wide = dense(&[&[1.0, 2.0, 0.0], &[2.0, 5.0, 0.0]]);
    let cg = host.clone().with_method(Method::Cg);
    assert!(matches!(Solver::new(wide, &cg), Err(Error::Rectangular { method: "cg", rows: 2, cols: 3 })));

    let lopsided = dense(&[&[4.0, 1.0], &[2.0, 3.0]]);
    let error = Solver::new(lopsided.clone(), &host.clone().with_method(Method::Cg)).unwrap_err();
    assert!(matches!(error, Error::NotSymmetric { row: 1, col: 2, upper: 1.0, lower: 2.0, .. }), "{error}");
    let assumed = host.clone().with_assume_symmetric(true);
    assert!(Solver::new(lopsided, &assumed).is_ok());

    let huge = dense(&[&[1e300, 0.0], &[0.0, 1.0]]);
    let single = host.clone().with_precision(Precision::F32);
    assert!(matches!(Solver::new(huge, &single), Err(Error::BeyondSingle { row: 2, .. })));

    let mut solver = Solver::new(system("tridiagonal:7"), &host).unwrap();
    let mut refused = |b: &[f64], x0: Option<&[f64]>| {
        solver.solve(b, x0, &Stop::default(), Control::default()).unwrap_err().to_string()
    };
    assert!(refused(&[1.0; 6], None).contains("b has 6 rows, but the matrix has 7"));
    assert!(refused(&[1.0; 7], Some(&[0.0; 8])).contains("x0 has 8 rows"));
    assert!(refused(&[1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0], None).contains("entry 3 is NaN"));
    for (stop, what) in [
        (Stop::default().with_rtol(f64::NAN), "rtol = NaN is no tolerance"),
        (Stop::default().with_atol(-1.0), "atol = -1 is no tolerance"),
    ] {
        let error = solver.solve(&[1.0; 7], None, &stop, Control::default()).unwrap_err();
        assert!(matches!(error, Error::Usage(_)) && error.to_string().contains(what), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Strictly diagonally dominant matrices of small integers with any pattern, on any number of ranks.
    #[test]
    fn random_systems(
        n in 1usize..40,
        entries in prop::collection::vec((0usize..40, 0usize..40, -3i32..4), 0..120),
        b in prop::collection::vec(-9i32..10, 40),
        choice in 0usize..7,
    ) {
        let mut full = vec![vec![0.0; n]; n];
        for (i, j, v) in entries {
            let (i, j) = (i % n, j % n);
            if i != j {
                (full[i][j], full[j][i]) = (v.into(), v.into());
            }
        }
        for (i, row) in full.iter_mut().enumerate() {
            row[i] = 1.0 + row.iter().map(|v: &f64| v.abs()).sum::<f64>();
        }
        let a = dense(&full.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let b: Vec<f64> = b[..n].iter().map(|&v| v.into()).collect();
        let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &choices()[choice]);
        let o = solve(&a, &b, &setup, 1e-10);
        prop_assert!(o.reason.converged(), "{}", o.reason);
        let zero = b.iter().all(|&v| v == 0.0);
        prop_assert!(zero || relative_residual(&a, &b, &o.x) <= 1.1e-10);
    }
}
