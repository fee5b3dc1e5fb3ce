//! From entries in the file's order to compressed rows, without a sort of the whole.
//!
//! The rows are divided into *pieces*. Each piece belongs to one thread, which looks through the blocks that reach into
//! it, in the file's order, and takes what is its own: first to count the entries of each row, then to move columns,
//! and then values, to their rows. So the result is the same whatever the number of threads. Rows of files in any
//! usual order come out sorted; the others are sorted one by one.

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;

use super::body::{Block, Entries, Wave};
use super::header::{Field, Header, mirrored};
use super::line::Value;
use crate::Csr;
use crate::error::matrix_market::{Error, ErrorKind};
use crate::memory::{NoMemory, zeros};

/// What becomes of stored entries whose value is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Zeros {
    /// They stay entries of the matrix.
    #[default]
    Keep,
    /// They are left out; so is what adds up to zero.
    Drop,
}

/// What the entries make, and how many of them were added to another one.
pub(super) fn assemble<T: Value>(
    name: &str,
    header: &Header,
    mut entries: Entries<T>,
    zeros: Zeros,
) -> crate::Result<(Csr<T>, u64)> {
    let out_of_memory = |bytes: NoMemory| bytes.into_error("the matrix");
    let mut division = Division::of(header, &entries).map_err(out_of_memory)?;
    let mut rows = division.fill(header, &mut entries).map_err(out_of_memory)?;
    let tidied = rows.tidy(&division, zeros);
    let mirrors = header.symmetry.mirrors();
    if mirrors
        && tidied.off_diagonal > 0
        && entries.in_both_triangles()
        && let Some((line, row, col)) = first_in_both_triangles(&entries)
    {
        let (row, col, symmetry) = (row as usize + 1, col as usize + 1, header.symmetry);
        return Err(Error::whole(name, line, ErrorKind::BothTriangles { row, col, symmetry }));
    }
    if let Some(Infinite { row, col, nth }) = tidied.infinite {
        let line = line_of_nth(&entries, mirrors, row, nth);
        return Err(Error::whole(name, line, ErrorKind::SumNotFinite { row: row as usize + 1, col: col as usize + 1 }));
    }
    drop(entries);
    rows.close_gaps(&mut division, &tidied);
    // off the diagonal each duplicate was met twice, once a triangle
    let duplicates = tidied.diagonal + if mirrors { tidied.off_diagonal / 2 } else { tidied.off_diagonal };
    Ok((Csr::assembled(header.rows, header.cols, division.row_ptr, rows.col_idx, rows.values), duplicates))
}

/// Where the rows begin, duplicates still counted apart, and how they are divided.
struct Division {
    row_ptr: Vec<usize>,
    pieces: Vec<Range<usize>>,
    mirrors: bool,
}

impl Division {
    fn of<T: Sync>(header: &Header, entries: &Entries<T>) -> Result<Self, NoMemory> {
        let mirrors = header.symmetry.mirrors();
        let pieces = pieces(header.rows, entries, mirrors);
        let mut row_ptr: Vec<usize> = zeros(header.rows + 1)?;
        let size = pieces.first().map_or(1, Range::len);
        row_ptr[1..].par_chunks_mut(size).zip(&pieces).for_each(|(counts, piece)| {
            for (wave, block) in reaching_into(piece, entries, mirrors) {
                let (rows, cols) = (&wave.rows[block.range()], &wave.cols[block.range()]);
                count(rows, cols, piece.start as u32, counts, mirrors);
            }
            sum_up(counts);
        });
        let mut sums: Vec<usize> = pieces.iter().map(|piece| row_ptr[piece.end]).collect();
        sum_up(&mut sums);
        let before = [0].into_par_iter().chain(sums);
        row_ptr[1..]
            .par_chunks_mut(size)
            .zip(before)
            .for_each(|(ends, before)| ends.iter_mut().for_each(|end| *end += before));
        Ok(Self { row_ptr, pieces, mirrors })
    }

    fn nnz(&self) -> usize {
        self.row_ptr.last().copied().unwrap_or(0)
    }

