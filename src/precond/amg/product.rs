//! Products of sparse matrices, row by row (Gustavson 1978, doi 10.1145/355791.355796).

use super::sparse::{Block, Sparse};

/// No place.
const NONE: u32 = u32::MAX;

/// Adds up the entries of a row.
#[derive(Debug)]
pub(super) struct Accumulator {
    /// Where the sum of each column is, if it is there.
    places: Vec<u32>,
    sums: Vec<(u32, f64)>,
}

impl Accumulator {
    /// For rows with so many columns.
    pub(super) fn new(n_cols: usize) -> Self {
        Self { places: vec![NONE; n_cols], sums: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, column: u32, value: f64) {
        let place = &mut self.places[column as usize];
        if *place == NONE {
            *place = self.sums.len() as u32;
            self.sums.push((column, value));
        } else {
            self.sums[*place as usize].1 += value;
        }
    }

    /// How many columns the row has.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Multiplies all sums.
    pub(super) fn scale(&mut self, factor: f64) {
        self.sums.iter_mut().for_each(|(_, sum)| *sum *= factor);
    }

    /// The row as it is, in the order in which columns came.
    pub(super) fn give(&mut self, block: &mut Block) {
        for &(column, sum) in &self.sums {
            block.push(column, sum as f32);
            self.places[column as usize] = NONE;
        }
        self.sums.clear();
        block.end_row();
    }

    /// The same in the order of the columns.
    pub(super) fn give_sorted(&mut self, block: &mut Block) {
        self.sums.sort_unstable_by_key(|&(column, _)| column);
        self.give(block);
    }

    /// Forgets the row.
    pub(super) fn clear(&mut self) {
        self.sums.drain(..).for_each(|(column, _)| self.places[column as usize] = NONE);
    }
}

/// A B; rows are sorted if they are to be.
pub(super) fn product(a: &Sparse, b: &Sparse, sorted: bool) -> Sparse {
    let (a_rows, b_rows) = (a.rows(), b.rows());
    Sparse::by_blocks(
        (a.n_rows(), b.n_cols),
        || Accumulator::new(b.n_cols),
        |range, sums, block| {
            for row in range {
                for (middle, left) in a_rows.row(row) {
                    let (columns, values) = b_rows.arrays(middle);
                    for (&column, &right) in columns.iter().zip(values) {
                        sums.add(column, f64::from(left) * f64::from(right));
                    }
                }
                if sorted { sums.give_sorted(block) } else { sums.give(block) }
            }
        },
    )
}
