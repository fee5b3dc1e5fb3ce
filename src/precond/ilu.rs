//! Incomplete LU factors in the pattern of A, for any matrix, applied without triangular solves: M⁻¹ = W V, where V ≈ L⁻¹ and W ≈ U⁻¹ have
//! the patterns of L and U, and V L and W U are the identity there (Anzt, Huckle, Bräckle and Dongarra 2018, doi
//! 10.1016/j.parco.2017.10.003).
//!
//! Rows, then columns, are scaled to a largest entry of 1 before, which changes nothing but what is called small. Where a pivot vanishes, or
//! the factors grow so much that they say nothing of A, the diagonal is moved away from 0, further and further (Manteuffel 1980, doi
//! 10.1090/S0025-5718-1980-0559197-0).

use rayon::prelude::*;

use super::fsai::joined;
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// What the diagonal is moved by, one after the other.
const SHIFTS: [f64; 6] = [0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0];

/// A pivot below this has vanished.
const TINY: f64 = 1e-8;

/// (L U)⁻¹ makes no more of a vector of ones, in a system whose entries are at most 1.
const GROWTH: f64 = 1e8;

/// The most entries of a row of L or U that count for its inverse: the largest.
const MOST: usize = 128;

/// Rows that a thread makes at a time.
const PIECE: usize = 256;

/// V and W of `factor` A.
///
/// # Errors
/// [`Error::Usage`] where no shift gives factors.
pub(super) fn inverses(a: &Csr, factor: f64) -> Result<[Csr; 2]> {
    let scaled = Scaled::of(a, factor);
    for shift in SHIFTS {
        let Some(factors) = scaled.factors(shift) else { continue };
        if shift > 0.0 {
            log::info!("incomplete factors of A with a diagonal that is moved by {shift}");
        }
        return Ok([lower_inverse(&factors, &scaled.rows), upper_inverse(&factors, &scaled.columns)]);
    }
    Err(Error::Usage(
        "precond = ilu0 comes to nothing: the incomplete factors are singular, or far from A; use precond = transversal or jacobi"
            .into(),
    ))
}

/// A with scaled rows and columns, and a diagonal in its pattern.
struct Scaled {
    a: Csr,
    /// What rows and columns are multiplied by.
    rows: Vec<f64>,
    columns: Vec<f64>,
}

/// L without its diagonal of ones, and U, in one matrix; and where the diagonal is.
struct Factors {
    lu: Csr,
    diagonal: Vec<usize>,
}

impl Scaled {
    fn of(a: &Csr, factor: f64) -> Self {
        let n = a.n_rows();
        let or_one = |largest: f64| if largest > 0.0 { largest.recip() } else { 1.0 };
        let largest = |row: usize| a.row(row).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let rows: Vec<f64> = (0..n).into_par_iter().map(|row| or_one(factor * largest(row))).collect();
        let mut columns = vec![0.0f64; n];
        for row in 0..n {
            let (cols, values) = a.row(row);
            for (j, v) in cols.iter().zip(values) {
                let column = &mut columns[*j as usize];
                *column = column.max((factor * v * rows[row]).abs());
            }
        }
        columns.par_iter_mut().for_each(|largest| *largest = or_one(*largest));
        let scaled = |row: usize| {
            let (cols, values) = a.row(row);
            let entry = |(j, v): (&u32, &f64)| (*j, factor * v * rows[row] * columns[*j as usize]);
            let mut entries: Vec<(u32, f64)> = cols.iter().zip(values).map(entry).collect();
            if let Err(place) = cols.binary_search(&(row as u32)) {
                entries.insert(place, (row as u32, 0.0));
            }
            entries
        };
        let a = by_rows(n, scaled);
        Self { a, rows, columns }
    }

