//! Which entries of a matrix couple strongly.

use std::ops::Range;

use rayon::prelude::*;

use super::sparse::{BLOCK, Sparse};

/// θ of the measure.
const THETA: f32 = 0.25;

/// All couplings of a row to b together, of its diagonal, below which none is strong.
const DOMINANT: f32 = 0.1;

/// The measure: a_ij is strong if a_ij² > θ² m_i m_j, where m_i is the largest |a_ik| of row i beside the diagonal. It has the same
/// bits for a_ij and a_ji.
#[derive(Debug)]
pub(super) struct Strength {
    /// m of each row; where processes share the rows, of the columns that are others', too.
    pub(super) largest: Vec<f32>,
}

impl Strength {
    /// For a matrix whose diagonal is 1, with the near-null vector `b`. Nothing is strong in a row whose couplings to b together are far
    /// below its diagonal: the smoother does all there.
    pub(super) fn of(a: &Sparse, b: &[f32]) -> Self {
        let rows = a.rows();
        let largest = |i: usize| {
            let (mut largest, mut sum) = (0f32, 0f32);
            for (j, v) in rows.row(i).filter(|&(j, _)| j != i) {
                largest = largest.max(v.abs());
                sum += v.abs() * b[j];
            }
            if sum < DOMINANT * b[i] { f32::INFINITY } else { largest }
        };
        Self { largest: par_rows(a.n_rows(), largest) }
    }

    /// Whether the entry `value` at (i, j) is strong; that of a diagonal is not.
    #[inline]
    pub(super) fn is_strong(&self, i: usize, j: usize, value: f32) -> bool {
        i != j && value * value > THETA * THETA * (self.largest[i] * self.largest[j])
    }

    /// The strong neighbours of all rows, among these.
    pub(super) fn graph(&self, a: &Sparse) -> Graph {
        let (rows, n) = (a.rows(), a.n_rows());
        let parts: Vec<(Vec<u32>, Vec<u32>)> = (0..n.div_ceil(BLOCK))
            .into_par_iter()
            .map(|k| {
                let (mut lengths, mut neighbours) = (Vec::with_capacity(BLOCK), Vec::new());
                for i in k * BLOCK..n.min((k + 1) * BLOCK) {
                    let before = neighbours.len();
                    let strong = rows.row(i).filter(|&(j, v)| j < n && self.is_strong(i, j, v));
                    neighbours.extend(strong.map(|(j, _)| j as u32));
                    lengths.push((neighbours.len() - before) as u32);
                }
                (lengths, neighbours)
            })
            .collect();
        let mut starts = Vec::with_capacity(n + 1);
        let mut end = 0;
        starts.push(0);
        for length in parts.iter().flat_map(|(lengths, _)| lengths) {
            end += *length as usize;
            starts.push(end);
        }
        let neighbours = parts.into_iter().map(|(_, neighbours)| neighbours).collect::<Vec<_>>().concat();
        Graph { starts, neighbours }
    }
}

/// Elements made row by row.
pub(super) fn par_rows<T: Send>(n: usize, element: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..n).into_par_iter().with_min_len(BLOCK).map(element).collect()
}

/// The strong neighbours of each row.
#[derive(Debug)]
pub(super) struct Graph {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn entries(&self, i: usize) -> Range<usize> {
        self.starts[i]..self.starts[i + 1]
    }

    /// The strong neighbours of a row.
    #[inline]
    pub(super) fn of(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.neighbours[self.entries(i)].iter().map(|&j| j as usize)
    }
}
