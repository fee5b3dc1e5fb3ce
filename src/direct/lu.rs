//! A = L U with static pivoting.

use std::result::Result as StdResult;

use super::Singular;
use super::front::{Front, Size};
use super::power::{nearest, scaled};
use super::tree::{Tree, Upper};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Transversal};
use crate::memory::zeros;

/// The least pivot, of a matrix whose entries are at most 1 in size.
const TINY: f64 = 1e-13;

/// What the memory is for.
const WHAT: &str = "the LU factor";

/// Rows, columns and scalings, and the structure of the factor: that of the Cholesky factor of a matrix with the pattern of B + Bᵀ,
/// where B is A with the transversal of the largest product on its diagonal, scaled by powers of two so that all entries are about 1
/// at most, and those of the diagonal about 1.
#[derive(Debug)]
pub(super) struct Analysis {
    tree: Tree,
    rows: Side,
    cols: Side,
    nnz: usize,
}

/// What becomes of the rows, or of the columns.
#[derive(Debug)]
struct Side {
    /// When each is eliminated.
    place: Vec<u32>,
    /// Each is multiplied by two to the power of this.
    exponent: Vec<i32>,
}

impl Side {
    /// To = scaled from, in the order of elimination.
    fn gather(&self, from: &[f64], to: &mut [f64]) {
        for ((v, &place), &e) in from.iter().zip(&self.place).zip(&self.exponent) {
            to[place as usize] = scaled(*v, e);
        }
    }

    /// To = scaled from, which is in the order of elimination.
    fn scatter(&self, from: &[f64], to: &mut [f64]) {
        for ((v, &place), &e) in to.iter_mut().zip(&self.place).zip(&self.exponent) {
            *v = scaled(from[place as usize], e);
        }
    }
}

impl Analysis {
    pub(super) fn new(a: &Csr) -> Result<StdResult<Self, Singular>> {
        let transversal = match Transversal::maximum_product(a)? {
            Ok(transversal) => transversal,
            Err(deficiency) => return Ok(Err(Singular::Structurally(deficiency))),
        };
        let (n, col_of_row) = (a.n_rows(), &transversal.col_of_row);
        let entries = (0..n).flat_map(|i| a.row(i).0.iter().map(move |&j| (col_of_row[i] as usize, j as usize)));
        let symbolic = Upper::of(n, entries).symbolic()?;
        let tree = Tree::of(&symbolic);
        let mut of_col = vec![0u32; n];
        match symbolic.perm() {
            Some(perm) => of_col.iter_mut().zip(perm.arrays().1).for_each(|(to, &place)| *to = place as u32),
            None => of_col.iter_mut().zip(0..).for_each(|(to, place)| *to = place),
        }
        let of_row = col_of_row.iter().map(|&j| of_col[j as usize]).collect();
        let exponents = |logs: &[f64]| logs.iter().map(|&log| nearest(log)).collect();
        let rows = Side { place: of_row, exponent: exponents(&transversal.row_log2) };
        let cols = Side { place: of_col, exponent: exponents(&transversal.col_log2) };
        Ok(Ok(Self { tree, rows, cols, nnz: a.nnz() }))
    }

    pub(super) fn elements(&self) -> u64 {
        self.tree.elements()
    }

    pub(super) fn flops(&self) -> f64 {
        self.tree.flops()
    }

