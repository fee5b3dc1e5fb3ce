//! What kind of matrix a problem has.

use crate::named::named;

named! {
    /// What kind of matrix a [`Problem`](super::Problem) has, which tells the methods that can solve it.
    Class, "kind of matrix":
    PositiveDefinite = "spd", "symmetric positive definite";
    Semidefinite = "semidefinite", "symmetric positive semidefinite and singular";
    Indefinite = "indefinite", "symmetric indefinite";
    Unsymmetric = "unsymmetric", "unsymmetric";
    UnsymmetricSingular = "unsymmetric-singular", "unsymmetric and singular";
    Rectangular = "rectangular", "rectangular";
    ComplexSymmetric = "complex-symmetric", "complex symmetric";
    HermitianPositiveDefinite = "hermitian", "Hermitian positive definite";
}

impl Class {
    /// Whether entries are complex.
    #[must_use]
    pub fn is_complex(self) -> bool {
        matches!(self, Self::ComplexSymmetric | Self::HermitianPositiveDefinite)
    }

    /// Whether A = Aᵀ, to the bit.
    #[must_use]
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::PositiveDefinite | Self::Semidefinite | Self::Indefinite | Self::ComplexSymmetric)
    }

    /// Whether A is its own conjugate transpose, to the bit; of real matrices, whether it is symmetric.
    #[must_use]
    pub fn is_hermitian(self) -> bool {
        self == Self::HermitianPositiveDefinite || (self.is_symmetric() && !self.is_complex())
    }

    /// Whether all eigenvalues are positive.
    #[must_use]
    pub fn is_positive_definite(self) -> bool {
        matches!(self, Self::PositiveDefinite | Self::HermitianPositiveDefinite)
    }

    /// Whether A x = b has solutions for some b only.
    #[must_use]
    pub fn is_singular(self) -> bool {
        matches!(self, Self::Semidefinite | Self::UnsymmetricSingular)
    }
}
