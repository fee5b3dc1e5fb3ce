//! Compressed sparse rows.

use std::any::Any;
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::patterns::{Compressed, Found, Numbered, Patterns};
use super::scalar::Scalar;
use super::search::first;
use crate::error::{Error, Result};
use crate::memory::Elements;

/// A sparse matrix in compressed sparse row form, of real numbers unless said otherwise, validated once and immutable after.
///
/// Row `i` holds the entries `row_ptr[i]..row_ptr[i + 1]` of `col_idx` and `values`; within a row the columns
/// rise strictly. Column indices have 32 bits, entry counts 64: 12 nnz + 8 (n + 1) bytes in all (20 nnz if complex).
/// Columns and values that [`npz::map`](crate::npz::map) gives may be those of the file.
///
/// | arrays | | what is copied |
/// |---|---|---|
/// | that nobody else needs | [`Csr::new`] | nothing |
/// | that others hold, too, behind an [`Arc`] | [`Csr::from_owner`] | nothing |
/// | borrowed, or with other types of indices | [`Csr::from_slices`] | all |
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<T: 'static = f64> {
    n_rows: usize,
    n_cols: usize,
    row_ptr: Elements<usize>,
    col_idx: Elements<u32>,
    values: Elements<T>,
    patterns: Found,
}

impl Csr {
    /// The largest number of columns (and rows) that 32-bit column indices can address.
    pub const MAX_DIM: usize = u32::MAX as usize;

    /// The patterns of the rows with their values, if these are few; looked for once. 2 bytes a row are kept.
    pub(crate) fn patterns(&self) -> Option<&Arc<Patterns>> {
        self.patterns.get(|| Patterns::find(self.compressed(), true))
    }

    /// All rows.
    pub(crate) fn compressed(&self) -> Compressed<'_> {
        Compressed { row_ptr: &self.row_ptr, columns: Numbered::as_given(&self.col_idx), values: &self.values }
    }
}

impl<T: Scalar> Csr<T> {
    /// Takes the three arrays of an `n_rows` × `n_cols` matrix, after checking them. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::InvalidCsr`] if lengths disagree, `row_ptr` falls, or a row's columns do not rise strictly below
    /// `n_cols`; [`Error::NotFinite`] if a value is infinite or NaN.
    pub fn new(n_rows: usize, n_cols: usize, row_ptr: Vec<usize>, col_idx: Vec<u32>, values: Vec<T>) -> Result<Self> {
        Self::checked(n_rows, n_cols, row_ptr.into(), col_idx.into(), values.into())
    }

