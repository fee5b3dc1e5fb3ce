//! Which element a place is in.

use super::cell::Point;
use super::mesh::Mesh;

/// How far outside of an element a place may be that is still in it, as a part of its size.
const NEAR: f64 = 1e-9;
/// Steps of Newton's method, which an element with straight edges needs one of.
const MOST_STEPS: usize = 20;

impl Mesh {
    /// The first element with this place, and where in it that is; none outside of the mesh. Looks at one element after the other.
    pub(super) fn locate(&self, place: [f64; 3]) -> Option<(usize, Point)> {
        (0..self.len()).find_map(|element| Some((element, self.inside(element, place)?)))
    }

    fn inside(&self, element: usize, place: [f64; 3]) -> Option<Point> {
        let (cell, d) = (self.cell(), self.cell().dimensions());
        let nodes: Vec<[f64; 3]> = self.element(element).iter().map(|&node| self.points()[node as usize]).collect();
        let bounds = |x: usize| {
            let of = |pick: fn(f64, f64) -> f64| nodes.iter().map(|node| node[x]).fold(nodes[0][x], pick);
            let (least, most) = (of(f64::min), of(f64::max));
            // an edge that is bent goes beyond its nodes
            let beyond = if cell.order() == 1 { NEAR } else { 0.5 } * (most - least);
            least - beyond <= place[x] && place[x] <= most + beyond
        };
        if !(0..d).all(bounds) || d == 2 && place[2] != 0.0 {
            return None;
        }
        let mut corners = [0.0; 4];
        corners[..=d].fill(1.0 / (d + 1) as f64);
        for _ in 0..MOST_STEPS {
            let (shapes, slopes) = (cell.shapes(corners), cell.slopes(corners));
            let sum = |factor: &dyn Fn(usize) -> f64| -> [f64; 3] {
                std::array::from_fn(|x| nodes.iter().enumerate().map(|(i, node)| factor(i) * node[x]).sum())
            };
            let at = sum(&|i| shapes[i]);
            let missing: [f64; 3] = std::array::from_fn(|x| place[x] - at[x]);
            let mut axes: [[f64; 3]; 3] = std::array::from_fn(|k| sum(&|i| slopes[i][k]));
            if d == 2 {
                axes[2] = [0.0, 0.0, 1.0];
            }
            let step = combination(axes, missing);
            (0..d).for_each(|k| corners[k + 1] += step[k]);
            corners[0] = 1.0 - corners[1..=d].iter().sum::<f64>();
            let largest = step[..d].iter().fold(0.0, |most: f64, s| most.max(s.abs()));
            if cell.order() == 1 || largest < 1e-14 {
                break;
            }
        }
        corners[..=d].iter().all(|l| *l >= -NEAR).then(|| cell.point(corners, 1.0))
    }
}

/// The factors by which three vectors add up to another, by Cramer's rule.
fn combination(axes: [[f64; 3]; 3], sum: [f64; 3]) -> [f64; 3] {
    let triple = |[a, b, c]: [[f64; 3]; 3]| {
        a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
    };
    let all = triple(axes);
    std::array::from_fn(|k| {
        let mut other = axes;
        other[k] = sum;
        triple(other) / all
    })
}