    /// The factors of A with a diagonal that is moved away from 0, if they say something of A.
    fn factors(&self, shift: f64) -> Option<Factors> {
        let (a, n) = (&self.a, self.a.n_rows());
        let place = |row: usize| {
            let before = a.row(row).0.partition_point(|j| (*j as usize) < row);
            a.row_ptr()[row] + before
        };
        let diagonal: Vec<usize> = (0..n).into_par_iter().map(place).collect();
        let mut lu = a.values().to_vec();
        let columns = a.col_idx();
        // where each column is in the row at hand
        let mut places = vec![usize::MAX; n];
        for row in 0..n {
            let own = a.row_ptr()[row]..a.row_ptr()[row + 1];
            lu[diagonal[row]] += shift.copysign(lu[diagonal[row]]);
            own.clone().for_each(|k| places[columns[k] as usize] = k);
            for k in own.start..diagonal[row] {
                let other = columns[k] as usize;
                let times = lu[k] / lu[diagonal[other]];
                lu[k] = times;
                let upper = diagonal[other] + 1..a.row_ptr()[other + 1];
                if upper.len() <= 8 * (own.end - k) {
                    for l in upper {
                        let to = places[columns[l] as usize];
                        if to != usize::MAX {
                            lu[to] -= times * lu[l];
                        }
                    }
                } else {
                    // a long row meets a short one
                    for to in k + 1..own.end {
                        if let Ok(l) = columns[upper.clone()].binary_search(&columns[to]) {
                            lu[to] -= times * lu[upper.start + l];
                        }
                    }
                }
            }
            own.for_each(|k| places[columns[k] as usize] = usize::MAX);
            let pivot = lu[diagonal[row]].abs();
            if pivot < TINY || !pivot.is_finite() {
                return None;
            }
        }
        let factors = Factors { lu: a.with_values(lu), diagonal };
        factors.are_bounded().then_some(factors)
    }
}

impl Factors {
    /// Whether (L U)⁻¹ of a vector of ones is in bounds.
    fn are_bounded(&self) -> bool {
        let n = self.diagonal.len();
        let (ptr, columns, values) = (self.lu.row_ptr(), self.lu.col_idx(), self.lu.values());
        let mut x = vec![1.0; n];
        let sum = |x: &[f64], entries: std::ops::Range<usize>| -> f64 {
            entries.map(|k| values[k] * x[columns[k] as usize]).sum()
        };
        for row in 0..n {
            x[row] -= sum(&x, ptr[row]..self.diagonal[row]);
        }
        for row in (0..n).rev() {
            let known = sum(&x, self.diagonal[row] + 1..ptr[row + 1]);
            x[row] = (x[row] - known) / values[self.diagonal[row]];
        }
        x.iter().all(|x| x.abs() < GROWTH) // not of a NaN
    }

    /// The entries of a row of L, or of U, with the diagonal: the largest of them.
    fn row(&self, row: usize, is_lower: bool) -> Vec<(u32, f64)> {
        let diagonal = self.diagonal[row];
        let entries = if is_lower { self.lu.row_ptr()[row]..diagonal } else { diagonal + 1..self.lu.row_ptr()[row + 1] };
        let entry = |k: usize| (self.lu.col_idx()[k], self.lu.values()[k]);
        let mut all: Vec<(u32, f64)> = entries.map(entry).collect();
        if all.len() > MOST {
            let larger = |a: &(u32, f64), b: &(u32, f64)| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0));
            all.select_nth_unstable_by(MOST, larger);
            all.truncate(MOST);
            all.sort_unstable_by_key(|(column, _)| *column);
        }
        all
    }

    fn pivot(&self, row: usize) -> f64 {
        self.lu.values()[self.diagonal[row]]
    }
}

/// V with V L = 1 in the pattern of L, for columns that are multiplied by `scale` of rows of A.
fn lower_inverse(factors: &Factors, scale: &[f64]) -> Csr {
    by_rows(factors.diagonal.len(), |i| {
        let mut row = factors.row(i, true);
        // v_k = −Σ_{m > k} v_m l_mk, where v_i = 1: a row that is known changes those before it
        row.iter_mut().for_each(|(_, v)| *v = -*v);
        for m in (0..row.len()).rev() {
            let (column, value) = row[m];
            let start = factors.lu.row_ptr()[column as usize];
            subtract(&mut row[..m], value, factors, start..factors.diagonal[column as usize]);
        }
        row.push((i as u32, 1.0));
        row.iter_mut().for_each(|(column, v)| *v *= scale[*column as usize]);
        row
    })
}

/// W with W U = 1 in the pattern of U, for rows that are multiplied by `scale` of columns of A.
fn upper_inverse(factors: &Factors, scale: &[f64]) -> Csr {
    by_rows(factors.diagonal.len(), |i| {
        let mut row = factors.row(i, false);
        // w_k = −Σ_{m < k} w_m u_mk / u_kk, where w_i = 1 / u_ii
        let first = factors.pivot(i).recip();
        row.iter_mut().for_each(|(_, w)| *w *= -first);
        for m in 0..row.len() {
            let column = row[m].0 as usize;
            row[m].1 /= factors.pivot(column);
            let (value, end) = (row[m].1, factors.lu.row_ptr()[column + 1]);
            subtract(&mut row[m + 1..], value, factors, factors.diagonal[column] + 1..end);
        }
        row.insert(0, (i as u32, first));
        row.iter_mut().for_each(|(_, w)| *w *= scale[i]);
        row
    })
}

