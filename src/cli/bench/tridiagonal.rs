//! `declive bench tridiagonal`: how fast tridiagonal systems are solved.

use std::num::NonZeroU32;

use declive::device::{Choice, Info, select};
use declive::experiments::block_tridiagonal::BlockCase;
use declive::experiments::tridiagonal::{Case, METHODS};
use declive::solve::Precision;
use declive::tridiagonal::{BlockShape, Layout, Shape};
use declive::{Error, bandwidth};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::tridiagonal::{Device, Entry, Report};
use crate::report::{distinct, in_flags};

/// Time batches of tridiagonal systems by each method, on each device and on the host
///
/// Each method solves the same diagonally dominant systems in double or single precision, and what it makes of them is compared with
/// the solutions, which are known. The time is that of the kernels, and with right-hand sides uploaded and solutions downloaded. A
/// method that takes no systems of this size is left out, and thomas on a device for a few long ones. The fastest of a device is kept: later
/// solvers of about as many systems, as large, take it by themselves.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How many systems [default: three batches, of 4096 x 1024, 65536 x 128 and 1 x 10000000 rows]
    #[arg(long, value_name = "N", requires = "size")]
    systems: Option<NonZeroU32>,

    /// Rows of each; of one system, if nothing else is said
    #[arg(long, value_name = "N")]
    size: Option<NonZeroU32>,

    /// Systems of blocks of so many rows, 2 to 8, in place of numbers, by elimination with blocks; five diagonals are blocks of 2
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u8).range(2..=8))]
    block: Option<u8>,

    /// How they lie in memory: contiguous or interleaved
    #[arg(long, default_value = Layout::Contiguous.name())]
    layout: Layout,

    /// Precision: f64 or f32
    #[arg(long, default_value = Precision::F64.name())]
    precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    devices: Choice,

    /// Measurements of each time, whose median is printed
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench tridiagonal
  declive bench tridiagonal --systems 65536 --size 128 --layout interleaved --devices gpu
  declive bench tridiagonal --systems 65536 --size 128 --block 4
  declive bench tridiagonal --size 100000000 --json";

/// Systems and their rows, if nothing is said: the first two of blocks.
const BATCHES: [[usize; 2]; 3] = [[4096, 1024], [65_536, 128], [1, 10_000_000]];

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    if args.precision == Precision::Mixed {
        return Err(Failure::usage("--precision mixed is for Krylov methods; tridiagonal systems are in f64 or f32"));
    }
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&args.devices, args.precision.needs_f64())?;
    let devices: Vec<Info> = distinct(selection.ranks.into_iter().flatten());
    let order = args.block.map_or(1, usize::from);
    let mut report = Report::new(args.repeat.into(), args.precision, (args.layout, order));
    report.notes.extend(selection.note.map(in_flags));
    for device in &devices {
        let _shown = screen.working(&format!("copying on {}", device.label()));
        let copy = bandwidth::of_device(device);
        let copy = copy.inspect_err(|error| report.notes.push(format!("copies could not be timed: {error}"))).ok();
        report.devices.push(Device::new(device, copy));
    }
    let batches = match args.size {
        Some(size) => vec![[args.systems.map_or(1, NonZeroU32::get) as usize, size.get() as usize]],
        None => BATCHES[..if args.block.is_some() { 2 } else { 3 }].to_vec(),
    };
    let mut exit = Exit::Success;
    for [systems, size] in batches {
        let shape = Shape::new(systems, size).with_layout(args.layout);
        let (repeat, to) = (args.repeat.into(), (screen, &mut report));
        let measured = match order {
            1 => measure(shape, args.precision, &devices, repeat, to),
            _ => measure_blocks((shape, order), args.precision, &devices, repeat, to),
        };
        if let Err(error @ Error::Usage(_)) = measured {
            return Err(error.into());
        } else if let Err(error) = measured {
            exit = error.kind().into();
            report.notes.push(in_flags(format!("{systems} systems of {size} rows: {error}")));
        }
    }
    if report.has_wrong() {
        report.notes.push("what a method made is not the solution: those rows say so".into());
        exit = declive::ErrorKind::Runtime.into();
    }
    print(&report, args.json)?;
    Ok(exit)
}

/// All methods on all devices, and on the host.
fn measure(
    shape: Shape,
    precision: Precision,
    devices: &[Info],
    repeat: usize,
    (screen, report): (Screen, &mut Report),
) -> Result<(), Error> {
    let batch = format!("{} systems of {} rows", shape.systems, shape.size);
    let case = {
        let _shown = screen.working(&batch);
        Case::new(shape, precision)?
    };
    for &method in METHODS[1] {
        let _shown = screen.working(&format!("{batch} by {method} on the host"));
        report.entries.push(Entry::new(shape, None, case.on_host(method, repeat)?));
    }
    for (place, device) in devices.iter().enumerate() {
        let mut found = Vec::new();
        for &method in METHODS[0] {
            let _shown = screen.working(&format!("{batch} by {method} on {}", device.label()));
            match case.on_device(device, method, repeat) {
                Ok(Some(measured)) => {
                    found.push(measured.clone());
                    let entry = Entry::new(shape, Some(&report.devices[place]), measured);
                    report.entries.push(entry);
                }
                Ok(None) => {}
                // a device that is too small is left out
                Err(error @ (Error::OutOfDeviceMemory { .. } | Error::TooManyElements { .. })) => {
                    report.notes.push(in_flags(format!("{batch} by {method}: {error}")));
                }
                Err(error) => return Err(error),
            }
        }
        case.keep_fastest(device, &found);
    }
    Ok(())
}

/// Systems of blocks on all devices, and on the host.
fn measure_blocks(
    (shape, order): (Shape, usize),
    precision: Precision,
    devices: &[Info],
    repeat: usize,
    (screen, report): (Screen, &mut Report),
) -> Result<(), Error> {
    let Shape { systems, size, layout, .. } = shape;
    if !size.is_multiple_of(order) {
        return Err(Error::Usage(format!(
            "--size {size} is no multiple of --block {order}: systems have whole blocks"
        )));
    }
    let batch = format!("{systems} systems of {size} rows in blocks of {order}");
    let case = {
        let _shown = screen.working(&batch);
        BlockCase::new(BlockShape::new(systems, size / order, order).with_layout(layout), precision)?
    };
    let _shown = screen.working(&format!("{batch} on the host"));
    report.entries.push(Entry::new(shape, None, case.on(None, repeat)?));
    for (place, device) in devices.iter().enumerate() {
        let _shown = screen.working(&format!("{batch} on {}", device.label()));
        match case.on(Some(device), repeat) {
            Ok(measured) => report.entries.push(Entry::new(shape, Some(&report.devices[place]), measured)),
            // a device that is too small is left out
            Err(error @ (Error::OutOfDeviceMemory { .. } | Error::TooManyElements { .. })) => {
                report.notes.push(in_flags(format!("{batch}: {error}")));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
