//! Other values of a rank's rows.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::ColumnIndices;
use crate::error::Result;
use crate::matrix::Csr;

/// Other values for the entries of a rank's rows, whose pattern is as it was.
pub struct NewValues<'a> {
    /// The matrix.
    pub a: &'a Arc<Csr>,
    /// The rows.
    pub rows: Range<usize>,
    /// The renumbered column of each of their entries.
    pub col_idx: ColumnIndices<'a>,
    /// What values are multiplied by besides.
    pub factor: f64,
    values: OnceLock<Cow<'a, [f64]>>,
    unscaled: Option<Unscaled<'a>>,
}

/// How values of the matrix are scaled, by whoever comes to it first.
#[derive(Clone, Copy)]
pub(crate) struct Unscaled<'a> {
    /// The roots of the diagonal of all rows.
    pub(crate) roots: &'a [f64],
    /// Scales those of the rank's rows.
    pub(crate) scale: &'a (dyn Fn() -> Result<Vec<f64>> + Sync),
}

impl<'a> NewValues<'a> {
    /// These values, or what the matrix has in its rows.
    pub(crate) fn new(
        a: &'a Arc<Csr>,
        rows: Range<usize>,
        col_idx: ColumnIndices<'a>,
        values: Option<Vec<f64>>,
        factor: f64,
    ) -> Self {
        let values = values.map_or_else(|| Cow::Borrowed(of_rows(a, &rows)), Cow::Owned);
        Self { a, rows, col_idx, factor, values: OnceLock::from(values), unscaled: None }
    }

    /// What the matrix has in its rows, to be scaled.
    pub(crate) fn unscaled(
        a: &'a Arc<Csr>,
        rows: Range<usize>,
        col_idx: ColumnIndices<'a>,
        unscaled: Unscaled<'a>,
        factor: f64,
    ) -> Self {
        Self { a, rows, col_idx, factor, values: OnceLock::new(), unscaled: Some(unscaled) }
    }

    /// The value of each entry: that of the matrix, or what is made of it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn values(&self) -> Result<&[f64]> {
        if let (None, Some(unscaled)) = (self.values.get(), &self.unscaled) {
            let scaled = (unscaled.scale)()?;
            return Ok(self.values.get_or_init(|| scaled.into()));
        }
        Ok(self.values.get_or_init(|| self.given().into()))
    }

    /// The values of the matrix, as they are given.
    pub(crate) fn given(&self) -> &'a [f64] {
        of_rows(self.a, &self.rows)
    }

    /// The roots of the diagonal of all rows, if it is these that scale the values of the matrix.
    pub(crate) fn roots(&self) -> Option<&'a [f64]> {
        self.unscaled.map(|unscaled| unscaled.roots)
    }

    /// Whether they are those of the matrix.
    pub(crate) fn are_of_matrix(&self) -> bool {
        self.unscaled.is_none() && matches!(self.values.get(), Some(Cow::Borrowed(_)))
    }

    /// The matrix's row pointers of the rows; the first is not 0.
    pub(crate) fn row_ptr(&self) -> &[usize] {
        &self.a.row_ptr()[self.rows.start..=self.rows.end]
    }
}

fn of_rows<'a>(a: &'a Csr, rows: &Range<usize>) -> &'a [f64] {
    &a.values()[a.row_ptr()[rows.start]..a.row_ptr()[rows.end]]
}

impl fmt::Debug for NewValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, factor, values, unscaled, .. } = self;
        let known = values.get().map(|values| values.len());
        let mut fields = f.debug_struct("NewValues");
        fields.field("rows", rows).field("factor", factor).field("values", &known);
        fields.field("is_scaled", &unscaled.is_some()).finish()
    }
}
