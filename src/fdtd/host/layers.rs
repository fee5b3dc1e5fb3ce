//! Absorbing layers.

use std::ops::Range;

use rayon::prelude::*;

use super::super::slab::{Correction, Slab};
use super::rows::Media;
use crate::real::Real;

/// Elements of a layer that are worth a thread.
const PIECE: usize = 1 << 10;

/// Adds to the derivatives in layers what these make of them.
pub(super) fn apply<T: Real>(
    slab: &Slab,
    media: &Media<T>,
    correction: &Correction<T>,
    psi: &mut [T],
    target: &mut [T],
    source: &[T],
    planes: &Range<usize>,
) {
    let Correction { layers, half, term, profile, .. } = correction;
    let (axis, stride) = (layers.axis, slab.grid.stride(layers.axis));
    let [far, near] = slab.difference(*half, term.axis);
    let (table, walls) = (media.table(*half), slab.walls(correction.target));
    let [nx, ny, _] = slab.grid.cells;
    let is_flat = slab.grid.slab_axis() == 1;
    let on_wall = |cell: usize| {
        let (x, row) = (cell % nx, cell / nx);
        let (y, z) = if is_flat { (row, 1) } else { (row % ny, row / ny) };
        [x, y, z].into_iter().zip(walls).any(|(at, is_wall)| is_wall && at == 0)
    };
    let has_walls = walls.contains(&true);
    // a run of elements at the same depth
    let run = |first: usize, depth: usize, to: &mut [T], psi: &mut [T]| {
        let [b, c, stretch] = [profile[3 * depth], profile[3 * depth + 1], profile[3 * depth + 2]];
        for (k, (to, psi)) in to.iter_mut().zip(psi).enumerate() {
            let cell = first + k;
            if has_walls && on_wall(cell) {
                continue;
            }
            let difference = source[cell + far] - source[cell + near];
            *psi = b * *psi + c * difference;
            let change = table.of(media.index[cell])[1 + axis] * (stretch * difference + *psi);
            *to = if correction.adds { *to + change } else { *to - change };
        }
    };
    let wanted = planes.start * slab.plane()..planes.end * slab.plane();
    if axis == slab.grid.slab_axis() {
        // planes of layers, in pieces
        for (depth, psi) in psi.chunks_mut(stride).enumerate() {
            let plane = if depth < layers.low { depth } else { depth + layers.shift };
            if planes.contains(&plane) {
                let first = plane * stride;
                let to = target[first..first + stride].par_chunks_mut(PIECE).zip(psi.par_chunks_mut(PIECE));
                to.enumerate().for_each(|(k, (to, psi))| run(first + k * PIECE, depth, to, psi));
            }
        }
        return;
    }
    // blocks that have all of the axis, each with its layers
    let (block, of_psi) = (stride * slab.grid.cells[axis], stride * layers.size[axis]);
    let blocks = wanted.start / block..wanted.end / block;
    let psi = psi[blocks.start * of_psi..blocks.end * of_psi].par_chunks_mut(of_psi);
    let blocks_of_target = target[wanted.clone()].par_chunks_mut(block).zip(psi).with_min_len((PIECE / of_psi).max(1));
    blocks_of_target.enumerate().for_each(|(k, (to, psi))| {
        for (depth, psi) in psi.chunks_mut(stride).enumerate() {
            let at = if depth < layers.low { depth } else { depth + layers.shift } * stride;
            run(wanted.start + k * block + at, depth, &mut to[at..at + stride], psi);
        }
    });
}
