//! Sets of vertices of a graph no two of which are within two edges of each other, and to which nothing can be added (Bell, Dalton and
//! Olson 2012, doi 10.1137/110838844; Kelley and Rajamanickam 2022, doi 10.48550/arXiv.2204.02934).
//!
//! In each round, undecided vertices draw new priorities, and those that have the least within two edges belong to the set. All is
//! done in integers, so that the set is the same for any number of threads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::sparse::BLOCK;
use super::strength::Graph;

/// Rounds after which the vertices that are left are no members: some ten are enough, unless the graph is not symmetric.
const ROUNDS: u32 = 64;

/// State of a member, and the least that there is.
const IN: u32 = 0;

/// State of what can't be a member any more.
const OUT: u32 = u32::MAX;

/// Whether each vertex is in the set, of the graph that has only the vertices which take part; `all_neighbours` tells that all neighbours of
/// these do.
pub(super) fn independent(
    graph: &Graph,
    takes_part: &(impl Fn(usize) -> bool + Sync),
    all_neighbours: bool,
) -> Vec<bool> {
    let n = graph.len();
    let array = || (0..n).into_par_iter().with_min_len(BLOCK).map(|_| AtomicU32::new(OUT)).collect::<Vec<_>>();
    let (states, least) = (array(), array());
    let state = |i: usize| states[i].load(Relaxed);
    let neighbours = |i: usize| graph.of(i).filter(|&j| all_neighbours || takes_part(j));
    let mut undecided: Vec<u32> = (0..n as u32).into_par_iter().filter(|&i| takes_part(i as usize)).collect();
    // those that may yet see a change among their neighbours
    let mut open = undecided.clone();
    for round in 0..ROUNDS {
        if undecided.is_empty() {
            break;
        }
        each(&undecided, |i| states[i].store(priority(i as u32, round), Relaxed));
        each(&open, |i| {
            let least_here = neighbours(i).map(state).fold(state(i), u32::min);
            least[i].store(if least_here == IN { OUT } else { least_here }, Relaxed);
        });
        each(&undecided, |i| {
            let own = state(i);
            let mut is_least = true;
            for seen in std::iter::once(i).chain(neighbours(i)).map(|j| least[j].load(Relaxed)) {
                if seen == OUT {
                    states[i].store(OUT, Relaxed);
                    return;
                }
                is_least &= seen == own;
            }
            if is_least {
                states[i].store(IN, Relaxed);
            }
        });
        undecided = kept(&undecided, |i| !matches!(state(i), IN | OUT));
        open = kept(&open, |i| least[i].load(Relaxed) != OUT);
    }
    (0..n).into_par_iter().with_min_len(BLOCK).map(|i| state(i) == IN).collect()
}

fn each(list: &[u32], act: impl Fn(usize) + Sync + Send) {
    list.par_iter().with_min_len(BLOCK).for_each(|&i| act(i as usize));
}

fn kept(list: &[u32], is_kept: impl Fn(usize) -> bool + Sync + Send) -> Vec<u32> {
    list.par_iter().with_min_len(BLOCK).copied().filter(|&i| is_kept(i as usize)).collect()
}

/// A number for a vertex in a round, which no other has then, and which is no state.
fn priority(vertex: u32, round: u32) -> u32 {
    let mut x = vertex.wrapping_add(1).wrapping_add(round.wrapping_mul(0x9e37_79b9));
    loop {
        // each step can be undone: different numbers stay different
        x ^= x >> 16;
        x = x.wrapping_mul(0x7feb_352d);
        x ^= x >> 15;
        x = x.wrapping_mul(0x846c_a68b);
        x ^= x >> 16;
        if !matches!(x, IN | OUT) {
            return x;
        }
    }
}
