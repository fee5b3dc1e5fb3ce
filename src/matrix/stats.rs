//! Facts about a matrix: shape, lengths of rows, symmetry, diagonal.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::Csr;
use super::patterns::Patterns;
use super::symmetry::{Pair, TOLERANCE, pairs_of_row};

/// Some of the rows (or entries of rows): how many, and the first row, from 0; in JSON, from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many.
    pub count: usize,
    /// The first row, from 0; none if there are none.
    #[serde(serialize_with = "from_one")]
    pub first: Option<usize>,
}

/// Serialises the number of a row or a column, if there is one, from 1.
pub(super) fn from_one<S: Serializer>(
    number: &(impl Copy + Into<Option<usize>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*number).into().map(|number| number + 1).serialize(serializer)
}

impl Tally {
    /// Counts one in `row`, which is not before those counted so far.
    #[inline]
    pub(super) fn add(&mut self, row: usize) {
        self.count += 1;
        self.first = self.first.or(Some(row));
    }

    /// One in `row`, if so.
    pub(super) fn of(row: usize, is: bool) -> Self {
        Self { count: usize::from(is), first: is.then_some(row) }
    }

    /// Those of the rows below `n` for which `is` holds.
    pub(super) fn among(n: usize, is: impl Fn(usize) -> bool) -> Self {
        (0..n).fold(Self::default(), |tally, row| tally.and(Self::of(row, is(row))))
    }

    /// With those of rows further down.
    pub(super) fn and(self, after: Self) -> Self {
        Self { count: self.count + after.count, first: self.first.or(after.first) }
    }
}

/// What there is to know about a matrix before solving with it. Rows and columns are counted from 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Rows.
    pub n_rows: usize,
    /// Columns.
    pub n_cols: usize,
    /// Stored entries, zeros among them included.
    pub nnz: usize,
    /// Entries of the shortest row; 0 for a matrix without rows.
    pub row_min: usize,
    /// Entries of the longest row; 0 for a matrix without rows.
    pub row_max: usize,
    /// Entries a row on average; 0 for a matrix without rows.
    pub row_mean: f64,
    /// Rows without a stored entry.
    pub empty_rows: usize,
    /// The largest |i − j| of a stored entry.
    pub bandwidth: usize,
    /// The largest |a_ij|; 0 for a matrix without entries.
    pub largest: f64,
    /// Whether the matrix is square and for every stored (i, j) there is a stored (j, i), zeros included.
    pub structurally_symmetric: bool,
    /// Whether the matrix is square and a_ij = a_ji up to rounding for all i and j.
    ///
    /// An entry that is not stored is 0. Differences up to 10⁻¹² count as rounding, in the scale that
    /// [`Likeness`](super::symmetry::Likeness) explains.
    pub numerically_symmetric: bool,
    /// The first pair of entries that differ by more than rounding, by the row where the scan meets it.
    pub asymmetry: Option<Pair<f64>>,
    /// The main diagonal.
    pub diagonal: Diagonal,
}

/// What is wrong with the main diagonal; a positive definite matrix has every entry positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagonal {
    /// The first row, from 0, whose diagonal entry is not stored or is 0.
    pub missing_or_zero: Option<usize>,
    /// The first row, from 0, whose diagonal entry is below 0.
    pub negative: Option<usize>,
    /// The first row, from 0, whose diagonal entry is another than that of the first row.
    pub uneven: Option<usize>,
}

impl Stats {
    /// Looks at every entry, rows in parallel: once where the matrix is symmetric to the bit. O(nnz log(longest row)).
    #[must_use]
    pub fn of(a: &Csr) -> Self {
        if let Some(rows) = a.patterns().and_then(|patterns| Rows::of_patterns(a, patterns)) {
            return Self::with(a, &rows, Symmetry::whole());
        }
        let rows = Rows::of_whole(a, true);
        Self::with(a, &rows, Symmetry::of_whole(a, &rows))
    }

