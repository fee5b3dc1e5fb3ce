//! From entries to rows, on the processes that own these.
//!
//! Entries come in rounds, and stay as they came until the last: then those of the first process come first, in its order, and so
//! on. Rows are made by counting; what was moved to its row is forgotten, so that at no time there is room for all entries
//! twice if they come about in the order of rows.

use std::ops::Range;

use rayon::prelude::*;

use super::entry::{Packed, unpack};
use super::rows::Rows;
use crate::comm::processes::{Processes, exchange};
use crate::error::{Error, Result};
use crate::matrix_market::Zeros;
use crate::memory::{NoMemory, zeros};

/// Entries that are moved to their rows before they are forgotten.
const BATCH: usize = 1 << 20;

/// The rows of each process in the making.
pub(super) struct Assembly<'a> {
    processes: &'a dyn Processes,
    dims: [u64; 2],
    starts: Vec<u64>,
    /// What came from each process.
    arrived: Vec<Vec<Chunk>>,
}

/// Entries that came together.
struct Chunk {
    entries: Vec<Packed>,
    /// The lowest and the highest row of them.
    rows: (u32, u32),
}

/// Rows, and what was met on the way.
pub(super) struct Made {
    pub(super) rows: Rows,
    /// Entries on the diagonal that were added to another one.
    pub(super) diagonal: u64,
    /// The same off it.
    pub(super) off_diagonal: u64,
    /// The first sum that is infinite.
    pub(super) infinite: Option<Infinite>,
}

/// A sum of entries beyond all numbers: its place, and that the entry which made it so is the `nth` of its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Infinite {
    pub(super) row: u64,
    pub(super) column: u64,
    pub(super) nth: usize,
}

impl<'a> Assembly<'a> {
    /// No entries yet.
    ///
    /// # Errors
    /// [`Error::Usage`] if a process had 2³² rows.
    ///
    /// # Panics
    /// If `starts` are not one more than processes, or fall.
    pub(super) fn new(processes: &'a dyn Processes, dims: [u64; 2], starts: Vec<u64>) -> Result<Self> {
        assert!(starts.len() == processes.count() + 1 && starts.is_sorted(), "boundaries {starts:?}");
        if let Some(ends) = starts.windows(2).find(|ends| ends[1] - ends[0] > u32::MAX.into()) {
            let rows = ends[1] - ends[0];
            return Err(Error::Usage(format!("{rows} rows are too many for a process: use more of them")));
        }
        let arrived = (0..processes.count()).map(|_| Vec::new()).collect();
        Ok(Self { processes, dims, starts, arrived })
    }

    /// The first row of each process, and the end.
    pub(super) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Sends blocks of entries, divided by their owners, and takes what others send. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn round(&mut self, mut blocks: Vec<Vec<Vec<Packed>>>) -> Result<()> {
        let own = self.processes.process();
        let kept = blocks.iter_mut().map(|block| std::mem::take(&mut block[own])).collect();
        let to = |owner: usize| blocks.iter().map(|block| &block[owner][..]).collect::<Vec<_>>().concat();
        let to_each = (0..self.processes.count()).into_par_iter().map(to).collect();
        drop(blocks);
        for (from, entries) in exchange(self.processes, to_each)?.into_iter().enumerate() {
            if from != own {
                self.take(from, vec![entries]);
            }
        }
        self.take(own, kept);
        Ok(())
    }

    fn take(&mut self, from: usize, arrived: Vec<Vec<Packed>>) {
        let range = |entries: &[Packed]| {
            entries.iter().fold((u32::MAX, 0), |(low, high), entry| (low.min(entry[0]), high.max(entry[0])))
        };
        let chunks = arrived.into_par_iter().filter(|entries| !entries.is_empty());
        self.arrived[from].par_extend(chunks.map(|entries| Chunk { rows: range(&entries), entries }));
    }

