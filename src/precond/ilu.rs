//! Incomplete LU factors in the pattern of A, for any matrix, applied without triangular solves: M⁻¹ = W V, where V ≈ L⁻¹ and W ≈ U⁻¹ are
//! sparse. A row of V is found as in a triangular solve, but what is small has no consequences (van Duin 1999, doi
//! 10.1137/S0895479897317788). Inverses in the patterns of L and U (Anzt et al. 2018, doi 10.1016/j.parco.2017.10.003) take less, and are
//! too far from L⁻¹ and U⁻¹ on many systems.
//!
//! Rows, then columns, are scaled to a largest entry of 1 before, which changes nothing but what is called small. Where a pivot vanishes, or
//! the factors grow so much that they say nothing of A, the diagonal is moved away from 0, further and further (Manteuffel 1980, doi
//! 10.1090/S0025-5718-1980-0559197-0).

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::fsai::by_pieces;
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

/// The most entries of a row of an inverse of which others come.
const REACH: usize = 128;

/// What is left of the inverses of L and of U with a diagonal of ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most entries of a row.
    pub(super) entries: usize,
    /// Smaller ones are left out.
    pub(super) least: f64,
}

/// What pays on most systems (`docs/measurements.md`).
pub(super) const USUAL: Limits = Limits { entries: 24, least: 0.1 };

/// Rows that a thread makes at a time.
const PIECE: usize = 256;

