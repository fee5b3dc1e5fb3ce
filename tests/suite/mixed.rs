//! Iterations in single precision towards solutions in double precision. Each test recomputes b − A x by itself.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::process::Place;
use crate::common::{
    choices, in_turns, is_general, relative_residual, setup, setups_in_pairs, solve, solve_with, symmetric_setups,
    system,
};
use declive::matrix::gallery;
use declive::solve::{Criterion, Indefinite, Method, Precision, Precond, Progress};
use declive::{Control, Csr, Reason, Solver, Stop};

fn two_by_two(diagonal: f64, other: f64) -> Csr {
    Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![diagonal, other, other, diagonal]).unwrap()
}

fn bits(v: &[f64]) -> Vec<u64> {
    v.iter().map(|v| v.to_bits()).collect()
}

/// Whether some element has more digits than single precision has.
fn is_double(v: &[f64]) -> bool {
    v.iter().any(|&v| f64::from(v as f32) != v)
}

#[test]
fn reaches_what_double_precision_reaches() {
    let systems = [
        "tridiagonal:1",
        "tridiagonal:7", // fewer rows than some of five ranks want: empty parts
        "poisson2d:13x9",
        "poisson3d:12",
        "jumps:9,contrast=100,seed=3",
        "graph-laplacian:700,seed=5",
        "elasticity3d:4",
        "random-spd:1500,seed=7",
    ];
    for (turn, name) in systems.into_iter().enumerate() {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for setup in in_turns(setups_in_pairs(Precision::Mixed), turn) {
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            for rtol in [1e-10, 1e-12] {
                let stop = Stop::default().with_rtol(rtol);
                let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
                let what = format!("{name}, {rtol:e}, {setup:?}: {} in {}", o.reason, o.iterations);
                assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
                // plain sums are off by some units in the last place of A x
                assert!(relative_residual(&a, &b, &o.x) <= 1.01 * rtol + 1e-13, "{what}");
                assert!(o.residual.relative_2 <= rtol, "{what}");
                assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
            }
        }
    }
}

/// Whether each run of a method begins from the residual alone, so that there are few.
fn begins_anew(method: Method) -> bool {
    matches!(method, Method::Minres | Method::Idr)
}

#[test]
fn takes_hardly_more_iterations() {
    for (turn, name) in ["poisson2d:13x9", "poisson3d:12", "variable:9", "random-spd:1500,seed=7"].iter().enumerate() {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for mixed in in_turns(setups_in_pairs(Precision::Mixed), turn) {
            let double = mixed.clone().with_precision(Precision::F64);
            let took = [&mixed, &double].map(|setup| solve(&a, &b, setup, 1e-11).iterations);
            let factor = if begins_anew(mixed.method) { 1.7 } else { 1.25 };
            let most = factor * took[1] as f64 + 5.0;
            assert!(took[0] as f64 <= most, "{name}, {mixed:?}: {took:?} iterations in mixed and double precision");
        }
    }
}

#[test]
fn the_same_devices_give_the_same_bits() {
    let a = system("jumps:9,contrast=100,seed=3");
    let b = gallery::random_vector(a.n_rows(), 4);
    for setup in setups_in_pairs(Precision::Mixed).into_iter().map(|setup| setup.with_restart(10)) {
        let (one, two) = (solve(&a, &b, &setup, 1e-11), solve(&a, &b, &setup, 1e-11));
        assert_eq!(bits(&one.x), bits(&two.x), "{setup:?}");
        assert_eq!((bits(&one.history), one.restarts), (bits(&two.history), two.restarts), "{setup:?}");
        let few = if begins_anew(setup.method) { 2 } else { 4 };
        assert!(one.restarts >= few, "{setup:?}: {} replacements by 10⁻² or 10⁻⁴ each", one.restarts);
    }
}

