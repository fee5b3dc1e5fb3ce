//! Elements in blocks for work-groups: see `cl/elements.cl`.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::super::mesh::Mesh;
use super::nodes::RankNodes;
use crate::kernels::elements::HEAD;

/// Elements that a thread cuts into blocks at a time.
const PIECE: usize = 1 << 14;

/// The lists of all blocks, those without nodes of a halo first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BlockLists {
    /// Elements of a block at the most.
    pub(super) size: usize,
    /// Blocks without nodes of a halo.
    pub(super) interior: usize,
    /// The elements of each block, one behind the other: `size` places each, with `u32::MAX` in those that are left.
    pub(super) elements: Vec<u32>,
    pub(super) heads: Vec<u32>,
    /// Numbers on the rank.
    pub(super) nodes: Vec<u32>,
    pub(super) ends: Vec<u16>,
    pub(super) lists: Vec<u16>,
    pub(super) corners: Vec<u16>,
    pub(super) slots: Vec<u32>,
    /// Nodes that are summed behind all blocks,
    pub(super) shared: Vec<u32>,
    /// and where the sums of each end.
    pub(super) sum_ends: Vec<u32>,
}

/// A block before it is known which of its nodes others have.
struct Block {
    elements: Range<usize>,
    /// Numbers on the rank, sorted.
    nodes: Vec<u32>,
}

impl BlockLists {
    /// Cuts the rank's elements into runs of at most `size`, with at most `most` nodes, `size` × nodes of an element ≤ 2¹⁶. Nodes that are
    /// `apart` are summed behind all blocks in any case. 30 to 60 bytes an element.
    pub(super) fn new(
        mesh: &Mesh,
        rank: &RankNodes,
        [size, most]: [usize; 2],
        apart: impl Fn(u32) -> bool + Sync,
    ) -> Self {
        let n = mesh.cell().nodes();
        let own = rank.own.len() as u32;
        let numbers = |k: usize| mesh.element(rank.element(k)).iter().map(|&node| rank.number(node));
        let pieces: Vec<Range<usize>> =
            (0..rank.len(mesh)).step_by(PIECE).map(|first| first..rank.len(mesh).min(first + PIECE)).collect();
        let cut = |piece: Range<usize>| cut(piece, [size, most], |k| numbers(k).collect());
        let mut blocks: Vec<Block> = pieces.into_par_iter().flat_map_iter(cut).collect();

        let counts: Vec<AtomicU32> = (0..own).map(|_| AtomicU32::new(0)).collect();
        blocks.par_iter().for_each(|block| {
            block.nodes.iter().filter(|&&node| node < own).for_each(|&node| {
                counts[node as usize].fetch_add(1, Ordering::Relaxed);
            });
        });
        let is_shared = |node: u32| counts[node as usize].load(Ordering::Relaxed) > 1 || apart(node);
        let kind = |node: u32| if node >= own { 2 } else { u32::from(is_shared(node)) };
        blocks.par_iter_mut().for_each(|block| block.nodes.sort_by_key(|&node| (kind(node), node)));
        let has_halo = |block: &Block| block.nodes.last().is_some_and(|&node| node >= own);
        blocks.sort_by_key(has_halo);

        let mut lists =
            Self { size, interior: blocks.iter().filter(|block| !has_halo(block)).count(), ..Self::default() };
        lists.shared = (0..own).filter(|&node| is_shared(node)).collect();
        let mut of_shared = vec![u32::MAX; own as usize];
        let mut next: Vec<u32> = Vec::with_capacity(lists.shared.len());
        let mut sums = 0;
        for (place, &node) in lists.shared.iter().enumerate() {
            of_shared[node as usize] = place as u32;
            next.push(sums);
            sums += counts[node as usize].load(Ordering::Relaxed);
            lists.sum_ends.push(sums);
        }
        for block in &blocks {
            let count = |up_to: u32| block.nodes.partition_point(|&node| kind(node) < up_to) as u32;
            let (inside, owned) = (count(1), count(2));
            let elements = block.elements.len() as u32;
            let head = [lists.nodes.len() as u32, inside, owned, block.nodes.len() as u32, elements];
            lists.heads.extend(head.into_iter().chain([lists.slots.len() as u32]));
            lists.nodes.extend_from_slice(&block.nodes);
            for &node in &block.nodes[inside as usize..owned as usize] {
                let next = &mut next[of_shared[node as usize] as usize];
                lists.slots.push(*next);
                *next += 1;
            }
        }
        debug_assert_eq!(lists.heads.len(), HEAD * blocks.len());

        lists.elements = vec![u32::MAX; blocks.len() * size];
        lists.ends = vec![0; lists.nodes.len()];
        lists.lists = vec![0; blocks.len() * size * n];
        lists.corners = vec![0; blocks.len() * size * n];
        let mut ends = lists.ends.as_mut_slice();
        let mut of_blocks = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let (own, rest) = ends.split_at_mut(block.nodes.len());
            ends = rest;
            of_blocks.push(own);
        }
        let parts = lists.elements.par_chunks_mut(size).zip(lists.lists.par_chunks_mut(size * n));
        let parts = parts.zip(lists.corners.par_chunks_mut(size * n)).zip(of_blocks).zip(&blocks);
        parts.for_each(|((((elements, list), corners), ends), block)| {
            let key = |node: u32| (kind(node), node);
            let place_of = |node: u32| {
                let (Ok(k) | Err(k)) = block.nodes.binary_search_by_key(&key(node), |&node| key(node));
                k
            };
            let mut products: Vec<Vec<u16>> = vec![Vec::new(); block.nodes.len()];
            for (e, k) in block.elements.clone().enumerate() {
                elements[e] = k as u32;
                for (i, node) in numbers(k).enumerate() {
                    let place = place_of(node);
                    corners[i * size + e] = place as u16;
                    if node < own {
                        products[place].push((i * size + e) as u16);
                    }
                }
            }
            let mut end = 0;
            for (products, to) in products.iter().zip(ends) {
                list[end..end + products.len()].copy_from_slice(products);
                end += products.len();
                *to = end as u16;
            }
        });
        lists
    }
}

/// Runs of a piece's elements, each with as many as there is room for.
fn cut(piece: Range<usize>, [size, most]: [usize; 2], nodes_of: impl Fn(usize) -> Vec<u32>) -> Vec<Block> {
    let (mut blocks, mut first) = (Vec::new(), piece.start);
    while first < piece.end {
        let mut count = size.min(piece.end - first);
        let nodes = loop {
            let mut nodes: Vec<u32> = (first..first + count).flat_map(&nodes_of).collect();
            nodes.sort_unstable();
            nodes.dedup();
            if nodes.len() <= most || count == 1 {
                break nodes;
            }
            count = count.div_ceil(2);
        };
        blocks.push(Block { elements: first..first + count, nodes });
        first += count;
    }
    blocks
}
