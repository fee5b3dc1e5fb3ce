//! L U column by column, with pivots from all rows.

use std::collections::TryReserveError;

use super::lu::{Arranged, TINY, WHAT};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::power::scaled;

/// The entry of the diagonal is the pivot unless one of its column is larger by the reciprocal of this.
const THRESHOLD: f64 = 0.1;

/// None.
const NONE: u32 = u32::MAX;

/// Bytes of a factor of at most so many elements, with what is needed meanwhile: an array that grows is there twice for a moment,
/// unless the system moves its pages.
pub(super) fn bytes(most: usize, rows: usize, entries: usize) -> usize {
    12 * (most / 4 * 5 + entries) + 8 * most + rows * (3 * 8 + 5 * 8)
}

/// Columns of numbers, each with a row.
#[derive(Debug)]
struct Columns {
    begin: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Columns {
    fn new(n: usize) -> Self {
        let mut begin = Vec::with_capacity(n + 1);
        begin.push(0);
        Self { begin, rows: Vec::new(), values: Vec::new() }
    }

    /// Makes room for so many more, `most` of which there will be in all. Grows by a quarter at least.
    fn reserve(&mut self, more: usize, most: usize) -> std::result::Result<(), TryReserveError> {
        let needed = self.rows.len() + more;
        if needed > self.rows.capacity() {
            let room = needed.max(self.rows.len() / 4 * 5).min(most.max(needed)) - self.rows.len();
            self.rows.try_reserve_exact(room)?;
            self.values.try_reserve_exact(room)?;
        }
        Ok(())
    }

    fn push(&mut self, row: u32, value: f64) {
        self.rows.push(row);
        self.values.push(value);
    }

    fn end_column(&mut self) {
        self.begin.push(self.rows.len());
    }

    fn column(&self, j: usize) -> impl DoubleEndedIterator<Item = (usize, f64)> {
        let range = self.begin[j]..self.begin[j + 1];
        self.rows[range.clone()].iter().map(|&i| i as usize).zip(self.values[range].iter().copied())
    }

    /// The columns of the scaled matrix, rows and columns by their places.
    fn of(arranged: &Arranged, a: &Csr) -> Self {
        let (n, of_rows, of_cols) = (a.n_rows(), &arranged.rows, &arranged.cols);
        let mut begin = vec![0usize; n + 1];
        for &j in a.col_idx() {
            begin[of_cols.place[j as usize] as usize + 1] += 1;
        }
        for j in 0..n {
            begin[j + 1] += begin[j];
        }
        let (mut rows, mut values) = (vec![0u32; a.nnz()], vec![0.0; a.nnz()]);
        for i in 0..n {
            let (columns, entries) = a.row(i);
            for (&j, &value) in columns.iter().zip(entries) {
                let next = &mut begin[of_cols.place[j as usize] as usize];
                rows[*next] = of_rows.place[i];
                values[*next] = scaled(value, of_rows.exponent[i].saturating_add(of_cols.exponent[j as usize]));
                *next += 1;
            }
        }
        // each begin has become the next
        begin.rotate_right(1);
        begin[0] = 0;
        Self { begin, rows, values }
    }
}

/// The numbers of the factor. Rows count in the order in which they have been pivots.
#[derive(Debug)]
pub(super) struct Pivoting {
    /// Without its diagonal of ones.
    l: Columns,
    /// Without its diagonal.
    u: Columns,
    diagonal: Vec<f64>,
    /// When the row of each place was the pivot.
    step: Vec<u32>,
}

/// What the elimination of one column needs.
struct Work {
    x: Vec<f64>,
    /// The column in which a row was last met.
    met: Vec<u32>,
    /// Rows on the way, with the next entry of their columns of L to look at.
    stack: Vec<(u32, usize)>,
    /// The rows of the column: those that have been pivots, the last first; and those that have not.
    done: Vec<u32>,
    open: Vec<u32>,
}

impl Pivoting {
    /// Eliminates column by column: the pattern of each follows from a depth-first search through those of L, so that it takes no
    /// more time than there are operations. The pivot is the entry of the diagonal, or where that is small the largest. Gives also
    /// the places of rows whose pivots had to be replaced; `None` if L and U would get more than `most` elements.
    ///
    /// J. R. Gilbert, T. Peierls, "Sparse partial pivoting in time proportional to arithmetic operations", SIAM J. Sci. Stat.
    /// Comput. 9 (1988), doi 10.1137/0909058.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn new(arranged: &Arranged, a: &Csr, most: usize) -> Result<Option<(Self, Vec<u32>)>> {
        let n = a.n_rows();
        let b = Columns::of(arranged, a);
        let mut factor = Self { l: Columns::new(n), u: Columns::new(n), diagonal: vec![0.0; n], step: vec![NONE; n] };
        let mut work =
            Work { x: vec![0.0; n], met: vec![NONE; n], stack: Vec::new(), done: Vec::new(), open: Vec::new() };
        let mut perturbed = Vec::new();
        let mut used = 0;
        for j in 0..n {
            factor.reach(&b, j, &mut work);
            used += work.done.len() + work.open.len() + 1;
            if used > most {
                return Ok(None);
            }
            let no_memory = |_| Error::OutOfMemory { what: WHAT.into(), bytes: arranged.bytes };
            factor.u.reserve(work.done.len(), most).map_err(no_memory)?;
            factor.l.reserve(work.open.len(), most).map_err(no_memory)?;
            if let Some(row) = factor.eliminate(j, &mut work) {
                perturbed.push(row);
            }
        }
        for row in &mut factor.l.rows {
            *row = factor.step[*row as usize];
        }
        Ok(Some((factor, perturbed)))
    }

