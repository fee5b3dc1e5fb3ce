//! `declive devices`: what there is to compute on.

use declive::bandwidth;
use declive::device::{Choice, list, select};

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::print;
use super::progress::Screen;
use crate::report::devices::Report;

/// List the devices, and which of them a solve would use
///
/// The numbers are those that `declive solve --devices 0,2` takes. Without an OpenCL runtime only the host is left;
/// that is no error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  declive devices\n  declive devices --measure --json")]
pub(crate) struct Args {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,

    /// Measure how fast each device, and the host, copies memory; takes some seconds
    #[arg(long)]
    measure: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    interrupt::kill_cleanly();
    let listing = list();
    let mut report = Report::new(&listing, &select(&Choice::Auto, true), rayon::current_num_threads());
    let mut exit = Exit::Success;
    if args.measure {
        let screen = Screen::new(false);
        for device in &listing.devices {
            let _shown = screen.working(&format!("measuring {}", device.name));
            let speed = bandwidth::of_device(device);
            if let Err(error) = &speed {
                exit = error.kind().into(); // the others are still worth knowing
            }
            report.measured(device.index, speed);
        }
        let _shown = screen.working("measuring the host");
        report.host_measured(bandwidth::of_host());
    }
    print(&report, args.json)?;
    Ok(exit)
}