    /// The same, where `reordered` is the matrix with rows and columns in another order: in one that has entries near
    /// the diagonal, the pairs across it are found several times faster.
    pub(crate) fn of_reordered(a: &Csr, reordered: &Csr) -> Self {
        let across = Rows::of_whole(reordered, true);
        let symmetry = Symmetry::of_whole(reordered, &across);
        match symmetry.first {
            None if std::ptr::eq(a, reordered) => Self::with(a, &across, symmetry),
            None => Self::with(a, &Rows::of_whole(a, false), symmetry),
            // which pair is the first depends on the order
            Some(_) => Self::of(a),
        }
    }

    fn with(a: &Csr, rows: &Rows, symmetry: Symmetry) -> Self {
        let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
        Self {
            n_rows,
            n_cols,
            nnz: a.nnz(),
            row_min: if n_rows == 0 { 0 } else { rows.min },
            row_max: rows.max,
            row_mean: if n_rows == 0 { 0.0 } else { a.nnz() as f64 / n_rows as f64 },
            empty_rows: rows.empty,
            bandwidth: rows.bandwidth,
            largest: rows.largest,
            structurally_symmetric: symmetry.structural,
            numerically_symmetric: symmetry.numerical,
            asymmetry: symmetry.first,
            diagonal: rows.diagonal,
        }
    }
}

impl Diagonal {
    /// Takes note of that of row `i`, which is not before those seen so far; that of the first row is `usual`.
    fn look(&mut self, i: usize, diagonal: f64, usual: f64) {
        self.missing_or_zero = self.missing_or_zero.or((diagonal == 0.0).then_some(i));
        self.negative = self.negative.or((diagonal < 0.0).then_some(i));
        self.uneven = self.uneven.or((diagonal != usual).then_some(i));
    }
}

/// Rows that one task looks at.
const CHUNK: usize = 1 << 11;

/// What one look at all entries of some rows tells, adjacent ones, in order.
struct Rows {
    min: usize,
    max: usize,
    empty: usize,
    bandwidth: usize,
    largest: f64,
    diagonal: Diagonal,
    /// If each entry above the diagonal has an equal one across it: how many more there are above than below. So if all rows have, and
    /// that is 0 of them together, for every stored (i, j) there is a stored (j, i) of the same value.
    more_above: Option<i64>,
}

impl Rows {
    fn none() -> Self {
        let diagonal = Diagonal { missing_or_zero: None, negative: None, uneven: None };
        Self { min: usize::MAX, max: 0, empty: 0, bandwidth: 0, largest: 0.0, diagonal, more_above: Some(0) }
    }

    /// All rows of a matrix, and if `looks_across`, the entries on the other side of the diagonal, too, as long as they are equal.
    fn of_whole(a: &Csr, looks_across: bool) -> Self {
        let (n, looks_across) = (a.n_rows(), looks_across && a.n_rows() == a.n_cols());
        let chunk = |k: usize| Self::of(a, k * CHUNK..n.min((k + 1) * CHUNK), looks_across);
        (0..n.div_ceil(CHUNK)).into_par_iter().map(chunk).reduce(Self::none, Self::and)
    }

    fn of(a: &Csr, rows: Range<usize>, looks_across: bool) -> Self {
        let mut all = Self::none();
        all.more_above = looks_across.then_some(0);
        let usual = a.get(0, 0).unwrap_or(0.0);
        for i in rows {
            let (cols, values) = a.row(i);
            let mut diagonal = 0.0;
            for (place, (&j, &v)) in cols.iter().zip(values).enumerate() {
                let j = j as usize;
                all.largest = all.largest.max(v.abs());
                if j == i {
                    diagonal = v;
                } else if let Some(more_above) = &mut all.more_above {
                    *more_above += if j > i { 1 } else { -1 };
                    if j > i && across(a, i, j, cols.len() - 1 - place) != Some(v) {
                        all.more_above = None;
                    }
                }
            }
            if i < a.n_cols() {
                all.diagonal.look(i, diagonal, usual);
            }
            // the columns rise: the farthest from the diagonal is the first or the last
            let reach = [cols.first(), cols.last()].into_iter().flatten().map(|&j| i.abs_diff(j as usize)).max();
            all.bandwidth = all.bandwidth.max(reach.unwrap_or(0));
            all.min = all.min.min(cols.len());
            all.max = all.max.max(cols.len());
            all.empty += usize::from(cols.is_empty());
        }
        all
    }

