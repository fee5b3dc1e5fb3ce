//! Arguments of `declive fem`, as they are typed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use declive::Error;
use declive::device::Choice;
use declive::fem::Summation;
use declive::solve::options::{duration, tolerance};
use declive::solve::{Method, Precision, Precond, Setup};

use crate::cli::solve::{methods, precisions, preconds};

/// Compute fields by finite elements: diffusion (potentials, heat) or linear elasticity
///
/// On triangles or tetrahedra of first or second order, from a mesh of Gmsh to files for ParaView and pictures. docs/fem.md
/// tells what is in a problem file. Of a mesh alone, what it is like is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The problem, in TOML; or a mesh of Gmsh, of which the facts are printed
    #[arg(value_name = "PROBLEM.toml|MESH.msh")]
    pub(super) problem: PathBuf,

    /// Of a mesh, print a problem file to start from
    #[arg(long)]
    pub(super) template: bool,

    /// Krylov method
    #[arg(long, default_value = Setup::default().method.name(), value_parser = methods(), help_heading = METHOD)]
    pub(super) method: Method,

    /// Preconditioner [default: jacobi, and with --method auto amg from where it is forecast to take less; with it by elements of second order amg]
    #[arg(long, value_parser = preconds(), help_heading = METHOD)]
    pub(super) precond: Option<Precond>,

    /// How products are formed: with the assembled matrix, or by elements without one (by-node, coloured) [default:
    /// assembled; of 500000 unknowns or more by a forecast, where both are possible; by-node where there is no memory for the matrix]
    #[arg(long, value_name = "WAY", help_heading = METHOD)]
    pub(super) operator: Option<Operator>,

    /// Precision of the iteration; the answer is checked in more than double precision in any case
    #[arg(long, default_value = Setup::default().precision.name(), value_parser = precisions(), help_heading = METHOD)]
    pub(super) precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers of 'declive devices'
    #[arg(long, value_name = "LIST", default_value_t, help_heading = METHOD)]
    pub(super) devices: Choice,

    /// Converged when ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol)
    #[arg(long, value_name = "R", default_value = "1e-8", value_parser = tolerance, allow_negative_numbers = true,
          help_heading = STOP)]
    pub(super) rtol: f64,

    /// Absolute tolerance, in the units of b
    #[arg(long, value_name = "R", default_value = "0", value_parser = tolerance, allow_negative_numbers = true,
          help_heading = STOP)]
    pub(super) atol: f64,

    /// At most N iterations [default: 10 n, but from 1000 to 200000]
    #[arg(long, value_name = "N", help_heading = STOP)]
    pub(super) max_iters: Option<u64>,

    /// At most so much time in the iteration: 60, 60s, 1.5m, 500ms, 2h [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = STOP)]
    pub(super) time_limit: Option<Duration>,

    /// File for ParaView: u of nodes, and gradients, fluxes or stresses of elements
    #[arg(long, value_name = "u.vtu", help_heading = OUTPUT)]
    pub(super) vtu: Option<PathBuf>,

    /// File for a picture of u, of a mesh in the plane
    #[arg(long, value_name = "u.png", help_heading = OUTPUT)]
    pub(super) png: Option<PathBuf>,

    /// File for a report: one HTML page, with a picture of u of a mesh in the plane
    #[arg(long, value_name = "out.html", help_heading = OUTPUT)]
    pub(super) report: Option<PathBuf>,

    /// File for the unknowns, those of a node after each other: Matrix Market, or NumPy's where its name ends with .npy
    #[arg(short, long, value_name = "x.mtx", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,

    /// Write the system as PREFIX-A.mtx and PREFIX-b.mtx
    #[arg(long, value_name = "PREFIX", help_heading = OUTPUT)]
    pub(super) write_system: Option<String>,

    /// Print the report as one JSON document
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Print no report in words, no progress, and no notes
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
}

/// How products are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Assembled,
    ByElements(Summation),
}

impl FromStr for Operator {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        if s == ASSEMBLED {
            return Ok(Self::Assembled);
        }
        s.parse().map(Self::ByElements).map_err(|_| {
            let names: Vec<_> = Summation::ALL.iter().map(|way| way.name()).collect();
            Error::Usage(format!("unknown operator '{s}'; there are: {ASSEMBLED}, {}", names.join(", ")))
        })
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assembled => f.write_str(ASSEMBLED),
            Self::ByElements(summation) => summation.fmt(f),
        }
    }
}

const ASSEMBLED: &str = "assembled";
const METHOD: &str = "Method and devices";
const STOP: &str = "When to stop";
const OUTPUT: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  declive fem data/fem/capacitor.toml --png u.png
  declive fem plate.msh                        what the mesh is like
  declive fem plate.msh --template > plate.toml
  declive fem plate.toml --vtu plate.vtu

Exit codes: 0 converged; 1 not converged; 2 wrong usage or input; 3 a device or the machine failed.";
