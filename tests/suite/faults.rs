//! Devices that fail: what the command says then, that it ends, and that the other devices go on.
//!
//! PoCL shows the processor as three devices; `DECLIVE_FAULT` lets them fail.

use crate::common::process::{Place, Run, on_three_devices};
use crate::common::{relative_residual, system};
use serde_json::Value;

const SYSTEM: &str = "poisson2d:14x13";
const TOLERANCE: f64 = 1e-9;

/// The calls that fail, and how errors of each say what was being done.
const CALLS: [(&str, &str); 10] = [
    ("open", "opening the device"),
    ("build", "building the kernels failed"),
    ("allocate:-36", "allocating "),
    ("fill:-36", "filling "),
    ("copy", "copying "),
    ("launch", "launching "),
    ("write:-36", " to the device"),
    ("read", " to the host"),
    ("wait", "waiting for "),
    ("lost", ": "),
];

/// A fault of device 1: `call`, perhaps with a code, from its `count`-th use on.
fn fault(call: &str, count: u64) -> String {
    match call.split_once(':') {
        Some((call, code)) => format!("1:{call}:{count}:{code}"),
        None => format!("1:{call}:{count}"),
    }
}

fn solve(place: &Place, devices: &str, fault: &str, more: &str) -> Run {
    let args = format!("solve --generate {SYSTEM} --rtol {TOLERANCE:e} --tune off --devices {devices} {more}");
    Run::in_time(on_three_devices(place.command(&args), fault))
}

/// Whether the solution that was written is one.
fn is_solved(place: &Place) -> bool {
    let (a, x) = (system(SYSTEM), place.vectors("x.mtx").remove(0));
    relative_residual(&a, &vec![1.0; a.n_rows()], &x) <= 1.01 * TOLERANCE
}

/// Lets each call fail from its first use on, its fifth and so on, until it is not used as often. At each of these stages
/// the solve ends with the error of that device.
fn each_failure_ends(devices: &str) {
    let place = Place::new();
    for (call, words) in CALLS {
        let mut failures = 0;
        for count in [1, 5, 25, 125, 625, 3125, 15_625] {
            let fault = fault(call, count);
            let run = solve(&place, devices, &fault, "");
            if run.code == Some(0) {
                break;
            }
            failures += 1;
            assert!(run.err.starts_with("error: [1] "), "{devices}, {fault}: {}", run.err);
            run.fails(3, &[words]);
        }
        assert!((1..7).contains(&failures), "{devices}, {call}: {failures}");
    }
}

#[test]
fn failures_of_a_single_device() {
    each_failure_ends("1");
}

#[test]
fn failures_beside_another_device() {
    each_failure_ends("0,1");
}

#[test]
fn failures_beside_the_host_and_another_device() {
    each_failure_ends("host,1,2");
}

/// Where one device fails before it has levels, the others don't wait for it.
#[test]
fn failures_before_there_are_levels() {
    let place = Place::new();
    for (call, words) in [CALLS[0], CALLS[1], CALLS[2], CALLS[6]] {
        for count in [1, 5, 25] {
            let fault = fault(call, count);
            let run = solve(&place, "0,1", &fault, "--precond amg");
            if run.code != Some(0) {
                assert!(run.err.starts_with("error: [1] "), "{fault}: {}", run.err);
                run.fails(3, &[words]);
            }
        }
    }
    assert_eq!(solve(&place, "0,1", "2:open:1", "--precond amg").code, Some(0));
}

/// The first of the errors with all of `words`, where the `call` of device 1 fails once, the first time, the second and so on.
fn stage(place: &Place, call: &str, words: &[&str], more: &str) -> String {
    let errors = (1..400).map(|count| {
        let run = solve(place, "0,1", &format!("1:{call}:{count}-{count}:-36"), more);
        run.ends(3).err
    });
    let mut errors = errors.step_by(if words.len() > 1 { 7 } else { 1 });
    errors.find(|error| words.iter().all(|word| error.contains(word))).unwrap()
}

