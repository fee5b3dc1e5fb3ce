//! Incomplete LU factors in the pattern of A, for any matrix, applied without triangular solves: M⁻¹ = W V, where V ≈ L⁻¹ and W ≈ U⁻¹ are
//! sparse. A row of V is found as in a triangular solve, but what is small has no consequences (van Duin 1999, doi
//! 10.1137/S0895479897317788). Inverses in the patterns of L and U (Anzt et al. 2018, doi 10.1016/j.parco.2017.10.003) take less, and are
//! too far from L⁻¹ and U⁻¹ on many systems.
//!
//! Rows, then columns, are scaled to a largest entry of 1 before, which changes nothing but what is called small. Where a pivot vanishes, or
//! the factors grow so much that they say nothing of A, the diagonal is moved away from 0, further and further (Manteuffel 1980, doi
//! 10.1090/S0025-5718-1980-0559197-0).

use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::fsai::{Piece, by_pieces};
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
    let levels = Levels::of(&scaled.a);
    for shift in SHIFTS {
        let Some(factors) = scaled.factors(&levels, shift) else { continue };
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
        // of numbers that are not negative, the larger one has the larger bits
        let largest_bits: Vec<AtomicU64> = (0..n).into_par_iter().map(|_| AtomicU64::new(0)).collect();
        rows.par_iter().enumerate().for_each(|(row, scale)| {
            let (cols, values) = a.row(row);
            for (j, v) in cols.iter().zip(values) {
                let size = (factor * v * scale).abs();
                largest_bits[*j as usize].fetch_max(size.to_bits(), Ordering::Relaxed);
            }
        });
        let columns: Vec<f64> =
            largest_bits.into_par_iter().map(|bits| or_one(f64::from_bits(bits.into_inner()))).collect();
        let scaled = |row: usize, entries: &mut Vec<(u32, f64)>| {
            let (cols, values) = a.row(row);
            let entry = |(j, v): (&u32, &f64)| (*j, factor * v * rows[row] * columns[*j as usize]);
            entries.extend(cols.iter().zip(values).map(entry));
            if let Err(place) = cols.binary_search(&(row as u32)) {
                entries.insert(place, (row as u32, 0.0));
            }
        };
        let a = by_rows(n, scaled);
        Self { a, rows, columns }
    }

    /// The factors of A with a diagonal that is moved away from 0, if they say something of A. Rows that need none of each other are made at the
    /// same time.
    fn factors(&self, levels: &Levels, shift: f64) -> Option<Factors> {
        let (a, n) = (&self.a, self.a.n_rows());
        let place = |row: usize| {
            let before = a.row(row).0.partition_point(|j| (*j as usize) < row);
            a.row_ptr()[row] + before
        };
        let diagonal: Vec<usize> = (0..n).into_par_iter().map(place).collect();
        let lu: Vec<AtomicU64> = a.values().par_iter().map(|v| AtomicU64::new(v.to_bits())).collect();
        let all = Rows { row_ptr: a.row_ptr(), columns: a.col_idx(), diagonal: &diagonal, lu: &lu };
        for rows in levels.iter() {
            let are_sound = match rows.len() >= 2 * PER_THREAD {
                true => rows.par_iter().with_min_len(PER_THREAD).all(|row| all.eliminate(*row as usize, shift)),
                false => rows.iter().all(|row| all.eliminate(*row as usize, shift)),
            };
            if !are_sound {
                return None;
            }
        }
        let lu = lu.into_par_iter().map(|v| f64::from_bits(v.into_inner())).collect();
        let factors = Factors { lu: a.with_values(lu), diagonal };
        factors.are_bounded().then_some(factors)
    }
}

/// Rows of a level that a thread takes at a time.
const PER_THREAD: usize = 64;

/// Rows by when they are eliminated: those of a level need rows of former levels alone (Anderson and Saad 1989, doi
/// 10.1142/S0129053389000056).
struct Levels {
    rows: Vec<u32>,
    /// Where each level begins, and the end.
    starts: Vec<usize>,
}

