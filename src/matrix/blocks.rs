//! Matrices of full blocks: systems with several unknowns at each node of a mesh.

use rayon::prelude::*;

use super::Csr;
use super::assemble::assemble;
use crate::error::Result;

/// The sizes of blocks that are looked for.
pub(crate) const SIZES: [usize; 5] = [6, 5, 4, 3, 2];

/// Nodes that a thread takes at least.
const FEW: usize = 1 << 10;

/// How many unknowns a node has: the largest size from 2 to 6 of which all of a square matrix is made of full blocks, else 1. O(nnz) for
/// those that are; a few rows tell of most others.
pub(crate) fn unknowns(a: &Csr) -> usize {
    SIZES.into_iter().find(|&size| is_full(a, size)).unwrap_or(1)
}

/// Whether the entries are those of full blocks of that size, stored zeros among them.
pub(crate) fn is_full(a: &Csr, size: usize) -> bool {
    let n = a.n_rows();
    let is_node = |node: usize| {
        let columns = a.row(node * size).0;
        let of_blocks = columns.chunks(size).all(|block| {
            block.len() == size
                && (block[0] as usize).is_multiple_of(size)
                && block.windows(2).all(|two| two[0].checked_add(1) == Some(two[1]))
        });
        of_blocks && (1..size).all(|k| a.row(node * size + k).0 == columns)
    };
    n > 0
        && n == a.n_cols()
        && n.is_multiple_of(size)
        && is_node(n / size / 2)
        && (0..n / size).into_par_iter().with_min_len(FEW).all(is_node)
}

/// The same matrix with zeros where blocks are not full.
///
/// # Errors
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
pub(crate) fn filled(a: &Csr, size: usize) -> Result<Csr> {
    let nodes_of = |node: usize| {
        let of_rows = (node * size..(node + 1) * size).flat_map(|i| a.row(i).0);
        let mut nodes: Vec<usize> = of_rows.map(|&j| j as usize / size).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    assemble(
        a.n_rows(),
        |i| size * nodes_of(i / size).len(),
        |i, row| {
            for j in nodes_of(i / size).into_iter().flat_map(|node| node * size..(node + 1) * size) {
                row.push(j, a.get(i, j).unwrap_or_default());
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::gallery::Spec;

    fn system(spec: &str) -> Csr {
        spec.parse::<Spec>().unwrap().build().unwrap()
    }

    #[test]
    fn unknowns_of_systems() {
        for (spec, size) in [("elasticity3d:4", 3), ("poisson3d:6", 1), ("tridiagonal:12", 1), ("tetrahedra:4", 3)] {
            assert_eq!(unknowns(&system(spec)), size, "{spec}");
        }
        let full = |n: usize| {
            Csr::new(
                n,
                n,
                (0..=n).map(|i| i * n).collect(),
                (0..n as u32).cycle().take(n * n).collect(),
                vec![1.0; n * n],
            )
            .unwrap()
        };
        for (n, size) in [(1, 1), (2, 2), (4, 4), (7, 1), (12, 6)] {
            assert_eq!(unknowns(&full(n)), size, "{n}");
        }
        assert_eq!(unknowns(&Csr::new(0, 0, vec![0], vec![], vec![]).unwrap()), 1);
    }

    #[test]
    fn what_is_missing_is_filled() {
        // [1 2; . 3] and a block that has one entry
        let a =
            Csr::new(4, 4, vec![0, 2, 4, 5, 6], vec![0, 1, 1, 2, 2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert!(!is_full(&a, 2));
        let b = filled(&a, 2).unwrap();
        assert!(is_full(&b, 2));
        assert_eq!((b.row(0).0, b.row(3).0), (&[0, 1, 2, 3][..], &[2, 3][..]));
        assert_eq!((b.row(1).1, b.row(3).1), (&[0.0, 3.0, 4.0, 0.0][..], &[0.0, 6.0][..]));
    }

    proptest! {
        #[test]
        fn filled_ones_are_full(size in 1usize..5, nodes in 1usize..8, entries in prop::collection::vec((0u32..40, 0u32..40), 1..40)) {
            let n = size * nodes;
            let (rows, columns): (Vec<u32>, Vec<u32>) = entries.into_iter().map(|(i, j)| (i % n as u32, j % n as u32)).unzip();
            let a = Csr::from_triplets(n, n, &rows, &columns, &vec![1.0; rows.len()]).unwrap();
            let b = filled(&a, size).unwrap();
            prop_assert!(is_full(&b, size));
            for i in 0..n {
                for j in 0..n {
                    prop_assert_eq!(a.get(i, j).unwrap_or_default(), b.get(i, j).unwrap_or_default());
                }
            }
        }
    }
}
