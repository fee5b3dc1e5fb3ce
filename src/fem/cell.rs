//! Triangles and tetrahedra of first and second order: shape functions, and points at which integrals are formed.

use crate::named::named;

named! {
    /// The shape of all elements of a mesh. Nodes are in the order of Gmsh: corners, then middles of edges.
    Cell, "element":
    Triangle3 = "triangle3", "A triangle with its corners.";
    Triangle6 = "triangle6", "A triangle with the middles of its edges, too: 1-2, 2-3, 3-1.";
    Tetrahedron4 = "tetrahedron4", "A tetrahedron with its corners.";
    Tetrahedron10 = "tetrahedron10", "A tetrahedron with the middles of its edges, too: 1-2, 2-3, 3-1, 4-1, 4-3, 4-2.";
}

/// The corners of each edge, in the order of their middles.
const TRIANGLE_EDGES: [[usize; 2]; 3] = [[0, 1], [1, 2], [2, 0]];
const TETRAHEDRON_EDGES: [[usize; 2]; 6] = [[0, 1], [1, 2], [2, 0], [3, 0], [3, 2], [3, 1]];

/// A place in an element, by the weights of its corners, which are 1 together, and the part of the volume that it stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) corners: [f64; 4],
    pub(crate) weight: f64,
    /// [`Cell::shapes`] and [`Cell::slopes`] there.
    pub(crate) shapes: [f64; 10],
    pub(crate) slopes: [[f64; 3]; 10],
}

impl Cell {
    /// 2 or 3.
    #[must_use]
    pub fn dimensions(self) -> usize {
        self.corners() - 1
    }

    /// Corners.
    #[must_use]
    pub fn corners(self) -> usize {
        match self {
            Self::Triangle3 | Self::Triangle6 => 3,
            Self::Tetrahedron4 | Self::Tetrahedron10 => 4,
        }
    }

    /// Nodes.
    #[must_use]
    pub fn nodes(self) -> usize {
        self.corners() + if self.order() == 2 { self.edges().len() } else { 0 }
    }

    /// The degree of its shape functions.
    #[must_use]
    pub fn order(self) -> usize {
        match self {
            Self::Triangle3 | Self::Tetrahedron4 => 1,
            Self::Triangle6 | Self::Tetrahedron10 => 2,
        }
    }

    /// The same of second order.
    #[must_use]
    pub fn second_order(self) -> Self {
        match self {
            Self::Triangle3 | Self::Triangle6 => Self::Triangle6,
            Self::Tetrahedron4 | Self::Tetrahedron10 => Self::Tetrahedron10,
        }
    }

    /// The same of first order.
    pub(crate) fn first_order(self) -> Self {
        match self {
            Self::Triangle3 | Self::Triangle6 => Self::Triangle3,
            Self::Tetrahedron4 | Self::Tetrahedron10 => Self::Tetrahedron4,
        }
    }

    /// The corners of its edges, in the order of the nodes in their middles.
    #[must_use]
    pub fn edges(self) -> &'static [[usize; 2]] {
        match self {
            Self::Triangle3 | Self::Triangle6 => &TRIANGLE_EDGES,
            Self::Tetrahedron4 | Self::Tetrahedron10 => &TETRAHEDRON_EDGES,
        }
    }

    /// The nodes of an edge of a triangle, or of a face of a tetrahedron, which are those of a part of the boundary.
    #[must_use]
    pub fn facet_nodes(self) -> usize {
        match self {
            Self::Triangle3 => 2,
            Self::Triangle6 | Self::Tetrahedron4 => 3,
            Self::Tetrahedron10 => 6,
        }
    }

    /// The shape function of each node at a place.
    pub(crate) fn shapes(self, corners: [f64; 4]) -> [f64; 10] {
        let (mut shapes, count) = ([0.0; 10], self.corners());
        if self.order() == 1 {
            shapes[..count].copy_from_slice(&corners[..count]);
            return shapes;
        }
        shapes[..count].iter_mut().zip(corners).for_each(|(shape, l)| *shape = l * (2.0 * l - 1.0));
        let middles = shapes[count..].iter_mut().zip(self.edges());
        middles.for_each(|(shape, &[a, b])| *shape = 4.0 * corners[a] * corners[b]);
        shapes
    }

    /// The derivatives of the shape function of each node by the weights of the second and further corners: that of the first is
    /// what they leave.
    pub(crate) fn slopes(self, corners: [f64; 4]) -> [[f64; 3]; 10] {
        let (mut slopes, count) = ([[0.0; 3]; 10], self.corners());
        // of the weight of a corner
        let of = |corner: usize, k: usize| if corner == 0 { -1.0 } else { f64::from(u8::from(corner == k + 1)) };
        for (corner, slopes) in slopes[..count].iter_mut().enumerate() {
            let factor = if self.order() == 1 { 1.0 } else { 4.0 * corners[corner] - 1.0 };
            (0..count - 1).for_each(|k| slopes[k] = factor * of(corner, k));
        }
        if self.order() == 2 {
            for (slopes, &[a, b]) in slopes[count..].iter_mut().zip(self.edges()) {
                (0..count - 1).for_each(|k| slopes[k] = 4.0 * (corners[a] * of(b, k) + corners[b] * of(a, k)));
            }
        }
        slopes
    }

    /// Places at which products of two shape functions, and of their derivatives, are integrated exactly where edges are straight.
    ///
    /// D. A. Dunavant, Int. J. Numer. Methods Eng. 21 (1985), doi 10.1002/nme.1620210612, degrees 2 and 4; N. J. Walkington, "Quadrature on
    /// simplices of arbitrary dimension", Carnegie Mellon 2000, degree 5; the usual ones of degree 2 for tetrahedra.
    pub(crate) fn points(self) -> Vec<Point> {
        let all: Vec<([f64; 4], f64)> = match self {
            Self::Triangle3 => orbit(3, [2.0 / 3.0, 1.0 / 6.0], 1.0 / 3.0),
            Self::Triangle6 => {
                let mut all = orbit(3, [1.0 - 2.0 * TRIANGLE_NEAR, TRIANGLE_NEAR], 0.223_381_589_678_011);
                all.extend(orbit(3, [1.0 - 2.0 * TRIANGLE_FAR, TRIANGLE_FAR], 0.109_951_743_655_322));
                all
            }
            Self::Tetrahedron4 => orbit(4, [1.0 - 3.0 * TETRAHEDRON_NEAR, TETRAHEDRON_NEAR], 0.25),
            Self::Tetrahedron10 => {
                let [near, far] = [0.310_885_919_263_300_6, 0.092_735_250_310_891_23];
                let mut all = orbit(4, [1.0 - 3.0 * near, near], 0.112_687_925_718_015_85);
                all.extend(orbit(4, [1.0 - 3.0 * far, far], 0.073_493_043_116_361_95));
                let beside = 0.045_503_704_125_649_65;
                all.extend(TETRAHEDRON_EDGES.iter().map(|&[a, b]| {
                    let mut corners = [0.5 - beside; 4];
                    (corners[a], corners[b]) = (beside, beside);
                    (corners, 0.042_546_020_777_081_47)
                }));
                all
            }
        };
        all.into_iter().map(|(corners, weight)| self.point(corners, weight)).collect()
    }

    /// A place in an element.
    pub(crate) fn point(self, corners: [f64; 4], weight: f64) -> Point {
        Point { corners, weight, shapes: self.shapes(corners), slopes: self.slopes(corners) }
    }
}

