//! `declive bench scaling`: what an iteration would take on many GPUs of many nodes, by a model.

use std::path::{Path, PathBuf};

use declive::Error;
use declive::scaling::machine::TEMPLATE;
use declive::scaling::{Machine, System};
use declive::solve::Format;

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::{Target, print};
use crate::report::scaling::{Report, Sizes};
use crate::report::{scaling, study_svg};

/// Forecast iterations on many GPUs of many nodes, by a model of costs
///
/// Nothing is measured: the model has numbers that were measured on NVIDIA H200s and published figures of a network, and --machine has others. For
/// each number of GPUs and each way to exchange, the parts of an iteration of cg and of one with multigrid, what limits it, other methods, and the time
/// to a residual of 10⁻⁸. Then what breaks first, and what no longer fits.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Rows of the system, however many GPUs: strong scaling
    #[arg(long, value_name = "N", value_parser = number, conflicts_with = "rows_per_gpu")]
    rows: Option<u64>,

    /// Rows for each GPU: weak scaling [default: 1e8]
    #[arg(long, value_name = "N", value_parser = number)]
    rows_per_gpu: Option<u64>,

    /// Numbers of GPUs
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = number,
        default_value = "1,2,4,8,16,64,256,1024,4096,10000"
    )]
    gpus: Vec<u64>,

    /// Points of a row of the operator, which is one on a cube: 7 or 27
    #[arg(long, value_name = "N", default_value = "7", value_parser = ["7", "27"])]
    stencil: String,

    /// How rows are stored: dictionary, pattern, sell or csr
    #[arg(long, value_name = "FORMAT", default_value = Format::Dictionary.name(), value_parser = format)]
    format: Format,

    /// File with the numbers of the machine; those that it leaves out are the usual ones
    #[arg(long, value_name = "FILE.toml")]
    machine: Option<PathBuf>,

    /// Print such a file with the usual numbers and their sources, and do nothing else
    #[arg(long, conflicts_with_all = ["rows", "rows_per_gpu", "machine", "json", "svg", "measured"])]
    template: bool,

    /// The model beside what was measured, and nothing else
    #[arg(long, conflicts_with_all = ["rows", "rows_per_gpu", "svg"])]
    measured: bool,

    /// File for a plot over the number of GPUs: an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench scaling
  declive bench scaling --rows 1e10 --gpus 64,512,4096 --svg strong.svg
  declive bench scaling --template > machine.toml
  declive bench scaling --machine machine.toml --rows-per-gpu 2e7 --json";

/// The most rows or GPUs.
const MOST: f64 = 1e15;

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    if args.template {
        Target::Stdout.write(|out| out.write_all(TEMPLATE.as_bytes()))?;
        return Ok(Exit::Success);
    }
    let machine = args.machine.as_deref().map_or_else(|| Ok(Machine::default()), read)?;
    if args.measured {
        print(&scaling::Measured::new(&machine), args.json)?;
        return Ok(Exit::Success);
    }
    let target = args.svg.as_deref().map(Target::probe).transpose()?;
    if target == Some(Target::Stdout) {
        return Err(Failure::usage("--svg needs a file; standard output is for the tables"));
    }
    let sizes = match (args.rows, args.rows_per_gpu) {
        (Some(rows), _) => Sizes::Strong(rows),
        (None, rows) => Sizes::Weak(rows.unwrap_or(100_000_000)),
    };
    let mut gpus = args.gpus;
    gpus.sort_unstable();
    gpus.dedup();
    if let Sizes::Strong(rows) = sizes
        && let Some(more) = gpus.iter().find(|gpus| **gpus > rows)
    {
        return Err(Failure::usage(format!("--rows {rows} are fewer than --gpus {more}")));
    }
    let stencil = if args.stencil == "27" { 27 } else { 7 };
    let report = Report::new(machine, System { rows: 1.0, stencil, format: args.format }, sizes, &gpus);
    print(&report, args.json)?;
    if let Some(target) = target {
        let picture = study_svg::drawn(report.title(), &report.caption(), &report.panels());
        target.write(|out| out.write_all(picture.as_bytes()))?;
    }
    Ok(Exit::Success)
}

/// Reads `100000000` or `1e8`: a number of rows or GPUs.
fn number(text: &str) -> Result<u64, String> {
    let wrong = || "not a number from 1 to 1e15; write 100000000 or 1e8".to_owned();
    let number: f64 = text.parse().map_err(|_| wrong())?;
    if (1.0..=MOST).contains(&number) && number.fract() == 0.0 { Ok(number as u64) } else { Err(wrong()) }
}

/// A format that a rank may have.
fn format(name: &str) -> Result<Format, String> {
    match name.parse::<Format>() {
        Ok(Format::Auto) => Err("auto is for matrices; name dictionary, pattern, sell or csr".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Reads the numbers of a machine.
fn read(path: &Path) -> Result<Machine, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    parse(&text).map_err(|what| Failure::about(path.display(), Error::Usage(what)))
}

fn parse(text: &str) -> Result<Machine, String> {
    let machine: Machine = toml::from_str(text).map_err(|error| {
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let place = error.span().map_or_else(String::new, |span| format!("line {}: ", line(span.start)));
        format!("{place}{}", error.message().replace('\n', "; "))
    })?;
    match machine.wrong() {
        Some((key, what)) => {
            let place = line_of(text, key).map_or_else(String::new, |line| format!("line {line}: "));
            Err(format!("{place}{key} {what}"))
        }
        None => Ok(machine),
    }
}

/// The line of a key such as `gpu.launch_us`, if it is in a table as the template has it.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let (table, name) = key.split_once('.')?;
    let head = format!("[{table}]");
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.trim_start().starts_with(&head)).skip(1);
    let mut lines = lines.take_while(|(_, line)| !line.trim_start().starts_with('['));
    let is = |line: &str| line.split_once('=').is_some_and(|(left, _)| left.trim() == name);
    lines.find(|(_, line)| is(line)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([number("1"), number("1e8"), number("10000")], [Ok(1), Ok(100_000_000), Ok(10_000)]);
        for text in ["", "0", "-1", "1.5", "1e16", "nan", "inf", "many"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn machines() {
        assert_eq!(parse(TEMPLATE), Ok(Machine::default()));
        let wrong = |text: &str| parse(text).unwrap_err();
        assert_eq!(wrong("name = 'x'\n[network]\nlatency_us = -2\n"), "line 3: network.latency_us must be 0 or more");
        assert_eq!(wrong("[node]\n[gpu]\n memory_gb=0.0"), "line 3: gpu.memory_gb must be above 0");
        assert_eq!(wrong("gpu = { memory_gb = 0.0 }"), "gpu.memory_gb must be above 0");
        let unknown = wrong("\n[gpu]\nspeed = 1.0\n");
        assert!(unknown.starts_with("line 3: ") && unknown.contains("speed"), "{unknown}");
        assert!(wrong("[gpu\n").starts_with("line 1: "));
    }
}
