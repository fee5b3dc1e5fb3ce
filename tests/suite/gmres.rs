//! `gmres`: minimal residuals in cycles, for any square matrix. Each test recomputes b − A x by itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use crate::common::process::{Place, Run, on_three_devices};
use crate::common::{choice, choices, general, relative_residual, setup, solve, solve_with, system};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::solve::{Checkpoint, Checkpoints, Criterion, Method, Precision, Precond, Progress};
use declive::{Control, Csr, Error, Reason, Setup, Solver, Stop};

fn cycles(restart: u32, precond: Precond, precision: Precision, devices: &Choice) -> Setup {
    setup(Method::Gmres, precond, precision, devices).with_restart(restart)
}

/// x_i goes to row i + 1, and the last to the first: A^k e₁ is at right angles to all before.
fn shift(n: usize) -> Csr {
    general(n, (0..n).map(|i| ((i + 1) % n, i, 1.0)))
}

fn first_unit(n: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(u8::from(i == 0))).collect()
}

#[test]
fn small_systems_by_hand() {
    // four eigenvalues of different signs; a nilpotent part; a rotation, of which r·A r = 0
    let upper =
        general(4, [(0, 0, 1.0), (0, 3, 2.0), (1, 1, -2.0), (1, 0, 1.0), (2, 2, 4.0), (3, 3, 0.5), (3, 2, 1.0)]);
    let exchange = general(3, [(0, 1, 2.0), (1, 0, 1.0), (2, 2, 4.0)]);
    let turn = general(2, [(0, 1, 1.0), (1, 0, -1.0)]);
    for devices in choices() {
        for precond in [Precond::None, Precond::Jacobi] {
            for (a, b, x) in [
                (&upper, &[9.0, -3.0, 12.0, 5.0][..], &[1.0, 2.0, 3.0, 4.0][..]),
                (&exchange, &[4.0, 1.0, 12.0], &[1.0, 2.0, 3.0]),
                (&turn, &[1.0, 0.0], &[0.0, 1.0]),
            ] {
                let o = solve(a, b, &cycles(30, precond, Precision::F64, &devices), 1e-13);
                let what = format!("{devices}, {precond}, {b:?}: {} in {}, {:?}", o.reason, o.iterations, o.x);
                assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
                assert!(o.iterations <= a.n_rows() as u64, "{what}");
                assert!(o.x.iter().zip(x).all(|(x, y)| (x - y).abs() <= 1e-12), "{what}");
            }
        }
    }
}

/// Nothing is gained before the last step of n; so nothing ever is by cycles that are shorter.
#[test]
fn a_shift_takes_all_steps() {
    let n = 12;
    for devices in choices() {
        let of =
            |restart| solve(&shift(n), &first_unit(n), &cycles(restart, Precond::None, Precision::F64, &devices), 1e-9);
        for restart in [12, 13, 30] {
            let o = of(restart);
            assert!(o.reason.converged() && o.iterations == n as u64, "{devices}, {restart}: {}", o.reason);
            assert!(o.history[..n].iter().all(|r| (r - 1.0).abs() < 1e-14), "{devices}: {:?}", o.history);
            assert!(relative_residual(&shift(n), &first_unit(n), &o.x) < 1e-14);
        }
        let o = of(11);
        assert_eq!(o.reason, Reason::Stagnation, "{devices}");
        assert!(o.x.iter().all(|x| x.abs() < 1e-14) && o.iterations < 400, "{devices}: {}", o.iterations);
    }
}

