//! Sparse direct factorisations on the host, by one thread.
//!
//! | module | its one job |
//! |---|---|
//! | [`cholesky`] | A = L Lᵀ of symmetric positive definite matrices, by the crate `faer` |
//! | [`ldlt`] | A = L D Lᵀ of other symmetric matrices |
//! | [`lu`] | A = L U of any others |
//! | [`band`] | A = L U of a matrix with a narrow band, in the order given |
//! | [`multifrontal`] | the numbers of both, by dense fronts, with pivots within supernodes |
//! | [`front`] | what has to be done with a front |
//! | [`square`], [`symmetric`] | that for L U and for L D Lᵀ, and solves |
//! | [`trapezoid`] | the lower half of a symmetric front, and products for it |
//! | [`pivoting`] | L U column by column, with pivots from all rows |
//! | [`pairs`] | rows of a symmetric matrix that are pivots together |
//! | [`tree`], [`side`] | an order with little fill, supernodes, and what they take; where rows go, and their scaling |
//! | [`mod@refine`] | iterative refinement |
//!
//! ```text
//! Csr ─ Analysis: order, bytes, operations ─ Factor ─ solve ─ refine ─ verify
//! ```
//!
//! An [`Analysis`] knows beforehand what the factor takes, as no pivot changes the pattern; where pivots from all rows are
//! needed after all, for L U, which does change it, that ends when it would take more.
//!
//! L D Lᵀ is our own, as that of `faer` pivots within a supernode only: where a supernode is one row with a zero on the diagonal,
//! as in saddle point problems, its factor is full of NaN. Here rows that are good pivots together are in one supernode, and pivots that are
//! too small are replaced. Where refinement can't repair that, L U is next.

mod band;
mod cholesky;
mod front;
mod ldlt;
mod lu;
mod multifrontal;
mod pairs;
mod pivoting;
mod refine;
mod side;
mod square;
mod symmetric;
#[cfg(test)]
mod tests;
mod trapezoid;
mod tree;

use std::fmt;

pub(crate) use band::{is_narrow, widths};
pub use refine::Refinement;
pub(crate) use refine::{STEPS, Step, refine, refine_by};

use crate::error::{Error, Result};
use crate::matrix::{Csr, Deficiency};
use crate::memory::available_bytes;

/// A factorisation. Each takes more than the one before, and is for more matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A = L Lᵀ, of a symmetric positive definite matrix. Only the entries with column ≤ row are looked at.
    Cholesky,
    /// A = L D Lᵀ with blocks of order 1 and 2 in D, of a symmetric matrix. Only the entries with column ≤ row are looked at.
    Ldlt,
    /// A = L U, of any square matrix.
    Lu,
    /// A = L U of a matrix with at most 8 diagonals on either side of the main one.
    Band,
}

impl Kind {
    /// The one to begin with.
    pub(crate) fn of(is_symmetric: bool, may_be_definite: bool) -> Self {
        match (is_symmetric, may_be_definite) {
            (true, true) => Self::Cholesky,
            (true, false) => Self::Ldlt,
            (false, _) => Self::Lu,
        }
    }

    /// The one to go on with, where a symmetric matrix has not this one, or it is too inexact.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Cholesky => Some(Self::Ldlt),
            Self::Ldlt => Some(Self::Lu),
            Self::Lu | Self::Band => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cholesky => "Cholesky",
            Self::Ldlt => "LDLᵀ",
            Self::Lu => "LU",
            Self::Band => "band LU",
        })
    }
}

/// Why a matrix has no such factorisation. Rows count from 0; as text, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Singular {
    /// Singular whatever the values of its entries.
    Structurally(Deficiency),
    /// A pivot that is not positive, or nothing but rounding errors: the matrix is not positive definite, or singular in double
    /// precision. What remains of it, once the rows that are eliminated before are, has this row to blame; others may be, too.
    NotPositiveDefinite {
        /// The row.
        row: usize,
    },
}

impl fmt::Display for Singular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Structurally(deficiency) => write!(f, "the matrix is structurally singular: {deficiency}"),
            Self::NotPositiveDefinite { row } => {
                write!(
                    f,
                    "the matrix is not positive definite in double precision: no positive pivot for row {}",
                    row + 1
                )
            }
        }
    }
}

/// What is known of a factorisation before any number is computed: the order of the rows, and all sizes.
#[derive(Debug)]
pub(crate) struct Analysis(Analysed);

#[derive(Debug)]
enum Analysed {
    Cholesky(cholesky::Analysis),
    Ldlt(ldlt::Analysis),
    Lu(lu::Analysis),
    Band(band::Analysis),
}

