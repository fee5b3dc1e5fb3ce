//! `declive bench exchange`: what ranks take to synchronise, by each model of exchange.

use std::num::NonZeroUsize;
use std::sync::Arc;

use declive::device::{Choice, Info, Pick, select};
use declive::experiments::elements::{Case, Way};
use declive::experiments::exchange::Synchronization;
use declive::experiments::live;
use declive::fem::Cell;
use declive::solve::{Exchange, Precision, Tune};
use declive::{Error, ErrorKind};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::measured::{Measured, grid, load};
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::bench::Matrix;
use crate::report::exchange::{Entry, Report, Running};
use crate::report::{distinct, in_flags};

/// Time sums and halos between devices by each model of exchange, and a solve stage by stage
///
/// For each model and number of devices: sums over the ranks of 1, 2 and 4 numbers; halos of several sizes, side by side in
/// memory or not; and the stages of a solve: preparation, input, an exchange of the system's own halo, a product, an
/// iteration, all iterations. Devices are taken in the order of --devices; a model that they don't have is left out. With live, what
/// is exchanged outside of iterations goes by the host, so that only its solve is timed.
///
/// With --capacitor, the stages of iterations by finite elements, too: adjacency, boundary, input, product and solver.
///
/// Then, whatever the model, how soon a running kernel answers the host, and sums over kernels that run meanwhile: what devices can do
/// without the host's calls.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    measured: Measured,

    /// Models of exchange: a list of those that a solve has
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "live,host-staged,host-copied,shared-context"
    )]
    models: Vec<Exchange>,

    /// How many of the devices, such as 1,2,4 [default: each number from 1 to all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    counts: Vec<NonZeroUsize>,

    /// Elements from each neighbour
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,1000,50000,1000000")]
    sizes: Vec<NonZeroUsize>,

    /// The system of a capacitor of two plates with N cells across its gap, in triangles of three nodes; solved by elements, too, in five stages
    #[arg(long, value_name = "N", conflicts_with = "system")]
    capacitor: Option<NonZeroUsize>,

    /// How many iterations a solve has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    iterations: u64,

    /// Launch parameters of the kernels, as for a solve: off or stored
    #[arg(long, default_value = Tune::Stored.name())]
    tune: Tune,

    /// Measurements of each time, whose median is printed
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

const EXAMPLES: &str = "\
Examples:
  declive bench exchange
  declive bench exchange A.mtx --devices 0,1,2,3 --counts 2,4 --json
  declive bench exchange --order 1000000 --models host-staged,shared-context --sizes 46225
  declive bench exchange --capacitor 4 --devices all";

/// The order of the system, if nothing is said of it.
const ORDER: u64 = 1_000_000;