    /// All rows of a square matrix that is symmetric to the bit, from the few patterns that its rows are of; `None` of another matrix.
    fn of_patterns(a: &Csr, patterns: &Patterns) -> Option<Self> {
        let of_pattern: Vec<OfPattern> = (0..patterns.count()).map(|k| OfPattern::of(patterns, k as u16)).collect();
        let mirrors = Mirrors::of(patterns).filter(|_| a.n_rows() == a.n_cols())?;
        let usual = patterns.of_row.first().map_or(0.0, |first| of_pattern[*first as usize].diagonal);
        let is_special = |one: &OfPattern| one.is_empty || one.diagonal <= 0.0 || one.diagonal != usual;
        let special: Vec<bool> = of_pattern.iter().map(is_special).collect();
        let chunk = |k: usize| {
            let mut all = Self::none();
            let rows = k * CHUNK..patterns.of_row.len().min((k + 1) * CHUNK);
            let mut more_above = 0;
            for i in rows {
                let pattern = patterns.of_row[i];
                more_above += mirrors.above(&patterns.of_row, i)?;
                if special[pattern as usize] {
                    let &OfPattern { is_empty, diagonal } = &of_pattern[pattern as usize];
                    all.empty += usize::from(is_empty);
                    all.diagonal.look(i, diagonal, usual);
                }
            }
            Some(Self { more_above: Some(more_above), ..all })
        };
        let all = (0..patterns.of_row.len().div_ceil(CHUNK)).into_par_iter().map(chunk);
        let mut all = all.try_reduce(Self::none, |here, after| Some(here.and(after)))?;
        for k in 0..patterns.count() as u16 {
            let (len, [low, high]) = (patterns.entries(k).len(), patterns.reach(k));
            (all.min, all.max) = (all.min.min(len), all.max.max(len));
            all.bandwidth = all.bandwidth.max(low.unsigned_abs().max(high.unsigned_abs()) as usize);
            all.largest = patterns.values(k).iter().fold(all.largest, |largest, v| largest.max(v.abs()));
        }
        (all.more_above == Some(0)).then_some(all)
    }

    fn and(self, after: Self) -> Self {
        Self {
            min: self.min.min(after.min),
            max: self.max.max(after.max),
            empty: self.empty + after.empty,
            bandwidth: self.bandwidth.max(after.bandwidth),
            largest: self.largest.max(after.largest),
            diagonal: Diagonal {
                missing_or_zero: self.diagonal.missing_or_zero.or(after.diagonal.missing_or_zero),
                negative: self.diagonal.negative.or(after.diagonal.negative),
                uneven: self.diagonal.uneven.or(after.diagonal.uneven),
            },
            more_above: self.more_above.zip(after.more_above).map(|(here, there)| here + there),
        }
    }
}

/// What a pattern tells of its rows.
struct OfPattern {
    is_empty: bool,
    /// The entry on the diagonal, or 0.
    diagonal: f64,
}

impl OfPattern {
    fn of(patterns: &Patterns, k: u16) -> Self {
        let entries = patterns.entries(k);
        let place = patterns.distances[entries.clone()].iter().position(|distance| *distance == 0);
        Self { is_empty: entries.is_empty(), diagonal: place.map_or(0.0, |place| patterns.values(k)[place]) }
    }
}

/// Of each entry above the diagonal of a pattern, the patterns that have an equal one across it.
struct Mirrors {
    /// Where the entries of each pattern begin, and where the last ends,
    starts: Vec<u32>,
    /// the distance of each, column − row,
    distances: Vec<u32>,
    /// and, for it and each pattern, whether that has −distance with the same value.
    are_equal: Vec<bool>,
    /// How many more entries each pattern has above than below.
    more_above: Vec<i64>,
}

impl Mirrors {
    /// The most numbers of a table, which should stay in a cache.
    const MAX: usize = 1 << 20;

