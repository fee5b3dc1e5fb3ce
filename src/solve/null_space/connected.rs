//! Which rows are connected, as far as null vectors depend on it.

use rayon::prelude::*;

use super::sets::Sets;
use super::{CHUNK, sum};
use crate::matrix::Csr;
use crate::matrix::patterns::Patterns;

/// Rows of a symmetric matrix, from 0 on. Neighbours are connected by an entry other than 0; a row may be one of its own.
pub(super) trait Rows: Sync {
    /// How many.
    fn count(&self) -> usize;

    /// The neighbours of row `i`.
    fn neighbours(&self, i: usize) -> impl Iterator<Item = usize>;

    /// The nearest neighbour before row `i`.
    fn before(&self, i: usize) -> Option<usize>;

    /// Whether the entries of row `i` sum to 0, up to rounding.
    fn sums_to_zero(&self, i: usize) -> bool;
}

impl Rows for Csr {
    fn count(&self) -> usize {
        self.n_rows()
    }

    fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> {
        let (columns, values) = self.row(i);
        columns.iter().zip(values).filter(|(_, v)| **v != 0.0).map(|(&j, _)| j as usize)
    }

    fn before(&self, i: usize) -> Option<usize> {
        let (columns, values) = self.row(i);
        let behind = columns.partition_point(|&j| (j as usize) < i);
        let place = values[..behind].iter().rposition(|v| *v != 0.0)?;
        Some(columns[place] as usize)
    }

    fn sums_to_zero(&self, i: usize) -> bool {
        sum(self.row(i).1).is_zero()
    }
}

/// Rows of few patterns.
pub(super) struct OfPatterns<'a> {
    patterns: &'a Patterns,
    /// By pattern, the distance to the nearest neighbour before, or 0,
    before: Vec<usize>,
    /// and whether its entries sum to 0.
    sum_to_zero: Vec<bool>,
}

impl<'a> OfPatterns<'a> {
    pub(super) fn new(patterns: &'a Patterns) -> Self {
        let all = || 0..patterns.count() as u16;
        let before = |k| {
            let distances = patterns.distances[patterns.entries(k)].iter().zip(patterns.values(k));
            distances.filter(|(d, v)| **d < 0 && **v != 0.0).map(|(d, _)| d.unsigned_abs() as usize).min().unwrap_or(0)
        };
        let sums_to_zero = |k| sum(patterns.values(k)).is_zero();
        Self { patterns, before: all().map(before).collect(), sum_to_zero: all().map(sums_to_zero).collect() }
    }

    fn pattern(&self, i: usize) -> usize {
        self.patterns.of_row[i] as usize
    }
}

impl Rows for OfPatterns<'_> {
    fn count(&self) -> usize {
        self.patterns.of_row.len()
    }

    fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> {
        let values = self.patterns.values(self.patterns.of_row[i]);
        self.patterns.columns(i).zip(values).filter(|(_, v)| **v != 0.0).map(|(j, _)| j)
    }

    fn before(&self, i: usize) -> Option<usize> {
        let distance = self.before[self.pattern(i)];
        (distance > 0).then(|| i - distance)
    }

    fn sums_to_zero(&self, i: usize) -> bool {
        self.sum_to_zero[self.pattern(i)]
    }
}

/// Rows of a chunk that are summed to find one that doesn't sum to 0.
const SUMS: usize = 1 << 9;

/// Whether all rows are seen at one look not to be in a part: each is a neighbour of one that doesn't sum to 0, or of its neighbours. So it is with
/// most matrices, as no end of a line is far; the first chunk where it is not so ends the look.
pub(super) fn are_all_out(rows: &impl Rows) -> bool {
    let n = rows.count();
    (0..n.div_ceil(CHUNK)).into_par_iter().all(|chunk| {
        let (first, mut sums) = (chunk * CHUNK, 0);
        let mut is_out = vec![false; CHUNK.min(n - first)];
        for i in 0..is_out.len() {
            let touches = |j: usize| j >= first && j < first + i && is_out[j - first];
            is_out[i] = rows.neighbours(first + i).any(touches) || rows.neighbours(first + i).next().is_none();
            if !is_out[i] && sums < SUMS {
                (is_out[i], sums) = (!rows.sums_to_zero(first + i), sums + 1);
            }
        }
        // and back, for the rows before the first that is out
        for i in (0..is_out.len()).rev() {
            let touches = |j: usize| is_out.get(j.wrapping_sub(first)) == Some(&true);
            is_out[i] = is_out[i] || rows.neighbours(first + i).any(touches);
        }
        is_out.into_iter().all(|is_out| is_out)
    })
}

/// Rows that the largest set is guessed from.
const SAMPLE: usize = 1 << 10;

/// Sets of connected rows, row `i` as number `i + 1`. Those that no part of a null space can have are in the set of 0: rows without neighbours, rows
/// that don't sum to 0, and what is connected with these.
///
/// One edge a row connects most of them; then few rows need be summed where some don't sum to 0, and all others look at their other edges but for
/// those of the largest set, which the rows at their far ends look at (as in Sutton, Ben-Nun and Barak's Afforest 2018,
/// doi 10.1109/IPDPS.2018.00012). O(n) for most matrices, and O(nnz) at most, by all threads.
pub(super) fn connected(rows: &impl Rows) -> Sets {
    let n = rows.count();
    let sets = Sets::new(n as u32 + 1);
    let (each, number) = (|| (0..n).into_par_iter().with_min_len(CHUNK), |row: usize| row as u32 + 1);
    each().for_each(|row| {
        if let Some(other) = rows.before(row) {
            sets.join(number(row), number(other));
        }
    });
    each().for_each(|row| {
        let is_out = || rows.neighbours(row).next().is_none() || !rows.sums_to_zero(row);
        if sets.least(number(row)) != 0 && is_out() {
            sets.join(number(row), 0);
        }
    });
    let mut sample: Vec<u32> = (0..n).step_by(n.div_ceil(SAMPLE).max(1)).map(|row| sets.least(number(row))).collect();
    sample.sort_unstable();
    let largest = sample.chunk_by(|a, b| a == b).max_by_key(|equal| equal.len()).map_or(0, |equal| equal[0]);
    each().for_each(|row| {
        let own = sets.least(number(row));
        if own != sets.least(largest) {
            rows.neighbours(row).filter(|other| *other < n).for_each(|other| sets.join(own, number(other)));
        }
    });
    sets
}
