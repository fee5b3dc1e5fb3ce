//! `declive info`: what a matrix is like.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgGroup;
use declive::Csr;
use declive::matrix::band::Band;
use declive::matrix::equivalent::real_form;
use declive::matrix::gallery::Spec;
use declive::matrix::histogram::empty_columns;
use declive::matrix::spy::{Format, Spy};
use declive::matrix::values::Values;
use declive::matrix::{AnyCsr, Scalar};
use declive::matrix_market::Zeros;
use declive::solve::formats;
use serde::Serialize;

use super::exit::Exit;
use super::failure::Failure;
use super::input::{Loaded, Source};
use super::interrupt;
use super::output::{Target, print};
use super::progress::Screen;
use crate::report::info::{Matrix, PositiveDefinite, Report, Rows, Seconds};
use crate::report::info_advice::{Advice, Square};

/// Tell what a matrix is like, and whether a solve fits it
///
/// Size, symmetry, diagonal, dominance, bandwidth before and after reordering, lengths of rows; whether the matrix is,
/// may be or can't be positive definite; what 'declive solve' would do with it, and what products would read in each
/// format. Nothing is solved, and no device is used.
#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("system").required(true).args(["matrix", "generate"])),
    after_help = EXAMPLES
)]
pub(crate) struct Args {
    /// File: Matrix Market, compressed or not, SuiteSparse's archive, or SciPy's .npz; - is standard input
    #[arg(value_name = "A.mtx")]
    matrix: Option<PathBuf>,

    /// Make the matrix instead of reading it, such as poisson3d:100; 'declive generate --help' lists the problems
    #[arg(long, value_name = "PROBLEM")]
    generate: Option<Spec>,

    /// File for a picture of the pattern: SVG or PNG, by its ending
    #[arg(long, value_name = "FILE.svg|.png")]
    spy: Option<PathBuf>,

    /// Print one JSON document instead of text
    ///
    /// Fields keep their meaning as long as "version" stays the same. Rows and columns are counted from 1; what makes
    /// no sense for a matrix, such as the diagonal of a rectangular one, is null.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive info A.mtx
  declive info A.mtx --spy A.svg
  declive info --generate jumps:64 --json";

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let start = Instant::now();
    let source = Source::named(args.matrix, args.generate).ok_or_else(Failure::no_matrix)?;
    let picture = args.spy.map(|path| Picture::plan(&path, &source)).transpose()?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let read = source.load(Zeros::Keep, false, screen)?;

    let request = Request { source: source.to_string(), picture: picture.as_ref(), start };
    match &read.a {
        AnyCsr::Real(a) => publish(look(a, &read, &request, screen), args.json),
        AnyCsr::Complex(a) => publish(look(a, &read, &request, screen), args.json),
    }
}

/// The report is worth having even if the picture can't be written.
fn publish<T: Scalar + Serialize>(
    (report, drawn): (Report<T>, Result<(), Failure>),
    is_json: bool,
) -> Result<Exit, Failure> {
    print(&report, is_json)?;
    drawn.map(|()| Exit::Success)
}

/// What the report says beside the facts about the matrix.
struct Request<'a> {
    source: String,
    picture: Option<&'a Picture>,
    start: Instant,
}

/// Finds out everything, and draws the picture.
fn look<T: Scalar>(
    a: &Csr<T>,
    read: &Loaded,
    request: &Request<'_>,
    screen: Screen,
) -> (Report<T>, Result<(), Failure>) {
    let _shown = screen.working(&format!("looking at {}", request.source));
    let start = Instant::now();
    let square = Square::of(a);
    let square = square.as_ref();
    let mut advice = Advice::new(a, square);
    let form = if let AnyCsr::Complex(a) = &read.a { real_form(a).ok() } else { None };
    let real = if let AnyCsr::Real(a) = &read.a { Some(a) } else { form.as_ref() };
    let formats = square.and(real).map(|a| {
        advice.look_at_factors(a);
        let formats = formats(a, &advice.setup());
        advice.look_ahead(a, &formats, !T::IS_COMPLEX);
        formats
    });
    let mut report = Report {
        matrix: Matrix::new(request.source.clone(), a, read.duplicates),
        header: read.header.clone(),
        rows: Rows::of(a),
        empty_columns: empty_columns(a),
        values: Values::of(a),
        band: Band::of(a),
        band_after_rcm: square.map(|square| square.band_after_rcm),
        symmetry: square.map(|square| square.symmetries.into()),
        diagonal: square.map(|square| square.diagonal),
        dominance: square.map(|square| square.dominance),
        positive_definite: square.map(|square| PositiveDefinite::new(&square.definiteness)),
        solve: advice,
        formats,
        spy: None,
        seconds: Seconds { read: read.time.as_secs_f64(), ..Seconds::default() },
    };
    report.seconds.analysis = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let drawn = request.picture.map_or(Ok(()), |picture| picture.draw(a, &request.source));
    report.seconds.spy = start.elapsed().as_secs_f64();
    report.seconds.total = request.start.elapsed().as_secs_f64();
    report.spy = request.picture.filter(|_| drawn.is_ok()).map(|picture| picture.target.name());
    (report, drawn)
}

