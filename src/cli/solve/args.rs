//! Arguments of `declive solve`, as they are typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use declive::device::Choice;
use declive::matrix::gallery::Spec;
use declive::solve::options::{columns, duration, tolerance};
use declive::solve::{
    Exchange, Format, MOST_RESTART, Method, OnFailure, Precision, Precond, Reorder, Setup, Shares, Tune,
};

use crate::cli::rhs::Recipe;

/// Solve A x = b
///
/// A is a symmetric matrix from a file, or a generated one. Several columns in b are solved one after
/// the other. The residual b − A x is recomputed on the host before the report says "Converged".
///
/// A complex A is solved as a real matrix of twice the order; x is complex then, and b may be.
///
/// Files are Matrix Market, plain or compressed (gzip, bzip2, xz, zstd), or .npz files of SciPy's sparse matrices; the
/// first bytes tell. Of an archive of the SuiteSparse collection (.tar.gz), A and, if there is no other, b are read.
#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("system").required(true).args(["matrix", "generate"])),
    after_help = EXAMPLES,
    after_long_help = long_help()
)]
pub(crate) struct Args {
    /// File of A: Matrix Market, compressed or not, SuiteSparse's archive, or SciPy's .npz; - is standard input
    #[arg(value_name = "A.mtx")]
    pub(super) matrix: Option<PathBuf>,

    /// Make A instead of reading it, such as poisson3d:100; 'declive generate --help' lists the problems
    #[arg(long, value_name = "PROBLEM", help_heading = SYSTEM)]
    pub(super) generate: Option<Spec>,

    /// File of b, one or more columns, Matrix Market, .npz or .npy; - is standard input
    #[arg(short, value_name = "b.mtx", help_heading = SYSTEM)]
    pub(super) b: Option<PathBuf>,

    /// Make b instead of reading it: ones, A*ones (the solution is 1 everywhere), random:SEED, A*random:SEED (consistent where A is singular); random:1..8 makes eight columns [default: ones]
    #[arg(long, value_name = "RHS", conflicts_with = "b", help_heading = SYSTEM)]
    pub(super) rhs: Option<Recipe>,

    /// File of the initial guess, as of b, one column or as many as b; - is standard input [default: zero]
    #[arg(short, long, value_name = "x0.mtx", help_heading = SYSTEM)]
    pub(super) x0: Option<PathBuf>,

    /// Do not check that A is symmetric; solve with it as it is
    #[arg(long, help_heading = SYSTEM)]
    pub(super) assume_symmetric: bool,

    /// Krylov method
    #[arg(long, default_value = Setup::default().method.name(), value_parser = methods(), help_heading = METHOD)]
    pub(super) method: Method,

    /// Preconditioner [default: jacobi, and with --method auto amg from where it is forecast to take less]
    #[arg(long, value_parser = preconds(), help_heading = METHOD)]
    pub(super) precond: Option<Precond>,

    /// For amg, file of the coordinates of the nodes of a mesh, a row for each: with 2 or 3 columns, Matrix Market, .npz or .npy
    ///
    /// The motions of a rigid body, which cost no energy, then are interpolated exactly. Unknowns of a node are consecutive
    /// rows: its displacements along the axes and, in frames and shells, angles of its rotation behind them.
    #[arg(long, value_name = "c.mtx", conflicts_with = "near_null", help_heading = METHOD)]
    pub(super) coordinates: Option<PathBuf>,

    /// For amg, file of near-null vectors, one or more columns: what A makes hardly anything of, and a cycle interpolates exactly
    #[arg(long, value_name = "v.mtx", help_heading = METHOD)]
    pub(super) near_null: Option<PathBuf>,

    /// For amg and block-jacobi, unknowns of a node of the mesh, which are consecutive rows [default: the size of blocks that the matrix is made of]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..=16), help_heading = METHOD)]
    pub(super) block_size: Option<u32>,

    /// Steps of a cycle of gmres: each takes a vector's memory, and fewer iterations the more there are
    #[arg(long, value_name = "M", default_value_t = Setup::default().restart,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RESTART)), help_heading = METHOD)]
    pub(super) restart: u32,

    /// Precision of the iteration; the answer is checked in more than double precision in any case
    #[arg(long, default_value = Setup::default().precision.name(), value_parser = precisions(), help_heading = METHOD)]
    pub(super) precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers of 'declive devices'
    ///
    /// auto takes as many GPUs as make an iteration the fastest; without one, the processor through OpenCL; without
    /// OpenCL, the host, which is this program's own threads. gpu and all take each device once, even if several drivers
    /// show it; cpu all that OpenCL shows of the processor. A number given twice makes two ranks of a device.
    #[arg(long, value_name = "LIST", default_value_t, help_heading = METHOD)]
    pub(super) devices: Choice,

