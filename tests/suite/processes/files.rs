//! Files of several processes: checkpoints, vectors, and places that are full.

use std::path::Path;
use std::time::Instant;

use super::{errors, mpirun, run};
use crate::common::process::{Place, Run, array};
use crate::common::{relative_residual, system};
use declive::matrix::gallery::random_vector;
use declive::npz::write_vectors;

const SYSTEM: &str = "solve --generate jumps:11 --method cg --rtol 1e-9 --devices host --tune off";

fn is_solved(place: &Place, spec: &str, b: &[f64]) -> bool {
    relative_residual(&system(spec), b, &place.vectors("x.mtx")[0]) <= 1.01e-9
}

/// What some processes have written, any other number of them goes on from.
#[test]
fn checkpoints_of_any_number_of_processes() {
    let place = Place::new();
    let ones = vec![1.0; 11 * 11 * 11];
    for (before, after) in [(3, 2), (1, 3), (4, 1)] {
        let by = |count: usize, args: &str| {
            let args = format!("{SYSTEM} {args}");
            if count == 1 { place.run(&args) } else { run(&place, count, &args) }
        };
        let all = by(after, "--json -q").ends(0).json()["iterations"].as_u64().unwrap();
        by(before, "--max-iters 20 --checkpoint x.ckpt --checkpoint-every 0").ends(1);
        let report = by(after, "--resume x.ckpt --checkpoint x.ckpt -o x.mtx --json").ends(0).json();
        assert_eq!(report["resumed_iterations"], 20, "{report}");
        let iterations = report["iterations"].as_u64().unwrap();
        assert!(iterations > 20 && iterations < 2 * all, "{iterations} in place of {all}");
        assert!(is_solved(&place, "jumps:11", &ones), "{before} to {after}");
        // from the end there is nothing left to do
        let report = by(before, "--resume x.ckpt --json").ends(0).json();
        assert_eq!(report["resumed_iterations"], report["iterations"], "{report}");
    }
    // of another system; the same text once
    let other = run(&place, 2, "solve --generate jumps:11 --rhs random:1 --devices host --resume x.ckpt");
    assert_eq!((other.code, errors(&other).len()), (Some(2), 1), "{}", other.err);
    assert!(errors(&other)[0].contains("right-hand side"), "{}", other.err);
}

#[test]
fn columns_that_are_done_stay_done() {
    let place = Place::new();
    let b: Vec<Vec<f64>> = (1..=2).map(|seed| random_vector(1331, seed)).collect();
    place.write("b.mtx", array(&b));
    run(&place, 2, &format!("{SYSTEM} -b b.mtx --checkpoint x.ckpt --checkpoint-every 0")).ends(0);
    let report = run(&place, 3, &format!("{SYSTEM} -b b.mtx --resume x.ckpt -o x.mtx --json")).ends(0).json();
    for (k, b) in b.iter().enumerate() {
        assert_eq!(report["solves"][k]["resumed_iterations"], report["solves"][k]["iterations"], "{report}");
        assert!(relative_residual(&system("jumps:11"), b, &place.vectors("x.mtx")[k]) <= 1.01e-9);
    }
}

