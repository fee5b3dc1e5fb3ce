//! `declive bench` as a process: tables, JSON and page, what is left out, and how it ends.

#![allow(clippy::unwrap_used)] // the helpers, which are not seen to be tests

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn command(dir: &TempDir, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_declive"));
    command
        .args(args.split_whitespace())
        .current_dir(dir.path())
        .env("DECLIVE_CACHE_DIR", dir.path().join("cache"))
        .env_remove("RUST_LOG");
    command
}

fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn declive(dir: &TempDir, args: &str) -> Run {
    run(command(dir, args))
}

impl Run {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    #[track_caller]
    fn fails(self, code: i32, part: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
    }
}

/// The text without its line ends, which come where a line is full.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_device_alone_and_as_three_ranks() {
    let dir = place();
    let args = "bench --order 8000 --devices 0,0,0 --iterations 20 --repeat 2 --json --report r.html";
    let report = declive(&dir, args).json();
    assert_eq!((&report["matrix"]["rows"], &report["matrix"]["source"]), (&8000.into(), &"poisson3d:20".into()));
    let experiments = report["experiments"].as_array().unwrap();
    let labels: Vec<&str> = experiments.iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["[0]", "all", "[0]", "all"]);
    assert_eq!(report["notes"], Value::Array(Vec::new()));
    for (one, method) in experiments.iter().zip(["cg-classic", "cg-classic", "cg", "cg"]) {
        let number = |field: &str| one[field].as_f64().unwrap_or_else(|| panic!("{field} of {one}"));
        assert_eq!(
            (&one["method"], &one["iterations"], &one["notes"]),
            (&method.into(), &20.into(), &Value::Array(vec![]))
        );
        let kernels = one["kernels"].as_array().unwrap();
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel["kernel"].as_str().unwrap()).collect();
        let expected: &[&str] = match method {
            "cg" => &["spmv_dot_stencil", "cg_step"],
            _ => &["spmv_csr", "dot_partial", "next_iterate", "next_residual", "next_direction"],
        };
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(names.contains(&"halo_pack"), one["label"] == "all", "{names:?}");
        for kernel in kernels {
            let calls = kernel["calls"].as_u64().unwrap();
            assert!(calls >= 20 && calls.is_multiple_of(20) && kernel["seconds"].as_f64().unwrap() > 0.0, "{kernel}");
        }
        let sum: f64 = kernels.iter().map(|kernel| kernel["seconds"].as_f64().unwrap()).sum();
        assert!((sum - number("kernel_seconds")).abs() < 1e-12);
        assert!((sum + number("overhead_seconds") - number("total_seconds")).abs() < 1e-12);
        assert!(
            number("least_seconds") <= number("total_seconds") && number("total_seconds") <= number("most_seconds")
        );
        let micros = number("microseconds_per_iteration");
        assert!((micros * 20.0 - 1e6 * number("total_seconds")).abs() < 1e-6 * micros);
        assert_eq!(one["speedup"].is_null(), one["label"] == "[0]");
        assert_eq!(one["gigaflops_counted"].is_null(), method == "cg");
        assert!(number("part_of_copy") > 0.0);
        let nnz = report["matrix"]["nnz"].as_u64().unwrap();
        // 74 bytes a row, and some kinds of rows; or 124, and 12 an entry
        let (bytes, more) = if method == "cg" { (74 * 8000, 8192) } else { (124 * 8000 + 12 * nnz, 64) };
        let found = one["bytes_per_iteration"].as_u64().unwrap();
        assert!((bytes..=bytes + more).contains(&found), "{found} and {bytes}");
    }
    assert_eq!(experiments[1]["devices"].as_array().unwrap().len(), 3);
    let published = report["published"]["experiments"].as_array().unwrap();
    let totals: Vec<f64> = published.iter().map(|one| one["total_seconds"].as_f64().unwrap()).collect();
    assert_eq!(totals, [4.46, 1.81, 1.55, 0.67, 0.91]);

    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("Where the time of 20 iterations goes") && page.contains("figure 4.21"), "{page}");
}

