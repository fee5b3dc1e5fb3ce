//! Compressed rows in single precision.

use std::ops::Range;

use rayon::prelude::*;

use crate::memory::Elements;

/// Rows that a task works on at least: fixed, so that nothing depends on the number of threads.
pub(super) const BLOCK: usize = 2048;

/// A sparse matrix.
#[derive(Debug, Clone)]
pub(super) struct Sparse {
    pub(super) n_cols: usize,
    /// Where each row begins; one more than rows.
    starts: Elements<usize>,
    columns: Elements<u32>,
    pub(super) values: Vec<f32>,
}

/// The arrays of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    starts: &'a [usize],
    columns: &'a [u32],
    values: &'a [f32],
}

impl<'a> Rows<'a> {
    /// Columns and values of a row.
    #[inline]
    pub(super) fn arrays(self, row: usize) -> (&'a [u32], &'a [f32]) {
        let entries = self.starts[row]..self.starts[row + 1];
        (&self.columns[entries.clone()], &self.values[entries])
    }

    /// Column and value of each entry of a row.
    #[inline]
    pub(super) fn row(self, row: usize) -> impl Iterator<Item = (usize, f32)> + 'a {
        let (columns, values) = self.arrays(row);
        columns.iter().zip(values).map(|(&column, &value)| (column as usize, value))
    }

    /// Σ_j a_ij x_j of a row.
    #[inline]
    pub(super) fn times(self, row: usize, x: &[f32]) -> f32 {
        let (columns, values) = self.arrays(row);
        let ((columns, columns_left), (values, values_left)) = (columns.as_chunks::<4>(), values.as_chunks::<4>());
        let mut sums = [0f32; 4];
        for (columns, values) in columns.iter().zip(values) {
            for k in 0..4 {
                sums[k] += values[k] * x[columns[k] as usize];
            }
        }
        let left = columns_left.iter().zip(values_left).map(|(&column, value)| value * x[column as usize]);
        (sums[0] + sums[1]) + (sums[2] + sums[3]) + left.sum::<f32>()
    }
}

/// Some rows that a task makes.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Where each row ends.
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Block {
    /// Adds an entry to the row.
    pub(super) fn push(&mut self, column: u32, value: f32) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// The next entry belongs to the next row.
    pub(super) fn end_row(&mut self) {
        self.ends.push(self.columns.len());
    }
}

impl Sparse {
    /// Of such arrays.
    pub(super) fn new(
        n_cols: usize,
        starts: impl Into<Elements<usize>>,
        columns: impl Into<Elements<u32>>,
        values: Vec<f32>,
    ) -> Self {
        Self { n_cols, starts: starts.into(), columns: columns.into(), values }
    }

    /// Whose rows are made block by block, by `make(rows, scratch, block)`; a thread has a scratch of its own. The same for any number of
    /// threads, if each row is.
    pub(super) fn by_blocks<S>(
        (n_rows, n_cols): (usize, usize),
        scratch: impl Fn() -> S + Sync + Send,
        make: impl Fn(Range<usize>, &mut S, &mut Block) + Sync + Send,
    ) -> Self {
        let blocks = n_rows.div_ceil(BLOCK);
        let least = blocks.div_ceil(4 * rayon::current_num_threads()).max(1);
        let of_block = |scratch: &mut S, k: usize| {
            let mut block = Block::default();
            make(k * BLOCK..n_rows.min((k + 1) * BLOCK), scratch, &mut block);
            block
        };
        let blocks: Vec<Block> = (0..blocks).into_par_iter().with_min_len(least).map_init(scratch, of_block).collect();
        Self::joined(n_cols, &blocks)
    }

    /// The same with so many columns.
    pub(super) fn with_columns(self, n_cols: usize) -> Self {
        Self { n_cols, ..self }
    }

    /// Gives its columns other numbers, of so many.
    pub(super) fn renumber(&mut self, n_cols: usize, number: impl Fn(u32) -> u32 + Sync) {
        let columns: Vec<u32> = self.columns.par_iter().with_min_len(BLOCK).map(|&j| number(j)).collect();
        (self.columns, self.n_cols) = (columns.into(), n_cols);
    }

    /// Rows of these lengths behind its own.
    pub(super) fn append(&mut self, lengths: impl IntoIterator<Item = usize>, columns: &[u32], values: &[f32]) {
        let mut end = self.nnz();
        let behind = lengths.into_iter().map(|len| {
            end += len;
            end
        });
        let starts: Vec<usize> = self.starts.iter().copied().chain(behind).collect();
        self.columns = [&self.columns[..], columns].concat().into();
        self.values.extend(values);
        self.starts = starts.into();
    }

