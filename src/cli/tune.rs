//! `declive tune`: launch parameters for each kernel of each device, found by measurement.

use std::collections::VecDeque;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use declive::device::{Choice, Kind, select};
use declive::matrix::gallery::Spec;
use declive::matrix_market::Zeros;
use declive::solver::{Method, Precision, Setup, Tune};
use declive::tune::store::Store;
use declive::tune::{self, Experiment, Search};
use declive::{Csr, Error};

use super::exit::Exit;
use super::experiments::{Series, Team, distinct};
use super::failure::Failure;
use super::input::{Input, Source};
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
/// nothing about it (3 or more). A report has, too, where the time of 100 iterations then goes.
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
    let page = args.report.as_deref().map(|path| page(path, given.as_ref())).transpose()?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let ranks = select(&args.devices, args.precision == Precision::F64)?.ranks;
    let mut kinds = distinct(&ranks);
    if ranks.iter().all(Option::is_none) {
        let wanted = args.devices.to_string();
        let found = "only the host, whose threads launch no kernels".into();
        return Err(Error::NoDevice { wanted, found }.into());
    }
    let given = given.map(|source| load(&source, screen)).transpose()?.map(System::from);
    let mut report = Report::new();
    let mut tuned: Vec<(Team, System)> = Vec::new();
    for kind in &mut kinds {
        let Some(device) = &kind.device else { continue };
        let system = match &given {
            Some(system) => system.clone(),
            None => {
                let usual = if device.kind == Kind::Gpu { 10_000_000 } else { 1_000_000 };
                let source = grid(args.order.unwrap_or(usual))?;
                let same = tuned.iter().find(|(_, system)| system.name == source.to_string());
                match same {
                    Some((_, system)) => system.clone(),
                    None => load(&source, screen)?.into(),
                }
            }
        };
        let System { a, name } = &system;
        let blocks = tune::ranks_to_tune(a, ranks.len(), &kind.ranks).into_iter().map(|k| (k, ranks.len()));
        let mut work: VecDeque<(usize, usize)> = std::iter::once((0, 1)).chain(blocks).collect();
        while let Some((k, of)) = work.pop_front() {
            let what = if of == 1 { String::new() } else { format!(" for one of {of} blocks") };
            let bar = screen.steps(&format!("tuning {}{what}", device.name));
            let progress = |done, all| bar.update(done, all);
            let found = match tune::rank(device, a, (k, of), name, args.precision, args.search, &progress) {
                // too large for one device: that may be why there are several
                Err(e @ Error::OutOfDeviceMemory { .. }) if of < ranks.len() => {
                    drop(bar);
                    log::warn!("the whole matrix is left out: {e}");
                    if work.is_empty() {
                        work.push_back((kind.ranks[kind.ranks.len() / 2], ranks.len()));
                    }
                    continue;
                }
                found => found?,
            };
            drop(bar);
            if !args.dry_run {
                tune::keep(&store, device, &found);
            }
            kind.copy = Some(found.limit_bytes_per_second);
            report.add(found, kind.indices.clone());
        }
        tuned.push((Team::alone(kind), system));
    }
    let text = if args.json { json(&report) } else { report.to_string() };
    write_stdout(|out| out.write_all(text.as_bytes()))?;
    if let Some(page) = page {
        let (experiments, mut notes) = experiments(tuned, Team::all(&ranks, &kinds), args.precision, screen);
        if args.dry_run {
            notes.push("iterations ran without what was found here, as --dry-run keeps nothing".into());
        }
        for note in &notes {
            let _ = writeln!(stderr(), "note: {note}");
        }
        page.write(|out| out.write_all(tune_html::page(&report.found(), &experiments, &notes).as_bytes()))?;
    }
    Ok(Exit::Success)
}

/// A matrix, and what it is.
#[derive(Clone)]
struct System {
    a: Arc<Csr>,
    name: String,
}

impl From<(Csr, String)> for System {
    fn from((a, name): (Csr, String)) -> Self {
        Self { a: Arc::new(a), name }
    }
}

/// Iterations of each device alone, with the matrix that it was tuned for, and of all together with the largest; and why
/// some could not be timed.
fn experiments(
    mut teams: Vec<(Team, System)>,
    all: Option<Team>,
    precision: Precision,
    screen: Screen,
) -> (Vec<Experiment>, Vec<String>) {
    let largest = teams.iter().map(|(_, system)| system.clone()).max_by_key(|system| system.a.n_rows());
    teams.extend(all.zip(largest));
    let (mut experiments, mut notes) = (Vec::new(), Vec::new());
    for method in [Method::CgClassic, Method::Cg] {
        for (team, system) in &teams {
            let setup = Setup { precision, tune: Tune::Stored, ..Setup::default() };
            let series = Series { a: &system.a, matrix: &system.name, setup, iterations: 100, repeat: 3 };
            match series.run(method, team, screen) {
                Ok(experiment) => experiments.push(experiment),
                Err(error) => notes.push(format!("{method} on {} is left out: {error}", team.label)),
            }
        }
    }
    (experiments, notes)
}

/// The file of a report, which is neither the matrix's nor standard output.
pub(super) fn page(path: &Path, source: Option<&Source>) -> Result<Target, Failure> {
    let target = Target::probe(path)?;
    if target == Target::Stdout {
        return Err(Failure::usage("--report needs a file; standard output is for the report in words"));
    }
    match source {
        Some(Source::Input(Input::File(input))) if target.is_file(input) => {
            Err(Failure::usage(format!("--report would overwrite {}, which is an input", input.display())))
        }
        _ => Ok(target),
    }
}

/// The 7-point operator on a cube of about so many points.
pub(super) fn grid(order: u64) -> Result<Source, Failure> {
    let side = (order as f64).cbrt().round().max(1.0) as usize;
    Ok(Source::Generated(format!("poisson3d:{side}").parse()?))
}

/// Reads or makes a matrix, which has to be square and real; and its name.
pub(super) fn load(source: &Source, screen: Screen) -> Result<(Csr, String), Failure> {
    let name = source.to_string();
    let a = source.real(source.load(Zeros::Keep, screen)?.a)?;
    if a.n_rows() != a.n_cols() {
        return Err(Failure::about(source, Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() }));
    }
    Ok((a, name))
}