    /// Uses the three arrays of an `n_rows` × `n_cols` matrix where they are, after checking them: in `owner`, which others may
    /// hold, too, and from which `arrays` gives row pointers, columns and values. Nothing is copied; the owner stays as long as
    /// the matrix does.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use declive::Csr;
    ///
    /// /// A matrix of the program that solves with it.
    /// struct Stiffness {
    ///     offsets: Vec<usize>,
    ///     columns: Vec<u32>,
    ///     entries: Vec<f64>,
    /// }
    ///
    /// # fn main() -> declive::Result<()> {
    /// let k = Stiffness { offsets: vec![0, 2, 4], columns: vec![0, 1, 0, 1], entries: vec![2.0, -1.0, -1.0, 2.0] };
    /// let k = Arc::new(k);
    /// let a = Csr::from_owner(2, 2, &k, |k| (&k.offsets, &k.columns, &k.entries))?;
    /// assert_eq!(a.values().as_ptr(), k.entries.as_ptr());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_owner<O: Any + Send + Sync>(
        n_rows: usize,
        n_cols: usize,
        owner: &Arc<O>,
        arrays: impl Fn(&O) -> (&[usize], &[u32], &[T]),
    ) -> Result<Self> {
        let row_ptr = Elements::shared(owner, |owner| arrays(owner).0);
        let col_idx = Elements::shared(owner, |owner| arrays(owner).1);
        let values = Elements::shared(owner, |owner| arrays(owner).2);
        Self::checked(n_rows, n_cols, row_ptr, col_idx, values)
    }

    /// Copies the three arrays of an `n_rows` × `n_cols` matrix, with indices of any integer type, after checking them: 12 nnz +
    /// 8 (n + 1) bytes (20 nnz if complex). A matrix outlives the call that makes it, as devices and the check of each answer need it
    /// later; so what is only borrowed must be copied. [`new`](Self::new) and [`from_owner`](Self::from_owner) copy nothing.
    ///
    /// ```
    /// use declive::Csr;
    ///
    /// # fn main() -> declive::Result<()> {
    /// let (row_ptr, col_idx, values) = ([0i32, 2, 4], [0i32, 1, 0, 1], [2.0, -1.0, -1.0, 2.0]);
    /// let a = Csr::from_slices(2, 2, &row_ptr, &col_idx, &values)?;
    /// assert_eq!(a.diagonal(), [2.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::InvalidCsr`] for row pointers and columns that are negative, or too large for memory or 32
    /// bits.
    pub fn from_slices<P, I>(n_rows: usize, n_cols: usize, row_ptr: &[P], col_idx: &[I], values: &[T]) -> Result<Self>
    where
        P: TryInto<usize> + Copy + Display + Sync,
        I: TryInto<u32> + Copy + Display + Sync,
    {
        let pointers: Vec<usize> = row_ptr.iter().map_while(|&p| p.try_into().ok()).collect();
        if let Some(p) = row_ptr.get(pointers.len()) {
            let at = pointers.len();
            return Err(Error::InvalidCsr(format!("row_ptr of row {} is {p}, which is no place in memory", at + 1)));
        }
        check_row_ptr(n_rows, &pointers, values.len())?;
        if let Some(k) = first(col_idx.len(), |k| col_idx[k].try_into().is_err()) {
            let row = row_of(&pointers, k);
            return Err(Error::InvalidCsr(format!("row {row} has column {}, which is not within 32 bits", col_idx[k])));
        }
        let columns: Vec<u32> = col_idx.par_iter().filter_map(|&j| j.try_into().ok()).collect();
        Self::new(n_rows, n_cols, pointers, columns, values.to_vec())
    }

    fn checked(
        n_rows: usize,
        n_cols: usize,
        row_ptr: Elements<usize>,
        col_idx: Elements<u32>,
        values: Elements<T>,
    ) -> Result<Self> {
        check(n_rows, n_cols, &row_ptr, &col_idx, &values)?;
        Ok(Self { n_rows, n_cols, row_ptr, col_idx, values, patterns: Found::default() })
    }

    /// Takes arrays that their maker knows to be what [`new`](Self::new) would check; only debug builds look.
    pub(crate) fn assembled(
        n_rows: usize,
        n_cols: usize,
        row_ptr: Vec<usize>,
        col_idx: impl Into<Elements<u32>>,
        values: impl Into<Elements<T>>,
    ) -> Self {
        let (col_idx, values) = (col_idx.into(), values.into());
        debug_assert!(check(n_rows, n_cols, &row_ptr, &col_idx, &values).is_ok());
        Self { n_rows, n_cols, row_ptr: row_ptr.into(), col_idx, values, patterns: Found::default() }
    }

    /// The same pattern, which is shared, with other values: row by row in the order of the columns, and finite.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn with_values(&self, values: Vec<T>) -> Self {
        assert_eq!(values.len(), self.nnz(), "values of a matrix");
        let (row_ptr, col_idx) = (self.row_ptr.clone(), self.col_idx.clone());
        Self { row_ptr, col_idx, values: values.into(), patterns: Found::default(), ..*self }
    }

    /// Builds a matrix from (row, column, value) triplets in any order, counted from 0; entries that share a place are
    /// added in the order given.
    ///
    /// Each thread looks at all triplets and sorts those of its own rows. The result does not depend on the number of
    /// threads.
    ///
    /// # Errors
    /// [`Error::InvalidCsr`] if an index is out of range; [`Error::NotFinite`] for infinite or NaN values.
    pub fn from_triplets(n_rows: usize, n_cols: usize, rows: &[u32], cols: &[u32], values: &[T]) -> Result<Self> {
        if rows.len() != values.len() || cols.len() != values.len() {
            return Err(Error::InvalidCsr(format!(
                "{} row indices, {} column indices and {} values",
                rows.len(),
                cols.len(),
                values.len()
            )));
        }
        check_shape(n_rows, n_cols)?;
        let outside = |k: &usize| rows[*k] as usize >= n_rows || cols[*k] as usize >= n_cols;
        if let Some(k) = (0..rows.len()).find(outside) {
            return Err(Error::InvalidCsr(format!(
                "triplet {k} is at ({}, {}), outside {n_rows} × {n_cols}",
                rows[k], cols[k]
            )));
        }
        let height = n_rows.div_ceil(rayon::current_num_threads()).max(1);
        let parts = (0..n_rows.div_ceil(height)).into_par_iter().map(|k| {
            let range = k * height..n_rows.min((k + 1) * height);
            Part::of(range, rows, cols, values)
        });
        let parts: Vec<Part<T>> = parts.collect();
        let nnz = parts.iter().map(|part| part.values.len()).sum();
        let mut row_ptr = Vec::with_capacity(n_rows + 1);
        let (mut col_idx, mut summed) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        let mut end = 0;
        row_ptr.push(end);
        for part in parts {
            row_ptr.extend(part.lengths.iter().map(|length| {
                end += length;
                end
            }));
            col_idx.extend(part.col_idx);
            summed.extend(part.values);
        }
        Self::new(n_rows, n_cols, row_ptr, col_idx, summed)
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    #[must_use]
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of stored entries.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins in [`col_idx`](Self::col_idx) and [`values`](Self::values); `n_rows + 1` offsets.
    #[must_use]
    pub fn row_ptr(&self) -> &[usize] {
        &self.row_ptr
    }

    /// Where rows begin, and the column of each entry, to share.
    pub(crate) fn pattern(&self) -> (Elements<usize>, Elements<u32>) {
        (self.row_ptr.clone(), self.col_idx.clone())
    }

    /// Column of each entry, from 0.
    #[must_use]
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }

    /// Value of each entry.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The columns and values of row `i`.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.row_ptr[i]..self.row_ptr[i + 1];
        (&self.col_idx[range.clone()], &self.values[range])
    }

    /// The entry at row `i`, column `j`, or `None` where none is stored.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> Option<T> {
        let (cols, values) = self.row(i);
        cols.binary_search(&u32::try_from(j).ok()?).ok().map(|k| values[k])
    }

    /// The diagonal, 0 where no entry is stored.
    #[must_use]
    pub fn diagonal(&self) -> Vec<T> {
        (0..self.n_rows).into_par_iter().map(|i| self.get(i, i).unwrap_or_default()).collect()
    }

    /// `y = A x` in plain double precision, rows in parallel, each row summed from left to right.
    ///
    /// # Panics
    /// If `x` has not one element a column.
    #[must_use]
    pub fn mul_vec(&self, x: &[T]) -> Vec<T> {
        assert_eq!(x.len(), self.n_cols, "x must have one element a column");
        (0..self.n_rows)
            .into_par_iter()
            .map(|i| {
                let (cols, values) = self.row(i);
                cols.iter().zip(values).map(|(&j, &v)| v * x[j as usize]).sum()
            })
            .collect()
    }

    /// The rows, columns and values of the entries, row by row: what [`from_triplets`](Self::from_triplets) takes.
    #[must_use]
    pub fn to_triplets(&self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        let lengths = self.row_ptr.windows(2).map(|w| w[1] - w[0]);
        let rows = (0u32..).zip(lengths).flat_map(|(i, length)| std::iter::repeat_n(i, length)).collect();
        (rows, self.col_idx.to_vec(), self.values.to_vec())
    }

    /// The matrix in full, as `n_cols` columns of `n_rows` elements each.
    #[must_use]
    pub fn to_columns(&self) -> Vec<Vec<T>> {
        let mut columns = vec![vec![T::default(); self.n_rows]; self.n_cols];
        for (i, (cols, values)) in (0..self.n_rows).map(|i| self.row(i)).enumerate() {
            for (&j, &value) in cols.iter().zip(values) {
                columns[j as usize][i] = value;
            }
        }
        columns
    }

    /// Whether columns and values are those of a mapped file.
    #[cfg(test)]
    pub(crate) fn is_mapped(&self) -> (bool, bool) {
        (self.col_idx.is_mapped(), self.values.is_mapped())
    }

    /// Gives back `(n_rows, n_cols, row_ptr, col_idx, values)`. What lies in a mapped file, or has
    /// another owner, is copied.
    #[must_use]
    pub fn into_raw_parts(self) -> (usize, usize, Vec<usize>, Vec<u32>, Vec<T>) {
        (self.n_rows, self.n_cols, self.row_ptr.into_vec(), self.col_idx.into_vec(), self.values.into_vec())
    }
}

