//! Reverse Cuthill–McKee.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::adjacency::Adjacency;
use super::permutation::Permutation;
use crate::error::{Error, Result};
use crate::matrix::{Csr, Scalar};

/// Reverse Cuthill–McKee: an order in which the entries of P A Pᵀ lie near the diagonal.
///
/// Works on the pattern of A + Aᵀ; the values don't matter. Nodes are numbered by a breadth-first search, neighbours by
/// rising degree (and then number), and the numbers reversed, which leaves the bandwidth and lessens the profile. Each
/// connected component starts from a pseudo-peripheral node, one from which another is almost as far away as any two
/// are; components follow each other by their first rows, reversed. Equal matrices give equal orders, whatever the
/// number of threads, which share the larger levels of the searches.
///
/// O(nnz + n log(largest level)) and 16 bytes a row; if the pattern isn't symmetric, another 16 bytes an entry.
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
    Ok(order_of(&Adjacency::of(a)))
}

/// The same for a matrix whose pattern is symmetric, which is not looked at: another pattern gives some order.
pub(crate) fn rcm_of_symmetric(a: &Csr) -> Permutation {
    order_of(&Adjacency::of_symmetric(a))
}

fn order_of(graph: &Adjacency<'_>) -> Permutation {
    let met = (0..graph.len()).into_par_iter().map(|_| AtomicU32::new(FREE)).collect();
    let search = Search { graph, met };
    let mut order = Vec::with_capacity(graph.len());
    let (mut levels, mut room) = (Levels::default(), Levels::default());
    for first in 0..graph.len() as u32 {
        if !search.is_free(first) {
            continue;
        }
        search.pseudo_peripheral(first, &mut levels, &mut room);
        search.cuthill_mckee(&levels, &mut order);
        // what is far from it need not lead back, if the pattern is not symmetric after all
        if search.is_free(first) {
            search.search(first, &mut levels);
            search.cuthill_mckee(&levels, &mut order);
        }
    }
    order.reverse();
    Permutation::of_order(order)
}

/// Of a node that no search has met.
const FREE: u32 = u32::MAX;

/// Nodes of a level from which on threads share it: with some ten neighbours each, several times what it takes to wake
/// them.
const SHARED: usize = 512;

/// Nodes that a thread takes at a time.
const PIECE: usize = 128;

/// A level structure: the nodes of a component by their distance from a root.
#[derive(Debug, Default)]
struct Levels {
    nodes: Vec<u32>,
    /// Where the nodes of each distance begin.
    starts: Vec<usize>,
}

impl Levels {
    /// The largest distance.
    fn eccentricity(&self) -> usize {
        self.starts.len() - 1
    }

    /// Nodes at the most frequent distance.
    fn width(&self) -> usize {
        self.iter().map(<[u32]>::len).max().unwrap_or(0)
    }

    /// Nodes at the largest distance.
    fn last(&self) -> &[u32] {
        &self.nodes[self.starts[self.eccentricity()]..]
    }

    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let ends = self.starts.iter().copied().skip(1).chain([self.nodes.len()]);
        self.starts.iter().zip(ends).map(|(&start, end)| &self.nodes[start..end])
    }
}

/// Breadth-first searches.
///
/// What they wait for are single numbers from all over `met` and the rows. So loops over neighbours have no branches
/// that depend on these, which would be guessed wrongly all the time, and numbers of many rows are under way at once.
struct Search<'a> {
    graph: &'a Adjacency<'a>,
    /// Of numbered nodes their number; of others that the search that goes on has met, anything but [`FREE`].
    met: Vec<AtomicU32>,
}