const TRIANGLE_NEAR: f64 = 0.445_948_490_915_965;
const TRIANGLE_FAR: f64 = 0.091_576_213_509_771;
/// (5 − √5) / 20.
const TETRAHEDRON_NEAR: f64 = 0.138_196_601_125_010_5;

/// The places where one corner has a weight, and all others have another.
fn orbit(count: usize, [one, others]: [f64; 2], weight: f64) -> Vec<([f64; 4], f64)> {
    let place = |corner: usize| {
        let mut corners = [0.0; 4];
        corners[..count].fill(others);
        corners[corner] = one;
        (corners, weight)
    };
    (0..count).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Cell; 4] = [Cell::Triangle3, Cell::Triangle6, Cell::Tetrahedron4, Cell::Tetrahedron10];

    /// The mean of a product of powers of corners' weights: d! a! b! c! … / (d + a + b + c + …)!.
    fn mean(cell: Cell, powers: &[u32]) -> f64 {
        let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
        let d = cell.dimensions() as u32;
        let above: f64 = powers.iter().map(|&p| factorial(p)).product();
        factorial(d) * above / factorial(d + powers.iter().sum::<u32>())
    }

    #[test]
    fn integrals_are_exact() {
        for (cell, degree) in ALL.into_iter().zip([2, 4, 2, 5]) {
            let points = cell.points();
            for code in 0..6_u32.pow(cell.corners() as u32) {
                let powers: Vec<u32> = (0..cell.corners() as u32).map(|k| code / 6_u32.pow(k) % 6).collect();
                if powers.iter().sum::<u32>() > degree {
                    continue;
                }
                let product = |p: &Point| powers.iter().zip(p.corners).map(|(&k, l)| l.powi(k as i32)).product::<f64>();
                let sum: f64 = points.iter().map(|p| p.weight * product(p)).sum();
                assert!((sum - mean(cell, &powers)).abs() < 1e-13, "{cell}, {powers:?}: {sum}");
            }
        }
    }

    #[test]
    fn shapes_are_one_at_their_nodes() {
        for cell in ALL {
            let mut nodes: Vec<[f64; 4]> =
                (0..cell.corners()).map(|corner| std::array::from_fn(|k| f64::from(u8::from(k == corner)))).collect();
            if cell.order() == 2 {
                nodes.extend(
                    cell.edges().iter().map(|edge| std::array::from_fn(|k| if edge.contains(&k) { 0.5 } else { 0.0 })),
                );
            }
            assert_eq!(nodes.len(), cell.nodes());
            for (i, place) in nodes.into_iter().enumerate() {
                let shapes = cell.shapes(place);
                (0..cell.nodes()).for_each(|j| assert_eq!(shapes[j], f64::from(u8::from(i == j)), "{cell}"));
            }
        }
    }

    #[test]
    fn slopes_are_differences() {
        for cell in ALL {
            for point in cell.points() {
                let (slopes, h) = (cell.slopes(point.corners), 1e-6);
                for k in 0..cell.dimensions() {
                    let moved = |by: f64| {
                        let mut corners = point.corners;
                        corners[0] -= by;
                        corners[k + 1] += by;
                        cell.shapes(corners)
                    };
                    let (after, before) = (moved(h), moved(-h));
                    for node in 0..cell.nodes() {
                        let difference = (after[node] - before[node]) / (2.0 * h);
                        assert!((slopes[node][k] - difference).abs() < 1e-8, "{cell}, node {node}");
                    }
                }
            }
        }
    }
}