/// V and W of `factor` A.
///
/// # Errors
/// [`Error::Usage`] where no shift gives factors.
pub(super) fn inverses(a: &Csr, factor: f64, limits: Limits) -> Result<[Csr; 2]> {
    let scaled = Scaled::of(a, factor);
    for shift in SHIFTS {
        let Some(factors) = scaled.factors(shift) else { continue };
        if shift > 0.0 {
            log::info!("incomplete factors of A with a diagonal that is moved by {shift}");
        }
        return Ok(factors.inverses(&scaled, limits));
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
        for (row, scale) in rows.iter().enumerate() {
            let (cols, values) = a.row(row);
            for (j, v) in cols.iter().zip(values) {
                let column = &mut columns[*j as usize];
                *column = column.max((factor * v * scale).abs());
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

    /// The entries of a row of L, or of U with a diagonal of ones, which is left out: the largest of them.
    fn row(&self, row: usize, is_lower: bool) -> Vec<(u32, f64)> {
        let diagonal = self.diagonal[row];
        let values = self.lu.values();
        let (entries, by) = match is_lower {
            true => (self.lu.row_ptr()[row]..diagonal, 1.0),
            false => (diagonal + 1..self.lu.row_ptr()[row + 1], values[diagonal]),
        };
        let mut all: Vec<(u32, f64)> = entries.map(|k| (self.lu.col_idx()[k], values[k] / by)).collect();
        keep_largest(&mut all, MOST);
        all
    }

    /// V and W: the inverses of L and U, with the scaling of rows and columns undone.
    fn inverses(&self, scaled: &Scaled, limits: Limits) -> [Csr; 2] {
        let n = self.diagonal.len();
        let [l, u] = [true, false].map(|is_lower| by_rows(n, |row| self.row(row, is_lower)));
        let pivot = |column: usize| self.lu.values()[self.diagonal[column]];
        let v = inverse(&l, true, limits);
        let w = inverse(&u, false, limits);
        [
            with_entries(&v, |_, column, value| value * scaled.rows[column]),
            with_entries(&w, |row, column, value| scaled.columns[row] * value / pivot(column)),
        ]
    }
}

/// The same pattern with values changed by `map` of row, column and value.
fn with_entries(a: &Csr, map: impl Fn(usize, usize, f64) -> f64 + Sync) -> Csr {
    let entries = |row: usize| {
        let (columns, values) = a.row(row);
        let map = &map;
        columns.iter().zip(values).map(move |(j, v)| map(row, *j as usize, *v))
    };
    a.with_values((0..a.n_rows()).into_par_iter().with_min_len(PIECE).flat_map_iter(entries).collect())
}

/// The inverse of a triangular matrix with a diagonal of ones, which `triangle` has not, without small entries.
fn inverse(triangle: &Csr, is_lower: bool, limits: Limits) -> Csr {
    let n = triangle.n_rows();
    let piece = |row: &mut Row, first: usize| {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for i in first..n.min(first + PIECE) {
            let entries = row.make(triangle, i as u32, is_lower, limits);
            lengths.push(entries.len());
            columns.extend(entries.iter().map(|(column, _)| column));
            values.extend(entries.iter().map(|(_, value)| value));
        }
        (lengths, columns, values)
    };
    by_pieces(n, PIECE, || Row::new(n), piece)
}

/// A row of an inverse that is being made.
struct Row {
    /// What is known of each column yet.
    value: Vec<f64>,
    is_known: Vec<bool>,
    /// Columns that are known of, the next one first: they fall for a lower triangle, and rise for an upper one.
    next: BinaryHeap<i64>,
    entries: Vec<(u32, f64)>,
}

impl Row {
    fn new(n: usize) -> Self {
        Self { value: vec![0.0; n], is_known: vec![false; n], next: BinaryHeap::new(), entries: Vec::new() }
    }

    fn add(&mut self, column: u32, value: f64, sign: i64) {
        let k = column as usize;
        self.value[k] += value;
        if !std::mem::replace(&mut self.is_known[k], true) {
            self.next.push(sign * i64::from(column));
        }
    }

    /// v with v T = e_i, but for what comes of entries that are small; its columns rise.
    fn make(&mut self, triangle: &Csr, i: u32, is_lower: bool, limits: Limits) -> &[(u32, f64)] {
        let sign = if is_lower { 1 } else { -1 };
        self.entries.clear();
        self.add(i, 1.0, sign);
        while let Some(column) = self.next.pop().map(|column| (sign * column) as u32) {
            let k = column as usize;
            let v = std::mem::take(&mut self.value[k]);
            self.is_known[k] = false;
            if v.abs() < limits.least || self.entries.len() >= REACH {
                continue;
            }
            self.entries.push((column, v));
            let (columns, values) = triangle.row(k);
            columns.iter().zip(values).for_each(|(other, t)| self.add(*other, -v * t, sign));
        }
        keep_largest(&mut self.entries, limits.entries);
        &self.entries
    }
}

/// Leaves so many entries, the largest, in the order of their columns.
fn keep_largest(entries: &mut Vec<(u32, f64)>, count: usize) {
    if entries.len() > count {
        let larger = |a: &(u32, f64), b: &(u32, f64)| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0));
        entries.select_nth_unstable_by(count, larger);
        entries.truncate(count);
    }
    entries.sort_unstable_by_key(|(column, _)| *column);
}

/// A matrix by its rows.
fn by_rows(n: usize, row: impl Fn(usize) -> Vec<(u32, f64)> + Sync) -> Csr {
    let piece = |(): &mut (), first: usize| {
        let rows: Vec<Vec<(u32, f64)>> = (first..n.min(first + PIECE)).map(&row).collect();
        let lengths = rows.iter().map(Vec::len).collect();
        let (columns, values) = rows.into_iter().flatten().unzip();
        (lengths, columns, values)
    };
    by_pieces(n, PIECE, || (), piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    /// All that there is.
    const ALL: Limits = Limits { entries: usize::MAX, least: 0.0 };

    fn close(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14)
    }

    /// [2 1 0; −1 2 1; 0 −1 2] is [1 ½ 0; −½ 1 ½; 0 −½ 1] once its rows are scaled; then l = −1/2, −2/5 and u = 1, 5/4, 6/5.
    #[test]
    fn a_tridiagonal_matrix_by_hand() {
        let values = vec![2.0, 1.0, -1.0, 2.0, 1.0, -1.0, 2.0];
        let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], values).unwrap();
        // 1/5 in the corner of L⁻¹, and (1/2) (2/5) in that of U⁻¹ with a diagonal of ones, are too small here
        let [v, w] = inverses(&a, 1.0, Limits { entries: 9, least: 0.3 }).unwrap();
        assert_eq!((v.row_ptr(), v.col_idx()), (&[0, 1, 3, 5][..], &[0, 0, 1, 1, 2][..]));
        assert!(close(v.values(), &[0.5, 0.25, 0.5, 0.2, 0.5]), "{:?}", v.values());
        assert_eq!((w.row_ptr(), w.col_idx()), (&[0, 2, 4, 5][..], &[0, 1, 1, 2, 2][..]));
        assert!(close(w.values(), &[1.0, -0.4, 0.8, -1.0 / 3.0, 1.0 / 1.2]), "{:?}", w.values());
        // with them, (4 A)⁻¹ = ¼ W V, as the factors are those of A
        let [v, w] = inverses(&a, 4.0, ALL).unwrap();
        assert!(close(&w.mul_vec(&v.mul_vec(&a.mul_vec(&[4.0, 8.0, 12.0]))), &[1.0, 2.0, 3.0]));
        // of each row, the entries that are the largest
        assert!(inverses(&a, 1.0, Limits { entries: 1, least: 0.0 }).unwrap().iter().all(|m| m.nnz() == 3));
    }

    /// Of a dense matrix nothing is left out.
    #[test]
    fn a_dense_matrix_is_inverted() {
        let n = 9;
        let mut values = gallery::random_vector(n * n, 5);
        (0..n).for_each(|i| values[i * (n + 1)] += 4.0);
        let columns = (0..n * n).map(|k| (k % n) as u32).collect();
        let a = Csr::new(n, n, (0..=n).map(|i| i * n).collect(), columns, values).unwrap();
        let [v, w] = inverses(&a, 1.0, ALL).unwrap();
        let x = gallery::random_vector(n, 6);
        let found = w.mul_vec(&v.mul_vec(&a.mul_vec(&x)));
        assert!(close(&found, &x), "{found:?}");
    }

    #[test]
    fn what_has_no_pivots_is_moved() {
        let turn = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, -1.0]).unwrap();
        assert!(inverses(&turn, 1.0, USUAL).is_ok());
        let none = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        let [v, w] = inverses(&none, 1.0, USUAL).unwrap();
        assert!(v.values().iter().chain(w.values()).all(|v| v.is_finite()));
    }
}
