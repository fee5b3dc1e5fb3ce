//! Reverse Cuthill–McKee.

use super::adjacency::Adjacency;
use super::permutation::Permutation;
use crate::error::{Error, Result};
use crate::matrix::{Csr, Scalar};

/// Reverse Cuthill–McKee: an order in which the entries of P A Pᵀ lie near the diagonal.
///
/// Works on the pattern of A + Aᵀ; the values don't matter. Nodes are numbered by a breadth-first search, neighbours by
/// rising degree (and then number), and the numbers reversed, which leaves the bandwidth and lessens the profile. Each
/// connected component starts from a pseudo-peripheral node, one from which another is almost as far away as any two
/// are; components follow each other by their first rows, reversed. Equal matrices give equal orders.
///
/// O(nnz log(largest degree)) and 13 bytes a row; if the pattern isn't symmetric, another 16 bytes an entry.
///
/// E. Cuthill, J. McKee (1969), Reducing the bandwidth of sparse symmetric matrices, doi
/// [10.1145/800195.805928](https://doi.org/10.1145/800195.805928). J. A. George, J. W. H. Liu (1979), An implementation
/// of a pseudoperipheral node finder, doi [10.1145/355841.355845](https://doi.org/10.1145/355841.355845).
///
/// ```
/// use declive::matrix::reorder::{permuted, rcm};
/// use declive::matrix::{band::Band, gallery};
///
/// # fn main() -> declive::Result<()> {
/// let a = gallery::poisson2d([100, 10])?;
/// let p = rcm(&a)?;
/// assert_eq!(Band::of(&a).bandwidth(), 100);
/// assert!(Band::of(&permuted(&a, &p)?).bandwidth() <= 11);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::NotSquare`].
pub fn rcm<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    if a.n_rows() != a.n_cols() {
        return Err(Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() });
    }
    let graph = Adjacency::of(a);
    let mut search = Search { graph: &graph, seen: vec![false; graph.len()] };
    let mut order = Vec::with_capacity(graph.len());
    let mut levels = Vec::new();
    for first in 0..graph.len() as u32 {
        if !search.seen[first as usize] {
            let start = search.pseudo_peripheral(first, &mut levels);
            search.cuthill_mckee(start, &mut order);
        }
    }
    order.reverse();
    Ok(Permutation::of_order(order))
}

/// Breadth-first searches.
struct Search<'a> {
    graph: &'a Adjacency<'a>,
    /// Nodes that are numbered, or met by the search that goes on.
    seen: Vec<bool>,
}

/// What a level structure looks like: the nodes by their distance from the root.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// The largest distance.
    eccentricity: usize,
    /// Nodes at the most frequent distance.
    width: usize,
    /// Where the nodes at the largest distance begin.
    last: usize,
}

