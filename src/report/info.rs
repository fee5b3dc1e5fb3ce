//! The facts about a matrix.

use std::ops::RangeInclusive;

use declive::matrix::band::Band;
use declive::matrix::definiteness::{Definiteness, Obstacle, Proof};
use declive::matrix::dominance::Dominance;
use declive::matrix::histogram::{RowLengths, empty_rows};
use declive::matrix::stats::Tally;
use declive::matrix::symmetry::{Pair, Symmetries};
use declive::matrix::values::{MainDiagonal, Values};
use declive::matrix::{Csr, Scalar};
use declive::matrix_market::Header;
use declive::solve::FormatSurvey;
use serde::Serialize;

use super::info_advice::Advice;
use super::units::number;

/// All that is known about a matrix. Rows and columns are counted from 1, as in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report<T> {
    pub(crate) matrix: Matrix,
    /// What the file says about itself; none for a generated matrix.
    pub(crate) header: Option<Header>,
    pub(crate) rows: Rows,
    pub(crate) empty_columns: Tally,
    pub(crate) values: Values,
    pub(crate) band: Band,
    /// The band of the matrix as reverse Cuthill–McKee would reorder it; none unless it is square.
    pub(crate) band_after_rcm: Option<Band>,
    /// None unless the matrix is square, as all that follows up to `solve`.
    pub(crate) symmetry: Option<Symmetry<T>>,
    pub(crate) diagonal: Option<MainDiagonal>,
    pub(crate) dominance: Option<Dominance>,
    pub(crate) positive_definite: Option<PositiveDefinite>,
    pub(crate) solve: Advice,
    /// None unless the matrix is square.
    pub(crate) formats: Option<FormatSurvey>,
    /// Where the picture was written.
    pub(crate) spy: Option<String>,
    pub(crate) seconds: Seconds,
}

/// The matrix as it was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    /// The file, or how it was made.
    pub(crate) source: String,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Stored entries, symmetric files expanded.
    pub(crate) nnz: usize,
    pub(crate) complex: bool,
    /// Entries of the file that fell on others and were added.
    pub(crate) duplicates: u64,
}

impl Matrix {
    /// Of a matrix from `source`.
    pub(crate) fn new<T: Scalar>(source: String, a: &Csr<T>, duplicates: u64) -> Self {
        let (rows, columns, nnz) = (a.n_rows(), a.n_cols(), a.nnz());
        Self { source, rows, columns, nnz, complex: T::IS_COMPLEX, duplicates }
    }
}

/// The lengths of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rows {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) mean: f64,
    pub(super) empty: Tally,
    /// From the bucket of the shortest row to that of the longest.
    pub(super) histogram: Vec<Bucket>,
}

/// Rows with `from` to `to` entries, both included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Bucket {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) rows: usize,
}

/// Symmetry of the pattern and of the values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Symmetry<T> {
    /// What a header could say: `symmetric`, `hermitian`, `skew-symmetric` or `general`.
    pub(super) kind: &'static str,
    pub(super) structural: bool,
    #[serde(flatten)]
    pub(super) found: Symmetries<T>,
}

/// What is known about positive definiteness.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PositiveDefinite {
    /// `yes`, `maybe` or `no`.
    pub(super) verdict: &'static str,
    /// In words.
    pub(super) reason: String,
    /// What proves it, `strictly-dominant` or `chained-dominant`, or what fails, `hermitian`, `diagonal`, `empty-row` or `minor`.
    pub(super) by: Option<&'static str>,
    /// Where it fails.
    pub(super) row: Option<usize>,
    /// Where it fails, if it is not on the diagonal.
    pub(super) column: Option<usize>,
}

/// Wall-clock time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Seconds {
    /// From the file, or the recipe, to the finished matrix.
    pub(crate) read: f64,
    /// All facts.
    pub(crate) analysis: f64,
    /// The picture.
    pub(crate) spy: f64,
    /// From the start of the program.
    pub(crate) total: f64,
}

