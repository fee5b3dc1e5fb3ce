//! Elements in blocks for work-groups: see `cl/elements.cl`.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::super::mesh::Mesh;
use super::nodes::RankNodes;
use crate::kernels::elements::HEAD;

/// Elements that a thread cuts into blocks at a time.
const PIECE: usize = 1 << 14;

/// How elements are cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The most elements of a block, times the nodes of an element at most 2¹⁶,
    pub(super) size: usize,
    /// and its most nodes.
    pub(super) most_nodes: usize,
    /// How many of an element's nodes, the first, have coordinates of their own in local memory.
    pub(super) shaping: usize,
}

/// The lists of all blocks, those without nodes of a halo first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BlockLists {
    /// Elements of a block at the most.
    pub(super) size: usize,
    /// Blocks without nodes of a halo.
    pub(super) interior: usize,
    /// The most nodes of a block, and the most that shape its elements.
    pub(super) most: [usize; 2],
    /// The elements of each block, one behind the other: `size` places each, with `u32::MAX` in those that are left.
    pub(super) elements: Vec<u32>,
    pub(super) heads: Vec<u32>,
    /// Numbers on the rank: of nodes, and of those that shape elements.
    pub(super) nodes: Vec<u32>,
    pub(super) shapes: Vec<u32>,
    /// Where products of nodes begin in `lists`, those that come first for each of them, those that come second, and so on.
    pub(super) diagonals: Vec<u16>,
    pub(super) lists: Vec<u16>,
    pub(super) corners: Vec<u16>,
    pub(super) shape_corners: Vec<u16>,
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

/// The lists of a block.
struct Lists {
    head: [u32; HEAD],
    nodes: Vec<u32>,
    shapes: Vec<u32>,
    diagonals: Vec<u16>,
    lists: Vec<u16>,
    corners: Vec<u16>,
    shape_corners: Vec<u16>,
}

impl BlockLists {
    /// Cuts the rank's elements into runs. Nodes that are `apart` are summed behind all blocks in any case. 30 to 70 bytes an element.
    pub(super) fn new(mesh: &Mesh, rank: &RankNodes, cut: Cut, apart: impl Fn(u32) -> bool + Sync) -> Self {
        let own = rank.own.len() as u32;
        let numbers = |k: usize| mesh.element(rank.element(k)).iter().map(|&node| rank.number(node));
        let len = rank.len(mesh);
        let pieces: Vec<Range<usize>> = (0..len).step_by(PIECE).map(|first| first..len.min(first + PIECE)).collect();
        let in_runs = |piece: Range<usize>| runs(piece, cut, |k| numbers(k).collect());
        let mut blocks: Vec<Block> = pieces.into_par_iter().flat_map_iter(in_runs).collect();
        let has_halo = |block: &Block| block.nodes.last().is_some_and(|&node| node >= own);
        blocks.sort_by_key(has_halo);

        let counts: Vec<AtomicU32> = (0..own).map(|_| AtomicU32::new(0)).collect();
        blocks.par_iter().for_each(|block| {
            block.nodes.iter().filter(|&&node| node < own).for_each(|&node| {
                counts[node as usize].fetch_add(1, Ordering::Relaxed);
            });
        });
        let count = |node: u32| counts[node as usize].load(Ordering::Relaxed);
        let is_shared = |node: u32| count(node) > 1 || apart(node);
        let kind = |node: u32| if node >= own { 2 } else { u8::from(is_shared(node)) };
        let of_block = |block: &Block| lists_of(block, cut, mesh.cell().nodes(), kind, |k| numbers(k).collect());
        let lists: Vec<Lists> = blocks.par_iter().map(of_block).collect();

        let mut all = Self {
            size: cut.size,
            interior: blocks.iter().filter(|block| !has_halo(block)).count(),
            shared: (0..own).filter(|&node| is_shared(node)).collect(),
            ..Self::default()
        };
        let mut of_shared = vec![u32::MAX; own as usize];
        let (mut next, mut sums) = (Vec::with_capacity(all.shared.len()), 0);
        for (place, &node) in all.shared.iter().enumerate() {
            of_shared[node as usize] = place as u32;
            next.push(sums);
            sums += count(node);
            all.sum_ends.push(sums);
        }
        for (block, lists) in blocks.iter().zip(lists) {
            let Lists { mut head, nodes, shapes, diagonals, lists, corners, shape_corners } = lists;
            let [inside, own] = [head[1] as usize, head[2] as usize];
            all.most = [all.most[0].max(nodes.len()), all.most[1].max(shapes.len())];
            (head[0], head[5]) = (all.nodes.len() as u32, all.slots.len() as u32);
            (head[6], head[9]) = (all.shapes.len() as u32, all.diagonals.len() as u32);
            all.heads.extend(head);
            for &node in &nodes[inside..own] {
                let next: &mut u32 = &mut next[of_shared[node as usize] as usize];
                all.slots.push(*next);
                *next += 1;
            }
            let places = (0..cut.size).map(|e| block.elements.start + e);
            all.elements.extend(places.map(|k| if k < block.elements.end { k as u32 } else { u32::MAX }));
            all.nodes.extend(nodes);
            all.shapes.extend(shapes);
            all.diagonals.extend(diagonals);
            all.lists.extend(lists);
            all.corners.extend(corners);
            all.shape_corners.extend(shape_corners);
        }
        all
    }
}