    /// Where the entries of a piece are.
    fn span(&self, piece: &Range<usize>) -> Range<usize> {
        self.row_ptr[piece.start]..self.row_ptr[piece.end]
    }

    /// An array of entries, divided into pieces.
    fn divide<'a, E>(&self, mut all: &'a mut [E]) -> Vec<&'a mut [E]> {
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let (part, rest) = all.split_at_mut(self.span(piece).len());
            parts.push(part);
            all = rest;
        }
        parts
    }

    /// Moves the entries and their mirror images to their rows, each row in the file's order.
    fn fill<T: Value>(&self, header: &Header, entries: &mut Entries<T>) -> Result<Rows<T>, NoMemory> {
        let (mut col_idx, symmetry) = (zeros::<u32>(self.nnz())?, header.symmetry);
        let mut values;
        if self.mirrors && header.field != Field::Pattern {
            values = zeros::<T>(self.nnz())?;
            let parts = self.divide(&mut col_idx).into_iter().zip(self.divide(&mut values)).collect();
            self.place(entries, parts, |(cols, values), at, view, k, is_mirror| {
                cols[at] = if is_mirror { view.rows[k] } else { view.cols[k] };
                values[at] = if is_mirror { mirrored(symmetry, view.values[k]) } else { view.values[k] };
            });
            return Ok(Rows { col_idx, values });
        }
        self.place(entries, self.divide(&mut col_idx), |cols, at, view, k, is_mirror| {
            cols[at] = if is_mirror { view.rows[k] } else { view.cols[k] };
        });
        if !self.mirrors {
            // so that the values' new places are paid by the columns' old ones
            for wave in &mut entries.waves {
                wave.cols = Vec::new();
            }
        }
        values = zeros::<T>(self.nnz())?;
        if header.field == Field::Pattern {
            values.par_iter_mut().for_each(|value| *value = T::ONE);
        } else {
            self.place(entries, self.divide(&mut values), |values, at, view, k, _| values[at] = view.values[k]);
        }
        Ok(Rows { col_idx, values })
    }

    /// Calls `put` with the part of a piece, a place in it, and the entry that belongs there, given by the entries of its
    /// block, its number among them, and whether it is its mirror image that belongs there.
    fn place<T: Sync, P: Send>(
        &self,
        entries: &Entries<T>,
        parts: Vec<P>,
        put: impl Fn(&mut P, usize, &View<T>, usize, bool) + Sync,
    ) {
        parts.into_par_iter().zip(&self.pieces).for_each(|(mut part, piece)| {
            let start = self.row_ptr[piece.start];
            let mut next: Vec<usize> = self.row_ptr[piece.clone()].iter().map(|place| place - start).collect();
            let base = piece.start as u32;
            for (wave, block) in reaching_into(piece, entries, self.mirrors) {
                let view = View::of(wave, block);
                for k in 0..view.rows.len() {
                    let row = view.rows[k];
                    if let Some(place) = next.get_mut(row.wrapping_sub(base) as usize) {
                        put(&mut part, *place, &view, k, false);
                        *place += 1;
                    }
                    if self.mirrors
                        && view.cols[k] != row
                        && let Some(place) = next.get_mut(view.cols[k].wrapping_sub(base) as usize)
                    {
                        put(&mut part, *place, &view, k, true);
                        *place += 1;
                    }
                }
            }
        });
    }
}

/// The entries of a block.
struct View<'a, T> {
    rows: &'a [u32],
    cols: &'a [u32],
    values: &'a [T],
}

impl<'a, T> View<'a, T> {
    fn of(wave: &'a Wave<T>, block: &Block) -> Self {
        // what a file doesn't have, or is not needed any more, is empty
        Self {
            rows: &wave.rows[block.range()],
            cols: wave.cols.get(block.range()).unwrap_or_default(),
            values: wave.values.get(block.range()).unwrap_or_default(),
        }
    }
}

