//! How a run of a method ends, and why a solve does.

use std::fmt;

use crate::matrix::{Complex64, Shortage};

/// How a run of a method ended. A run begins with the true residual b − A x, and goes on by recurrence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// The true residual met the test at the start of the run.
    Converged,
    /// The recurrence met the test; the true residual has yet to be looked at.
    Presumed,
    /// By the recurrence, no other iterate has a smaller residual, which does not meet the test.
    Minimised,
    /// The former run has hardly reduced the true residual, or even increased it.
    Stalled { worse: bool },
    /// The run was as long as the method lets it be: the residual is to be replaced by the true one.
    Replaces,
    /// Rows had better be shared otherwise. The iterate and the direction are those to go on with.
    Moves,
    /// The method can't go on from here, but perhaps from the residual.
    BreaksDown,
    /// Something else.
    Ended(Reason),
}

/// Which part of the stop test was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Criterion {
    /// ‖b − A x‖₂ ≤ rtol ‖b‖₂.
    Rtol,
    /// ‖b − A x‖₂ ≤ atol.
    Atol,
    /// The normwise backward error is as small as was asked for.
    BackwardError,
    /// b = 0, so that x = 0 is the solution.
    ZeroRhs,
}

/// What showed that the matrix is not positive definite.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Indefinite {
    /// A diagonal entry that is not positive; the row counts from 1.
    Diagonal {
        /// Row, from 1.
        row: usize,
        /// The diagonal entry, 0 if none is stored.
        value: f64,
    },
    /// A row without entries, so that the matrix is singular.
    EmptyRow {
        /// Row, from 1.
        row: usize,
    },
    /// Entries on both sides of the diagonal that differ.
    Asymmetry {
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        col: usize,
        /// The entry in that place.
        upper: f64,
        /// Its mirror image.
        lower: f64,
    },
    /// Entries on both sides of the diagonal of a complex matrix that are not conjugates; or an entry on it that is not real.
    NotHermitian {
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        col: usize,
        /// The entry in that place.
        upper: Complex64,
        /// Its mirror image.
        lower: Complex64,
    },
    /// A direction p with p·Ap ≤ 0.
    Direction {
        /// The iteration, from 1.
        iteration: u64,
        /// p·Ap.
        curvature: f64,
    },
}

impl fmt::Display for Indefinite {
    /// The fact alone: `a(3,3) = -1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagonal { row, value: 0.0 } => write!(f, "a({row},{row}) = 0"),
            Self::Diagonal { row, value } => write!(f, "a({row},{row}) = {value:e}"),
            Self::EmptyRow { row } => write!(f, "row {row} has no entries"),
            Self::Asymmetry { row, col, upper, lower } => {
                write!(f, "a({row},{col}) = {upper:e} but a({col},{row}) = {lower:e}")
            }
            Self::NotHermitian { row, col, upper, .. } if row == col => {
                write!(f, "a({row},{col}) = {upper:e} is not real")
            }
            Self::NotHermitian { row, col, upper, lower } => {
                write!(f, "a({row},{col}) = {upper:e} is not the conjugate of a({col},{row}) = {lower:e}")
            }
            Self::Direction { iteration, curvature } => write!(f, "p·Ap = {curvature:e} in iteration {iteration}"),
        }
    }
}

/// What showed that the matrix is singular.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Singularity {
    /// Whatever the values of its entries.
    Structural(Shortage),
    /// In double precision: nothing but rounding errors was left to eliminate this row by, from 1.
    Numerical {
        /// Row, from 1.
        row: usize,
    },
    /// As a dense matrix, in the precision of its factors: nothing was left of this column once those before it were eliminated.
    Column {
        /// Column, from 1.
        column: usize,
    },
    /// Its columns sum to 0, as a whole or in connected parts, and the sums of b do not.
    Inconsistent {
        /// How many such parts there are.
        parts: usize,
        /// The least ‖b − A x‖₂ / ‖b‖₂ that any x has.
        least: f64,
    },
}

impl fmt::Display for Singularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Structural(shortage) => write!(f, "whatever its values: {shortage}"),
            Self::Numerical { row } => write!(f, "in double precision: no pivot for row {row}"),
            Self::Column { column } => write!(f, "in the precision of its factors: no pivot in column {column}"),
            Self::Inconsistent { parts, least } => {
                let where_ = if *parts == 1 { String::new() } else { format!(" in each of {parts} connected parts") };
                write!(f, "as its columns sum to 0{where_}, and no x has a relative residual below {least:.3e}")
            }
        }
    }
}

