//! The facts about a matrix.

use declive::matrix::band::Band;
use declive::matrix::definiteness::{Definiteness, Obstacle, Proof};
use declive::matrix::histogram::RowLengths;
use declive::matrix::stats::Tally;
use declive::matrix::symmetry::{self, Symmetries};
use declive::matrix::values::{MainDiagonal, Range, Values};
use declive::matrix::{Complex64, Scalar, dominance};
use declive::matrix_market;
use serde::Serialize;

use super::info_advice::Advice;
use super::info_formats::Formats;
use super::{DECLIVE, VERSION};

/// All that is known about a matrix. Rows and columns are counted from 1, as in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(super) version: u32,
    pub(super) declive: &'static str,
    pub(super) matrix: Matrix,
    /// What the file says about itself; none for a generated matrix.
    pub(super) header: Option<Header>,
    pub(super) rows: Rows,
    pub(super) empty_columns: Places,
    pub(super) values: ValueFacts,
    pub(super) band: Band,
    /// The band of the matrix as reverse Cuthill–McKee would reorder it; none unless it is square.
    pub(super) band_after_rcm: Option<Band>,
    /// None unless the matrix is square, as all that follows up to `solve`.
    pub(super) symmetry: Option<Symmetry>,
    pub(super) diagonal: Option<Diagonal>,
    pub(super) dominance: Option<Dominance>,
    pub(super) positive_definite: Option<PositiveDefinite>,
    pub(super) solve: Advice,
    /// None unless there is something to solve.
    pub(super) formats: Option<Formats>,
    /// Where the picture was written.
    pub(super) spy: Option<String>,
    pub(super) seconds: Seconds,
}

/// The matrix as it was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    /// The file, or how it was made.
    pub(super) source: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Stored entries, symmetric files expanded.
    pub(super) nnz: usize,
    pub(super) complex: bool,
    /// Entries of the file that fell on others and were added.
    pub(super) duplicates: u64,
}

/// The header of a Matrix Market file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Header {
    pub(super) layout: String,
    pub(super) field: String,
    pub(super) symmetry: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) entries: u64,
    /// Lines of comments.
    pub(super) comments: usize,
}

/// The lengths of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rows {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) mean: f64,
    pub(super) empty: Places,
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

/// How many, and the row (or column) of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Places {
    pub(super) count: usize,
    pub(super) first: Option<usize>,
}

/// The stored values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ValueFacts {
    /// Stored entries whose value is 0.
    pub(super) zeros: Places,
    /// min |a_ij| over a_ij ≠ 0.
    pub(super) min: Option<f64>,
    /// max |a_ij| over a_ij ≠ 0.
    pub(super) max: Option<f64>,
}

/// Symmetry of the pattern and of the values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Symmetry {
    /// What a header could say: `symmetric`, `hermitian`, `skew-symmetric` or `general`.
    pub(super) kind: &'static str,
    pub(super) structural: bool,
    /// Entries whose mirror image is not stored.
    pub(super) unmatched: Places,
    pub(super) symmetric: Likeness,
    pub(super) skew_symmetric: Likeness,
    pub(super) hermitian: Likeness,
}

/// One symmetry of the values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Likeness {
    /// Up to 10⁻¹² of the diagonal.
    pub(super) holds: bool,
    /// Relative to √|a_ii a_jj|, or to the larger entry where that is 0; null if it is beyond all numbers.
    pub(super) largest_difference: f64,
    /// The first pair that differs by more than rounding.
    pub(super) first: Option<Pair>,
}

/// Two entries across the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pair {
    /// Of the entry above the diagonal.
    pub(super) row: usize,
    /// Of the entry above the diagonal.
    pub(super) column: usize,
    pub(super) upper: Number,
    pub(super) lower: Number,
}

/// A number; a complex one is `[re, im]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    /// A real number.
    Real(f64),
    /// A complex number.
    Complex([f64; 2]),
}

/// The main diagonal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Diagonal {
    pub(super) missing: Places,
    pub(super) zero: Places,
    pub(super) negative: Places,
    pub(super) not_real: Places,
    /// min |a_ii| over a_ii ≠ 0.
    pub(super) min: Option<f64>,
    /// max |a_ii|.
    pub(super) max: Option<f64>,
}

