//! Storage for the lower trapezoid of a matrix.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, MatMut, MatRef, Par};

/// Columns of a block.
const WIDTH: usize = 64;

/// Blocks on the diagonal up to this order are computed as squares, which takes less time than to spare half of the operations.
const SQUARE: usize = 24;

/// The elements of a matrix on and below the diagonal, of its first columns: in blocks of columns one after the other, each by columns,
/// from the first row of the block on. So products of matrices work on rectangles, and the memory for elements above
/// the diagonal is little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trapezoid {
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Trapezoid {
    /// Elements in all, some of them above the diagonal.
    pub(super) fn len(self) -> usize {
        self.begin(self.cols)
    }

    /// The first row that is stored of column `j`.
    fn first_row(j: usize) -> usize {
        j / WIDTH * WIDTH
    }

    /// Where column `j` begins, with its first row that is stored.
    pub(super) fn begin(self, j: usize) -> usize {
        let blocks = j / WIDTH;
        let before = WIDTH * (blocks * self.rows - WIDTH * (blocks * blocks.saturating_sub(1) / 2));
        before + j % WIDTH * (self.rows - blocks * WIDTH)
    }

    /// Where the elements of column `j` on and below the diagonal are.
    pub(super) fn column(self, j: usize) -> Range<usize> {
        let begin = self.begin(j);
        begin + j % WIDTH..begin + self.rows - Self::first_row(j)
    }

    /// Where the element at row `i` and column `j` ≤ `i` is.
    pub(super) fn at(self, i: usize, j: usize) -> usize {
        self.begin(j) + i - Self::first_row(j)
    }

    /// These columns, in parts that lie in one block each.
    pub(super) fn parts(columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut from = columns.start;
        std::iter::from_fn(move || {
            let start = from;
            from = columns.end.min(Self::first_row(start) + WIDTH);
            (start < columns.end).then_some(start..from)
        })
    }

    /// The rows from `row` on, which is no earlier than the first column, of columns within one block.
    pub(super) fn view(self, values: &[f64], columns: Range<usize>, row: usize) -> MatRef<'_, f64> {
        let first = Self::first_row(columns.start);
        let range = self.begin(columns.start)..self.begin(columns.start) + columns.len() * (self.rows - first);
        MatRef::from_column_major_slice(&values[range], self.rows - first, columns.len())
            .subrows(row - first, self.rows - row)
    }

    /// Subtracts L Rᵀ from these columns, which lie within one block, on and below the diagonal. L has the rows from the first column
    /// on, R those of the columns. `values` begins with the column `origin`.
    pub(super) fn subtract(
        self,
        (values, origin): (&mut [f64], usize),
        columns: Range<usize>,
        l: MatRef<'_, f64>,
        r: MatRef<'_, f64>,
    ) {
        let (first, count) = (Self::first_row(columns.start), columns.len());
        let begin = self.begin(columns.start) - self.begin(origin);
        let range = begin..begin + count * (self.rows - first);
        let to = MatMut::from_column_major_slice_mut(&mut values[range], self.rows - first, count)
            .subrows_mut(columns.start - first, self.rows - columns.start);
        if count <= SQUARE {
            matmul(to, Accum::Add, l, r.transpose(), -1.0, Par::Seq);
            return;
        }
        let (on, below) = to.split_at_row_mut(count);
        let (l_on, l_below) = l.split_at_row(count);
        let full = BlockStructure::Rectangular;
        let lower = BlockStructure::TriangularLower;
        triangular_matmul(on, lower, Accum::Add, l_on, full, r.transpose(), full, -1.0, Par::Seq);
        if below.nrows() > 0 {
            matmul(below, Accum::Add, l_below, r.transpose(), -1.0, Par::Seq);
        }
    }
}