    /// Finds the rows of column `j` of L and U, and puts the column of the matrix into `x`.
    fn reach(&self, b: &Columns, j: usize, work: &mut Work) {
        let Work { x, met, stack, done, open } = work;
        done.clear();
        open.clear();
        for (i, value) in b.column(j) {
            x[i] += value;
            stack.push((i as u32, 0));
            while let Some((row, next)) = stack.pop() {
                let step = self.step[row as usize];
                if next == 0 {
                    if met[row as usize] == j as u32 {
                        continue;
                    }
                    met[row as usize] = j as u32;
                    if step == NONE {
                        open.push(row);
                        continue;
                    }
                }
                let range = self.l.begin[step as usize]..self.l.begin[step as usize + 1];
                let of_column = &self.l.rows[range];
                match of_column[next..].iter().position(|&i| met[i as usize] != j as u32) {
                    Some(k) => {
                        stack.push((row, next + k + 1));
                        stack.push((of_column[next + k], 0));
                    }
                    None => done.push(row),
                }
            }
        }
    }

    /// Solves for the column and takes its pivot; the place of its row, if it was replaced.
    fn eliminate(&mut self, j: usize, work: &mut Work) -> Option<u32> {
        let Work { x, done, open, .. } = work;
        for &row in done.iter().rev() {
            let value = std::mem::take(&mut x[row as usize]);
            let step = self.step[row as usize];
            self.u.push(step, value);
            if value != 0.0 {
                for (i, l) in self.l.column(step as usize) {
                    x[i] -= l * value;
                }
            }
        }
        self.u.end_column();
        let mut row = j as u32;
        let mut size = if self.step[j] == NONE { x[j].abs() / THRESHOLD } else { -1.0 };
        for &i in open.iter() {
            if x[i as usize].abs() > size {
                (row, size) = (i, x[i as usize].abs());
            }
        }
        if size < 0.0 {
            // no row of the column is left: one that has nothing there
            row = self.step.iter().position(|&step| step == NONE).unwrap_or_default() as u32;
        }
        let mut pivot = x[row as usize];
        let is_replaced = pivot.abs() < TINY || pivot.is_nan();
        if is_replaced {
            pivot = TINY.copysign(pivot);
        }
        self.diagonal[j] = pivot;
        self.step[row as usize] = j as u32;
        x[row as usize] = 0.0;
        for &i in open.iter().filter(|&&i| i != row) {
            self.l.push(i, std::mem::take(&mut x[i as usize]) / pivot);
        }
        self.l.end_column();
        is_replaced.then_some(row)
    }

    /// y = (L U)⁻¹ y.
    pub(super) fn solve(&self, y: &mut [f64]) {
        let mut w = vec![0.0; y.len()];
        for (&v, &step) in y.iter().zip(&self.step) {
            w[step as usize] = v;
        }
        for j in 0..w.len() {
            let v = w[j];
            self.l.column(j).for_each(|(i, l)| w[i] -= l * v);
        }
        for j in (0..w.len()).rev() {
            let v = w[j] / self.diagonal[j];
            w[j] = v;
            self.u.column(j).for_each(|(i, u)| w[i] -= u * v);
        }
        y.copy_from_slice(&w);
    }
}