#[test]
fn errors_say_at_which_stage() {
    let place = Place::new();
    let uploading = stage(&place, "write", &["the values of the"], "--format csr");
    assert!(uploading.contains("moving the values of the matrix to the device: clEnqueueWriteBuffer"), "{uploading}");
    let first_residual = stage(&place, "launch", &["residual_"], "");
    assert!(first_residual.contains("launching residual_") && !first_residual.contains("iteration"));
    let iterating = stage(&place, "launch", &["launching cg_step_given in iteration "], "");
    assert!(iterating.contains("clEnqueueNDRangeKernel failed: CL_INVALID_COMMAND_QUEUE"), "{iterating}");
    let classic = stage(&place, "launch", &["launching next_direction in iteration 1"], "--method cg-classic");
    assert!(classic.starts_with("error: [1] "), "{classic}");
    // while its peer waits for the sum, or for the halo
    stage(&place, "read", &["moving partial sums to the host in iteration "], "");
    stage(&place, "read", &["moving the halo's message to the host in iteration "], "");
    stage(&place, "wait", &["waiting for the halo's message in iteration "], "");
    let shared = "--exchange shared-context --method cg-classic";
    stage(&place, "copy", &["copying the halo's message in iteration "], shared);
    // when all is done
    let (all, last) =
        (0..).map(|k| (k, solve(&place, "0,1", &fault("read", 60 + k), ""))).find(|r| r.1.code == Some(0)).unwrap();
    assert!(last.err.is_empty() && all > 0);
    let end = solve(&place, "0,1", &fault("read", 59 + all), "").ends(3).err;
    assert!(end.contains("moving x to the host: clEnqueueReadBuffer failed: CL_OUT_OF_RESOURCES"), "{end}");
}

#[test]
fn a_device_without_room() {
    let run = solve(&Place::new(), "0,1", "1:allocate:20", "");
    run.fails(3, &["error: [1] ", " needs ", " bytes", "clCreateBuffer failed: CL_MEM_OBJECT_ALLOCATION_FAILURE"]);
}

/// The code by which NVIDIA's driver refuses memory is also that of a kernel that failed, and of a lost device.
#[test]
fn only_a_lack_of_memory_is_told_as_one() {
    let place = Place::new();
    // a command is refused, and the device works on
    for fault in ["1:fill:2-2:-5", "1:write:1-1:-5", "1:allocate:3-3:-5"] {
        solve(&place, "1", fault, "").fails(3, &["error: [1] ", " needs ", " bytes", "CL_OUT_OF_RESOURCES"]);
    }
    // a wait fails, or nothing works any more
    for (fault, words) in [
        ("1:wait:1-1", "waiting for what is in the queue: clFinish failed: CL_OUT_OF_RESOURCES"),
        ("1:fill:2:-5,1:wait:1", ": CL_OUT_OF_RESOURCES"),
        ("1:lost:60", " failed: CL_"),
        ("1:allocate:3:-5,1:wait:1", " failed: CL_OUT_OF_RESOURCES"),
        ("1:read:1", "to the host: clEnqueueReadBuffer failed: CL_OUT_OF_RESOURCES"),
    ] {
        let error = solve(&place, "1", fault, "").ends(3).err;
        assert!(error.contains(words) && !error.contains(" needs "), "{fault}: {error}");
    }
}

#[test]
fn unknown_codes_are_told_as_numbers() {
    solve(&Place::new(), "1", "1:launch:9:-9999", "").fails(3, &["[1] ", "code -9999"]);
}

#[test]
fn what_is_no_fault_is_wrong_usage() {
    let place = Place::new();
    solve(&place, "1", "1:lunch:3", "").fails(2, &["DECLIVE_FAULT", "1:lunch:3", "launch"]);
    // of another device
    solve(&place, "1", "0:launch:3", "").ends(0);
}

/// The same as [`each_failure_ends`], but others go on.
fn others_go_on(devices: &str, left: &[Option<u64>]) {
    let place = Place::new();
    for (call, _) in CALLS {
        let mut failures = 0;
        for count in [1, 7, 49, 343, 2401, 16_807] {
            let fault = fault(call, count);
            let run = solve(
                &place,
                devices,
                &fault,
                "--on-failure continue --checkpoint-every 0 --json -o x.mtx --history h.csv",
            );
            let report = run.json();
            let run = run.ends(0);
            assert!(is_solved(&place), "{devices}, {fault}");
            let history = place.read("h.csv").lines().count() as u64;
            assert_eq!(history, report["iterations"].as_u64().unwrap() + 2, "{devices}, {fault}");
            let failed = report["failures"].as_array().unwrap();
            if failed.is_empty() {
                assert_eq!(run.err, "");
                break;
            }
            failures += 1;
            assert!(run.err.starts_with("warning: [1] ") && run.err.lines().count() == 1, "{}", run.err);
            assert_eq!((failed.len(), &failed[0]["index"]), (1, &Value::from(1)));
            assert!(run.err.contains(failed[0]["error"].as_str().unwrap()), "{}", run.err);
            assert!(failed[0]["lost_iterations"].as_u64() <= failed[0]["iterations"].as_u64().or(Some(0)));
            let ranks: Vec<_> = report["ranks"].as_array().unwrap().iter().map(|rank| rank["index"].as_u64()).collect();
            assert_eq!(ranks, left, "{devices}, {fault}");
        }
        assert!((1..6).contains(&failures), "{devices}, {call}: {failures}");
    }
}