#[test]
fn the_text() {
    let dir = place();
    let text = declive(&dir, "bench --order 1000 --devices 0 --iterations 10 --repeat 1 --precision f32").ok();
    for part in ["poisson3d:10, 1,000 rows, 6,400 entries", "7-point operator", "[0]", "published 2013, f32", "6750M"] {
        assert!(words(&text).contains(part), "{part} is not in\n{text}");
    }
    let kernels = |name: &str| text.lines().filter(|line| line.trim_start().starts_with(name)).count();
    assert_eq!(["spmv_csr", "cg_step", "overhead", "total"].map(kernels), [1, 1, 2, 2]);
    let text =
        declive(&dir, "bench --order 1000 --devices host --iterations 10 --repeat 1 --methods cg,cg --tune off").ok();
    assert!(!text.contains("published") && !text.contains("speed-up") && text.contains("off: Usual"), "{text}");
    assert_eq!(text.matches("\ncg\n").count(), 1);
}

#[test]
fn without_opencl_the_host_works() {
    let dir = place();
    let mut command = command(&dir, "bench --order 1000 --iterations 5 --repeat 1 --json");
    command.env("OCL_ICD_VENDORS", "/nonexistent").env_remove("OCL_ICD_FILENAMES");
    let report = run(command).json();
    assert!(report["notes"][0].as_str().unwrap().contains("host"), "{}", report["notes"]);
    assert_eq!((&report["kinds"][0]["label"], &report["kinds"][0]["kind"]), (&"host".into(), &"host".into()));
    assert_eq!(report["experiments"].as_array().unwrap().len(), 2);
}

#[test]
fn an_iteration_that_ends_early_says_so() {
    let dir = place();
    let args = "bench --generate tridiagonal:5 --devices 0 --methods cg --iterations 90 --repeat 1";
    let text = declive(&dir, args).ok();
    assert!(
        words(&text).contains("Note: cg on [0]: ended after ") && words(&text).contains(" of 90 iterations; "),
        "{text}"
    );
    assert!(!text.contains("7-point"), "{text}");
}

/// With a gigabyte, of which a buffer may take a quarter, PoCL has no room for 270 MB of values; the host has, and so have
/// both together.
#[test]
fn a_device_that_is_too_small_is_left_out() {
    let dir = place();
    let args = "bench --generate poisson3d:170 --iterations 1 --repeat 1 --methods cg --json --devices";
    let on = |devices: &str| {
        let mut command = command(&dir, &format!("{args} {devices}"));
        command.env("POCL_MEMORY_LIMIT", "1");
        run(command)
    };
    let report = on("0,host").json();
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("cg on [0] is left out: ") && note.contains("bytes, but its largest buffer is"), "{note}");
    let labels: Vec<&Value> = report["experiments"].as_array().unwrap().iter().map(|one| &one["label"]).collect();
    assert_eq!(labels, ["host", "all"]);
    on("0").fails(3, "its largest buffer is");
}

#[test]
fn what_is_refused() {
    let dir = place();
    for (args, part) in [
        ("bench --methods gmres", "gmres"),
        ("bench --iterations 0", "--iterations"),
        ("bench --repeat 0", "--repeat"),
        ("bench --order 0", "--order"),
        ("bench A.mtx --order 5", "--order"),
        ("bench missing.mtx", "missing.mtx"),
        ("bench --report -", "--report needs a file"),
        ("bench --order 27 --devices tpu", "unknown device"),
    ] {
        declive(&dir, args).fails(2, part);
    }
    let file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    file("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1\n");
    declive(&dir, "bench a.mtx --devices 0").fails(2, "square");
    file("b.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n2 2 1\n1 2 1\n");
    declive(&dir, "bench b.mtx --devices 0").fails(2, "b.mtx: the matrix is not symmetric");
    file("c.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 -1\n");
    declive(&dir, "bench c.mtx --devices 0").fails(2, "c.mtx: no iteration can be timed; IndefiniteOperator");
    declive(&dir, "bench c.mtx --report c.mtx").fails(2, "would overwrite c.mtx");
    declive(&dir, "bench --order 27 --devices gpu,99").fails(3, "--devices gpu,99");
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_nothing_behind() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let dir = place();
    let mut command = command(&dir, "bench --order 100000 --devices host --repeat 1000 --report r.html -v");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    assert!(log.lines().any(|line| line.unwrap().contains("cg-classic on host")));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(dir.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count(), 0);
}

#[test]
fn the_page_of_tuning_has_experiments() {
    let dir = place();
    let tuned = "tune --order 1000 --search first-minimum --dry-run --devices 0,0 --report";
    assert_eq!(declive(&dir, &format!("{tuned} one.html")).code, Some(0));
    let page = fs::read_to_string(dir.path().join("one.html")).unwrap();
    for part in
        ["Launch parameters found by measurement", "Rates, cg-classic", "Rates, cg\"", "published 2013", "4.46", "2 × "]
    {
        assert!(page.contains(part), "{part}");
    }
}
