//! A system whose least squares are looked for, as ranks have it.
//!
//! Vectors of rows and vectors of columns lie in the same N = max(m, n) places, so that a rank owns the same places of both, and rows
//! of A and of Aᵀ there: the matrices of the ranks are N × N, with empty rows. Indices are spread evenly over the places, as rows and
//! columns of matrices from measurements and meshes mostly follow each other: then ranks have equal work, and short halos.
//!
//! Columns are scaled to norm 1, which is the diagonal as preconditioner of Aᵀ A: in place of x the ranks look for D x, with the norms D.
//! Residuals stay what they are.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::Result;
use crate::matrix::Csr;
use crate::precond::Precond;
use crate::verify::rms_column_norm;

/// Elements that a thread takes at a time.
const PIECE: usize = 1 << 12;

/// What ranks need of a matrix A that they don't have in it.
pub(crate) struct LeastSquares {
    /// Aᵀ, as given.
    pub(crate) transpose: Csr,
    /// The norm of each column, 1 where that is 0, if A is scaled by them.
    norms: Option<Vec<f64>>,
    rows: Spread,
    columns: Spread,
}

/// Indices in places, in order, spread evenly.
#[derive(Debug, Clone, Copy)]
struct Spread {
    len: usize,
    places: usize,
}

impl Spread {
    /// The place of an index. Neither number has more than 32 bits.
    fn place(self, index: usize) -> usize {
        (index as u64 * self.places as u64 / self.len as u64) as usize
    }

    /// How many indices are in places before this one.
    fn before(self, place: usize) -> usize {
        (place as u64 * self.len as u64).div_ceil(self.places.max(1) as u64) as usize
    }

    /// Elements in their places, changed by `map`, and zeros between.
    fn spread(self, v: &[f64], map: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
        let element = |place| {
            let index = self.before(place);
            if self.before(place + 1) > index { map(index, v[index]) } else { 0.0 }
        };
        (0..self.places).into_par_iter().with_min_len(PIECE).map(element).collect()
    }

    /// The elements out of their places.
    fn gather(self, v: &[f64], to: &mut [f64], map: impl Fn(usize, f64) -> f64 + Sync) {
        let elements = to.par_iter_mut().with_min_len(PIECE).enumerate();
        elements.for_each(|(index, to)| *to = map(index, v[self.place(index)]));
    }
}

impl LeastSquares {
    /// Of `a`, scaled if the preconditioner is the diagonal. Takes the memory of `a` once more.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the transpose.
    pub(crate) fn new(a: &Csr, precond: Precond) -> Result<Self> {
        let transpose = a.transposed()?;
        let places = a.n_rows().max(a.n_cols());
        let norm = |column| match norm(transpose.row(column).1) {
            0.0 => 1.0,
            norm => norm,
        };
        let norms = precond.is_diagonal().then(|| (0..a.n_cols()).into_par_iter().map(norm).collect());
        let [rows, columns] = [a.n_rows(), a.n_cols()].map(|len| Spread { len, places });
        Ok(Self { transpose, norms, rows, columns })
    }

    /// Places of the ranks' vectors.
    pub(crate) fn order(&self) -> usize {
        self.rows.places
    }

    /// A as the ranks have it. Takes the memory of `a`, unless nothing is different.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn matrix(&self, a: &Arc<Csr>) -> Result<Arc<Csr>> {
        if self.norms.is_none() && self.rows.len == self.columns.len {
            return Ok(Arc::clone(a));
        }
        let scale = |_, column: usize, value: f64| value / self.norm(column);
        Ok(Arc::new(spread(a, [self.rows, self.columns], scale)?))
    }

    /// Aᵀ as the ranks have it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn transposed(&self) -> Result<Arc<Csr>> {
        let scale = |row: usize, _, value: f64| value / self.norm(row);
        Ok(Arc::new(spread(&self.transpose, [self.columns, self.rows], scale)?))
    }

    fn norm(&self, column: usize) -> f64 {
        self.norms.as_ref().map_or(1.0, |norms| norms[column])
    }

    /// The root mean square of the columns' norms of the matrix that the ranks have, but for the factor; columns of zeros don't count.
    pub(crate) fn column_norm(&self) -> f64 {
        if self.norms.is_some() { 1.0 } else { rms_column_norm(&self.transpose) }
    }

    /// b in the places of the ranks.
    pub(crate) fn rhs_of_ranks<'v>(&self, b: &[f64]) -> Cow<'v, [f64]> {
        self.rows.spread(b, |_, b| b).into()
    }

    /// D x in the places of the ranks.
    pub(crate) fn iterate_of_ranks<'v>(&self, x: &[f64]) -> Cow<'v, [f64]> {
        self.columns.spread(x, |column, x| x * self.norm(column)).into()
    }

    /// And back, into `x`.
    pub(crate) fn iterate_as_given(&self, y: &[f64], x: &mut [f64]) {
        self.columns.gather(y, x, |column, y| y / self.norm(column));
    }

    /// How many rows of A are in these places.
    pub(crate) fn rows_in(&self, places: &Range<usize>) -> usize {
        self.rows.before(places.end) - self.rows.before(places.start)
    }

    /// Entries of Aᵀ in the rows before a place.
    pub(crate) fn transposed_entries_before(&self, place: usize) -> usize {
        self.transpose.row_ptr()[self.columns.before(place)]
    }
}

