//! Time and memory of reading and writing matrices: `cargo bench --bench matrix_market`.
//!
//! ```text
//! cargo bench --bench matrix_market -- [OPERATION…] [--size M] [--samples N] [--threads N] [--dir DIR] [--out DIR]
//!                                      [--json FILE] [--commit NAME] [--memory]
//! ```
//!
//! The matrix is the 7-point operator on a grid of M³ points (100: 10⁶ rows, 3.97 · 10⁶ stored entries) with values of
//! full precision. Its files are made in DIR (`target/bench-data`) when they are first needed; what is written goes to a
//! file in `--out` (`/dev/shm`, where there is none DIR) that does not stay. Each operation runs once for nothing and then
//! N times (7; other crates 2). Prints one JSON document: every sample, medians, GB/s of text (10⁹ bytes; what is
//! compressed counts as the text inside), and the peak of anonymous memory while a file was read by a process of its own.
//! `benches/peers/matrix_market.py` compares with other programs.

mod files;
mod memory;
mod operation;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

use serde_json::{Value, json};

use files::Files;
use operation::{Operation, Task};

struct Args {
    operations: Vec<Operation>,
    size: usize,
    samples: usize,
    threads: usize,
    dir: PathBuf,
    out: PathBuf,
    json: Option<PathBuf>,
    commit: Option<String>,
    /// Only the memory of the operations, in this process.
    memory: bool,
}

fn parse() -> Result<Args, Box<dyn Error>> {
    let mut args = Args {
        operations: Vec::new(),
        size: 100,
        samples: 7,
        threads: thread::available_parallelism()?.get(),
        dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench-data"),
        out: "/dev/shm".into(),
        json: None,
        commit: commit(),
        memory: false,
    };
    let mut out = None;
    let mut words = env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--size" => args.size = value()?.parse()?,
            "--samples" => args.samples = value()?.parse::<usize>()?.max(1),
            "--threads" => args.threads = value()?.parse()?,
            "--dir" => args.dir = value()?.into(),
            "--out" => out = Some(value()?.into()),
            "--json" => args.json = Some(value()?.into()),
            "--commit" => args.commit = Some(value()?),
            "--memory" => args.memory = true,
            option if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            name => args.operations.push(Operation::parse(name)?),
        }
    }
    if args.operations.is_empty() {
        args.operations = Operation::ALL.map(|(operation, _)| operation).to_vec();
    }
    args.out = out.unwrap_or_else(|| if args.out.is_dir() { args.out } else { args.dir.clone() });
    Ok(args)
}

/// The commit that the sources are of, if git knows.
fn commit() -> Option<String> {
    let dir = env!("CARGO_MANIFEST_DIR");
    let git = Command::new("git").args(["-C", dir, "describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    git.status.success().then(|| String::from_utf8_lossy(&git.stdout).trim().to_owned())
}

/// The processor's name. Linux only.
fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

fn measure(operation: Operation, files: &Files, args: &Args) -> Result<Value, Box<dyn Error>> {
    let task = Task::new(operation, files, &args.out)?;
    let (file, bytes) = task.describe(files)?;
    if !operation.is_slow_peer() {
        task.sample()?; // warm up
    }
    let count = if operation.is_slow_peer() { args.samples.min(2) } else { args.samples };
    let samples = (0..count).map(|_| task.sample()).collect::<Result<Vec<f64>, _>>()?;
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
    let rate = bytes as f64 / median / 1e9;
    eprintln!(
        "{:16} {:8.1} ms ({:.1} to {:.1}), {rate:.2} GB/s",
        operation.name(),
        median * 1e3,
        sorted[0] * 1e3,
        sorted[count - 1] * 1e3
    );
    Ok(json!({
        "operation": operation.name(), "file": file, "bytes": bytes,
        "seconds": samples, "median": median, "gigabytes_per_second": rate,
    }))
}

/// The memory that reading needs, when nothing was read before in this process.
fn watch(operation: Operation, files: &Files, args: &Args) -> Result<Value, Box<dyn Error>> {
    let task = Task::new(operation, files, &args.out)?;
    let (memory, a) = memory::watch(|| task.read())?;
    let a = a?;
    let finished = 12 * a.nnz() + 8 * (a.n_rows() + 1);
    let above = memory.peak.saturating_sub(memory.before) as f64 / finished as f64 - 1.0;
    Ok(json!({
        "operation": operation.name(), "matrix_bytes": finished,
        "before": memory.before, "peak": memory.peak, "after": memory.after, "peak_above_matrix": above,
    }))
}

/// [`watch`] in a process of its own.
fn watch_apart(operation: Operation, args: &Args) -> Result<Value, Box<dyn Error>> {
    let child = Command::new(env::current_exe()?)
        .args([operation.name(), "--memory", "--size", &args.size.to_string()])
        .args(["--threads", &args.threads.to_string(), "--dir"])
        .arg(&args.dir)
        .output()?;
    if !child.status.success() {
        return Err(format!("{} --memory: {}", operation.name(), String::from_utf8_lossy(&child.stderr)).into());
    }
    let value: Value = serde_json::from_slice(&child.stdout)?;
    let above = value["peak_above_matrix"].as_f64().unwrap_or(f64::NAN);
    eprintln!("{:16} peak memory {above:.2} of the matrix above the matrix", operation.name());
    Ok(value)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = parse()?;
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let files = Files::new(&args.dir, args.size);
    if args.memory {
        let &[operation] = args.operations.as_slice() else {
            return Err("--memory takes one operation".into());
        };
        println!("{}", watch(operation, &files, &args)?);
        return Ok(());
    }
    let (mut results, mut memory) = (Vec::new(), Vec::new());
    for &operation in &args.operations {
        results.push(measure(operation, &files, &args)?);
        if operation.reads() && args.samples > 1 {
            memory.push(watch_apart(operation, &args)?);
        }
    }
    let document = json!({
        "version": 1, "declive": env!("CARGO_PKG_VERSION"), "commit": args.commit,
        "processor": processor(), "cores": thread::available_parallelism()?.get(), "threads": args.threads,
        "size": args.size, "results": results, "memory": memory,
    });
    match &args.json {
        Some(path) => fs::write(path, format!("{document:#}\n"))?,
        None => println!("{document:#}"),
    }
    Ok(())
}