#[test]
fn a_solver_serves_several_right_hand_sides_and_initial_guesses() {
    let a = system("variable:6");
    let stop = Stop::default().with_rtol(1e-11);
    for setup in setups_in_pairs(Precision::Mixed) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        for seed in 1..3 {
            let b = gallery::random_vector(a.n_rows(), seed);
            let first = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert_eq!(bits(&first.x), bits(&solve(&a, &b, &setup, 1e-11).x), "{setup:?}, {seed}");
            assert!(first.reason.converged() && relative_residual(&a, &b, &first.x) <= 1.01e-11, "{setup:?}, {seed}");

            // from there, no step is needed, and nothing is lost but for the scaling
            let again = solver.solve(&b, Some(&first.x), &stop, Control::default()).unwrap();
            assert!(again.reason.converged(), "{setup:?}: {}", again.reason);
            if setup.precond == Precond::None {
                assert_eq!((again.iterations, bits(&again.x)), (0, bits(&first.x)), "{setup:?}");
            }
            // from nearby, fewer
            let near: Vec<f64> = first.x.iter().zip(&b).map(|(x, b)| x + 1e-8 * b).collect();
            let nearer = solver.solve(&b, Some(&near), &stop, Control::default()).unwrap();
            assert!(nearer.reason.converged() && nearer.iterations < first.iterations, "{setup:?}");
            assert!(relative_residual(&a, &b, &nearer.x) <= 1.01e-11, "{setup:?}");
        }
    }
}

#[test]
fn the_units_do_not_matter() {
    let a = system("poisson2d:13x9");
    let scaled = |unit: f64| {
        let values = a.values().iter().map(|v| v * unit).collect();
        Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    };
    let b = gallery::random_vector(a.n_rows(), 4);
    for devices in choices() {
        let setup = setup(Method::Cg, Precond::None, Precision::Mixed, &devices);
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let plain = solve_with(&mut solver, &b, 1e-11);
        for exponent in [-500, 500] {
            let unit = 2f64.powi(exponent);
            let of_a = solve(&scaled(unit), &b, &setup, 1e-11);
            let of_b = solve_with(&mut solver, &b.iter().map(|v| v * unit).collect::<Vec<_>>(), 1e-11);
            assert!(of_a.x.iter().zip(&plain.x).all(|(s, p)| s * unit == *p), "{devices}, 2^{exponent}");
            assert!(of_b.x.iter().zip(&plain.x).all(|(s, p)| *s == p * unit), "{devices}, 2^{exponent}");
        }
    }
}

#[test]
fn what_single_precision_cannot_tell_from_singular_ends_in_stagnation() {
    // condition 2·10⁹, whose smaller eigenvalue is lost in single precision
    let a = two_by_two(1.0, 1.0 - 1e-9);
    for setup in symmetric_setups(Precision::Mixed) {
        let mut mixed = Solver::new(a.clone(), &setup).unwrap();
        let mut double = Solver::new(a.clone(), &setup.clone().with_precision(Precision::F64)).unwrap();
        for b in [[1.0, -1.0], [1.0, -0.5]] {
            let o = solve_with(&mut mixed, &b, 1e-10);
            // minres divides by zero there
            let is_nothing = setup.method == Method::Minres && matches!(o.reason, Reason::NonFinite(_));
            assert!(o.reason == Reason::Stagnation || is_nothing, "{setup:?}, {b:?}: {}", o.reason);
            assert!((o.residual.relative_2 - relative_residual(&a, &b, &o.x)).abs() < 1e-6, "{setup:?}, {b:?}");
            // double precision knows better
            let double = solve_with(&mut double, &b, 1e-6);
            assert!(double.reason.converged() && relative_residual(&a, &b, &double.x) <= 1.01e-6, "{setup:?}");
        }
    }
}

#[test]
fn a_hard_way_is_gone_or_said_to_be_too_hard() {
    for (turn, name) in ["jumps:6,contrast=1e6,seed=3", "jumps:6,contrast=1e9,seed=3"].into_iter().enumerate() {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 2);
        for (k, devices) in ["host", "0", "0,0,0"].into_iter().enumerate() {
            // each method on one of them, and of a hard system on another
            for &method in Method::FORCED.iter().skip((k + turn) % 3).step_by(3) {
                let setup = setup(method, Precond::None, Precision::Mixed, &devices.parse().unwrap());
                let o = solve(&a, &b, &setup, 1e-8);
                let residual = relative_residual(&a, &b, &o.x);
                let what = format!("{name}, {setup:?}: {} at {residual:e}", o.reason);
                let is_hard = o.reason == Reason::Stagnation || is_general(method) && !o.reason.converged();
                assert!(is_hard || o.reason.converged() && residual <= 1.01e-8, "{what}");
                assert!(residual <= 1.01, "{what}: worse than nothing");
            }
        }
    }
}

