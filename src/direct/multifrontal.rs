//! Factors by dense fronts, with pivots within supernodes.

use super::front::{Elimination, Front, Size};
use super::side::Side;
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::power::scaled;
use crate::memory::zeros;

/// Bytes that are needed for each supernode, each row and each entry, beside those of [`Tree`] and the numbers.
pub(super) fn bytes_beside(nodes: usize, rows: usize, entries: usize) -> usize {
    let of_nodes = size_of::<Vec<f64>>() + 2 * size_of::<Option<usize>>() + 2 * size_of::<usize>();
    nodes * of_nodes + rows * 16 + entries * size_of::<Entry>()
}

/// An entry of the matrix as it is eliminated.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    row: u32,
    col: u32,
    value: f64,
}

/// A matrix as it is eliminated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eliminated<'a> {
    pub(super) a: &'a Csr,
    pub(super) rows: &'a Side,
    pub(super) cols: &'a Side,
    /// Whether only entries with column ≤ row are looked at, those of a symmetric matrix.
    pub(super) is_symmetric: bool,
    /// What the factor is, and the bytes that it takes.
    pub(super) what: &'a str,
    pub(super) bytes: u64,
}

impl Eliminated<'_> {
    fn no_memory(&self) -> Error {
        Error::OutOfMemory { what: self.what.into(), bytes: self.bytes }
    }

    /// The entries of row `i` that are looked at.
    fn row(&self, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let (cols, values) = self.a.row(i);
        let end = if self.is_symmetric { cols.partition_point(|&j| j as usize <= i) } else { cols.len() };
        cols[..end].iter().copied().zip(values[..end].iter().copied())
    }

    /// Where the entry at row `i` and column `j` is eliminated: its row and column, on or below the diagonal if there is nothing else.
    fn place(&self, i: usize, j: u32) -> (u32, u32) {
        let (row, col) = (self.rows.place[i], self.cols.place[j as usize]);
        if self.is_symmetric { (row.max(col), row.min(col)) } else { (row, col) }
    }
}

/// The entries in the order in which fronts need them.
struct Entries {
    /// Where those of each supernode begin.
    begin: Vec<usize>,
    all: Vec<Entry>,
}

impl Entries {
    /// Those with a row or a column of a supernode, and none of an earlier one, are its own.
    fn of(matrix: &Eliminated<'_>, tree: &Tree) -> Result<Self> {
        let n = matrix.a.n_rows();
        let mut node_of_place = vec![0u32; n];
        for s in 0..tree.len() {
            node_of_place[tree.begin[s]..tree.begin[s + 1]].fill(s as u32);
        }
        let node = |(row, col): (u32, u32)| node_of_place[row.min(col) as usize] as usize;
        let mut begin = vec![0usize; tree.len() + 1];
        for i in 0..n {
            for (j, _) in matrix.row(i) {
                begin[node(matrix.place(i, j)) + 1] += 1;
            }
        }
        for s in 0..tree.len() {
            begin[s + 1] += begin[s];
        }
        let mut all = Vec::new();
        let count = begin[tree.len()];
        all.try_reserve_exact(count).map_err(|_| matrix.no_memory())?;
        all.resize(count, Entry::default());
        for i in 0..n {
            for (j, value) in matrix.row(i) {
                let (row, col) = matrix.place(i, j);
                let next = &mut begin[node((row, col))];
                let exponent = matrix.rows.exponent[i].saturating_add(matrix.cols.exponent[j as usize]);
                all[*next] = Entry { row, col, value: scaled(value, exponent) };
                *next += 1;
            }
        }
        // each begin has become the next
        begin.rotate_right(1);
        begin[0] = 0;
        Ok(Self { begin, all })
    }

    fn of_node(&self, s: usize) -> &[Entry] {
        &self.all[self.begin[s]..self.begin[s + 1]]
    }
}

/// The numbers of the factor.
#[derive(Debug)]
pub(super) struct Multifrontal<E: Elimination> {
    pub(super) tree: Tree,
    /// What came of the columns of each supernode.
    values: Vec<f64>,
    /// Where that begins.
    begin: Vec<usize>,
    /// What is told of each column.
    pub(super) pivots: Vec<E::Pivot>,
}

impl<E: Elimination> Multifrontal<E> {
    /// Each supernode assembles its entries and what is left of its children into a front, eliminates
    /// its columns there, and leaves the rest to its parent.
    ///
    /// I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse symmetric linear equations", ACM TOMS 9 (1983),
    /// doi 10.1145/356044.356047.
    ///
    /// Gives also the places whose pivots were replaced.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn new(mut elimination: E, matrix: &Eliminated<'_>, tree: Tree) -> Result<(Self, Vec<u32>)> {
        let array = |len: usize| zeros::<f64>(len).map_err(|_| matrix.no_memory());
        let entries = Entries::of(matrix, &tree)?;
        let n = matrix.a.n_rows();
        let mut values = array(tree.elements::<E>() as usize)?;
        let (mut begin, mut pivots) = (Vec::with_capacity(tree.len()), vec![E::Pivot::default(); n]);
        let mut replaced = Vec::new();
        let children = tree.children();
        let mut rests: Vec<Vec<f64>> = Vec::new();
        rests.resize_with(tree.len(), Vec::new);
        // of each place, where it is in the front
        let mut local = vec![0u32; n];
        let mut places = Vec::new();
        let (mut tail, mut end) = (&mut values[..], 0);
        for s in 0..tree.len() {
            let size @ Size { own, .. } = tree.size(s);
            let first = tree.begin[s];
            let numbered = (first as u32..).take(own).chain(tree.pattern(s).iter().copied()).zip(0..);
            numbered.for_each(|(place, at)| local[place as usize] = at);
            let (values, others) = std::mem::take(&mut tail).split_at_mut(E::elements(size));
            begin.push(end);
            (tail, end) = (others, end + values.len());
            let mut rest = array(E::rest(size))?;
            let mut front = Front { size, values, rest: &mut rest };
            for entry in entries.of_node(s) {
                *E::at(&mut front, local[entry.row as usize] as usize, local[entry.col as usize] as usize) +=
                    entry.value;
            }
            for child in children.of(s) {
                places.clear();
                places.extend(tree.pattern(child).iter().map(|&place| local[place as usize]));
                E::add(&mut front, &std::mem::take(&mut rests[child]), &places);
            }
            elimination.eliminate(&mut front, &mut pivots[first..first + own], |j| replaced.push(first + j));
            rests[s] = rest;
        }
        let factor = Self { tree, values, begin, pivots };
        let perturbed = factor.rows_at(&replaced);
        Ok((factor, perturbed))
    }

    /// What is left without the numbers.
    pub(super) fn into_tree(self) -> Tree {
        self.tree
    }

    /// The places of the rows that exchanges have brought to these.
    fn rows_at(&self, at: &[usize]) -> Vec<u32> {
        if at.is_empty() {
            return Vec::new();
        }
        let mut row_at: Vec<u32> = (0..).take(self.pivots.len()).collect();
        for s in 0..self.tree.len() {
            let range = self.tree.begin[s]..self.tree.begin[s + 1];
            let own = &mut row_at[range.clone()];
            for (j, &pivot) in self.pivots[range].iter().enumerate() {
                own.swap(j, E::row_of(pivot));
            }
        }
        at.iter().map(|&place| row_at[place]).collect()
    }

    /// What came of the columns of a supernode.
    pub(super) fn values_of(&self, s: usize) -> &[f64] {
        &self.values[self.begin[s]..self.begin[s] + E::elements(self.tree.size(s))]
    }
}