    fn of(patterns: &Patterns) -> Option<Self> {
        let (count, mut starts, mut distances, mut more_above) = (patterns.count(), vec![0], Vec::new(), Vec::new());
        let mut are_equal = Vec::new();
        let entries = |k: u16| patterns.distances[patterns.entries(k)].iter().zip(patterns.values(k));
        for k in 0..count as u16 {
            for (&distance, value) in entries(k).filter(|(distance, _)| **distance > 0) {
                let is_equal = |other: u16| entries(other).any(|(d, v)| *d == -distance && v == value);
                distances.push(distance as u32);
                are_equal.extend((0..count as u16).map(is_equal));
                if are_equal.len() > Self::MAX {
                    return None;
                }
            }
            starts.push(distances.len() as u32);
            more_above.push(entries(k).map(|(distance, _)| i64::from(distance.signum())).sum());
        }
        Some(Self { starts, distances, are_equal, more_above })
    }

    /// How many more entries row `i` has above the diagonal than below, if each of those above has an equal one across.
    fn above(&self, of_row: &[u16], i: usize) -> Option<i64> {
        let pattern = of_row[i] as usize;
        let entries = self.starts[pattern] as usize..self.starts[pattern + 1] as usize;
        let count = self.more_above.len();
        let has_mirror = |e: usize| self.are_equal[e * count + of_row[i + self.distances[e] as usize] as usize];
        entries.into_iter().all(has_mirror).then_some(self.more_above[pattern])
    }
}

/// The entry at (j, i). Where rows are alike, it is as far from the beginning of its row as (i, j) from the end of its own.
fn across(a: &Csr, i: usize, j: usize, place: usize) -> Option<f64> {
    let (cols, values) = a.row(j);
    if cols.get(place).is_some_and(|&col| col as usize == i) { Some(values[place]) } else { a.get(j, i) }
}

/// Symmetry of some rows, adjacent ones, in order.
struct Symmetry {
    structural: bool,
    numerical: bool,
    first: Option<Pair<f64>>,
}

impl Symmetry {
    fn whole() -> Self {
        Self { structural: true, numerical: true, first: None }
    }

    /// Of all rows, after one look at them.
    fn of_whole(a: &Csr, rows: &Rows) -> Self {
        let n = a.n_rows();
        if n != a.n_cols() {
            return Self { structural: false, numerical: false, first: None };
        }
        if rows.more_above == Some(0) {
            return Self::whole();
        }
        let diagonal = a.diagonal();
        (0..n).into_par_iter().map(|i| Self::of(a, &diagonal, i)).reduce(Self::whole, Self::and)
    }

    /// Compares row `i` of a square matrix with column `i`.
    fn of(a: &Csr, diagonal: &[f64], i: usize) -> Self {
        let mut row = Self::whole();
        pairs_of_row(a, i, |pair, both| {
            row.structural &= both;
            // mostly there is nothing to scale
            let difference = (pair.upper - pair.lower).abs();
            if difference > 0.0 && difference > TOLERANCE * pair.scale(diagonal) {
                row.numerical = false;
                row.first = row.first.or(Some(pair));
            }
        });
        row
    }

    fn and(self, after: Self) -> Self {
        Self {
            structural: self.structural && after.structural,
            numerical: self.numerical && after.numerical,
            first: self.first.or(after.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    fn dense(rows: &[&[f64]]) -> Csr {
        let (mut is, mut js, mut vs) = (vec![], vec![], vec![]);
        for (i, row) in rows.iter().enumerate() {
            for (j, v) in row.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                is.push(i as u32);
                js.push(j as u32);
                vs.push(*v);
            }
        }
        Csr::from_triplets(rows.len(), rows.first().map_or(0, |r| r.len()), &is, &js, &vs).unwrap()
    }

    /// Not stored.
    const NO: f64 = f64::NAN;

    #[test]
    fn a_laplacian() {
        let s = Stats::of(&gallery::poisson2d([30, 20]).unwrap());
        assert_eq!((s.n_rows, s.n_cols, s.nnz), (600, 600, 5 * 600 - 100));
        assert_eq!((s.row_min, s.row_max, s.empty_rows, s.bandwidth, s.largest), (3, 5, 0, 30, 4.0));
        assert!((s.row_mean - 2900.0 / 600.0).abs() < 1e-15);
        assert!(s.structurally_symmetric && s.numerically_symmetric && s.asymmetry.is_none());
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: None, negative: None, uneven: None });
    }

