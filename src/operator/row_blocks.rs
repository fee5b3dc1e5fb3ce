//! Runs of consecutive rows that a work-group, or a core, takes at a time.

use crate::kernels::Tuning;
use crate::partition::Part;

/// Entries of a row block in the CPU shape: about 200 KB of matrix.
const CPU_BLOCK_NNZ: usize = 1 << 14;

/// Row blocks in the order in which they run: first those whose columns are all owned, then those that need the halo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowBlocks {
    /// First row and row after the last of each.
    pub(super) blocks: Vec<[u32; 2]>,
    /// How many of them need no halo.
    pub(super) interior: usize,
}

impl RowBlocks {
    /// Cuts the rows of `part`: a block has at most `block_nnz` entries, unless it is a single longer row, and in the GPU
    /// shape at most `group_size / items_per_row` rows. O(rows), and O(entries) more with a halo.
    pub(crate) fn cut(part: &Part<'_>, tuning: &Tuning) -> Self {
        let (max_rows, max_nnz) = tuning.row_block().unwrap_or((CPU_BLOCK_NNZ, CPU_BLOCK_NNZ));
        let (n, base) = (part.n_owned(), part.row_ptr[0]);
        let needs_halo = |begin: usize, end: usize| {
            part.halo.len > 0
                && part.col_idx[part.row_ptr[begin] - base..part.row_ptr[end] - base].iter().any(|&j| j as usize >= n)
        };
        let (mut interior, mut boundary) = (Vec::new(), Vec::new());
        let mut begin = 0;
        while begin < n {
            let fits = |end: usize| end - begin <= max_rows && part.row_ptr[end] - part.row_ptr[begin] <= max_nnz;
            let mut end = begin + 1;
            while end < n && fits(end + 1) {
                end += 1;
            }
            let list = if needs_halo(begin, end) { &mut boundary } else { &mut interior };
            list.push([begin as u32, end as u32]);
            begin = end;
        }
        let count = interior.len();
        interior.append(&mut boundary);
        Self { blocks: interior, interior: count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;
    use crate::partition::split;

    /// Up to 4 rows and 8 entries.
    fn gpu() -> Tuning {
        Tuning::uniform(4, 8, 2)
    }

    /// Rows of 3, 9 (longer than a block), 1, 1, 1, 1, 1 entries.
    fn matrix() -> Csr {
        let mut cols: Vec<u32> = (0..3).collect();
        cols.extend(0..9);
        cols.extend(2..7);
        Csr::new(7, 9, vec![0, 3, 12, 13, 14, 15, 16, 17], cols, vec![1.0; 17]).unwrap()
    }

    #[test]
    fn blocks_respect_both_limits() {
        let a = matrix();
        let part = Part {
            rows: 0..7,
            row_ptr: a.row_ptr(),
            col_idx: a.col_idx().into(),
            values: a.values().into(),
            halo: Default::default(),
        };
        let gpu = RowBlocks::cut(&part, &gpu());
        assert_eq!(gpu.blocks, [[0, 1], [1, 2], [2, 6], [6, 7]]);
        assert_eq!(gpu.interior, 4);
        assert_eq!(RowBlocks::cut(&part, &Tuning::uniform(1, 1, 2)).blocks, [[0, 7]]);
        let shared = |items| RowBlocks::cut(&part, &Tuning::uniform(4, 8, 2).sharing(items)).blocks;
        assert_eq!(shared(2), [[0, 1], [1, 2], [2, 4], [4, 6], [6, 7]]);
        assert_eq!(shared(4), (0..7).map(|row| [row, row + 1]).collect::<Vec<_>>());
    }

    #[test]
    fn rows_that_need_others_come_last() {
        // tridiagonal of order 12: rank 1 of 3 owns rows 4..8
        let n = 12u32;
        let near = |i: u32| i.saturating_sub(1)..(i + 2).min(n);
        let (rows, cols): (Vec<u32>, Vec<u32>) = (0..n).flat_map(|i| near(i).map(move |j| (i, j))).unzip();
        let a = Csr::from_triplets(12, 12, &rows, &cols, &vec![1.0; rows.len()]).unwrap();
        let parts = split(&a, &[0..4, 4..8, 8..12]);
        let cut = RowBlocks::cut(&parts[1], &Tuning::uniform(2, 3, 2));
        assert_eq!((cut.blocks, cut.interior), (vec![[1, 2], [2, 3], [0, 1], [3, 4]], 2));
    }

    #[test]
    fn no_rows_no_blocks() {
        let a = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let part = split(&a, &[0..0, 0..0]).remove(1);
        assert_eq!(RowBlocks::cut(&part, &gpu()), RowBlocks { blocks: vec![], interior: 0 });
    }
}