#[test]
fn another_device_goes_on_alone() {
    others_go_on("0,1", &[Some(0)]);
}

#[test]
fn the_host_goes_on_beside_another_device() {
    others_go_on("1,host,2", &[None, Some(2)]);
}

#[test]
fn all_methods_and_precisions_go_on() {
    let place = Place::new();
    for more in ["--method cg-classic", "--precond none", "--precision mixed", "--method cg-classic --precond none"] {
        let more =
            format!("{more} --on-failure continue --checkpoint-every 0 --json -o x.mtx --report r.html --trace t.json");
        let run = solve(&place, "0,1,host", "1:launch:70", &more);
        let report = run.json();
        run.ends(0);
        assert!(is_solved(&place), "{more}");
        let failed = &report["failures"][0];
        assert!(failed["iterations"].as_u64() > Some(0), "{more}: {failed}");
        assert!(place.read("r.html").contains("[1] "));
    }
}

#[test]
fn all_ranks_of_a_device_go() {
    let place = Place::new();
    let run = solve(&place, "1,1,0,1", "1:launch:50", "--on-failure continue --json -o x.mtx");
    let report = run.json();
    run.ends(0);
    assert!(is_solved(&place));
    assert_eq!((report["ranks"].as_array().unwrap().len(), report["failures"].as_array().unwrap().len()), (1, 1));
    // no snapshot was taken within 10 s: all was done again
    assert_eq!(report["failures"][0]["lost_iterations"], report["failures"][0]["iterations"]);
}

#[test]
fn one_after_the_other_until_none_is_left() {
    let place = Place::new();
    let more = "--on-failure continue --checkpoint-every 0 -o x.mtx";
    let both = "0:launch:60,1:launch:40";
    let run = solve(&place, "0,1,2", both, more).ends(0);
    assert!(is_solved(&place));
    assert_eq!(run.err.lines().count(), 2, "{}", run.err);
    assert!(run.out.contains("failed          pthread"), "{}", run.out);
    // no snapshot is taken, so that the one that is left begins anew, and gets far enough to fail
    let run = solve(&place, "0,1", both, "--on-failure continue -o x.mtx").ends(3);
    let error = run.err.lines().last().unwrap();
    assert!(error.starts_with("error: no device is left to go on with: [1] "), "{error}");
    assert!(error.contains("; [0] "), "{error}");
    // while the devices are prepared
    let run = solve(&place, "0,1", "0:open:1,1:build:1", more).ends(3);
    assert!(
        run.err.contains("[0] ") && run.err.contains("[1] ") && run.err.contains("no device is left"),
        "{}",
        run.err
    );
    // a single one is told as it is
    solve(&place, "1", "1:launch:40", more).fails(3, &["error: [1] ", "launching "]);
}

#[test]
fn a_failure_in_a_later_column() {
    let place = Place::new();
    let a = system(SYSTEM);
    let b: Vec<Vec<f64>> = (1..=3).map(|k| (0..a.n_rows()).map(|i| ((i * k) % 7) as f64 - 2.0).collect()).collect();
    place.write("b.mtx", crate::common::process::array(&b));
    let run =
        solve(&place, "0,1", "1:launch:250", "-b b.mtx --on-failure continue --checkpoint-every 0 --json -o x.mtx");
    let report = run.json();
    run.ends(0);
    assert_eq!(report["failures"].as_array().unwrap().len(), 1);
    for (x, b) in place.vectors("x.mtx").iter().zip(&b) {
        assert!(relative_residual(&a, b, x) <= 1.01 * TOLERANCE);
    }
}

#[test]
fn others_go_on_in_the_same_direction() {
    let place = Place::new();
    for more in ["--method cg", "--precond none", "--method cg-classic", "--precision mixed"] {
        let run = |fault: &str| {
            let args = format!(
                "solve --generate jumps:10,contrast=1e2 --rtol 1e-9 --tune off --devices 0,host,1 --on-failure continue \
                 --checkpoint-every 0 --json -o x.mtx {more}"
            );
            let run = Run::in_time(on_three_devices(place.command(&args), fault)).ends(0);
            let a = system("jumps:10,contrast=1e2");
            assert!(relative_residual(&a, &vec![1.0; a.n_rows()], &place.vectors("x.mtx")[0]) <= 1.01e-9, "{more}");
            run.json()
        };
        let count = |report: &Value| report["iterations"].as_u64().unwrap();
        let (still, failed) = (run(""), run("1:launch:150"));
        let failure = &failed["failures"][0];
        assert!(failure["iterations"].as_u64() > Some(10), "{failure}");
        let (still, failed) = (count(&still), count(&failed));
        assert!(still > 60 && failed.abs_diff(still) <= 1 + still / 10, "{more}: {failed} in place of {still}");
    }
}
