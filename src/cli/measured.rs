//! What `declive bench` and `declive tune` measure on, and where their reports go.

use std::path::PathBuf;

use clap::ArgGroup;
use declive::device::Choice;
use declive::matrix::gallery::Spec;
use declive::matrix_market::Zeros;
use declive::solve::Precision;
use declive::{Csr, Error};

use super::failure::Failure;
use super::input::Source;
use super::output::Target;
use super::progress::Screen;

/// The options of both.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("system").args(["matrix", "generate", "order"])))]
pub(crate) struct Measured {
    /// File with the matrix: Matrix Market or .npz; - is standard input
    #[arg(value_name = "A.mtx")]
    matrix: Option<PathBuf>,

    /// Make the matrix instead of reading it, such as elasticity3d:30; 'declive generate --help' lists the problems
    #[arg(long, value_name = "PROBLEM")]
    generate: Option<Spec>,

    /// A 7-point operator with about so many rows [default: 10000000; of tune on CPUs, exchange and precond 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) order: Option<u64>,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    pub(crate) devices: Choice,

    /// Precision of matrix and vectors: f64, f32 or, of bench and bench precond, mixed
    #[arg(long, default_value = Precision::F64.name())]
    pub(crate) precision: Precision,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl Measured {
    /// The matrix that was asked for; none if it is a 7-point operator of [`Measured::order`] rows.
    pub(crate) fn source(&self) -> Option<Source> {
        Source::named(self.matrix.clone(), self.generate.clone())
    }
}

/// Where a report with charts goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Page {
    /// File for a report with charts: one HTML page that needs nothing else
    #[arg(long, value_name = "out.html")]
    report: Option<PathBuf>,
}

impl Page {
    /// The file, if one is wanted, which is neither the matrix's nor standard output.
    pub(crate) fn target(&self, source: Option<&Source>) -> Result<Option<Target>, Failure> {
        let Some(path) = &self.report else { return Ok(None) };
        let target = Target::probe(path)?;
        if target == Target::Stdout {
            return Err(Failure::usage("--report needs a file; standard output is for the report in words"));
        }
        target.keeps("--report", source.and_then(Source::file), "which is an input")?;
        Ok(Some(target))
    }
}

/// The 7-point operator on a cube of about so many points.
pub(crate) fn grid(order: u64) -> Result<Source, Failure> {
    let side = (order as f64).cbrt().round().max(1.0) as usize;
    Ok(Source::Generated(format!("poisson3d:{side}").parse()?))
}

/// Reads or makes a matrix, which has to be square and real; and its name.
pub(crate) fn load(source: &Source, screen: Screen) -> Result<(Csr, String), Failure> {
    let name = source.to_string();
    let a = source.real(source.load(Zeros::Keep, false, screen)?.a)?;
    if a.n_rows() != a.n_cols() {
        return Err(Failure::about(source, Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() }));
    }
    Ok((a, name))
}
