//! Matrices and vectors whose kind of numbers is known only at run time.

use super::{Complex64, Csr};

/// A real or a complex matrix, as a file may hold either.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyCsr {
    /// Real numbers.
    Real(Csr),
    /// Complex numbers.
    Complex(Csr<Complex64>),
}

/// Runs the same expression on either kind of matrix.
macro_rules! either {
    ($any:expr, $a:ident => $body:expr) => {
        match $any {
            AnyCsr::Real($a) => $body,
            AnyCsr::Complex($a) => $body,
        }
    };
}

impl AnyCsr {
    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        either!(self, a => a.n_rows())
    }

    /// Number of columns.
    #[must_use]
    pub fn n_cols(&self) -> usize {
        either!(self, a => a.n_cols())
    }

    /// Number of stored entries.
    #[must_use]
    pub fn nnz(&self) -> usize {
        either!(self, a => a.nnz())
    }

    /// Whether the numbers are complex.
    #[must_use]
    pub fn is_complex(&self) -> bool {
        matches!(self, Self::Complex(_))
    }

    /// The real matrix, if it is one.
    #[must_use]
    pub fn into_real(self) -> Option<Csr> {
        match self {
            Self::Real(a) => Some(a),
            Self::Complex(_) => None,
        }
    }
}

impl From<Csr> for AnyCsr {
    fn from(a: Csr) -> Self {
        Self::Real(a)
    }
}

impl From<Csr<Complex64>> for AnyCsr {
    fn from(a: Csr<Complex64>) -> Self {
        Self::Complex(a)
    }
}

/// Real or complex vectors of one length, as a file may hold either.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyVectors {
    /// Real numbers.
    Real(Vec<Vec<f64>>),
    /// Complex numbers.
    Complex(Vec<Vec<Complex64>>),
}

impl AnyVectors {
    /// The real vectors, if they are.
    #[must_use]
    pub fn into_real(self) -> Option<Vec<Vec<f64>>> {
        match self {
            Self::Real(vectors) => Some(vectors),
            Self::Complex(_) => None,
        }
    }

    /// The complex vectors; real ones with imaginary parts of 0.
    #[must_use]
    pub fn into_complex(self) -> Vec<Vec<Complex64>> {
        match self {
            Self::Real(vectors) => vectors.into_iter().map(|v| v.into_iter().map(Complex64::from).collect()).collect(),
            Self::Complex(vectors) => vectors,
        }
    }
}

impl From<&AnyCsr> for AnyVectors {
    /// The columns of a matrix in full.
    fn from(a: &AnyCsr) -> Self {
        match a {
            AnyCsr::Real(a) => Self::Real(a.to_columns()),
            AnyCsr::Complex(a) => Self::Complex(a.to_columns()),
        }
    }
}
