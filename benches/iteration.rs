//! Time of an iteration: `cargo bench`, or `cargo bench -- poisson3d:100 --devices 0,host --method cg-classic`.
//!
//! Solves each system five times with a fixed number of iterations, on each device alone and on all together, and prints
//! one JSON document: every sample, the median, bytes by the byte rule, and the part of the copy bandwidth measured in
//! the same run.

use std::error::Error;

use declive::device::{Choice, Kind, list};
use declive::matrix::gallery::Spec;
use declive::solver::{Method, Precision, RankInfo};
use declive::{Control, Setup, Solver, Stop, bandwidth};
use serde_json::{Value, json};

const SAMPLES: usize = 5;

struct Args {
    systems: Vec<String>,
    devices: Vec<String>,
    setup: Setup,
    iterations: u64,
}

fn parse() -> Result<Args, Box<dyn Error>> {
    let mut args = Args { systems: Vec::new(), devices: Vec::new(), setup: Setup::default(), iterations: 100 };
    let mut words = std::env::args().skip(1).filter(|w| w != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--devices" => args.devices.push(value()?),
            "--method" => args.setup.method = value()?.parse::<Method>()?,
            "--precond" => args.setup.precond = value()?.parse()?,
            "--precision" => args.setup.precision = value()?.parse::<Precision>()?,
            "--iterations" => args.iterations = value()?.parse()?,
            option if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            system => args.systems.push(system.into()),
        }
    }
    if args.systems.is_empty() {
        args.systems = ["poisson3d:64", "poisson3d:100"].map(String::from).to_vec();
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

/// Bytes a second that the ranks of `solver` copy, all together.
fn copy_bandwidth(solver: &Solver) -> declive::Result<f64> {
    let devices = list().devices;
    let of = |rank: &RankInfo| match (rank.kind, rank.index) {
        (Kind::Host, _) | (_, None) => Ok(bandwidth::of_host()),
        (_, Some(index)) => bandwidth::of_device(&devices[index]),
    };
    solver.ranks().iter().map(of).sum()
}

fn measure(system: &str, devices: &str, args: &Args) -> Result<Value, Box<dyn Error>> {
    let a = system.parse::<Spec>()?.build()?;
    let (n, nnz) = (a.n_rows(), a.nnz());
    let setup = Setup { devices: devices.parse::<Choice>()?, ..args.setup.clone() };
    let mut solver = Solver::new(a, &setup)?;
    let stop = Stop { rtol: 0.0, max_iters: Some(args.iterations), ..Stop::default() };
    let b = vec![1.0; n];
    let mut solve = || solver.solve(&b, None, &stop, Control::default());
    solve()?; // warm up
    let (mut samples, mut bytes) = (Vec::new(), 0);
    for _ in 0..SAMPLES {
        let outcome = solve()?;
        samples.push(outcome.solve.as_secs_f64() * 1e6 / outcome.iterations as f64);
        bytes = outcome.bytes_per_iteration;
    }
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[SAMPLES / 2];
    let (rate, copy) = (bytes as f64 / median / 1e3, copy_bandwidth(&solver)? / 1e9);
    eprintln!(
        "{system:16} {devices:8} {:10} {median:9.1} µs an iteration ({:.1} to {:.1}), {rate:7.1} GB/s, {:.0} % of a copy",
        setup.method.name(),
        sorted[0],
        sorted[SAMPLES - 1],
        100.0 * rate / copy
    );
    let ranks: Vec<_> = solver.ranks().iter().map(|r| r.device.clone()).collect();
    Ok(json!({
        "system": system, "n": n, "nnz": nnz, "devices": devices, "ranks": ranks,
        "method": setup.method.name(), "precond": setup.precond.name(), "precision": setup.precision.name(),
        "iterations": args.iterations, "microseconds": samples, "median": median,
        "bytes": bytes, "gigabytes_per_second": rate, "copy_gigabytes_per_second": copy,
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = parse()?;
    let mut results = Vec::new();
    for system in &args.systems {
        for devices in &args.devices {
            results.push(measure(system, devices, &args)?);
        }
    }
    let drivers: Vec<_> = list().devices.iter().map(|d| json!({"name": d.name, "driver": d.driver})).collect();
    println!(
        "{:#}",
        json!({"version": 1, "declive": env!("CARGO_PKG_VERSION"), "devices": drivers, "results": results})
    );
    Ok(())
}
