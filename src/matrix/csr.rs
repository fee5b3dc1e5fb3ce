//! Compressed sparse rows.

use rayon::prelude::*;

use super::scalar::Scalar;
use crate::error::{Error, Result};

/// A sparse matrix in compressed sparse row form, of real numbers unless said otherwise, validated once and immutable after.
///
/// Row `i` holds the entries `row_ptr[i]..row_ptr[i + 1]` of `col_idx` and `values`; within a row the columns
/// rise strictly. Column indices have 32 bits, entry counts 64: 12 nnz + 8 (n + 1) bytes in all (20 nnz if complex).
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<T = f64> {
    n_rows: usize,
    n_cols: usize,
    row_ptr: Vec<usize>,
    col_idx: Vec<u32>,
    values: Vec<T>,
}

impl Csr {
    /// The largest number of columns (and rows) that 32-bit column indices can address.
    pub const MAX_DIM: usize = u32::MAX as usize;
}

impl<T: Scalar> Csr<T> {
    /// Takes the three arrays of an `n_rows` × `n_cols` matrix, after checking them.
    ///
    /// # Errors
    /// [`Error::InvalidCsr`] if lengths disagree, `row_ptr` falls, or a row's columns do not rise strictly below
    /// `n_cols`; [`Error::NotFinite`] if a value is infinite or NaN.
    pub fn new(n_rows: usize, n_cols: usize, row_ptr: Vec<usize>, col_idx: Vec<u32>, values: Vec<T>) -> Result<Self> {
        let invalid = |what: String| Err(Error::InvalidCsr(what));
        if n_rows > Csr::MAX_DIM || n_cols > Csr::MAX_DIM {
            return invalid(format!("{n_rows} × {n_cols} is beyond 32-bit indices"));
        }
        if row_ptr.len() != n_rows + 1 {
            return invalid(format!("row_ptr has {} elements, but {n_rows} rows need {}", row_ptr.len(), n_rows + 1));
        }
        if col_idx.len() != values.len() {
            return invalid(format!("{} column indices, but {} values", col_idx.len(), values.len()));
        }
        if row_ptr[0] != 0 || row_ptr[n_rows] != values.len() {
            return invalid(format!(
                "row_ptr runs from {} to {}, but there are {} values",
                row_ptr[0],
                row_ptr[n_rows],
                values.len()
            ));
        }
        if let Some(i) = row_ptr.par_windows(2).position_first(|w| w[0] > w[1]) {
            return invalid(format!("row_ptr falls after row {}", i + 1));
        }
        let rising = |i: &usize| {
            let cols = &col_idx[row_ptr[*i]..row_ptr[*i + 1]];
            cols.windows(2).all(|w| w[0] < w[1]) && cols.last().is_none_or(|&j| (j as usize) < n_cols)
        };
        if let Some(i) = (0..n_rows).into_par_iter().find_first(|i| !rising(i)) {
            return invalid(format!("the columns of row {} do not rise strictly, or one is not below {n_cols}", i + 1));
        }
        // by chunks, since a search that may end at each element is not vectorised
        let finite = |chunk: &[T]| chunk.iter().fold(true, |all, v| all & v.is_finite());
        if let Some(chunk) = values.par_chunks(1 << 14).position_first(|c| !finite(c)) {
            let k = (chunk << 14..values.len()).find(|&k| !values[k].is_finite()).unwrap_or_default();
            return Err(Error::NotFinite { what: "matrix".into(), index: k + 1, value: values[k].modulus() });
        }
        Ok(Self { n_rows, n_cols, row_ptr, col_idx, values })
    }

    /// Takes the arrays of a matrix that were checked as they were made, which [`new`](Self::new) would do again.
    ///
    /// # Panics
    /// In debug builds, as `new` fails.
    pub(crate) fn from_checked(
        n_rows: usize,
        n_cols: usize,
        row_ptr: Vec<usize>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        if cfg!(debug_assertions) {
            return Self::new(n_rows, n_cols, row_ptr, col_idx, values).expect("the arrays were checked");
        }
        Self { n_rows, n_cols, row_ptr, col_idx, values }
    }