/// A signal to one process, not the first: all end, and the last iterate is there.
#[test]
fn an_interrupted_solve_leaves_a_last_checkpoint() {
    let place = Place::new();
    let solve = "solve --generate poisson2d:300 --method cg --rtol 1e-9 --devices host --tune off";
    let of_first = format!("-n 1 PROGRAM {solve} --checkpoint x.ckpt --checkpoint-every 0");
    // once it iterates
    let script = "(while [ ! -e x.ckpt ]; do sleep 0.1; done; kill -INT $$) & exec \"$@\"";
    let mut command = mpirun(&place, &of_first);
    command.args([":", "-n", "1", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_declive")]);
    command.args(format!("{solve} --checkpoint x.ckpt --checkpoint-every 0 --time-limit 60").split(' '));
    let start = Instant::now();
    let interrupted = Run::in_time(command);
    assert!(start.elapsed().as_secs() < 50, "{}", interrupted.err);
    let args = format!("{solve} --resume x.ckpt -o x.mtx --json");
    let report = run(&place, 3, &args).ends(0).json();
    assert!(is_solved(&place, "poisson2d:300", &vec![1.0; 90_000]), "{report}");
    if interrupted.code != Some(0) {
        assert!(interrupted.out.contains("Not converged"), "{} {}", interrupted.out, interrupted.err);
        assert!(report["resumed_iterations"].as_u64() < report["iterations"].as_u64(), "{report}");
    }
}

/// Each process reads its rows of NumPy's arrays, and writes one such.
#[test]
fn vectors_of_numpy() {
    let place = Place::new();
    let b: Vec<Vec<f64>> = (1..=2).map(|seed| random_vector(1331, seed)).collect();
    let slices: Vec<&[f64]> = b.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    write_vectors(&mut bytes, &slices).unwrap();
    place.write("b.npy", &bytes);
    place.write("b.mtx", array(&b));
    let alone = |output: &str| {
        run(&place, 3, &format!("{SYSTEM} -b {output} -x {output} -o x.npy -q")).ends(0);
        std::fs::read(place.path("x.npy")).unwrap()
    };
    assert!(alone("b.npy") == alone("b.mtx"));
    let x = declive::npz::read_vectors(&place.path("x.npy")).unwrap().into_real().unwrap();
    for (x, b) in x.iter().zip(&b) {
        assert!(relative_residual(&system("jumps:11"), b, x) <= 1.01e-9);
    }
    run(&place, 3, &format!("{SYSTEM} -b b.npy -o x.mtx -q")).ends(0);
    assert!(is_solved(&place, "jumps:11", &b[0]));
    // what is no right-hand side of it, said once
    let mut short = Vec::new();
    write_vectors(&mut short, &[&b[0][..1330]]).unwrap();
    place.write("short.npy", &short);
    let mut infinite = b[0].clone();
    infinite[1300] = f64::INFINITY;
    let mut bytes = Vec::new();
    write_vectors(&mut bytes, &[&infinite]).unwrap();
    place.write("infinite.npy", &bytes);
    place.write("cut.npy", &bytes[..5000]);
    for (name, said) in [("short.npy", "1330 rows"), ("infinite.npy", "infinite"), ("cut.npy", "cut.npy")] {
        let wrong = run(&place, 3, &format!("{SYSTEM} -b {name}"));
        assert_eq!((wrong.code, errors(&wrong).len()), (Some(2), 1), "{}", wrong.err);
        assert!(errors(&wrong)[0].contains(said), "{}", wrong.err);
    }
}

#[test]
fn a_full_disk() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let place = Place::new();
    for option in ["-o", "--history", "--checkpoint"] {
        let start = Instant::now();
        let full = run(&place, 3, &format!("{SYSTEM} {option} /dev/full --json"));
        assert_eq!(full.code, Some(3), "{option}: {}", full.err);
        let said: Vec<_> = errors(&full).into_iter().filter(|line| line.starts_with("error: /dev/full")).collect();
        assert_eq!(said.len(), 1, "{option}: {}", full.err);
        assert!(full.json()["converged"] == true, "{option}: what was found is told");
        assert!(start.elapsed().as_secs() < 30, "{option}");
    }
    // on the way that is a warning
    let place = Place::new();
    let full = run(&place, 2, &format!("{SYSTEM} --checkpoint /dev/full --checkpoint-every 0 -o x.mtx"));
    assert!(full.code == Some(3) && full.err.contains("no checkpoint: /dev/full"), "{:?} {}", full.code, full.err);
    assert!(is_solved(&place, "jumps:11", &vec![1.0; 1331]));
    // the report itself
    let mut command = mpirun(&place, "-n 2 sh -c");
    command.args(["exec \"$@\" > /dev/full", "sh", env!("CARGO_BIN_EXE_declive")]);
    command.args(format!("{SYSTEM} --json").split(' '));
    let full = Run::in_time(command);
    assert!(full.code == Some(3) && full.err.contains("error: standard output"), "{:?} {}", full.code, full.err);
}