    /// The own rows, in which entries are in the order in which they came, whatever their columns are.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn unsorted(self) -> Result<Rows> {
        let out_of_memory = |bytes: NoMemory| bytes.into_error("the rows of a process");
        let own = self.processes.process();
        let n = (self.starts[own + 1] - self.starts[own]) as usize;
        let chunks: Vec<Chunk> = self.arrived.into_iter().flatten().collect();
        let size = piece(n, &chunks);
        // the end of each row will stand where first its count is, and then its beginning
        let mut row_ptr: Vec<usize> = zeros(n + 1).map_err(out_of_memory)?;
        row_ptr[1..].par_chunks_mut(size).enumerate().for_each(|(piece, counts)| {
            let rows = piece * size..piece * size + counts.len();
            for chunk in chunks.iter().filter(|chunk| chunk.meets(rows.clone())) {
                for entry in &chunk.entries {
                    if let Some(count) = counts.get_mut((entry[0] as usize).wrapping_sub(rows.start)) {
                        *count += 1;
                    }
                }
            }
        });
        let mut nnz = 0;
        for at in &mut row_ptr[1..] {
            nnz += std::mem::replace(at, nnz);
        }
        let (mut columns, mut values) = (zeros(nnz).map_err(out_of_memory)?, zeros(nnz).map_err(out_of_memory)?);
        let mut pieces = Piece::all(size, &mut row_ptr[1..], &mut columns, &mut values);
        let mut chunks = chunks.into_iter();
        while !chunks.as_slice().is_empty() {
            let mut batch = Vec::new();
            let mut count = 0;
            while count < BATCH
                && let Some(chunk) = chunks.next()
            {
                count += chunk.entries.len();
                batch.push(chunk);
            }
            pieces.par_iter_mut().for_each(|piece| piece.fill(&batch));
        }
        drop(pieces);
        let [n_rows, n_cols] = self.dims;
        Ok(Rows { n_rows, n_cols, starts: self.starts, row_ptr, columns, values })
    }

    /// The own rows, sorted; what shares a place is added, in the order in which it came, and zeros are dropped if asked to.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn finish(self, zeros: Zeros) -> Result<Made> {
        let first = self.starts[self.processes.process()];
        Ok(tidied(self.unsorted()?, first, zeros))
    }
}

impl Chunk {
    /// Whether it has entries in one of these rows, as far as its range tells.
    fn meets(&self, rows: Range<usize>) -> bool {
        (self.rows.0 as usize) < rows.end && self.rows.1 as usize >= rows.start
    }
}

/// Into pieces of how many rows threads divide their work: small ones if few chunks reach into each, and otherwise one for
/// each thread, as each looks through all chunks.
fn piece(n_rows: usize, chunks: &[Chunk]) -> usize {
    let threads = rayon::current_num_threads();
    let size = |pieces: usize| n_rows.div_ceil(pieces).max(1);
    let looks = |size: usize| -> usize {
        let touched = |(low, high): (u32, u32)| high as usize / size - low as usize / size + 1;
        chunks.iter().map(|chunk| touched(chunk.rows) * chunk.entries.len()).sum()
    };
    let tolerable = 4 * chunks.iter().map(|chunk| chunk.entries.len()).sum::<usize>();
    let fine = [64, 16, 4].into_iter().map(|times| size(times * threads)).find(|size| looks(*size) <= tolerable);
    fine.unwrap_or(size(threads))
}

/// Rows that one thread fills at a time.
struct Piece<'a> {
    /// Its first row.
    first: usize,
    /// Where its entries begin in the arrays of all.
    start: usize,
    /// Where the next entry of each row goes there.
    next: &'a mut [usize],
    columns: &'a mut [u64],
    values: &'a mut [f64],
}

impl<'a> Piece<'a> {
    /// All rows, of which `next` says where they begin, in pieces of `size` rows.
    fn all(size: usize, next: &'a mut [usize], columns: &'a mut [u64], values: &'a mut [f64]) -> Vec<Self> {
        let mut starts: Vec<usize> = next.iter().step_by(size).copied().collect();
        starts.push(columns.len());
        let arrays = divided(&starts, columns, values).into_iter().zip(starts.iter().copied());
        let pieces = next.chunks_mut(size).enumerate().zip(arrays);
        pieces
            .map(|((k, next), ((columns, values), start))| Self { first: k * size, start, next, columns, values })
            .collect()
    }

    /// Takes what is its own.
    fn fill(&mut self, chunks: &[Chunk]) {
        let rows = self.first..self.first + self.next.len();
        for chunk in chunks.iter().filter(|chunk| chunk.meets(rows.clone())) {
            for &entry in &chunk.entries {
                let (row, column, value) = unpack(entry);
                if let Some(next) = self.next.get_mut((row as usize).wrapping_sub(self.first)) {
                    let at = *next - self.start;
                    (self.columns[at], self.values[at]) = (column, value);
                    *next += 1;
                }
            }
        }
    }
}

/// The arrays of entries in parts that begin at `starts`, behind which is the end.
fn divided<'a>(
    starts: &[usize],
    mut columns: &'a mut [u64],
    mut values: &'a mut [f64],
) -> Vec<(&'a mut [u64], &'a mut [f64])> {
    let mut parts = Vec::with_capacity(starts.len());
    for ends in starts.windows(2) {
        let (own_columns, more_columns) = columns.split_at_mut(ends[1] - ends[0]);
        let (own_values, more_values) = values.split_at_mut(ends[1] - ends[0]);
        (columns, values) = (more_columns, more_values);
        parts.push((own_columns, own_values));
    }
    parts
}