    #[test]
    fn nothing() {
        let s = Stats::of(&dense(&[]));
        assert_eq!((s.row_min, s.row_max, s.row_mean, s.bandwidth), (0, 0, 0.0, 0));
        assert!(s.structurally_symmetric && s.numerically_symmetric);
        assert_eq!(s.diagonal.missing_or_zero, None);
        let s = Stats::of(&Csr::new(3, 3, vec![0; 4], vec![], vec![]).unwrap());
        assert_eq!((s.empty_rows, s.row_min, s.diagonal.missing_or_zero), (3, 0, Some(0)));
        assert!(s.structurally_symmetric && s.numerically_symmetric);
    }

    #[test]
    fn what_patterns_tell_is_what_rows_tell() {
        let (mut by_patterns, specs) = (
            0,
            [
                "poisson2d:40x16",
                "poisson3d27:12",
                "anisotropic:20x10x9,epsilon=0.01",
                "neumann2d:50",
                "band:2000,width=3",
                "convection3d:12",
                "helmholtz3d:12",
                "elasticity3d:8",
                "jumps:20",
                "shift",
                "negative",
                "arrow",
                "empty",
            ],
        );
        for spec in specs {
            let of = |n: usize, diagonal: &dyn Fn(usize) -> Option<f64>| {
                let cols: Vec<Vec<(u32, f64)>> =
                    (0..n).map(|i| diagonal(i).map(|v| (i as u32, v)).into_iter().collect()).collect();
                let row_ptr = (0..=n).map(|i| cols[..i].iter().map(Vec::len).sum()).collect();
                let (cols, values) = cols.into_iter().flatten().unzip();
                Csr::new(n, n, row_ptr, cols, values).unwrap()
            };
            let a = match spec {
                "shift" => of(100, &|i| Some(if i < 90 { 1.0 } else { 2.0 })),
                "negative" => {
                    of(100, &|i| Some(f64::from((80 - i as i32).signum()) * if i == 77 { -1.0 } else { 1.0 }))
                }
                "empty" => of(100, &|i| (i % 3 > 0).then_some(3.0)),
                "arrow" => gallery::dense_rows(3000, 2).unwrap(),
                spec => spec.parse::<gallery::Spec>().unwrap().build().unwrap(),
            };
            let rows = Rows::of_whole(&a, true);
            let expected = Stats::with(&a, &rows, Symmetry::of_whole(&a, &rows));
            assert_eq!(Stats::of(&a), expected, "{spec}");
            by_patterns += usize::from(a.patterns().and_then(|p| Rows::of_patterns(&a, p)).is_some());
        }
        assert_eq!(by_patterns, 11); // all but convection3d and jumps
        // one entry that has no equal one across, far from the others
        let a = gallery::poisson2d([40, 30]).unwrap();
        let (n, _, row_ptr, cols, mut values) = a.into_raw_parts();
        values[2000] = -0.5;
        let a = Csr::new(n, n, row_ptr, cols, values).unwrap();
        assert!(a.patterns().is_some_and(|patterns| Rows::of_patterns(&a, patterns).is_none()));
        assert!(Stats::of(&a).asymmetry.is_some());
    }

    #[test]
    fn entries_across_the_diagonal_that_differ() {
        let s = Stats::of(&dense(&[&[4.0, 1.0, 2.0], &[1.0, 4.0, 3.0], &[2.0, 3.5, 4.0]]));
        assert!(s.structurally_symmetric && !s.numerically_symmetric);
        assert_eq!(s.asymmetry, Some(Pair { row: 1, col: 2, upper: 3.0, lower: 3.5 }));
    }