impl Search<'_> {
    /// A node of the component of `first` that is about as far from another as any can be. `nodes` is room to work in.
    ///
    /// From a root to a node of least degree among the farthest, as long as that one is farther from its farthest. Of
    /// the last two, whose eccentricities are equal, the one with the narrower level structure.
    fn pseudo_peripheral(&mut self, first: u32, nodes: &mut Vec<u32>) -> u32 {
        let mut root = first;
        let mut shape = self.levels(root, nodes);
        loop {
            let farthest = nodes[shape.last..].iter().copied().min_by_key(|&i| (self.graph.degree(i), i));
            let Some(other) = farthest.filter(|_| shape.eccentricity > 0) else { return root };
            let next = self.levels(other, nodes);
            if next.eccentricity <= shape.eccentricity {
                return if next.width < shape.width { other } else { root };
            }
            (root, shape) = (other, next);
        }
    }

    /// Fills `nodes` with the component of `root`, by distance from it.
    fn levels(&mut self, root: u32, nodes: &mut Vec<u32>) -> Shape {
        nodes.clear();
        nodes.push(root);
        self.seen[root as usize] = true;
        let mut shape = Shape { eccentricity: 0, width: 1, last: 0 };
        loop {
            let end = nodes.len();
            for at in shape.last..end {
                for &j in self.graph.neighbours(nodes[at]) {
                    if !std::mem::replace(&mut self.seen[j as usize], true) {
                        nodes.push(j);
                    }
                }
            }
            if nodes.len() == end {
                break;
            }
            let width = shape.width.max(nodes.len() - end);
            shape = Shape { eccentricity: shape.eccentricity + 1, width, last: end };
        }
        for &i in nodes.iter() {
            self.seen[i as usize] = false;
        }
        shape
    }

    /// Appends the component of `start` to `order`, in the order of Cuthill and McKee.
    fn cuthill_mckee(&mut self, start: u32, order: &mut Vec<u32>) {
        let mut at = order.len();
        order.push(start);
        self.seen[start as usize] = true;
        while at < order.len() {
            let found = order.len();
            for &j in self.graph.neighbours(order[at]) {
                if !std::mem::replace(&mut self.seen[j as usize], true) {
                    order.push(j);
                }
            }
            order[found..].sort_unstable_by_key(|&j| (self.graph.degree(j), j));
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::permuted;
    use super::*;
    use crate::matrix::band::Band;
    use crate::matrix::{Complex64, gallery};

    fn matrix(n: usize, edges: &[(u32, u32)]) -> Csr {
        let (mut rows, mut cols): (Vec<u32>, Vec<u32>) = (0..n as u32).map(|i| (i, i)).unzip();
        for &(i, j) in edges {
            rows.extend([i, j]);
            cols.extend([j, i]);
        }
        Csr::from_triplets(n, n, &rows, &cols, &vec![1.0; rows.len()]).unwrap()
    }

    fn after(a: &Csr) -> usize {
        Band::reordered(a, &rcm(a).unwrap()).bandwidth()
    }

    #[test]
    fn a_path_becomes_tridiagonal() {
        // 3 – 0 – 4 – 1 – 2
        let a = matrix(5, &[(3, 0), (0, 4), (4, 1), (1, 2)]);
        let order = rcm(&a).unwrap();
        // 2 is farthest from 0, and 3 from 2, which is as good a start
        assert_eq!(order.order(), [3, 0, 4, 1, 2]);
        assert_eq!((Band::of(&a).bandwidth(), after(&a)), (4, 1));
    }

    #[test]
    fn neighbours_by_rising_degree() {
        // 0 in the middle of 1, 2 and the leaf 3; 1 has two leaves more, 2 has one
        let a = matrix(7, &[(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6)]);
        let p = rcm(&a).unwrap();
        let mut forward = p.order().to_vec();
        forward.reverse();
        // from the leaf 4 on: its neighbour 1, of whose others the leaf 5 comes first, and of those of 0 the leaf 3
        assert_eq!(forward, [4, 1, 5, 0, 3, 2, 6]);
    }

    #[test]
    fn components_and_isolated_nodes() {
        let a = matrix(6, &[(0, 5), (1, 3)]);
        let mut forward = rcm(&a).unwrap().order().to_vec();
        forward.reverse();
        assert_eq!(forward, [0, 5, 1, 3, 2, 4]);
        assert_eq!(after(&a), 1);
        let nothing = Csr::new(3, 3, vec![0; 4], vec![], Vec::<f64>::new()).unwrap();
        assert_eq!(rcm(&nothing).unwrap().order(), [2, 1, 0]);
        assert!(rcm(&matrix(0, &[])).unwrap().is_empty());
        assert_eq!(rcm(&matrix(1, &[])).unwrap().order(), [0]);
    }

    #[test]
    fn grids_get_the_bandwidth_of_their_short_side() {
        for n in [[5, 40], [40, 5], [30, 30]] {
            let (found, short) = (after(&gallery::poisson2d(n).unwrap()), n[0].min(n[1]));
            assert!((short..=short + 1).contains(&found), "{n:?}: {found}");
        }
    }

    #[test]
    fn a_shuffled_grid_is_found_again() {
        let a = gallery::poisson2d([60, 12]).unwrap();
        let shuffled = Permutation::new((0..720).map(|k| (k * 257 + 11) % 720).collect()).unwrap();
        let b = permuted(&a, &shuffled).unwrap();
        assert!(Band::of(&b).bandwidth() > 400);
        assert!(after(&b) <= 13, "{}", after(&b));
    }

    #[test]
    fn unsymmetric_patterns_and_complex_values() {
        // an arrow: the last row is full, the last column is not
        let i = Complex64::new(0.0, 1.0);
        let a = Csr::from_triplets(4, 4, &[0, 1, 2, 3, 3], &[0, 1, 2, 0, 1], &[i; 5]).unwrap();
        let mut forward = rcm(&a).unwrap().order().to_vec();
        forward.reverse();
        assert_eq!(forward, [0, 3, 1, 2]);
    }

    #[test]
    fn rectangles_are_refused() {
        let wide = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        assert!(matches!(rcm(&wide), Err(Error::NotSquare { rows: 1, cols: 2 })));
    }

    proptest! {
        #[test]
        fn any_pattern_gives_a_permutation(places in prop::collection::vec((0u32..30, 0u32..30), 0..90)) {
            let (rows, cols): (Vec<u32>, Vec<u32>) = places.iter().copied().unzip();
            let a = Csr::from_triplets(30, 30, &rows, &cols, &vec![1.0; places.len()]).unwrap();
            let p = rcm(&a).unwrap();
            prop_assert!(Permutation::new(p.order().to_vec()).is_ok() && p.len() == 30);
            let places = p.inverse();
            let band = Band::reordered(&a, &p);
            let by_hand = places_apart(&a, places.order());
            prop_assert_eq!(band.bandwidth(), by_hand);
        }
    }

    fn places_apart(a: &Csr, places: &[u32]) -> usize {
        let apart = |i: usize| a.row(i).0.iter().map(move |&j| places[i].abs_diff(places[j as usize]) as usize);
        (0..a.n_rows()).flat_map(apart).max().unwrap_or(0)
    }
}
