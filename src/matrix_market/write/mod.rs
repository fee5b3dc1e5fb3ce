//! The writer.

mod check;
mod head;
mod lines;
mod nearest;
mod stream;
mod text;

use std::io::{Result, Write};

use self::lines::Values;
use self::stream::write_lines;
use self::text::Spelling;
use super::header::{Field, Layout, Symmetry};
use crate::Csr;
use crate::matrix::Scalar;
use crate::setters::setters;

pub use crate::error::unwritable::Unwritable;

/// How to write a matrix: by default the entries in coordinates, all of them, so that reading gives the same bits.
///
/// ```
/// use declive::matrix_market::{Symmetry, WriteOptions};
///
/// let options = WriteOptions::default().with_symmetry(Symmetry::Symmetric).with_precision(6);
/// # assert!(!options.trusted);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// `coordinate`: the stored entries, explicit zeros among them. `array`: all elements, column by column.
    pub layout: Layout,
    /// What the values are; `None`: `real` or `complex`, as the matrix is.
    ///
    /// `integer` needs whole numbers below 2⁵³, `unsigned-integer` none that has a minus sign (-0 has one), `pattern`
    /// that every stored value is 1. A complex matrix can be written as one of these or as `real` if its imaginary
    /// parts are 0, a real one as `complex`.
    pub field: Option<Field>,
    /// Which entries need not be written: with a symmetry, those above the diagonal. Coordinates then go column by
    /// column, otherwise row by row.
    ///
    /// A skew-symmetric matrix has zeros on its diagonal. The format has no place for them, but readers (this crate's,
    /// SciPy's) take them: coordinates of those that are stored are written, as they are entries of the matrix.
    pub symmetry: Symmetry,
    /// Significant digits of real and complex values, 1 to 17, correctly rounded, halves to even; trailing zeros are
    /// left out. `None`: the fewest that give back the same bits.
    pub precision: Option<usize>,
    /// Comments, each on lines of its own.
    pub comments: Vec<String>,
    /// Take it on the caller's word that field and symmetry fit. If they do not, what is written is another matrix:
    /// the one that follows from the entries on and above the diagonal.
    pub trusted: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Coordinate,
            field: None,
            symmetry: Symmetry::General,
            precision: None,
            comments: Vec::new(),
            trusted: false,
        }
    }
}

setters! { WriteOptions:
    with_layout = layout: Layout;
    with_field = field: Field as Some;
    with_symmetry = symmetry: Symmetry;
    with_precision = precision: usize as Some;
    with_comments = comments: Vec<String>;
    with_trusted = trusted: bool;
}

impl WriteOptions {
    /// Whether a matrix can be written so: in parallel, O(nnz log(longest row)) for symmetries.
    ///
    /// [`write_matrix`] does the same. The two zeros, 0 and -0, count as equal. What is `trusted` costs nothing.
    ///
    /// # Errors
    /// The first obstacle, by rows: an entry that does not equal its mirror image or has none (a hermitian one's
    /// diagonal must be real), or that the field has no words for, unless `trusted`; an entry that the precision would
    /// round to infinity; or options that contradict themselves.
    pub fn check<T: Scalar>(&self, a: &Csr<T>) -> std::result::Result<(), Unwritable> {
        let field = self.field_of::<T>();
        check::words(self, field, a.n_rows(), a.n_cols())?;
        check::rounding(a, field, self.precision)?;
        if self.trusted {
            return Ok(());
        }
        check::values(a, field)?;
        check::mirrored(a, self.symmetry)
    }

    fn field_of<T: Scalar>(&self) -> Field {
        self.field.unwrap_or(if T::IS_COMPLEX { Field::Complex } else { Field::Real })
    }

    fn values_of<T: Scalar>(&self) -> Values {
        let spelling = self.precision.map_or(Spelling::Shortest, Spelling::Digits);
        match self.field_of::<T>() {
            Field::Pattern => Values::None,
            // whole numbers have no needless digits in their shortest form
            Field::Integer | Field::UnsignedInteger => Values::Real(Spelling::Shortest),
            Field::Real => Values::Real(spelling),
            Field::Complex => Values::Complex(spelling),
        }
    }
}