/// Replaces each count by the sum of all up to it.
fn sum_up(counts: &mut [usize]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

fn count(rows: &[u32], cols: &[u32], base: u32, counts: &mut [usize], mirrors: bool) {
    let mut add = |row: u32| {
        if let Some(count) = counts.get_mut(row.wrapping_sub(base) as usize) {
            *count += 1;
        }
    };
    if mirrors {
        for (&i, &j) in rows.iter().zip(cols) {
            add(i);
            if i != j {
                add(j);
            }
        }
    } else {
        for &i in rows {
            add(i);
        }
    }
}

/// Divides the rows: finely where the file's order is such that few blocks reach into each piece, and otherwise into no
/// more pieces than there are threads, as each looks through all blocks.
fn pieces<T>(n_rows: usize, entries: &Entries<T>, mirrors: bool) -> Vec<Range<usize>> {
    let threads = rayon::current_num_threads();
    let size = |pieces: usize| n_rows.div_ceil(pieces).max(1);
    let visits = |size: usize| -> usize {
        let touched = |(low, high): (u32, u32)| (high as usize / size + 1).saturating_sub(low as usize / size);
        let of_block = |block: &Block| {
            let mirrored = if mirrors { touched(block.found.cols) } else { 0 };
            (touched(block.found.rows) + mirrored) * block.found.entries
        };
        entries.blocks().map(|(_, block)| of_block(block)).sum()
    };
    let tolerable = 4 * entries.count;
    let fine = [16, 8, 4, 2].into_iter().map(|times| size(times * threads)).find(|&size| visits(size) <= tolerable);
    let size = fine.unwrap_or(size(threads));
    (0..n_rows).step_by(size).map(|start| start..n_rows.min(start + size)).collect()
}

/// The blocks with entries, or mirror images of entries, in some rows.
fn reaching_into<'a, T>(
    piece: &Range<usize>,
    entries: &'a Entries<T>,
    mirrors: bool,
) -> impl Iterator<Item = (&'a Wave<T>, &'a Block)> {
    let piece = piece.clone();
    let meets = move |(low, high): (u32, u32)| (low as usize) < piece.end && high as usize >= piece.start;
    entries.blocks().filter(move |(_, block)| {
        block.found.entries > 0 && (meets(block.found.rows) || mirrors && meets(block.found.cols))
    })
}

/// Compressed rows in the making.
struct Rows<T> {
    col_idx: Vec<u32>,
    values: Vec<T>,
}

/// What tidying met.
#[derive(Default)]
struct Tidied {
    /// Entries added to others on the diagonal.
    diagonal: u64,
    /// The same off it.
    off_diagonal: u64,
    /// The first sum that is infinite.
    infinite: Option<Infinite>,
    /// For each piece the lengths of its rows, if any is shorter than its entries were.
    lengths: Vec<Option<Vec<usize>>>,
}

/// A sum of entries beyond all numbers: its place, and that the entry which made it so is the `nth` of its row.
#[derive(Clone, Copy)]
struct Infinite {
    row: u32,
    col: u32,
    nth: usize,
}

impl<T: Value> Rows<T> {
    /// Sorts each row by columns, adds what shares a place, in the file's order, and drops zeros if asked to. What is
    /// left of a piece moves to its front.
    fn tidy(&mut self, division: &Division, zeros: Zeros) -> Tidied {
        let parts = division.divide(&mut self.col_idx).into_par_iter().zip(division.divide(&mut self.values));
        let tidied: Vec<Tidied> = parts
            .zip(&division.pieces)
            .map(|((cols, values), piece)| {
                let start = division.row_ptr[piece.start];
                let ends = division.row_ptr[piece.start + 1..=piece.end].iter().map(|end| end - start);
                tidy_piece(piece.start as u32, ends, cols, values, zeros)
            })
            .collect();
        tidied.into_iter().fold(Tidied::default(), |all, piece| Tidied {
            diagonal: all.diagonal + piece.diagonal,
            off_diagonal: all.off_diagonal + piece.off_diagonal,
            infinite: all.infinite.or(piece.infinite),
            lengths: [all.lengths, piece.lengths].concat(),
        })
    }