    pub(super) fn bytes(&self) -> u64 {
        let n = self.rows.place.len();
        let entries = self.nnz * size_of::<Entry>() + (self.tree.len() + 1) * size_of::<usize>();
        let places = n * (2 * 2 * 4 + 4 + 4 + 4);
        let of_nodes = self.tree.len() * (size_of::<Vec<f64>>() + 2 * size_of::<Option<usize>>() + size_of::<usize>());
        let numbers = 8 * (self.tree.elements() + self.tree.most_below());
        numbers + self.tree.bytes() + (entries + places + of_nodes) as u64
    }
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
    fn of(analysis: &Analysis, a: &Csr) -> Result<Self> {
        let Analysis { tree, rows, cols, .. } = analysis;
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
        let no_memory = |_| Error::OutOfMemory { what: WHAT.into(), bytes: analysis.bytes() };
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
pub(super) struct Factor {
    tree: Tree,
    rows: Side,
    cols: Side,
    /// Of each supernode, the panel with L and U of its columns, and the rest of its rows of U.
    values: Vec<f64>,
    /// Where those of each supernode begin.
    begin: Vec<usize>,
    /// The row, within its supernode, with which each changed places.
    swaps: Vec<u32>,
    perturbed: Vec<u32>,
}

impl Factor {
    /// A multifrontal factorisation: each supernode assembles its entries and what is left of its children into a front, eliminates
    /// its columns there, and leaves the rest to its parent.
    ///
    /// I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse symmetric linear equations", ACM TOMS 9 (1983),
    /// doi 10.1145/356044.356047.
    pub(super) fn new(analysis: Analysis, a: &Csr) -> Result<Self> {
        let bytes = analysis.bytes();
        let array = |len: usize| zeros::<f64>(len).map_err(|_| Error::OutOfMemory { what: WHAT.into(), bytes });
        let entries = Entries::of(&analysis, a)?;
        let Analysis { tree, rows, cols, .. } = analysis;
        let n = rows.place.len();
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
        let perturbed = rows_at(&replaced, &tree, &rows, &swaps);
        Ok(Self { tree, rows, cols, values, begin, swaps, perturbed })
    }

    pub(super) fn perturbed(&self) -> &[u32] {
        &self.perturbed
    }

    /// The panel and the other columns of U of a supernode, with its size and its first place.
    fn node(&self, s: usize) -> (Size, usize, &[f64], &[f64]) {
        let size = self.tree.size(s);
        let values = &self.values[self.begin[s]..self.begin[s] + size.elements()];
        let (panel, upper) = values.split_at(size.own * size.order());
        (size, self.tree.begin[s], panel, upper)
    }

    pub(super) fn solve(&self, b: &[f64], x: &mut [f64]) {
        assert_eq!((b.len(), x.len()), (self.swaps.len(), self.swaps.len()), "one element a row");
        let mut y = vec![0.0; b.len()];
        self.rows.gather(b, &mut y);
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
        self.cols.scatter(&y, x);
    }

    pub(super) fn solve_transposed(&self, b: &[f64], x: &mut [f64]) {
        assert_eq!((b.len(), x.len()), (self.swaps.len(), self.swaps.len()), "one element a row");
        let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>();
        let mut y = vec![0.0; b.len()];
        self.cols.gather(b, &mut y);
        for s in 0..self.tree.len() {
            let (size, first, panel, upper) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (j, column) in panel.chunks_exact(size.order()).enumerate() {
                own[j] = (own[j] - dot(&column[..j], &own[..j])) / column[j];
            }
            for (&place, column) in self.tree.pattern(s).iter().zip(upper.chunks_exact(size.own)) {
                below[place as usize - first - size.own] -= dot(column, own);
            }
        }
        for s in (0..self.tree.len()).rev() {
            let (size, first, panel, _) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (j, column) in panel.chunks_exact(size.order()).enumerate().rev() {
                let of_below = self.tree.pattern(s).iter().zip(&column[size.own..]);
                let of_below = of_below.map(|(&place, l)| l * below[place as usize - first - size.own]).sum::<f64>();
                own[j] -= of_below + dot(&column[j + 1..size.own], &own[j + 1..]);
            }
            for (j, &at) in self.swaps[first..first + size.own].iter().enumerate().rev() {
                own.swap(j, at as usize);
            }
        }
        self.rows.scatter(&y, x);
    }
}

/// The rows of the matrix that the exchanges have brought to these places.
fn rows_at(at: &[usize], tree: &Tree, rows: &Side, swaps: &[u32]) -> Vec<u32> {
    if at.is_empty() {
        return Vec::new();
    }
    let mut row_at = vec![0u32; swaps.len()];
    for (i, &place) in (0..).zip(&rows.place) {
        row_at[place as usize] = i;
    }
    for s in 0..tree.len() {
        let range = tree.begin[s]..tree.begin[s + 1];
        let own = &mut row_at[range.clone()];
        for (j, &at) in swaps[range].iter().enumerate() {
            own.swap(j, at as usize);
        }
    }
    at.iter().map(|&place| row_at[place]).collect()
}
