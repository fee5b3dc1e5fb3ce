//! A dictionary of the patterns of rows, where these are few: what discretisations on grids, and other products of short rules, are made of.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::Shape;
use crate::partition::Part;

/// The most patterns that are looked for, and the most entries that they may have together: tables should stay in a cache.
const MAX_PATTERNS: usize = 1 << 12;
const MAX_ENTRIES: usize = 1 << 14;

/// A pattern should stand for so many rows in the mean, or its table is no gain.
const ROWS_OF_A_PATTERN: usize = 16;

/// Room for entries over entries, above which rows are not padded.
const MOST_PADDING: f64 = 1.25;

/// Part of rows like the one before, below which a CPU seldom finds eight of a pattern.
const ALIKE: f64 = 0.8;

/// The same for rows without values of their own: below, the host sums rows alone, three times as slowly as compressed ones.
const RUNS: f64 = 0.5;

/// Rows that a thread counts at a time: many, beside the patterns.
const COUNTED: usize = 1 << 18;

/// Rows of a piece of the work.
const PIECE: usize = 1 << 14;

/// Patterns of rows: rows of a pattern have the same distances column − row, in the same order, and perhaps the same values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dictionary {
    /// The pattern of each row.
    pub(super) of_row: Vec<u16>,
    /// Where the entries of each pattern begin, and where the last ends.
    pub(super) starts: Vec<u32>,
    /// Column − row.
    pub(super) distances: Vec<i32>,
    /// The values, if rows of a pattern have the same.
    pub(super) values: Option<Vec<f64>>,
}