/// Numbers of a sum.
const VALUES: [usize; 3] = [1, 2, 4];

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let Args { measured, .. } = args;
    if measured.precision == Precision::Mixed {
        return Err(Failure::usage("--precision is f64 or f32 here: messages are of one or the other"));
    }
    if !matches!(args.tune, Tune::Off | Tune::Stored) {
        return Err(Failure::usage("--tune is off or stored here, so that nothing is measured meanwhile"));
    }
    let source = measured.source().map_or_else(|| grid(measured.order.unwrap_or(ORDER)), Ok)?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&measured.devices, measured.precision.needs_f64())?;
    let devices = selection.ranks;
    let counts = counts(&args.counts, devices.len())?;
    let case =
        args.capacitor.map(|across| Case::capacitor(Cell::Triangle3, across.get(), measured.precision)).transpose()?;
    let (a, name) = match (&case, args.capacitor) {
        (Some(case), Some(across)) => (case.matrix()?, format!("capacitor of {across} cells across the gap")),
        _ => load(&source, screen)?,
    };
    let matrix = Matrix { source: name, rows: a.n_rows(), nnz: a.nnz() };
    let a = Arc::new(a);

    let mut notes: Vec<String> = selection.note.into_iter().map(in_flags).collect();
    if counts == [1] {
        let how = "--devices lists more: all, 0,host, or 0,0 for two ranks of a device";
        notes.push(format!("a device alone has nothing to exchange; {how}"));
    }
    let mut entries = Vec::new();
    let mut first_error = None;
    let models = distinct(args.models);
    for &model in &models {
        for &count in &counts {
            // alone, there is nothing to exchange
            if count == 1 && model != models[0] {
                continue;
            }
            let set = &devices[..count];
            let what = format!("{model} on {count}");
            let bar = screen.steps(&what);
            let ranks = Synchronization::new(set, model, measured.precision, args.tune, args.repeat.into());
            let measure = || -> Result<Entry, Error> {
                let all = 2 + 2 * args.sizes.len();
                let mut entry = Entry::new(model, count, names(set));
                if count > 1 && !matches!(model, Exchange::Auto | Exchange::Live) {
                    entry.sums = ranks.sums(&VALUES)?;
                    bar.update(1, all);
                    for (k, size) in args.sizes.iter().enumerate() {
                        for scattered in [false, true] {
                            entry.halos.push(ranks.halos(size.get(), scattered)?);
                            bar.update(2 + 2 * k + usize::from(scattered), all);
                        }
                    }
                }
                entry.stages = Some(ranks.stages(&a, args.iterations)?);
                // kernels by elements don't exchange while they run
                let model = if count == 1 { Exchange::HostStaged } else { model };
                if let Some(case) = case.as_ref().filter(|_| model != Exchange::Live) {
                    entry.elements = Some(case.run(Way::ByNode, &chosen(set), model, args.iterations)?);
                }
                bar.update(all, all);
                Ok(entry)
            };
            match measure() {
                Ok(entry) => entries.push(entry),
                Err(error) if error.kind() == ErrorKind::Input && !matches!(error, Error::Usage(_)) => {
                    return Err(Failure::about(&source, error));
                }
                Err(error) => {
                    notes.push(in_flags(format!("{what} is left out: {error}")));
                    first_error.get_or_insert(error);
                }
            }
        }
    }
    let mut answers = Vec::new();
    for device in distinct(devices.iter().flatten().cloned()) {
        match live::answers(&device, args.repeat.into()) {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                notes.push(in_flags(format!("answers of {} are left out: {error}", device.label())));
                first_error.get_or_insert(error);
            }
        }
    }
    let mut running = Vec::new();
    for &ranks in counts.iter().filter(|&&count| count > 1) {
        let bar = screen.steps(&format!("running kernels on {ranks}"));
        bar.update(0, 1);
        match live::sums(&devices[..ranks], &VALUES, args.repeat.into()) {
            Ok(sums) => running.push(Running { ranks, sums }),
            Err(error) => {
                notes.push(in_flags(format!("sums over running kernels of {ranks} devices are left out: {error}")));
                // that kernels don't run side by side is a result
                if !matches!(error, Error::NotMet { .. }) {
                    first_error.get_or_insert(error);
                }
            }
        }
    }
    if entries.is_empty()
        && let Some(error) = first_error
    {
        return Err(error.into());
    }
    let exit = match first_error {
        Some(error) if error.kind() == ErrorKind::Runtime => error.kind().into(),
        _ => Exit::Success,
    };
    let report = Report {
        matrix,
        precision: measured.precision,
        devices: names(&devices),
        iterations: args.iterations,
        repeat: args.repeat.into(),
        entries,
        answers,
        running,
        notes,
    };
    print(&report, measured.json)?;
    Ok(exit)
}

/// `NVIDIA H200 (1)` or `host`, of each.
fn names(devices: &[Option<Info>]) -> Vec<String> {
    let name = |device: &Option<Info>| {
        device.as_ref().map_or_else(|| "host".into(), |device| format!("{} ({})", device.name, device.index))
    };
    devices.iter().map(name).collect()
}

/// These devices, as they are asked for.
fn chosen(devices: &[Option<Info>]) -> Choice {
    let pick = |device: &Option<Info>| device.as_ref().map_or(Pick::Host, |device| Pick::Index(device.index));
    Choice::List(devices.iter().map(pick).collect())
}

/// The numbers of devices that were asked for, in order.
fn counts(asked: &[NonZeroUsize], all: usize) -> Result<Vec<usize>, Failure> {
    if let Some(count) = asked.iter().find(|count| count.get() > all) {
        return Err(Failure::usage(format!("--counts {count}, but --devices are {all}: there is no more to take")));
    }
    let mut counts: Vec<usize> = asked.iter().map(|count| count.get()).collect();
    if counts.is_empty() {
        counts.extend(1..=all);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices() {
        let asked = |counts: &[usize]| counts.iter().map(|&k| NonZeroUsize::new(k).unwrap()).collect::<Vec<_>>();
        assert_eq!(counts(&[], 3).unwrap(), [1, 2, 3]);
        assert_eq!(counts(&asked(&[4, 2, 4]), 4).unwrap(), [2, 4]);
        assert!(counts(&asked(&[1, 5]), 4).is_err());
    }
}