/// What [`Csr::new`] checks.
fn check<T: Scalar>(n_rows: usize, n_cols: usize, row_ptr: &[usize], col_idx: &[u32], values: &[T]) -> Result<()> {
    let invalid = |what: String| Err(Error::InvalidCsr(what));
    check_shape(n_rows, n_cols)?;
    if col_idx.len() != values.len() {
        return invalid(format!("{} column indices, but {} values", col_idx.len(), values.len()));
    }
    check_row_ptr(n_rows, row_ptr, values.len())?;
    if let Some(i) = first(n_rows, |i| !rise_below(&col_idx[row_ptr[i]..row_ptr[i + 1]], n_cols)) {
        return invalid(format!("the columns of row {} do not rise strictly, or one is not below {n_cols}", i + 1));
    }
    let chunks: Vec<&[T]> = values.chunks(1 << 10).collect();
    if let Some(k) = first(chunks.len(), |k| !are_finite(chunks[k])) {
        let k = (k << 10..values.len()).find(|&k| !values[k].is_finite()).unwrap_or_default();
        let what = format!("the matrix, in row {}", row_of(row_ptr, k));
        return Err(Error::NotFinite { what, index: k + 1, value: values[k].modulus() });
    }
    Ok(())
}

/// Whether the columns of a row rise strictly, below `n_cols`.
pub(super) fn rise_below(cols: &[u32], n_cols: usize) -> bool {
    cols.windows(2).all(|w| w[0] < w[1]) && cols.last().is_none_or(|&j| (j as usize) < n_cols)
}

