//! Rows of a few kinds: what discretisations on grids, and other products of short rules, are made of.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernels::Shape;
use crate::partition::Part;
use crate::solver::Format;

/// The most kinds that are looked for, and the most entries that they may have together: tables should stay in a cache.
const MAX_KINDS: usize = 1 << 12;
const MAX_ENTRIES: usize = 1 << 14;

/// A kind should stand for so many rows in the mean, or its table is no gain.
const ROWS_OF_A_KIND: usize = 16;

/// Room for entries over entries, above which rows are not padded.
const MOST_PADDING: f64 = 1.25;

/// Part of rows like the one before, below which a CPU seldom finds eight of a kind.
const ALIKE: f64 = 0.8;

/// The same for rows without values of their own: below, the host sums rows alone, three times as slowly as compressed ones.
const RUNS: f64 = 0.5;

/// Rows of a piece of the work.
const PIECE: usize = 1 << 14;

/// Rows by kinds: those of a kind have the same distances column − row, in the same order, and perhaps the same values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kinds {
    /// The kind of each row.
    pub(super) of_row: Vec<u16>,
    /// Where the entries of each kind begin, and where the last ends.
    pub(super) starts: Vec<u32>,
    /// Column − row.
    pub(super) distances: Vec<i32>,
    /// The values, if rows of a kind have the same.
    pub(super) values: Option<Vec<f64>>,
}

impl Kinds {
    /// The kinds of the rows of `part`, with the values or without; `None` if there are too many. They are numbered in the
    /// order in which they come first. O(entries); rows that are all different end it early.
    pub(super) fn find(part: &Part<'_>, with_values: bool) -> Option<Self> {
        let n = part.n_owned();
        let most = MAX_KINDS.min(n / ROWS_OF_A_KIND);
        let rows = Rows { part, with_values, hasher: RandomState::new() };
        let begins: Vec<usize> = (0..n).step_by(PIECE).collect();
        // of each piece: the first row of each of its kinds, and the kind of each row
        let pieces: Option<Vec<(Vec<usize>, Vec<u16>)>> = begins
            .into_par_iter()
            .map(|begin| {
                let mut known = Known::default();
                let of_row = (begin..n.min(begin + PIECE)).map(|row| known.number(&rows, row, most)).collect();
                Some((known.firsts, Option::<Vec<u16>>::from_iter::<Vec<Option<u16>>>(of_row)?))
            })
            .collect();
        let mut known = Known::default();
        let mut of_row = Vec::with_capacity(n);
        for (firsts, numbers) in pieces? {
            let global: Option<Vec<u16>> = firsts.iter().map(|&row| known.number(&rows, row, most)).collect();
            let global = global?;
            of_row.extend(numbers.into_iter().map(|number| global[number as usize]));
        }
        let mut kinds = Self { of_row, starts: vec![0], distances: Vec::new(), values: with_values.then(Vec::new) };
        for &row in &known.firsts {
            kinds.distances.extend(rows.distances(row));
            if let Some(values) = &mut kinds.values {
                values.extend_from_slice(rows.values(row));
            }
            kinds.starts.push(kinds.distances.len() as u32);
            if kinds.distances.len() > MAX_ENTRIES {
                return None;
            }
        }
        Some(kinds)
    }

    /// The kinds that a format needs, `None` for compressed rows. [`Format::Auto`] takes what reads the fewest bytes; but in
    /// the CPU shape rows with values of their own only where neighbours are mostly of one kind, as rows alone jump from
    /// value to value.
    ///
    /// # Errors
    /// [`Error::Usage`] if the rows do not fit the format.
    pub(super) fn for_format(part: &Part<'_>, format: Format, shape: Shape) -> Result<Option<Self>> {
        let n = part.n_owned();
        let refuse = |why: String| Error::Usage(format!("--format {format}: {why}; --format auto takes what fits"));
        let too_many = || {
            refuse(format!("the {n} rows have more than {} kinds, or too long ones", MAX_KINDS.min(n / ROWS_OF_A_KIND)))
        };
        // beyond, padding costs more than the columns that are saved
        let is_full = |kinds: &Self| (n * kinds.width()) as f64 <= MOST_PADDING * part.nnz() as f64;
        match format {
            Format::Csr | Format::Sell => Ok(None),
            Format::Stencil => Self::find(part, true).ok_or_else(too_many).map(Some),
            Format::Pattern => match Self::find(part, false).ok_or_else(too_many)? {
                kinds if n == 0 || is_full(&kinds) => Ok(Some(kinds)),
                kinds => Err(refuse(format!("room for {} entries in each row is mostly empty", kinds.width()))),
            },
            Format::Auto => {
                let is_fast = |kinds: &Self| shape == Shape::Gpu || kinds.alike() > ALIKE;
                let pattern = || Self::find(part, false).filter(|kinds| is_full(kinds) && is_fast(kinds));
                let has_runs = |kinds: &Self| shape == Shape::Gpu || kinds.alike() > RUNS;
                Ok(Self::find(part, true).filter(has_runs).or_else(pattern))
            }
        }
    }

