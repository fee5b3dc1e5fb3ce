//! The power grid of a chip.

use super::random::Stream;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble, too_large};

/// By how much a wire conducts better than one of the layer below.
const GROWTH: f64 = 3.0;
/// The conductance of a via, by that of a segment in the lowest layer.
const VIA: f64 = 30.0;
/// The conductance of a pad.
const PAD: f64 = 1000.0;

/// The nodal matrix of the power grid of a chip: layers of wires, vias between them, and pads.
///
/// Layer 0 has wires along x, layer 1 along y, and so on in turns; those of layer l are 2ˡ apart. Nodes are where wires cross
/// those of the layer below, and in layer 0 all points of a w × h grid. Neighbours on a wire are tied by a conductance of 3ˡ by their
/// distance, and every node above layer 0 by a via of 30 to the node below it; each is varied at random by up to half.
/// In layer 0 a share of `missing` of the segments from an odd to an even place is left out. In the top layer every node of which both
/// coordinates, counted in nodes, are multiples of `pads` is tied to the supply by a conductance of 1000.
///
/// Row of a node: the sum of its conductances on the diagonal, `−g` for each tie; 2 to 5 entries. Nodes go layer by layer
/// from below, in each with x fastest; there are about w h (1 + 1/2 + 1/8 + 1/32 + …): 1.0 · 10⁶ for 775 × 775 points and 5 layers.
/// Symmetric to the bit, and positive definite: a node of layer 0 has its via or is tied to one that has, vias lead to whole wires of
/// layer 1, and the first wire of layer 2, which is whole, too, crosses them all. So all nodes are tied together, and some to the supply.
///
/// S. R. Nassif, "Power grid analysis benchmarks" (2008), doi 10.1109/ASPDAC.2008.4483978.
///
/// # Errors
/// [`Error::Usage`] if there are fewer than 3 layers or more than 16, or if a side or `pads` is 0, or for too many nodes.
pub fn circuit(sides: [usize; 2], layers: usize, pads: usize, missing: f64, seed: u64) -> Result<Csr> {
    let layers = Layers::new(sides, layers, pads)?;
    let stream = Stream::new(seed);
    let ties = Ties { layers: &layers, segments: stream.fork(0), vias: stream.fork(1), gaps: stream.fork(2), missing };
    assemble(
        layers.nodes,
        |i| 1 + ties.of(i).into_iter().flatten().count(),
        |i, row| {
            let all = ties.of(i);
            let ground = layers.pad(i);
            let diagonal = all.iter().flatten().fold(ground, |sum, (_, g)| sum + g);
            let (before, after) = all.split_at(2);
            before.iter().flatten().for_each(|&(j, g)| row.push(j, -g));
            row.push(i, diagonal);
            after.iter().flatten().for_each(|&(j, g)| row.push(j, -g));
        },
    )
}

/// A layer of wires along one axis, as a grid of nodes.
#[derive(Debug)]
struct Layer {
    /// The axis along which its wires run.
    axis: usize,
    /// The number of its first node.
    first: usize,
    /// How many nodes it has along each axis.
    sides: [usize; 2],
    /// How far apart these are, in steps of layer 0.
    steps: [usize; 2],
    /// The conductance between neighbours on a wire.
    conductance: f64,
}

impl Layer {
    /// Layer `l`, but for the number of its first node.
    fn new(sides: [usize; 2], l: usize) -> Self {
        let axis = l % 2;
        let along = 1 << l.saturating_sub(1);
        let mut steps = [1 << l; 2];
        steps[axis] = along;
        let sides = [0, 1].map(|axis| sides[axis].div_ceil(steps[axis]));
        Self { axis, first: 0, sides, steps, conductance: GROWTH.powi(l as i32) / along as f64 }
    }

    /// The coordinates of node `i` among those of the layer.
    fn place(&self, i: usize) -> [usize; 2] {
        let k = i - self.first;
        [k % self.sides[0], k / self.sides[0]]
    }

    /// The number of the node at `place`.
    fn number(&self, [x, y]: [usize; 2]) -> usize {
        self.first + x + self.sides[0] * y
    }

    /// The node above or below the one at `place` of `other`, if there is one.
    fn facing(&self, other: &Self, place: [usize; 2]) -> Option<usize> {
        let at = [0, 1].map(|axis| place[axis] * other.steps[axis]);
        let meets = (0..2).all(|axis| at[axis] % self.steps[axis] == 0);
        meets.then(|| self.number([0, 1].map(|axis| at[axis] / self.steps[axis])))
    }
}

/// All layers, from below.
struct Layers {
    all: Vec<Layer>,
    nodes: usize,
    pads: usize,
}