impl Rows {
    /// Of a matrix.
    pub(crate) fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let lengths = RowLengths::of(a);
        let bucket =
            |(lengths, rows): (RangeInclusive<usize>, _)| Bucket { from: *lengths.start(), to: *lengths.end(), rows };
        Self {
            min: lengths.min,
            max: lengths.max,
            mean: if a.n_rows() == 0 { 0.0 } else { a.nnz() as f64 / a.n_rows() as f64 },
            empty: empty_rows(a),
            histogram: lengths.buckets().map(bucket).collect(),
        }
    }
}

impl<T: Scalar> From<Symmetries<T>> for Symmetry<T> {
    fn from(found: Symmetries<T>) -> Self {
        let kinds = [
            (found.symmetric.holds, "symmetric"),
            (found.hermitian.holds, "hermitian"),
            (found.skew.holds, "skew-symmetric"),
        ];
        let kind = kinds.into_iter().find(|kind| kind.0).map_or("general", |kind| kind.1);
        Self { kind, structural: found.structural(), found }
    }
}

/// The entries of a pair, of which there is one on the diagonal: `a(1,2) = 3 but a(2,1) = 4`.
pub(super) fn both<T: Scalar>(pair: &Pair<T>, between: &str) -> String {
    let (i, j, upper) = (pair.row + 1, pair.col + 1, number(pair.upper));
    if i == j {
        return format!("a({i},{i}) = {upper}");
    }
    format!("a({i},{j}) = {upper}{between}a({j},{i}) = {}", number(pair.lower))
}

impl PositiveDefinite {
    pub(crate) fn new<T: Scalar>(found: &Definiteness<T>) -> Self {
        let kind = if T::IS_COMPLEX { "hermitian" } else { "symmetric" };
        let (verdict, by, place, reason) = match *found {
            Definiteness::Proven(Proof::StrictlyDominant) => {
                let reason = "every diagonal entry is positive and larger than the others of its row together";
                ("yes", Some("strictly-dominant"), None, reason.to_owned())
            }
            Definiteness::Proven(Proof::ChainedDominant) => {
                let reason = "every diagonal entry is positive and at least as large as the others of its row \
                              together, and each row is joined to one where it is larger";
                ("yes", Some("chained-dominant"), None, reason.to_owned())
            }
            Definiteness::Possible => {
                let reason =
                    format!("it is {kind}, the diagonal is positive, and |a(i,j)|² < a(i,i) a(j,j) everywhere");
                ("maybe", None, None, reason)
            }
            Definiteness::Impossible(Obstacle::NotHermitian(pair)) => {
                let reason = format!("not {kind}: {}", both(&pair, " but "));
                ("no", Some("hermitian"), Some((pair.row + 1, Some(pair.col + 1))), reason)
            }
            Definiteness::Impossible(Obstacle::Diagonal { row, value }) => {
                let i = row + 1;
                let reason = match value.map(number) {
                    Some(value) => format!("a({i},{i}) = {value} is not positive"),
                    None => format!("a({i},{i}) is not stored, which makes it 0"),
                };
                ("no", Some("diagonal"), Some((i, None)), reason)
            }
            Definiteness::Impossible(Obstacle::EmptyRow { row }) => {
                let i = row + 1;
                ("no", Some("empty-row"), Some((i, None)), format!("row {i} has no entries: the matrix is singular"))
            }
            Definiteness::Impossible(Obstacle::Minor { row, col, value, diagonal_row, diagonal_col }) => {
                let (i, j) = (row + 1, col + 1);
                let (value, d, e) = (number(value), number(diagonal_row), number(diagonal_col));
                let reason = format!("a({i},{j}) = {value} is too large beside a({i},{i}) = {d} and a({j},{j}) = {e}");
                ("no", Some("minor"), Some((i, Some(j))), reason)
            }
        };
        Self { verdict, reason, by, row: place.map(|p| p.0), column: place.and_then(|p| p.1) }
    }
}
