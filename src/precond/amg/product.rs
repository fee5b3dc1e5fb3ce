//! Products of sparse matrices, row by row (Gustavson 1978, doi 10.1145/355791.355796).

use super::sparse::{Block, Sparse};

/// Adds up the entries of rows, one row after the other.
#[derive(Debug)]
pub(super) struct Accumulator {
    /// Where the sum of each column was put last, counted over all rows; from `begin` on, it is of this row.
    places: Vec<usize>,
    begin: usize,
    sums: Vec<(u32, f32)>,
}

impl Accumulator {
    /// For rows with so many columns.
    pub(super) fn new(n_cols: usize) -> Self {
        Self { places: vec![0; n_cols], begin: 1, sums: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, column: u32, value: f32) {
        let place = &mut self.places[column as usize];
        if *place < self.begin {
            *place = self.begin + self.sums.len();
            self.sums.push((column, value));
        } else {
            self.sums[*place - self.begin].1 += value;
        }
    }

    /// How many columns the row has.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Multiplies all sums.
    pub(super) fn scale(&mut self, factor: f32) {
        self.sums.iter_mut().for_each(|(_, sum)| *sum *= factor);
    }

    /// The row as it is, in the order in which columns came.
    pub(super) fn give(&mut self, block: &mut Block) {
        self.sums.iter().for_each(|&(column, sum)| block.push(column, sum));
        block.end_row();
        self.clear();
    }

    /// The same in the order of the columns.
    pub(super) fn give_sorted(&mut self, block: &mut Block) {
        self.sums.sort_unstable_by_key(|&(column, _)| column);
        self.give(block);
    }

    /// Forgets the row.
    pub(super) fn clear(&mut self) {
        self.begin += self.sums.len();
        self.sums.clear();
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
                        sums.add(column, left * right);
                    }
                }
                if sorted { sums.give_sorted(block) } else { sums.give(block) }
            }
        },
    )
}