impl Layers {
    fn new(sides: [usize; 2], layers: usize, pads: usize) -> Result<Self> {
        if sides.contains(&0) || !(3..=16).contains(&layers) || pads == 0 {
            let [w, h] = sides;
            let what = format!("{layers} layers of {w} × {h} points with a pad every {pads} nodes");
            return Err(Error::Usage(format!("{what}: there must be 3 to 16 layers, and 1 point and node or more")));
        }
        let mut all: Vec<_> = (0..layers).map(|l| Layer::new(sides, l)).collect();
        let mut nodes = 0usize;
        for layer in &mut all {
            layer.first = nodes;
            let more = layer.sides[0].saturating_mul(layer.sides[1]);
            nodes = nodes.saturating_add(more);
        }
        if nodes > Csr::MAX_DIM {
            return Err(too_large(format_args!("{nodes} nodes in {layers} layers")));
        }
        Ok(Self { all, nodes, pads })
    }

    /// The layer of node `i`.
    fn of(&self, i: usize) -> usize {
        self.all.partition_point(|layer| layer.first <= i) - 1
    }

    /// The conductance from node `i` to the supply.
    fn pad(&self, i: usize) -> f64 {
        let l = self.of(i);
        let pad = l + 1 == self.all.len() && self.all[l].place(i).iter().all(|c| c % self.pads == 0);
        if pad { PAD } else { 0.0 }
    }
}

/// What is tied to what.
struct Ties<'a> {
    layers: &'a Layers,
    /// By the first node of each segment.
    segments: Stream,
    /// By the upper node of each via.
    vias: Stream,
    /// By the first node of each segment.
    gaps: Stream,
    missing: f64,
}

impl Ties<'_> {
    /// The nodes tied to node `i`, and by which conductance: below, before and behind it on its wire, and above.
    fn of(&self, i: usize) -> [Option<(usize, f64)>; 4] {
        let (all, l) = (&self.layers.all, self.layers.of(i));
        let (layer, place) = (&all[l], all[l].place(i));
        let stride = [1, layer.sides[0]][layer.axis];
        let segment = |from: usize, x: usize| {
            let gap = l == 0 && x % 2 == 1 && self.gaps.unit(from as u64) < self.missing;
            (!gap).then(|| varied(layer.conductance, self.segments, from))
        };
        let along = place[layer.axis];
        let below = l.checked_sub(1).and_then(|k| all[k].facing(layer, place));
        let before = if along > 0 { segment(i - stride, along - 1).map(|g| (i - stride, g)) } else { None };
        let last = along + 1 == layer.sides[layer.axis];
        let behind = if last { None } else { segment(i, along).map(|g| (i + stride, g)) };
        let above = all.get(l + 1).and_then(|layer| layer.facing(&all[l], place));
        let via = |upper| varied(VIA, self.vias, upper);
        [below.map(|j| (j, via(i))), before, behind, above.map(|j| (j, via(j)))]
    }
}

/// The conductance, by up to half of it more or less.
fn varied(conductance: f64, stream: Stream, k: usize) -> f64 {
    conductance * (1.0 + 0.5 * stream.signed(k as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_by_hand() {
        // layer 0: 4 × 3 points; layer 1: x 0, 2 and all y; layer 2: x 0, 2 and y 0; node 18 is the only pad
        let a = circuit([4, 3], 3, 2, 0.0, 1).unwrap();
        assert_eq!(a.n_rows(), 12 + 6 + 2);
        let ties = [(0, vec![0, 1, 12]), (5, vec![4, 5, 6]), (14, vec![4, 12, 14, 16]), (18, vec![12, 18, 19])];
        for (i, expected) in ties {
            assert_eq!(a.row(i).0, expected);
        }
        let range = |i, j, g: f64| {
            let value = -a.get(i, j).unwrap();
            assert!((0.5 * g..1.5 * g).contains(&value), "({i}, {j}): {value}");
        };
        range(0, 1, 1.0);
        range(12, 14, 3.0);
        range(18, 19, 4.5);
        range(0, 12, VIA);
        range(12, 18, VIA);
        for (i, sum) in a.mul_vec(&[1.0; 20]).into_iter().enumerate() {
            assert!((sum - if i == 18 { PAD } else { 0.0 }).abs() < 1e-12, "{i}: {sum}");
        }
    }

    #[test]
    fn everything_is_tied_together_whatever_is_missing() {
        for missing in [0.0, 0.3, 1.0] {
            let a = circuit([37, 22], 4, 4, missing, 5).unwrap();
            let mut seen = vec![false; a.n_rows()];
            let mut next = vec![0];
            while let Some(i) = next.pop() {
                if !std::mem::replace(&mut seen[i], true) {
                    next.extend(a.row(i).0.iter().map(|j| *j as usize));
                }
            }
            assert!(seen.iter().all(|s| *s), "{missing}");
        }
        let segments = |missing| circuit([100, 100], 3, 4, missing, 5).unwrap().nnz();
        // 49 of 99 segments a wire begin at an odd place
        assert_eq!(segments(0.0) - segments(1.0), 2 * 49 * 100);
        assert!((1700..2200).contains(&(segments(0.0) - segments(0.2))));
    }

    #[test]
    fn sizes() {
        assert_eq!(circuit([775; 2], 5, 16, 0.2, 1).unwrap().n_rows(), 1_000_168);
        assert!((2..=5).contains(&circuit([40; 2], 5, 16, 1.0, 1).unwrap().row(0).0.len()));
    }
}