impl Levels {
    fn of(a: &Csr) -> Self {
        let n = a.n_rows();
        let mut level_of = vec![0u32; n];
        for row in 0..n {
            let needed = a.row(row).0.iter().take_while(|j| (**j as usize) < row);
            level_of[row] = needed.map(|j| level_of[*j as usize] + 1).max().unwrap_or(0);
        }
        let count = level_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut starts = vec![0; count + 1];
        level_of.iter().for_each(|level| starts[*level as usize + 1] += 1);
        (0..count).for_each(|level| starts[level + 1] += starts[level]);
        let (mut next, mut rows) = (starts.clone(), vec![0; n]);
        for (row, level) in level_of.into_iter().enumerate() {
            let place = &mut next[level as usize];
            rows[*place] = row as u32;
            *place += 1;
        }
        Self { rows, starts }
    }

    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|level| &self.rows[level[0]..level[1]])
    }
}

/// Rows of which some are factors already. Each is written by one thread, and read by those of later levels.
struct Rows<'a> {
    row_ptr: &'a [usize],
    columns: &'a [u32],
    diagonal: &'a [usize],
    lu: &'a [AtomicU64],
}

impl Rows<'_> {
    fn get(&self, k: usize) -> f64 {
        f64::from_bits(self.lu[k].load(Ordering::Relaxed))
    }

    fn set(&self, k: usize, value: f64) {
        self.lu[k].store(value.to_bits(), Ordering::Relaxed);
    }

    /// Makes a row one of L and U, with a diagonal moved by `shift`; tells whether its pivot is one.
    fn eliminate(&self, row: usize, shift: f64) -> bool {
        let Self { row_ptr, columns, diagonal, .. } = self;
        let (own, diagonal_of_row) = (row_ptr[row]..row_ptr[row + 1], diagonal[row]);
        let moved = self.get(diagonal_of_row);
        self.set(diagonal_of_row, moved + shift.copysign(moved));
        for k in own.start..diagonal_of_row {
            let other = columns[k] as usize;
            let times = self.get(k) / self.get(diagonal[other]);
            self.set(k, times);
            let (mut upper, mut to) = (diagonal[other] + 1..row_ptr[other + 1], k + 1..own.end);
            // a long row meets a short one
            let (is_longer, is_shorter) = (upper.len() > 8 * to.len(), 8 * upper.len() < to.len());
            while !upper.is_empty() && !to.is_empty() {
                match columns[upper.start].cmp(&columns[to.start]) {
                    Less if is_longer => {
                        upper.start += columns[upper.clone()].partition_point(|j| *j < columns[to.start])
                    }
                    Less => upper.start += 1,
                    Greater if is_shorter => {
                        to.start += columns[to.clone()].partition_point(|j| *j < columns[upper.start])
                    }
                    Greater => to.start += 1,
                    Equal => {
                        self.set(to.start, self.get(to.start) - times * self.get(upper.start));
                        (upper.start, to.start) = (upper.start + 1, to.start + 1);
                    }
                }
            }
        }
        let pivot = self.get(diagonal_of_row).abs();
        pivot >= TINY && pivot.is_finite()
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
    fn row(&self, row: usize, is_lower: bool, entries: &mut Vec<(u32, f64)>) {
        let diagonal = self.diagonal[row];
        let values = self.lu.values();
        let (range, by) = match is_lower {
            true => (self.lu.row_ptr()[row]..diagonal, 1.0),
            false => (diagonal + 1..self.lu.row_ptr()[row + 1], values[diagonal]),
        };
        entries.extend(range.map(|k| (self.lu.col_idx()[k], values[k] / by)));
        keep_largest(entries, MOST);
    }

    /// V and W: the inverses of L and U, with the scaling of rows and columns undone.
    fn inverses(&self, scaled: &Scaled, limits: Limits) -> [Csr; 2] {
        let n = self.diagonal.len();
        let [l, u] = [true, false].map(|is_lower| by_rows(n, |row, entries| self.row(row, is_lower, entries)));
        let pivot = |column: usize| self.lu.values()[self.diagonal[column]];
        let v = inverse(&l, true, limits, |_, column, value| value * scaled.rows[column]);
        let w = inverse(&u, false, limits, |row, column, value| scaled.columns[row] * value / pivot(column));
        [v, w]
    }
}

