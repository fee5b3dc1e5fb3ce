//! What a mesh is like: sizes, shapes and numbering.

use serde::Serialize;

use super::local::Geometry;
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
            bounds: [[f64::INFINITY, f64::NEG_INFINITY]; 3],
            volume: 0.0,
            worst_shape: f64::INFINITY,
            mean_shape: 0.0,
            worst_element: 0,
            bandwidth: 0,
        };
        for point in self.points() {
            for ([least, most], x) in quality.bounds.iter_mut().zip(point) {
                (*least, *most) = (least.min(*x), most.max(*x));
            }
        }
        for element in 0..self.len() {
            quality.volume += self.volume(element);
            let shape = self.shape(element);
            quality.mean_shape += shape / self.len() as f64;
            if shape < quality.worst_shape {
                (quality.worst_shape, quality.worst_element) = (shape, element + 1);
            }
            let nodes = self.element(element).iter();
            let [least, most] = [nodes.clone().min(), nodes.max()].map(|node| node.copied().unwrap_or(0));
            quality.bandwidth = quality.bandwidth.max((most - least) as usize);
        }
        quality
    }

    /// The area, or the volume, of an element.
    pub(super) fn volume(&self, element: usize) -> f64 {
        self.cell().points().iter().map(|at| Geometry::of(self, element, at).volume(self.cell(), at)).sum()
    }

    /// See [`Quality::worst_shape`].
    fn shape(&self, element: usize) -> f64 {
        let (own, cell) = (self.element(element), self.cell());
        let place = |k: usize| self.points()[own[k] as usize];
        let edges =
            cell.edges().iter().map(|&[a, b]| place(a).iter().zip(place(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>());
        let (squares, volume) = (edges.sum::<f64>(), self.volume(element));
        match cell.dimensions() {
            2 => 4.0 * 3.0_f64.sqrt() * volume / squares,
            _ => 12.0 * (3.0 * volume).powf(2.0 / 3.0) / squares,
        }
    }
}
