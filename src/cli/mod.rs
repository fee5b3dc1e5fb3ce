//! The command line. Each command has its arguments, checks them all before any work, and then runs.

mod bench;
mod convert;
mod devices;
mod exit;
mod experiments;
mod failure;
mod fdtd;
mod fem;
mod generate;
mod info;
mod input;
mod interrupt;
mod measured;
mod output;
mod place;
mod processes;
mod progress;
mod rhs;
mod solve;
mod tune;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgAction, Parser, Subcommand};
use declive::Error;
use declive::distributed::Processes;
use log::{Level, LevelFilter};

use exit::Exit;
use failure::Failure;

use crate::report::in_flags;

/// Solves large sparse linear systems A x = b on every OpenCL device of a machine at once
///
/// declive reads a symmetric matrix from a Matrix Market or .npz file, spreads its rows over the devices, solves by conjugate
/// gradients, or by minimal residuals where the matrix is not positive definite, and checks the answer in higher precision
/// before it says "Converged".
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = TOUR, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Log to standard error; twice: with details. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 900)]
    verbose: u8,
}

const TOUR: &str = "\
A short tour:
  declive devices                               what there is to compute on
  declive info A.mtx                            what a matrix is like, and whether a solve fits it
  declive solve --generate poisson3d:100        a first solve, without any file
  declive solve A.mtx -b b.mtx -o x.mtx         a system of your own
  declive solve A.mtx --json                    for scripts
  declive convert A.mtx A.npz                   a form that is read much faster
  declive tune                                  how each kernel runs fastest on each device
  declive fdtd data/fdtd/lens.toml -o lens      electromagnetic waves in time
  declive fem plate.msh                         finite elements, from a mesh of Gmsh
  declive bench                                 where the time of an iteration goes
  declive generate poisson2d:300x200 -o A.mtx   a matrix to try other programs on

Exit codes: 0 success, and a solve converged; 1 a solve did not converge;
2 wrong usage or input; 3 a device or the machine failed.";

#[derive(Debug, Subcommand)]
enum Command {
    Solve(Box<solve::Args>),
    Fdtd(fdtd::Args),
    Fem(Box<fem::Args>),
    Info(info::Args),
    Convert(convert::Args),
    Devices(devices::Args),
    Tune(tune::Args),
    Bench(Box<bench::Args>),
    Generate(generate::Args),
}

/// The program.
pub(crate) fn main() -> ExitCode {
    declive::exit_when_short();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // a closed pipe
            return if error.use_stderr() { Exit::Input } else { Exit::Success }.into();
        }
    };
    let quiet = match &cli.command {
        Command::Solve(args) => args.quiet,
        Command::Convert(args) => args.quiet,
        Command::Fdtd(args) => args.quiet,
        Command::Fem(args) => args.quiet,
        _ => false,
    };
    // the last thing that goes: where this process has failed, it ends all
    let processes = match processes::of_job() {
        Ok(processes) => processes,
        Err(failure) => return complain(&failure).into(),
    };
    start_logging(cli.verbose, quiet, processes.as_deref());
    let ended = start_threads().and_then(|()| run(cli.command, processes.as_ref()));
    ended.unwrap_or_else(|failure| complain_of(&failure, processes.as_deref())).into()
}

fn run(command: Command, processes: Option<&Arc<dyn Processes>>) -> Result<Exit, Failure> {
    if processes.is_some() && !matches!(command, Command::Solve(_)) {
        return Err(Failure::usage(
            "several processes can do nothing but solve together; run this command without MPI",
        ));
    }
    match command {
        Command::Solve(args) => solve::run(*args, processes),
        Command::Fdtd(args) => fdtd::run(args),
        Command::Fem(args) => fem::run(*args),
        Command::Info(args) => info::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Devices(args) => devices::run(&args),
        Command::Tune(args) => tune::run(args),
        Command::Bench(args) => bench::run(*args),
        Command::Generate(args) => generate::run(&args),
    }
}

/// The host's threads, before anything needs them, when it is too late for an error.
fn start_threads() -> Result<(), Failure> {
    // the standard library's, unless the environment says otherwise
    let stack = 2 << 20;
    let short = |_| Error::OutOfMemory { what: "the stack of a thread of the host".into(), bytes: stack };
    let mut threads = rayon::ThreadPoolBuilder::new();
    if let Some(count) = processes::threads().filter(|_| std::env::var_os("RAYON_NUM_THREADS").is_none()) {
        threads = threads.num_threads(count);
    }
    Ok(threads.build_global().map_err(short)?)
}

fn complain(failure: &Failure) -> Exit {
    say(&format!("error: {failure}\n"));
    failure.exit()
}

/// To standard error in one piece, as other processes may say something, too.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The same as one of several processes, of which not all say the same.
fn complain_of(failure: &Failure, processes: Option<&dyn Processes>) -> Exit {
    let Some(process) = processes.map(Processes::process).filter(|process| *process > 0) else {
        return complain(failure);
    };
    let is_own = failure.exit() != Exit::Input && !failure.is_of_other_process();
    if is_own || log::log_enabled!(Level::Info) {
        say(&format!("error: process {process}: {failure}\n"));
    }
    failure.exit()
}

/// Warnings look like the command's own words; what `-v` adds has the time since the start.
fn start_logging(verbose: u8, quiet: bool, processes: Option<&dyn Processes>) {
    // of several processes, each says which it is
    let of = processes.map_or_else(String::new, |all| format!("process {}: ", all.process()));
    let level = match (verbose, quiet) {
        (0, true) => LevelFilter::Error,
        (0, false) => LevelFilter::Warn,
        (1, _) => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    let start = Instant::now();
    env_logger::Builder::new()
        .filter_level(level)
        .parse_default_env()
        .format(move |out, record| match record.level() {
            Level::Error => writeln!(out, "error: {of}{}", record.args()),
            Level::Warn => writeln!(out, "warning: {of}{}", in_flags(record.args())),
            level => {
                let seconds = start.elapsed().as_secs_f64();
                writeln!(out, "[{seconds:9.3} s {level} {}] {of}{}", record.target(), record.args())
            }
        })
        .init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_declared_consistently() {
        Cli::command().debug_assert();
    }
}
