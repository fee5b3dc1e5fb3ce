//! Patterns of rows, where these are few: what discretisations on grids, and other products of short rules, are made of.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

/// The most patterns that are looked for, and the most entries that they may have together: tables should stay in a cache.
pub(crate) const MAX_PATTERNS: usize = 1 << 12;
const MAX_ENTRIES: usize = 1 << 14;

/// A pattern should stand for so many rows in the mean, or its table is no gain.
pub(crate) const ROWS_OF_A_PATTERN: usize = 16;

/// Rows of a piece of the work.
const PIECE: usize = 1 << 14;

/// Patterns of rows: rows of a pattern have the same distances column − row, in the same order, and perhaps the same values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Patterns {
    /// The pattern of each row.
    pub(crate) of_row: Vec<u16>,
    /// Where the entries of each pattern begin, and where the last ends.
    pub(crate) starts: Vec<u32>,
    /// Column − row.
    pub(crate) distances: Vec<i32>,
    /// The values, if rows of a pattern have the same.
    pub(crate) values: Option<Vec<f64>>,
}

/// Compressed rows in which patterns are looked for.
#[derive(Debug, Clone)]
pub(crate) struct Compressed<'a> {
    /// Where rows begin and the last ends, from the first of them on, which need not be 0.
    pub(crate) row_ptr: &'a [usize],
    pub(crate) columns: Numbered<'a>,
    pub(crate) values: &'a [f64],
}

/// Columns of entries, renumbered where they are read: some, which follow each other, from 0 on, and then others, which are sorted.
#[derive(Debug, Clone)]
pub(crate) struct Numbered<'a> {
    pub(crate) given: &'a [u32],
    pub(crate) own: Range<u32>,
    pub(crate) others: &'a [u32],
}

impl<'a> Numbered<'a> {
    /// Those that keep their numbers.
    pub(crate) fn as_given(given: &'a [u32]) -> Self {
        Self { given, own: 0..u32::MAX, others: &[] }
    }

    /// Whether all keep their numbers.
    fn is_as_given(&self) -> bool {
        self.own == (0..u32::MAX)
    }

    /// The number of a column.
    pub(crate) fn number(&self, column: u32) -> u32 {
        if self.own.contains(&column) {
            return column - self.own.start;
        }
        let (Ok(k) | Err(k)) = self.others.binary_search(&column);
        (self.own.end - self.own.start) + k as u32
    }

    /// The numbers of the columns of some entries.
    pub(crate) fn range(&self, entries: Range<usize>) -> impl Iterator<Item = u32> {
        self.given[entries].iter().map(|&column| self.number(column))
    }
}