impl Dictionary {
    /// The patterns of the rows of `part`, with the values or without; `None` if there are too many. They are numbered in the
    /// order in which they come first. O(entries); rows that are all different end it early.
    pub(super) fn find(part: &Part<'_>, with_values: bool) -> Option<Self> {
        let n = part.n_owned();
        let most = MAX_PATTERNS.min(n / ROWS_OF_A_PATTERN);
        let rows = Rows { part, with_values, hasher: RandomState::new() };
        let begins: Vec<usize> = (0..n).step_by(PIECE).collect();
        // of each piece: the first row of each of its patterns, and the pattern of each row
        let pieces: Option<Vec<(Vec<usize>, Vec<u16>)>> = begins
            .into_par_iter()
            .map(|begin| {
                let mut known = Known::default();
                let of_row = (begin..n.min(begin + PIECE)).map(|row| known.number(&rows, row, most)).collect();
                Some((known.firsts, Option::<Vec<u16>>::from_iter::<Vec<Option<u16>>>(of_row)?))
            })
            .collect();
        let mut known = Known::default();
        let pieces = pieces?;
        let mut globals = Vec::with_capacity(pieces.len());
        for (firsts, _) in &pieces {
            let global: Option<Vec<u16>> = firsts.iter().map(|&row| known.number(&rows, row, most)).collect();
            globals.push(global?);
        }
        let mut of_row = vec![0; n];
        of_row.par_chunks_mut(PIECE).zip(&pieces).zip(&globals).for_each(|((to, (_, numbers)), global)| {
            to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = global[number as usize]);
        });
        let mut dictionary =
            Self { of_row, starts: vec![0], distances: Vec::new(), values: with_values.then(Vec::new) };
        for &row in &known.firsts {
            dictionary.distances.extend(rows.distances(row));
            if let Some(values) = &mut dictionary.values {
                values.extend_from_slice(rows.values(row));
            }
            dictionary.starts.push(dictionary.distances.len() as u32);
            if dictionary.distances.len() > MAX_ENTRIES {
                return None;
            }
        }
        Some(dictionary)
    }

    /// The patterns of rows that have the same values, too.
    ///
    /// # Errors
    /// In a few words, why there are none.
    pub(crate) fn with_values(part: &Part<'_>) -> Result<Self, String> {
        Self::find(part, true).ok_or_else(|| too_many(part))
    }

    /// The patterns of rows by their columns alone, whose values are padded.
    ///
    /// # Errors
    /// In a few words, why there are none, or padding costs more than the columns that are saved.
    pub(crate) fn by_columns(part: &Part<'_>) -> Result<Self, String> {
        let dictionary = Self::find(part, false).ok_or_else(|| too_many(part))?;
        let (n, width) = (part.n_owned(), dictionary.width());
        if n > 0 && (n * width) as f64 > MOST_PADDING * part.nnz() as f64 {
            return Err(format!("room for {width} entries in each row is mostly empty"));
        }
        Ok(dictionary)
    }

    /// Whether the bytes that are saved save time in this shape. In that for CPUs they do only where neighbours are
    /// mostly of one pattern, and rows with values of their own need more of them: alone, such rows jump from value to
    /// value.
    pub(super) fn suit(&self, shape: Shape) -> bool {
        shape == Shape::Gpu || self.alike() > if self.values.is_some() { RUNS } else { ALIKE }
    }

    /// The part of rows that are of the pattern of the one before.
    fn alike(&self) -> f64 {
        let alike = self.of_row.windows(2).filter(|pair| pair[0] == pair[1]).count();
        alike as f64 / self.of_row.len().max(1) as f64
    }

    /// Lowest and highest distance of a pattern.
    pub(super) fn reach(&self, pattern: u16) -> [i64; 2] {
        let distances = || self.distances[self.entries(pattern)].iter().map(|&d| i64::from(d));
        [distances().min().unwrap_or(0), distances().max().unwrap_or(0)]
    }

    /// The same of each.
    fn reaches(&self) -> Vec<[i64; 2]> {
        (0..self.starts.len() - 1).map(|pattern| self.reach(pattern as u16)).collect()
    }

    /// Checks what kernels rely on: that each row's columns are below `n_cols`.
    ///
    /// # Panics
    /// If one is not.
    pub(super) fn check_columns(&self, n_cols: usize) {
        let reach = self.reaches();
        self.of_row.par_iter().enumerate().for_each(|(row, &pattern)| {
            let [low, high] = reach[pattern as usize].map(|distance| row as i64 + distance);
            assert!(low >= 0 && high < n_cols.max(row + 1) as i64, "columns {low} to {high} of {n_cols} in row {row}");
        });
    }

    /// The rows of each pattern.
    pub(super) fn rows_of_each(&self) -> Vec<usize> {
        let count = self.starts.len() - 1;
        let of_piece = |rows: &[u16]| {
            let mut counts = vec![0; count];
            rows.iter().for_each(|&pattern| counts[pattern as usize] += 1);
            counts
        };
        let add = |mut sums: Vec<usize>, more: Vec<usize>| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            sums
        };
        self.of_row.par_chunks(COUNTED).map(of_piece).reduce(|| vec![0; count], add)
    }

    /// The longest run of rows whose columns are all below `n`, the number of rows.
    pub(super) fn interior(&self, n: usize) -> Range<usize> {
        let reach = self.reaches();
        let (mut longest, mut begin) = (0..0, 0);
        for (row, &pattern) in self.of_row.iter().enumerate() {
            if row as i64 + reach[pattern as usize][1] >= n as i64 {
                begin = row + 1;
            } else if row + 1 - begin > longest.len() {
                longest = begin..row + 1;
            }
        }
        longest
    }

    /// Where the entries of a pattern are.
    pub(super) fn entries(&self, pattern: u16) -> Range<usize> {
        self.starts[pattern as usize] as usize..self.starts[pattern as usize + 1] as usize
    }

    /// The most entries of a row.
    pub(super) fn width(&self) -> usize {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }
}

