//! The transversal of the largest product.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::NONE;
use super::cardinality::Matching;
use super::deficiency::Deficiency;
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// The transversal of n entries whose absolute values have the largest product, and scalings with |r_i a_ij c_j| ≤ 1, and 1 on
/// the transversal, but for rounding.
///
/// Scalings are given by their binary logarithms, as they can be beyond the range of `f64` where all entries are within.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transversal {
    /// The column of each row: with column `col_of_row[i]` moved to place i, the entries are on the diagonal.
    pub(crate) col_of_row: Vec<u32>,
    /// log₂ r_i.
    pub(crate) row_log2: Vec<f64>,
    /// log₂ c_j.
    pub(crate) col_log2: Vec<f64>,
}

impl Transversal {
    /// Finds it by shortest augmenting paths in the costs c_ij = log₂ max_j |a_ij| − log₂ |a_ij|, whose sum is least where the
    /// product is largest. The dual variables of the assignment are the logarithms of the scalings; they make the largest
    /// entries of rows and columns alike in size, in the mean.
    ///
    /// Rows first take columns at no cost, in pairs or by one exchange; what remains goes by Dijkstra's searches, each as far as
    /// the nearest free column. O(n (n + nnz) log n) at worst, often a few passes over the matrix; 8 bytes an entry and 60 a row.
    ///
    /// I. S. Duff, J. Koster, "On algorithms for permuting large entries to the diagonal of a sparse matrix", SIAM J. Matrix
    /// Anal. Appl. 22 (2001), doi 10.1137/S0895479899358443: what MC64 does as job 5, with rows in the place of columns.
    ///
    /// # Errors
    /// [`Error::NotSquare`]. A [`Deficiency`] if the matrix is structurally singular.
    pub(crate) fn maximum_product(a: &Csr) -> Result<std::result::Result<Self, Deficiency>> {
        if a.n_rows() != a.n_cols() {
            return Err(Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() });
        }
        let mut assignment = Assignment::new(a);
        assignment.initial_duals();
        assignment.greedy();
        let free: Vec<u32> = assignment.matching.free_rows().collect();
        for i in free {
            if !assignment.augment(i)
                && let Some(deficiency) = Deficiency::of(a, &Matching::maximum(a))
            {
                return Ok(Err(deficiency));
            }
        }
        Ok(Ok(assignment.finish()))
    }
}

/// Rows and columns matched at least cost so far: u_i + v_j ≤ c_ij for all entries, with equality for those of the matching.
struct Assignment<'a> {
    a: &'a Csr,
    /// c_ij of each entry; infinite for stored zeros.
    cost: Vec<f64>,
    /// log₂ max_j |a_ij| of each row.
    row_max: Vec<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
    matching: Matching,
    paths: Paths,
}

/// A search for the shortest path from a free row.
struct Paths {
    /// The length of the shortest path known to each column; infinite where none is known.
    length: Vec<f64>,
    /// The row before each column on that path.
    before: Vec<u32>,
    is_done: Vec<bool>,
    /// The columns that have a length.
    touched: Vec<u32>,
    /// Lengths, as bits, which are ordered as the lengths are, with columns. Those that have become shorter since stay.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a> Assignment<'a> {
    fn new(a: &'a Csr) -> Self {
        let n = a.n_rows();
        let mut cost: Vec<f64> = a.values().iter().map(|v| -v.abs().log2()).collect();
        let mut row_max = vec![0.0; n];
        for (max, ends) in row_max.iter_mut().zip(a.row_ptr().windows(2)) {
            let row = &mut cost[ends[0]..ends[1]];
            let least = row.iter().copied().fold(f64::INFINITY, f64::min);
            if least.is_finite() {
                *max = -least;
                row.iter_mut().for_each(|c| *c -= least);
            }
        }
        let paths = Paths {
            length: vec![f64::INFINITY; n],
            before: vec![NONE; n],
            is_done: vec![false; n],
            touched: Vec::new(),
            heap: BinaryHeap::new(),
        };
        let matching = Matching::empty(n, n);
        Self { a, cost, row_max, u: vec![0.0; n], v: vec![0.0; n], matching, paths }
    }

    /// The columns of row `i`, with c_ij.
    fn row(&self, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let range = self.a.row_ptr()[i]..self.a.row_ptr()[i + 1];
        self.a.col_idx()[range.clone()]
            .iter()
            .copied()
            .zip(self.cost[range].iter().copied())
            .filter(|(_, c)| c.is_finite())
    }

    /// c_ij − u_i − v_j, which rounding must not make negative.
    fn reduced(&self, i: usize, j: u32, cost: f64) -> f64 {
        (cost - self.u[i] - self.v[j as usize]).max(0.0)
    }

    /// The columns of row `i` whose reduced cost is 0.
    fn tight(&self, i: usize) -> impl Iterator<Item = u32> {
        self.row(i).filter(move |&(j, c)| self.reduced(i, j, c) == 0.0).map(|(j, _)| j)
    }