    /// Its first rows alone.
    pub(super) fn first_rows(mut self, n: usize) -> Self {
        let nnz = self.starts[n];
        self.values.truncate(nnz);
        Self { starts: self.starts.truncated(n + 1), columns: self.columns.truncated(nnz), ..self }
    }

    fn joined(n_cols: usize, blocks: &[Block]) -> Self {
        let nnz = blocks.iter().map(|block| block.columns.len()).sum();
        let n_rows = blocks.iter().map(|block| block.ends.len()).sum::<usize>();
        let (mut starts, mut columns, mut values) = (vec![0; n_rows + 1], vec![0; nnz], vec![0.0; nnz]);
        let (mut starts_left, mut columns_left, mut values_left) =
            (&mut starts[1..], &mut columns[..], &mut values[..]);
        let (mut before, mut places) = (0, Vec::new());
        for block in blocks {
            let (own_starts, own_columns, own_values);
            (own_starts, starts_left) = starts_left.split_at_mut(block.ends.len());
            (own_columns, columns_left) = columns_left.split_at_mut(block.columns.len());
            (own_values, values_left) = values_left.split_at_mut(block.columns.len());
            places.push((block, before, own_starts, own_columns, own_values));
            before += block.columns.len();
        }
        places.into_par_iter().for_each(|(block, before, starts, columns, values)| {
            starts.iter_mut().zip(&block.ends).for_each(|(start, end)| *start = before + end);
            columns.copy_from_slice(&block.columns);
            values.copy_from_slice(&block.values);
        });
        Self::new(n_cols, starts, columns, values)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Where rows begin, columns and values.
    pub(super) fn compressed(&self) -> (&[usize], &[u32], &[f32]) {
        (&self.starts, &self.columns, &self.values)
    }

    /// Its arrays, to go through.
    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { starts: &self.starts, columns: &self.columns, values: &self.values }
    }

    /// Changes the entries of each row, by its number and columns.
    pub(super) fn change(&mut self, change: impl Fn(usize, &[u32], &mut [f32]) + Sync + Send) {
        let (starts, columns) = (&self.starts[..], &self.columns[..]);
        let (mut left, mut pieces) = (&mut self.values[..], Vec::new());
        for first in (0..starts.len() - 1).step_by(BLOCK) {
            let rows = first..(first + BLOCK).min(starts.len() - 1);
            let own;
            (own, left) = left.split_at_mut(starts[rows.end] - starts[rows.start]);
            pieces.push((rows, own));
        }
        pieces.into_par_iter().for_each(|(rows, values)| {
            let base = starts[rows.start];
            for row in rows {
                let entries = starts[row]..starts[row + 1];
                change(row, &columns[entries.clone()], &mut values[entries.start - base..entries.end - base]);
            }
        });
    }

    /// The transpose, whose rows are sorted. Each thread gathers a range of the columns from all rows.
    pub(super) fn transposed(&self) -> Self {
        let (rows, n_cols) = (self.rows(), self.n_cols);
        let width = n_cols.div_ceil(rayon::current_num_threads()).max(1);
        let mut starts = vec![0; n_cols + 1];
        starts[1..].par_chunks_mut(width).enumerate().for_each(|(k, lengths)| {
            for &column in rows.columns {
                if let Some(length) = lengths.get_mut((column as usize).wrapping_sub(k * width)) {
                    *length += 1;
                }
            }
        });
        for column in 0..n_cols {
            starts[column + 1] += starts[column];
        }
        let (mut columns, mut values) = (vec![0u32; self.nnz()], vec![0f32; self.nnz()]);
        let (mut columns_left, mut values_left, mut pieces) = (&mut columns[..], &mut values[..], Vec::new());
        for first in (0..n_cols).step_by(width) {
            let range = first..n_cols.min(first + width);
            let len = starts[range.end] - starts[range.start];
            let (own_columns, own_values);
            (own_columns, columns_left) = columns_left.split_at_mut(len);
            (own_values, values_left) = values_left.split_at_mut(len);
            pieces.push((range, own_columns, own_values));
        }
        let n_rows = self.n_rows();
        pieces.into_par_iter().for_each(|(range, columns, values)| {
            let base = starts[range.start];
            let mut next: Vec<usize> = starts[range.clone()].iter().map(|start| start - base).collect();
            for row in 0..n_rows {
                for (column, value) in rows.row(row) {
                    if let Some(at) = next.get_mut(column.wrapping_sub(range.start)) {
                        (columns[*at], values[*at]) = (row as u32, value);
                        *at += 1;
                    }
                }
            }
        });
        Self::new(n_rows, starts, columns, values)
    }
}