fn too_many(part: &Part<'_>) -> String {
    let n = part.n_owned();
    let most = MAX_PATTERNS.min(n / ROWS_OF_A_PATTERN);
    if most == 0 {
        return format!("the {n} rows are fewer than the {ROWS_OF_A_PATTERN} that a pattern is for");
    }
    format!("the {n} rows have more than {most} pattern{}, or too long ones", if most == 1 { "" } else { "s" })
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

/// Patterns that were met.
#[derive(Default)]
struct Known {
    /// The first row of each.
    firsts: Vec<usize>,
    /// By hash. Patterns with equal hashes follow each other at the next numbers.
    by_hash: HashMap<u64, u16>,
    /// The pattern met last: neighbours are mostly alike.
    last: Option<u16>,
}

impl Known {
    /// The number of the pattern of a row, a new one if need be; `None` above `most`.
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

    /// What the patterns say of each row, put together again.
    fn is_same(part: &Part<'_>, dictionary: &Dictionary) -> bool {
        let base = part.row_ptr[0];
        (0..part.n_owned()).all(|row| {
            let pattern = dictionary.of_row[row] as usize;
            let (begin, end) = (dictionary.starts[pattern] as usize, dictionary.starts[pattern + 1] as usize);
            let entries = part.row_ptr[row] - base..part.row_ptr[row + 1] - base;
            let columns = dictionary.distances[begin..end].iter().map(|d| (row as i64 + i64::from(*d)) as u32);
            columns.eq(part.col_idx[entries.clone()].iter().copied())
                && dictionary.values.as_ref().is_none_or(|values| values[begin..end] == part.values[entries])
        })
    }

    #[test]
    fn grids_have_few_patterns() {
        // inside and at each end of each direction
        let a = gallery::poisson2d([40, 50]).unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..2000))).remove(0);
        let dictionary = Dictionary::find(&whole, true).unwrap();
        assert_eq!(
            (dictionary.starts.len() - 1, dictionary.width(), dictionary.distances.len()),
            (9, 5, 4 * 3 + 4 * 4 + 5)
        );
        assert!(is_same(&whole, &dictionary));
        assert_eq!(&dictionary.of_row[..2], [0, 1]);
        assert_eq!(
            (&dictionary.distances[..3], &dictionary.values.as_ref().unwrap()[..3]),
            (&[0, 1, 40][..], &[4.0, -1.0, -1.0][..])
        );
        // the halo of a block is at a fixed distance, too
        for part in split(&a, &row_ranges(&a, 3)) {
            let dictionary = Dictionary::find(&part, true).unwrap();
            assert!(is_same(&part, &dictionary) && dictionary.starts.len() <= 16);
        }
    }

    #[test]
    fn values_of_their_own() {
        let a: Csr = "jumps:12,contrast=1000".parse::<gallery::Spec>().unwrap().build().unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        assert_eq!(Dictionary::find(&whole, true), None);
        let dictionary = Dictionary::find(&whole, false).unwrap();
        assert_eq!((dictionary.starts.len() - 1, &dictionary.values), (27, &None));
        assert!(is_same(&whole, &dictionary));
    }

    #[test]
    fn on_a_cpu_neighbours_have_to_be_alike() {
        let chosen = |spec: &str, shape| {
            let a: Csr = spec.parse::<gallery::Spec>().unwrap().build().unwrap();
            // values of their own
            let values = (0..a.nnz()).map(|k| 1.0 + k as f64).collect();
            let a = Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
            let whole = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            Dictionary::by_columns(&whole).unwrap().suit(shape)
        };
        // three unknowns a node alternate
        assert_eq!(["poisson3d:20", "elasticity3d:20"].map(|spec| chosen(spec, Shape::Gpu)), [true, true]);
        assert_eq!(["poisson3d:20", "elasticity3d:20"].map(|spec| chosen(spec, Shape::Cpu)), [true, false]);
    }

    #[test]
    fn rows_that_differ_have_no_patterns() {
        let a = gallery::random_spd(1500, 8, 7).unwrap();
        let whole = split(&a, std::slice::from_ref(&(0..1500))).remove(0);
        assert_eq!(Dictionary::find(&whole, false), None);
        // nothing at all, and too few rows for a pattern
        for n in [0, 1, 15, 16] {
            let a = Csr::from_triplets(n, n, &[], &[], &[]).unwrap();
            let whole = split(&a, std::slice::from_ref(&(0..n))).remove(0);
            let dictionary = Dictionary::find(&whole, true);
            assert_eq!(dictionary.is_some(), n == 0 || n == 16, "{n}");
        }
    }
}
