//! Files of which several programs read a part each.

use std::ops::Range;
use std::path::Path;

use super::archive::Archive;
use super::array::Part;
use super::read::Content;
use crate::Result;
use crate::error::npz::ErrorKind;

/// A file that may be read in parts.
pub(crate) struct Opened<'a>(Archive<'a>);

impl<'a> Opened<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`read`](super::read()).
    pub(crate) fn open(path: &'a Path) -> Result<Self> {
        Archive::open(path, false).map(Self)
    }

    /// The rows, if they are real, and stored as such without compression.
    ///
    /// # Errors
    /// As [`read`](super::read()), as far as it is not about columns and values.
    pub(crate) fn rows(&self) -> Result<Option<Stored<'_>>> {
        let content = Content::of(&self.0, &|_, _| {})?;
        if self.0.array("format")?.text()? != b"csr" || content.data.is_complex()? {
            return Ok(None);
        }
        let (starts, columns, _) = content.pointers(content.n_rows)?;
        let is_stored = columns.stored_at.is_some() && content.data.stored_at.is_some();
        Ok(is_stored.then_some(Stored { archive: &self.0, content, starts, columns }))
    }
}

/// A file of compressed rows.
pub(crate) struct Stored<'a> {
    archive: &'a Archive<'a>,
    content: Content<'a>,
    starts: Vec<usize>,
    columns: super::array::Array<'a>,
}

/// Entries as they are in the file.
pub(crate) struct Entries {
    pub(crate) columns: Vec<u64>,
    pub(crate) values: Vec<f64>,
    /// Checksums of columns and values.
    pub(crate) sums: [u32; 2],
    /// What is wrong with the columns first, and with the values.
    pub(crate) checked: [Result<()>; 2],
}

impl Stored<'_> {
    /// Rows and columns.
    pub(crate) fn dims(&self) -> [u64; 2] {
        [self.content.n_rows as u64, self.content.n_cols as u64]
    }

    /// Where rows start among the entries, and the last one ends.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The number of entries for which there is room: there may be more of it than the rows need.
    pub(crate) fn room(&self) -> usize {
        self.content.data.len
    }

    /// Reads some entries, checked but for their order, and what room is behind the last ones.
    ///
    /// # Errors
    /// Of reading, and for memory.
    pub(crate) fn entries(&self, range: Range<usize>) -> Result<Entries> {
        let used = self.starts[self.starts.len() - 1];
        let Part { elements: mut columns, crc: of_columns, checked: columns_checked } =
            self.columns.some_indices(range.clone(), used, "columns", self.content.n_cols as u64)?;
        let Part { elements: mut values, crc: of_values, checked: values_checked } =
            self.content.data.some_values(range.clone(), used)?;
        columns.truncate(used.saturating_sub(range.start));
        values.truncate(used.saturating_sub(range.start));
        Ok(Entries { columns, values, sums: [of_columns, of_values], checked: [columns_checked, values_checked] })
    }

    /// An error unless the columns of all parts, with these checksums and numbers of entries, have that of the archive.
    ///
    /// # Errors
    /// As [`read`](super::read()).
    pub(crate) fn expect_column_sums(&self, parts: &[(u32, usize)]) -> Result<()> {
        self.columns.expect_sums(parts)
    }

    /// The same of the values.
    ///
    /// # Errors
    /// As [`read`](super::read()).
    pub(crate) fn expect_value_sums(&self, parts: &[(u32, usize)]) -> Result<()> {
        self.content.data.expect_sums(parts)
    }

    /// The error for entries of a place, from 0, that add up to something infinite.
    pub(crate) fn sum_not_finite(&self, row: u64, column: u64) -> crate::Error {
        self.archive.error(None, ErrorKind::SumNotFinite { row: row as usize, col: column as usize })
    }
}