impl Patterns {
    /// The patterns of some rows, with the values or without; `None` if there are too many. They are numbered in the order in which
    /// they come first. O(entries); rows that are all different end it early.
    pub(crate) fn find(rows: Compressed<'_>, with_values: bool) -> Option<Self> {
        let n = rows.row_ptr.len() - 1;
        let most = MAX_PATTERNS.min(n / ROWS_OF_A_PATTERN);
        let rows = Rows { rows, with_values, hasher: RandomState::new() };
        let begins: Vec<usize> = (0..n).step_by(PIECE).collect();
        // of each piece: the first row of each of its patterns, and the pattern of each row
        let pieces: Option<Vec<(Vec<usize>, Vec<u16>)>> = begins
            .into_par_iter()
            .map(|begin| {
                let (mut known, end) = (Known::default(), n.min(begin + PIECE));
                let mut of_row = Vec::with_capacity(end - begin);
                for row in begin..end {
                    of_row.push(known.number(&rows, row, most)?);
                }
                Some((known.firsts, of_row))
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
        Self::with(of_row, &rows, &known.firsts)
    }

    /// With the entries of the first row of each.
    fn with(of_row: Vec<u16>, rows: &Rows<'_>, firsts: &[usize]) -> Option<Self> {
        let values = rows.with_values.then(Vec::new);
        let mut patterns = Self { of_row, starts: vec![0], distances: Vec::new(), values };
        for &row in firsts {
            patterns.distances.extend(rows.distances(row));
            if let Some(values) = &mut patterns.values {
                values.extend_from_slice(rows.values(row));
            }
            patterns.starts.push(patterns.distances.len() as u32);
            if patterns.distances.len() > MAX_ENTRIES {
                return None;
            }
        }
        Some(patterns)
    }

    /// Those of the rows `own` of a square matrix whose patterns these are, as a rank has them in `part`: its own columns are counted from the
    /// first on, and others come behind them. O(rows), and the entries of rows that have such.
    pub(crate) fn of_part(&self, own: &Range<usize>, part: Compressed<'_>) -> Option<Self> {
        let most = MAX_PATTERNS.min(own.len() / ROWS_OF_A_PATTERN);
        let rows = Rows { rows: part, with_values: self.values.is_some(), hasher: RandomState::new() };
        let reaches: Vec<[i64; 2]> = (0..self.count()).map(|k| self.reach(k as u16)).collect();
        // distances stay in rows whose columns are all own
        let is_inner = |row: usize, pattern: u16| {
            let [low, high] = reaches[pattern as usize].map(|distance| row as i64 + distance);
            low >= 0 && high < own.len() as i64
        };
        // of each piece: the first inner row of each pattern, and the other rows
        let look = |(k, patterns): (usize, &[u16])| {
            let (mut firsts, mut others) = (vec![usize::MAX; self.count()], Vec::new());
            for (row, &pattern) in (k * PIECE..).zip(patterns) {
                if is_inner(row, pattern) {
                    firsts[pattern as usize] = firsts[pattern as usize].min(row);
                } else {
                    others.push(row);
                }
            }
            (firsts, others)
        };
        let of_whole = &self.of_row[own.clone()];
        let pieces: Vec<(Vec<usize>, Vec<usize>)> = of_whole.par_chunks(PIECE).enumerate().map(look).collect();
        let (mut known, mut numbers) = (Known::default(), vec![0; self.count()]);
        for (pattern, number) in numbers.iter_mut().enumerate() {
            if let Some(first) = pieces.iter().map(|piece| piece.0[pattern]).min().filter(|first| *first < own.len()) {
                *number = known.number(&rows, first, most)?;
            }
        }
        let mut of_row: Vec<u16> = of_whole.par_iter().map(|pattern| numbers[*pattern as usize]).collect();
        for &row in pieces.iter().flat_map(|piece| &piece.1) {
            of_row[row] = known.number(&rows, row, most)?;
        }
        Self::with(of_row, &rows, &known.firsts)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the entries of a pattern are.
    pub(crate) fn entries(&self, pattern: u16) -> Range<usize> {
        self.starts[pattern as usize] as usize..self.starts[pattern as usize + 1] as usize
    }

    /// Lowest and highest distance of a pattern.
    pub(crate) fn reach(&self, pattern: u16) -> [i64; 2] {
        let distances = || self.distances[self.entries(pattern)].iter().map(|&d| i64::from(d));
        [distances().min().unwrap_or(0), distances().max().unwrap_or(0)]
    }

    /// The columns of a row, in the order of its pattern.
    pub(crate) fn columns(&self, row: usize) -> impl Iterator<Item = usize> {
        self.distances[self.entries(self.of_row[row])].iter().map(move |&d| row.wrapping_add_signed(d as isize))
    }

    /// The values of a pattern; none if rows of a pattern have values of their own.
    pub(crate) fn values(&self, pattern: u16) -> &[f64] {
        self.values.as_ref().map_or(&[], |values| &values[self.entries(pattern)])
    }
}

/// The patterns of a matrix with their values, once they were looked for: they follow from the matrix, so that all are equal.
#[derive(Clone, Default)]
pub(super) struct Found(OnceLock<Option<Arc<Patterns>>>);

impl Found {
    /// What `find` says, the first time.
    pub(super) fn get(&self, find: impl FnOnce() -> Option<Patterns>) -> Option<&Arc<Patterns>> {
        self.0.get_or_init(|| find().map(Arc::new)).as_ref()
    }
}

impl PartialEq for Found {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.get().map(|found| found.as_ref().map(|patterns| patterns.count()));
        f.debug_tuple("Found").field(&count).finish()
    }
}

/// Rows, as they are compared.
struct Rows<'a> {
    rows: Compressed<'a>,
    with_values: bool,
    hasher: RandomState,
}

impl Rows<'_> {
    fn entries(&self, row: usize) -> Range<usize> {
        let base = self.rows.row_ptr[0];
        self.rows.row_ptr[row] - base..self.rows.row_ptr[row + 1] - base
    }