/// Runs of a piece's elements, each with as many as there is room for.
fn runs(piece: Range<usize>, cut: Cut, nodes_of: impl Fn(usize) -> Vec<u32>) -> Vec<Block> {
    let (mut blocks, mut first) = (Vec::new(), piece.start);
    while first < piece.end {
        let mut count = cut.size.min(piece.end - first);
        let nodes = loop {
            let mut nodes: Vec<u32> = (first..first + count).flat_map(&nodes_of).collect();
            nodes.sort_unstable();
            nodes.dedup();
            if nodes.len() <= cut.most_nodes || count == 1 {
                break nodes;
            }
            count = count.div_ceil(2);
        };
        blocks.push(Block { elements: first..first + count, nodes });
        first += count;
    }
    blocks
}

/// The lists of a block. Its nodes are in the order of their kinds, 0 for those that no other block has, 1 for others that the rank owns, and 2;
/// of a kind, those that get most come first, so that work-items side by side have as much to add, in neighbouring places.
fn lists_of(
    block: &Block,
    Cut { size, shaping, .. }: Cut,
    width: usize,
    kind: impl Fn(u32) -> u8,
    nodes_of: impl Fn(usize) -> Vec<u32>,
) -> Lists {
    let known = |nodes: &[u32], node: u32| {
        let (Ok(k) | Err(k)) = nodes.binary_search(&node);
        k
    };
    // what each node gets, by its place among the sorted ones
    let mut products: Vec<Vec<u16>> = vec![Vec::new(); block.nodes.len()];
    let mut sorted_corners = vec![0; size * width];
    let mut shapes = Vec::new();
    for (e, k) in block.elements.clone().enumerate() {
        for (i, node) in nodes_of(k).into_iter().enumerate() {
            let place = known(&block.nodes, node);
            sorted_corners[i * size + e] = place;
            products[place].push((i * size + e) as u16);
            if i < shaping && shaping < width {
                shapes.push(node);
            }
        }
    }
    shapes.sort_unstable();
    shapes.dedup();
    let mut order: Vec<usize> = (0..block.nodes.len()).collect();
    order.sort_by_key(|&place| (kind(block.nodes[place]), Reverse(products[place].len()), place));
    let mut place_of = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, &from)| place_of[from] = to as u16);

    let ends: Vec<usize> =
        (0..2).map(|up_to| order.partition_point(|&place| kind(block.nodes[place]) <= up_to)).collect();
    let (mut diagonals, mut lists, mut depths) = (Vec::new(), Vec::new(), [0; 2]);
    for (depth, of_kind) in depths.iter_mut().zip([0..ends[0], ends[0]..ends[1]]) {
        let own = &order[of_kind];
        *depth = own.first().map_or(0, |&place| products[place].len() as u32);
        for k in 0..*depth as usize {
            diagonals.push(lists.len() as u16);
            lists.extend(own.iter().map_while(|&place| products[place].get(k)));
        }
        diagonals.push(lists.len() as u16);
    }
    lists.resize(size * width, 0);
    let count = block.elements.len();
    let mut shape_corners = vec![0; if shaping < width { size * shaping } else { 0 }];
    for (e, k) in block.elements.clone().enumerate().filter(|_| shaping < width) {
        for (i, node) in nodes_of(k).into_iter().take(shaping).enumerate() {
            shape_corners[i * size + e] = known(&shapes, node) as u16;
        }
    }
    let in_use = |at: usize| at % size < count;
    let corners = sorted_corners.iter().enumerate().map(|(at, &place)| if in_use(at) { place_of[place] } else { 0 });
    let [inside, own, all, elements] = [ends[0], ends[1], order.len(), count].map(|count| count as u32);
    Lists {
        head: [0, inside, own, all, elements, 0, 0, shapes.len() as u32, depths[0] | depths[1] << 16, 0],
        nodes: order.iter().map(|&place| block.nodes[place]).collect(),
        corners: corners.collect(),
        shapes,
        diagonals,
        lists,
        shape_corners,
    }
}