/// What tidying a piece met.
#[derive(Default)]
struct Tidied {
    diagonal: u64,
    off_diagonal: u64,
    infinite: Option<Infinite>,
    /// The lengths of its rows, if any is shorter than before.
    lengths: Option<Vec<usize>>,
}

/// Sorts the rows, of which the first is `first`, and adds what shares a place.
pub(super) fn tidied(mut rows: Rows, first: u64, zeros: Zeros) -> Made {
    let n = rows.len();
    let size = n.div_ceil(64 * rayon::current_num_threads()).max(1);
    let mut starts: Vec<usize> = rows.row_ptr[..n].iter().step_by(size).copied().collect();
    starts.push(rows.nnz());
    let tidied: Vec<Tidied> = divided(&starts, &mut rows.columns, &mut rows.values)
        .into_par_iter()
        .enumerate()
        .map(|(piece, (columns, values))| {
            let begin = piece * size;
            tidy(first + begin as u64, &rows.row_ptr[begin..=n.min(begin + size)], columns, values, zeros)
        })
        .collect();
    close_gaps(&mut rows, size, &tidied);
    let none = Made { rows, diagonal: 0, off_diagonal: 0, infinite: None };
    tidied.into_iter().fold(none, |all, piece| Made {
        diagonal: all.diagonal + piece.diagonal,
        off_diagonal: all.off_diagonal + piece.off_diagonal,
        infinite: all.infinite.or(piece.infinite),
        ..all
    })
}

/// The same of a piece, whose rows begin and end where `row_ptr` says. What is left moves to its front.
fn tidy(first: u64, row_ptr: &[usize], columns: &mut [u64], values: &mut [f64], zeros: Zeros) -> Tidied {
    let ends = &row_ptr[1..];
    let mut tidied = Tidied::default();
    let mut lengths = Vec::with_capacity(ends.len());
    let mut scratch = Vec::new();
    let (mut start, mut kept) = (0, 0);
    for (row, end) in (first..).zip(ends) {
        let span = start..end - row_ptr[0];
        start = span.end;
        let in_order = columns[span.clone()].windows(2).all(|pair| pair[0] < pair[1]);
        if in_order && !(zeros == Zeros::Drop && values[span.clone()].contains(&0.0)) {
            if kept < span.start {
                columns.copy_within(span.clone(), kept);
                values.copy_within(span.clone(), kept);
            }
            lengths.push(span.len());
            kept += span.len();
            continue;
        }
        scratch.clear();
        let entries = columns[span.clone()].iter().copied().zip(values[span].iter().copied());
        scratch.extend(entries.enumerate().map(|(nth, (column, value))| (column, nth, value)));
        scratch.sort_by_key(|&(column, ..)| column); // stable: what shares a place keeps its order
        let from = kept;
        for same in scratch.chunk_by(|a, b| a.0 == b.0) {
            let (column, _, mut sum) = same[0];
            for &(_, nth, value) in &same[1..] {
                sum += value;
                if !sum.is_finite() && tidied.infinite.is_none() {
                    tidied.infinite = Some(Infinite { row, column, nth });
                }
            }
            *(if row == column { &mut tidied.diagonal } else { &mut tidied.off_diagonal }) += same.len() as u64 - 1;
            if zeros == Zeros::Keep || sum != 0.0 {
                (columns[kept], values[kept]) = (column, sum);
                kept += 1;
            }
        }
        lengths.push(kept - from);
    }
    tidied.lengths = (kept < start).then_some(lengths);
    tidied
}

/// Moves pieces of `size` rows together after some have become shorter.
fn close_gaps(rows: &mut Rows, size: usize, tidied: &[Tidied]) {
    if tidied.iter().all(|piece| piece.lengths.is_none()) {
        return;
    }
    let n = rows.len();
    let (mut kept, mut end) = (0, 0);
    for (k, piece) in tidied.iter().enumerate() {
        let (from, to) = (end, kept);
        for (i, row) in (k * size..n.min((k + 1) * size)).enumerate() {
            let start = std::mem::replace(&mut end, rows.row_ptr[row + 1]);
            kept += piece.lengths.as_ref().map_or(end - start, |lengths| lengths[i]);
            rows.row_ptr[row + 1] = kept;
        }
        rows.columns.copy_within(from..from + kept - to, to);
        rows.values.copy_within(from..from + kept - to, to);
    }
    rows.columns.truncate(kept);
    rows.columns.shrink_to_fit();
    rows.values.truncate(kept);
    rows.values.shrink_to_fit();
}