#[test]
fn singular_systems() {
    // [0 1; 0 0] x = [1, 0] has solutions, x = [0, 1] no way to them from r: A r = 0
    let nilpotent = general(2, [(0, 1, 1.0), (1, 0, 0.0)]);
    // rows 1 and 2 are the same
    let same = general(3, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 1.0), (1, 1, 2.0), (2, 2, 3.0)]);
    for devices in choices() {
        let setup = cycles(5, Precond::None, Precision::F64, &devices);
        let o = solve(&nilpotent, &[1.0, 0.0], &setup, 1e-9);
        assert_eq!((o.reason, &o.x[..]), (Reason::Stagnation, &[0.0; 2][..]), "{devices}");
        let o = solve(&same, &[3.0, 3.0, 3.0], &setup, 1e-12);
        assert!(o.reason.converged(), "{devices}: {}", o.reason);
        assert!(relative_residual(&same, &[3.0, 3.0, 3.0], &o.x) < 1e-12, "{devices}");
        // half of the difference of b₁ and b₂ is left in each at least, and not much more
        let o = solve(&same, &[4.0, 2.0, 3.0], &setup, 1e-9);
        let found = relative_residual(&same, &[4.0, 2.0, 3.0], &o.x);
        assert_eq!(o.reason, Reason::Stagnation, "{devices}");
        let least = (2.0f64 / 29.0).sqrt();
        assert!((1.0 - 1e-12..1.03).contains(&(found / least)), "{devices}: {found}, {least}");
    }
}