/// Subtracts `times` some entries of the factors from those in the same columns.
fn subtract(row: &mut [(u32, f64)], times: f64, factors: &Factors, entries: std::ops::Range<usize>) {
    let (columns, values) = (&factors.lu.col_idx()[entries.clone()], &factors.lu.values()[entries]);
    let mut k = 0;
    for (column, value) in row {
        k += if columns.len() > 64 {
            columns[k..].partition_point(|other| other < column)
        } else {
            columns[k..].iter().take_while(|other| *other < column).count()
        };
        if columns.get(k) == Some(column) {
            *value -= times * values[k];
        }
    }
}

/// A matrix by its rows.
fn by_rows(n: usize, row: impl Fn(usize) -> Vec<(u32, f64)> + Sync) -> Csr {
    let piece = |first: usize| {
        let rows: Vec<Vec<(u32, f64)>> = (first..n.min(first + PIECE)).map(&row).collect();
        let lengths = rows.iter().map(Vec::len).collect();
        let (columns, values) = rows.into_iter().flatten().unzip();
        (lengths, columns, values)
    };
    let firsts: Vec<usize> = (0..n).step_by(PIECE).collect();
    joined(n, firsts.into_par_iter().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    /// [2 1 0; −1 2 1; 0 −1 2] has l = −1/2, −2/5 and u = 2, 5/2, 12/5. Its scaling is 1/2 of rows alone.
    #[test]
    fn a_tridiagonal_matrix_by_hand() {
        let values = vec![2.0, 1.0, -1.0, 2.0, 1.0, -1.0, 2.0];
        let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], values).unwrap();
        let [v, w] = inverses(&a, 1.0).unwrap();
        let close = |found: &[f64], expected: &[f64]| {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15)
        };
        // V L = 1 in the pattern: v_21 = −l_21 and so on; what L⁻¹ has in the corner is left out
        assert_eq!((v.row_ptr(), v.col_idx()), (&[0, 1, 3, 5][..], &[0, 0, 1, 1, 2][..]));
        assert!(close(v.values(), &[0.5, 0.25, 0.5, 0.2, 0.5]), "{:?}", v.values());
        // of the scaled matrix u is 1, 5/4, 6/5, and 1/2 beside the diagonal
        assert_eq!((w.row_ptr(), w.col_idx()), (&[0, 2, 4, 5][..], &[0, 1, 1, 2, 2][..]));
        assert!(close(w.values(), &[1.0, -0.4, 0.8, -1.0 / 3.0, 1.0 / 1.2]), "{:?}", w.values());
        // (4 A)⁻¹ = ¼ W V
        let product = |m: &[Csr; 2]| m[1].mul_vec(&m[0].mul_vec(&[1.0, 2.0, 3.0]));
        let quarter: Vec<f64> = product(&inverses(&a, 4.0).unwrap()).iter().map(|v| 4.0 * v).collect();
        assert!(close(&quarter, &product(&[v, w])));
    }

    /// Full triangles have exact inverses: those of the whole matrix.
    #[test]
    fn a_dense_matrix_is_inverted() {
        let n = 9;
        let mut values = gallery::random_vector(n * n, 5);
        (0..n).for_each(|i| values[i * (n + 1)] += 4.0);
        let columns = (0..n * n).map(|k| (k % n) as u32).collect();
        let a = Csr::new(n, n, (0..=n).map(|i| i * n).collect(), columns, values).unwrap();
        let [v, w] = inverses(&a, 1.0).unwrap();
        let x = gallery::random_vector(n, 6);
        let found = w.mul_vec(&v.mul_vec(&a.mul_vec(&x)));
        assert!(found.iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-13), "{found:?}");
    }

    #[test]
    fn what_has_no_pivots_is_moved() {
        let turn = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, -1.0]).unwrap();
        assert!(inverses(&turn, 1.0).is_ok());
        let none = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        let [v, w] = inverses(&none, 1.0).unwrap();
        assert!(v.values().iter().chain(w.values()).all(|v| v.is_finite()));
    }
}
