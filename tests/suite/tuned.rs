//! What `--tune` does to a solve: what is looked for before it, and that nothing else changes a bit.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::process::{Place, Run};

/// More than 150 iterations.
const SYSTEM: &str = "--generate poisson2d:150x150 --rhs random:3";

/// Solves, and leaves `x.mtx`: the report, and what was logged.
fn solve(place: &Place, options: &str) -> (Value, String) {
    let run = place.run(&format!("solve {SYSTEM} --json -vv -o x.mtx {options}")).ends(0);
    let report = run.json();
    assert!(report["rel_residual_2"].as_f64().unwrap() <= 1e-8);
    assert!(report["iterations"].as_u64().unwrap() > 150);
    (report, run.err)
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

/// The same bits from the first run on, whatever is measured or kept; on several devices with the same shares, too.
#[test]
fn tuning_states_change_no_bit() {
    crate::common::require_opencl();
    for method in ["cg", "cg-single-reduction", "minres", "cg-classic"] {
        let place = Place::new();
        let mut answers = BTreeSet::new();
        for tune in ["quick", "quick", "stored", "off", "quick"] {
            let (report, _) = solve(&place, &format!("--devices 0 --method {method} --tune {tune}"));
            assert_eq!(report["options"]["tune"], tune);
            answers.insert((report["iterations"].as_u64(), place.read("x.mtx")));
        }
        assert_eq!((answers.len(), kept(place.cache()).len()), (1, 0), "{method}");
    }
    let place = Place::new();
    let of = |tune: &str| {
        solve(&place, &format!("--method cg --devices 0,host,0 --shares 1:1:1 --tune {tune}"));
        place.read("x.mtx")
    };
    assert!(["quick", "quick", "off"].map(of).iter().all(|x| *x == of("stored")));
}

#[test]
fn full_tuning_comes_before_the_solve_and_once() {
    crate::common::require_opencl();
    let place = Place::new();
    let (report, log) = solve(&place, "--devices 0 --method cg --tune full");
    assert!(log.contains("tuning all kernels on 22500 rows"), "{log}");
    assert!(report["seconds"]["tune"].as_f64() > Some(0.0), "{report}");
    assert_eq!(kept(place.cache()).len(), 13, "{log}");
    let x = place.read("x.mtx");
    for tune in ["full", "quick", "stored"] {
        let (_, log) = solve(&place, &format!("--devices 0 --method cg --tune {tune}"));
        assert!(!log.contains("tuning all kernels"), "{log}");
        assert!(log.contains("13 of 24 kernels are launched as was found"), "{log}");
        assert!(place.read("x.mtx") == x, "{tune}");
    }
}

/// Ranks that are alike share what the first has found, and a warning is all that comes of it.
#[test]
fn a_cache_that_cannot_be_written_stops_no_solve() {
    crate::common::require_opencl();
    let place = Place::new();
    place.write("a file, not a folder", "");
    let mut command = place.command(&format!("solve {SYSTEM} --json -vv --method cg --devices 0,0 --tune full"));
    command.env("DECLIVE_CACHE_DIR", place.path("a file, not a folder"));
    let log = Run::of(command, "").ends(0).err;
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!((count("tuning all kernels"), count("13 of 24 kernels")), (1, 2), "{log}");
    assert_eq!(log.lines().filter(|line| line.starts_with("warning:")).count(), 1, "{log}");
}