    /// Moves the pieces together after some have become shorter.
    fn close_gaps(&mut self, division: &mut Division, tidied: &Tidied) {
        if tidied.lengths.iter().all(Option::is_none) {
            return;
        }
        let (mut kept, mut end) = (0, 0);
        for (piece, lengths) in division.pieces.iter().zip(&tidied.lengths) {
            let (from, to) = (end, kept);
            for (k, i) in piece.clone().enumerate() {
                let start = std::mem::replace(&mut end, division.row_ptr[i + 1]);
                kept += lengths.as_ref().map_or(end - start, |lengths| lengths[k]);
                division.row_ptr[i + 1] = kept;
            }
            self.col_idx.copy_within(from..from + kept - to, to);
            self.values.copy_within(from..from + kept - to, to);
        }
        self.col_idx.truncate(kept);
        self.col_idx.shrink_to_fit();
        self.values.truncate(kept);
        self.values.shrink_to_fit();
    }
}

/// See [`Rows::tidy`]; the first row is `first`, and each ends where `ends` says.
fn tidy_piece<T: Value>(
    first: u32,
    ends: impl ExactSizeIterator<Item = usize>,
    cols: &mut [u32],
    values: &mut [T],
    zeros: Zeros,
) -> Tidied {
    let mut tidied = Tidied::default();
    let mut lengths = Vec::with_capacity(ends.len());
    let mut scratch = Vec::new();
    let (mut start, mut kept) = (0, 0);
    for (row, end) in (first..).zip(ends) {
        let span = start..end;
        start = end;
        let in_order = cols[span.clone()].windows(2).all(|pair| pair[0] < pair[1]);
        let drops = zeros == Zeros::Drop && values[span.clone()].contains(&T::default());
        if in_order && !drops {
            if kept < span.start {
                cols.copy_within(span.clone(), kept);
                values.copy_within(span.clone(), kept);
            }
            lengths.push(span.len());
            kept += span.len();
            continue;
        }
        scratch.clear();
        let numbered = (0..).zip(cols[span.clone()].iter().copied().zip(values[span].iter().copied()));
        scratch.extend(numbered.map(|(nth, (col, value))| (col, nth, value)));
        scratch.sort_by_key(|&(col, ..)| col); // stable: what shares a place keeps its order
        let from = kept;
        for same in scratch.chunk_by(|a, b| a.0 == b.0) {
            let (col, _, mut sum) = same[0];
            for &(_, nth, value) in &same[1..] {
                sum += value;
                if !sum.is_finite() && tidied.infinite.is_none() {
                    tidied.infinite = Some(Infinite { row, col, nth });
                }
            }
            *(if row == col { &mut tidied.diagonal } else { &mut tidied.off_diagonal }) += same.len() as u64 - 1;
            if zeros == Zeros::Keep || sum != T::default() {
                (cols[kept], values[kept]) = (col, sum);
                kept += 1;
            }
        }
        lengths.push(kept - from);
    }
    tidied.lengths.push((kept < start).then_some(lengths));
    tidied
}

/// The line, row and column of the first entry whose mirror image was there before it.
fn first_in_both_triangles<T>(entries: &Entries<T>) -> Option<(u64, u32, u32)> {
    let mut is_above = HashMap::new();
    entries.blocks().find_map(|(wave, block)| {
        let places = wave.rows[block.range()].iter().zip(&wave.cols[block.range()]).enumerate();
        let is_second = |&(_, (&i, &j)): &(usize, (&u32, &u32))| {
            i != j && *is_above.entry((i.min(j), i.max(j))).or_insert(i < j) != (i < j)
        };
        let mut places = places;
        places.find(is_second).map(|(k, (&i, &j))| (block.line_of(k), i, j))
    })
}

/// The line of the `nth` entry, or mirror image of one, that a row has.
fn line_of_nth<T>(entries: &Entries<T>, mirrors: bool, row: u32, nth: usize) -> u64 {
    let of_block = |(wave, block): (&'_ Wave<T>, &'_ Block)| {
        let rows = &wave.rows[block.range()];
        let in_row = move |k: &usize| rows[*k] == row || mirrors && wave.cols[block.start + k] == row;
        (0..rows.len()).filter(in_row).map(|k| block.line_of(k)).collect::<Vec<u64>>()
    };
    entries.blocks().flat_map(of_block).nth(nth).unwrap_or(1)
}
