//! What a mesh is like: sizes, shapes and numbering.

use serde::Serialize;

use super::assembly::in_order;
use super::cell::Point;
use super::local;
use super::mesh::Mesh;

/// Facts about a mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quality {
    /// The smallest and the largest coordinate along each axis.
    pub bounds: [[f64; 2]; 3],
    /// The area, or the volume.
    pub volume: f64,
    /// The worst shape, between 0 and 1: 4 √3 A / Σ l² of a triangle of area A, 12 (3 V)^⅔ / Σ l² of a tetrahedron of volume V, with corners'
    /// distances l. 1 is an equilateral one.
    pub worst_shape: f64,
    /// The mean of all shapes.
    pub mean_shape: f64,
    /// The element with the worst, from 1.
    pub worst_element: usize,
    /// The largest difference of the numbers of two nodes of an element.
    pub bandwidth: usize,
}

impl Mesh {
    /// Looks at all elements.
    #[must_use]
    pub fn quality(&self) -> Quality {
        let mut quality = Quality {
            bounds: self.bounds(),
            volume: 0.0,
            worst_shape: f64::INFINITY,
            mean_shape: 0.0,
            worst_element: 0,
            bandwidth: 0,
        };
        let points = self.cell().points();
        let of_element = |element: usize| {
            let volume = self.volume(element, &points);
            let nodes = self.element(element).iter();
            let [least, most] = [nodes.clone().min(), nodes.max()].map(|node| node.copied().unwrap_or(0));
            (volume, self.shape(element, volume), most - least)
        };
        in_order(self.len(), of_element, |element, &(volume, shape, bandwidth)| {
            quality.volume += volume;
            quality.mean_shape += shape / self.len() as f64;
            if shape < quality.worst_shape {
                (quality.worst_shape, quality.worst_element) = (shape, element + 1);
            }
            quality.bandwidth = quality.bandwidth.max(bandwidth as usize);
        });
        quality
    }

    /// The smallest and the largest coordinate along each axis.
    pub(super) fn bounds(&self) -> [[f64; 2]; 3] {
        let mut bounds = [[f64::INFINITY, f64::NEG_INFINITY]; 3];
        for point in self.points() {
            for ([least, most], x) in bounds.iter_mut().zip(point) {
                (*least, *most) = (least.min(*x), most.max(*x));
            }
        }
        bounds
    }

    /// The area, or the volume, of an element, by the [points](crate::fem::Cell::points) of its shape.
    pub(super) fn volume(&self, element: usize, points: &[Point]) -> f64 {
        points.iter().map(|at| local::volume(self, element, at)).sum()
    }

    /// See [`Quality::worst_shape`].
    fn shape(&self, element: usize, volume: f64) -> f64 {
        let (own, cell) = (self.element(element), self.cell());
        let place = |k: usize| self.points()[own[k] as usize];
        let edges =
            cell.edges().iter().map(|&[a, b]| place(a).iter().zip(place(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>());
        let squares = edges.sum::<f64>();
        match cell.dimensions() {
            2 => 4.0 * 3.0_f64.sqrt() * volume / squares,
            _ => 12.0 * (3.0 * volume).powf(2.0 / 3.0) / squares,
        }
    }
}