#[test]
fn every_rank_precision_and_length_of_cycles() {
    let precisions = [(Precision::F64, 1e-10), (Precision::F32, 1e-4), (Precision::Mixed, 1e-10)];
    for name in ["convection3d:9x8x7", "convection3d:6,peclet=20", "jumps:7,contrast=10"] {
        let a = system(name);
        let b = gallery::random_vector(a.n_rows(), 11);
        for (turn, devices) in choices().into_iter().enumerate() {
            for precond in [Precond::None, Precond::Jacobi] {
                for (k, (precision, rtol)) in precisions.into_iter().enumerate() {
                    // both lengths in double precision, one or the other else
                    let lengths = if k == 0 { &[5, 40][..] } else { &[[5, 40][(k + turn) % 2]] };
                    for &restart in lengths {
                        let o = solve(&a, &b, &cycles(restart, precond, precision, &devices), rtol);
                        let found = relative_residual(&a, &b, &o.x);
                        let what = format!(
                            "{name}, {devices}, {precond}, {precision}, {restart}: {} in {}, {found:e}",
                            o.reason, o.iterations
                        );
                        assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}");
                        assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
                        let last = o.history.last().unwrap();
                        assert!((last - found).abs() <= 0.1 * found + 1e-14, "{what}: {last:e}");
                        // what is least is the residual of the system itself, with a preconditioner, too
                        let falls = o.history.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-5));
                        assert!(falls, "{what}: {:?}", o.history);
                        assert!(
                            restart > 5 || o.restarts + 1 >= o.iterations.div_ceil(5) as u32,
                            "{what}: {}",
                            o.restarts
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn as_many_iterations_on_several_ranks() {
    let a = system("convection3d:12");
    let b = gallery::random_vector(a.n_rows(), 3);
    let of = |devices: &str, restart| {
        solve(&a, &b, &cycles(restart, Precond::Jacobi, Precision::F64, &choice(devices)), 1e-10).iterations
    };
    for restart in [10, 30, 100] {
        let alone = of("host", restart);
        for devices in ["D", "D,D", "D,D,D", "D,host,D", "D,D,D,D,D"] {
            let several = of(devices, restart);
            assert!(several.abs_diff(alone) <= 1 + alone / 50, "{restart}, {devices}: {several} and {alone}");
        }
    }
    assert!(of("host", 100) <= of("host", 10), "longer cycles take no more");
}

/// x of any iteration is there when a limit or somebody ends the solve.
#[test]
fn ends_at_once_if_it_is_to() {
    let a = system("convection3d:7");
    let b = gallery::random_vector(a.n_rows(), 3);
    for devices in choices() {
        for (precond, precision) in
            [(Precond::None, Precision::F64), (Precond::Jacobi, Precision::F64), (Precond::Jacobi, Precision::Mixed)]
        {
            let setup = cycles(6, precond, precision, &devices);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            for max_iters in [1, 2, 6, 7, 15] {
                let stop = Stop::default().with_rtol(1e-12).with_max_iters(max_iters);
                let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
                assert_eq!((o.reason, o.iterations), (Reason::MaxIters, max_iters), "{setup:?}");
                let (found, last) = (relative_residual(&a, &b, &o.x), o.history.last().unwrap());
                assert!((last - found).abs() < 1e-5 * found, "{setup:?}, {max_iters}: {found:e}, {last:e}");
            }
            let cancel = AtomicBool::new(false);
            let watch = |progress: &Progress| cancel.store(progress.iterations > 0, Ordering::Relaxed);
            let control = Control::default().with_cancel(&cancel).with_progress(&watch);
            let endless = Stop::default().with_rtol(0.0).with_max_iters(u64::MAX);
            let o = solver.solve(&b, None, &endless, control).unwrap();
            let is_ended = matches!(o.reason, Reason::Interrupted | Reason::Stagnation | Reason::Rounding);
            assert!(is_ended && relative_residual(&a, &b, &o.x) < 1.0, "{setup:?}: {}", o.reason);
            let none = Stop::default().with_time_limit(Duration::ZERO);
            let o = solver.solve(&b, None, &none, Control::default()).unwrap();
            assert_eq!((o.reason, o.iterations), (Reason::TimeLimit, 0), "{setup:?}");
            assert!(solve_with(&mut solver, &b, 1e-8).reason.converged(), "{setup:?}: the solver is still good");
        }
    }
}

/// What is handed out is x at the end of a cycle, to the last bit, and nobody notices.
#[test]
fn checkpoints_do_not_disturb() {
    let a = system("convection3d:7");
    let b = gallery::random_vector(a.n_rows(), 5);
    for devices in choices() {
        for precision in [Precision::F64, Precision::Mixed] {
            let setup = cycles(4, Precond::Jacobi, precision, &devices);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let taken = Mutex::new(Vec::new());
            let take =
                |at: &Checkpoint<'_>| taken.lock().unwrap().push((at.iterations, at.rel_residual_2, at.x.to_vec()));
            let checkpoint = Checkpoints::new(Duration::ZERO, &take);
            let control = Control::default().with_checkpoint(checkpoint);
            let with = solver.solve(&b, None, &Stop::default(), control).unwrap();
            let without = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            assert!(with.reason.converged(), "{setup:?}: {}", with.reason);
            assert_eq!((&with.history, &with.x), (&without.history, &without.x), "{setup:?}");
            let taken = taken.into_inner().unwrap();
            assert!(taken.iter().any(|(k, ..)| *k > 0) && taken.is_sorted_by_key(|(k, ..)| *k), "{setup:?}");
            for (k, rel_residual_2, x) in taken.iter().filter(|(k, ..)| *k > 0) {
                assert_eq!((k % 4, *rel_residual_2), (0, with.history[*k as usize]), "{setup:?}, {k}");
                let stop = Stop::default().with_max_iters(*k);
                let ended = solver.solve(&b, None, &stop, Control::default()).unwrap();
                assert_eq!((ended.iterations, &ended.x), (*k, x), "{setup:?}, {k}");
            }
        }
    }
}

#[test]
fn cycles_have_a_step_at_least() {
    for restart in [0, 10_001] {
        let setup = cycles(restart, Precond::None, Precision::F64, &choice("host"));
        let Err(Error::Usage(text)) = Solver::new(shift(3), &setup) else { panic!("{restart} steps") };
        assert!(text.contains(&format!("restart = {restart}")), "{text}");
    }
}

/// A basis that is longer than a buffer may be is cut into bands of rows: other partial sums, the same answer.
#[test]
fn bases_in_several_buffers() {
    crate::common::require_opencl();
    let place = Place::new();
    let a = system("convection3d:12");
    for devices in ["0", "0,0", "0,host,0"] {
        let args = format!(
            "solve --generate convection3d:12 --method gmres --restart 25 --devices {devices} --tune off --json -o x.mtx"
        );
        let whole = place.run(&args).ends(0).json();
        let mut command = place.command(&args);
        command.env("DECLIVE_MAX_BUFFER", "60000"); // a vector has 13824 bytes
        let cut = Run::of(command, "").ends(0).json();
        let [before, after] = [&whole, &cut].map(|report| report["iterations"].as_u64().unwrap());
        assert!(before.abs_diff(after) <= 1, "{devices}: {before}, {after}");
        assert!(relative_residual(&a, &vec![1.0; 1728], &place.vectors("x.mtx")[0]) <= 1.01e-8, "{devices}");
    }
}

#[test]
fn the_command_solves_and_reports() {
    let place = Place::new();
    let a = system("convection3d:10");
    let b = gallery::random_vector(1000, 4);
    let args = "solve --generate convection3d:10 --rhs random:4 --method gmres --restart 7 --tune off -o x.mtx";
    for devices in ["host", "0", "0,0"] {
        let report = place.run(&format!("{args} --devices {devices} --json")).ends(0).json();
        assert_eq!((&report["options"]["method"], &report["options"]["restart"]), (&"gmres".into(), &7.into()));
        let (iterations, restarts) = (report["iterations"].as_u64().unwrap(), report["restarts"].as_u64().unwrap());
        assert_eq!(restarts, (iterations - 1) / 7, "{report}");
        assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-8);
        let text = place.run(&format!("{args} --devices {devices} --report r.html")).ok();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("method gmres, in cycles of 7, preconditioner jacobi"), "{words}");
        assert!(place.read("r.html").contains("--restart"));
    }
    let cg = place.run("solve --generate poisson2d:5 --devices host --method cg").ok();
    assert!(!cg.contains("in cycles"), "{cg}");
    place.run(&format!("{args} --restart 0")).misused(&["--restart"]);
}

/// The others go on from the end of a cycle; so does a solve from its checkpoint, wherever that was written.
#[test]
fn goes_on_after_a_failure_and_from_a_checkpoint() {
    crate::common::require_opencl();
    let place = Place::new();
    let a = system("convection3d:14");
    let args = "solve --generate convection3d:14 --method gmres --restart 9 --tune off --json -o x.mtx";
    let is_solved = || relative_residual(&a, &vec![1.0; a.n_rows()], &place.vectors("x.mtx")[0]) <= 1.01e-8;
    let several = format!("{args} --devices 0,1,2 --on-failure continue --checkpoint-every 0");
    let run = Run::in_time(on_three_devices(place.command(&several), "1:launch:500")).ends(0);
    let from = run.err.split_once("from iteration ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(from.is_some_and(|from| from > 0 && from % 9 == 0), "{}", run.err);
    assert!(is_solved());

    for (from, to) in [("0,0", "host"), ("host", "0,0,0")] {
        place.run(&format!("{args} --devices {from} --max-iters 20 --checkpoint x.ckpt")).ends(1);
        let report = place.run(&format!("{args} --devices {to} --resume x.ckpt")).ends(0).json();
        assert!(report["resumed_iterations"] == 20 && is_solved(), "{report}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The residual of step k is the least in the space of r, A r, …, which a plain loop finds by orthogonal columns of A K.
    #[test]
    fn residuals_are_the_least(
        n in 2usize..12,
        entries in prop::collection::vec(-1.0..1.0f64, 144),
        case in 0usize..7,
    ) {
        let a = general(n, (0..n).flat_map(|i| (0..n).map(move |j| (i, j)))
            .map(|(i, j)| (i, j, entries[12 * i + j] + if i == j { 1.5 } else { 0.0 })));
        let b = gallery::random_vector(n, 5);
        let o = solve(&a, &b, &cycles(20, Precond::None, Precision::F64, &choices()[case]), 1e-9);
        prop_assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-9, "{}", o.reason);
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let (mut rest, mut q, mut next) = (b.clone(), Vec::<Vec<f64>>::new(), b.clone());
        for k in 1..=o.iterations.min(n as u64) as usize {
            next = a.mul_vec(&next);
            for _ in 0..2 {
                for v in &q {
                    let h = dot(v, &next);
                    next.iter_mut().zip(v).for_each(|(w, v)| *w -= h * v);
                }
            }
            let norm = dot(&next, &next).sqrt();
            next.iter_mut().for_each(|w| *w /= norm);
            let h = dot(&next, &rest);
            rest.iter_mut().zip(&next).for_each(|(r, v)| *r -= h * v);
            q.push(next.clone());
            let expected = (dot(&rest, &rest) / dot(&b, &b)).sqrt();
            prop_assert!((o.history[k] - expected).abs() <= 1e-6 * expected + 1e-9, "{}: {:?}, {}", k, o.history, expected);
        }
    }
}
