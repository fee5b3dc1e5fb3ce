//! `declive bench primitives`: how fast scans, compaction and sorting by key are.

use std::num::NonZeroU32;

use declive::device::{Choice, Info, Kind, select};
use declive::experiments::primitives::{Case, OnDevice, Task};
use declive::{Error, ErrorKind, bandwidth};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::primitives::{Device, Entry, Report};
use crate::report::{distinct, in_flags};

/// Time scans, compaction and sorting by key on each device, and the host's own way beside them
///
/// Prefix sums, the indices of flags that are set and the values at them, sorts of keys alone and with numbers that
/// belong to them: what systems are set up of. The host sorts with all threads, and does the rest with one. Each result
/// is compared with the host's. A size for which a device is too small is left out.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Elements [default: 10000,100000,1000000,10000000, and 100000000 if there is a GPU]
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1..)]
    rows: Vec<NonZeroU32>,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    devices: Choice,

    /// Compare elements for each work-item, groups for each compute unit and bits of digits
    #[arg(long)]
    all_launches: bool,

    /// Measurements of each time, whose median is printed
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench primitives
  declive bench primitives --rows 1000000 50000000 --devices gpu --all-launches";

/// Elements, if nothing is said of them; the last only if there is a GPU.
const ROWS: [u32; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&args.devices, false)?;
    let devices: Vec<Info> = distinct(selection.ranks.into_iter().flatten());
    let rows = rows(&args.rows, devices.iter().any(|device| device.kind == Kind::Gpu));
    let mut notes: Vec<String> = selection.note.into_iter().map(in_flags).collect();
    let mut exit = Exit::Success;
    let mut failed = |what: String, error: Error, notes: &mut Vec<String>| {
        // a device that is too small is left out
        if !matches!(error, Error::OutOfDeviceMemory { .. }) {
            exit = error.kind().into();
        }
        notes.push(in_flags(format!("{what}: {error}")));
    };

    let mut opened = Vec::new();
    for device in devices {
        let label = device.label();
        let copy = {
            let _shown = screen.working(&format!("copying on {label}"));
            bandwidth::of_device(&device)
        };
        let copy =
            copy.map_err(|error| failed(format!("copies on {label} could not be timed"), error, &mut notes)).ok();
        match OnDevice::open(&device, args.repeat.into()) {
            Ok(open) => opened.push((Device::new(&device, copy), open)),
            Err(error) => failed(format!("{label} is left out"), error, &mut notes),
        }
    }
    let mut entries = Vec::new();
    for (&rows, task) in rows.iter().flat_map(|rows| Task::ALL.iter().map(move |task| (rows, *task))) {
        let _shown = screen.working(&format!("{task}, {rows} elements"));
        let case = Case::new(task, rows, args.repeat.into());
        entries.push(Entry::of_host(&case));
        for (device, open) in &mut opened {
            match open.measure(&case, args.all_launches) {
                Ok(measured) => entries.extend(measured.into_iter().map(|one| Entry::of_device(&case, device, one))),
                Err(error) => {
                    let what = format!("{task}, {rows} elements, on {} is left out", device.label);
                    failed(what, error, &mut notes);
                }
            }
        }
    }
    if entries.iter().any(Entry::is_wrong) {
        notes.push("what a device made differs from what the host made: those rows say so".into());
        exit = ErrorKind::Runtime.into();
    }
    let devices = opened.into_iter().map(|(device, _)| device).collect();
    print(&Report { repeat: args.repeat.into(), devices, entries, notes }, args.json)?;
    Ok(exit)
}

/// The numbers of elements: those that were asked for, in order.
fn rows(asked: &[NonZeroU32], has_gpu: bool) -> Vec<usize> {
    let usual = &ROWS[..ROWS.len() - usize::from(!has_gpu)];
    let mut rows: Vec<usize> = asked.iter().map(|rows| rows.get() as usize).collect();
    if rows.is_empty() {
        rows.extend(usual.iter().map(|&rows| rows as usize));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_elements() {
        let asked = [5, 3, 5].map(|rows| NonZeroU32::new(rows).unwrap());
        assert_eq!(rows(&asked, true), [3, 5]);
        assert_eq!((rows(&[], false).len(), rows(&[], true).last()), (4, Some(&100_000_000)));
    }
}