impl Search<'_> {
    fn is_free(&self, node: u32) -> bool {
        self.met[node as usize].load(Relaxed) == FREE
    }

    /// The level structure of a node in the component of `first` that is about as far from another as any can be.
    ///
    /// From a root to a node of least degree among the farthest, as long as that one is farther from its farthest. Of
    /// the last two, whose eccentricities are equal, the one with the narrower level structure.
    fn pseudo_peripheral(&self, first: u32, levels: &mut Levels, other: &mut Levels) {
        self.search(first, levels);
        while levels.eccentricity() > 0 {
            let farthest = levels.last().iter().copied().min_by_key(|&i| (self.graph.degree(i), i));
            let Some(root) = farthest else { return };
            self.search(root, other);
            let is_last = other.eccentricity() <= levels.eccentricity();
            if !is_last || other.width() < levels.width() {
                std::mem::swap(levels, other);
            }
            if is_last {
                return;
            }
        }
    }

    /// The level structure of `root`; nodes of one distance in any order.
    fn search(&self, root: u32, levels: &mut Levels) {
        let Levels { nodes, starts } = levels;
        nodes.clear();
        starts.clear();
        nodes.push(root);
        self.met[root as usize].store(0, Relaxed);
        let mut begin = 0;
        while begin < nodes.len() {
            starts.push(begin);
            let level = &nodes[begin..];
            begin = nodes.len();
            if level.len() < SHARED {
                let found = self.reached(level, 0);
                nodes.extend(found);
                continue;
            }
            let pieces = level.par_chunks(PIECE).enumerate();
            let found: Vec<Vec<u32>> = pieces.map(|(k, piece)| self.reached(piece, k as u32)).collect();
            // of the threads that found a node at the same time, the last to say so keeps it
            let is_own = |k: usize, j: u32| self.met[j as usize].load(Relaxed) == k as u32;
            for (k, found) in found.into_iter().enumerate() {
                nodes.extend(found.into_iter().filter(|&j| is_own(k, j)));
            }
        }
        nodes.par_iter().with_min_len(1 << 14).for_each(|&i| self.met[i as usize].store(FREE, Relaxed));
    }

    /// The free neighbours of some nodes, which are marked by `by`.
    fn reached(&self, nodes: &[u32], by: u32) -> Vec<u32> {
        let entries: usize = nodes.iter().map(|&i| self.graph.neighbours(i).len()).sum();
        let mut found = vec![0; entries + 1];
        let mut count = 0;
        for &i in nodes {
            for &j in self.graph.neighbours(i) {
                let met = &self.met[j as usize];
                let before = met.load(Relaxed);
                let is_free = before == FREE;
                met.store(if is_free { by } else { before }, Relaxed);
                found[count] = j;
                count += usize::from(is_free);
            }
        }
        found.truncate(count);
        found
    }

    /// Appends the nodes of `levels` to `order`, in the order of Cuthill and McKee: by the first of their neighbours to
    /// be numbered, which is one of the level before, then by degree.
    fn cuthill_mckee(&self, levels: &Levels, order: &mut Vec<u32>) {
        let key = |&i: &u32| {
            let numbers = self.graph.neighbours(i).iter().map(|&j| self.met[j as usize].load(Relaxed));
            (numbers.min().unwrap_or(FREE), self.graph.degree(i), i)
        };
        for level in levels.iter() {
            let keys = if level.len() < SHARED {
                let mut keys: Vec<(u32, u32, u32)> = level.iter().map(key).collect();
                keys.sort_unstable();
                keys
            } else {
                let mut keys: Vec<(u32, u32, u32)> = level.par_iter().with_min_len(PIECE).map(key).collect();
                keys.par_sort_unstable();
                keys
            };
            for (_, _, i) in keys {
                self.met[i as usize].store(order.len() as u32, Relaxed);
                order.push(i);
            }
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

    /// The order by its definition, one node after the other.
    fn plain(a: &Csr) -> Vec<u32> {
        let neighbours = |i: u32| a.row(i as usize).0.iter().copied().filter(move |&j| j != i);
        let degree = |i: u32| neighbours(i).count();
        let levels = |root: u32| {
            let (mut seen, mut levels) = (std::collections::BTreeSet::from([root]), vec![vec![root]]);
            loop {
                let last = levels.last().unwrap().clone();
                let next: Vec<u32> = last.into_iter().flat_map(neighbours).filter(|&j| seen.insert(j)).collect();
                if next.is_empty() {
                    return levels;
                }
                levels.push(next);
            }
        };
        let width = |levels: &[Vec<u32>]| levels.iter().map(Vec::len).max();
        let mut order: Vec<u32> = Vec::new();
        let mut numbered = vec![false; a.n_rows()];
        for first in 0..a.n_rows() as u32 {
            if numbered[first as usize] {
                continue;
            }
            let mut root = first;
            let mut shape = levels(root);
            while shape.len() > 1 {
                let other = shape.last().unwrap().iter().copied().min_by_key(|&i| (degree(i), i)).unwrap();
                let next = levels(other);
                if next.len() <= shape.len() {
                    root = if width(&next) < width(&shape) { other } else { root };
                    break;
                }
                (root, shape) = (other, next);
            }
            let mut at = order.len();
            numbered[root as usize] = true;
            order.push(root);
            while at < order.len() {
                let mut next: Vec<u32> = neighbours(order[at]).filter(|&j| !numbered[j as usize]).collect();
                next.sort_by_key(|&j| (degree(j), j));
                next.iter().for_each(|&j| numbered[j as usize] = true);
                order.extend(next);
                at += 1;
            }
        }
        order.reverse();
        order
    }

    #[test]
    fn the_same_for_any_number_of_threads() {
        // levels far above and below what threads share, long rows, several components
        let two_grids = {
            let (rows, cols, values) = gallery::poisson3d([40, 30, 25]).unwrap().to_triplets();
            let twice = |v: Vec<u32>| v.iter().flat_map(|&k| [k, 30_000 + k]).collect::<Vec<_>>();
            let values: Vec<f64> = values.iter().flat_map(|&v| [v, v]).collect();
            Csr::from_triplets(60_000, 60_000, &twice(rows), &twice(cols), &values).unwrap()
        };
        let scrambled = permuted(&two_grids, &gallery::random_permutation(60_000, 5)).unwrap();
        let random = gallery::random_spd(20_000, 6, 3).unwrap();
        let graph = gallery::graph_laplacian(9_000, 4, 3, 1e-2, 1).unwrap();
        for a in [&two_grids, &scrambled, &random, &graph] {
            let expected = plain(a);
            for threads in [1, 2, 7] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (one, other) = pool.install(|| (rcm(a).unwrap(), rcm_of_symmetric(a)));
                assert!(one.order() == expected && other == one, "{threads} threads");
            }
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
            let unchecked = rcm_of_symmetric(&a);
            prop_assert!(Permutation::new(unchecked.order().to_vec()).is_ok() && unchecked.len() == 30);
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
