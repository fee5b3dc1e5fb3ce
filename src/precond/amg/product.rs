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

/// A B of matrices in full blocks, of `rows` × `middle` and `middle` × `columns` elements: what [`product`] gives, its rows sorted, with one
/// look for the place of a block instead of one for each element.
pub(super) fn product_of_blocks(a: &Sparse, b: &Sparse, sides: [usize; 3]) -> Sparse {
    match sides[2] {
        2 => of_width::<2>(a, b, sides),
        3 => of_width::<3>(a, b, sides),
        6 => of_width::<6>(a, b, sides),
        _ => of_width::<0>(a, b, sides),
    }
}

/// The same, compiled for so many columns of a block, or for any number.
fn of_width<const WIDTH: usize>(a: &Sparse, b: &Sparse, [rows, middle, columns]: [usize; 3]) -> Sparse {
    let columns = if WIDTH > 0 { WIDTH } else { columns };
    let (a_rows, b_rows) = (a.rows(), b.rows());
    let nodes = (a.n_rows() / rows, b.n_cols / columns);
    Sparse::by_blocks(
        nodes,
        || BlockSums::new(nodes.1, [rows, columns]),
        |range, sums, block| {
            for node in range {
                let lefts: Vec<&[f32]> = (0..rows).map(|i| a_rows.arrays(node * rows + i).1).collect();
                for (k, of_middle) in a_rows.arrays(node * rows).0.chunks_exact(middle).enumerate() {
                    let first = of_middle[0] as usize;
                    let rights: Vec<&[f32]> = (0..middle).map(|m| b_rows.arrays(first + m).1).collect();
                    for (l, of_column) in b_rows.arrays(first).0.chunks_exact(columns).enumerate() {
                        let to = sums.block(of_column[0] / columns as u32);
                        for (left, to) in lefts.iter().zip(to.chunks_exact_mut(columns)) {
                            for (left, right) in left[k * middle..][..middle].iter().zip(&rights) {
                                let right = &right[l * columns..][..columns];
                                to.iter_mut().zip(right).for_each(|(to, right)| *to += left * right);
                            }
                        }
                    }
                }
                sums.give(block);
            }
        },
    )
    .with_columns(b.n_cols)
}

/// Adds up the blocks of rows of nodes, one node after the other.
struct BlockSums {
    /// As those of an [`Accumulator`].
    places: Vec<usize>,
    begin: usize,
    nodes: Vec<u32>,
    sums: Vec<f32>,
    size: [usize; 2],
}

impl BlockSums {
    /// For rows with so many nodes as columns, and blocks of that size.
    fn new(n_nodes: usize, size: [usize; 2]) -> Self {
        Self { places: vec![0; n_nodes], begin: 1, nodes: Vec::new(), sums: Vec::new(), size }
    }

    /// The sums of a block.
    fn block(&mut self, node: u32) -> &mut [f32] {
        let len = self.size[0] * self.size[1];
        let place = &mut self.places[node as usize];
        if *place < self.begin {
            *place = self.begin + self.nodes.len();
            self.nodes.push(node);
            self.sums.resize(self.sums.len() + len, 0.0);
        }
        &mut self.sums[(*place - self.begin) * len..][..len]
    }

    /// The rows, in the order of their columns.
    fn give(&mut self, block: &mut Block) {
        let [rows, columns] = self.size;
        let mut order: Vec<(u32, usize)> = self.nodes.drain(..).zip(0..).collect();
        order.sort_unstable();
        for row in 0..rows {
            for &(node, k) in &order {
                let sums = &self.sums[(k * rows + row) * columns..][..columns];
                (node * columns as u32..).zip(sums).for_each(|(column, sum)| block.push(column, *sum));
            }
            block.end_row();
        }
        self.begin += order.len();
        self.sums.clear();
    }
}
