//! Smoothed prolongation (Vaněk, Mandel and Brezina 1996, doi 10.1007/BF02238511): P = (I − ω D⁻¹ A) T.
//!
//! T has the near-null vector b on each aggregate as a column of length 1. Of A, couplings that are weak go to the diagonal, so that
//! A b stays what it is.

use super::aggregate::{Aggregates, NONE};
use super::product::Accumulator;
use super::sparse::{Rows, Sparse};
use super::strength::{Strength, par_rows};

/// ω times the largest eigenvalue of D⁻¹ A, by a bound for each row.
const OMEGA: f32 = 4.0 / 3.0;

/// A row whose diagonal becomes less than this stays as it is in T.
const LEAST: f32 = 0.1;

/// So does one that would have more entries: what it is coupled to would all be coupled on the next level.
const MOST_ENTRIES: usize = 12;

/// T, and the near-null vector of the next level.
pub(super) struct Tentative<'a> {
    aggregates: &'a Aggregates,
    /// The entry of each row, or 0.
    pub(super) values: Vec<f32>,
    pub(super) b: Vec<f32>,
}

impl<'a> Tentative<'a> {
    /// That of the near-null vector `b`.
    pub(super) fn new(aggregates: &'a Aggregates, b: &[f32]) -> Self {
        let mut squares = vec![0f64; aggregates.count];
        for (&aggregate, &b) in aggregates.of.iter().zip(b).filter(|(aggregate, _)| **aggregate != NONE) {
            squares[aggregate as usize] += f64::from(b) * f64::from(b);
        }
        let coarse: Vec<f32> = squares.iter().map(|square| square.sqrt() as f32).collect();
        let value = |i: usize| match aggregates.of[i] {
            NONE => 0.0,
            aggregate => b[i] / coarse[aggregate as usize],
        };
        Self { aggregates, values: par_rows(b.len(), value), b: coarse }
    }

    /// The same with the rows of others that are in `aggregates`, which have these entries behind the own ones.
    pub(super) fn among<'b>(self, aggregates: &'b Aggregates, values: Vec<f32>) -> Tentative<'b> {
        Tentative { aggregates, values, b: self.b }
    }

    /// Its first rows as a matrix.
    pub(super) fn matrix(&self, n_rows: usize) -> Sparse {
        let Aggregates { of, count } = self.aggregates;
        Sparse::by_blocks(
            (n_rows, *count),
            || (),
            |range, (), block| {
                for i in range {
                    if of[i] != NONE {
                        block.push(of[i], self.values[i]);
                    }
                    block.end_row();
                }
            },
        )
    }

    /// P, for a matrix whose diagonal is 1.
    pub(super) fn smoothed(&self, a: &Sparse, strength: &Strength, b: &[f32]) -> Sparse {
        let Aggregates { of, count } = self.aggregates;
        let rows = a.rows();
        Sparse::by_blocks(
            (a.n_rows(), *count),
            || Accumulator::new(*count),
            |range, sums, block| {
                for i in range {
                    if of[i] != NONE {
                        self.smooth_row(i, rows, strength, b, sums);
                    }
                    sums.give_sorted(block);
                }
            },
        )
    }

    fn smooth_row(&self, i: usize, rows: Rows<'_>, strength: &Strength, b: &[f32], sums: &mut Accumulator) {
        let Self { aggregates: Aggregates { of, .. }, values: t, .. } = self;
        // the diagonal with the weak couplings, and the strong ones as a bound for eigenvalues has them
        let (mut diagonal, mut strong) = (1f32, 0f32);
        for (j, v) in rows.row(i).filter(|&(j, _)| j != i) {
            let coupling = v * b[j] / b[i];
            if strength.is_strong(i, j, v) {
                strong += coupling.abs();
                if of[j] != NONE {
                    sums.add(of[j], -v * t[j]);
                }
            } else {
                diagonal += coupling;
            }
        }
        if diagonal < LEAST || sums.len() > MOST_ENTRIES {
            sums.clear();
            sums.add(of[i], t[i]);
        } else {
            let omega = OMEGA / (1.0 + (strong / diagonal).max(1.0));
            sums.scale(omega / diagonal);
            sums.add(of[i], (1.0 - omega) * t[i]);
        }
    }
}
