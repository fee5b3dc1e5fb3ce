//! `declive convert`: a matrix in another format.
//!
//! What is written holds the bits that were read, with one exception: the zeros of an array file are no entries, so
//! that its −0 comes back as 0.

mod plan;
mod words;

use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use declive::matrix::band::Band;
use declive::matrix::gallery::Spec;
use declive::matrix::reorder::{Permutation, permuted, rcm};
use declive::matrix::{AnyCsr, Scalar};
use declive::matrix_market::{Field, Header, Layout, Packing, WriteOptions};
use declive::npz::Element;
use declive::{Csr, Error};

use self::plan::Plan;
use super::exit::Exit;
use super::failure::Failure;
use super::input::{Input, Loaded, Source, of_length};
use super::interrupt;
use super::place::{Format, Place};
use super::progress::Screen;
use crate::report::DECLIVE;
use crate::report::convert::{Reordering, Report, Rhs, Seconds, Written};
use crate::report::info::Matrix;

/// Write a matrix in another format, smaller or reordered
///
/// OUTPUT becomes, by the ending of its name, a Matrix Market file (.mtx; .mtx.gz, .mtx.bz2, .mtx.xz and .mtx.zst are
/// compressed) or SciPy's .npz, which is read much faster. The matrix stays the same to the last bit unless an option
/// says otherwise. A Matrix Market file stays symmetric, pattern, integer or array, and keeps its comments, if it is
/// written as one again.
#[derive(Debug, clap::Args)]
#[command(override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// INPUT: Matrix Market file, compressed or not, archive of the SuiteSparse collection, or SciPy's .npz; - is
    /// standard input. OUTPUT: file to write; - is standard output, as Matrix Market
    #[arg(value_names = ["INPUT", "OUTPUT"], required = true)]
    files: Vec<PathBuf>,

    /// Make the matrix instead of reading it, such as poisson3d:100; 'declive generate --help' lists the problems
    #[arg(long, value_name = "PROBLEM")]
    generate: Option<Spec>,

    /// Write this format, whatever the name of OUTPUT
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Write the lower triangle of a symmetric, hermitian or skew-symmetric matrix [default: if the input does]
    #[arg(long, conflicts_with = "general")]
    symmetric: bool,

    /// Write all entries, even if the input has a lower triangle
    #[arg(long)]
    general: bool,

    /// Significant digits of real and complex values, 1 to 17 [default: the fewest that keep all bits]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u8).range(1..=17))]
    precision: Option<u8>,

    /// Leave out stored entries that are zero
    #[arg(long)]
    drop_zeros: bool,

    /// Reorder rows and columns alike, so that the band is narrow: B = A(p,p)
    ///
    /// rcm is the reverse Cuthill–McKee ordering. Row k of B is row p(k) of A. If B y = b(p), then x(p) = y is the
    /// solution of A x = b.
    #[arg(long, value_name = "ORDER")]
    reorder: Option<Order>,

    /// File for p, counted from 1: an integer vector as a Matrix Market array
    #[arg(long, value_name = "p.mtx", requires = "reorder")]
    permutation: Option<PathBuf>,

    /// File for the right-hand side that an archive has beside the matrix, reordered as the matrix is
    #[arg(long, value_name = "b.mtx")]
    rhs: Option<PathBuf>,

    /// Print the report as one JSON document
    ///
    /// Fields keep their meaning as long as "version" stays the same. What there is not, such as the header of a .npz
    /// file, is null.
    #[arg(long)]
    json: bool,

    /// Print no report in words, no progress, and no notes; what --json asks for is still printed
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A new order of rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Reverse Cuthill–McKee
    Rcm,
}

const USAGE: &str = "\
declive convert [OPTIONS] <INPUT> <OUTPUT>
       declive convert [OPTIONS] --generate <PROBLEM> <OUTPUT>";

const EXAMPLES: &str = "\
Examples:
  declive convert A.mtx A.npz
  declive convert bcsstk18.tar.gz A.npz --rhs b.mtx
  declive convert A.npz A.mtx.gz --symmetric
  declive convert A.mtx B.mtx --reorder rcm --permutation p.mtx
  declive generate jumps:64 | declive convert - A.npz";

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let start = Instant::now();
    let plan = Plan::new(args)?;
    interrupt::kill_cleanly();
    let screen = Screen::new(plan.quiet);
    let Loaded { a, header, duplicates, b, time } = plan.source.load(plan.zeros, plan.rhs.is_some(), screen)?;
    let b = match (&plan.rhs, b) {
        (None, _) => Vec::new(),
        (Some(_), Some(b)) => {
            let name = format!("the right-hand side in {}", plan.source);
            let b = b.into_real().ok_or_else(|| Failure::usage(format!("--rhs: {name} is complex")))?;
            of_length(b, a.n_rows(), name)?
        }
        (Some(_), None) => {
            let why = "has no right-hand side beside the matrix; only archives with a NAME_b.mtx do";
            return Err(Failure::usage(format!("--rhs: {} {why}", plan.source)));
        }
    };
    let job = Job { plan: &plan, header, duplicates, b, screen, start, read: time.as_secs_f64() };
    let report = match a {
        AnyCsr::Real(a) => job.finish(a)?,
        AnyCsr::Complex(a) => job.finish(a)?,
    };
    plan.report.publish(&report)?;
    Ok(Exit::Success)
}