/// Diagonal dominance, in rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Dominance {
    /// |a_ii| > Σ |a_ij|.
    pub(super) strict: usize,
    /// |a_ii| = Σ |a_ij| exactly.
    pub(super) equal: usize,
    /// The two are equal up to the rounding of the sum.
    pub(super) close: usize,
    /// |a_ii| < Σ |a_ij|.
    pub(super) violated: Places,
    /// Where Σ |a_ij| / |a_ii| is largest.
    pub(super) worst_row: Option<usize>,
    /// That ratio; null if it is infinite.
    pub(super) worst_ratio: Option<f64>,
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

/// What a [`Report`] is made from.
#[derive(Debug)]
pub(crate) struct Facts<'a, T> {
    /// File of the matrix, or its recipe.
    pub(crate) source: String,
    /// Of the file.
    pub(crate) header: Option<&'a matrix_market::Header>,
    /// Entries of the file that fell on others.
    pub(crate) duplicates: u64,
    /// About the matrix.
    pub(crate) found: Found<T>,
    /// What a solve would do.
    pub(crate) advice: Advice,
    /// What formats would read.
    pub(crate) formats: Option<Formats>,
    /// Whether the numbers are complex.
    pub(crate) complex: bool,
    /// Where the picture went.
    pub(crate) spy: Option<String>,
    /// Time.
    pub(crate) seconds: Seconds,
}

/// What was found out about a matrix.
#[derive(Debug)]
pub(crate) struct Found<T> {
    /// Rows and columns.
    pub(crate) size: (usize, usize),
    /// Stored entries.
    pub(crate) nnz: usize,
    /// Lengths of rows.
    pub(crate) lengths: RowLengths,
    /// Empty rows.
    pub(crate) empty_rows: Tally,
    /// Empty columns.
    pub(crate) empty_columns: Tally,
    /// The values.
    pub(crate) values: Values,
    /// The band.
    pub(crate) band: Band,
    /// What only a square matrix has.
    pub(crate) square: Option<Square<T>>,
}

/// What was found out about a square matrix.
#[derive(Debug)]
pub(crate) struct Square<T> {
    /// The band after reordering.
    pub(crate) band_after_rcm: Band,
    /// Symmetries.
    pub(crate) symmetries: Symmetries<T>,
    /// The diagonal.
    pub(crate) diagonal: MainDiagonal,
    /// Dominance.
    pub(crate) dominance: dominance::Dominance,
    /// The verdict.
    pub(crate) definiteness: Definiteness<T>,
}

impl Report {
    /// Puts the facts in order.
    pub(crate) fn new<T: Scalar + Into<Number>>(facts: &Facts<'_, T>) -> Self {
        let found = &facts.found;
        let square = found.square.as_ref();
        Self {
            version: VERSION,
            declive: DECLIVE,
            matrix: Matrix {
                source: facts.source.clone(),
                rows: found.size.0,
                columns: found.size.1,
                nnz: found.nnz,
                complex: facts.complex,
                duplicates: facts.duplicates,
            },
            header: facts.header.map(Header::new),
            rows: Rows {
                min: found.lengths.min,
                max: found.lengths.max,
                mean: if found.size.0 == 0 { 0.0 } else { found.nnz as f64 / found.size.0 as f64 },
                empty: found.empty_rows.into(),
                histogram: found
                    .lengths
                    .buckets()
                    .map(|(lengths, rows)| Bucket { from: *lengths.start(), to: *lengths.end(), rows })
                    .collect(),
            },
            empty_columns: found.empty_columns.into(),
            values: ValueFacts {
                zeros: found.values.zeros.into(),
                min: found.values.range.map(|r| r.min),
                max: found.values.range.map(|r| r.max),
            },
            band: found.band,
            band_after_rcm: square.map(|s| s.band_after_rcm),
            symmetry: square.map(|s| Symmetry::new(&s.symmetries)),
            diagonal: square.map(|s| Diagonal::new(&s.diagonal)),
            dominance: square.map(|s| Dominance::new(&s.dominance)),
            positive_definite: square.map(|s| PositiveDefinite::new(&s.definiteness, facts.complex)),
            solve: facts.advice.clone(),
            formats: facts.formats.clone(),
            spy: facts.spy.clone(),
            seconds: facts.seconds,
        }
    }
}

impl Header {
    pub(super) fn new(header: &matrix_market::Header) -> Self {
        Self {
            layout: header.layout.to_string(),
            field: header.field.to_string(),
            symmetry: header.symmetry.to_string(),
            rows: header.rows,
            columns: header.cols,
            entries: header.entries,
            comments: header.comments.len(),
        }
    }
}

