//! Iterates on the way, files of them, and solves that go on from these.

use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use crate::common::process::{Place, Run, array, interrupt, on_three_devices, started};
use crate::common::{choices, relative_residual, setup, system};
use declive::solve::{Checkpoint, Checkpoints, Method, Precision, Precond, Progress};
use declive::{Control, Solver, Stop};

const SYSTEM: &str = "jumps:9";
const TOLERANCE: f64 = 1e-9;

fn solve(place: &Place, args: &str) -> Run {
    let args = format!("solve --generate {SYSTEM} --rtol {TOLERANCE:e} --tune off {args}");
    Run::in_time(on_three_devices(place.command(&args), ""))
}

fn is_solved(place: &Place) -> bool {
    let (a, x) = (system(SYSTEM), place.vectors("x.mtx").remove(0));
    relative_residual(&a, &vec![1.0; a.n_rows()], &x) <= 1.01 * TOLERANCE
}

/// What is handed out after k iterations is x after k iterations, to the last bit, and nobody notices.
#[test]
fn iterates_on_the_way_are_those_of_their_iteration() {
    let a = system(SYSTEM);
    let b: Vec<f64> = (0..a.n_rows()).map(|i| ((i * 31) % 17) as f64 - 7.0).collect();
    for devices in choices() {
        for (method, precond, precision) in [
            (Method::Cg, Precond::None, Precision::F64),
            (Method::Cg, Precond::Jacobi, Precision::F64),
            (Method::CgClassic, Precond::Jacobi, Precision::F64),
            (Method::Cg, Precond::Jacobi, Precision::F32),
            (Method::Cg, Precond::None, Precision::Mixed),
        ] {
            let setup = setup(method, precond, precision, &devices);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let stop = Stop::default().with_rtol(1e-5);
            let taken = Mutex::new(Vec::new());
            let take = |at: &Checkpoint<'_>| {
                taken.lock().unwrap().push((at.iterations, at.rel_residual_2, at.x.to_vec()));
            };
            let control = Control::default().with_checkpoint(Checkpoints::new(Duration::ZERO, &take));
            let with = solver.solve(&b, None, &stop, control).unwrap();
            let without = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert!(with.reason.converged(), "{setup:?}");
            assert_eq!((&with.history, with.iterations), (&without.history, without.iterations), "{setup:?}");
            assert_eq!(with.x, without.x, "{setup:?}");

            let taken = taken.into_inner().unwrap();
            assert!(taken.iter().any(|(k, ..)| *k > 0), "{setup:?}: {}", taken.len());
            assert!(taken.is_sorted_by_key(|(k, ..)| *k));
            for (k, rel_residual_2, x) in taken.iter().step_by(taken.len().div_ceil(4)) {
                // in mixed precision it may be the true one, from which a run begins
                let by_recurrence = with.history[*k as usize];
                let difference = (rel_residual_2 - by_recurrence).abs();
                let most = if precision == Precision::Mixed { 1e-3 * by_recurrence } else { 0.0 };
                assert!(difference <= most, "{setup:?}, {k}: {difference}");
                let true_one = relative_residual(&a, &b, x);
                assert!((true_one - rel_residual_2).abs() <= 1e-3 * true_one + 1e-6, "{setup:?}, {k}: {true_one}");
                if *k > 0 {
                    let stop = stop.clone().with_max_iters(*k);
                    let ended = solver.solve(&b, None, &stop, Control::default()).unwrap();
                    assert_eq!((ended.iterations, &ended.x), (*k, x), "{setup:?}, {k}");
                }
            }
        }
    }
}

