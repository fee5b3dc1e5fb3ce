//! `declive tune`: launch parameters for each kernel of each device, found by measurement.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use declive::device::{Choice, Info, Kind, select};
use declive::matrix::gallery::Spec;
use declive::matrix_market::Zeros;
use declive::solver::Precision;
use declive::tune::store::Store;
use declive::tune::{self, Search};
use declive::{Csr, Error};

use super::exit::Exit;
use super::failure::Failure;
use super::input::Source;
use super::interrupt;
use super::output::{Target, write_stdout};
use super::progress::Screen;
use crate::report::json;
use crate::report::tune::{Kept, Report};
use crate::report::tune_html;

/// Find how many work-groups, and how large ones, each kernel is fastest with
///
/// Every kernel is timed alone on each device, by the device's own clock, on a matrix of your own or on a 7-point operator.
/// Devices that are alike are measured once. With k devices that is done for the whole matrix, which a solve on one of them
/// has, and for the block of about 1/k of its rows that each has in a solve on all, if k is so large that the whole tells
/// nothing about it (3 or more).
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("system").args(["matrix", "generate", "order"])), after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File with the matrix to tune for: Matrix Market or .npz; - is standard input
    #[arg(value_name = "A.mtx")]
    matrix: Option<PathBuf>,

    /// Make the matrix instead of reading it, such as elasticity3d:30; 'declive generate --help' lists the problems
    #[arg(long, value_name = "PROBLEM")]
    generate: Option<Spec>,

    /// A 7-point operator with about so many rows [default: 10000000 for GPUs, 1000000 for CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    order: Option<u64>,

    /// Devices: auto, or a list of gpu, cpu, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value = "auto")]
    devices: Choice,

    /// Precision of matrix and vectors
    #[arg(long, default_value = Precision::F64.name(), value_parser = precisions())]
    precision: Precision,

    /// Which numbers and sizes of work-groups to try
    #[arg(long, default_value = Search::Refine.name(), value_parser = searches())]
    search: Search,

    /// File for a report with charts: one HTML page that needs nothing else
    #[arg(long, value_name = "out.html")]
    report: Option<PathBuf>,

    /// Keep nothing for later solves
    #[arg(long)]
    dry_run: bool,

    /// Print what is kept from former runs, and measure nothing
    #[arg(long, conflicts_with_all = ["system", "search", "report", "clear"])]
    show: bool,

    /// Forget what is kept from former runs, and measure nothing
    #[arg(long, conflicts_with_all = ["system", "search", "report"])]
    clear: bool,

    /// Print one JSON document with all measurements instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive tune
  declive tune A.mtx --devices 0 --report tuned.html
  declive tune A.mtx --devices 0,1,2,3    for a solve on one, and on four
  declive tune --order 1000000 --search exhaustive --json
  declive tune --show";

fn searches() -> impl TypedValueParser<Value = Search> {
    let values = Search::ALL.iter().map(|s| PossibleValue::new(s.name()).help(s.describe()));
    PossibleValuesParser::new(values)
        .map(|name| Search::ALL.iter().copied().find(|s| s.name() == name).unwrap_or_default())
}

