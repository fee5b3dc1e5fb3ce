//! What the Matrix Market format, or the options, can't say of a matrix.

use crate::banner::{Field, Symmetry};

/// Why a matrix can't be written with the options given. Rows and columns are counted from 1, as in files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unwritable {
    /// Two options that exclude each other.
    #[error("a Matrix Market file cannot be both \"{first}\" and \"{second}\"")]
    Contradiction {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },

    /// A number of digits that makes no sense.
    #[error("{found} significant digits; a double has 1 to 17")]
    Precision {
        /// The number asked for.
        found: usize,
    },

    /// A symmetry of a matrix that is not square.
    #[error("a {symmetry} matrix must be square, but this one has {rows} rows and {cols} columns")]
    NotSquare {
        /// The symmetry.
        symmetry: Symmetry,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },

    /// An entry and its mirror image that do not fit the symmetry.
    #[error(
        "the matrix is not {symmetry}: a({row},{col}) is {value}, but a({col},{row}) is {mirror}; \
         write it as general, or mend it"
    )]
    NotMirrored {
        /// The symmetry.
        symmetry: Symmetry,
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        col: usize,
        /// The entry.
        value: String,
        /// What stands across the diagonal, `not stored` if nothing does.
        mirror: String,
    },

    /// An entry on the diagonal that the symmetry excludes.
    #[error(
        "the matrix is not {symmetry}: a({index},{index}) is {value}, but must be {must}; \
         write it as general, or mend it"
    )]
    Diagonal {
        /// The symmetry.
        symmetry: Symmetry,
        /// Row and column.
        index: usize,
        /// The entry.
        value: String,
        /// What it must be: `0` or `real`.
        must: &'static str,
    },

    /// A value that the field has no words for.
    #[error("a({row},{col}) is {value}, which the field \"{field}\" has no words for; write it as {hint}")]
    Value {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        col: usize,
        /// The entry.
        value: String,
        /// The field.
        field: Field,
        /// A field that can say it.
        hint: &'static str,
    },

    /// A value that as many digits as asked for would round up beyond the largest double.
    #[error(
        "a({row},{col}) is {value}, which a precision of {digits} would round to more than a double can hold; \
         give more digits"
    )]
    Rounding {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        col: usize,
        /// The entry.
        value: String,
        /// The number of significant digits.
        digits: usize,
    },

    /// An element of a vector that is infinite or NaN, which the format has no words for.
    #[error("element {index} of vector {vector} is {value}, not a finite number")]
    NotFinite {
        /// The vector, from 1.
        vector: usize,
        /// The element, from 1.
        index: usize,
        /// Its value.
        value: String,
    },

    /// Vectors that can't be the columns of one array.
    #[error("vector {vector} has {found} elements, but vector 1 has {expected}")]
    Length {
        /// The vector, from 1.
        vector: usize,
        /// How many elements it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
}

impl From<Unwritable> for std::io::Error {
    /// An error of the kind `InvalidInput` with the cause inside.
    fn from(cause: Unwritable) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, cause)
    }
}
