//! What the banner of a Matrix Market file says of the matrix.

use std::fmt;

use serde::Serialize;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// A matrix.
    Matrix,
    /// A vector, which is read as a matrix of one column.
    Vector,
}

/// How the entries are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The nonzeros, each with its row and column.
    Coordinate,
    /// All entries, column by column.
    Array,
}

/// What the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Field {
    /// Real numbers, also called `double`.
    Real,
    /// Whole numbers.
    Integer,
    /// Whole numbers that are not negative.
    UnsignedInteger,
    /// Complex numbers, as real and imaginary part.
    Complex,
    /// No values: every entry is 1.
    Pattern,
}

/// Which entries the others follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Symmetry {
    /// None: all entries are stored.
    General,
    /// `a(i,j) = a(j,i)`.
    Symmetric,
    /// `a(i,j) = -a(j,i)`.
    SkewSymmetric,
    /// `a(i,j)` is the conjugate of `a(j,i)`.
    Hermitian,
}

impl Object {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Vector => "vector",
        }
    }
}

impl Layout {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Coordinate => "coordinate",
            Self::Array => "array",
        }
    }
}

impl Field {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::UnsignedInteger => "unsigned-integer",
            Self::Complex => "complex",
            Self::Pattern => "pattern",
        }
    }
}

impl Symmetry {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "hermitian",
        }
    }

    /// Whether an entry stands for its mirror image, too.
    pub(crate) fn mirrors(self) -> bool {
        self != Self::General
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
