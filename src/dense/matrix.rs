//! A square dense matrix.

use rayon::prelude::*;

use super::element::Element;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::memory::zeros;
use crate::verify::difference;

/// Rows whose residuals are formed together.
const ROWS_AT_ONCE: usize = 8;

/// A dense n × n matrix by columns: element (i, j) is number i + n j. 8 n² bytes in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    n: usize,
    values: Vec<T>,
}

impl<T: Element> Matrix<T> {
    /// A matrix of columns one after the other.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] without n² elements; [`Error::NotFinite`].
    pub fn from_columns(n: usize, values: Vec<T>) -> Result<Self> {
        if n.checked_mul(n) != Some(values.len()) {
            let expected = n.saturating_mul(n);
            return Err(Error::SizeMismatch { what: "the dense matrix".into(), expected, found: values.len() });
        }
        if let Some(index) = values.par_iter().position_first(|v| !v.to_f64().is_finite()) {
            return Err(not_finite(n, index, values[index].to_f64()));
        }
        Ok(Self { n, values })
    }

    /// The elements of a function of row and column.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::NotFinite`].
    pub fn from_fn(n: usize, element: impl Fn(usize, usize) -> T + Sync) -> Result<Self> {
        let mut values = room(n)?;
        values.par_chunks_mut(n.max(1)).enumerate().for_each(|(j, column)| {
            column.iter_mut().enumerate().for_each(|(i, v)| *v = element(i, j));
        });
        Self::from_columns(n, values)
    }

    /// The entries of a sparse matrix, rounded to nearest, and zeros; each element at its place.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::OutOfMemory`]; [`Error::NotFinite`] for a value that `f32` has no number for.
    pub fn from_csr(a: &Csr) -> Result<Self> {
        let n = a.n_rows();
        if n != a.n_cols() {
            return Err(Error::NotSquare { rows: n, cols: a.n_cols() });
        }
        // by rows, and then turned: each write of a row would else be in another page
        let mut rows: Vec<T> = room(n)?;
        rows.par_chunks_mut(n.max(1)).enumerate().for_each(|(i, row)| {
            let (cols, values) = a.row(i);
            cols.iter().zip(values).for_each(|(&j, &v)| row[j as usize] = T::from_f64(v));
        });
        let mut all = Self { n, values: rows };
        all.transpose();
        if let Some(k) = all.values.par_iter().position_first(|v| !v.to_f64().is_finite()) {
            return Err(not_finite(n, k, a.get(k % n, k / n).unwrap_or(0.0)));
        }
        Ok(all)
    }

    /// Turns rows into columns, by blocks.
    fn transpose(&mut self) {
        const SIDE: usize = 32;
        let n = self.n;
        for i0 in (0..n).step_by(SIDE) {
            for j0 in (0..=i0).step_by(SIDE) {
                for i in i0..(i0 + SIDE).min(n) {
                    for j in j0..(j0 + SIDE).min(i) {
                        self.values.swap(i + n * j, j + n * i);
                    }
                }
            }
        }
    }

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.n
    }

    /// The elements by columns.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub(super) fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The largest sum of absolute values in a column, ‖A‖₁.
    #[must_use]
    pub fn norm_1(&self) -> f64 {
        let sum = |column: &[T]| column.iter().map(|v| v.to_f64().abs()).sum::<f64>();
        self.values.par_chunks(self.n.max(1)).map(sum).reduce(|| 0.0, f64::max)
    }

    /// r = b − A x, each summed as if in twice double precision: about 10 n² operations.
    ///
    /// # Panics
    /// If a vector has not n elements.
    pub fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) {
        let n = self.n;
        assert_eq!([b.len(), x.len(), r.len()], [n; 3], "one element a row");
        // some rows at a time are brought together: neighbours in a column are in one cache line
        r.par_chunks_mut(ROWS_AT_ONCE).enumerate().for_each_init(
            || vec![0.0; ROWS_AT_ONCE * n],
            |rows, (chunk, r)| {
                let first = chunk * ROWS_AT_ONCE;
                for j in 0..n {
                    let column = &self.values[first + n * j..][..r.len()];
                    column.iter().enumerate().for_each(|(i, v)| rows[i * n + j] = v.to_f64());
                }
                for (i, r) in r.iter_mut().enumerate() {
                    *r = difference(b[first + i], rows[i * n..][..n].iter().copied().zip(x.iter().copied()));
                }
            },
        );
    }
}

/// Element `index` is none, or none in this precision.
fn not_finite(n: usize, index: usize, value: f64) -> Error {
    let what = format!("the dense matrix (row {}, column {})", index % n + 1, index / n + 1);
    Error::NotFinite { what, index: index + 1, value }
}

/// n² zeros.
fn room<T: Element>(n: usize) -> Result<Vec<T>> {
    let bytes = (n as u64).saturating_mul(n as u64).saturating_mul(size_of::<T>() as u64);
    let no_memory = || Error::OutOfMemory { what: "the dense matrix".into(), bytes };
    let elements = n.checked_mul(n).ok_or_else(no_memory)?;
    zeros(elements).map_err(|_| no_memory())
}