/// Whoever wants to see each iteration gets the residual and the iterate of each but the last, in order, and nothing else changes.
#[test]
fn each_iteration_is_seen() {
    let a = system(SYSTEM);
    let b: Vec<f64> = (0..a.n_rows()).map(|i| ((i * 31) % 17) as f64 - 7.0).collect();
    let (cg, cycles) = (Method::Cg, Method::Gmres);
    let methods = [(cg, Precond::Jacobi), (cg, Precond::Amg), (Method::CgClassic, Precond::None)];
    let others = [(Method::Minres, Precond::Jacobi), (Method::Bicgstab, Precond::Jacobi), (cycles, Precond::Jacobi)];
    for devices in choices() {
        for (method, precond) in methods.into_iter().chain(others) {
            let setup = setup(method, precond, Precision::F64, &devices).with_restart(7);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let stop = Stop::default().with_rtol(1e-5);
            let (iterates, residuals) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            let take = |at: &Checkpoint<'_>| {
                iterates.lock().unwrap().push((at.iterations, relative_residual(&a, &b, at.x)));
            };
            let progress = |at: &Progress| residuals.lock().unwrap().push((at.iterations, at.rel_residual_2));
            let control = Control::default()
                .with_each_iteration(true)
                .with_progress(&progress)
                .with_checkpoint(Checkpoints::new(Duration::MAX, &take));
            let with = solver.solve(&b, None, &stop, control).unwrap();
            let without = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert!(with.reason.converged(), "{setup:?}");
            assert_eq!((&with.history, &with.x), (&without.history, &without.x), "{setup:?}");

            let last = with.iterations;
            let expected = (1..last).map(|k| (k, with.history[k as usize]));
            assert_eq!(residuals.into_inner().unwrap(), expected.collect::<Vec<_>>(), "{setup:?}");
            let iterates = iterates.into_inner().unwrap();
            let every = if method == cycles { 7 } else { 1 };
            let expected = (1..last).filter(|k| k % every == 0);
            assert!(iterates.iter().map(|(k, _)| *k).eq(expected), "{setup:?}: {iterates:?}");
            for (k, found) in iterates {
                assert!((found / with.history[k as usize] - 1.0).abs() < 1e-6, "{setup:?}, {k}: {found:e}");
            }
        }
    }
}

/// Files with the residuals of each iteration are the same with checkpoints and without.
#[test]
fn checkpoints_do_not_disturb() {
    let place = Place::new();
    for shape in ["cpu", "gpu"] {
        for devices in ["host", "0", "0,1", "0,host,2"] {
            let run = |more: &str| {
                let args = format!(
                    "solve --generate poisson2d:30 --tune off --devices {devices} --history h.csv -o x.mtx {more}"
                );
                let mut command = on_three_devices(place.command(&args), "");
                command.env("DECLIVE_SHAPE", shape).env("DECLIVE_PROGRAM_CACHE", "off");
                Run::in_time(command).ends(0);
                let x = place.vectors("x.mtx");
                (place.read("h.csv"), x)
            };
            let without = run("");
            let with = run("--checkpoint x.ckpt --checkpoint-every 0");
            assert!(with == without, "{shape}, {devices}");
        }
    }
}

#[test]
fn others_go_on_from_a_checkpoint() {
    let place = Place::new();
    let whole = |options: &str| {
        solve(&place, &format!("--devices host {options} --json")).json()["iterations"].as_u64().unwrap()
    };
    let (scaled, plain) = (whole(""), whole("--precond none"));
    for from in ["host", "0,1", "0,host,2"] {
        let run = solve(&place, &format!("--devices {from} --max-iters 20 --checkpoint x.ckpt --json"));
        assert_eq!(run.json()["checkpoint"], "x.ckpt");
        run.ends(1);
        let to = ["host", "0", "0,1,2,host", "1 --method cg-classic", "1 --precond none", "0,1 --precision mixed"];
        for to in to {
            let run = solve(&place, &format!("--resume x.ckpt --devices {to} --json -o x.mtx --history h.csv"));
            let report = run.json();
            run.ends(0);
            assert!(is_solved(&place), "{from}, {to}");
            let iterations = report["iterations"].as_u64().unwrap();
            let whole = if to.contains("--precond none") { plain } else { scaled };
            assert!((21..=20 + 2 * whole).contains(&iterations), "{from}, {to}: {iterations}, {whole}");
            assert_eq!((&report["resumed_iterations"], &report["resumed"]), (&20.into(), &"x.ckpt".into()));
            let history = place.read("h.csv");
            assert!(history.lines().nth(1).unwrap().starts_with("1,20,"), "{history}");
            assert!(history.lines().last().unwrap().starts_with(&format!("1,{iterations},")), "{history}");
        }
    }
    // the limit is on all iterations together
    let report = solve(&place, "--resume x.ckpt --devices host --max-iters 25 --json").ends(1).json();
    assert_eq!((report["iterations"].as_u64(), report["reason"].as_str()), (Some(25), Some("MaxIters")));
    let text = solve(&place, "--resume x.ckpt --devices host").ok();
    assert!(text.contains("initial guess   x.ckpt, after 20 iterations"), "{text}");
}