    /// Builds a matrix from (row, column, value) triplets in any order, counted from 0; entries that share a place are added.
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
        if let Some(k) = (0..rows.len()).find(|&k| rows[k] as usize >= n_rows || cols[k] as usize >= n_cols) {
            return Err(Error::InvalidCsr(format!(
                "triplet {k} is at ({}, {}), outside {n_rows} × {n_cols}",
                rows[k], cols[k]
            )));
        }
        let mut row_ptr = vec![0usize; n_rows + 1];
        for &i in rows {
            row_ptr[i as usize + 1] += 1;
        }
        for i in 0..n_rows {
            row_ptr[i + 1] += row_ptr[i];
        }
        let mut next = row_ptr.clone();
        let mut entries = vec![(0u32, T::default()); values.len()];
        for ((&i, &j), &v) in rows.iter().zip(cols).zip(values) {
            let at = &mut next[i as usize];
            entries[*at] = (j, v);
            *at += 1;
        }
        let mut col_idx = Vec::with_capacity(values.len());
        let mut summed: Vec<T> = Vec::with_capacity(values.len());
        let mut start = 0;
        for i in 0..n_rows {
            let row = &mut entries[start..row_ptr[i + 1]];
            start = row_ptr[i + 1];
            row.sort_by_key(|e| e.0); // stable: duplicates are added in the order given
            let first = col_idx.len();
            for &(j, v) in row.iter() {
                match summed.last_mut() {
                    Some(last) if col_idx.len() > first && col_idx.last() == Some(&j) => *last += v,
                    _ => {
                        col_idx.push(j);
                        summed.push(v);
                    }
                }
            }
            row_ptr[i + 1] = col_idx.len();
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

    /// Gives back `(n_rows, n_cols, row_ptr, col_idx, values)`.
    #[must_use]
    pub fn into_raw_parts(self) -> (usize, usize, Vec<usize>, Vec<u32>, Vec<T>) {
        (self.n_rows, self.n_cols, self.row_ptr, self.col_idx, self.values)
    }
}

/// Takes a matrix of the `sprs` crate, in compressed rows or columns and with any index type, duplicates impossible by its own rules.
impl<T: Scalar, I: sprs::SpIndex, P: sprs::SpIndex> TryFrom<sprs::CsMatI<T, I, P>> for Csr<T> {
    type Error = Error;

    fn try_from(a: sprs::CsMatI<T, I, P>) -> Result<Self> {
        let a = if a.is_csr() { a } else { a.to_csr() };
        let (n_rows, n_cols) = a.shape();
        if n_cols > Csr::MAX_DIM {
            return Err(Error::InvalidCsr(format!("{n_rows} × {n_cols} is beyond 32-bit indices")));
        }
        let row_ptr = a.proper_indptr().iter().map(|p| p.index()).collect();
        // in range: `sprs` keeps indices below n_cols, checked above
        let col_idx = a.indices().iter().map(|j| j.index() as u32).collect();
        Self::new(n_rows, n_cols, row_ptr, col_idx, a.data().to_vec())
    }
}

impl<T: Scalar> From<Csr<T>> for sprs::CsMatI<T, u32, usize> {
    fn from(a: Csr<T>) -> Self {
        Self::new((a.n_rows, a.n_cols), a.row_ptr, a.col_idx, a.values)
    }
}

/// Takes what the `matrix-market-rs` crate read: sparse data with duplicates added and symmetry expanded; dense data in full.
impl TryFrom<matrix_market_rs::MtxData<f64>> for Csr {
    type Error = Error;

    fn try_from(data: matrix_market_rs::MtxData<f64>) -> Result<Self> {
        use matrix_market_rs::{MtxData, SymInfo};
        let index = |i: usize| u32::try_from(i).map_err(|_| Error::InvalidCsr(format!("index {i} is beyond 32 bits")));
        let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let (shape, symmetry) = match data {
            MtxData::Sparse(shape, places, entries, symmetry) => {
                for ([i, j], v) in places.into_iter().zip(entries) {
                    rows.push(index(i)?);
                    cols.push(index(j)?);
                    values.push(v);
                }
                (shape, symmetry)
            }
            MtxData::Dense(shape, entries, symmetry) => {
                // column-major; a symmetric array holds the lower triangle only
                let lower = matches!(symmetry, SymInfo::Symmetric);
                let places = (0..shape[1]).flat_map(|j| (if lower { j } else { 0 }..shape[0]).map(move |i| (i, j)));
                for ((i, j), v) in places.zip(entries) {
                    rows.push(index(i)?);
                    cols.push(index(j)?);
                    values.push(v);
                }
                (shape, symmetry)
            }
        };
        if matches!(symmetry, SymInfo::Symmetric) {
            for k in 0..values.len() {
                if rows[k] != cols[k] {
                    rows.push(cols[k]);
                    cols.push(rows[k]);
                    values.push(values[k]);
                }
            }
        }
        Self::from_triplets(shape[0], shape[1], &rows, &cols, &values)
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
        assert!(err(Csr::from_triplets(2, 2, &[2], &[0], &[1.0])).contains("outside 2 × 2"));
    }

    #[test]
    fn to_and_from_sprs() {
        let a = small();
        let s: sprs::CsMatI<f64, u32, usize> = a.clone().into();
        assert_eq!(Csr::try_from(s.clone()).unwrap(), a);
        assert_eq!(Csr::try_from(s.to_csc()).unwrap(), a);
    }

    #[test]
    fn from_matrix_market_rs() {
        use matrix_market_rs::{MtxData, SymInfo};
        let places = vec![[0, 0], [2, 0], [1, 1], [2, 2]];
        let sparse = MtxData::Sparse([3, 3], places, vec![4.0, -1.0, 3.0, 5.0], SymInfo::Symmetric);
        assert_eq!(Csr::try_from(sparse).unwrap(), small());
        let dense = MtxData::Dense([2, 2], vec![1.0, 2.0, 3.0, 4.0], SymInfo::General);
        assert_eq!(Csr::try_from(dense).unwrap().mul_vec(&[1.0, 0.0]), [1.0, 2.0]);
    }
}
