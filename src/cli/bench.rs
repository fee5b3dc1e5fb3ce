//! `declive bench`: where the time of an iteration goes, on each device alone and on all together.

mod blas;
mod exchange;
mod fem;
mod precond;
mod primitives;
mod scaling;
mod study;
mod tridiagonal;

use std::sync::Arc;

use declive::device::{Kind, select};
use declive::solve::{Method, Reorder, Setup, Tune};
use declive::{Error, ErrorKind, bandwidth};

use super::exit::Exit;
use super::experiments::{Alike, Series, Team, kinds};
use super::failure::Failure;
use super::interrupt;
use super::measured::{Measured, Page, grid, load};
use super::output::print;
use super::progress::Screen;
use crate::report::bench::{DeviceKind, Entry, Matrix, Report};
use crate::report::{distinct, in_flags, tune_html};

/// Time iterations kernel by kernel, on each device alone and on all together
///
/// Each method makes a fixed number of iterations, however small the residual. The report has the time of each kernel,
/// the overhead beside them, and the total. Devices that are alike are measured once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    measured: Measured,

    #[command(flatten)]
    page: Page,

    /// How many iterations
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    iterations: u64,

    /// Krylov methods: a list of those that a solve has
    #[arg(long, value_name = "LIST", default_value = "cg-classic,cg", value_delimiter = ',', value_parser = by_name)]
    methods: Vec<Method>,

    /// Launch parameters of the kernels, as for a solve: off, stored, quick or full
    #[arg(long, default_value = Tune::Stored.name())]
    tune: Tune,

    /// Runs whose median is the total
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

/// What else there is to measure.
#[derive(Debug, clap::Subcommand)]
enum What {
    Blas(blas::Args),
    Exchange(exchange::Args),
    Fem(fem::Args),
    Precond(precond::Args),
    Primitives(primitives::Args),
    Scaling(scaling::Args),
    Study(study::Args),
    Tridiagonal(tridiagonal::Args),
}

const EXAMPLES: &str = "\
Examples:
  declive bench
  declive bench --order 1000000 --devices gpu --report bench.html
  declive bench A.mtx --methods cg --devices 0,1 --json
  declive bench exchange --devices all
  declive bench fem --devices gpu
  declive bench precond A.mtx --devices gpu
  declive bench primitives --devices gpu
  declive bench tridiagonal --devices gpu
  declive bench scaling
  declive bench study lu --devices gpu
  declive bench blas --devices gpu";

/// Rows of the matrix, unless it is given: as in Bueno 2013, section 4.4.
const ORDER: u64 = 10_000_000;

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    match args.what {
        Some(What::Blas(args)) => return blas::run(args),
        Some(What::Exchange(args)) => return exchange::run(args),
        Some(What::Fem(args)) => return fem::run(args),
        Some(What::Precond(args)) => return precond::run(args),
        Some(What::Primitives(args)) => return primitives::run(args),
        Some(What::Scaling(args)) => return scaling::run(args),
        Some(What::Study(args)) => return study::run(args),
        Some(What::Tridiagonal(args)) => return tridiagonal::run(args),
        None => {}
    }
    let Args { measured, page, .. } = args;
    let given = measured.source();
    let source = given.map_or_else(|| grid(measured.order.unwrap_or(ORDER)), Ok)?;
    let page = page.target(Some(&source))?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&measured.devices, measured.precision.needs_f64())?;
    let mut notes: Vec<String> = selection.note.into_iter().map(in_flags).collect();
    let (a, name) = load(&source, screen)?;
    let matrix = Matrix { source: name.clone(), rows: a.n_rows(), nnz: a.nnz() };

    let mut kinds = kinds(&selection.ranks);
    for kind in &mut kinds {
        kind.copy = copy(kind, screen, &mut notes);
    }
    let teams: Vec<Team> = kinds.iter().map(Team::alone).chain(Team::all(&selection.ranks, &kinds)).collect();
    let methods = distinct(args.methods);
    let series = Series {
        a: &Arc::new(a),
        matrix: &name,
        setup: Setup::default().with_precision(measured.precision).with_tune(args.tune).with_reorder(Reorder::None),
        iterations: args.iterations,
        repeat: args.repeat.into(),
    };
    let mut exit = Exit::Success;
    let mut experiments = Vec::new();
    let mut first_error = None;
    for (method, team) in methods.iter().flat_map(|method| teams.iter().map(move |team| (*method, team))) {
        match series.run(method, team, screen) {
            Ok(experiment) => experiments.push((team.label.clone(), experiment)),
            Err(error @ Error::Usage(_)) => return Err(error.into()),
            Err(error) if error.kind() == ErrorKind::Input => return Err(Failure::about(&source, error)),
            Err(error) => {
                // a device that is too small is left out; the others are still worth knowing if one fails
                if !matches!(error, Error::OutOfDeviceMemory { .. } | Error::TooManyElements { .. }) {
                    exit = error.kind().into();
                }
                notes.push(in_flags(format!("{method} on {} is left out: {error}", team.label)));
                first_error.get_or_insert(error);
            }
        }
    }
    if experiments.is_empty()
        && let Some(error) = first_error
    {
        return Err(error.into());
    }
    let report = Report {
        matrix,
        precision: measured.precision,
        tune: args.tune,
        devices: measured.devices.to_string(),
        iterations: args.iterations,
        repeat: args.repeat.into(),
        kinds: kinds.iter().map(described).collect(),
        experiments: Entry::all(experiments),
        notes,
    };
    print(&report, measured.json)?;
    if let Some(page) = page {
        let html = tune_html::page(&[], &report.experiments(), &report.notes);
        page.write(|out| out.write_all(html.as_bytes()))?;
    }
    Ok(exit)
}

/// A method of this name: one that iterations can be timed of.
fn by_name(name: &str) -> Result<Method, String> {
    match name.parse::<Method>() {
        Ok(method) if !Method::FORCED.contains(&method) => {
            let names: Vec<_> = Method::FORCED.iter().map(|method| method.name()).collect();
            let why = if method == Method::Auto { "is one of them" } else { "has no iterations" };
            Err(format!("{method} {why}; name those to be timed: {}", names.join(", ")))
        }
        other => other.map_err(|error| error.to_string()),
    }
}

/// How fast a device copies, or a note.
fn copy(kind: &Alike, screen: Screen, notes: &mut Vec<String>) -> Option<f64> {
    let label = kind.label();
    let _shown = screen.working(&format!("copying on {label}"));
    let copy = match &kind.device {
        Some(device) => bandwidth::of_device(device),
        None => Ok(bandwidth::of_host()),
    };
    copy.inspect_err(|error| notes.push(in_flags(format!("copies on {label} could not be timed: {error}")))).ok()
}

/// A kind of device for the report.
fn described(kind: &Alike) -> DeviceKind {
    let device = kind.device.as_ref();
    DeviceKind {
        label: kind.label(),
        name: device.map_or_else(|| "this program's own threads".into(), |device| device.name.clone()),
        kind: device.map_or(Kind::Host, |device| device.kind).to_string(),
        indices: kind.indices.clone(),
        copy_gigabytes_per_second: kind.copy.map(|rate| 1e-9 * rate),
    }
}
