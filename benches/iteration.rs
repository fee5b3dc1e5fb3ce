//! Time of an iteration, and of its product alone, system by system and format by format:
//!
//! ```text
//! cargo bench --bench iteration                          every kind of system, some 10⁵ rows, on every device
//! cargo bench --bench iteration -- --rows 1000000        larger ones
//! cargo bench --bench iteration -- poisson3d:215 A.npz --devices 0 --format auto --format csr --method cg-classic
//! ```
//!
//! Each system is solved five times with a fixed number of iterations, and once more with its kernels timed, on each
//! device alone and on all together, in every format that fits. One JSON document goes to standard output: device,
//! driver, commit, every sample, medians, bytes by the byte rule, and the part of the copy bandwidth measured in the
//! same run.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use declive::device::{Choice, Kind, list};
use declive::matrix::gallery::{Spec, random_vector};
use declive::solve::{Format, Method, Precision, Precond, RankInfo};
use declive::{Control, Csr, Setup, Solver, Stop, bandwidth, npz};
use serde_json::{Value, json};

const SAMPLES: usize = 5;

struct Args {
    systems: Vec<String>,
    devices: Vec<String>,
    formats: Vec<Format>,
    setup: Setup,
    iterations: u64,
}

fn parse() -> Result<Args, Box<dyn Error>> {
    let mut args = Args {
        systems: Vec::new(),
        devices: Vec::new(),
        formats: Vec::new(),
        setup: Setup::default().with_method(Method::Cg).with_precond(Precond::None),
        iterations: 100,
    };
    let mut rows = 100_000;
    let mut words = std::env::args().skip(1).filter(|w| w != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--devices" => args.devices.push(value()?),
            "--format" => args.formats.push(value()?.parse()?),
            "--iterations" => args.iterations = value()?.parse()?,
            "--method" => args.setup.method = value()?.parse::<Method>()?,
            "--precision" => args.setup.precision = value()?.parse::<Precision>()?,
            "--precond" => args.setup.precond = value()?.parse()?,
            "--rows" => rows = value()?.parse()?,
            "--tune" => args.setup.tune = value()?.parse()?,
            option if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            system => args.systems.push(system.into()),
        }
    }
    if args.systems.is_empty() {
        args.systems = suite(rows);
    }
    if args.formats.is_empty() {
        args.formats = Format::ALL.to_vec();
    }
    if args.devices.is_empty() {
        args.devices.push("host".into());
        let devices = list().devices;
        args.devices.extend(devices.iter().map(|d| d.index.to_string()));
        if devices.len() > 1 {
            args.devices.push("all".into());
        }
    }
    Ok(args)
}

/// A system of each kind with about so many rows.
fn suite(rows: usize) -> Vec<String> {
    let side = |unknowns: usize| (rows as f64 / unknowns as f64).cbrt().round().max(1.0);
    let (points, nodes) = (side(1), side(3));
    vec![
        format!("poisson3d:{points}"),
        format!("variable:{points}"),
        format!("jumps:{points}"),
        format!("poisson3d27:{points}"),
        format!("elasticity3d:{nodes}"),
        format!("tetrahedra:{nodes}"),
        format!("band:{rows},width=12"),
        format!("random-spd:{rows}"),
        format!("graph-laplacian:{rows},skew=3"),
        format!("dense-rows:{rows}"),
    ]
}

/// A generated system, or one of a file.
fn build(system: &str) -> Result<Csr, Box<dyn Error>> {
    if system.ends_with(".npz") {
        return npz::map(Path::new(system))?.into_real().ok_or_else(|| format!("{system} is complex").into());
    }
    Ok(system.parse::<Spec>()?.build()?)
}

/// Bytes a second that these ranks copy, all together; each device is measured once.
fn copy_bandwidth(ranks: &[RankInfo], known: &mut HashMap<Option<usize>, f64>) -> declive::Result<f64> {
    let devices = list().devices;
    let mut sum = 0.0;
    for rank in ranks {
        let index = rank.index.filter(|_| rank.kind != Kind::Host);
        let rate = match (known.get(&index), index) {
            (Some(rate), _) => *rate,
            (None, None) => bandwidth::of_host(),
            (None, Some(index)) => bandwidth::of_device(&devices[index])?,
        };
        known.insert(index, rate);
        sum += rate;
    }
    Ok(sum)
}