#[test]
fn a_finished_solve_has_converged_at_once() {
    let place = Place::new();
    let report = solve(&place, "--devices 0,1 --checkpoint x.ckpt --json").ends(0).json();
    for devices in ["host", "0,1"] {
        // the new checkpoint takes the place of the old one
        let again = solve(&place, &format!("--devices {devices} --resume x.ckpt --checkpoint x.ckpt --json -o x.mtx"));
        let again = again.ends(0).json();
        assert_eq!(
            (&again["iterations"], &again["resumed_iterations"]),
            (&report["iterations"], &report["iterations"])
        );
        assert!(is_solved(&place) && again["microseconds_per_iteration"].is_null());
    }
    assert_eq!(place.names(), ["x.ckpt", "x.mtx"]);
}

#[test]
fn a_killed_solve_goes_on() {
    let place = Place::new();
    let args = format!(
        "solve --generate poisson2d:120 --rtol {TOLERANCE:e} --tune off --devices host,host --checkpoint x.ckpt \
         --checkpoint-every 0 -q"
    );
    let mut child = place.command(&args).stdout(Stdio::null()).spawn().unwrap();
    while !place.path("x.ckpt").exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended without a checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap(); // which no process can do anything about
    assert_eq!(child.wait().unwrap().code(), None);
    let args =
        format!("solve --generate poisson2d:120 --rtol {TOLERANCE:e} --devices host --resume x.ckpt --json -o x.mtx");
    let run = Run::in_time(place.command(&args));
    let report = run.json();
    run.ends(0);
    assert!(report["resumed_iterations"].as_u64() < report["iterations"].as_u64());
    let a = system("poisson2d:120");
    assert!(relative_residual(&a, &vec![1.0; a.n_rows()], &place.vectors("x.mtx")[0]) <= 1.01 * TOLERANCE);
}

#[test]
fn an_interrupted_solve_leaves_a_last_checkpoint() {
    let place = Place::new();
    let command = place.command(
        "solve --generate poisson2d:150 --rtol 1e-9 --devices host --tune off --checkpoint x.ckpt --checkpoint-every 1h -v",
    );
    let (mut child, _err) = started(command, "solving");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let resumed = "solve --generate poisson2d:150 --rtol 1e-9 --devices host --resume x.ckpt -o x.mtx -q";
    Run::in_time(place.command(resumed)).ends(0);
    let a = system("poisson2d:150");
    assert!(relative_residual(&a, &vec![1.0; a.n_rows()], &place.vectors("x.mtx")[0]) <= 1.01e-9);
}

#[test]
fn the_last_checkpoint_before_a_failure() {
    let place = Place::new();
    let args = format!(
        "solve --generate {SYSTEM} --rtol {TOLERANCE:e} --tune off --devices 0,1 --checkpoint x.ckpt --checkpoint-every 0"
    );
    let failed = Run::in_time(on_three_devices(place.command(&args), "1:lost:400"));
    failed.fails(3, &["error: [1] ", " in iteration "]);
    let report = solve(&place, "--devices 0,2 --resume x.ckpt --json -o x.mtx").ends(0).json();
    assert!(is_solved(&place) && report["resumed_iterations"].as_u64() > Some(0), "{report}");
}

