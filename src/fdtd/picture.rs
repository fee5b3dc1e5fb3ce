//! Pictures of a component: red above 0, blue below, bodies in grey.

use std::io::{self, Write};

use super::problem::Problem;
use crate::picture::{DIVERGING, colour, write_png};

/// Pixels of the longer side, about.
const SIDE: usize = 720;
/// Conductors, and what other bodies are mixed with.
const CONDUCTOR: [f64; 3] = [64.0, 64.0, 64.0];
const BODY: [f64; 3] = [110.0, 110.0, 110.0];
/// How much of that they take.
const TINT: f64 = 0.22;
/// Of all values, this part lies within the range that is found by them.
const WITHIN: f64 = 0.998;

/// A plane of values, and what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Cells across and up.
    size: [usize; 2],
    values: Vec<f64>,
    /// The material of each cell, 0 the background.
    index: Vec<u8>,
    conductors: Vec<bool>,
    /// The value of the strongest colour.
    range: f64,
}

impl Picture {
    /// A component in a problem, as [`Simulation::field`](super::Simulation::field) gives it: in two dimensions all of it, in three the plane
    /// across an axis at a cell. Without a range that is given, about all values are within that.
    ///
    /// # Panics
    /// If there is not a value for each cell, or there is no such plane.
    #[must_use]
    pub fn of(problem: &Problem, field: &[f64], (axis, at): (usize, usize), range: Option<f64>) -> Self {
        let grid = problem.grid;
        assert!(field.len() == grid.len() && at < grid.cells[axis], "the field of a problem, and a plane of it");
        let [across, up] = [[1, 2], [0, 2], [0, 1]][axis];
        let place = |u: usize, v: usize| u * grid.stride(across) + v * grid.stride(up) + at * grid.stride(axis);
        let size = [grid.cells[across], grid.cells[up]];
        let cells = (0..size[1]).flat_map(|v| (0..size[0]).map(move |u| (u, v)));
        let places: Vec<usize> = cells.map(|(u, v)| place(u, v)).collect();
        let values: Vec<f64> = places.iter().map(|&cell| field[cell]).collect();
        let index = places.iter().map(|&cell| problem.index[cell]).collect();
        let conductors = problem.materials.iter().map(|material| material.conductor).collect();
        let range = range.unwrap_or_else(|| usual_range(&values));
        Self { size, values, index, conductors, range }
    }

    /// The value of the strongest colour.
    #[must_use]
    pub fn range(&self) -> f64 {
        self.range
    }

    /// Writes it as a PNG, x to the right, some 720 pixels wide or high. Where cells share a pixel, that of the largest value counts.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_png(&self, out: &mut dyn Write) -> io::Result<()> {
        let longest = self.size[0].max(self.size[1]);
        let (zoom, each) = ((SIDE / longest).max(1), longest.div_ceil(2 * SIDE));
        let [width, height] = self.size.map(|n| n.div_ceil(each));
        let mut row = Vec::with_capacity(3 * width * zoom);
        let mut pixels = Vec::with_capacity(3 * width * zoom * height * zoom);
        for v in (0..height).rev() {
            row.clear();
            for u in 0..width {
                let colour = self.colour(u * each, v * each, each);
                (0..zoom).for_each(|_| row.extend(colour));
            }
            (0..zoom).for_each(|_| pixels.extend_from_slice(&row));
        }
        // no overflow: sides have some 1000 pixels
        write_png(out, [width * zoom, height * zoom].map(|side| side as u32), &pixels)
    }

    /// The colour of a square of cells.
    fn colour(&self, u: usize, v: usize, each: usize) -> [u8; 3] {
        let [width, height] = self.size;
        let cells = (v..(v + each).min(height)).flat_map(|v| (u..(u + each).min(width)).map(move |u| u + width * v));
        let strongest = cells.reduce(|a, b| if self.values[b].abs() > self.values[a].abs() { b } else { a });
        let cell = strongest.unwrap_or(0);
        let material = self.index[cell];
        if self.conductors[usize::from(material)] {
            return CONDUCTOR.map(|c| c as u8);
        }
        let own = colour(&DIVERGING, 0.5 + 0.5 * (self.values[cell] / self.range).clamp(-1.0, 1.0));
        let tint = if material == 0 { 0.0 } else { TINT };
        [0, 1, 2].map(|c| (own[c] + tint * (BODY[c] - own[c])) as u8)
    }
}

/// What most values are within, and 1 if all are 0.
fn usual_range(values: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).filter(|v| v.is_finite() && *v > 0.0).collect();
    if sizes.is_empty() {
        return 1.0;
    }
    let at = ((sizes.len() - 1) as f64 * WITHIN) as usize;
    *sizes.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::super::{Grid, Material, Mode, Shape, Vacuum};
    use super::*;

    #[test]
    fn colours_and_bodies() {
        let grid = Grid::new(Mode::Te, &[3, 2], &[1.0; 2]).unwrap();
        let materials = vec![Material::vacuum("air"), Material::conductor("metal")];
        let mut problem = Problem::new(grid, Vacuum::default(), materials).unwrap();
        problem.paint(&Shape::Box { from: vec![2.0, 0.0], to: vec![3.0, 1.0] }, "metal").unwrap();
        let picture = Picture::of(&problem, &[0.0, 1.0, 9.0, -1.0, f64::NAN, 0.5], (2, 0), Some(1.0));
        let mut png = Vec::new();
        picture.write_png(&mut png).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (720, 480));
        let at = |u: usize, v: usize| {
            let first = 3 * (u * 240 + 120 + 720 * ((1 - v) * 240 + 120));
            <[u8; 3]>::try_from(&pixels[first..first + 3]).unwrap()
        };
        assert_eq!([at(0, 0), at(1, 0), at(2, 0)], [[250; 3], [103, 0, 31], [64; 3]]);
        assert_eq!([at(0, 1), at(1, 1), at(2, 1)], [[5, 48, 97], [250; 3], [214, 96, 77]]);
        assert_eq!(Picture::of(&problem, &[0.0; 6], (2, 0), None).range(), 1.0);
    }
}