/// The measurements of a system on some devices in a format; none if its rows don't fit that, or are stored in one of
/// those that are `known`.
fn measure(
    (system, a): (&str, &Arc<Csr>),
    devices: &str,
    format: Format,
    args: &Args,
    known: &mut Vec<Vec<Format>>,
    copies: &mut HashMap<Option<usize>, f64>,
) -> Result<Option<Value>, Box<dyn Error>> {
    let setup = args.setup.clone().with_devices(devices.parse::<Choice>()?).with_format(format);
    let mut solver = match Solver::new(Arc::clone(a), &setup) {
        Err(declive::Error::Usage(why)) if !matches!(format, Format::Auto | Format::Csr) => {
            eprintln!("{system:28} {devices:8} {why}");
            return Ok(None);
        }
        other => other?,
    };
    let stored: Vec<Format> = solver.ranks().iter().map(|rank| rank.format).collect();
    if known.contains(&stored) {
        return Ok(None);
    }
    let b = random_vector(a.n_rows(), 1); // ones would be an eigenvector of some systems
    let mut solve = |iterations, timeline| {
        let stop = Stop::default().with_rtol(0.0).with_max_iters(iterations);
        solver.solve(&b, None, &stop, Control::default().with_timeline(timeline))
    };
    // warms up; a system with fewer digits gets as many iterations as one run of the method has
    let first = solve(args.iterations, false)?;
    let whole = first.iterations == args.iterations && first.restarts == 0;
    let count = if whole { args.iterations } else { (first.iterations / (u64::from(first.restarts) + 2)).max(1) };
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let outcome = solve(count, false)?;
        if outcome.iterations == 0 {
            return Err(format!("{system}: no iteration can be timed; {}", outcome.reason).into());
        }
        samples.push(outcome.solve.as_secs_f64() * 1e6 / outcome.iterations as f64);
    }
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[SAMPLES / 2];
    let timed = solve(count, true)?;
    let products = timed.timelines.iter().map(|timeline| {
        let kernels = timeline.kernels();
        let time: f64 = kernels.iter().filter(|k| k.kernel.starts_with("spmv")).map(|k| k.time.as_secs_f64()).sum();
        time * 1e6 / timeline.iterations().max(1) as f64
    });
    let product = products.fold(0.0, f64::max);

    let bytes = timed.bytes_per_iteration;
    // of what was considered, the format taken is the first
    let product_bytes: u64 = solver.ranks().iter().map(|rank| rank.format_choice.candidates[0].bytes).sum();
    let copy = copy_bandwidth(solver.ranks(), copies)? / 1e9;
    let (rate, product_rate) = (bytes as f64 / median / 1e3, product_bytes as f64 / product / 1e3);
    let ranks: Vec<_> = solver.ranks().iter().map(|r| json!({"device": r.device, "format": r.format.name()})).collect();
    eprintln!(
        "{system:28} {devices:8} {:7} {median:9.1} µs ({:.1} to {:.1}), {rate:7.1} GB/s, {:3.0} % of a copy; product \
         {product:9.1} µs, {product_rate:7.1} GB/s, {:3.0} %",
        format!("{}{}", stored[0].name(), if format == Format::Auto { "*" } else { "" }),
        sorted[0],
        sorted[SAMPLES - 1],
        100.0 * rate / copy,
        100.0 * product_rate / copy,
    );
    known.push(stored);
    Ok(Some(json!({
        "system": system, "n": a.n_rows(), "nnz": a.nnz(), "devices": devices, "ranks": ranks, "format": format.name(),
        "method": solver.method().name(), "precond": setup.precond.name(), "precision": setup.precision.name(),
        "iterations": count, "microseconds": samples, "median": median,
        "bytes": bytes, "gigabytes_per_second": rate, "copy_gigabytes_per_second": copy, "part_of_copy": rate / copy,
        "product": {
            "microseconds": product, "bytes": product_bytes, "gigabytes_per_second": product_rate,
            "part_of_copy": product_rate / copy,
        },
    })))
}

/// What is checked out here, if that is known.
fn commit() -> Option<String> {
    let run = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output().ok()?;
    run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim().to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = parse()?;
    let (mut results, mut copies) = (Vec::new(), HashMap::new());
    for system in &args.systems {
        let a = Arc::new(build(system)?);
        for devices in &args.devices {
            let mut known = Vec::new();
            for &format in &args.formats {
                results.extend(measure((system, &a), devices, format, &args, &mut known, &mut copies)?);
            }
        }
    }
    let drivers: Vec<_> = list().devices.iter().map(|d| json!({"name": d.name, "driver": d.driver})).collect();
    let declive = env!("CARGO_PKG_VERSION");
    println!(
        "{:#}",
        json!({"version": 2, "declive": declive, "commit": commit(), "devices": drivers, "results": results})
    );
    Ok(())
}