#[test]
fn columns_that_are_done_stay_done() {
    let place = Place::new();
    let a = system(SYSTEM);
    let b: Vec<Vec<f64>> = (1..=3).map(|k| (0..a.n_rows()).map(|i| ((i * k) % 7) as f64 - 2.0).collect()).collect();
    place.write("b.mtx", array(&b));
    let first = solve(&place, "-b b.mtx --devices 0,1 --json").ends(0).json();
    let of_first = first["solves"][0]["iterations"].as_u64().unwrap();
    // in the second column
    let args = format!(
        "solve --generate {SYSTEM} --rtol {TOLERANCE:e} --tune off -b b.mtx --devices 0,1 --checkpoint x.ckpt \
         --checkpoint-every 0"
    );
    let launches = 3 * of_first * 3 / 2;
    Run::in_time(on_three_devices(place.command(&args), &format!("1:launch:{launches}"))).fails(3, &["[1] "]);
    let report = solve(&place, "-b b.mtx --devices 0,2 --resume x.ckpt --json -o x.mtx").ends(0).json();
    let resumed: Vec<_> = (0..3).map(|k| report["solves"][k]["resumed_iterations"].as_u64().unwrap()).collect();
    assert_eq!((resumed[0], &report["solves"][0]["iterations"]), (of_first, &of_first.into()), "{report}");
    assert!(resumed[1] > 0 && report["solves"][1]["iterations"].as_u64() > Some(resumed[1]), "{resumed:?}");
    assert_eq!(resumed[2], 0);
    for (x, b) in place.vectors("x.mtx").iter().zip(&b) {
        assert!(relative_residual(&a, b, x) <= 1.01 * TOLERANCE);
    }
}

#[test]
fn what_no_solve_can_go_on_from() {
    let place = Place::new();
    solve(&place, "--devices host --max-iters 3 --checkpoint x.ckpt").ends(1);
    let file = std::fs::read(place.path("x.ckpt")).unwrap();
    let refused = |name: &str, reasons: &[&str]| {
        let reasons: Vec<&str> = [&[name], reasons].concat();
        solve(&place, &format!("--devices host --resume {name}")).fails(2, &reasons);
    };
    refused("no.ckpt", &[]);
    refused(".", &[]);
    place.write("empty", "");
    refused("empty", &["no checkpoint"]);
    place.write("x.mtx", array(&[vec![1.0; 729]]));
    refused("x.mtx", &["no checkpoint"]);
    place.write("short", &file[..file.len() - 1]);
    refused("short", &["truncated"]);
    let mut damaged = file.clone();
    damaged[500] ^= 0x10;
    place.write("damaged", &damaged);
    refused("damaged", &["damaged", "checksum"]);
    let mut later = file.clone();
    later[12] = 9;
    place.write("later", &later);
    refused("later", &["version 9"]);
    // of other systems
    let other = |args: &str, reasons: &[&str]| {
        let args = format!("solve --devices host --resume x.ckpt {args}");
        Run::in_time(place.command(&args)).fails(2, &[&["x.ckpt", "another system"], reasons].concat());
    };
    other("--generate jumps:8", &["729 unknowns", "512"]);
    other("--generate poisson3d:9", &["the matrix"]);
    other(&format!("--generate {SYSTEM} --rhs random:1"), &["right-hand side"]);
}

#[test]
fn where_no_checkpoint_can_be_written() {
    let place = Place::new();
    solve(&place, "--devices host --checkpoint no/x.ckpt").fails(2, &["no/x.ckpt"]);
    solve(&place, "--devices host --checkpoint -").fails(2, &["--checkpoint needs a file"]);
    if std::path::Path::new("/dev/full").exists() {
        // on the way that is a warning; the last one would be a result
        let run = solve(&place, "--devices host --checkpoint /dev/full --checkpoint-every 0 -o x.mtx").ends(3);
        assert!(run.err.starts_with("warning: no checkpoint: /dev/full") && is_solved(&place), "{}", run.err);
        assert!(run.err.lines().last().unwrap().starts_with("error: /dev/full"), "{}", run.err);
    }
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    solve(&place, "--checkpoint-every 5s").fails(2, &["--checkpoint-every", "--checkpoint"]);
    solve(&place, "--checkpoint x --checkpoint-every soon").misused(&["soon", "1.5m"]);
    solve(&place, "--resume x.ckpt -x x0.mtx").misused(&["--resume"]);
    solve(&place, "--checkpoint x -o ./x").fails(2, &["-o and --checkpoint both name"]);
    place.write("x.ckpt", "");
    solve(&place, "--resume x.ckpt -o ./x.ckpt").fails(2, &["-o would overwrite x.ckpt", "--resume"]);
    solve(&place, "--on-failure panic").misused(&["panic", "stop, continue"]);
}