    /// v_j = min_i c_ij, u_i = min_j (c_ij − v_j).
    fn initial_duals(&mut self) {
        self.v.fill(f64::INFINITY);
        for (&j, &c) in self.a.col_idx().iter().zip(&self.cost) {
            let v = &mut self.v[j as usize];
            *v = v.min(c);
        }
        for v in self.v.iter_mut().filter(|v| v.is_infinite()) {
            *v = 0.0;
        }
        for i in 0..self.u.len() {
            let least = self.row(i).map(|(j, c)| c - self.v[j as usize]).fold(f64::INFINITY, f64::min);
            self.u[i] = if least.is_finite() { least } else { 0.0 };
        }
    }

    /// Takes entries of no reduced cost, with one exchange where that frees a column.
    fn greedy(&mut self) {
        for i in 0..self.u.len() {
            let row_of = |j: u32| self.matching.row_of_col[j as usize];
            let free = self.tight(i).find(|&j| row_of(j) == NONE);
            if let Some(j) = free {
                self.matching.pair(i as u32, j);
                continue;
            }
            // long rows would make this quadratic
            let exchange = self.tight(i).take(8).find_map(|j| {
                let other = row_of(j);
                let free = self.tight(other as usize).take(8).find(|&free| row_of(free) == NONE)?;
                Some((j, other, free))
            });
            if let Some((j, other, free)) = exchange {
                self.matching.pair(other, free);
                self.matching.pair(i as u32, j);
            }
        }
    }

    /// Extends the matching by the free row `root`, along the path of least cost to a free column; whether there is one.
    fn augment(&mut self, root: u32) -> bool {
        let (mut row, mut reached) = (root, 0.0);
        let mut found: Option<(u32, f64)> = None;
        loop {
            self.extend(row, reached, &mut found);
            let Some((j, length)) = self.nearest() else { break };
            if found.is_some_and(|(_, least)| length >= least) {
                break;
            }
            self.paths.is_done[j as usize] = true;
            (row, reached) = (self.matching.row_of_col[j as usize], length);
        }
        if let Some((_, least)) = found {
            self.update_duals(root, least);
        }
        for &j in &self.paths.touched {
            self.paths.length[j as usize] = f64::INFINITY;
            self.paths.is_done[j as usize] = false;
        }
        self.paths.touched.clear();
        self.paths.heap.clear();
        let Some((mut j, _)) = found else { return false };
        loop {
            let i = self.paths.before[j as usize];
            let former = self.matching.col_of_row[i as usize];
            self.matching.pair(i, j);
            if i == root {
                return true;
            }
            j = former;
        }
    }

    /// Goes on from a row that a path of this length has reached.
    fn extend(&mut self, row: u32, reached: f64, found: &mut Option<(u32, f64)>) {
        let i = row as usize;
        for k in self.a.row_ptr()[i]..self.a.row_ptr()[i + 1] {
            let (j, cost) = (self.a.col_idx()[k], self.cost[k]);
            let at = j as usize;
            if cost.is_infinite() || self.paths.is_done[at] {
                continue;
            }
            let length = reached + self.reduced(i, j, cost);
            if length >= self.paths.length[at] || found.is_some_and(|(_, least)| length >= least) {
                continue;
            }
            if self.paths.length[at].is_infinite() {
                self.paths.touched.push(j);
            }
            self.paths.length[at] = length;
            self.paths.before[at] = row;
            if self.matching.row_of_col[at] == NONE {
                *found = Some((j, length));
            } else {
                self.paths.heap.push(Reverse((length.to_bits(), j)));
            }
        }
    }

    /// The nearest column that is not done.
    fn nearest(&mut self) -> Option<(u32, f64)> {
        while let Some(Reverse((bits, j))) = self.paths.heap.pop() {
            let at = j as usize;
            if !self.paths.is_done[at] && bits == self.paths.length[at].to_bits() {
                return Some((j, self.paths.length[at]));
            }
        }
        None
    }

    /// Makes the path of length `least` free of cost, before the pairs along it are exchanged.
    fn update_duals(&mut self, root: u32, least: f64) {
        self.u[root as usize] += least;
        for &j in &self.paths.touched {
            let at = j as usize;
            if self.paths.is_done[at] {
                let by = least - self.paths.length[at];
                self.v[at] -= by;
                self.u[self.matching.row_of_col[at] as usize] += by;
            }
        }
    }

    /// With u_i set anew from the entry of the transversal, so that its error is that of two roundings.
    fn finish(self) -> Transversal {
        let Self { a, cost, row_max, mut u, v, matching, .. } = self;
        for (i, &j) in matching.col_of_row.iter().enumerate() {
            let start = a.row_ptr()[i];
            if let Ok(k) = a.row(i).0.binary_search(&j) {
                u[i] = cost[start + k] - v[j as usize];
            }
        }
        // one number can be moved from all rows to all columns
        let mut row_log2: Vec<f64> = u.iter().zip(&row_max).map(|(u, max)| u - max).collect();
        let mut col_log2 = v;
        let middle = |logs: &[f64]| {
            let (low, high) = logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
            if low.is_finite() { 0.5 * (low + high) } else { 0.0 }
        };
        let shift = (0.5 * (middle(&row_log2) - middle(&col_log2))).round();
        row_log2.iter_mut().for_each(|log| *log -= shift);
        col_log2.iter_mut().for_each(|log| *log += shift);
        Transversal { col_of_row: matching.col_of_row, row_log2, col_log2 }
    }
}