    /// Shares of the ranks, such as 3:1, by hand: one number for each [default: by measured speed]
    ///
    /// They divide the work of an iteration, which counts the entries, and 7 for each row. A rank with 0 gets no rows.
    #[arg(long, value_name = "SHARES", help_heading = METHOD)]
    pub(super) shares: Option<Shares>,

    /// How devices store their rows
    ///
    /// With --tune full, auto times products in those formats that read about the fewest bytes, and keeps the
    /// fastest for the next solve with the same rows, which --tune stored takes, too.
    #[arg(long, default_value = Setup::default().format.name(), value_parser = formats(), help_heading = METHOD)]
    pub(super) format: Format,

    /// Order of the rows on the devices; b, x and the report are in the order of A in any case
    #[arg(long, default_value = Setup::default().reorder.name(), value_parser = orders(), help_heading = METHOD)]
    pub(super) reorder: Reorder,

    /// How halos get from device to device; 'declive bench exchange' compares them
    #[arg(long, default_value = Setup::default().exchange.name(), value_parser = exchanges(), help_heading = METHOD)]
    pub(super) exchange: Exchange,

    /// Launch parameters of the kernels, and formats, on each device
    #[arg(long, default_value = Tune::Quick.name(), value_parser = tunings(), help_heading = METHOD)]
    pub(super) tune: Tune,

    /// When a device fails: end with the error, or let the others go on
    ///
    /// With continue, the others take over the rows of the device that failed, and go on from the last iterate that was
    /// brought to the host, which happens every 10 s, or as often as --checkpoint-every says. Numbers of devices given
    /// twice are one device. The report says what happened.
    #[arg(long, default_value = Setup::default().on_failure.name(), value_parser = answers(), help_heading = METHOD)]
    pub(super) on_failure: OnFailure,

    /// At most so many columns of b side by side, up to 1024; 1 solves one after the other
    ///
    /// Columns side by side go through the same iterations, in which the matrix is read once for all of them, 16 at a time;
    /// of a small system on a GPU, each work-group has a column. Each has its own scalars, and ends by itself.
    #[arg(long, value_name = "K", default_value_t = Setup::default().columns, value_parser = columns, help_heading = METHOD)]
    pub(super) columns: usize,

    /// With the factors of a dense matrix: estimate how ill-conditioned it is
    ///
    /// κ₁ = ‖A‖₁ ‖A⁻¹‖₁, about, by some ten solves on the host. x may be off by κ₁ times its backward error.
    #[arg(long, help_heading = METHOD)]
    pub(super) condition: bool,

    /// Converged when ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol) [default: 1e-8, or 0 with --backward-error]
    #[arg(long, value_name = "R", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOP)]
    pub(super) rtol: Option<f64>,

    /// Absolute tolerance, in the units of b
    #[arg(long, value_name = "R", default_value = "0", value_parser = tolerance, allow_negative_numbers = true,
          help_heading = STOP)]
    pub(super) atol: f64,

    /// Converged, too, when ‖b − A x‖∞ ≤ R (‖A‖∞ ‖x‖∞ + ‖b‖∞): x solves a system that differs from this one by the part R. What is
    /// left to ask for where the relative residual can't be had in double precision: 1e-15, say
    #[arg(long, value_name = "R", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOP)]
    pub(super) backward_error: Option<f64>,

    /// At most N iterations for each right-hand side [default: 10 n, but from 1000 to 200000]
    #[arg(long, value_name = "N", help_heading = STOP)]
    pub(super) max_iters: Option<u64>,

    /// At most so much time in the iteration for each right-hand side: 60, 60s, 1.5m, 500ms, 2h [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = STOP)]
    pub(super) time_limit: Option<Duration>,

    /// File to go on from after anything that may happen: what --resume takes
    ///
    /// x as it is every --checkpoint-every, and at the end. A new one takes the place of the old one when it is on the
    /// disk.
    #[arg(long, value_name = "FILE", help_heading = CHECKPOINTS)]
    pub(super) checkpoint: Option<PathBuf>,

    /// How often: 60, 60s, 1.5m, 500ms, 2h; 0 is as often as possible [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = CHECKPOINTS)]
    pub(super) checkpoint_every: Option<Duration>,

    /// Go on from the checkpoint of a former solve of the same system, whose iterations count
    ///
    /// A and b must be the same; devices, method, preconditioner and limits need not be.
    #[arg(long, value_name = "FILE", conflicts_with = "x0", help_heading = CHECKPOINTS)]
    pub(super) resume: Option<PathBuf>,

    /// File for the solution, Matrix Market, or NumPy's where its name ends with .npy; - is standard output, which moves the report to standard error
    #[arg(short, long, value_name = "x.mtx", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,

    /// File for the residual of each iteration: CSV with the columns rhs, iteration, rel_residual_2
    #[arg(long, value_name = "h.csv", help_heading = OUTPUT)]
    pub(super) history: Option<PathBuf>,

    /// File for a report with charts: one HTML page that needs nothing else
    ///
    /// It has the history of the residual, where the time went, and what each rank does in an iteration. To know that,
    /// the solve records its first 100 iterations and some of the later ones, which takes some microseconds for each
    /// launch of a kernel there.
    #[arg(long, value_name = "out.html", help_heading = OUTPUT)]
    pub(super) report: Option<PathBuf>,

    /// File for all that was recorded, to look at in ui.perfetto.dev or chrome://tracing
    ///
    /// Each launch of a kernel and each wait of the host, for each rank, in the Trace Event Format.
    #[arg(long, value_name = "t.json", help_heading = OUTPUT)]
    pub(super) trace: Option<PathBuf>,

    /// Print the report as one JSON document
    ///
    /// Fields keep their meaning as long as "version" stays the same. For several right-hand sides "solves" has the
    /// figures of each; those at the top are the sum of iterations, restarts and seconds, the largest residuals, and
    /// the first reason other than convergence.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Print no report in words, no progress, and no notes; what --json and -o - ask for is still printed
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
}

