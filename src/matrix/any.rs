//! A matrix whose kind of numbers is known only at run time.

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
