//! L U by dense fronts, with pivots within supernodes.

use super::front::{Front, Size};
use super::lu::{Arranged, TINY, WHAT};
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

/// The entries in the order in which fronts need them.
struct Entries {
    /// Where those of each supernode begin.
    begin: Vec<usize>,
    all: Vec<Entry>,
}

impl Entries {
    /// Those with a row or a column of a supernode, and none of an earlier one, are its own.
    fn of(arranged: &Arranged, tree: &Tree, a: &Csr) -> Result<Self> {
        let Arranged { rows, cols, .. } = arranged;
        let mut node_of_place = vec![0u32; a.n_rows()];
        for s in 0..tree.len() {
            node_of_place[tree.begin[s]..tree.begin[s + 1]].fill(s as u32);
        }
        let node = |i: usize, j: u32| node_of_place[rows.place[i].min(cols.place[j as usize]) as usize] as usize;
        let mut begin = vec![0usize; tree.len() + 1];
        for i in 0..a.n_rows() {
            for &j in a.row(i).0 {
                begin[node(i, j) + 1] += 1;
            }
        }
        for s in 0..tree.len() {
            begin[s + 1] += begin[s];
        }
        let mut all = Vec::new();
        let no_memory = |_| Error::OutOfMemory { what: WHAT.into(), bytes: arranged.bytes };
        all.try_reserve_exact(a.nnz()).map_err(no_memory)?;
        all.resize(a.nnz(), Entry::default());
        for i in 0..a.n_rows() {
            let (columns, values) = a.row(i);
            for (&j, &value) in columns.iter().zip(values) {
                let next = &mut begin[node(i, j)];
                let value = scaled(value, rows.exponent[i].saturating_add(cols.exponent[j as usize]));
                all[*next] = Entry { row: rows.place[i], col: cols.place[j as usize], value };
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
pub(super) struct Multifrontal {
    tree: Tree,
    /// Of each supernode, the panel with L and U of its columns, and the rest of its rows of U.
    values: Vec<f64>,
    /// Where those of each supernode begin.
    begin: Vec<usize>,
    /// The row, within its supernode, with which each changed places.
    swaps: Vec<u32>,
}

impl Multifrontal {
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
    pub(super) fn new(arranged: &Arranged, tree: Tree, a: &Csr) -> Result<(Self, Vec<u32>)> {
        let bytes = arranged.bytes;
        let array = |len: usize| zeros::<f64>(len).map_err(|_| Error::OutOfMemory { what: WHAT.into(), bytes });
        let entries = Entries::of(arranged, &tree, a)?;
        let n = a.n_rows();
        let mut values = array(tree.elements() as usize)?;
        let (mut begin, mut swaps) = (Vec::with_capacity(tree.len()), vec![0u32; n]);
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
            let (panel, others) = std::mem::take(&mut tail).split_at_mut(own * size.order());
            let (upper, others) = others.split_at_mut(size.elements() - panel.len());
            begin.push(end);
            (tail, end) = (others, end + size.elements());
            let mut rest = array(size.rest())?;
            let mut front = Front { size, panel, upper, rest: &mut rest };
            for entry in entries.of_node(s) {
                *front.at(local[entry.row as usize] as usize, local[entry.col as usize] as usize) += entry.value;
            }
            for child in children.of(s) {
                places.clear();
                places.extend(tree.pattern(child).iter().map(|&place| local[place as usize]));
                front.add(&std::mem::take(&mut rests[child]), &places);
            }
            front.eliminate(TINY, &mut swaps[first..first + own], |j| replaced.push(first + j));
            rests[s] = rest;
        }
        let factor = Self { tree, values, begin, swaps };
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
        let mut row_at: Vec<u32> = (0..).take(self.swaps.len()).collect();
        for s in 0..self.tree.len() {
            let range = self.tree.begin[s]..self.tree.begin[s + 1];
            let own = &mut row_at[range.clone()];
            for (j, &at) in self.swaps[range].iter().enumerate() {
                own.swap(j, at as usize);
            }
        }
        at.iter().map(|&place| row_at[place]).collect()
    }

    /// The panel and the other columns of U of a supernode, with its size and its first place.
    fn node(&self, s: usize) -> (Size, usize, &[f64], &[f64]) {
        let size = self.tree.size(s);
        let values = &self.values[self.begin[s]..self.begin[s] + size.elements()];
        let (panel, upper) = values.split_at(size.own * size.order());
        (size, self.tree.begin[s], panel, upper)
    }

    /// y = (L U)⁻¹ y.
    pub(super) fn solve(&self, y: &mut [f64]) {
        for s in 0..self.tree.len() {
            let (size, first, panel, _) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (j, &at) in self.swaps[first..first + size.own].iter().enumerate() {
                own.swap(j, at as usize);
            }
            for (j, column) in panel.chunks_exact(size.order()).enumerate() {
                let v = own[j];
                if v == 0.0 {
                    continue;
                }
                own[j + 1..].iter_mut().zip(&column[j + 1..size.own]).for_each(|(y, l)| *y -= l * v);
                for (&place, l) in self.tree.pattern(s).iter().zip(&column[size.own..]) {
                    below[place as usize - first - size.own] -= l * v;
                }
            }
        }
        for s in (0..self.tree.len()).rev() {
            let (size, first, panel, upper) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (&place, column) in self.tree.pattern(s).iter().zip(upper.chunks_exact(size.own)) {
                let v = below[place as usize - first - size.own];
                own.iter_mut().zip(column).for_each(|(y, u)| *y -= u * v);
            }
            for (j, column) in panel.chunks_exact(size.order()).enumerate().rev() {
                let v = own[j] / column[j];
                own[j] = v;
                own[..j].iter_mut().zip(column).for_each(|(y, u)| *y -= u * v);
            }
        }
    }
}
