//! Pictures of fields in the plane, with lines of equal values.

use std::io::{self, Write};

use super::assembly::Problem;
use super::mesh::Mesh;
use crate::error::{Error, Result};
use crate::picture::{DIVERGING, SEQUENTIAL, colour, write_png};

/// Pixels of the longer side.
const SIDE: f64 = 1000.0;
/// Values between lines, of all from the least to the largest: a part of them.
const STEPS: f64 = 12.0;
/// How dark lines are.
const LINE: f64 = 0.72;
const PAPER: [u8; 3] = [255; 3];
/// The corners of the parts of a triangle: of one with middles of edges, the triangles between these.
const WHOLE: [[usize; 3]; 1] = [[0, 1, 2]];
const PARTS: [[usize; 3]; 4] = [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]];

/// Values on a mesh in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    size: [usize; 2],
    /// Rows from below; what is no number is outside of the mesh.
    values: Vec<f64>,
    range: [f64; 2],
}

impl Problem<'_> {
    /// A picture of a solution: of u, or of the size of displacements. `window` is the part of the plane that is drawn, as its lower left and upper right
    /// corner; by default all of the mesh.
    ///
    /// # Errors
    /// [`Error::Usage`] for a mesh in space, or a window of no size.
    ///
    /// # Panics
    /// If there is not a number for each unknown.
    pub fn picture(&self, x: &[f64], window: Option<[[f64; 2]; 2]>) -> Result<Picture> {
        let (mesh, b) = (self.mesh, self.unknowns());
        assert_eq!(x.len(), b * mesh.points().len(), "a solution has a number for each unknown");
        if mesh.cell().dimensions() != 2 {
            return Err(Error::Usage("pictures are of meshes in the plane; a .vtu file shows those in space".into()));
        }
        let size = |own: &[f64]| own.iter().map(|u| u * u).sum::<f64>().sqrt();
        let values: Vec<f64> = if b == 1 { x.to_vec() } else { x.chunks_exact(b).map(size).collect() };
        let (from, [width, height]) = window_of(mesh, window)?;
        let zoom = SIDE / width.max(height);
        let size = [width, height].map(|side| ((side * zoom).round() as usize).max(1));
        let mut picture = Picture { size, values: vec![f64::NAN; size[0] * size[1]], range: [0.0; 2] };
        picture.draw(mesh, &values, from, zoom);
        let seen = || picture.values.iter().filter(|value| value.is_finite());
        let range = [seen().copied().fold(f64::INFINITY, f64::min), seen().copied().fold(f64::NEG_INFINITY, f64::max)];
        // what differs by rounding alone has no lines
        let is_constant = range[1] - range[0] <= 1e-12 * range[1].abs();
        let range = if is_constant { [range[1]; 2] } else { range };
        // 0 in the middle of colours if values are on both sides of it
        let largest = range[1].max(-range[0]);
        picture.range = if range[0] < 0.0 && range[1] > 0.0 { [-largest, largest] } else { range };
        Ok(picture)
    }
}

/// The lower left corner of the part of the plane that a picture shows, and its sides.
///
/// # Errors
/// [`Error::Usage`] for a window of no size, or without anything of the mesh.
pub(super) fn window_of(mesh: &Mesh, window: Option<[[f64; 2]; 2]>) -> Result<([f64; 2], [f64; 2])> {
    let [[left, right], [bottom, top], _] = mesh.bounds();
    let [from, to] = window.unwrap_or([[left, bottom], [right, top]]);
    let sides = [to[0] - from[0], to[1] - from[1]];
    if !sides.iter().all(|side| *side >= f64::MIN_POSITIVE * SIDE && side.is_finite()) {
        return Err(Error::Usage(format!("a picture from {from:?} to {to:?} has no size")));
    }
    if from[0] > right || to[0] < left || from[1] > top || to[1] < bottom {
        return Err(Error::Usage(format!("a picture from {from:?} to {to:?} shows nothing of the mesh")));
    }
    Ok((from, sides))
}

impl Picture {
    /// The values of the first and the last colour: the least and the largest in the picture, or of the same size where these have different signs.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        self.range
    }

    fn draw(&mut self, mesh: &Mesh, values: &[f64], from: [f64; 2], zoom: f64) {
        let parts = if mesh.cell().order() == 1 { &WHOLE[..] } else { &PARTS[..] };
        for element in 0..mesh.len() {
            let nodes = mesh.element(element);
            let own: Vec<f64> = nodes.iter().map(|&node| values[node as usize]).collect();
            let places = nodes.iter().map(|&node| mesh.points()[node as usize]);
            let places: Vec<[f64; 2]> = places.map(|p| [0, 1].map(|x| (p[x] - from[x]) * zoom - 0.5)).collect();
            for part in parts {
                self.triangle(part.map(|k| places[k]), |weights| {
                    // where that is in the whole element
                    let mut corners = [0.0; 4];
                    for (&k, weight) in part.iter().zip(weights) {
                        match k {
                            0..3 => corners[k] += weight,
                            _ => mesh.cell().edges()[k - 3].iter().for_each(|&corner| corners[corner] += 0.5 * weight),
                        }
                    }
                    own.iter().zip(mesh.cell().shapes(corners)).map(|(value, shape)| value * shape).sum()
                });
            }
        }
    }

    /// Sets the pixels whose middles are in a triangle, to a function of the weights of its corners.
    fn triangle(&mut self, [a, b, c]: [[f64; 2]; 3], value: impl Fn([f64; 3]) -> f64) {
        let cross =
            |p: [f64; 2], q: [f64; 2], r: [f64; 2]| (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
        let area = cross(a, b, c);
        let pixels = |x: usize| {
            let (least, most) = (a[x].min(b[x]).min(c[x]), a[x].max(b[x]).max(c[x]));
            // a number below 0 becomes 0
            least.ceil() as usize..((most.floor() + 1.0) as usize).min(self.size[x])
        };
        let (columns, rows) = (pixels(0), pixels(1));
        for v in rows {
            for u in columns.clone() {
                let place = [u as f64, v as f64];
                let weights = [cross(place, b, c), cross(a, place, c), cross(a, b, place)].map(|part| part / area);
                if weights.iter().all(|weight| *weight >= -1e-9) {
                    self.values[v * self.size[0] + u] = value(weights);
                }
            }
        }
    }

    /// Writes it as a PNG, x to the right, y up, 1000 pixels wide or high: violet to yellow, or blue below 0 and red above it, and lines at
    /// twelfths of the range.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_png(&self, out: &mut dyn Write) -> io::Result<()> {
        let ([width, height], [least, most]) = (self.size, self.range);
        let scale = if least < 0.0 && most > 0.0 { &DIVERGING } else { &SEQUENTIAL };
        let place = |value: f64| if most > least { (value - least) / (most - least) } else { 0.5 };
        let mut pixels = Vec::with_capacity(3 * width * height);
        for v in (0..height).rev() {
            for u in 0..width {
                let own = place(self.values[v * width + u]);
                if own.is_nan() {
                    pixels.extend(PAPER);
                    continue;
                }
                let step = |part: f64| (STEPS * part).floor().min(STEPS - 1.0);
                let is_line = [(u + 1, v), (u, v + 1)].into_iter().any(|(u, v)| {
                    let other = if u < width && v < height { place(self.values[v * width + u]) } else { own };
                    !other.is_nan() && step(other) != step(own)
                });
                let shade = if is_line { LINE } else { 1.0 };
                pixels.extend(colour(scale, own).map(|c| (shade * c) as u8));
            }
        }
        // no overflow: sides have 1000 pixels
        write_png(out, [width as u32, height as u32], &pixels)
    }
}
