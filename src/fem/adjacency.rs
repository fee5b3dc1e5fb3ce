//! Which elements have a node.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

/// The places at which elements have each node, in the order of elements: place n of element k, of elements with N places each, is number k N + n.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Adjacency {
    first: Vec<usize>,
    places: Vec<u32>,
}

impl Adjacency {
    /// Of so many nodes, where `node` is the one at a place of an element, or one that does not count, which is beyond them. On all threads.
    ///
    /// # Panics
    /// If places are not counted in 32 bits.
    pub(super) fn new(
        nodes: usize,
        elements: usize,
        places_of_each: usize,
        node: impl Fn(usize, usize) -> usize + Sync,
    ) -> Self {
        assert!(u32::try_from(elements * places_of_each).is_ok(), "{elements} elements have too many places");
        let counts: Vec<AtomicU32> = (0..nodes).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        let each_place = |visit: &(dyn Fn(usize, usize) + Sync)| {
            (0..elements).into_par_iter().for_each(|element| {
                for place in 0..places_of_each {
                    let node = node(element, place);
                    if node < nodes {
                        visit(node, element * places_of_each + place);
                    }
                }
            });
        };
        each_place(&|node, _| {
            counts[node].fetch_add(1, Ordering::Relaxed);
        });
        let mut first = vec![0; nodes + 1];
        (0..nodes).for_each(|node| first[node + 1] = first[node] + counts[node].load(Ordering::Relaxed) as usize);
        let places: Vec<AtomicU32> = (0..first[nodes]).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        each_place(&|node, place| {
            let left = counts[node].fetch_sub(1, Ordering::Relaxed);
            places[first[node] + left as usize - 1].store(place as u32, Ordering::Relaxed);
        });
        let mut places: Vec<u32> = places.into_par_iter().map(AtomicU32::into_inner).collect();
        // as threads found them
        runs(&mut places, &first).into_par_iter().for_each(<[u32]>::sort_unstable);
        Self { first, places }
    }

    /// Those of a node.
    pub(super) fn of(&self, node: usize) -> &[u32] {
        &self.places[self.first[node]..self.first[node + 1]]
    }

    /// Of all nodes.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

/// The runs of a slice, run k from `first[k]` to `first[k + 1]`.
pub(super) fn runs<'s, T>(mut all: &'s mut [T], first: &[usize]) -> Vec<&'s mut [T]> {
    let mut runs = Vec::with_capacity(first.len());
    for ends in first.windows(2) {
        let (run, others) = all.split_at_mut(ends[1] - ends[0]);
        runs.push(run);
        all = others;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_by_hand() {
        // two triangles 0 1 2 and 2 1 3, of which node 3 does not count
        let nodes = [[0, 1, 2], [2, 1, 3]];
        let found = Adjacency::new(3, 2, 3, |element, place| nodes[element][place]);
        let expected: [&[u32]; 3] = [&[0], &[1, 4], &[2, 3]];
        assert!((0..3).all(|node| found.of(node) == expected[node]), "{found:?}");
        assert_eq!(found.len(), 5);
        assert_eq!(Adjacency::new(2, 0, 3, |_, _| 0).of(1), [0_u32; 0]);
    }

    #[test]
    fn many_places_are_in_order() {
        let node = |element: usize, place: usize| (element * 7 + place * 13) % 101;
        let found = Adjacency::new(101, 5000, 4, node);
        for of in 0..101 {
            let expected = (0..20_000_u32).filter(|&k| node(k as usize / 4, k as usize % 4) == of);
            assert!(found.of(of).iter().copied().eq(expected), "{of}");
        }
    }
}