    fn distances(&self, row: usize) -> impl Iterator<Item = i32> {
        self.rows.columns.range(self.entries(row)).map(move |col| (i64::from(col) - row as i64) as i32)
    }

    fn values(&self, row: usize) -> &[f64] {
        &self.rows.values[self.entries(row)]
    }

    fn hash(&self, row: usize) -> u64 {
        let distances: Vec<i32> = self.distances(row).collect();
        let bits: Vec<u64> =
            if self.with_values { self.values(row).iter().map(|v| v.to_bits()).collect() } else { Vec::new() };
        self.hasher.hash_one((distances, bits))
    }

    fn have_same_distances(&self, a: usize, b: usize) -> bool {
        let columns = &self.rows.columns;
        if !columns.is_as_given() {
            return self.distances(a).eq(self.distances(b));
        }
        let ([of_a, of_b], apart) = ([a, b].map(|row| &columns.given[self.entries(row)]), b.wrapping_sub(a) as u32);
        of_a.len() == of_b.len() && of_a.iter().zip(of_b).all(|(i, j)| j.wrapping_sub(*i) == apart)
    }

    fn are_alike(&self, a: usize, b: usize) -> bool {
        let bits = |row: usize| self.values(row).iter().map(|v| v.to_bits());
        self.have_same_distances(a, b) && (!self.with_values || bits(a).eq(bits(b)))
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

    fn of(a: &Csr, with_values: bool) -> Option<Patterns> {
        Patterns::find(a.compressed(), with_values)
    }

    /// What the patterns say of each row, put together again.
    fn is_same(a: &Csr, patterns: &Patterns) -> bool {
        (0..a.n_rows()).all(|row| {
            let values = patterns.values(patterns.of_row[row]);
            patterns.columns(row).eq(a.row(row).0.iter().map(|&j| j as usize))
                && (patterns.values.is_none() || values == a.row(row).1)
        })
    }

    #[test]
    fn grids_have_few_patterns() {
        // inside and at each end of each direction
        let a = gallery::poisson2d([40, 50]).unwrap();
        let patterns = of(&a, true).unwrap();
        assert_eq!((patterns.count(), patterns.distances.len()), (9, 4 * 3 + 4 * 4 + 5));
        assert!(is_same(&a, &patterns));
        assert_eq!(&patterns.of_row[..2], [0, 1]);
        assert_eq!((&patterns.distances[..3], patterns.values(0)), (&[0, 1, 40][..], &[4.0, -1.0, -1.0][..]));
        assert_eq!(patterns.reach(1), [-1, 40]);
        // a matrix looks for them once
        assert!(std::ptr::eq(a.patterns().unwrap(), a.patterns().unwrap()) && **a.patterns().unwrap() == patterns);
    }

    #[test]
    fn values_of_their_own() {
        let a: Csr = "jumps:12,contrast=1000".parse::<gallery::Spec>().unwrap().build().unwrap();
        assert_eq!((of(&a, true), a.patterns()), (None, None));
        let patterns = of(&a, false).unwrap();
        assert_eq!((patterns.count(), &patterns.values), (27, &None));
        assert!(is_same(&a, &patterns));
    }

    #[test]
    fn rows_that_differ_have_no_patterns() {
        assert_eq!(of(&gallery::random_spd(1500, 8, 7).unwrap(), false), None);
        // nothing at all, and too few rows for a pattern
        for n in [0, 1, 15, 16] {
            let a = Csr::from_triplets(n, n, &[], &[], &[]).unwrap();
            assert_eq!(of(&a, true).is_some(), n == 0 || n == 16, "{n}");
        }
    }
}
