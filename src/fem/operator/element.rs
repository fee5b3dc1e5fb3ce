//! What an element does to the values at its nodes, without its matrix.

use super::super::cell::{Cell, Point};
use crate::real::Real;

/// Places at which the integrals of an element with straight edges are exact: of products of derivatives alone, for which fewer do than
/// for loads.
fn points(cell: Cell, is_curved: bool) -> Vec<Point> {
    let middle = |count: usize| {
        let mut corners = [0.0; 4];
        corners[..count].fill(1.0 / count as f64);
        vec![cell.point(corners, 1.0)]
    };
    match cell {
        _ if is_curved => cell.points(),
        Cell::Triangle3 | Cell::Tetrahedron4 => middle(cell.corners()),
        Cell::Triangle6 => Cell::Triangle3.points(),
        Cell::Tetrahedron10 => Cell::Tetrahedron4.points(),
    }
}

/// How integrals over an element are formed: the derivatives of shape functions at some places, and parts of the volume.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule<T> {
    pub(super) slopes: Vec<Vec<[T; 3]>>,
    pub(super) weights: Vec<T>,
    pub(super) is_curved: bool,
}

impl Rule<f64> {
    pub(super) fn of(cell: Cell, is_curved: bool) -> Self {
        let volume = if cell.dimensions() == 2 { 0.5 } else { 1.0 / 6.0 };
        let points = points(cell, is_curved);
        let slopes = points.iter().map(|point| cell.slopes(point.corners)[..cell.nodes()].to_vec()).collect();
        Self { slopes, weights: points.iter().map(|point| volume * point.weight).collect(), is_curved }
    }

    pub(super) fn rounded<T: Real>(&self) -> Rule<T> {
        let round = |slopes: &Vec<[f64; 3]>| slopes.iter().map(|slope| slope.map(T::from_f64)).collect();
        Rule {
            slopes: self.slopes.iter().map(round).collect(),
            weights: self.weights.iter().map(|&weight| T::from_f64(weight)).collect(),
            is_curved: self.is_curved,
        }
    }
}

/// Cofactors of the derivatives of the D coordinates by direction in the element, and their determinant.
fn cofactors<T: Real, const D: usize>(j: &[[T; 3]; 3]) -> ([[T; 3]; 3], T) {
    let mut c = [[T::default(); 3]; 3];
    if D == 2 {
        c[0][..2].copy_from_slice(&[j[1][1], -j[1][0]]);
        c[1][..2].copy_from_slice(&[-j[0][1], j[0][0]]);
    } else {
        for (a, c) in c.iter_mut().enumerate() {
            for (b, c) in c.iter_mut().enumerate() {
                let [[r, s], [u, v]] = [[(a + 1) % 3, (a + 2) % 3], [(b + 1) % 3, (b + 2) % 3]];
                *c = j[r][u] * j[s][v] - j[r][v] * j[s][u];
            }
        }
    }
    let determinant = (0..D).fold(T::default(), |sum, x| sum + j[0][x] * c[0][x]);
    (c, determinant)
}

impl<T: Real> Rule<T> {
    /// Calls `at` for each place with the gradients of the N shape functions in space, times the determinant, and the volume that it stands
    /// for, divided by the determinant twice. `shape` has the nodes relative to the first.
    fn each_point<const D: usize, const N: usize>(&self, shape: &[[T; 3]; N], mut at: impl FnMut(&[[T; D]; N], T)) {
        let zero = T::default();
        let (mut c, mut determinant) = ([[zero; 3]; 3], zero);
        for (p, (slopes, &weight)) in self.slopes.iter().zip(&self.weights).enumerate() {
            if self.is_curved || p == 0 {
                let mut j = [[zero; 3]; 3];
                for k in 0..D {
                    for x in 0..D {
                        j[k][x] = if self.is_curved {
                            slopes.iter().zip(shape).fold(zero, |sum, (slope, node)| sum + slope[k] * node[x])
                        } else {
                            shape[k + 1][x]
                        };
                    }
                }
                (c, determinant) = cofactors::<T, D>(&j);
            }
            let gradients: [[T; D]; N] = std::array::from_fn(|n| {
                std::array::from_fn(|x| (0..D).fold(zero, |sum, k| sum + slopes[n][k] * c[k][x]))
            });
            at(&gradients, weight / determinant);
        }
    }

    /// q = K u, with κ, or λ and μ if there are D unknowns a node.
    pub(super) fn product<const D: usize, const N: usize, const B: usize>(
        &self,
        shape: &[[T; 3]; N],
        material: [T; 2],
        u: &[[T; B]; N],
        q: &mut [[T; B]; N],
    ) {
        let zero = T::default();
        *q = [[zero; B]; N];
        self.each_point::<D, N>(shape, |gradients, volume| {
            let mut h = [[zero; D]; B];
            for (u, gradient) in u.iter().zip(gradients) {
                for (h, &u) in h.iter_mut().zip(u) {
                    (0..D).for_each(|x| h[x] += gradient[x] * u);
                }
            }
            let mut stress = [[zero; D]; B];
            if B == 1 {
                (0..D).for_each(|x| stress[0][x] = material[0] * volume * h[0][x]);
            } else {
                let [lambda, mu] = material.map(|of| of * volume);
                let trace = (0..D).fold(zero, |sum, x| sum + h[x][x]);
                for a in 0..B {
                    for x in 0..D {
                        stress[a][x] = mu * (h[a][x] + h[x][a]) + if a == x { lambda * trace } else { zero };
                    }
                }
            }
            for (q, gradient) in q.iter_mut().zip(gradients) {
                for (q, stress) in q.iter_mut().zip(&stress) {
                    *q += (0..D).fold(zero, |sum, x| sum + gradient[x] * stress[x]);
                }
            }
        });
    }

    /// The diagonal of K.
    pub(super) fn diagonal<const D: usize, const N: usize, const B: usize>(
        &self,
        shape: &[[T; 3]; N],
        material: [T; 2],
        d: &mut [[T; B]; N],
    ) {
        *d = [[T::default(); B]; N];
        self.each_point::<D, N>(shape, |gradients, volume| {
            let [first, second] = material.map(|of| of * volume);
            for (d, gradient) in d.iter_mut().zip(gradients) {
                let square = gradient.iter().fold(T::default(), |sum, &g| sum + g * g);
                for (d, &g) in d.iter_mut().zip(gradient) {
                    *d += if B == 1 { first * square } else { (first + second) * g * g + second * square };
                }
            }
        });
    }
}
