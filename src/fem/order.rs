//! Meshes whose neighbours have neighbouring numbers.

use rayon::prelude::*;

use super::mesh::{Mesh, Parts};

/// Bits of a coordinate on the curve.
const BITS: u32 = 20;

impl Mesh {
    /// The same with its elements along Hilbert's curve through their middles, and its nodes in the order in which these have them; and the
    /// former number of each node. Neighbours are then near each other in memory, and runs of nodes have short borders: ranks cut
    /// there. O(n log n).
    ///
    /// J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004), doi 10.1063/1.1751381.
    #[must_use]
    pub fn ordered(&self) -> (Self, Vec<u32>) {
        let (points, dimensions) = (self.points(), self.cell().dimensions());
        let bound = |start: f64, of: fn(f64, f64) -> f64, k: usize| points.iter().fold(start, |best, p| of(best, p[k]));
        let low: [f64; 3] = std::array::from_fn(|k| bound(f64::INFINITY, f64::min, k));
        let size = (0..3).map(|k| bound(f64::NEG_INFINITY, f64::max, k) - low[k]).fold(0.0, f64::max);
        let scale = f64::from((1_u32 << BITS) - 1) / size.max(f64::MIN_POSITIVE);
        let place = |element: u32| {
            let corners = &self.element(element as usize)[..self.cell().corners()];
            let middle = |k: usize| {
                corners.iter().map(|&node| points[node as usize][k] - low[k]).sum::<f64>() / corners.len() as f64
            };
            let cell = std::array::from_fn(|k| (middle(k) * scale) as u32);
            (along_curve(cell, dimensions), element)
        };
        let mut order: Vec<(u64, u32)> = (0..self.len() as u32).into_par_iter().map(place).collect();
        order.par_sort_unstable();

        let (mut number, mut former) = (vec![u32::MAX; points.len()], Vec::with_capacity(points.len()));
        let mut elements = Parts { names: self.region_names().to_vec(), ..Parts::default() };
        for (_, element) in order {
            elements.groups.push(self.regions()[element as usize]);
            for &node in self.element(element as usize) {
                let number = &mut number[node as usize];
                if *number == u32::MAX {
                    *number = former.len() as u32;
                    former.push(node);
                }
                elements.nodes.push(*number);
            }
        }
        let mut boundary = Parts { names: self.side_names().to_vec(), ..Parts::default() };
        for side in 0..boundary.names.len() as u32 {
            for nodes in self.side(side) {
                boundary.nodes.extend(nodes.iter().map(|&node| number[node as usize]));
                boundary.groups.push(side);
            }
        }
        let points = former.iter().map(|&node| points[node as usize]).collect();
        (self.renumbered(points, elements, boundary), former)
    }
}

/// Where a cell of a grid of 2^`BITS` cells in each of two or three directions is on Hilbert's curve.
fn along_curve(mut x: [u32; 3], dimensions: usize) -> u64 {
    let x = &mut x[..dimensions];
    let mut q = 1 << (BITS - 1);
    while q > 1 {
        let p = q - 1;
        for k in 0..dimensions {
            if x[k] & q != 0 {
                x[0] ^= p;
            } else {
                let t = (x[0] ^ x[k]) & p;
                x[0] ^= t;
                x[k] ^= t;
            }
        }
        q >>= 1;
    }
    (1..dimensions).for_each(|k| x[k] ^= x[k - 1]);
    let (mut t, mut q) = (0, 1 << (BITS - 1));
    while q > 1 {
        if x[dimensions - 1] & q != 0 {
            t ^= q - 1;
        }
        q >>= 1;
    }
    x.iter_mut().for_each(|x| *x ^= t);
    // bits of all coordinates in turn
    (0..BITS).rev().flat_map(|bit| x.iter().map(move |x| u64::from(x >> bit & 1))).fold(0, |all, bit| all << 1 | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_curve_are_short() {
        // the first cells of the curve, near the origin
        for (dimensions, side) in [(2, 8_u32), (3, 4)] {
            let count = (side as usize).pow(dimensions as u32);
            let cell = |k: usize| {
                std::array::from_fn(|d| if d < dimensions { k as u32 / side.pow(d as u32) % side } else { 0 })
            };
            let mut cells: Vec<(u64, [u32; 3])> =
                (0..count).map(|k| (along_curve(cell(k), dimensions), cell(k))).collect();
            cells.sort_unstable();
            assert_eq!(cells.iter().map(|cell| cell.0).collect::<Vec<_>>(), (0..count as u64).collect::<Vec<_>>());
            for pair in cells.windows(2) {
                let step: u32 = (0..3).map(|k| pair[0].1[k].abs_diff(pair[1].1[k])).sum();
                assert_eq!(step, 1, "{pair:?}");
            }
        }
    }

    #[test]
    fn it_is_the_same_mesh() {
        for mesh in [Mesh::unit_square([5, 3]).unwrap().second_order(), Mesh::unit_cube([3, 2, 4]).unwrap()] {
            let (ordered, former) = mesh.ordered();
            assert_eq!([ordered.len(), ordered.points().len()], [mesh.len(), mesh.points().len()]);
            assert!(ordered.points().iter().zip(&former).all(|(p, &node)| *p == mesh.points()[node as usize]));
            let elements = |mesh: &Mesh, name: &dyn Fn(u32) -> u32| {
                let of = |element: usize| mesh.element(element).iter().map(|&node| name(node)).collect::<Vec<_>>();
                let mut all: Vec<Vec<u32>> = (0..mesh.len()).map(of).collect();
                all.sort();
                all
            };
            assert_eq!(elements(&ordered, &|node| former[node as usize]), elements(&mesh, &|node| node));
            for side in 0..mesh.side_names().len() as u32 {
                assert_eq!(ordered.side(side).count(), mesh.side(side).count());
            }
        }
    }

    #[test]
    fn runs_of_nodes_have_short_borders() {
        let mesh = Mesh::unit_square([64, 64]).unwrap();
        let halves = |mesh: &Mesh| {
            let half = mesh.points().len() as u32 / 4;
            let is_cut = |element: &usize| {
                let nodes = mesh.element(*element);
                nodes.iter().any(|&node| node < half) && nodes.iter().any(|&node| node >= half)
            };
            (0..mesh.len()).filter(is_cut).count()
        };
        // a quarter of the square: 2 x 32 squares along its border, or 64 in rows
        assert!(halves(&mesh.ordered().0) < 150, "{}", halves(&mesh.ordered().0));
        // and elements in blocks of 128, of 64 squares, have few nodes
        let (ordered, _) = mesh.ordered();
        let nodes = |first: usize| {
            let mut nodes: Vec<u32> =
                (first..first + 128).flat_map(|element| ordered.element(element)).copied().collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes.len()
        };
        let most = (0..mesh.len()).step_by(128).map(nodes).max().unwrap_or(0);
        assert!(most <= 100, "{most} nodes");
    }
}
