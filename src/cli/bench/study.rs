//! `declive bench study`: what makes methods fast, as tables and plots.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::PathBuf;

use declive::device::{Choice, Info, select};
use declive::experiments::studies::{self, Run};
use declive::solve::Precision;

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::output::{Target, print};
use crate::cli::progress::Screen;
use crate::report::study::Report;
use crate::report::{distinct, in_flags, study_svg};

/// Repeat the studies of a course on numerical methods on GPUs, as tables and plots
///
/// Each is one of F. Alfaro Vigo, G. Rossetto, "Programação paralela em GPU para métodos numéricos", SBMAC 2016, with this program's
/// methods on these devices.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Cyclic reduction, parallel or not, and Thomas' algorithm, over the rows and the number of systems
    ///
    /// Million rows a second of thomas, cr, pcr and hybrid, without transfers, and how many times that is the rate of thomas by all threads of
    /// the host. Batches of more than 10⁹ bytes are left out, and methods where they take no systems of a size.
    Tridiagonal {
        /// Rows of a system [default: powers of two from 32 to 2048]
        #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1..)]
        size: Vec<NonZeroU32>,

        /// Numbers of systems, with a table for each [default: 32,512,1024,16384,32768]
        #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1..)]
        systems: Vec<NonZeroU32>,

        #[command(flatten)]
        common: Common,
    },
    /// LU over the order of the matrix, by tiles of the product and by columns of a block
    ///
    /// GFLOP/s of the factorisation, without transfers. Tiles are those with an element for each work-item, of 8 x 8, 16 x 16 and 32 x 32, on
    /// GPUs; those that 'declive tune' found, or the usual ones; and three others. Then blocks of 32, 64, 128 and 256 columns. Beside them
    /// the host's own threads.
    Lu {
        /// Orders [default: powers of two from 64 to 4096]
        #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1..)]
        size: Vec<NonZeroU32>,

        #[command(flatten)]
        common: Common,
    },
    /// Finite differences in the time domain over the side of a square, by work-items of a group
    ///
    /// Million cells a second in two dimensions, TE, between walls and with absorbing layers of 25 cells, in groups of 64 to 1024 work-items, as
    /// far as a device takes them. Beside them the host's own threads.
    Fdtd {
        /// Cells along a side [default: 300,900,1500,2100,3000,4500,6900]
        #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1..)]
        size: Vec<NonZeroU32>,

        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Precision: f64 or f32
    #[arg(long, default_value = Precision::F64.name())]
    precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    devices: Choice,

    /// Measurements of each number: the median counts, of lu the best
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,

    /// File for the same as a plot: an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench study tridiagonal --devices gpu --svg tridiagonal.svg
  declive bench study lu --size 1024,4096,16384
  declive bench study fdtd --precision f32 --json";

const ROWS: [usize; 7] = [32, 64, 128, 256, 512, 1024, 2048];
const SYSTEMS: [usize; 5] = [32, 512, 1024, 16_384, 32_768];
const ORDERS: [usize; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
const SIDES: [usize; 7] = [300, 900, 1500, 2100, 3000, 4500, 6900];

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let common = match &args.what {
        What::Tridiagonal { common, .. } | What::Lu { common, .. } | What::Fdtd { common, .. } => common,
    };
    let &Common { precision, repeat, .. } = common;
    if precision == Precision::Mixed {
        return Err(Failure::usage("--precision mixed is for solves; studies are in f64 or f32"));
    }
    let target = common.svg.as_deref().map(Target::probe).transpose()?;
    if target == Some(Target::Stdout) {
        return Err(Failure::usage("--svg needs a file; standard output is for the tables"));
    }
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&common.devices, precision.needs_f64())?;
    let devices: Vec<Info> = distinct(selection.ranks.into_iter().flatten());
    let shown = RefCell::new(None);
    let progress = |what: &str| {
        drop(shown.take()); // one at a time
        log::info!("{what}");
        shown.replace(Some(screen.working(what)));
    };
    let run = Run::new(precision, repeat.into(), &progress);
    let (study, title, counts, mut found) = match &args.what {
        What::Tridiagonal { size, systems, .. } => {
            let found = studies::tridiagonal(&devices, &list(systems, &SYSTEMS), &list(size, &ROWS), run);
            ("tridiagonal", "Tridiagonal systems by elimination and reduction", "median", found)
        }
        What::Lu { size, .. } => {
            ("lu", "LU by tiles and blocks", "best", studies::lu(&devices, &list(size, &ORDERS), run))
        }
        What::Fdtd { size, .. } => {
            let found = studies::fdtd(&devices, &list(size, &SIDES), run);
            ("fdtd", "Finite differences in the time domain by sizes of groups", "median", found)
        }
    };
    drop(shown.take());
    found.notes = selection.note.into_iter().chain(found.notes).map(in_flags).collect();
    let exit = found.failure.map_or(Exit::Success, Exit::from);
    let report = Report { study, title, precision, repeat: repeat.into(), counts, found };
    print(&report, common.json)?;
    if let Some(target) = target {
        target.write(|out| out.write_all(study_svg::picture(&report).as_bytes()))?;
    }
    Ok(exit)
}

/// What was asked for, or what is usual.
fn list(given: &[NonZeroU32], usual: &[usize]) -> Vec<usize> {
    if given.is_empty() { usual.to_vec() } else { given.iter().map(|n| n.get() as usize).collect() }
}