/// The inverse of a triangular matrix with a diagonal of ones, which `triangle` has not, without small entries; what is left is changed by `map` of
/// row, column and value.
fn inverse(triangle: &Csr, is_lower: bool, limits: Limits, map: impl Fn(usize, usize, f64) -> f64 + Sync) -> Csr {
    let n = triangle.n_rows();
    let piece = |row: &mut Row, first: usize| {
        let (mut lengths, mut columns, mut values) = Piece::default();
        for i in first..n.min(first + PIECE) {
            let entries = row.make(triangle, i as u32, is_lower, limits);
            lengths.push(entries.len());
            columns.extend(entries.iter().map(|(column, _)| column));
            values.extend(entries.iter().map(|(column, value)| map(i, *column as usize, *value)));
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

/// A matrix by its rows, whose entries `row` puts into what it is given, in the order of their columns.
fn by_rows(n: usize, row: impl Fn(usize, &mut Vec<(u32, f64)>) + Sync) -> Csr {
    let piece = |entries: &mut Vec<(u32, f64)>, first: usize| {
        let (mut lengths, mut columns, mut values) = Piece::default();
        for i in first..n.min(first + PIECE) {
            entries.clear();
            row(i, entries);
            lengths.push(entries.len());
            columns.extend(entries.iter().map(|(column, _)| column));
            values.extend(entries.iter().map(|(_, value)| value));
        }
        (lengths, columns, values)
    };
    by_pieces(n, PIECE, Vec::new, piece)
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

    /// One row after the other, in dense rows.
    fn eliminated(a: &Csr) -> Vec<f64> {
        let n = a.n_rows();
        let mut rows: Vec<Vec<(u32, f64)>> = Vec::new();
        for i in 0..n {
            let mut row = vec![None; n];
            a.row(i).0.iter().zip(a.row(i).1).for_each(|(j, v)| row[*j as usize] = Some(*v));
            for k in 0..i {
                let Some(entry) = row[k] else { continue };
                let times = entry / rows[k].iter().find(|(j, _)| *j as usize == k).unwrap().1;
                row[k] = Some(times);
                for (j, u) in rows[k].iter().filter(|(j, _)| *j as usize > k) {
                    row[*j as usize] = row[*j as usize].map(|v| v - times * u);
                }
            }
            rows.push(row.iter().enumerate().filter_map(|(j, v)| v.map(|v| (j as u32, v))).collect());
        }
        rows.into_iter().flatten().map(|(_, v)| v).collect()
    }

    /// Levels change no bits; nor do long rows that meet short ones.
    #[test]
    fn levels_of_rows() {
        // a star whose first and last rows and columns are full
        let n = 700u32;
        let entries = (0..n).flat_map(|i| {
            let others = [Some(0), i.checked_sub(2), Some(i), Some(n - 1)].into_iter().flatten();
            let mut own: Vec<u32> = if i == 0 || i == n - 1 { (0..n).collect() } else { others.collect() };
            own.dedup();
            own.into_iter().map(move |j| (i, j, if i == j { 9.0 } else { f64::from((3 * i + 5 * j) % 7) / 97.0 }))
        });
        let entries: Vec<(u32, u32, f64)> = entries.collect();
        let [rows, columns] = [|e: &(u32, u32, f64)| e.0, |e: &(u32, u32, f64)| e.1]
            .map(|of| entries.iter().map(of).collect::<Vec<u32>>());
        let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
        let star = Csr::from_triplets(n as usize, n as usize, &rows, &columns, &values).unwrap();
        let grid = gallery::poisson3d([17, 16, 15]).unwrap();
        let values =
            grid.values().iter().zip(gallery::random_vector(grid.nnz(), 3)).map(|(v, r)| v + 0.1 * r).collect();
        for a in [star, grid.with_values(values)] {
            let scaled = Scaled::of(&a, 1.0);
            let levels = Levels::of(&scaled.a);
            let found = scaled.factors(&levels, 0.0).unwrap();
            assert!(found.lu.values() == eliminated(&scaled.a));
            let mut all: Vec<u32> = levels.iter().flatten().copied().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..a.n_rows() as u32));
        }
        let widest = |sides| Levels::of(&gallery::poisson3d(sides).unwrap()).iter().map(<[u32]>::len).max().unwrap();
        assert_eq!([widest([3, 3, 3]), widest([17, 16, 15])], [7, 191]);
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