fn precisions() -> impl TypedValueParser<Value = Precision> {
    let values = Precision::ALL.iter().map(|p| PossibleValue::new(p.name()).help(p.describe()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Precision>())
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let store = Store::open();
    if args.show || args.clear {
        let kept = Kept::new(store.list(), args.clear.then(|| store.clear()));
        let text = if args.json { json(&kept) } else { kept.to_string() };
        write_stdout(|out| out.write_all(text.as_bytes()))?;
        return Ok(Exit::Success);
    }
    let given = match (args.matrix, args.generate) {
        (_, Some(spec)) => Some(Source::Generated(spec)),
        (Some(path), None) => Some(Source::Input(path.into())),
        (None, None) => None,
    };
    let page = args.report.as_deref().map(Target::probe).transpose()?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let ranks = select(&args.devices, args.precision == Precision::F64)?.ranks;
    let devices = distinct(&ranks);
    if devices.is_empty() {
        let wanted = args.devices.to_string();
        let found = "only the host, whose threads launch no kernels".into();
        return Err(Error::NoDevice { wanted, found }.into());
    }
    let given = given.map(|source| load(&source, screen)).transpose()?;
    let mut report = Report::new();
    for Alike { device, ranks: own, indices } in devices {
        let made;
        let (a, name) = match &given {
            Some((a, name)) => (a, name),
            None => {
                let usual = if device.kind == Kind::Gpu { 10_000_000 } else { 1_000_000 };
                made = load(&grid(args.order.unwrap_or(usual))?, screen)?;
                (&made.0, &made.1)
            }
        };
        let blocks = tune::ranks_to_tune(a, ranks.len(), &own).into_iter().map(|k| (k, ranks.len()));
        let mut work: VecDeque<(usize, usize)> = std::iter::once((0, 1)).chain(blocks).collect();
        while let Some((k, of)) = work.pop_front() {
            let what = if of == 1 { String::new() } else { format!(" for one of {of} blocks") };
            let bar = screen.steps(&format!("tuning {}{what}", device.name));
            let progress = |done, all| bar.update(done, all);
            let found = match tune::rank(&device, a, (k, of), name, args.precision, args.search, &progress) {
                // too large for one device: that may be why there are several
                Err(e @ Error::OutOfDeviceMemory { .. }) if of < ranks.len() => {
                    drop(bar);
                    log::warn!("the whole matrix is left out: {e}");
                    if work.is_empty() {
                        work.push_back((own[own.len() / 2], ranks.len()));
                    }
                    continue;
                }
                found => found?,
            };
            drop(bar);
            if !args.dry_run {
                tune::keep(&store, &device, &found);
            }
            report.add(found, indices.clone());
        }
    }
    let text = if args.json { json(&report) } else { report.to_string() };
    write_stdout(|out| out.write_all(text.as_bytes()))?;
    if let Some(page) = page {
        page.write(|out| out.write_all(tune_html::page(&report.found(), &[]).as_bytes()))?;
    }
    Ok(Exit::Success)
}

/// Devices that are alike.
struct Alike {
    /// The first of them.
    device: Info,
    /// The ranks that they have in a solve.
    ranks: Vec<usize>,
    /// Their numbers.
    indices: Vec<usize>,
}

/// The kinds of devices that ranks have, in order.
fn distinct(ranks: &[Option<Info>]) -> Vec<Alike> {
    let facts = |d: &Info| (d.name.clone(), d.platform.clone(), d.driver.clone(), d.compute_units, d.memory_bytes);
    let mut kinds: Vec<Alike> = Vec::new();
    for (rank, device) in ranks.iter().enumerate().filter_map(|(rank, device)| Some((rank, device.as_ref()?))) {
        match kinds.iter_mut().find(|kind| facts(&kind.device) == facts(device)) {
            Some(kind) => {
                kind.ranks.push(rank);
                if !kind.indices.contains(&device.index) {
                    kind.indices.push(device.index);
                }
            }
            None => kinds.push(Alike { device: device.clone(), ranks: vec![rank], indices: vec![device.index] }),
        }
    }
    kinds
}

/// The 7-point operator on a cube of about so many points.
fn grid(order: u64) -> Result<Source, Failure> {
    let side = (order as f64).cbrt().round().max(1.0) as usize;
    Ok(Source::Generated(format!("poisson3d:{side}").parse()?))
}

fn load(source: &Source, screen: Screen) -> Result<(Csr, String), Failure> {
    let name = source.to_string();
    let a = source.real(source.load(Zeros::Keep, screen)?.a)?;
    if a.n_rows() != a.n_cols() {
        return Err(Failure::about(source, Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() }));
    }
    Ok((a, name))
}