/// All that is left to do for a matrix that was read, and what is to be said of it.
struct Job<'a> {
    plan: &'a Plan,
    header: Option<Header>,
    duplicates: u64,
    /// Right-hand sides to write.
    b: Vec<Vec<f64>>,
    screen: Screen,
    start: Instant,
    read: f64,
}

/// A matrix, and how it came to its order if that is new.
type Ordered<T> = (Csr<T>, Option<(Permutation, Reordering)>);

impl Job<'_> {
    fn finish<T: Element>(self, a: Csr<T>) -> Result<Report, Failure> {
        let plan = self.plan;
        let start = Instant::now();
        // before the new order, so that an error has the rows and columns of the file
        let mut options = match plan.output.format {
            Format::Mtx => words::options(&a, self.header.as_ref(), plan.entries)
                .map_err(|obstacle| Failure::about(&plan.source, obstacle.into()))?,
            Format::Npz => WriteOptions::default(),
        };
        options.precision = plan.precision;
        options.check(&a).map_err(|obstacle| Failure::about(&plan.source, obstacle.into()))?;
        options.comments = self.comments();
        let checks = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let (a, order) = self.reordered(a)?;
        let reorder = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let shown = self.screen.working(&format!("writing {}", plan.output.target.name()));
        if let (Some(place), Some((p, _))) = (&plan.permutation, &order) {
            place.write(&numbers(p)?, &self.permutation_options())?;
        }
        if let Some(place) = &plan.rhs {
            let comments = [format!("b of A x = b, {}", self.provenance())];
            match &order {
                None => place.write_columns(&self.b, &comments)?,
                Some((p, _)) => {
                    let b: Vec<_> = self.b.iter().map(|b| p.apply(b)).collect();
                    place.write_columns(&b, &comments)?;
                }
            }
        }
        plan.output.write(&a, &options)?;
        drop(shown);
        let seconds = Seconds {
            read: self.read,
            reorder: order.is_some().then_some(reorder),
            write: checks + start.elapsed().as_secs_f64(),
            total: self.start.elapsed().as_secs_f64(),
        };
        Ok(Report {
            matrix: Matrix::new(plan.source.to_string(), &a, self.duplicates),
            header: self.header.clone(),
            input_bytes: match &plan.source {
                Source::Input(Input::File(path)) => {
                    fs::metadata(path).ok().filter(Metadata::is_file).map(|meta| meta.len())
                }
                _ => None,
            },
            output: written(&plan.output, &options),
            reorder: order.map(|(_, reordering)| reordering),
            rhs: plan.rhs.as_ref().map(|place| Rhs { file: place.target.name(), columns: self.b.len() }),
            seconds,
        })
    }

    /// The matrix in the order that is wanted.
    fn reordered<T: Scalar>(&self, a: Csr<T>) -> Result<Ordered<T>, Failure> {
        let Some(Order::Rcm) = self.plan.order else { return Ok((a, None)) };
        let _shown = self.screen.working("reordering");
        let (rows, cols) = (a.n_rows(), a.n_cols());
        if rows != cols {
            let source = &self.plan.source;
            return Err(Failure::usage(format!(
                "--reorder: rows and columns can't have one order, as {source} has {rows} rows and {cols} columns"
            )));
        }
        let p = rcm(&a)?;
        let reordered = permuted(&a, &p)?;
        let reordering = Reordering {
            order: "rcm",
            bandwidth_before: Band::of(&a).bandwidth(),
            bandwidth_after: Band::of(&reordered).bandwidth(),
            permutation: self.plan.permutation.as_ref().map(|place| place.target.name()),
        };
        Ok((reordered, Some((p, reordering))))
    }

    fn provenance(&self) -> String {
        let order = if self.plan.order.is_some() { ", reordered by reverse Cuthill-McKee" } else { "" };
        format!("from {}{order}, by declive {DECLIVE}", self.plan.source)
    }

    /// Those of the input and one more.
    fn comments(&self) -> Vec<String> {
        let read = self.header.as_ref().map(|header| header.comments.as_slice()).unwrap_or_default();
        read.iter().cloned().chain([self.provenance()]).collect()
    }

    fn permutation_options(&self) -> WriteOptions {
        let comments = vec![
            format!("p of B = A(p,p), {}", self.provenance()),
            "If B y = b(p), then x(p) = y is the solution of A x = b.".into(),
        ];
        WriteOptions::default().with_layout(Layout::Array).with_field(Field::Integer).with_comments(comments)
    }
}

/// A permutation as a column of numbers from 1.
fn numbers(p: &Permutation) -> Result<Csr, Error> {
    let values = p.order().iter().map(|&old| f64::from(old) + 1.0).collect();
    Csr::new(p.len(), 1, (0..=p.len()).collect(), vec![0; p.len()], values)
}

fn written(place: &Place, options: &WriteOptions) -> Written {
    let is_text = place.format == Format::Mtx;
    Written {
        file: place.target.name(),
        format: place.format.name(),
        compression: place.packing.map(Packing::name),
        layout: is_text.then(|| options.layout.to_string()),
        field: options.field.map(|field| field.to_string()),
        symmetry: is_text.then(|| options.symmetry.to_string()),
        bytes: place.target.bytes(),
    }
}
