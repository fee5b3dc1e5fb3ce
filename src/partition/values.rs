//! Other values of a rank's rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::matrix::Csr;

/// Other values for the entries of a rank's rows, whose pattern is as it was.
#[derive(Debug)]
pub struct NewValues<'a> {
    /// The matrix.
    pub a: &'a Arc<Csr>,
    /// The rows.
    pub rows: Range<usize>,
    /// The renumbered column of each of their entries, if somebody asks for them.
    pub col_idx: Option<Cow<'a, [u32]>>,
    /// The value of each of their entries: that of the matrix, or what is made of it.
    pub values: Cow<'a, [f64]>,
    /// What values are multiplied by besides.
    pub factor: f64,
}

impl NewValues<'_> {
    /// The matrix's row pointers of the rows; the first is not 0.
    pub(crate) fn row_ptr(&self) -> &[usize] {
        &self.a.row_ptr()[self.rows.start..=self.rows.end]
    }
}
