//! Matrices with several unknowns a node, and several near-null vectors (Vaněk, Mandel and Brezina 1996, doi 10.1007/BF02238511, section 5).
//!
//! Nodes are aggregated, by the norms of the blocks between them. On each aggregate, T has an orthonormal basis of what the near-null vectors
//! are there, B = T R: each aggregate becomes a node whose unknowns are the columns of T, and R are the near-null vectors of the next level.

use rayon::prelude::*;

use super::aggregate::{Aggregates, NONE};
use super::product::product_of_blocks;
use super::sparse::Sparse;
use super::strength::{Strength, par_rows};

/// A vector of which less than this part of its length squared is not in those before it is in their span.
const DEPENDENT: f64 = 1e-10;

/// ω times the largest eigenvalue of A.
pub(super) const OMEGA: f32 = 4.0 / 3.0;

/// The near-null vectors of a level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Modes {
    /// Rows of a node.
    pub(super) unknowns: usize,
    /// How many vectors there are.
    pub(super) width: usize,
    /// Their elements, row by row.
    pub(super) values: Vec<f32>,
    /// Whether it is one vector, of positive elements, for nodes of one unknown.
    pub(super) is_positive: bool,
}

impl Modes {
    /// Of nodes with so many unknowns each.
    pub(super) fn new(unknowns: usize, width: usize, values: Vec<f32>) -> Self {
        let is_positive = unknowns == 1 && width == 1 && values.par_iter().all(|v| *v > 0.0);
        Self { unknowns, width, values, is_positive }
    }

    /// Divides each row by its factor; where that is 0, nothing is left of it.
    pub(super) fn scale(&mut self, factors: &[f32]) {
        let least = if self.is_positive { f32::MIN_POSITIVE } else { 0.0 };
        for (row, factor) in self.values.chunks_mut(self.width).zip(factors) {
            row.iter_mut().for_each(|v| *v = if *factor > 0.0 { *v / factor } else { least });
        }
    }

    fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.width..][..self.width]
    }

    /// The length of what the vectors are at a node.
    pub(super) fn at_nodes(&self) -> Vec<f32> {
        let of_node = self.unknowns * self.width;
        par_rows(self.values.len() / of_node.max(1), |node| {
            norm(&self.values[node * of_node..][..of_node], 1).max(f32::MIN_POSITIVE)
        })
    }
}

/// The root of the sum of squares over `parts`.
fn norm<'a>(values: impl IntoIterator<Item = &'a f32>, parts: usize) -> f32 {
    let sum = values.into_iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>();
    (sum / parts as f64).sqrt() as f32
}

/// The norms of the blocks of a matrix whose rows are nodes of so many unknowns, in full blocks; of the diagonal, 1.
pub(super) fn condensed(a: &Sparse, unknowns: usize) -> Sparse {
    let rows = a.rows();
    Sparse::by_blocks(
        (a.n_rows() / unknowns, a.n_cols / unknowns),
        || (),
        |range, (), block| {
            for node in range {
                let first = node * unknowns;
                let columns = rows.arrays(first).0.iter().step_by(unknowns);
                for (k, &column) in columns.enumerate() {
                    let other = column as usize / unknowns;
                    let values = (first..first + unknowns).flat_map(|i| &rows.arrays(i).1[k * unknowns..][..unknowns]);
                    block.push(other as u32, if other == node { 1.0 } else { norm(values, unknowns) });
                }
                block.end_row();
            }
        },
    )
}

/// Aggregates of nodes.
pub(super) fn aggregates(a: &Sparse, modes: &Modes) -> Aggregates {
    let condensed = condensed(a, modes.unknowns);
    let strength = Strength::of(&condensed, &modes.at_nodes());
    Aggregates::of(&condensed, &strength, &strength.graph(&condensed))
}

/// T, and the near-null vectors of the next level.
pub(super) struct Bases<'a> {
    aggregates: &'a Aggregates,
    unknowns: usize,
    width: usize,
    /// The entries of T, row by row.
    pub(super) values: Vec<f32>,
    pub(super) next: Modes,
}