impl Analysis {
    /// Orders rows and columns for little fill, by approximate minimum degree. For [`Kind::Lu`] it first moves large entries to the
    /// diagonal, for [`Kind::Ldlt`] next to it, and scales rows and columns, for which it looks at values, too. O(nnz log n), typically.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::OutOfMemory`]; [`Error::NotBanded`] for [`Kind::Band`] where the band is not narrow. [`Singular`] where that
    /// is seen already.
    pub(crate) fn new(a: &Csr, kind: Kind) -> Result<std::result::Result<Self, Singular>> {
        if a.n_rows() != a.n_cols() {
            return Err(Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() });
        }
        Ok(match kind {
            Kind::Cholesky => cholesky::Analysis::new(a)?.map(|analysis| Self(Analysed::Cholesky(analysis))),
            Kind::Ldlt => ldlt::Analysis::new(a)?.map(|analysis| Self(Analysed::Ldlt(analysis))),
            Kind::Lu => lu::Analysis::new(a)?.map(|analysis| Self(Analysed::Lu(analysis))),
            Kind::Band => Ok(Self(Analysed::Band(band::Analysis::new(widths(a)?, a.n_rows())))),
        })
    }

    /// Which factorisation it is of.
    pub(crate) fn kind(&self) -> Kind {
        match &self.0 {
            Analysed::Cholesky(_) => Kind::Cholesky,
            Analysed::Ldlt(_) => Kind::Ldlt,
            Analysed::Lu(_) => Kind::Lu,
            Analysed::Band(_) => Kind::Band,
        }
    }

    /// Bytes that the factor and the workspace of its computation take at most at one time, beside the matrix and what the allocator
    /// needs itself. Of large matrices this is what they take; of small ones [`Kind::Lu`] may take up to some 50 MB, if pivots from all
    /// rows are needed, and most often takes much less.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.0 {
            Analysed::Cholesky(analysis) => analysis.bytes(),
            Analysed::Ldlt(analysis) => analysis.bytes(),
            Analysed::Lu(analysis) => analysis.bytes(),
            Analysed::Band(analysis) => analysis.bytes(),
        }
    }

    /// Elements of the factor, those of supernodes that are 0 among them: a solve multiplies by each once.
    pub(crate) fn elements(&self) -> u64 {
        match &self.0 {
            Analysed::Cholesky(analysis) => 2 * analysis.elements(),
            Analysed::Ldlt(analysis) => 2 * analysis.elements(),
            Analysed::Lu(analysis) => analysis.elements(),
            Analysed::Band(analysis) => analysis.elements(),
        }
    }

    /// Multiplications and additions of the factorisation.
    pub(crate) fn flops(&self) -> f64 {
        match &self.0 {
            Analysed::Cholesky(analysis) => analysis.flops(),
            Analysed::Ldlt(analysis) => analysis.flops(),
            Analysed::Lu(analysis) => analysis.flops(),
            Analysed::Band(analysis) => analysis.flops(),
        }
    }
}

/// A factorised matrix.
#[derive(Debug)]
pub(crate) struct Factor {
    factors: Factorised,
    elements: u64,
}

#[derive(Debug)]
enum Factorised {
    Cholesky(cholesky::Factor),
    Ldlt(ldlt::Factor),
    Lu(lu::Factor),
    Band(band::Factor),
}

impl Factor {
    /// Factorises `a`, of which `analysis` must be. What the processor does in the number of operations that the analysis tells, on
    /// one thread.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where there is less than [`Analysis::bytes`], see [`available_bytes`], or the system gives less.
    /// [`Singular`] for a matrix that is not positive definite, with [`Kind::Cholesky`].
    ///
    /// # Panics
    /// If `a` has not the pattern of the matrix that was analysed.
    pub(crate) fn new(analysis: Analysis, a: &Csr) -> Result<std::result::Result<Self, Singular>> {
        let bytes = analysis.bytes();
        if available_bytes().is_some_and(|free| bytes > free) {
            return Err(Error::OutOfMemory { what: format!("the {} factor", analysis.kind()), bytes });
        }
        let elements = analysis.elements();
        let factors = match analysis.0 {
            Analysed::Cholesky(analysis) => cholesky::Factor::new(analysis, a)?.map(Factorised::Cholesky),
            Analysed::Ldlt(analysis) => Ok(Factorised::Ldlt(ldlt::Factor::new(analysis, a)?)),
            Analysed::Lu(analysis) => Ok(Factorised::Lu(lu::Factor::new(analysis, a)?)),
            Analysed::Band(analysis) => Ok(Factorised::Band(band::Factor::new(&analysis, a)?)),
        };
        Ok(factors.map(|factors| Self { factors, elements }))
    }

    /// Which factorisation it is.
    pub(crate) fn kind(&self) -> Kind {
        match &self.factors {
            Factorised::Cholesky(_) => Kind::Cholesky,
            Factorised::Ldlt(_) => Kind::Ldlt,
            Factorised::Lu(_) => Kind::Lu,
            Factorised::Band(_) => Kind::Band,
        }
    }

    /// Elements of the factors: a solve multiplies by each once.
    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Rows whose pivot, too small, was replaced by a larger one. If there are any, the factor is that of a matrix nearby, and a
    /// solution needs [`refine()`]: it does not get one where the matrix is singular and b not in its range.
    pub(crate) fn perturbed(&self) -> &[u32] {
        match &self.factors {
            Factorised::Cholesky(_) => &[],
            Factorised::Ldlt(factor) => factor.perturbed(),
            Factorised::Lu(factor) => factor.perturbed(),
            Factorised::Band(factor) => factor.perturbed(),
        }
    }

    /// x = A⁻¹ b.
    ///
    /// # Panics
    /// If `b` or `x` has not one element a row.
    pub(crate) fn solve(&self, b: &[f64], x: &mut [f64]) {
        match &self.factors {
            Factorised::Cholesky(factor) => factor.solve(b, x),
            Factorised::Ldlt(factor) => factor.solve(b, x),
            Factorised::Lu(factor) => factor.solve(b, x),
            Factorised::Band(factor) => factor.solve(b, x),
        }
    }
}
