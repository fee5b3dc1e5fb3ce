//! The pattern that most rows are of, or of a part of: what lets a product do without tables (`cl/dictionary.cl`).

use std::ops::Range;

use rayon::prelude::*;

use super::dictionary::Dictionary;
use crate::kernels::MOST_MAIN;

/// Rows that should be of the main pattern, or of a part of it, for it to be worth a program of its own.
const SHARE: f64 = 0.5;

/// The main pattern of a block's rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Main {
    pattern: u16,
    /// Of each pattern: a bit for each entry of the main pattern that it has, 0 if it has others.
    pub(super) masks: Vec<u32>,
    /// The rows for which all entries of the main pattern are among the rank's own rows: others may be on their way.
    pub(super) rows: Range<u32>,
}

impl Main {
    /// The pattern of the most rows, if these and those of its parts are most rows; it has 1 to [`MOST_MAIN`] entries.
    /// O(rows).
    pub(super) fn of(dictionary: &Dictionary) -> Option<Self> {
        let rows_of = dictionary.rows_of_each();
        let fits =
            |&(pattern, _): &(usize, &usize)| (1..=MOST_MAIN).contains(&dictionary.entries(pattern as u16).len());
        let (pattern, _) =
            rows_of.iter().enumerate().filter(fits).max_by_key(|&(pattern, rows)| (rows, usize::MAX - pattern))?;
        let pattern = pattern as u16;
        let masks: Vec<u32> = (0..rows_of.len()).map(|other| mask(dictionary, pattern, other as u16)).collect();
        let covered: usize = rows_of.iter().zip(&masks).filter(|(_, mask)| **mask != 0).map(|(rows, _)| rows).sum();
        if (covered as f64) < SHARE * dictionary.of_row.len() as f64 {
            return None;
        }
        let [low, high] = dictionary.reach(pattern);
        let n = dictionary.of_row.len() as i64;
        let begin = (-low).clamp(0, n);
        let end = (n - high.max(0)).clamp(begin, n);
        Some(Self { pattern, masks, rows: begin as u32..end as u32 })
    }

    /// Of each `slice` rows, what all of them have of the main pattern, if that is the same; else 0.
    pub(super) fn slice_masks(&self, dictionary: &Dictionary, slice: usize) -> Vec<u32> {
        let mask = |&pattern: &u16| self.masks[pattern as usize];
        let of_slice = |rows: &[u16]| rows.iter().map(mask).reduce(|a, b| if a == b { a } else { 0 }).unwrap_or(0);
        dictionary.of_row.par_chunks(slice).map(of_slice).collect()
    }

    /// Its entries among those of all patterns.
    pub(super) fn entries(&self, dictionary: &Dictionary) -> Range<usize> {
        dictionary.entries(self.pattern)
    }

    /// Where a row of a pattern has the values of its own: those of the main pattern's entries, if these are inside, or one after
    /// the other.
    pub(super) fn positions(&self, row: usize, pattern: u16, len: usize) -> impl Iterator<Item = usize> + use<> {
        let is_inside = self.rows.contains(&(row as u32));
        let mask = if is_inside { self.masks[pattern as usize] } else { 0 };
        (0..len.max(MOST_MAIN)).filter(move |&e| mask == 0 || mask >> e & 1 == 1).take(len)
    }
}

/// A bit for each entry of the pattern `main` that `other` has, which has no others, in the same order; else 0.
fn mask(dictionary: &Dictionary, main: u16, other: u16) -> u32 {
    let value = |e: usize| dictionary.values.as_ref().map(|values| values[e].to_bits());
    let entry = |e: usize| (dictionary.distances[e], value(e));
    let mut mains = dictionary.entries(main).map(entry).enumerate();
    let mut mask = 0;
    for wanted in dictionary.entries(other).map(entry) {
        match mains.find(|(_, entry)| *entry == wanted) {
            Some((bit, _)) => mask |= 1 << bit,
            None => return 0,
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::patterns::Patterns;

    fn dictionary(of_row: &[u16], patterns: &[&[(i32, f64)]]) -> Dictionary {
        let mut starts = vec![0];
        starts.extend(patterns.iter().scan(0, |end, pattern| {
            *end += pattern.len() as u32;
            Some(*end)
        }));
        let all = || patterns.iter().copied().flatten();
        Dictionary::from(Patterns {
            of_row: of_row.to_vec(),
            starts,
            distances: all().map(|entry| entry.0).collect(),
            values: Some(all().map(|entry| entry.1).collect()),
        })
    }

    #[test]
    fn sides_of_a_line_are_parts() {
        let line = dictionary(
            &[0, 1, 1, 1, 2, 3],
            &[&[(0, 2.0), (1, -1.0)], &[(-1, -1.0), (0, 2.0), (1, -1.0)], &[(-1, -1.0), (0, 2.0)], &[(0, 1.0)]],
        );
        let main = Main::of(&line).unwrap();
        assert_eq!(main, Main { pattern: 1, masks: vec![0b110, 0b111, 0b011, 0], rows: 1..5 });
        assert_eq!(main.entries(&line), 2..5);
        // both of one pattern, and not; those that have other entries
        assert_eq!(main.slice_masks(&line, 2), [0, 0b111, 0]);
        assert_eq!(main.slice_masks(&line, 5), [0, 0]);
        let positions = |row, pattern, len| main.positions(row, pattern, len).collect::<Vec<_>>();
        assert_eq!([positions(1, 0, 2), positions(4, 1, 3)], [[1, 2].as_slice(), &[0, 1, 2]]);
        // outside, and of another pattern
        assert_eq!([positions(0, 0, 2), positions(1, 3, 1)], [[0, 1].as_slice(), &[0]]);
        assert_eq!(positions(1, 3, 40).len(), 40);
    }

    #[test]
    fn not_where_rows_differ() {
        let three: [&[(i32, f64)]; 3] = [&[(0, 1.0)], &[(0, 2.0)], &[(0, 3.0)]];
        assert_eq!(Main::of(&dictionary(&[0, 1, 2], &three)), None);
        assert!(Main::of(&dictionary(&[0, 1, 1, 2], &three)).is_some());
        // no entries, too many, no rows
        let many: Vec<(i32, f64)> = (0..33).map(|d| (d, 1.0)).collect();
        assert_eq!(Main::of(&dictionary(&[0, 0], &[&[]])), None);
        assert_eq!(Main::of(&dictionary(&[0, 0], &[&many])), None);
        assert!(Main::of(&dictionary(&[0, 0], &[&many[..32]])).is_some());
        assert_eq!(Main::of(&dictionary(&[], &[])), None);
    }

    #[test]
    fn order_counts() {
        // columns of a halo come in another order than those that they stand for
        let both = dictionary(&[0, 0, 1], &[&[(0, 1.0), (1, 2.0), (2, 2.0)], &[(1, 2.0), (0, 1.0)]]);
        let main = Main::of(&both).unwrap();
        assert_eq!((main.masks, main.rows), (vec![0b111, 0], 0..1));
        // no row has all of it inside
        assert_eq!(Main::of(&dictionary(&[0, 0], &[&[(2, 1.0)]])).unwrap().rows, 0..0);
    }
}