#[test]
fn indefinite_matrices_are_still_found_out() {
    let a = two_by_two(1.0, 2.0);
    for setup in symmetric_setups(Precision::Mixed).into_iter().filter(|setup| setup.method != Method::Minres) {
        let o = solve(&a, &[1.0, -1.0], &setup, 1e-10);
        let Reason::IndefiniteOperator(Indefinite::Direction { iteration: 1, curvature }) = o.reason else {
            panic!("{setup:?}: {}", o.reason);
        };
        assert!(curvature < 0.0, "{setup:?}: {curvature}");
    }
}

#[test]
fn limits_and_interrupts_give_the_x_that_was_reached() {
    let a = system("poisson3d:20");
    let b = gallery::random_vector(a.n_rows(), 2);
    // what the first cycle of gmres has found is in single precision
    for setup in setups_in_pairs(Precision::Mixed).into_iter().map(|setup| setup.with_restart(10)) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        for limit in [1, 2, 30] {
            let stop = Stop::default().with_rtol(1e-12).with_max_iters(limit);
            let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert_eq!((&o.reason, o.iterations), (&Reason::MaxIters, limit), "{setup:?}");
            let residual = relative_residual(&a, &b, &o.x);
            assert!((residual / o.recurrence_rel_residual_2 - 1.0).abs() < 1e-2, "{setup:?}, {limit}: {residual}");
            assert!(limit < 30 || setup.method == Method::Minres || is_double(&o.x), "{setup:?}");
        }
        let cancel = AtomicBool::new(false);
        let after_a_replacement = |progress: &Progress| {
            if progress.rel_residual_2 < 1e-5 {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let control = Control::default().with_cancel(&cancel).with_progress(&after_a_replacement).with_timeline(true);
        let o = solver.solve(&b, None, &Stop::default().with_rtol(1e-12), control).unwrap();
        let residual = relative_residual(&a, &b, &o.x);
        match o.reason {
            Reason::Interrupted => assert!(residual < 1e-2 && is_double(&o.x), "{setup:?}: {residual}"),
            // a fast machine is done before it looks again
            reason => assert!(reason.converged() && residual <= 1.01e-12, "{setup:?}: {reason}"),
        }
    }
}

#[test]
fn the_memory_of_both_matrices_counts() {
    let a = system("random-spd:1500,seed=7");
    for devices in choices() {
        let of = |precision| {
            let setup = setup(Method::Cg, Precond::None, precision, &devices);
            Solver::new(a.clone(), &setup).unwrap().ranks().iter().map(|rank| rank.bytes).sum::<u64>()
        };
        let (double, single, mixed) = (of(Precision::F64), of(Precision::F32), of(Precision::Mixed));
        assert!(mixed > double && mixed > single, "{devices}: {mixed}, {double}, {single}");
    }
}

#[test]
fn on_the_command_line() {
    let place = Place::new();
    for devices in ["host", "0", "0,0,0"] {
        let run = place.run(&format!(
            "solve --generate poisson3d:12 --rhs random:3 --precision mixed --rtol 1e-10 --devices {devices} --json \
             -o x.mtx"
        ));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert!(
            run.out.contains("\"precision\": \"mixed\"") || run.out.contains("\"precision\":\"mixed\""),
            "{report}"
        );
        let a = system("poisson3d:12");
        let b = gallery::random_vector(a.n_rows(), 3);
        assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-10, "{devices}");
    }

    let mut without = place.command("solve --generate poisson3d:4 --precision mixed --devices 0");
    without.env("DECLIVE_F64", "off");
    let refused = crate::common::process::Run::of(without, "");
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(refused.err.contains("it has no double precision (--precision f32 would use it)"), "{}", refused.err);

    let tune = place.run("tune --order 1000 --precision mixed");
    assert_eq!(tune.code, Some(2));
    assert!(tune.err.contains("--precision mixed runs the kernels of f32 and of f64"), "{}", tune.err);
}
