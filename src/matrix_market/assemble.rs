//! From entries in the file's order to compressed rows.

use std::collections::HashMap;

use super::entries::{Entries, Entry, NoMemory, reserve};
use super::error::ErrorKind;
use super::header::Header;
use crate::Csr;

/// What the entries make, and how many of them were added to another one.
///
/// `error_at` makes an error in a given line.
pub(super) fn assemble(
    header: &Header,
    entries: &Entries,
    error_at: impl Fn(u64, ErrorKind) -> crate::Error,
) -> crate::Result<(Csr, usize)> {
    let mut rows = Rows::scatter(header, entries).map_err(|bytes| bytes.into_error("the matrix"))?;
    let mirrors = header.symmetry.mirrors();
    let merged = rows.sort_and_merge();
    if mirrors
        && merged.off_diagonal > 0
        && entries.in_both_triangles()
        && let Some((k, entry)) = first_in_both_triangles(entries)
    {
        let (row, col, symmetry) = (entry.row as usize + 1, entry.col as usize + 1, header.symmetry);
        return Err(error_at(entries.line_of(k), ErrorKind::BothTriangles { row, col, symmetry }));
    }
    if let Some((row, col)) = merged.infinite {
        let k = first_infinite_sum(entries, mirrors, row, col);
        let (row, col) = (row as usize + 1, col as usize + 1);
        return Err(error_at(entries.line_of(k), ErrorKind::SumNotFinite { row, col }));
    }
    // off the diagonal each duplicate was met twice, once a triangle
    let duplicates = merged.diagonal + if mirrors { merged.off_diagonal / 2 } else { merged.off_diagonal };
    let a = Csr::new(header.rows, header.cols, rows.row_ptr, rows.col_idx, rows.values)?;
    Ok((a, duplicates))
}

/// Compressed rows in the making.
struct Rows {
    row_ptr: Vec<usize>,
    col_idx: Vec<u32>,
    values: Vec<f64>,
}

/// What merging met.
#[derive(Default)]
struct Merged {
    /// Entries added to others on the diagonal.
    diagonal: usize,
    /// The same off it.
    off_diagonal: usize,
    /// The first place, from 0, whose entries add up to something infinite.
    infinite: Option<(u32, u32)>,
}

/// `len` zeros, unless there is no memory for them.
fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, NoMemory> {
    let mut zeros = Vec::new();
    reserve(&mut zeros, len)?;
    zeros.resize(len, T::default());
    Ok(zeros)
}

impl Rows {
    /// Moves the entries and their mirror images to their rows, each row in the file's order.
    ///
    /// If the file's entries are sorted, by rows or by columns, so is each row, mirror images included.
    fn scatter(header: &Header, entries: &Entries) -> Result<Self, NoMemory> {
        let symmetry = header.symmetry;
        // row i is counted two places further on, so that the sums leave its start, the place to fill next,
        // at i + 1, which filling then moves to its end: the start of row i + 1
        let mut row_ptr: Vec<usize> = zeros(header.rows + 2)?;
        for entry in entries.iter() {
            row_ptr[entry.row as usize + 2] += 1;
            if symmetry.mirrors() && entry.row != entry.col {
                row_ptr[entry.col as usize + 2] += 1;
            }
        }
        let mut sum = 0;
        for count in &mut row_ptr {
            sum += *count;
            *count = sum;
        }
        let (mut col_idx, mut values) = (zeros::<u32>(sum)?, zeros::<f64>(sum)?);
        let mut put = |row: u32, col, value| {
            let to = &mut row_ptr[row as usize + 1];
            col_idx[*to] = col;
            values[*to] = value;
            *to += 1;
        };
        for &Entry { row, col, value } in entries.iter() {
            put(row, col, value);
            if symmetry.mirrors() && row != col {
                put(col, row, symmetry.mirrored(value));
            }
        }
        row_ptr.truncate(header.rows + 1);
        Ok(Self { row_ptr, col_idx, values })
    }

    /// Sorts each row by columns and adds what shares a place, in the file's order.
    fn sort_and_merge(&mut self) -> Merged {
        let Self { row_ptr, col_idx, values } = self;
        let mut merged = Merged::default();
        let mut scratch = Vec::new();
        let (mut start, mut kept) = (0, 0);
        for row in 0..row_ptr.len() - 1 {
            let end = row_ptr[row + 1];
            if !col_idx[start..end].is_sorted() {
                sort(&mut col_idx[start..end], &mut values[start..end], &mut scratch);
            }
            let first = kept;
            for k in start..end {
                let (col, value) = (col_idx[k], values[k]);
                if kept > first && col_idx[kept - 1] == col {
                    let sum = &mut values[kept - 1];
                    *sum += value;
                    if !sum.is_finite() && merged.infinite.is_none() {
                        merged.infinite = Some((row as u32, col));
                    }
                    let count = if row == col as usize { &mut merged.diagonal } else { &mut merged.off_diagonal };
                    *count += 1;
                } else {
                    col_idx[kept] = col;
                    values[kept] = value;
                    kept += 1;
                }
            }
            row_ptr[row + 1] = kept;
            start = end;
        }
        if kept < start {
            col_idx.truncate(kept);
            col_idx.shrink_to_fit();
            values.truncate(kept);
            values.shrink_to_fit();
        }
        merged
    }
}

/// Sorts a row by columns; what shares a place keeps its order.
fn sort(cols: &mut [u32], values: &mut [f64], scratch: &mut Vec<(u32, f64)>) {
    scratch.clear();
    scratch.extend(cols.iter().copied().zip(values.iter().copied()));
    scratch.sort_by_key(|&(col, _)| col);
    for ((&(from_col, from_value), col), value) in scratch.iter().zip(cols).zip(values) {
        (*col, *value) = (from_col, from_value);
    }
}

/// The first entry whose mirror image was there before it.
fn first_in_both_triangles(entries: &Entries) -> Option<(usize, &Entry)> {
    let mut is_above = HashMap::new();
    entries.iter().enumerate().find(|(_, entry)| {
        let (low, high) = (entry.row.min(entry.col), entry.row.max(entry.col));
        let above = entry.row < entry.col;
        low != high && *is_above.entry((low, high)).or_insert(above) != above
    })
}

/// The entry that makes the sum at a place infinite.
fn first_infinite_sum(entries: &Entries, mirrors: bool, row: u32, col: u32) -> usize {
    let mut sum = 0.0;
    let here = |e: &Entry| (e.row, e.col) == (row, col) || mirrors && (e.col, e.row) == (row, col);
    let is_culprit = |e: &Entry| {
        if here(e) {
            sum += e.value;
        }
        !f64::is_finite(sum)
    };
    entries.iter().position(is_culprit).unwrap_or(entries.len())
}
