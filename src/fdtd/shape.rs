//! Bodies that are painted on a grid.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::grid::Grid;
use crate::error::{Error, Result};

/// A body. Lengths are in cells, along each axis from the first wall on; a cell belongs to the body if its middle does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// From one corner to the opposite one.
    Box {
        /// The corner with the least coordinates,
        from: Vec<f64>,
        /// and the opposite one.
        to: Vec<f64>,
    },
    /// A ball, or in two dimensions a disc.
    Ball {
        /// The middle.
        centre: Vec<f64>,
        /// The radius.
        radius: f64,
    },
    /// All within a distance from a line of finite length.
    Rod {
        /// One end,
        from: Vec<f64>,
        /// the other,
        to: Vec<f64>,
        /// and the distance.
        radius: f64,
    },
    /// The points of a polygon; in three dimensions a prism along z.
    Polygon {
        /// The corners, x and y, in order.
        corners: Vec<[f64; 2]>,
    },
}

impl Shape {
    /// Refuses what has the wrong number of coordinates, or numbers that are none.
    pub(crate) fn check(&self, grid: &Grid) -> Result<()> {
        let axes = grid.mode().dimensions();
        let points: Vec<(&str, &Vec<f64>)> = match self {
            Self::Box { from, to } | Self::Rod { from, to, .. } => vec![("from", from), ("to", to)],
            Self::Ball { centre, .. } => vec![("centre", centre)],
            Self::Polygon { corners } => {
                if corners.len() < 3 || corners.iter().flatten().any(|v| !v.is_finite()) {
                    return Err(Error::Usage("a polygon has three corners, at least, of finite numbers".into()));
                }
                return Ok(());
            }
        };
        for (what, point) in points {
            if point.len() != axes || point.iter().any(|v| !v.is_finite()) {
                return Err(Error::Usage(format!("{what} = {point:?} is no point of a grid of {axes} dimensions")));
            }
        }
        match self {
            Self::Ball { radius, .. } | Self::Rod { radius, .. } if !(radius.is_finite() && *radius > 0.0) => {
                Err(Error::Usage(format!("the radius is {radius}; it must be above 0, in cells")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a point is inside.
    fn has(&self, point: [f64; 3]) -> bool {
        let distance2 = |to: &[f64]| -> f64 { to.iter().zip(point).map(|(a, b)| (a - b) * (a - b)).sum() };
        match self {
            Self::Box { from, to } => from.iter().zip(to).zip(point).all(|((from, to), at)| (*from..*to).contains(&at)),
            Self::Ball { centre, radius } => distance2(centre) < radius * radius,
            Self::Rod { from, to, radius } => {
                let along: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
                let length2: f64 = along.iter().map(|v| v * v).sum();
                let way: f64 = along.iter().zip(from).zip(point).map(|((v, from), at)| v * (at - from)).sum();
                let part = if length2 > 0.0 { (way / length2).clamp(0.0, 1.0) } else { 0.0 };
                let nearest: Vec<f64> = from.iter().zip(&along).map(|(from, v)| from + part * v).collect();
                distance2(&nearest) < radius * radius
            }
            Self::Polygon { corners } => {
                let [x, y, _] = point;
                let edges = corners.iter().zip(corners.iter().cycle().skip(1));
                // a ray along x crosses the outline an odd number of times
                let crosses = |(a, b): &(&[f64; 2], &[f64; 2])| {
                    (a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
                };
                edges.filter(crosses).count() % 2 == 1
            }
        }
    }

    /// Gives its cells this material, planes in parallel.
    pub(crate) fn paint(&self, grid: &Grid, material: u8, index: &mut [u8]) {
        let [nx, ny, _] = grid.cells;
        index.par_chunks_mut(nx).enumerate().for_each(|(row, cells)| {
            let (y, z) = ((row % ny) as f64 + 0.5, (row / ny) as f64 + 0.5);
            for (x, cell) in cells.iter_mut().enumerate() {
                if self.has([x as f64 + 0.5, y, z]) {
                    *cell = material;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Mode;
    use super::*;

    fn painted(shape: &Shape) -> Vec<String> {
        let grid = Grid::new(Mode::Te, &[6, 4], &[1.0; 2]).unwrap();
        shape.check(&grid).unwrap();
        let mut index = vec![0; grid.len()];
        shape.paint(&grid, 1, &mut index);
        index.chunks(6).map(|row| row.iter().map(|m| if *m == 1 { '#' } else { '.' }).collect()).collect()
    }

    #[test]
    fn bodies_in_cells() {
        assert_eq!(
            painted(&Shape::Box { from: vec![1.0, 1.0], to: vec![3.0, 2.0] }),
            ["......", ".##...", "......", "......"]
        );
        assert_eq!(
            painted(&Shape::Ball { centre: vec![2.0, 2.0], radius: 1.0 }),
            ["......", ".##...", ".##...", "......"]
        );
        assert_eq!(
            painted(&Shape::Rod { from: vec![1.5, 0.5], to: vec![4.5, 0.5], radius: 0.6 }),
            [".####.", "......", "......", "......"]
        );
        let triangle = Shape::Polygon { corners: vec![[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]] };
        assert_eq!(painted(&triangle), ["###...", "##....", "#.....", "......"]);
    }

    #[test]
    fn bodies_that_are_none() {
        let grid = Grid::new(Mode::Te, &[6, 4], &[1.0; 2]).unwrap();
        let of = |shape: Shape| shape.check(&grid).unwrap_err().to_string();
        assert!(of(Shape::Box { from: vec![0.0; 3], to: vec![1.0, 1.0] }).contains("2 dimensions"));
        assert!(of(Shape::Ball { centre: vec![1.0, 1.0], radius: 0.0 }).contains("radius"));
        assert!(of(Shape::Polygon { corners: vec![[0.0, 0.0]; 2] }).contains("three corners"));
    }
}
