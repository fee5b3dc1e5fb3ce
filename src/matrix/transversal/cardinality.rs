//! Matchings of rows and columns.

use super::NONE;
use crate::matrix::Csr;

/// Rows and columns in pairs: an entry of the matrix each, no two in one row or column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The column of each row, or [`NONE`].
    pub(super) col_of_row: Vec<u32>,
    /// The row of each column, or [`NONE`].
    pub(super) row_of_col: Vec<u32>,
}

impl Matching {
    /// No pairs.
    pub(super) fn empty(n_rows: usize, n_cols: usize) -> Self {
        Self { col_of_row: vec![NONE; n_rows], row_of_col: vec![NONE; n_cols] }
    }

    /// As many pairs as possible, of any matrix.
    ///
    /// Each row first takes a free column where it finds one. Then come phases: a breadth-first search from all free rows gives
    /// each row its distance, and depth-first searches along rising distances find augmenting paths that share no row. O(√n nnz)
    /// at worst, most often a few passes over the matrix; 20 bytes a row and 4 a column.
    ///
    /// J. E. Hopcroft, R. M. Karp, "An n^(5/2) algorithm for maximum matchings in bipartite graphs", SIAM J. Comput. 2 (1973),
    /// doi 10.1137/0202019.
    pub(crate) fn maximum(a: &Csr) -> Self {
        let mut matching = Self::empty(a.n_rows(), a.n_cols());
        for i in 0..a.n_rows() {
            if let Some(j) = columns(a, i).find(|&j| matching.row_of_col[j as usize] == NONE) {
                matching.pair(i as u32, j);
            }
        }
        let mut search = Search::new(a);
        while search.levels(a, &matching) {
            let free: Vec<u32> = matching.free_rows().collect();
            for i in free {
                search.augment(a, &mut matching, i);
            }
        }
        matching
    }

    /// How many pairs there are: of the largest matching, the structural rank, which no values of the entries exceed.
    pub(crate) fn len(&self) -> usize {
        self.col_of_row.iter().filter(|&&j| j != NONE).count()
    }

    /// The rows that have no column.
    pub(super) fn free_rows(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.col_of_row).filter(|&(_, &j)| j == NONE).map(|(i, _)| i)
    }

    /// Makes a pair of them.
    pub(super) fn pair(&mut self, i: u32, j: u32) {
        self.col_of_row[i as usize] = j;
        self.row_of_col[j as usize] = i;
    }
}

/// The columns in which row `i` has an entry other than 0.
pub(super) fn columns(a: &Csr, i: usize) -> impl Iterator<Item = u32> {
    let (cols, values) = a.row(i);
    cols.iter().zip(values).filter(|&(_, &v)| v != 0.0).map(|(&j, _)| j)
}

/// What the phases need beside the matching.
struct Search {
    /// How many steps a row is from a free row; [`NONE`] if none leads there, or it is spent.
    level: Vec<u32>,
    /// Of each row, the entry that a depth-first search looks at next.
    next: Vec<usize>,
    rows: Vec<u32>,
}

impl Search {
    fn new(a: &Csr) -> Self {
        Self { level: vec![NONE; a.n_rows()], next: vec![0; a.n_rows()], rows: Vec::new() }
    }

    /// Gives rows their distance from the free ones, as far as the nearest free column; whether there is one.
    fn levels(&mut self, a: &Csr, matching: &Matching) -> bool {
        self.level.fill(NONE);
        self.next.copy_from_slice(&a.row_ptr()[..a.n_rows()]);
        self.rows.clear();
        for i in matching.free_rows() {
            self.level[i as usize] = 0;
            self.rows.push(i);
        }
        let (mut at, mut nearest) = (0, NONE);
        while let Some(&i) = self.rows.get(at) {
            at += 1;
            let level = self.level[i as usize];
            if level >= nearest {
                break;
            }
            for j in columns(a, i as usize) {
                match matching.row_of_col[j as usize] {
                    NONE => nearest = level,
                    k if self.level[k as usize] == NONE => {
                        self.level[k as usize] = level + 1;
                        self.rows.push(k);
                    }
                    _ => {}
                }
            }
        }
        nearest != NONE
    }

    /// Looks for a path from the free row `i` to a free column, and swaps the pairs along it.
    fn augment(&mut self, a: &Csr, matching: &mut Matching, i: u32) {
        self.rows.clear();
        self.rows.push(i);
        while let Some(&i) = self.rows.last() {
            let row = i as usize;
            let k = self.next[row];
            if k == a.row_ptr()[row + 1] {
                // no way from here: neither in this phase
                self.level[row] = NONE;
                self.rows.pop();
                continue;
            }
            self.next[row] += 1;
            if a.values()[k] == 0.0 {
                continue;
            }
            let j = a.col_idx()[k];
            match matching.row_of_col[j as usize] {
                NONE => {
                    self.swap(matching, j);
                    return;
                }
                other if self.level[other as usize] == self.level[row].saturating_add(1) => self.rows.push(other),
                _ => {}
            }
        }
    }

    /// Gives the last row of the path column `j`, the row before the column that this one had, and so on. The rows are spent.
    fn swap(&mut self, matching: &mut Matching, mut j: u32) {
        while let Some(i) = self.rows.pop() {
            let former = matching.col_of_row[i as usize];
            matching.pair(i, j);
            self.level[i as usize] = NONE;
            j = former;
        }
    }
}
