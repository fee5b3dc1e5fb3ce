//! Aggregates: sets of rows that strong couplings connect, each of which becomes a row of the next level.

use rayon::prelude::*;

use super::independent::independent;
use super::sparse::{BLOCK, Sparse};
use super::strength::{Graph, Strength, par_rows};

/// Of a row that is in no aggregate.
pub(super) const NONE: u32 = u32::MAX;

/// Of a row that has none yet.
const FREE: u32 = u32::MAX - 1;

/// The most aggregates that a row chooses from.
const MOST_CHOICES: usize = 64;

/// The fewest rows of an aggregate that is made of what the first ones have left.
const FEWEST: usize = 5;

/// The aggregate of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aggregates {
    /// From 0 on, in the order of their roots, or [`NONE`].
    pub(super) of: Vec<u32>,
    pub(super) count: usize,
}

impl Aggregates {
    /// Makes them of a matrix.
    ///
    /// Roots are an independent set, and take their strong neighbours; so do roots among the rows that are left, where that gives at
    /// least five; each other row joins a neighbour's aggregate. Rows without strong couplings have none. The same for any number of threads.
    pub(super) fn of(a: &Sparse, strength: &Strength, graph: &Graph) -> Self {
        let is_left_out = |i: usize| graph.of(i).next().is_none();
        // the root of the aggregate of each row
        let mut roots = par_rows(graph.len(), |i| if is_left_out(i) { NONE } else { FREE });
        for fewest in [1, FEWEST] {
            let is_free = |i: usize| roots[i] == FREE;
            let mut is_root = independent(graph, &is_free, fewest == 1);
            if fewest > 1 {
                let size = |i: usize| 1 + graph.of(i).filter(|&j| is_free(j)).count();
                is_root = par_rows(graph.len(), |i| is_root[i] && size(i) >= fewest);
            }
            let of_row = |i: usize| match roots[i] {
                FREE if is_root[i] => i as u32,
                FREE => graph.of(i).find(|&j| is_root[j]).map_or(FREE, |j| j as u32),
                known => known,
            };
            roots = par_rows(graph.len(), of_row);
        }
        let sizes = sizes(&roots);
        let joined = par_rows(graph.len(), |i| match roots[i] {
            FREE => strongest(a, strength, &roots, &sizes, i).unwrap_or(i as u32),
            known => known,
        });
        numbered(&joined)
    }
}

/// Rows with each root.
fn sizes(roots: &[u32]) -> Vec<u32> {
    let mut sizes = vec![0; roots.len()];
    roots.iter().filter(|&&root| root < FREE).for_each(|&root| sizes[root as usize] += 1);
    sizes
}

/// The root of the aggregate that a row is coupled to most strongly: the smaller one of equals, or the first.
fn strongest(a: &Sparse, strength: &Strength, roots: &[u32], sizes: &[u32], i: usize) -> Option<u32> {
    let mut sums: Vec<(u32, f32)> = Vec::new();
    for (j, v) in a.rows().row(i).filter(|&(j, v)| j < roots.len() && strength.is_strong(i, j, v) && roots[j] < FREE) {
        match sums.iter().position(|(root, _)| *root == roots[j]) {
            Some(k) => sums[k].1 += v.abs(),
            None if sums.len() < MOST_CHOICES => sums.push((roots[j], v.abs())),
            None => (),
        }
    }
    let size = |root: u32| sizes[root as usize];
    sums.into_iter()
        .reduce(|best, one| {
            let order = one.1.total_cmp(&best.1).then(size(best.0).cmp(&size(one.0))).then(best.0.cmp(&one.0));
            if order.is_gt() { one } else { best }
        })
        .map(|(root, _)| root)
}

/// Numbers the aggregates in the order of their roots.
fn numbered(roots: &[u32]) -> Aggregates {
    let mut count = 0;
    let numbers: Vec<u32> = (0u32..)
        .zip(roots)
        .map(|(i, &root)| {
            let number = count;
            count += u32::from(root == i);
            number
        })
        .collect();
    let number = |&root: &u32| if root == NONE { NONE } else { numbers[root as usize] };
    Aggregates { of: roots.par_iter().with_min_len(BLOCK).map(number).collect(), count: count as usize }
}
