//! Runs of consecutive rows that a work-group, or a core, takes at a time.

use std::ops::Range;

use super::segments::launches;
use crate::kernels::Tuning;
use crate::kernels::csr::BlockSet;
use crate::partition::Part;

/// Entries of a row block in the CPU shape: about 200 KB of matrix.
const CPU_BLOCK_NNZ: usize = 1 << 14;

/// Row blocks: first those whose columns are all owned, then those that need the halo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowBlocks {
    /// First row and row after the last of each.
    pub(crate) blocks: Vec<[u32; 2]>,
    /// Those of each segment that need no halo, and the others: what is launched.
    pub(crate) sets: [Vec<BlockSet>; 2],
}

impl RowBlocks {
    /// Cuts the rows of `part`, segment by segment: a block has at most `block_nnz` entries, unless it is a single longer
    /// row, and in the GPU shape at most `group_size / items_per_row` rows. O(rows), and O(entries) more with a halo.
    pub(crate) fn cut(part: &Part<'_>, tuning: &Tuning, segments: &[Range<usize>]) -> Self {
        let (max_rows, max_nnz) = tuning.row_block().unwrap_or((CPU_BLOCK_NNZ, CPU_BLOCK_NNZ));
        let (n, base) = (part.n_owned(), part.row_ptr[0]);
        let needs_halo = |begin: usize, end: usize| {
            part.halo.len > 0
                && part.col_idx[part.row_ptr[begin] - base..part.row_ptr[end] - base].iter().any(|&j| j as usize >= n)
        };
        // without a halo, and with one
        let mut lists: [Vec<[u32; 2]>; 2] = Default::default();
        for segment in segments {
            let mut begin = segment.start;
            while begin < segment.end {
                let fits = |end: usize| end - begin <= max_rows && part.row_ptr[end] - part.row_ptr[begin] <= max_nnz;
                let mut end = begin + 1;
                while end < segment.end && fits(end + 1) {
                    end += 1;
                }
                lists[usize::from(needs_halo(begin, end))].push([begin as u32, end as u32]);
                begin = end;
            }
        }
        let set = |segment: usize, list: usize| {
            let before = |row: usize| lists[list].partition_point(|block| (block[0] as usize) < row);
            let [first, last] = [segments[segment].start, segments[segment].end]
                .map(|row| (list * lists[0].len() + before(row)) as u32);
            BlockSet { segment, first, last }
        };
        let of_segments: Vec<[BlockSet; 2]> =
            (0..segments.len()).map(|segment| [set(segment, 0), set(segment, 1)]).collect();
        Self { blocks: lists.concat(), sets: launches(&of_segments, |set| set.len() == 0) }
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

    fn set(segment: usize, first: u32, last: u32) -> BlockSet {
        BlockSet { segment, first, last }
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
            of: None,
        };
        let cut = |tuning: Tuning, segments: &[Range<usize>]| RowBlocks::cut(&part, &tuning, segments);
        let one = cut(gpu(), std::slice::from_ref(&(0..7)));
        assert_eq!(one.blocks, [[0, 1], [1, 2], [2, 6], [6, 7]]);
        assert_eq!(one.sets, [vec![set(0, 0, 4)], vec![]]);
        let shared = |items| cut(gpu().sharing(items), std::slice::from_ref(&(0..7))).blocks;
        assert_eq!(shared(2), [[0, 1], [1, 2], [2, 4], [4, 6], [6, 7]]);
        assert_eq!(shared(4), (0..7).map(|row| [row, row + 1]).collect::<Vec<_>>());
        // no block is in two segments
        let three = cut(gpu(), &[0..1, 1..4, 4..7]);
        assert_eq!(three.blocks, [[0, 1], [1, 2], [2, 4], [4, 7]]);
        assert_eq!(three.sets, [vec![set(0, 0, 1), set(1, 1, 3), set(2, 3, 4)], vec![]]);
        let cpu = cut(Tuning::uniform(1, 1, 2), &[0..3, 3..7]);
        assert_eq!((cpu.blocks, cpu.sets), (vec![[0, 3], [3, 7]], [vec![set(0, 0, 1), set(1, 1, 2)], vec![]]));
    }

    #[test]
    fn rows_that_need_others_come_last() {
        // tridiagonal of order 12: rank 1 of 3 owns rows 4..8
        let n = 12u32;
        let near = |i: u32| i.saturating_sub(1)..(i + 2).min(n);
        let (rows, cols): (Vec<u32>, Vec<u32>) = (0..n).flat_map(|i| near(i).map(move |j| (i, j))).unzip();
        let a = Csr::from_triplets(12, 12, &rows, &cols, &vec![1.0; rows.len()]).unwrap();
        let parts = split(&a, &[0..4, 4..8, 8..12]);
        let cut = |segments: &[Range<usize>]| RowBlocks::cut(&parts[1], &Tuning::uniform(2, 3, 2), segments);
        let blocks = vec![[1, 2], [2, 3], [0, 1], [3, 4]];
        let one = cut(std::slice::from_ref(&(0..4)));
        assert_eq!((one.blocks, one.sets), (blocks.clone(), [vec![set(0, 0, 2)], vec![set(0, 2, 4)]]));
        let two = cut(&[0..3, 3..4]);
        assert_eq!((two.blocks, two.sets), (blocks, [vec![set(0, 0, 2)], vec![set(0, 2, 3), set(1, 3, 4)]]));
    }

    #[test]
    fn no_rows_no_blocks() {
        let a = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let part = split(&a, &[0..0, 0..0]).remove(1);
        let sets = [vec![set(0, 0, 0)], vec![]];
        assert_eq!(RowBlocks::cut(&part, &gpu(), std::slice::from_ref(&(0..0))), RowBlocks { blocks: vec![], sets });
    }
}