const SYSTEM: &str = "System";
const METHOD: &str = "Method and devices";
const STOP: &str = "When to stop";
const CHECKPOINTS: &str = "Checkpoints";
const OUTPUT: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  declive solve A.mtx                          b of ones, on the GPUs
  declive solve A.mtx -b b.mtx -o x.mtx
  declive solve --generate poisson3d:100 --rhs 'A*ones' --devices host
  declive solve A.mtx --devices 0,2 --rtol 1e-10 --time-limit 5m --json
  declive solve A.mtx --checkpoint A.ckpt      what to go on from, later, with --resume A.ckpt
  declive solve A.mtx --report out.html        a page with charts, to show to others
  declive generate jumps:64 | declive solve - -q -o - > x.mtx";

fn long_help() -> String {
    format!(
        "{EXAMPLES}\n\n\
         Exit codes:\n  \
           0  converged, and the true residual was verified\n  \
           1  not converged; -o has the best approximation reached\n  \
           2  wrong usage or input\n  \
           3  a device or the machine failed, or the host has too little memory\n\n\
         Ctrl-C ends the iteration and writes what was reached (exit code 1); a second one\n\
         kills the program (130). Of several right-hand sides, the worst decides.\n\n\
         Environment:\n  \
           RAYON_NUM_THREADS      threads of the host\n  \
           RUST_LOG               what is logged to standard error, such as declive=debug\n  \
           DECLIVE_SHAPE          cpu or gpu: run the kernels made for the other kind of device\n  \
           DECLIVE_F64            off: take no device for one with double precision\n  \
           DECLIVE_MAX_BUFFER     bytes of a buffer, at most: longer matrices are cut into segments\n  \
           DECLIVE_BUILD_OPTIONS  further options for the compiler of the kernels\n  \
           DECLIVE_CACHE_DIR      where compiled kernels and what was measured are kept; empty: nowhere\n  \
           DECLIVE_PROGRAM_CACHE  off: keep no compiled kernels\n  \
           DECLIVE_FAULT          1:launch:130 lets device 1 fail from its 130th launch on, to see\n  \
                                  what becomes of a solve then; see docs/command.md"
    )
}

/// A parser that knows the names, for the help and for the answer to a wrong one.
macro_rules! names_of {
    ($function:ident, $type:ty) => {
        pub(crate) fn $function() -> impl TypedValueParser<Value = $type> {
            let values = <$type>::ALL.iter().map(|value| PossibleValue::new(value.name()).help(value.describe()));
            PossibleValuesParser::new(values).try_map(|name| name.parse::<$type>())
        }
    };
}

names_of!(methods, Method);
names_of!(preconds, Precond);
names_of!(precisions, Precision);
names_of!(tunings, Tune);
names_of!(formats, Format);
names_of!(orders, Reorder);
names_of!(exchanges, Exchange);
names_of!(answers, OnFailure);

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use declive::solve::{Stop, options};

    use super::*;

    #[test]
    fn defaults_in_the_help_are_those_of_the_library() {
        assert_eq!([1, 1_000, 1_000_000].map(Stop::default_max_iters), [1_000, 10_000, 200_000]);
    }

    #[test]
    fn options_of_the_library_have_the_same_names() {
        let command = Args::augment_args(clap::Command::new("solve"));
        for option in options::ALL {
            let name = option.name.replace('_', "-");
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(name.as_str())), "--{name}");
        }
    }
}
