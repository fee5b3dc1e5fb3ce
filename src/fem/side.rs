//! Integrals over parts of the boundary: edges of triangles, faces of tetrahedra.

use super::cell::Cell;

/// A place on a part of the boundary.
pub(crate) struct SidePoint {
    /// Where it is.
    pub(crate) place: [f64; 3],
    /// The shape function of each node,
    pub(crate) shapes: [f64; 6],
    /// and the length or area that it stands for.
    pub(crate) measure: f64,
}

/// Gauss' points of degree 5 between −1 and 1, and their weights.
const GAUSS: [[f64; 2]; 3] =
    [[-0.774_596_669_241_483_4, 5.0 / 9.0], [0.0, 8.0 / 9.0], [0.774_596_669_241_483_4, 5.0 / 9.0]];

/// The places at which integrals over a part with these corners, and middles of edges if there are some, are formed.
pub(crate) fn points(cell: Cell, nodes: &[[f64; 3]]) -> Vec<SidePoint> {
    if cell.dimensions() == 2 {
        return GAUSS.iter().map(|&[t, weight]| on_edge(nodes, t, weight)).collect();
    }
    let face = if cell.order() == 2 { Cell::Triangle6 } else { Cell::Triangle3 };
    let at = |point: &super::cell::Point| {
        let (shapes, slopes) = (face.shapes(point.corners), face.slopes(point.corners));
        let along = |k: usize| sum(nodes, |i| slopes[i][k]);
        let ([a, b, c], [d, e, f]) = (along(0), along(1));
        let normal = [b * f - c * e, c * d - a * f, a * e - b * d];
        let shapes = std::array::from_fn(|i| shapes[i]);
        let measure = 0.5 * point.weight * norm(normal);
        SidePoint { place: sum(nodes, |i| shapes[i]), shapes, measure }
    };
    face.points().iter().map(at).collect()
}

fn on_edge(nodes: &[[f64; 3]], t: f64, weight: f64) -> SidePoint {
    let (mut shapes, mut slopes) = ([0.0; 6], [0.0; 6]);
    (shapes[0], shapes[1], slopes[0], slopes[1]) = (0.5 * (1.0 - t), 0.5 * (1.0 + t), -0.5, 0.5);
    if nodes.len() == 3 {
        (shapes[0], shapes[1], shapes[2]) = (0.5 * t * (t - 1.0), 0.5 * t * (t + 1.0), 1.0 - t * t);
        (slopes[0], slopes[1], slopes[2]) = (t - 0.5, t + 0.5, -2.0 * t);
    }
    SidePoint { place: sum(nodes, |i| shapes[i]), shapes, measure: weight * norm(sum(nodes, |i| slopes[i])) }
}

/// Σ factor(i) node i.
fn sum(nodes: &[[f64; 3]], factor: impl Fn(usize) -> f64) -> [f64; 3] {
    std::array::from_fn(|x| nodes.iter().enumerate().map(|(i, node)| factor(i) * node[x]).sum())
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
