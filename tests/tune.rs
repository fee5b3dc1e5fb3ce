//! `declive tune` as a process: what it finds, keeps, shows and forgets, and that a solve uses it.

#![allow(clippy::unwrap_used)] // the helpers, which are not seen to be tests

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

/// A folder, whose `cache` is where results are kept.
fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn declive(dir: &TempDir, args: &str) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_declive"))
        .args(args.split_whitespace())
        .current_dir(dir.path())
        .env("DECLIVE_CACHE_DIR", dir.path().join("cache"))
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Run {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    #[track_caller]
    fn fails(self, code: i32, part: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The one file of a device in the store.
fn stored(dir: &TempDir) -> PathBuf {
    let files = fs::read_dir(dir.path().join("cache/tuning")).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

/// Runs a solve of 12³ rows; tells how many kernels were launched as the store has it.
fn kernels_tuned(dir: &TempDir, options: &str) -> Option<String> {
    let devices = if options.contains("--devices") { "" } else { "--devices 0" };
    let run = declive(dir, &format!("solve --generate poisson3d:12 {devices} -vv --json {options}"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let limit = if options.contains("f32") { 1e-5 } else { 1e-8 };
    assert!(json(&run.out)["rel_residual_2"].as_f64().unwrap() <= limit);
    let line = run.err.lines().find(|line| line.contains("kernels are launched as"))?;
    Some(line.rsplit_once(": ").unwrap().1.split(' ').next().unwrap().into())
}

#[test]
fn from_measurement_to_solve() {
    let dir = place();
    assert_eq!(kernels_tuned(&dir, "").unwrap(), "0");
    let text = declive(&dir, "tune --devices 0 --generate poisson3d:12 --json --report r.html").ok();
    let report = json(&text);
    let found = &report["devices"][0];
    assert_eq!((&found["order"], &found["nnz"], &found["precision"]), (&1728.into(), &11232.into(), &"f64".into()));
    let kernels = found["kernels"].as_array().unwrap();
    // compressed rows, and rows of a few kinds with their values
    assert_eq!(kernels.len(), 15);
    for kernel in kernels {
        let name = &kernel["kernel"];
        let times = ["one_per_unit", "default", "chosen"].map(|which| {
            let timing = if which == "one_per_unit" { &kernel[which] } else { &kernel[which]["timing"] };
            let [low, median, high] = ["low", "median", "high"].map(|part| timing[part].as_f64().unwrap());
            assert!(0.0 < low && low <= median && median <= high, "{name}: {timing}");
            median
        });
        // those two have to go along with the row blocks of the third product
        let is_free = name != "spmv_csr" && name != "residual_csr";
        assert!(!is_free || times[2] <= times[1], "{name} is slower than without tuning: {times:?}");
        let curves = kernel["curves"].as_array().unwrap();
        let begins_with_one = |curve: &Value| curve["points"][0]["groups_per_unit"] == 1;
        assert!(!curves.is_empty() && curves.iter().all(begins_with_one), "{name}");
        // where the dissertation's search would have stopped is known whatever the steps of ours
        assert!(curves.iter().any(|curve| curve["first_minimum"].is_u64()), "{name}");
        assert_eq!(kernel["elements"], 1728);
        assert!(kernel["bytes"].as_u64().unwrap() > 0);
    }
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 15);
    for (finding, kernel) in findings.iter().zip(kernels) {
        assert_eq!(finding["kernel"], kernel["kernel"]);
        let is_product = kernel["chosen"]["launch"]["block_nnz"] != 0;
        assert!(finding["gains"]["group_size"].is_number(), "{finding}");
        assert!(is_product || finding["gains"]["items_per_row"].is_null(), "{finding}");
        // with groups of one work-item there is nothing to unroll
        let is_single = kernel["chosen"]["launch"]["group_size"] == 1;
        assert!(is_single || finding["gains"]["unroll"].is_number(), "{finding}");
        assert_eq!(kernel["tried"][0], kernel["chosen"]);
    }
    let seconds = |part: &str| found["fusion"][part]["seconds"].as_f64().unwrap();
    assert!(seconds("fused") > 0.0 && seconds("separate") > 0.0);
    assert_eq!(found["fusion"]["fused"]["bytes"], 12 * 11232 + 76 * 1728 + 4);
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("spmv_dot_csr") && page.contains("<svg"));

    assert_eq!(kernels_tuned(&dir, "").unwrap(), "15");
    assert_eq!(kernels_tuned(&dir, "--tune off"), None);
    assert_eq!(kernels_tuned(&dir, "--precision f32 --rtol 1e-5").map(|n| n == "15"), Some(false));
    let kept = json(&declive(&dir, "tune --show --json").ok());
    assert_eq!(kept["devices"][0]["kernels"].as_array().unwrap().len(), 15);
    assert!(declive(&dir, "tune --show").ok().contains("spmv_dot_csr"));
    assert_eq!(declive(&dir, "tune --clear").ok(), "Forgot what was kept of 1 device.\n");
    assert_eq!(declive(&dir, "tune --clear").ok(), "Nothing was kept.\n");
    assert_eq!(declive(&dir, "tune --show").ok(), "Nothing is kept: 'declive tune' measures.\n");
    assert_eq!(kernels_tuned(&dir, "").unwrap(), "0");
}

/// One device as three ranks: beside the whole, which one device has, the block of one of three.
#[test]
fn blocks_of_several_ranks() {
    let dir = place();
    let tune = |devices: &str| {
        let text = format!("tune --devices {devices} --generate poisson3d:12 --search first-minimum --json");
        let report = json(&declive(&dir, &text).ok());
        let found = report["devices"].as_array().unwrap().clone();
        assert!(found.iter().all(|one| one["indices"] == serde_json::json!([0])));
        let part = |one: &Value| ["order", "nnz", "halo"].map(|part| one[part].as_u64().unwrap());
        found.iter().map(part).collect::<Vec<_>>()
    };
    assert_eq!(tune("0,0"), [[1728, 11232, 0]]);
    let solve = || kernels_tuned(&dir, "--devices 0,0,0").unwrap();
    // vectors of a third are one step away, products are two
    assert_eq!(solve(), "9");
    let found = tune("0,0,0");
    let middle = |[rows, entries, halo]: [u64; 3]| rows.abs_diff(576) <= 12 && entries < 4000 && halo == 288;
    assert!(found.len() == 2 && found[0] == [1728, 11232, 0] && middle(found[1]), "{found:?}");
    assert_eq!(solve(), "15");
}

/// Launch parameters that differ from kernel to kernel, and are of both shapes, change no result; those that no device
/// can have are not used.
#[test]
fn edited_by_hand() {
    let dir = place();
    declive(&dir, "tune --devices 0 --generate poisson3d:12 --search first-minimum").ok();
    let path = stored(&dir);
    let mut content = json(&fs::read_to_string(&path).unwrap());
    for entry in content["entries"].as_array_mut().unwrap() {
        let launch = match entry["kernel"].as_str().unwrap() {
            "spmv_dot_csr" => [64, 2, 128],
            "spmv_csr" => [16, 3, 128],
            "residual_csr" => [1, 1, 1],
            "cg_step" => [32, 1, 0],
            "cg_step_weighted" => [128, 5, 0],
            "dot_partial" => [1 << 19, 1, 0],
            "next_iterate" => [1 << 20, 1, 0],
            "next_residual" => [64, 1000, 0],
            _ => [8, 2, 0],
        };
        for (k, part) in ["group_size", "groups_per_unit", "block_nnz"].into_iter().enumerate() {
            entry["launch"][part] = launch[k].into();
        }
        if launch[0] > 1 {
            entry["launch"]["unroll"] = 4.into();
        }
        if launch[2] > 1 {
            entry["launch"]["items_per_row"] = 4.into();
        }
    }
    fs::write(&path, content.to_string()).unwrap();
    // not the three impossible ones, and not the product that was cut for other row blocks
    assert_eq!(kernels_tuned(&dir, "").unwrap(), "11");
    assert_eq!(kernels_tuned(&dir, "--method cg-classic --precond jacobi").unwrap(), "11");
}

#[test]
fn a_damaged_store_is_no_obstacle() {
    let dir = place();
    declive(&dir, "tune --devices 0 --order 1000 --search first-minimum").ok();
    fs::write(stored(&dir), "{ \"version\": 1, ").unwrap();
    let run = declive(&dir, "solve --generate poisson3d:12 --devices 0");
    assert_eq!((run.code, run.err.matches("warning: ").count()), (Some(0), 1), "{}", run.err);
    declive(&dir, "tune --devices 0 --order 1000 --search first-minimum --dry-run").ok();
    assert_eq!(fs::read_to_string(stored(&dir)).unwrap(), "{ \"version\": 1, ");
    declive(&dir, "tune --devices 0 --order 1000 --search first-minimum").ok();
    assert_eq!(json(&fs::read_to_string(stored(&dir)).unwrap())["version"], 1);
}

/// All sizes, numbers, row blocks and unrollings, of a matrix so small that there is one group a unit at most.
#[test]
fn everything() {
    let dir = place();
    // a search for the first minimum, with so few groups, is as complete
    let text = declive(&dir, "tune --devices 0 --order 30 --search first-minimum").ok();
    let is_header = |line: &&str| line.ends_with("early stop  occupancy");
    let header: Vec<&str> = text.lines().find(is_header).unwrap().split_whitespace().collect();
    assert_eq!(header[..6], ["kernel", "groups", "size", "block", "items", "unroll"]);
    // the steps are all there, so that each kernel has its early stop
    let after = text.lines().skip_while(|line| !is_header(line)).skip(1).take(12);
    let stops: Vec<f64> = after.filter_map(|line| line.split_whitespace().nth(6)?.parse().ok()).collect();
    assert_eq!(stops.len(), 12, "{text}");
    assert!(text.contains("separate") && text.contains("ratio"), "{text}");
    let report = json(&declive(&dir, "tune --devices 0 --order 30 --search exhaustive --json").ok());
    for kernel in report["devices"][0]["kernels"].as_array().unwrap() {
        let tried: Vec<[u64; 4]> = kernel["curves"]
            .as_array()
            .unwrap()
            .iter()
            .map(|curve| {
                ["group_size", "block_nnz", "items_per_row", "unroll"].map(|part| curve[part].as_u64().unwrap())
            })
            .collect();
        let has = |k: usize, value: u64| tried.iter().any(|launch| launch[k] == value);
        assert!(has(0, 1) && has(0, 64) && has(3, 1) && has(3, 4), "{tried:?}");
        let is_product = kernel["kernel"].as_str().unwrap().ends_with("_csr");
        assert_eq!((has(1, 1024), has(2, 4)), (is_product, is_product), "{tried:?}");
        let mut once = tried.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), tried.len(), "{tried:?}");
    }
}

#[test]
fn what_can_not_be_tuned() {
    let dir = place();
    declive(&dir, "tune --devices host").fails(3, "the host");
    declive(&dir, "tune missing.mtx").fails(2, "missing.mtx");
    declive(&dir, "tune A.mtx --order 5").fails(2, "--order");
    declive(&dir, "tune --show --clear").fails(2, "--clear");
    declive(&dir, "tune --search hasty").fails(2, "first-minimum");
    fs::write(dir.path().join("a.mtx"), "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1\n").unwrap();
    declive(&dir, "tune a.mtx").fails(2, "square");
}
