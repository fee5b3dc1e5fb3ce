//! Arguments of `declive fdtd`, as they are typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use declive::device::Choice;
use declive::solve::options::duration;
use declive::solve::{Precision, Shares};

/// Compute electromagnetic fields: Maxwell's equations in the time domain
///
/// Yee's scheme in two dimensions (TE, TM) or three, with materials, perfect conductors, absorbing layers, sources and
/// probes, on the host's threads or any number of OpenCL devices, with the same bits on all of them. docs/fdtd.md tells
/// what is in a problem file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The problem, in TOML
    #[arg(value_name = "PROBLEM.toml")]
    pub(super) problem: PathBuf,

    /// Make so many steps in place of those of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) steps: Option<u64>,

    /// Precision of the fields
    #[arg(long, default_value = "f64", value_parser = precisions(), help_heading = DEVICES)]
    pub(super) precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers of 'declive devices'
    ///
    /// auto takes GPUs, one for each 4 million cells; without one, the processor through OpenCL; without OpenCL, the
    /// host, which is this program's own threads. A number given twice makes two ranks of a device.
    #[arg(long, value_name = "LIST", default_value_t, help_heading = DEVICES)]
    pub(super) devices: Choice,

    /// Shares of the ranks, such as 3:1, by hand: one number for each [default: by measured speed]
    #[arg(long, value_name = "SHARES", help_heading = DEVICES)]
    pub(super) shares: Option<Shares>,

    /// File to go on from after anything that may happen: what --resume takes
    #[arg(long, value_name = "FILE", help_heading = CHECKPOINTS)]
    pub(super) checkpoint: Option<PathBuf>,

    /// How often: 60, 60s, 1.5m, 500ms, 2h [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "checkpoint", help_heading = CHECKPOINTS)]
    pub(super) checkpoint_every: Option<Duration>,

    /// Go on from the checkpoint of the same problem; the number of steps, devices and what is kept may be others
    #[arg(long, value_name = "FILE", help_heading = CHECKPOINTS)]
    pub(super) resume: Option<PathBuf>,

    /// Folder for the snapshots that the file asks for: hz-000100.npy, with the element [i, j] of cell (i, j), and hz-000100.png
    #[arg(short, long, value_name = "FOLDER", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,

    /// File for what probes see: CSV with the columns step, time and one for each probe
    #[arg(long, value_name = "p.csv", help_heading = OUTPUT)]
    pub(super) probes: Option<PathBuf>,

    /// File for a report: one HTML page with pictures of the fields and charts of the probes
    #[arg(long, value_name = "out.html", help_heading = OUTPUT)]
    pub(super) report: Option<PathBuf>,

    /// Print the report as one JSON document
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Print no report in words, no progress, and no notes
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
}

const DEVICES: &str = "Devices";
const CHECKPOINTS: &str = "Checkpoints";
const OUTPUT: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  declive fdtd data/fdtd/lens.toml -o lens --report lens.html
  declive fdtd data/fdtd/box.toml --probes p.csv
  declive fdtd big.toml --devices 0,1 --precision f32 --checkpoint big.ckpt

Exit codes: 0 all steps were made; 1 interrupted before; 2 wrong usage or input;
3 a device or the machine failed.";

fn precisions() -> impl TypedValueParser<Value = Precision> {
    let values = [Precision::F64, Precision::F32].map(|value| PossibleValue::new(value.name()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Precision>())
}