/// Writes a matrix, by default each value with as few digits as give back the same bits.
///
/// Lines are made on all threads, while the caller's thread writes to `out`, in pieces that need no buffer; at most
/// 3 MiB a thread are in memory at a time. The text does not depend on the number of threads.
///
/// ```
/// use declive::matrix_market::{Symmetry, WriteOptions, write_matrix};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![4.0, 0.1, 0.1])?;
/// let comments = vec!["an example".to_string()];
/// let options = WriteOptions::default().with_symmetry(Symmetry::Symmetric).with_comments(comments);
/// let mut text = Vec::new();
/// write_matrix(&mut text, &a, &options)?;
/// assert_eq!(text, b"%%MatrixMarket matrix coordinate real symmetric\n% an example\n2 2 2\n1 1 4\n2 1 0.1\n");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// What `out` gives. Of the kind `InvalidInput`, with an [`Unwritable`] inside and before anything is written, what
/// [`WriteOptions::check`] finds.
pub fn write_matrix<T: Scalar>(mut out: impl Write, a: &Csr<T>, options: &WriteOptions) -> Result<()> {
    options.check(a)?;
    let WriteOptions { layout, symmetry, ref comments, .. } = *options;
    let (field, values) = (options.field_of::<T>(), options.values_of::<T>());
    let (rows, cols) = (a.n_rows(), a.n_cols());
    let size = match layout {
        Layout::Array => format!("{rows} {cols}"),
        Layout::Coordinate if symmetry.mirrors() => {
            let (above, diagonal) = check::upper(a);
            format!("{rows} {cols} {}", above + diagonal)
        }
        Layout::Coordinate => format!("{rows} {cols} {}", a.nnz()),
    };
    out.write_all(head::head(layout, field, symmetry, comments, &size).as_bytes())?;
    match (layout, symmetry) {
        (Layout::Array, _) => {
            write_lines(&mut out, rows * cols, |part, text| lines::dense(a, symmetry, values, part, text))
        }
        (_, Symmetry::General) => write_lines(&mut out, a.nnz(), |part, text| lines::rows(a, values, part, text)),
        _ => write_lines(&mut out, a.nnz(), |part, text| lines::lower_columns(a, symmetry, values, part, text)),
    }
}

/// Writes vectors as the columns of an array file, each value with as few digits as give back the same bits.
///
/// ```
/// let mut text = Vec::new();
/// declive::matrix_market::write_vectors(&mut text, &[[0.1, -3e-9]], &[]).unwrap();
/// assert_eq!(text, b"%%MatrixMarket matrix array real general\n2 1\n0.1\n-3e-9\n");
/// ```
///
/// # Errors
/// What `out` gives. Of the kind `InvalidInput`, with an [`Unwritable`] inside and before anything is written, if a
/// value is infinite or NaN, which the format has no words for, or if the vectors differ in length.
pub fn write_vectors<T: Scalar>(mut out: impl Write, columns: &[impl AsRef<[T]>], comments: &[String]) -> Result<()> {
    let columns: Vec<&[T]> = columns.iter().map(AsRef::as_ref).collect();
    let len = columns.first().map_or(0, |column| column.len());
    for (j, column) in columns.iter().enumerate() {
        if column.len() != len {
            return Err(Unwritable::Length { vector: j + 1, found: column.len(), expected: len }.into());
        }
        if let Some(i) = column.iter().position(|v| !v.is_finite()) {
            let value = check::spelled(column[i]);
            return Err(Unwritable::NotFinite { vector: j + 1, index: i + 1, value }.into());
        }
    }
    let values = array_options().values_of::<T>();
    out.write_all(head_of_vectors::<T>([len as u64, columns.len() as u64], comments).as_bytes())?;
    write_lines(&mut out, len * columns.len(), |part, text| lines::vectors(&columns, len, values, part, text))
}

/// What comes before the elements in the file of so many rows and columns: [`write_elements`] writes these.
#[must_use]
pub fn head_of_vectors<T: Scalar>([rows, columns]: [u64; 2], comments: &[String]) -> String {
    let field = array_options().field_of::<T>();
    head::head(Layout::Array, field, Symmetry::General, comments, &format!("{rows} {columns}"))
}

/// Writes elements of an array file: of so many columns all, and so many elements of the next one, are written already.
///
/// # Errors
/// What `out` gives. Of the kind `InvalidInput`, before any of these is written, for a value that is infinite or NaN.
pub fn write_elements<T: Scalar>(mut out: impl Write, elements: &[T], [columns, before]: [usize; 2]) -> Result<()> {
    if let Some(i) = elements.iter().position(|v| !v.is_finite()) {
        let value = check::spelled(elements[i]);
        return Err(Unwritable::NotFinite { vector: columns + 1, index: before + i + 1, value }.into());
    }
    let values = array_options().values_of::<T>();
    write_lines(&mut out, elements.len(), |part, text| lines::vectors(&[elements], elements.len(), values, part, text))
}

fn array_options() -> WriteOptions {
    WriteOptions { layout: Layout::Array, ..WriteOptions::default() }
}
