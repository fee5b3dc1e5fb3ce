//! Meshes of the unit square and the unit cube.

use super::cell::Cell;
use super::mesh::{MOST_ELEMENTS, Mesh, Parts};
use crate::error::{Error, Result};

/// The sides of the unit square.
const OF_SQUARE: [&str; 4] = ["left", "right", "bottom", "top"];
/// And of the unit cube.
const OF_CUBE: [&str; 6] = ["left", "right", "front", "back", "bottom", "top"];
/// The corners that a tetrahedron of a cube has between the first and the last, one step along an axis after the other.
const STEPS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl Mesh {
    /// The unit square in m × n small rectangles of two triangles each, the region `square`; its sides are `left` (x = 0), `right`,
    /// `bottom` (y = 0) and `top`.
    ///
    /// # Errors
    /// [`Error::Usage`] for none in a direction, more than 2³¹ nodes, or 4 · 10⁸ elements.
    pub fn unit_square([m, n]: [usize; 2]) -> Result<Self> {
        count(&[m, n], 2)?;
        let node = |i: usize, j: usize| (j * (m + 1) + i) as u32;
        let points = (0..=n).flat_map(|j| (0..=m).map(move |i| [i as f64 / m as f64, j as f64 / n as f64, 0.0]));
        let squares = (0..n).flat_map(|j| (0..m).map(move |i| (i, j)));
        let triangles = squares.flat_map(|(i, j)| {
            let [a, b, c, d] = [node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)];
            [a, b, c, a, c, d]
        });
        let elements = Parts { nodes: triangles.collect(), groups: vec![0; 2 * m * n], names: vec!["square".into()] };
        let mut boundary = Parts { names: OF_SQUARE.map(String::from).to_vec(), ..Parts::default() };
        let mut add = |side: u32, nodes: [u32; 2]| {
            boundary.nodes.extend(nodes);
            boundary.groups.push(side);
        };
        for j in 0..n {
            add(0, [node(0, j + 1), node(0, j)]);
            add(1, [node(m, j), node(m, j + 1)]);
        }
        for i in 0..m {
            add(2, [node(i, 0), node(i + 1, 0)]);
            add(3, [node(i + 1, n), node(i, n)]);
        }
        Self::new(Cell::Triangle3, points.collect(), elements, boundary)
    }

    /// The unit cube in l × m × n small boxes of six tetrahedra each, the region `cube`; its sides are `left` (x = 0), `right`, `front`
    /// (y = 0), `back`, `bottom` (z = 0) and `top`.
    ///
    /// H. W. Kuhn, "Some combinatorial lemmas in topology", IBM J. Res. Dev. 4 (1960), doi 10.1147/rd.45.0518.
    ///
    /// # Errors
    /// [`Error::Usage`] for none in a direction, more than 2³¹ nodes, or 4 · 10⁸ elements.
    pub fn unit_cube(boxes: [usize; 3]) -> Result<Self> {
        count(&boxes, 6)?;
        let [l, m, n] = boxes;
        let node = |[i, j, k]: [usize; 3]| ((k * (m + 1) + j) * (l + 1) + i) as u32;
        let places = |ends: [usize; 3]| {
            (0..ends[2]).flat_map(move |k| (0..ends[1]).flat_map(move |j| (0..ends[0]).map(move |i| [i, j, k])))
        };
        let points = places(boxes.map(|count| count + 1))
            .map(|place| std::array::from_fn(|k| place[k] as f64 / boxes[k] as f64))
            .collect();
        let mut nodes = Vec::with_capacity(24 * l * m * n);
        for first in places(boxes) {
            for steps in STEPS {
                let mut place = first;
                let mut corners = [node(place); 4];
                for (corner, axis) in corners[1..].iter_mut().zip(steps) {
                    place[axis] += 1;
                    *corner = node(place);
                }
                // an odd order of the axes turns the tetrahedron round
                if (steps[1] + 3 - steps[0]) % 3 == 2 {
                    corners.swap(1, 2);
                }
                nodes.extend(corners);
            }
        }
        let elements = Parts { nodes, groups: vec![0; 6 * l * m * n], names: vec!["cube".into()] };
        let mut boundary = Parts { names: OF_CUBE.map(String::from).to_vec(), ..Parts::default() };
        for side in 0..6 {
            let (axis, is_last) = (side / 2, side % 2 == 1);
            let [one, other] = [(axis + 1) % 3, (axis + 2) % 3];
            let mut ends = boxes;
            ends[axis] = 1;
            for mut first in places(ends) {
                first[axis] = if is_last { boxes[axis] } else { 0 };
                let [mut a, mut b, mut both] = [first; 3];
                a[one] += 1;
                b[other] += 1;
                (both[one], both[other]) = (first[one] + 1, first[other] + 1);
                // the diagonal is that of the tetrahedra, from the first corner to the last
                for half in [[first, a, both], [first, both, b]] {
                    boundary.nodes.extend(half.map(node));
                    boundary.groups.push(side as u32);
                }
            }
        }
        Self::new(Cell::Tetrahedron4, points, elements, boundary)
    }
}

/// Whether nodes and elements, so many of a cell, can be counted.
fn count(cells: &[usize], of_cell: usize) -> Result<()> {
    let nodes = cells.iter().try_fold(1_usize, |nodes, &count| nodes.checked_mul(count.checked_add(1)?));
    match nodes {
        _ if cells.contains(&0) => Err(Error::Usage("a mesh has a cell in each direction, at least".into())),
        Some(nodes) if nodes < 1 << 31 && of_cell * cells.iter().product::<usize>() <= MOST_ELEMENTS => Ok(()),
        _ => Err(Error::Usage(format!("a mesh of {cells:?} cells has more than 2³¹ nodes, or 4 · 10⁸ elements"))),
    }
}
