//! `declive bench blas`: how fast products and factorisations of dense matrices are.

use std::num::NonZeroU32;

use declive::device::{Choice, Info, select};
use declive::experiments::blas;
use declive::solve::Precision;
use declive::{Error, ErrorKind, bandwidth};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::blas::{Device, Factorised, Host, Report};
use crate::report::{distinct, in_flags};

/// Time products and factorisations of dense matrices, and what is done with vectors, on each device, and the host's own beside them
///
/// The product is C − A B with 128 columns of A, as in a factorisation: a work-item for each element without local memory, tiles with
/// an element for each work-item, and the tiles that 'declive tune' found, or the usual ones. Vector updates, inner products and prefix sums have
/// as many elements as the matrix. Then LU, Cholesky and LDLᵀ, on each
/// device alone and on all together.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Rows and columns
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1.., default_value = "1024")]
    size: Vec<NonZeroU32>,

    /// Precision of the elements: f64 or f32
    #[arg(long, value_name = "NAME", default_value = Precision::F64.name())]
    precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    devices: Choice,

    /// Time all tiles that are worth a trial
    #[arg(long)]
    all_tiles: bool,

    /// Columns of a block of factorisations on devices, from 1 to 256
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=256))]
    block: u16,

    /// No factorisations
    #[arg(long)]
    products_only: bool,

    /// Measurements of each time: the median of products, and the best of factorisations, of which there are none any more
    /// after five seconds, is printed
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench blas
  declive bench blas --size 8192 --devices gpu --all-tiles";

/// The most elements of vectors: 2 GB in double precision.
const MOST_ELEMENTS: usize = 1 << 28;

/// The largest order that the host factorises beside devices.
const MOST_ON_HOST: usize = 20_000;

/// The elements of vectors beside matrices of order n.
fn elements(n: usize) -> usize {
    n.saturating_mul(n).min(MOST_ELEMENTS)
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    interrupt::kill_cleanly();
    let Args { precision, .. } = args;
    if precision == Precision::Mixed {
        return Err(Error::Usage("--precision mixed is for solves; products are in f64 or f32".into()).into());
    }
    let screen = Screen::new(false);
    let selection = select(&args.devices, precision.needs_f64())?;
    let devices: Vec<Info> = distinct(selection.ranks.into_iter().flatten());
    let mut report = Report::new(args.repeat.into(), precision);
    report.notes.extend(selection.note.into_iter().map(in_flags));
    let mut exit = Exit::Success;
    let repeat = usize::from(args.repeat);
    for n in args.size.iter().map(|n| n.get() as usize) {
        let host = {
            let _shown = screen.working(&format!("the product of order {n} on the host"));
            let vectors = blas::host_vectors(elements(n), precision, repeat);
            let vectors = report.or_note(vectors, &format!("vectors beside order {n} on the host"));
            Host { n, product: blas::host_product(n, precision, repeat), vectors }
        };
        if !args.products_only {
            let together = (devices.len() > 1).then(|| devices.clone());
            let host = (n <= MOST_ON_HOST || devices.is_empty()).then(Vec::new);
            if host.is_none() {
                report.notes.push(format!("factorisations of order {n} on the host are left out: they take minutes"));
            }
            let teams = host.into_iter().chain(devices.iter().map(|one| vec![one.clone()])).chain(together);
            for team in teams {
                let label = team.iter().map(Info::label).collect::<Vec<_>>().join(", ");
                let _shown = screen.working(&format!("factorisations of order {n} on {label}"));
                match blas::factorisations(&team, n, precision, args.block.into(), repeat) {
                    Ok(found) => report.factorisations.extend(found.into_iter().map(|one| Factorised::new(n, one))),
                    Err(error) => {
                        if !matches!(error, Error::OutOfDeviceMemory { .. }) {
                            exit = ErrorKind::Runtime.into();
                        }
                        report
                            .notes
                            .push(in_flags(format!("factorisations of order {n} on {label} are left out: {error}")));
                    }
                }
            }
        }
        for device in &devices {
            let label = device.label();
            let _shown = screen.working(&format!("products of order {n} on {label}"));
            let copy = bandwidth::of_device(device);
            let products = blas::products(device, n, precision, args.all_tiles, repeat);
            match products.and_then(|products| Ok((products, copy?))) {
                Ok((products, copy)) => {
                    let vectors = blas::on_vectors(device, elements(n), precision, repeat);
                    let vectors = report.or_note(vectors, &format!("vectors beside order {n} on {label}"));
                    if vectors.iter().any(|one| !one.is_right) {
                        exit = ErrorKind::Runtime.into();
                    }
                    report.devices.push(Device::new(&label, n, copy, products, vectors));
                }
                Err(error) => {
                    if !matches!(error, Error::OutOfDeviceMemory { .. }) {
                        exit = ErrorKind::Runtime.into();
                    }
                    report.notes.push(in_flags(format!("order {n} on {label} is left out: {error}")));
                }
            }
        }
        report.hosts.push(host);
    }
    print(&report, args.json)?;
    Ok(exit)
}