/// Whether no value is infinite or NaN.
pub(super) fn are_finite<T: Scalar>(values: &[T]) -> bool {
    values.iter().fold(true, |all, v| all & v.is_finite())
}

/// Whether row pointers rise from 0 to the number of entries.
fn check_row_ptr(n_rows: usize, row_ptr: &[usize], nnz: usize) -> Result<()> {
    let invalid = |what: String| Err(Error::InvalidCsr(what));
    if row_ptr.len() != n_rows + 1 {
        return invalid(format!("row_ptr has {} elements, but {n_rows} rows need {}", row_ptr.len(), n_rows + 1));
    }
    if row_ptr[0] != 0 || row_ptr[n_rows] != nnz {
        let (from, to) = (row_ptr[0], row_ptr[n_rows]);
        return invalid(format!("row_ptr runs from {from} to {to}, but there are {nnz} values"));
    }
    match first(n_rows, |i| row_ptr[i] > row_ptr[i + 1]) {
        Some(i) => invalid(format!("row_ptr falls after row {}", i + 1)),
        None => Ok(()),
    }
}

/// The row of entry `k`, from 1.
fn row_of(row_ptr: &[usize], k: usize) -> usize {
    row_ptr.partition_point(|&start| start <= k)
}

fn check_shape(n_rows: usize, n_cols: usize) -> Result<()> {
    if n_rows > Csr::MAX_DIM || n_cols > Csr::MAX_DIM {
        return Err(Error::InvalidCsr(format!("{n_rows} × {n_cols} is beyond 32-bit indices")));
    }
    Ok(())
}