/// A picture to be drawn.
struct Picture {
    format: Format,
    target: Target,
}

impl Picture {
    /// Checks, before any work, that the name has a known ending and the file can be written.
    fn plan(path: &Path, source: &Source) -> Result<Self, Failure> {
        let format = Format::of_path(path)?;
        let target = Target::probe(path)?;
        target.keeps("--spy", source.file(), "which is the matrix")?;
        Ok(Self { format, target })
    }

    fn draw<T: Scalar>(&self, a: &Csr<T>, title: &str) -> Result<(), Failure> {
        let spy = Spy::of(a);
        self.target.write(|out| spy.write(self.format, title, out))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use declive::matrix::Complex64;

    use super::*;
    use crate::report::json;

    fn report(n: usize, rows: &[u32], cols: &[u32], values: &[Complex64]) -> Report<Complex64> {
        let a = Csr::from_triplets(n, n, rows, cols, values).unwrap();
        let request = Request { source: "A.mtx".into(), picture: None, start: Instant::now() };
        let read =
            Loaded { a: a.clone().into(), header: None, duplicates: 0, b: None, time: Duration::from_millis(500) };
        look(&a, &read, &request, Screen::new(true)).0
    }

    fn squeezed(report: &Report<Complex64>) -> String {
        let text = report.to_string();
        assert!(text.lines().all(|l| l.chars().count() <= 80 && l.trim_end() == l), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_hermitian_matrix() {
        let c = Complex64::new;
        let values = [c(2.0, 0.0), c(0.0, 1.0), c(0.0, -1.0), c(3.0, 0.0)];
        let report = report(2, &[0, 0, 1, 1], &[0, 1, 0, 1], &values);
        let text = squeezed(&report);
        for part in [
            "Hermitian positive definite: a matrix for declive solve.",
            "precond jacobi: it evens out the diagonal, which varies by a factor of 1.50 \
             solved as a real system of twice the order",
            "at first direct, if no devices are named",
            "found complex hermitian, 2 × 2, 4 entries",
            "symmetric no; a(1,2) = 0 + 1i, a(2,1) = 0 − 1i; relative differences up to 8.16e-1",
            "hermitian yes, to the last bit",
            "pos. definite yes: ",
            "read 0.5000 s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
        assert_eq!(value["symmetry"]["symmetric"]["first"]["lower"], serde_json::json!([0.0, -1.0]));
        assert_eq!((&value["symmetry"]["kind"], &value["matrix"]["complex"]), (&"hermitian".into(), &true.into()));
    }

    #[test]
    fn a_complex_symmetric_matrix() {
        let i = Complex64::new(0.0, 1.0);
        let report = report(2, &[0, 0, 1], &[0, 1, 0], &[i, i, i]);
        let text = squeezed(&report);
        for part in [
            "Not Hermitian: a matrix for declive solve.",
            "method idr: not hermitian: a(1,1) = 0 + 1i",
            "precond jacobi: it evens out the moduli of the diagonal",
            "found complex symmetric",
            "hermitian no; a(1,1) = 0 + 1i; ",
            "diagonal 1 not stored, first in row 2; 1 not real, first in row 1; |a(i,i)| is 1 throughout",
            "dominance strict in 0 rows, equality in 1, violated in 1, first in row 2, largest",
            "largest Σ|a(i,j)| / |a(i,i)| inf in row 2",
            "pos. definite no: not hermitian: a(1,1) = 0 + 1i",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
        assert!(value["dominance"]["worst_ratio"].is_null());
        assert_eq!(value["positive_definite"]["column"], 1);
    }
}