/// The rows and columns of a matrix in their places, with values changed by `map` of row, column and value.
fn spread(a: &Csr, [rows, columns]: [Spread; 2], map: impl Fn(usize, usize, f64) -> f64 + Sync) -> Result<Csr> {
    let n = rows.places;
    let row_ptr: Vec<usize> = (0..=n).into_par_iter().map(|place| a.row_ptr()[rows.before(place)]).collect();
    let entries = |row: usize| {
        let (cols, values) = a.row(row);
        cols.iter().zip(values).map(move |(&j, &v)| (row, j as usize, v))
    };
    let of_rows = (0..a.n_rows()).into_par_iter().with_min_len(PIECE).flat_map_iter(entries);
    let (col_idx, values): (Vec<u32>, Vec<f64>) =
        of_rows.map(|(row, column, value)| (columns.place(column) as u32, map(row, column, value))).unzip();
    Ok(Csr::assembled(n, n, row_ptr, col_idx, values))
}

/// ‖v‖₂ of a few elements, without overflow on the way.
fn norm(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if largest == 0.0 { 0.0 } else { largest * v.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(m: usize, n: usize, entries: &[(u32, u32, f64)]) -> Arc<Csr> {
        let column = |f: fn(&(u32, u32, f64)) -> u32| entries.iter().map(f).collect::<Vec<_>>();
        let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
        Arc::new(Csr::from_triplets(m, n, &column(|e| e.0), &column(|e| e.1), &values).unwrap())
    }

    #[test]
    fn places_of_few_among_many() {
        for (len, places) in [(3, 7), (1, 5), (5, 5), (4, 5), (1000, 1001), (u32::MAX as usize - 1, u32::MAX as usize)]
        {
            let spread = Spread { len, places };
            for index in (0..len).take(50).chain(len.saturating_sub(50)..len) {
                let place = spread.place(index);
                assert_eq!((spread.before(place), spread.before(place + 1)), (index, index + 1), "{index} of {len}");
            }
            assert_eq!((spread.before(0), spread.before(places)), (0, len));
        }
        assert_eq!(Spread { len: 0, places: 3 }.spread(&[], |_, v| v), [0.0; 3]);
        assert_eq!(Spread { len: 0, places: 0 }.before(0), 0);
    }

    /// [3 0; 4 0; 0 0; 0 2; 0 0] has columns of norms 5 and 2.
    #[test]
    fn scaled_columns_by_hand() {
        let a = matrix(5, 2, &[(0, 0, 3.0), (1, 0, 4.0), (3, 1, 2.0)]);
        let all = LeastSquares::new(&a, Precond::Jacobi).unwrap();
        // columns 0 and 1 are in places 0 and 2
        assert_eq!(*all.matrix(&a).unwrap(), *matrix(5, 5, &[(0, 0, 0.6), (1, 0, 0.8), (3, 2, 1.0)]));
        assert_eq!(*all.transposed().unwrap(), *matrix(5, 5, &[(0, 0, 0.6), (0, 1, 0.8), (2, 3, 1.0)]));
        assert_eq!((all.order(), all.column_norm()), (5, 1.0));
        let y = all.iterate_of_ranks(&[1.0, 3.0]);
        assert_eq!(*y, [5.0, 0.0, 6.0, 0.0, 0.0]);
        let mut x = [0.0; 2];
        all.iterate_as_given(&y, &mut x);
        assert_eq!(x, [1.0, 3.0]);
        assert_eq!(*all.rhs_of_ranks(&[1.0, 2.0, 3.0, 4.0, 5.0]), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!([0, 1, 2, 3, 5].map(|place| all.transposed_entries_before(place)), [0, 2, 2, 3, 3]);
        assert_eq!(all.rows_in(&(1..4)), 3);
    }

    #[test]
    fn nothing_to_scale() {
        let wide = matrix(1, 3, &[(0, 0, 1.0), (0, 2, -2.0)]);
        let all = LeastSquares::new(&wide, Precond::None).unwrap();
        assert_eq!(*all.matrix(&wide).unwrap(), *matrix(3, 3, &[(0, 0, 1.0), (0, 2, -2.0)]));
        assert_eq!(all.column_norm(), 5f64.sqrt() / 2f64.sqrt());
        assert_eq!(*all.rhs_of_ranks(&[7.0]), [7.0, 0.0, 0.0]);
        assert_eq!([(0..1), (1..3)].map(|places| all.rows_in(&places)), [1, 0]);
        // a column without entries is left alone
        assert_eq!(LeastSquares::new(&wide, Precond::Jacobi).unwrap().column_norm(), 1.0);
        let square = matrix(2, 2, &[(0, 0, 1.0)]);
        let all = LeastSquares::new(&square, Precond::None).unwrap();
        assert!(Arc::ptr_eq(&all.matrix(&square).unwrap(), &square));
    }
}