impl From<Tally> for Places {
    fn from(tally: Tally) -> Self {
        Self { count: tally.count, first: tally.first.map(|k| k + 1) }
    }
}

impl Symmetry {
    fn new<T: Scalar + Into<Number>>(found: &Symmetries<T>) -> Self {
        let kinds = [
            (found.symmetric.holds, "symmetric"),
            (found.hermitian.holds, "hermitian"),
            (found.skew.holds, "skew-symmetric"),
        ];
        Self {
            kind: kinds.into_iter().find(|k| k.0).map_or("general", |k| k.1),
            structural: found.structural(),
            unmatched: found.unmatched.into(),
            symmetric: Likeness::new(&found.symmetric),
            skew_symmetric: Likeness::new(&found.skew),
            hermitian: Likeness::new(&found.hermitian),
        }
    }
}

impl Likeness {
    fn new<T: Scalar + Into<Number>>(found: &symmetry::Likeness<T>) -> Self {
        Self { holds: found.holds, largest_difference: found.largest, first: found.first.map(Pair::from) }
    }
}

impl<T: Into<Number>> From<symmetry::Pair<T>> for Pair {
    fn from(pair: symmetry::Pair<T>) -> Self {
        Self { row: pair.row + 1, column: pair.col + 1, upper: pair.upper.into(), lower: pair.lower.into() }
    }
}

impl From<f64> for Number {
    fn from(v: f64) -> Self {
        Self::Real(v)
    }
}

impl From<Complex64> for Number {
    fn from(v: Complex64) -> Self {
        Self::Complex([v.re, v.im])
    }
}

impl Diagonal {
    fn new(found: &MainDiagonal) -> Self {
        let Range { min, max } = found.range.unwrap_or(Range { min: f64::NAN, max: f64::NAN });
        Self {
            missing: found.missing.into(),
            zero: found.zero.into(),
            negative: found.negative.into(),
            not_real: found.not_real.into(),
            min: Some(min).filter(|v| !v.is_nan()),
            max: Some(max).filter(|v| !v.is_nan()),
        }
    }

    /// Entries that are missing or not positive.
    pub(super) fn faults(&self) -> [(Places, &'static str); 4] {
        [(self.missing, "not stored"), (self.zero, "zero"), (self.negative, "negative"), (self.not_real, "not real")]
    }
}

impl Dominance {
    fn new(found: &dominance::Dominance) -> Self {
        Self {
            strict: found.strict,
            equal: found.equal,
            close: found.close,
            violated: found.violated.into(),
            worst_row: found.worst.map(|w| w.0 + 1),
            worst_ratio: found.worst.map(|w| w.1),
        }
    }
}

impl PositiveDefinite {
    fn new<T: Scalar + Into<Number>>(found: &Definiteness<T>, complex: bool) -> Self {
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
                let kind = if complex { "hermitian" } else { "symmetric" };
                let reason =
                    format!("it is {kind}, the diagonal is positive, and |a(i,j)|² < a(i,i) a(j,j) everywhere");
                ("maybe", None, None, reason)
            }
            Definiteness::Impossible(Obstacle::NotHermitian(pair)) => {
                let (kind, pair) = (if complex { "hermitian" } else { "symmetric" }, Pair::from(pair));
                let (i, j, upper, lower) = (pair.row, pair.column, pair.upper, pair.lower);
                let reason = if i == j {
                    format!("not {kind}: a({i},{i}) = {upper}")
                } else {
                    format!("not {kind}: a({i},{j}) = {upper} but a({j},{i}) = {lower}")
                };
                ("no", Some("hermitian"), Some((i, Some(j))), reason)
            }
            Definiteness::Impossible(Obstacle::Diagonal { row, value }) => {
                let i = row + 1;
                let reason = match value.map(Into::into) {
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
                let (value, d, e): (Number, _, _) =
                    (value.into(), Number::Real(diagonal_row), Number::Real(diagonal_col));
                let reason = format!("a({i},{j}) = {value} is too large beside a({i},{i}) = {d} and a({j},{j}) = {e}");
                ("no", Some("minor"), Some((i, Some(j))), reason)
            }
        };
        Self { verdict, reason, by, row: place.map(|p| p.0), column: place.and_then(|p| p.1) }
    }
}
