//! Rows that are good pivots, alone or together.

use crate::matrix::power::scaled;
use crate::matrix::{Csr, Transversal};

/// Elements of the diagonal of this size, of a matrix whose entries are at most 1, are pivots by themselves.
const LARGE: f64 = 0.5;

/// Smaller ones are not.
const LITTLE: f64 = 1e-2;

/// Rows of a symmetric matrix in groups of one to three. What a group has on the diagonal of the matrix is not singular, most often.
#[derive(Debug)]
pub(super) struct Groups {
    /// The group of each row.
    pub(super) of_row: Vec<u32>,
    /// How many rows each group has.
    pub(super) sizes: Vec<u8>,
}

impl Groups {
    /// The transversal of the largest product permutes the rows in cycles. A cycle of one row is an element of the diagonal; of longer
    /// ones any two rows that follow each other have one of the largest entries, 1 in size, at a row and column of theirs: they
    /// are a group, and of a cycle of odd length the row with the largest element on the diagonal is one of its own. Where all rows
    /// of a cycle have large ones, each is; where a cycle of three has none but small ones, it is a group.
    ///
    /// The matrix is scaled by two to the power of `exponent` on both sides. O(n).
    ///
    /// I. S. Duff, S. Pralet, "Strategies for scaling and pivoting for sparse symmetric indefinite problems", SIAM J. Matrix Anal.
    /// Appl. 27 (2005), doi 10.1137/04061043X.
    pub(super) fn of(a: &Csr, transversal: &Transversal, exponent: &[i32]) -> Self {
        let n = a.n_rows();
        let diagonal: Vec<f64> =
            a.diagonal().iter().zip(exponent).map(|(d, &e)| scaled(d.abs(), e.saturating_mul(2))).collect();
        let mut of_row = vec![u32::MAX; n];
        let mut sizes = Vec::new();
        let mut cycle = Vec::new();
        for start in 0..n {
            cycle.clear();
            let mut row = start;
            // rows of the cycle have no group yet, but the first one gets one when the cycle is closed
            while of_row[row] == u32::MAX {
                of_row[row] = 0;
                cycle.push(row);
                row = transversal.col_of_row[row] as usize;
            }
            let are_large = cycle.iter().all(|&row| diagonal[row] >= LARGE);
            let mut size = if are_large { 1 } else { 2 };
            if !are_large && cycle.len() % 2 == 1 {
                let alone = (0..cycle.len()).max_by(|&i, &j| diagonal[cycle[i]].total_cmp(&diagonal[cycle[j]]));
                if cycle.len() == 3 && alone.is_some_and(|at| diagonal[cycle[at]] < LITTLE) {
                    size = 3;
                }
                // it becomes the last
                cycle.rotate_left(alone.map_or(0, |at| at + 1));
            }
            for rows in cycle.chunks(size) {
                rows.iter().for_each(|&row| of_row[row] = sizes.len() as u32);
                sizes.push(rows.len() as u8);
            }
        }
        Self { of_row, sizes }
    }

    /// The place of each row, where groups are eliminated in this order; `place` tells that of each.
    pub(super) fn places(&self, place: &[u32]) -> Vec<u32> {
        let first = self.first_places(place);
        let mut next: Vec<u32> = place.iter().map(|&p| first[p as usize] as u32).collect();
        let next_of = |&group: &u32| {
            let next = &mut next[group as usize];
            *next += 1;
            *next - 1
        };
        self.of_row.iter().map(next_of).collect()
    }

    /// The first row of the group at each place, and n.
    pub(super) fn first_places(&self, place: &[u32]) -> Vec<usize> {
        let mut first = vec![0; place.len() + 1];
        for (&place, &size) in place.iter().zip(&self.sizes) {
            first[place as usize + 1] = usize::from(size);
        }
        for p in 0..place.len() {
            first[p + 1] += first[p];
        }
        first
    }
}