    #[test]
    fn an_entry_without_its_mirror() {
        let lower = Stats::of(&dense(&[&[4.0, NO], &[7.0, 4.0]]));
        assert_eq!(lower.asymmetry, Some(Pair { row: 0, col: 1, upper: 0.0, lower: 7.0 }));
        let upper = Stats::of(&dense(&[&[4.0, 7.0], &[NO, 4.0]]));
        assert_eq!(upper.asymmetry, Some(Pair { row: 0, col: 1, upper: 7.0, lower: 0.0 }));
        assert!(!lower.structurally_symmetric && !upper.structurally_symmetric);
        let zero = Stats::of(&dense(&[&[4.0, 0.0], &[NO, 4.0]]));
        assert!(!zero.structurally_symmetric && zero.numerically_symmetric && zero.asymmetry.is_none());
    }

    #[test]
    fn rounding_is_forgiven_relative_to_the_diagonal() {
        let equal =
            |d: f64, upper: f64, lower: f64| Stats::of(&dense(&[&[d, upper], &[lower, d]])).numerically_symmetric;
        assert!(equal(1e3, 1.0, 1.0 + 9e-10)); // 9e-13 of the diagonal
        assert!(!equal(1e3, 1.0, 1.0 + 2e-9));
        assert!(equal(1.0, 1e-16, -1e-16)); // what remains of a sum that cancelled
        assert!(equal(0.0, 1.0, 1.0 + 9e-13) && !equal(0.0, 1.0, 1.0 + 2e-12)); // no diagonal to compare with
        assert!(!equal(0.0, 1e-16, -1e-16));
        assert!(!equal(1.0, 1e300, -1e300) && !equal(1.0, f64::MAX, -f64::MAX));
        assert!(equal(1e200, 1.0, 1.0 + 1e-9) && equal(1e-200, 1e-200, 1e-200)); // no overflow, no underflow
        assert!(!equal(1e-200, 1e-200, 1.1e-200));
        let one_zero = dense(&[&[0.0, 1.0], &[1.0 + 9e-13, 1e6]]);
        assert!(Stats::of(&one_zero).numerically_symmetric);
    }

    #[test]
    fn diagonals() {
        let s = Stats::of(&dense(&[&[1.0, 2.0, 0.0], &[2.0, -1.0, 0.0], &[0.0, 0.0, NO]]));
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: Some(2), negative: Some(1), uneven: Some(1) });
        let s = Stats::of(&dense(&[&[0.0, 2.0], &[2.0, 1.0]]));
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: Some(0), negative: None, uneven: Some(1) });
    }

    #[test]
    fn rectangles_are_not_symmetric() {
        for a in [dense(&[&[1.0, 0.0, 0.0], &[0.0, 1.0, 5.0]]), dense(&[&[1.0], &[2.0], &[3.0]])] {
            let s = Stats::of(&a);
            assert!(!s.structurally_symmetric && !s.numerically_symmetric && s.asymmetry.is_none());
            assert_eq!(s.diagonal, Diagonal { missing_or_zero: None, negative: None, uneven: None });
        }
        assert_eq!(Stats::of(&dense(&[&[1.0], &[2.0], &[3.0]])).bandwidth, 2);
    }

    #[test]
    fn the_first_pair_is_found_whatever_the_threads() {
        let a = gallery::random_spd(2000, 6, 3).unwrap();
        let (n, _, row_ptr, cols, mut values) = a.into_raw_parts();
        let above_diagonal = |from: usize| {
            (from..n).find_map(|i| (row_ptr[i]..row_ptr[i + 1]).find(|k| cols[*k] as usize > i).map(|k| (i, k)))
        };
        let (first, later) = (above_diagonal(700).unwrap(), above_diagonal(1500).unwrap());
        values[first.1] += 0.5;
        values[later.1] += 0.5;
        let place = (first.0, cols[first.1] as usize);
        let a = Csr::new(n, n, row_ptr, cols, values).unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| Stats::of(&a)).asymmetry.unwrap();
            assert_eq!((found.row, found.col), place);
            assert!((found.upper - found.lower - 0.5).abs() < 1e-15);
        }
    }
}