/// Why a solve ended. Only [`Reason::Converged`] and [`Reason::LeastSquares`] are successes, and they are said only after b − A x has
/// been recomputed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The stop test holds for the recomputed residual.
    Converged(Criterion),
    /// The system has no solution, and ‖b − A x‖₂ is the least there is: ‖Aᵀ r‖₂ ≤ rtol α ‖r‖₂ for the recomputed r = b − A x, with the root mean square α of the norms of A's columns (the
    /// second test of Paige and Saunders 1982, doi 10.1145/355984.355989). Said of methods that minimise it.
    LeastSquares,
    /// The limit on iterations.
    MaxIters,
    /// The limit on time.
    TimeLimit,
    /// It is forecast to take longer than what comes next does: why [`Method::Auto`](crate::solve::Method::Auto) goes on to that. No solve
    /// ends so.
    Slow,
    /// The true residual no longer falls: the precision is exhausted, or the system is singular.
    Stagnation,
    /// The true residual no longer falls, and is one of rounding: by its backward error no x in double precision is better.
    Rounding,
    /// The residual has grown beyond all bounds.
    Divergence,
    /// The matrix is not positive definite.
    IndefiniteOperator(Indefinite),
    /// The matrix is singular, and b not in its range, as far as can be told.
    Singular(Singularity),
    /// The method would divide by zero, or nearly so, and did again when it had started anew from the residual.
    Breakdown,
    /// An infinity or a NaN turned up.
    NonFinite(&'static str),
    /// The caller asked for the end.
    Interrupted,
}

impl Reason {
    /// Whether the solve succeeded.
    #[must_use]
    pub fn converged(&self) -> bool {
        matches!(self, Self::Converged(_) | Self::LeastSquares)
    }

    /// The variant's name, for machines: `Converged`, `MaxIters`, …
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Converged(_) => "Converged",
            Self::LeastSquares => "LeastSquares",
            Self::MaxIters => "MaxIters",
            Self::TimeLimit => "TimeLimit",
            Self::Slow => "Slow",
            Self::Stagnation => "Stagnation",
            Self::Rounding => "Rounding",
            Self::Divergence => "Divergence",
            Self::IndefiniteOperator(_) => "IndefiniteOperator",
            Self::Singular(_) => "Singular",
            Self::Breakdown => "Breakdown",
            Self::NonFinite(_) => "NonFinite",
            Self::Interrupted => "Interrupted",
        }
    }
}

impl fmt::Display for Reason {
    /// `Name: explanation`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        self.explain(f)
    }
}

impl Reason {
    /// The explanation alone.
    #[must_use]
    pub fn text(&self) -> String {
        struct Text<'a>(&'a Reason);
        impl fmt::Display for Text<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.explain(f)
            }
        }
        Text(self).to_string()
    }

    fn explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Converged(Criterion::Rtol) => f.write_str("the relative residual is below rtol"),
            Self::Converged(Criterion::Atol) => f.write_str("the residual is below atol"),
            Self::Converged(Criterion::BackwardError) => f.write_str("the backward error is as small as asked for"),
            Self::Converged(Criterion::ZeroRhs) => f.write_str("the right-hand side is zero, and so is x"),
            Self::LeastSquares => f.write_str("no x has a smaller residual, which is not 0: the system has no solution"),
            Self::MaxIters => f.write_str("the limit on iterations was reached"),
            Self::TimeLimit => f.write_str("the limit on time was reached"),
            Self::Slow => f.write_str("what came before is forecast to take longer"),
            Self::Stagnation => {
                f.write_str("the true residual no longer falls; the precision is exhausted, or the system is singular")
            }
            Self::Rounding => f.write_str(
                "the true residual no longer falls, and its backward error is one of rounding: no x in double precision is better",
            ),
            Self::Divergence => f.write_str("the residual has grown beyond all bounds"),
            Self::IndefiniteOperator(what @ Indefinite::EmptyRow { .. }) => write!(f, "{what}: the matrix is singular"),
            Self::IndefiniteOperator(what) => write!(f, "the matrix is not positive definite: {what}"),
            Self::Singular(what) => write!(f, "the matrix is singular {what}"),
            Self::Breakdown => f.write_str("the method has come to a division by zero, or nearly so"),
            Self::NonFinite(what) => write!(f, "an infinity or a NaN in {what}"),
            Self::Interrupted => f.write_str("stopped on request"),
        }
    }
}
