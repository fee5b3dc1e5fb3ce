//! A dictionary of the patterns of rows, where these are few: what discretisations on grids, and other products of short rules, are made of.

use std::ops::{Deref, Range};
use std::sync::Arc;

use rayon::prelude::*;

use crate::kernels::Shape;
use crate::matrix::Csr;
use crate::matrix::patterns::{Compressed, MAX_PATTERNS, Patterns, ROWS_OF_A_PATTERN};
use crate::partition::Part;

/// Room for entries over entries, above which rows are not padded.
const MOST_PADDING: f64 = 1.25;

/// Part of rows like the one before, below which a CPU seldom finds eight of a pattern.
const ALIKE: f64 = 0.8;

/// The same for rows without values of their own: below, the host sums rows alone, three times as slowly as compressed ones.
const RUNS: f64 = 0.5;

/// Rows that a thread counts at a time: many, beside the patterns.
const COUNTED: usize = 1 << 18;

/// The [patterns](Patterns) of the rows of a part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dictionary(Arc<Patterns>);

impl Deref for Dictionary {
    type Target = Patterns;

    fn deref(&self) -> &Patterns {
        &self.0
    }
}

impl From<Patterns> for Dictionary {
    fn from(patterns: Patterns) -> Self {
        Self(Arc::new(patterns))
    }
}

impl Dictionary {
    /// Those of `part`, with the values or without; `None` if there are too many. A matrix knows its own from the first search on, and those of a
    /// part follow.
    fn find(part: &Part<'_>, with_values: bool) -> Option<Self> {
        let rows = Compressed { row_ptr: part.row_ptr, columns: part.col_idx.numbered(), values: &part.values };
        let of_matrix = part.of.filter(|_| with_values).and_then(Csr::patterns);
        match (part.of, of_matrix) {
            (Some(a), _) if with_values && part.n_owned() == a.n_rows() => of_matrix.cloned().map(Self),
            (_, Some(patterns)) => patterns.of_part(&part.rows, rows).map(Self::from),
            (_, None) => Patterns::find(rows, with_values).map(Self::from),
        }
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

    /// Lowest and highest distance of each pattern.
    fn reaches(&self) -> Vec<[i64; 2]> {
        (0..self.count()).map(|pattern| self.reach(pattern as u16)).collect()
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
        let count = self.count();
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
        let reaches_out = |&(row, pattern): &(usize, &u16)| row as i64 + reach[*pattern as usize][1] >= n as i64;
        // few, if rows are those of a grid
        let others: Vec<usize> =
            self.of_row.par_iter().enumerate().with_min_len(1 << 14).filter(reaches_out).map(|(row, _)| row).collect();
        let (mut longest, mut begin) = (0..0, 0);
        for row in others.into_iter().chain([self.of_row.len()]) {
            if row - begin > longest.len() {
                longest = begin..row;
            }
            begin = row + 1;
        }
        longest
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
    fn parts_of_grids_have_few_patterns() {
        let a = gallery::poisson2d([40, 50]).unwrap();
        // a halo is at fixed distances
        for ranges in [row_ranges(&a, 3), vec![0..0, 0..1003, 1003..2000]] {
            for part in split(&a, &ranges) {
                let dictionary = Dictionary::find(&part, true).unwrap();
                assert!(is_same(&part, &dictionary) && dictionary.count() <= 18);
                let searched = Dictionary::find(&Part { of: None, ..part.clone() }, true).unwrap();
                assert_eq!(dictionary.count(), searched.count());
            }
        }
        // a part may have few where the whole has too many
        let n = 3000;
        let values = |i: usize| if i < 100 { 1.0 } else { i as f64 };
        let lines = Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), (0..n).map(values).collect()).unwrap();
        let part = split(&lines, &[0..100, 100..n]).remove(0);
        assert!(lines.patterns().is_none() && Dictionary::find(&part, true).unwrap().count() == 1);
        let whole = split(&a, std::slice::from_ref(&(0..2000))).remove(0);
        let dictionary = Dictionary::find(&whole, true).unwrap();
        assert!(is_same(&whole, &dictionary) && Arc::ptr_eq(&dictionary.0, a.patterns().unwrap()));
        assert_eq!((dictionary.count(), dictionary.width()), (9, 5));
        // other values are not those of the matrix
        let mut other = whole.clone();
        (other.values, other.of) = ((0..a.nnz()).map(|k| k as f64).collect(), None);
        assert_eq!(Dictionary::find(&other, true), None);
        let by_columns = Dictionary::find(&other, false).unwrap();
        assert!(is_same(&other, &by_columns) && by_columns.values.is_none());
    }

    #[test]
    fn the_longest_run_of_inner_rows() {
        // lines of 40 points at either end need others
        let a = gallery::poisson2d([40, 100]).unwrap();
        let of = |rows: Range<usize>| {
            let others = [0..rows.start, rows.clone(), rows.end..a.n_rows()];
            let part = split(&a, &others).remove(1);
            Dictionary::by_columns(&part).unwrap().interior(part.n_owned())
        };
        assert_eq!([of(0..4000), of(0..2000), of(2000..4000), of(1000..3000)], [0..4000, 0..1960, 40..2000, 40..1960]);
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
}