/// Compressed rows of a part of a matrix.
struct Part<T> {
    /// How many entries each row has.
    lengths: Vec<usize>,
    col_idx: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Part<T> {
    /// Sorts those of the triplets that lie in `range`, and adds up what shares a place.
    fn of(range: Range<usize>, rows: &[u32], cols: &[u32], values: &[T]) -> Self {
        // the row within the range; outside of it, not below its length
        let within = |i: u32| (i as usize).wrapping_sub(range.start);
        let mut next = vec![0usize; range.len() + 1];
        for &i in rows {
            if let Some(count) = next[1..].get_mut(within(i)) {
                *count += 1;
            }
        }
        for i in 0..range.len() {
            next[i + 1] += next[i];
        }
        let mut entries = vec![(0u32, T::default()); next[range.len()]];
        for ((&i, &j), &v) in rows.iter().zip(cols).zip(values) {
            if let Some(at) = next[..range.len()].get_mut(within(i)) {
                entries[*at] = (j, v);
                *at += 1; // in the end, where the next row starts
            }
        }
        let mut part = Self {
            lengths: Vec::with_capacity(range.len()),
            col_idx: Vec::with_capacity(entries.len()),
            values: Vec::with_capacity(entries.len()),
        };
        let mut start = 0;
        for &end in &next[..range.len()] {
            part.add_row(&mut entries[start..end]);
            start = end;
        }
        part
    }

    fn add_row(&mut self, row: &mut [(u32, T)]) {
        row.sort_by_key(|e| e.0); // stable: duplicates are added in the order given
        let first = self.col_idx.len();
        for &(j, v) in row.iter() {
            match self.values.last_mut() {
                Some(last) if self.col_idx.len() > first && self.col_idx.last() == Some(&j) => *last += v,
                _ => {
                    self.col_idx.push(j);
                    self.values.push(v);
                }
            }
        }
        self.lengths.push(self.col_idx.len() - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Csr {
        Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 2, 1, 0, 2], vec![4.0, -1.0, 3.0, -1.0, 5.0]).unwrap()
    }

    #[test]
    fn product_and_access() {
        let a = small();
        assert_eq!(a.mul_vec(&[1.0, 2.0, 3.0]), [1.0, 6.0, 14.0]);
        assert_eq!(a.diagonal(), [4.0, 3.0, 5.0]);
        assert_eq!(a.to_columns(), [[4.0, 0.0, -1.0], [0.0, 3.0, 0.0], [-1.0, 0.0, 5.0]]);
        assert_eq!((a.get(0, 2), a.get(0, 1)), (Some(-1.0), None));
    }

    #[test]
    fn triplets_in_any_order_with_duplicates() {
        let a = Csr::from_triplets(3, 3, &[2, 0, 1, 2, 0, 0], &[2, 2, 1, 0, 0, 0], &[5.0, -1.0, 3.0, -1.0, 1.0, 3.0]);
        assert_eq!(a.unwrap(), small());
    }

    #[test]
    fn invalid_arrays_are_refused() {
        let err = |r: Result<Csr>| r.unwrap_err().to_string();
        assert!(err(Csr::new(2, 2, vec![0, 1], vec![0], vec![1.0])).contains("row_ptr has 2"));
        assert!(err(Csr::new(1, 2, vec![0, 2], vec![1, 1], vec![1.0, 1.0])).contains("row 1"));
        assert!(err(Csr::new(1, 2, vec![0, 1], vec![2], vec![1.0])).contains("below 2"));
        assert!(err(Csr::new(2, 2, vec![0, 2, 1], vec![0], vec![1.0])).contains("falls after row 2"));
        assert!(err(Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::NAN])).contains("NaN"));
        let late = Csr::new(3, 2, vec![0, 0, 2, 3], vec![0, 1, 0], vec![1.0, 1.0, f64::INFINITY]);
        assert!(err(late).contains("in row 3: entry 3 is inf"));
        assert!(err(Csr::from_triplets(2, 2, &[2], &[0], &[1.0])).contains("outside 2 × 2"));
    }
}