    /// The part of rows that are of the kind of the one before.
    fn alike(&self) -> f64 {
        let alike = self.of_row.windows(2).filter(|pair| pair[0] == pair[1]).count();
        alike as f64 / self.of_row.len().max(1) as f64
    }

    /// Lowest and highest distance of a kind.
    pub(super) fn reach(&self, kind: u16) -> [i64; 2] {
        let distances = || self.distances[self.entries(kind)].iter().map(|&d| i64::from(d));
        [distances().min().unwrap_or(0), distances().max().unwrap_or(0)]
    }

    /// The same of each.
    fn reaches(&self) -> Vec<[i64; 2]> {
        (0..self.starts.len() - 1).map(|kind| self.reach(kind as u16)).collect()
    }

    /// Checks what kernels rely on: that each row's columns are below `n_cols`.
    ///
    /// # Panics
    /// If one is not.
    pub(super) fn check_columns(&self, n_cols: usize) {
        let reach = self.reaches();
        self.of_row.par_iter().enumerate().for_each(|(row, &kind)| {
            let [low, high] = reach[kind as usize].map(|distance| row as i64 + distance);
            assert!(low >= 0 && high < n_cols.max(row + 1) as i64, "columns {low} to {high} of {n_cols} in row {row}");
        });
    }

    /// The longest run of rows whose columns are all below `n`, the number of rows.
    pub(super) fn interior(&self, n: usize) -> Range<usize> {
        let reach = self.reaches();
        let (mut longest, mut begin) = (0..0, 0);
        for (row, &kind) in self.of_row.iter().enumerate() {
            if row as i64 + reach[kind as usize][1] >= n as i64 {
                begin = row + 1;
            } else if row + 1 - begin > longest.len() {
                longest = begin..row + 1;
            }
        }
        longest
    }

    /// Where the entries of a kind are.
    pub(super) fn entries(&self, kind: u16) -> Range<usize> {
        self.starts[kind as usize] as usize..self.starts[kind as usize + 1] as usize
    }

    /// The most entries of a row.
    pub(super) fn width(&self) -> usize {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }
}

/// The rows of a part, as they are compared.
struct Rows<'a> {
    part: &'a Part<'a>,
    with_values: bool,
    hasher: RandomState,
}

impl Rows<'_> {
    fn entries(&self, row: usize) -> Range<usize> {
        let base = self.part.row_ptr[0];
        self.part.row_ptr[row] - base..self.part.row_ptr[row + 1] - base
    }

    fn distances(&self, row: usize) -> impl Iterator<Item = i32> {
        self.part.col_idx[self.entries(row)].iter().map(move |&col| (i64::from(col) - row as i64) as i32)
    }

    fn values(&self, row: usize) -> &[f64] {
        &self.part.values[self.entries(row)]
    }

    fn hash(&self, row: usize) -> u64 {
        let distances: Vec<i32> = self.distances(row).collect();
        let bits: Vec<u64> =
            if self.with_values { self.values(row).iter().map(|v| v.to_bits()).collect() } else { Vec::new() };
        self.hasher.hash_one((distances, bits))
    }

    fn are_alike(&self, a: usize, b: usize) -> bool {
        let bits = |row: usize| self.values(row).iter().map(|v| v.to_bits());
        self.distances(a).eq(self.distances(b)) && (!self.with_values || bits(a).eq(bits(b)))
    }
}

/// Kinds that were met.
#[derive(Default)]
struct Known {
    /// The first row of each.
    firsts: Vec<usize>,
    /// By hash. Kinds with equal hashes follow each other at the next numbers.
    by_hash: HashMap<u64, u16>,
    /// The kind met last: neighbours are mostly alike.
    last: Option<u16>,
}

