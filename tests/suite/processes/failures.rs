//! Devices of processes that fail, while all go on: the others of the process take over its rows, or its threads.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{errors, mpirun};
use crate::common::process::{Place, Run, on_three_devices};
use crate::common::{relative_residual, system};

const SYSTEM: &str = "jumps:8,contrast=1e2";
const TOLERANCE: f64 = 1e-9;

/// A process of a job: its devices, and what is to fail.
type Process<'a> = (&'a str, &'a str);

fn command(place: &Place, processes: &[Process<'_>], more: &str) -> Command {
    let of_one = |(devices, fault): &Process<'_>| {
        format!(
            "-n 1 env DECLIVE_FAULT={fault} PROGRAM solve --generate {SYSTEM} --rtol {TOLERANCE:e} --tune off --devices {devices} {more}"
        )
    };
    let all: Vec<String> = processes.iter().map(of_one).collect();
    on_three_devices(mpirun(place, &all.join(" : ")), "")
}

/// The report of a job that goes on, and what was warned of. The solution that was written is one.
fn goes_on(place: &Place, processes: &[Process<'_>], more: &str) -> (Value, Vec<String>) {
    let more = format!("--on-failure continue --json -o x.mtx --history h.csv {more}");
    let run = Run::in_time(command(place, processes, &more)).ends(0);
    let report = run.json();
    let (a, x) = (system(SYSTEM), place.vectors("x.mtx").remove(0));
    let found = relative_residual(&a, &vec![1.0; a.n_rows()], &x);
    assert!(found <= 1.01 * TOLERANCE, "{processes:?} {more}: {found:e}");
    let history = place.read("h.csv").lines().count() as u64;
    assert_eq!(history, iterations(&report) + 2, "{processes:?} {more}");
    (report, run.err.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect())
}

fn iterations(report: &Value) -> u64 {
    report["iterations"].as_u64().unwrap()
}

/// Who failed: the process and the device of each.
fn failed(report: &Value) -> Vec<[u64; 2]> {
    let of = |one: &Value| ["process", "index"].map(|key| one[key].as_u64().unwrap());
    report["failures"].as_array().unwrap().iter().map(of).collect()
}

/// The devices that a process has at the end.
fn devices(report: &Value, process: usize) -> Vec<String> {
    let devices = report["processes"][process]["devices"].as_array().unwrap();
    devices.iter().map(|device| device.as_str().unwrap().to_owned()).collect()
}

/// Each call fails from its first use on, its twentieth and so on, in a process that has another device or none.
#[test]
fn each_call_may_fail() {
    let place = Place::new();
    for (k, call) in
        ["open", "build", "allocate", "fill", "copy", "launch", "write", "read", "wait", "lost"].into_iter().enumerate()
    {
        let mut failures = 0;
        for (l, count) in [1, 20, 400, 8000].into_iter().enumerate() {
            let (own, is_alone) = if (k + l) % 2 == 0 { ("1", true) } else { ("1,2", false) };
            let what = format!("{own}, 1:{call}:{count}");
            let processes = [("0", ""), (own, &*format!("1:{call}:{count}"))];
            let (report, warnings) = goes_on(&place, &processes, "--checkpoint-every 0");
            if failed(&report).is_empty() {
                assert!(warnings.is_empty(), "{what}: {warnings:?}");
                break;
            }
            failures += 1;
            assert_eq!(failed(&report), [[1, 1]], "{what}");
            assert!(warnings.len() == 1 && warnings[0].starts_with("warning: process 1: [1] "), "{what}: {warnings:?}");
            let failure = &report["failures"][0];
            assert!(warnings[0].contains(failure["error"].as_str().unwrap()), "{what}: {failure}");
            assert!(failure["lost_iterations"].as_u64() <= failure["iterations"].as_u64().or(Some(0)), "{what}");
            let left = devices(&report, 1);
            assert!(left.len() == 1 && left[0].starts_with("host, ") == is_alone, "{what}: {left:?}");
            assert!(!devices(&report, 0)[0].starts_with("host, "), "{what}");
        }
        assert!((1..4).contains(&failures), "{call}: {failures}");
    }
}

#[test]
fn several_fail_at_once_and_one_after_the_other() {
    let place = Place::new();
    // at the same time, as far as the first of them lets them, then another one of the same process
    let processes = [("0,2", "0:launch:70,2:launch:90"), ("1", "1:launch:70"), ("host", "")];
    let (report, warnings) = goes_on(&place, &processes, "--checkpoint-every 0");
    let mut all = failed(&report);
    all.sort_unstable();
    assert_eq!(all, [[0, 0], [0, 2], [1, 1]], "{warnings:?}");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!((0..3).all(|process| devices(&report, process)[0].starts_with("host, ")), "{report}");
    // while they are prepared, and no snapshot is taken afterwards
    let (report, _) = goes_on(&place, &[("0", "0:open:1"), ("1,2", "1:build:1,2:launch:60")], "");
    assert_eq!(failed(&report), [[0, 0], [1, 1], [1, 2]]);
    let last = &report["failures"][2];
    assert!(last["iterations"].as_u64() > Some(0) && last["lost_iterations"] == last["iterations"], "{last}");
    let story = Run::in_time(command(&place, &[("0", ""), ("1", "1:launch:60")], "--on-failure continue")).ok();
    assert!(story.contains("of process 1, after "), "{story}");
}

/// Most of what has its own way through the ranks; multigrid is made by devices, and by hosts when one is gone.
#[test]
fn methods_go_on_in_the_same_direction() {
    let place = Place::new();
    for (more, near, launch) in [
        ("--method cg", true, 120),
        ("--method cg --precond none --precision mixed", true, 120),
        ("--method cg-classic", true, 120),
        ("--method cg-pipelined", false, 120),
        ("--method minres", false, 120),
        ("--method gmres", false, 120),
        ("--method idr --precond ilu0", false, 30),
        ("--method cg --precond fsai", true, 60),
        ("--method cg --precond amg", false, 30),
    ] {
        let more = format!("{more} --checkpoint-every 0 --checkpoint c.ckpt");
        let (still, none) = goes_on(&place, &[("0", ""), ("1", "")], &more);
        assert!(failed(&still).is_empty() && none.is_empty(), "{more}: {none:?}");
        let (report, _) = goes_on(&place, &[("0", ""), ("1", &format!("1:launch:{launch}"))], &more);
        assert_eq!(failed(&report), [[1, 1]], "{more}");
        let [still, found] = [&still, &report].map(iterations);
        assert!(!near || found.abs_diff(still) <= 2 + still / 10, "{more}: {found} iterations in place of {still}");
    }
}

/// If one process is not to go on, none does; nor if one is killed, or something else fails than a device.
#[test]
fn what_ends_all() {
    let place = Place::new();
    let solve = format!("PROGRAM solve --generate {SYSTEM} --rtol 1e-13 --tune off");
    let args = format!(
        "-n 1 {solve} --devices 0 --on-failure continue : -n 1 env DECLIVE_FAULT=0:launch:30 {solve} --devices 0"
    );
    let run = Run::in_time(mpirun(&place, &args));
    assert!(run.code.is_some_and(|code| code != 0) && run.out.is_empty(), "{:?} {}", run.code, run.err);
    assert!(errors(&run).iter().any(|line| line.contains("process 1 failed")), "{}", run.err);

    let killed = "if [ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 ]; then (sleep 2; kill -9 $$) & fi; exec \"$@\"";
    let mut command = mpirun(&place, "-n 3 sh -c");
    command.arg(killed).arg("sh").arg(env!("CARGO_BIN_EXE_declive"));
    let solve = "solve --generate poisson3d:60 --rtol 1e-15 --max-iters 1000000 --devices 0 --on-failure continue";
    let start = Instant::now();
    let run = Run::in_time({
        command.args(solve.split(' ')).env("DECLIVE_FAULT", "0:launch:100");
        command
    });
    assert!(run.code.is_some_and(|code| code != 0) && run.out.is_empty(), "{:?} {}", run.code, run.err);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}