impl<'a> Bases<'a> {
    pub(super) fn new(aggregates: &'a Aggregates, modes: &Modes) -> Self {
        let &Modes { unknowns, width, .. } = modes;
        let members = members(aggregates);
        let factors: Vec<Vec<f64>> = members.par_iter().with_min_len(64).map(|nodes| factor(nodes, modes)).collect();
        let row = |i: usize| {
            let mut of_row = vec![0f32; width];
            if let Some(r) = factors.get(aggregates.of[i / unknowns] as usize) {
                solve(r, modes.row(i), &mut of_row);
            }
            of_row
        };
        let values = par_rows(aggregates.of.len() * unknowns, row).concat();
        let next = factors.iter().flatten().map(|r| *r as f32).collect();
        Self {
            aggregates,
            unknowns,
            width,
            values,
            next: Modes { unknowns: width, width, values: next, is_positive: false },
        }
    }

    /// The same with the nodes of others that are in `aggregates`, which have these entries behind the own ones.
    pub(super) fn among<'b>(self, aggregates: &'b Aggregates, values: Vec<f32>) -> Bases<'b> {
        let Self { unknowns, width, next, .. } = self;
        Bases { aggregates, unknowns, width, values, next }
    }

    /// T as a matrix, with all columns of an aggregate in each row.
    pub(super) fn matrix(&self) -> Sparse {
        let &Self { aggregates: Aggregates { of, count }, unknowns, width, ref values, .. } = self;
        Sparse::by_blocks(
            (of.len() * unknowns, count * width),
            || (),
            |range, (), block| {
                for i in range {
                    let aggregate = of[i / unknowns];
                    if aggregate != NONE {
                        let own = &values[i * width..][..width];
                        (aggregate * width as u32..).zip(own).for_each(|(column, v)| block.push(column, *v));
                    }
                    block.end_row();
                }
            },
        )
    }

    /// P = (I − ω A) T, for a matrix with that largest eigenvalue.
    pub(super) fn smoothed(&self, a: &Sparse, largest: f64) -> Sparse {
        let omega = OMEGA / largest as f32;
        let &Self { aggregates: Aggregates { of, .. }, unknowns, width, ref values, .. } = self;
        let mut p = product_of_blocks(a, &self.matrix(), [unknowns, unknowns, width]);
        p.change(|i, columns, entries| {
            let aggregate = of[i / unknowns] as usize;
            for (&column, v) in columns.iter().zip(entries) {
                let (other, k) = (column as usize / width, column as usize % width);
                let own = if other == aggregate { values[i * width + k] } else { 0.0 };
                *v = own - omega * *v;
            }
        });
        p
    }
}

/// The nodes of each aggregate.
fn members(aggregates: &Aggregates) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); aggregates.count];
    for (node, &aggregate) in (0..).zip(&aggregates.of).filter(|(_, aggregate)| **aggregate != NONE) {
        members[aggregate as usize].push(node);
    }
    members
}

/// R of B = T R for the rows of these nodes, by Cholesky's factors of Bᵀ B; rows of zeros where a vector depends on those before it.
fn factor(nodes: &[u32], modes: &Modes) -> Vec<f64> {
    let &Modes { unknowns, width, .. } = modes;
    let mut r = vec![0f64; width * width];
    for i in nodes.iter().flat_map(|&node| node as usize * unknowns..(node as usize + 1) * unknowns) {
        let row = modes.row(i);
        for c in 0..width {
            for d in c..width {
                r[c * width + d] += f64::from(row[c]) * f64::from(row[d]);
            }
        }
    }
    for c in 0..width {
        let whole = r[c * width + c];
        let left = (0..c).fold(whole, |left, k| left - r[k * width + c] * r[k * width + c]);
        if left <= DEPENDENT * whole {
            r[c * width + c..(c + 1) * width].fill(0.0);
            continue;
        }
        let pivot = left.sqrt();
        r[c * width + c] = pivot;
        for d in c + 1..width {
            let sum = (0..c).fold(r[c * width + d], |sum, k| sum - r[k * width + c] * r[k * width + d]);
            r[c * width + d] = sum / pivot;
        }
    }
    r
}

/// t of t R = b.
fn solve(r: &[f64], b: &[f32], t: &mut [f32]) {
    let width = b.len();
    let mut exact = vec![0f64; width];
    for c in 0..width {
        let pivot = r[c * width + c];
        if pivot > 0.0 {
            let sum = (0..c).fold(f64::from(b[c]), |sum, k| sum - exact[k] * r[k * width + c]);
            exact[c] = sum / pivot;
            t[c] = exact[c] as f32;
        }
    }
}
