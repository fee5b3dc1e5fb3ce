//! The cross-section of a capacitor of two plates.

use super::cell::Cell;
use super::mesh::{Mesh, Parts};
use crate::error::{Error, Result};

const INCH: f64 = 0.0254;
/// Half of the outer square's side, in m.
const OUTER: f64 = 0.08;
/// Half of the plates' width,
const HALF_PLATE: f64 = INCH;
/// the distance between them,
const GAP: f64 = INCH / 32.0;
/// and their thickness.
const THICKNESS: f64 = INCH / 64.0;

/// For each cell across the gap: cells from an end of a plate to its middle, to the outer square beside it, and from a plate up to the
/// outer square.
const ALONG: f64 = 2.5;
const BESIDE: f64 = 11.75;
const ABOVE: f64 = 9.0;

/// The most cells across the gap.
const MOST: usize = 200;

impl Mesh {
    /// The air round two plates, 2 in wide and 1/64 in thick, 1/32 in apart, in the middle of a square of 16 cm; lengths in m. So many cells are across the
    /// gap; away from the plates' ends they grow. Sides are `upper` and `lower`, the surfaces of the plates, which are holes, and
    /// `outer`; the region is `air`.
    ///
    /// With 4 it has 9277 nodes and 18,080 triangles; with twice as many cells all are about half as large: some 580 n² nodes. R. L. Boylestad,
    /// *Introductory Circuit Analysis*, example 10.4, has the plates.
    ///
    /// # Errors
    /// [`Error::Usage`] for none, or more than 200.
    pub fn capacitor(across: usize) -> Result<Self> {
        if !(1..=MOST).contains(&across) {
            return Err(Error::Usage(format!("a capacitor has from 1 to {MOST} cells across the gap, not {across}")));
        }
        let step = GAP / across as f64;
        let count = |each: f64| ((each * across as f64) as usize).max(1);
        let inner = graded(HALF_PLATE, count(ALONG), step);
        let beside = graded(OUTER - HALF_PLATE, count(BESIDE), step);
        let plate = across.div_ceil(2);
        let above = graded(OUTER - 0.5 * GAP - THICKNESS, count(ABOVE), step);

        // from the left to the right, and from below
        let mut xs: Vec<f64> = beside.iter().rev().map(|s| -HALF_PLATE - s).collect();
        xs.extend(inner.iter().map(|s| s - HALF_PLATE).skip(1));
        xs.extend(inner.iter().rev().map(|s| HALF_PLATE - s).skip(1));
        xs.extend(beside.iter().map(|s| HALF_PLATE + s).skip(1));
        let even =
            |from: f64, length: f64, count: usize| (1..=count).map(move |k| from + length * k as f64 / count as f64);
        let (low, high) = (-0.5 * GAP - THICKNESS, 0.5 * GAP + THICKNESS);
        let mut ys: Vec<f64> = above.iter().rev().map(|s| low - s).collect();
        ys.extend(even(low, THICKNESS, plate));
        ys.extend(even(-0.5 * GAP, GAP, across));
        ys.extend(even(0.5 * GAP, THICKNESS, plate));
        ys.extend(above.iter().map(|s| high + s).skip(1));
        let columns = [beside.len() - 1, beside.len() - 1 + 2 * (inner.len() - 1)];
        let below = above.len() - 1;
        let rows = [[below, below + plate], [below + plate + across, below + 2 * plate + across]];
        Plates { xs, ys, columns, rows }.mesh()
    }
}

/// Columns and rows of rectangles, of which two blocks are left out.
struct Plates {
    xs: Vec<f64>,
    ys: Vec<f64>,
    /// The first line of the blocks, and the last,
    columns: [usize; 2],
    /// and of the lower and the upper one.
    rows: [[usize; 2]; 2],
}

impl Plates {
    fn mesh(self) -> Result<Mesh> {
        let [width, height] = [&self.xs, &self.ys].map(|lines| lines.len() - 1);
        let mut numbers = vec![u32::MAX; (width + 1) * (height + 1)];
        let mut points = Vec::new();
        for j in 0..=height {
            for i in 0..=width {
                let is_inside =
                    |k: usize| self.columns[0] < i && i < self.columns[1] && self.rows[k][0] < j && j < self.rows[k][1];
                if !is_inside(0) && !is_inside(1) {
                    numbers[j * (width + 1) + i] = points.len() as u32;
                    points.push([self.xs[i], self.ys[j], 0.0]);
                }
            }
        }
        let node = |i: usize, j: usize| numbers[j * (width + 1) + i];
        let mut elements = Parts { names: vec!["air".into()], ..Parts::default() };
        for j in 0..height {
            for i in 0..width {
                if (0..2).any(|k| self.is_plate(k, i, j)) {
                    continue;
                }
                let [a, b, c, d] = [node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)];
                // as in a mirror on all four sides of the middle
                let is_rising = (2 * i >= width) == (2 * j >= height);
                elements.nodes.extend(if is_rising { [a, b, c, a, c, d] } else { [a, b, d, b, c, d] });
                elements.groups.extend([0, 0]);
            }
        }
        let mut boundary = Parts { names: ["upper", "lower", "outer"].map(String::from).to_vec(), ..Parts::default() };
        let [left, right] = self.columns;
        let blocks = [([left, right], self.rows[1]), ([left, right], self.rows[0]), ([0, width], [0, height])];
        for (side, ([left, right], [bottom, top])) in blocks.into_iter().enumerate() {
            let across = (left..right).flat_map(|i| [bottom, top].map(|j| [node(i, j), node(i + 1, j)]));
            let up = (bottom..top).flat_map(|j| [left, right].map(|i| [node(i, j), node(i, j + 1)]));
            for edge in across.chain(up) {
                boundary.nodes.extend(edge);
                boundary.groups.push(side as u32);
            }
        }
        Mesh::new(Cell::Triangle3, points, elements, boundary)
    }

    /// Whether a rectangle belongs to a plate.
    fn is_plate(&self, k: usize, i: usize, j: usize) -> bool {
        (self.columns[0]..self.columns[1]).contains(&i) && (self.rows[k][0]..self.rows[k][1]).contains(&j)
    }
}

/// Lines from 0 to a length, whose distance grows by the same factor from line to line: with many, from the first step on.
fn graded(length: f64, count: usize, first: f64) -> Vec<f64> {
    // s(t) = L (e^{c t} − 1) / (e^c − 1), whose slope at 0 is count × first
    let slope = |c: f64| c / c.exp_m1();
    let wanted = (count as f64 * first / length).min(1.0 - 1e-9);
    let (mut low, mut high) = (1e-9, 60.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if slope(middle) > wanted { low = middle } else { high = middle }
    }
    let c = 0.5 * (low + high);
    let mut lines: Vec<f64> =
        (0..=count).map(|k| length * (c * k as f64 / count as f64).exp_m1() / c.exp_m1()).collect();
    lines[count] = length;
    lines
}