impl Known {
    /// The number of the kind of a row, a new one if need be; `None` above `most`.
    fn number(&mut self, rows: &Rows<'_>, row: usize, most: usize) -> Option<u16> {
        if let Some(last) = self.last.filter(|&last| rows.are_alike(self.firsts[last as usize], row)) {
            return Some(last);
        }
        let mut hash = rows.hash(row);
        let number = loop {
            match self.by_hash.get(&hash) {
                Some(&number) if rows.are_alike(self.firsts[number as usize], row) => break number,
                Some(_) => hash = hash.wrapping_add(1),
                None if self.firsts.len() >= most => return None,
                None => {
                    let number = self.firsts.len() as u16;
                    self.firsts.push(row);
                    self.by_hash.insert(hash, number);
                    break number;
                }
            }
        };
        self.last = Some(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, gallery};
    use crate::partition::{row_ranges, split};

    /// What the kinds say of each row, put together again.
    fn is_same(part: &Part<'_>, kinds: &Kinds) -> bool {
        let base = part.row_ptr[0];
        (0..part.n_owned()).all(|row| {
            let kind = kinds.of_row[row] as usize;
            let (begin, end) = (kinds.starts[kind] as usize, kinds.starts[kind + 1] as usize);
            let entries = part.row_ptr[row] - base..part.row_ptr[row + 1] - base;
            let columns = kinds.distances[begin..end].iter().map(|d| (row as i64 + i64::from(*d)) as u32);
            columns.eq(part.col_idx[entries.clone()].iter().copied())
                && kinds.values.as_ref().is_none_or(|values| values[begin..end] == part.values[entries])
        })
    }

    #[test]
    fn grids_have_few_kinds() {
        // inside and at each end of each direction
        let a = gallery::poisson2d([40, 50]).unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..2000))).remove(0);
        let kinds = Kinds::find(&whole, true).unwrap();
        assert_eq!((kinds.starts.len() - 1, kinds.width(), kinds.distances.len()), (9, 5, 4 * 3 + 4 * 4 + 5));
        assert!(is_same(&whole, &kinds));
        assert_eq!(&kinds.of_row[..2], [0, 1]);
        assert_eq!(
            (&kinds.distances[..3], &kinds.values.as_ref().unwrap()[..3]),
            (&[0, 1, 40][..], &[4.0, -1.0, -1.0][..])
        );
        // the halo of a block is at a fixed distance, too
        for part in split(&a, &row_ranges(&a, 3)) {
            let kinds = Kinds::find(&part, true).unwrap();
            assert!(is_same(&part, &kinds) && kinds.starts.len() <= 16);
        }
    }

    #[test]
    fn values_of_their_own() {
        let a: Csr = "jumps:12,contrast=1000".parse::<gallery::Spec>().unwrap().build().unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        assert_eq!(Kinds::find(&whole, true), None);
        let kinds = Kinds::find(&whole, false).unwrap();
        assert_eq!((kinds.starts.len() - 1, &kinds.values), (27, &None));
        assert!(is_same(&whole, &kinds));
    }

    #[test]
    fn on_a_cpu_neighbours_have_to_be_alike() {
        let chosen = |spec: &str, shape| {
            let a: Csr = spec.parse::<gallery::Spec>().unwrap().build().unwrap();
            // values of their own
            let values = (0..a.nnz()).map(|k| 1.0 + k as f64).collect();
            let a = Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
            let whole = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            Kinds::for_format(&whole, Format::Auto, shape).unwrap().is_some()
        };
        // three unknowns a node alternate
        assert_eq!(["poisson3d:20", "elasticity3d:20"].map(|spec| chosen(spec, Shape::Gpu)), [true, true]);
        assert_eq!(["poisson3d:20", "elasticity3d:20"].map(|spec| chosen(spec, Shape::Cpu)), [true, false]);
    }

    #[test]
    fn rows_that_differ_have_no_kinds() {
        let a = gallery::random_spd(1500, 8, 7).unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..1500))).remove(0);
        assert_eq!(Kinds::find(&whole, false), None);
        // nothing at all, and too few rows for a kind
        for n in [0, 1, 15, 16] {
            let a = Csr::from_triplets(n, n, &[], &[], &[]).unwrap();
            let whole = split(&a, std::slice::from_ref(&(0..n))).remove(0);
            let kinds = Kinds::find(&whole, true);
            assert_eq!(kinds.is_some(), n == 0 || n == 16, "{n}");
        }
    }
}
