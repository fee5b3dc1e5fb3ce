//! Full blocks among the entries of neighbouring rows.

use std::ops::Range;

use rayon::prelude::*;

use crate::partition::Part;

/// Sizes of blocks that are looked for. Rows with blocks of six have blocks of three.
const BLOCKS: [usize; 3] = [4, 3, 2];

/// A mark for each size of blocks, if runs of consecutive columns in a row are made of such; further marks for a row that
/// has the columns of the next one, and for one that needs the halo.
const SAME_AS_NEXT: u8 = 1;
pub(super) const NEEDS_HALO: u8 = 2;

/// A row of blocks of 2 × 2 that are all complex numbers, with those of the next row.
const COMPLEX: u8 = 1 << 5;

fn made_of(block: usize) -> u8 {
    1 << block
}

/// Whether a block is `[r, −m; m, r]` to the last bit, with 0 − m for −m: so that it follows from its first column alone.
pub(super) fn is_complex([[r, minus_m], [m, same]]: [[f64; 2]; 2]) -> bool {
    r.to_bits() == same.to_bits() && minus_m.to_bits() == (0.0 - m).to_bits()
}

/// The marks of each row. O(entries).
pub(super) fn marks(part: &Part<'_>) -> Vec<u8> {
    let (n, base) = (part.n_owned(), part.row_ptr[0]);
    let entries = |row: usize| part.row_ptr[row] - base..part.row_ptr[row + 1] - base;
    let columns = |row: usize| &part.col_idx[entries(row)];
    let pairs = |row: usize| part.values[entries(row)].chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    let mark = |row: usize| {
        let mut marks = BLOCKS.iter().fold(0, |marks, &block| marks | made_of(block));
        for run in columns(row).chunk_by(|&a, &b| u64::from(a) + 1 == u64::from(b)) {
            marks &= BLOCKS.iter().filter(|&&b| run.len() % b == 0).fold(0, |marks, &b| marks | made_of(b));
            if marks == 0 {
                break;
            }
        }
        if marks != 0 && row + 1 < n && columns(row) == columns(row + 1) {
            marks |= SAME_AS_NEXT;
            if marks & made_of(2) != 0
                && pairs(row).zip(pairs(row + 1)).all(|(upper, lower)| is_complex([upper, lower]))
            {
                marks |= COMPLEX;
            }
        }
        if part.halo.len > 0 && columns(row).iter().any(|&j| j as usize >= n) {
            marks |= NEEDS_HALO;
        }
        marks
    };
    (0..n).into_par_iter().with_min_len(1 << 10).map(mark).collect()
}

/// Whether `row` is the first of `block` rows of full blocks.
pub(super) fn begins(marks: &[u8], block: usize, row: usize) -> bool {
    marks[row] & made_of(block) != 0
        && marks.get(row..row + block - 1).is_some_and(|rows| rows.iter().all(|mark| mark & SAME_AS_NEXT != 0))
}

/// Rows that a thread looks through at a time.
const PIECE: usize = 1 << 14;

/// Where rows are cut into pieces: no rows with the same columns are in two, so that blocks of a piece are those of all rows.
pub(super) fn pieces(marks: &[u8]) -> Vec<Range<usize>> {
    let n = marks.len();
    let behind = |row: usize| (row..n).find(|&row| marks[row - 1] & SAME_AS_NEXT == 0).unwrap_or(n);
    let mut pieces = Vec::with_capacity(n.div_ceil(PIECE));
    let mut begin = 0;
    while begin < n {
        let end = if n - begin > PIECE { behind(begin + PIECE) } else { n };
        pieces.push(begin..end);
        begin = end;
    }
    pieces
}

/// The size of blocks that saves most columns, and values of complex blocks; 1 if less than half of the entries are in blocks.
pub(super) fn block_size(part: &Part<'_>, marks: &[u8], pieces: &[Range<usize>]) -> usize {
    if !marks.par_iter().with_min_len(PIECE).any(|mark| mark & SAME_AS_NEXT != 0) {
        return 1;
    }
    // entries in blocks, and in complex ones
    let covered_in = |block: usize, rows: &Range<usize>| {
        let (mut row, mut covered, mut complex) = (rows.start, 0, 0);
        while row < rows.end {
            if begins(marks, block, row) {
                let entries = part.row_ptr[row + block] - part.row_ptr[row];
                covered += entries;
                complex += if block == 2 && marks[row] & COMPLEX != 0 { entries } else { 0 };
                row += block;
            } else {
                row += 1;
            }
        }
        [covered, complex]
    };
    let saved = |block: usize| {
        let of_pieces = pieces.par_iter().map(|rows| covered_in(block, rows));
        let [covered, complex] = of_pieces.reduce(|| [0; 2], |[a, b], [c, d]| [a + c, b + d]);
        if 2 * covered < part.nnz() { 0 } else { covered - covered / (block * block) + complex / 2 }
    };
    let savings = BLOCKS.map(|block| (saved(block), block));
    savings.into_iter().max().filter(|&(saved, _)| saved > 0).map_or(1, |(_, block)| block)
}
