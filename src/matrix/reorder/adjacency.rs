//! The graph of a square matrix.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::matrix::{Csr, Scalar};

/// The undirected graph of a square matrix: a node for each row, an edge between i ≠ j where (i, j) or (j, i) is
/// stored, which is the pattern of A + Aᵀ.
///
/// A matrix whose pattern is symmetric lends it; another costs up to 8 bytes an entry, and as many while it is made.
pub(super) struct Adjacency<'a> {
    ptr: Cow<'a, [usize]>,
    cols: Cow<'a, [u32]>,
}

impl<'a> Adjacency<'a> {
    /// The graph of `a`, in O(n + nnz).
    pub(super) fn of<T: Scalar>(a: &'a Csr<T>) -> Self {
        if is_symmetric(a) {
            return Self::of_symmetric(a);
        }
        let (ptr, cols) = union(a, &transposed(a));
        Self { ptr: Cow::Owned(ptr), cols: Cow::Owned(cols) }
    }

    /// The graph of a matrix whose pattern is symmetric.
    pub(super) fn of_symmetric<T: Scalar>(a: &'a Csr<T>) -> Self {
        Self { ptr: Cow::Borrowed(a.row_ptr()), cols: Cow::Borrowed(a.col_idx()) }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.ptr.len() - 1
    }

    /// The neighbours of node `i` in rising order; `i` itself may be among them.
    #[inline]
    pub(super) fn neighbours(&self, i: u32) -> &[u32] {
        &self.cols[self.ptr[i as usize]..self.ptr[i as usize + 1]]
    }

    /// How many neighbours node `i` has, itself not counted.
    #[inline]
    pub(super) fn degree(&self, i: u32) -> u32 {
        let row = self.neighbours(i);
        (row.len() - usize::from(row.binary_search(&i).is_ok())) as u32
    }
}

/// Whether for every stored (i, j) there is a stored (j, i): whether each entry above the diagonal has its mirror, and
/// there are as many below. Rows in parallel, O(nnz log(longest row)).
fn is_symmetric<T: Scalar>(a: &Csr<T>) -> bool {
    let of_row = |i: usize| {
        let (cols, _) = a.row(i);
        let below = cols.partition_point(|&j| (j as usize) < i);
        let from_diagonal = &cols[below..];
        let above = &from_diagonal[usize::from(from_diagonal.first() == Some(&(i as u32)))..];
        let mirrored = above.iter().all(|&j| a.row(j as usize).0.binary_search(&(i as u32)).is_ok());
        mirrored.then_some(above.len() as i64 - below as i64)
    };
    (0..a.n_rows()).into_par_iter().map(of_row).try_reduce(|| 0, |one, other| Some(one + other)) == Some(0)
}

/// The rows of Aᵀ, sorted.
fn transposed<T: Scalar>(a: &Csr<T>) -> (Vec<usize>, Vec<u32>) {
    let n = a.n_cols();
    let mut ptr = vec![0; n + 1];
    for &j in a.col_idx() {
        ptr[j as usize + 1] += 1;
    }
    for j in 0..n {
        ptr[j + 1] += ptr[j];
    }
    let mut next = ptr[..n].to_vec();
    let mut rows = vec![0; a.nnz()];
    for i in 0..a.n_rows() {
        for &j in a.row(i).0 {
            let at = &mut next[j as usize];
            rows[*at] = i as u32;
            *at += 1;
        }
    }
    (ptr, rows)
}

/// The rows of the pattern of A + Aᵀ, sorted.
fn union<T: Scalar>(a: &Csr<T>, (t_ptr, t_cols): &(Vec<usize>, Vec<u32>)) -> (Vec<usize>, Vec<u32>) {
    let mut ptr = Vec::with_capacity(a.n_rows() + 1);
    ptr.push(0);
    let mut cols = Vec::with_capacity(a.nnz());
    for i in 0..a.n_rows() {
        let (mut here, mut there) = (a.row(i).0, &t_cols[t_ptr[i]..t_ptr[i + 1]]);
        while let (Some(&j), Some(&k)) = (here.first(), there.first()) {
            cols.push(j.min(k));
            here = &here[usize::from(j <= k)..];
            there = &there[usize::from(k <= j)..];
        }
        cols.extend_from_slice(here);
        cols.extend_from_slice(there);
        ptr.push(cols.len());
    }
    (ptr, cols)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matrix(n: usize, places: &[(u32, u32)]) -> Csr {
        let (rows, cols): (Vec<u32>, Vec<u32>) = places.iter().copied().unzip();
        Csr::from_triplets(n, n, &rows, &cols, &vec![1.0; places.len()]).unwrap()
    }

    #[test]
    fn a_symmetric_pattern_is_lent() {
        let a = matrix(3, &[(0, 0), (0, 2), (2, 0), (2, 2)]);
        let graph = Adjacency::of(&a);
        assert!(matches!(graph.cols, Cow::Borrowed(_)));
        assert_eq!((0..3).map(|i| graph.degree(i)).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn missing_mirrors_are_added() {
        let a = matrix(4, &[(0, 3), (1, 0), (2, 2), (3, 0), (3, 1)]);
        let graph = Adjacency::of(&a);
        let rows: Vec<_> = (0..4).map(|i| graph.neighbours(i).to_vec()).collect();
        assert_eq!(rows, [vec![1, 3], vec![0, 3], vec![2], vec![0, 1]]);
        assert_eq!((0..4).map(|i| graph.degree(i)).collect::<Vec<_>>(), [2, 2, 0, 2]);
    }

    #[test]
    fn no_nodes() {
        assert_eq!(Adjacency::of(&matrix(0, &[])).len(), 0);
    }

    proptest! {
        #[test]
        fn edges_are_those_of_either_triangle(places in prop::collection::vec((0u32..9, 0u32..9), 0..40)) {
            let a = matrix(9, &places);
            let symmetric = (0..9).all(|i| (0..9).all(|j| a.get(i, j).is_some() == a.get(j, i).is_some()));
            prop_assert_eq!(is_symmetric(&a), symmetric);
            let graph = Adjacency::of(&a);
            for i in 0..9 {
                let expected: Vec<u32> = (0..9u32)
                    .filter(|&j| a.get(i, j as usize).or(a.get(j as usize, i)).is_some())
                    .collect();
                prop_assert_eq!(graph.neighbours(i as u32), &expected[..]);
                prop_assert_eq!(graph.degree(i as u32) as usize, expected.iter().filter(|&&j| j as usize != i).count());
            }
        }
    }
}
