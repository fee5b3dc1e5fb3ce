//! `declive solve --tune quick`: iterations try launch parameters, later solves use what they found.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// More than 100 iterations.
const SYSTEM: &str = "--generate poisson2d:150x150 --rhs random:3";

/// Solves, with results kept in `cache`: the report, and what was logged.
fn solve(cache: &Path, options: &str) -> (Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_declive"))
        .args(format!("solve {SYSTEM} --json -vv {options}").split_whitespace())
        .env("DECLIVE_CACHE_DIR", cache)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["rel_residual_2"].as_f64().unwrap() <= 1e-8);
    assert!(report["iterations"].as_u64().unwrap() > 150);
    (report, err)
}

/// The kernels that the store knows.
fn kept(cache: &Path) -> BTreeSet<String> {
    let Ok(folder) = fs::read_dir(cache.join("tuning")) else { return BTreeSet::new() };
    let files = folder.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    let kernels = |path: std::path::PathBuf| {
        let store: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let entries = store["entries"].as_array().unwrap().clone();
        entries.into_iter().map(|entry| entry["kernel"].as_str().unwrap().to_owned())
    };
    files.flat_map(kernels).collect()
}

fn names(kernels: &[&str]) -> BTreeSet<String> {
    kernels.iter().map(ToString::to_string).collect()
}

/// Lines that tell of a launch found by trial.
fn changes(log: &str) -> usize {
    log.lines().filter(|line| line.contains("groups a unit from now on")).count()
}

#[test]
fn what_one_solve_finds_the_next_one_uses() {
    crate::common::require_opencl();
    for (method, kernels) in [
        ("cg", &["spmv_dot_stencil"][..]),
        ("cg-single-reduction", &["spmv_dot_stencil"]),
        ("cg-classic", &["spmv_stencil", "dot_partial", "next_iterate", "next_residual", "next_direction"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (first, log) = solve(dir.path(), &format!("--devices 0 --tune quick --method {method}"));
        assert_eq!(first["options"]["tune"], "quick");
        assert_eq!((changes(&log), kept(dir.path())), (kernels.len(), names(kernels)), "{log}");
        let (_, log) = solve(dir.path(), &format!("--devices 0 --method {method}"));
        assert!(log.contains(&format!("{} of 24 kernels are launched as was found", kernels.len())), "{log}");
        assert_eq!((changes(&log), kept(dir.path())), (0, names(kernels)), "{log}");
        let mut show = Command::new(env!("CARGO_BIN_EXE_declive"));
        let shown = show.args(["tune", "--show"]).env("DECLIVE_CACHE_DIR", dir.path()).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown.lines().filter(|line| line.contains("* ")).count(), kernels.len(), "{shown}");
        assert!(shown.contains("found by trials"), "{shown}");
    }
}

#[test]
fn ranks_find_for_themselves() {
    crate::common::require_opencl();
    let dir = tempfile::tempdir().unwrap();
    let (_, log) = solve(dir.path(), "--devices 0,host,0 --shares 1:1:1 --tune quick");
    // a third of the rows is too little for a step to have more than one group for each compute unit
    let kernels = names(&["spmv_dot_stencil"]);
    assert_eq!((changes(&log), kept(dir.path())), (2, kernels), "{log}");
}

#[test]
fn full_tuning_comes_before_the_solve_and_once() {
    crate::common::require_opencl();
    let dir = tempfile::tempdir().unwrap();
    // what trials find is not enough for it
    solve(dir.path(), "--devices 0 --tune quick");
    let (report, log) = solve(dir.path(), "--devices 0 --tune full");
    assert!(
        log.contains("tuning all kernels on 22500 rows") && report["seconds"]["tune"].as_f64() > Some(0.0),
        "{log}"
    );
    assert_eq!((changes(&log), kept(dir.path()).len()), (0, 13), "{log}");
    let (_, log) = solve(dir.path(), "--devices 0 --tune full");
    assert!(!log.contains("tuning all kernels") && log.contains("13 of 24 kernels are launched as was found"), "{log}");
    // where nothing can be kept, ranks that are alike share what the first has found
    let file = dir.path().join("a file");
    fs::write(&file, "").unwrap();
    let (_, log) = solve(&file, "--devices 0,0 --tune full");
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!((count("tuning all kernels"), count("13 of 24 kernels")), (1, 2), "{log}");
}

#[test]
fn nothing_is_tried_unless_it_is_wanted() {
    crate::common::require_opencl();
    for tune in ["off", "stored"] {
        let dir = tempfile::tempdir().unwrap();
        let (_, log) = solve(dir.path(), &format!("--devices 0 --tune {tune}"));
        assert_eq!((changes(&log), kept(dir.path())), (0, names(&[])), "{log}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_stops_no_solve() {
    crate::common::require_opencl();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a file, not a folder");
    fs::write(&file, "").unwrap();
    let (_, log) = solve(&file, "--devices 0 --tune quick");
    assert!(changes(&log) > 0);
    assert_eq!(log.lines().filter(|line| line.starts_with("warning:")).count(), 1, "{log}");
}
