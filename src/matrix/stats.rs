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
    /// Looks at every entry, rows in parallel: once where the matrix is symmetric to the bit, which a sum of 64-bit hashes tells, so that no entry
    /// waits for the one across the diagonal. O(nnz); of other matrices O(nnz log(longest row)).
    #[must_use]
    pub fn of(a: &Csr) -> Self {
        if let Some(rows) = a.patterns().and_then(|patterns| Rows::of_patterns(a, patterns)) {
            return Self::with(a, &rows, Symmetry::whole());
        }
        let rows = Rows::of_whole(a, true);
        Self::with(a, &rows, Symmetry::of_whole(a, &rows))
    }

    /// The same, where `reordered` is the matrix with rows and columns in another order: in one that has entries near the diagonal, pairs that
    /// differ by rounding are found several times faster.
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
    /// What entries above the diagonal add up to, less what those below do as if they stood above, modulo 2⁶⁴: of all rows together 0, if for every
    /// stored (i, j) there is a stored (j, i) of the same value. None if that is known not to be so.
    above: Option<u64>,
}

impl Rows {
    fn none() -> Self {
        let diagonal = Diagonal { missing_or_zero: None, negative: None, uneven: None };
        Self { min: usize::MAX, max: 0, empty: 0, bandwidth: 0, largest: 0.0, diagonal, above: Some(0) }
    }

    /// All rows of a matrix, and if `compares`, whether what is above the diagonal is also below.
    fn of_whole(a: &Csr, compares: bool) -> Self {
        let (n, compares) = (a.n_rows(), compares && a.n_rows() == a.n_cols());
        let chunk = |k: usize| Self::of(a, k * CHUNK..n.min((k + 1) * CHUNK), compares);
        (0..n.div_ceil(CHUNK)).into_par_iter().map(chunk).reduce(Self::none, Self::and)
    }

    fn of(a: &Csr, rows: Range<usize>, compares: bool) -> Self {
        let mut all = Self::none();
        let mut above = 0u64;
        let usual = a.get(0, 0).unwrap_or(0.0);
        for i in rows {
            let (cols, values) = a.row(i);
            all.largest = values.iter().fold(all.largest, |largest, v| largest.max(v.abs()));
            let from = cols.partition_point(|&j| (j as usize) < i);
            let on_diagonal = cols.get(from).is_some_and(|&j| j as usize == i);
            if compares {
                let behind = from + usize::from(on_diagonal);
                let below = cols[..from].iter().zip(&values[..from]).map(|(&j, &v)| hash(j, i as u32, v));
                above = below.fold(above, u64::wrapping_sub);
                let others = cols[behind..].iter().zip(&values[behind..]).map(|(&j, &v)| hash(i as u32, j, v));
                above = others.fold(above, u64::wrapping_add);
            }
            if i < a.n_cols() {
                all.diagonal.look(i, if on_diagonal { values[from] } else { 0.0 }, usual);
            }
            // the columns rise: the farthest from the diagonal is the first or the last
            let reach = [cols.first(), cols.last()].into_iter().flatten().map(|&j| i.abs_diff(j as usize)).max();
            all.bandwidth = all.bandwidth.max(reach.unwrap_or(0));
            all.min = all.min.min(cols.len());
            all.max = all.max.max(cols.len());
            all.empty += usize::from(cols.is_empty());
        }
        Self { above: compares.then_some(above), ..all }
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
            let mut more_above = 0i64;
            for i in rows {
                let pattern = patterns.of_row[i];
                more_above += mirrors.above(&patterns.of_row, i)?;
                if special[pattern as usize] {
                    let &OfPattern { is_empty, diagonal } = &of_pattern[pattern as usize];
                    all.empty += usize::from(is_empty);
                    all.diagonal.look(i, diagonal, usual);
                }
            }
            Some(Self { above: Some(more_above.cast_unsigned()), ..all })
        };
        let all = (0..patterns.of_row.len().div_ceil(CHUNK)).into_par_iter().map(chunk);
        let mut all = all.try_reduce(Self::none, |here, after| Some(here.and(after)))?;
        for k in 0..patterns.count() as u16 {
            let (len, [low, high]) = (patterns.entries(k).len(), patterns.reach(k));
            (all.min, all.max) = (all.min.min(len), all.max.max(len));
            all.bandwidth = all.bandwidth.max(low.unsigned_abs().max(high.unsigned_abs()) as usize);
            all.largest = patterns.values(k).iter().fold(all.largest, |largest, v| largest.max(v.abs()));
        }
        (all.above == Some(0)).then_some(all)
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
            above: self.above.zip(after.above).map(|(here, there)| here.wrapping_add(there)),
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

/// 64 bits that depend on all of an entry: those of its place times an odd constant, and of its value times another, mixed as in Steele, Lea and
/// Flood's SplitMix (2014, doi 10.1145/2660193.2660195).
#[inline]
fn hash(i: u32, j: u32, v: f64) -> u64 {
    let place = u64::from(i) << 32 | u64::from(j);
    let value = (v + 0.0).to_bits(); // −0 is 0
    let mut z = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value.wrapping_mul(0xd1b5_4a32_d192_ed03).rotate_left(32);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
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
        if rows.above == Some(0) {
            return Self::whole();
        }
        let diagonal = a.diagonal();
        // where the pattern is symmetric, it is enough to look for what is across the entries above the diagonal
        let above = (0..n).into_par_iter().map(|i| Self::above(a, &diagonal, i));
        let of_both = |(one, more): (Self, i64), (other, yet_more)| Some((one.and(other), more + yet_more));
        if let Some((all, 0)) = above.try_reduce(|| (Self::whole(), 0), of_both) {
            return all;
        }
        (0..n).into_par_iter().map(|i| Self::of(a, &diagonal, i)).reduce(Self::whole, Self::and)
    }

    /// Compares row `i` of a square matrix with column `i`.
    fn of(a: &Csr, diagonal: &[f64], i: usize) -> Self {
        let mut row = Self::whole();
        pairs_of_row(a, i, |pair, both| {
            row.structural &= both;
            row.compare(pair, diagonal);
        });
        row
    }

    /// The same of what is above the diagonal, and how many more entries the row has there than below; `None` if one has none across it.
    fn above(a: &Csr, diagonal: &[f64], i: usize) -> Option<(Self, i64)> {
        let ((cols, values), mut row) = (a.row(i), Self::whole());
        let from = cols.partition_point(|&j| (j as usize) < i);
        let behind = cols.partition_point(|&j| (j as usize) <= i);
        for (&j, &upper) in cols[behind..].iter().zip(&values[behind..]) {
            let lower = a.get(j as usize, i)?;
            row.compare(Pair { row: i, col: j as usize, upper, lower }, diagonal);
        }
        Some((row, (cols.len() - behind) as i64 - from as i64))
    }

    /// Takes note of a pair, of which those before are known.
    fn compare(&mut self, pair: Pair<f64>, diagonal: &[f64]) {
        // mostly there is nothing to scale
        let difference = (pair.upper - pair.lower).abs();
        if difference > 0.0 && difference > TOLERANCE * pair.scale(diagonal) {
            self.numerical = false;
            self.first = self.first.or(Some(pair));
        }
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

    /// Whether the sums of all rows say so, of rows in this order.
    fn is_symmetric_by_sums(a: &Csr) -> bool {
        Rows::of_whole(a, true).above == Some(0)
    }

    #[test]
    fn sums_tell_what_is_symmetric() {
        for spec in ["random-spd:800,seed=4", "tetrahedra:5", "circuit:20", "poisson2d:30", "dense-rows:300"] {
            let a = spec.parse::<gallery::Spec>().unwrap().build().unwrap();
            assert!(is_symmetric_by_sums(&a), "{spec}");
            let exchanged = |k: usize, with: &mut dyn FnMut(&mut f64)| {
                let mut values = a.values().to_vec();
                with(&mut values[k]);
                a.with_values(values)
            };
            for i in (0..a.n_rows()).step_by(7) {
                for k in a.row_ptr()[i]..a.row_ptr()[i + 1] {
                    let is_diagonal = a.col_idx()[k] as usize == i;
                    let next = exchanged(k, &mut |v| *v = v.next_up());
                    assert_eq!(is_symmetric_by_sums(&next), is_diagonal, "{spec}: entry {k}");
                    let negated = exchanged(k, &mut |v| *v = -*v);
                    let is_zero = a.values()[k] == 0.0;
                    assert_eq!(is_symmetric_by_sums(&negated), is_diagonal || is_zero, "{spec}: entry {k}");
                }
            }
        }
        // the same numbers, but not across from each other; of both signs; in one triangle
        assert!(!is_symmetric_by_sums(&dense(&[&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0], &[2.0, 3.0, 1.0]])));
        assert!(!is_symmetric_by_sums(&dense(&[&[1.0, 2.0], &[-2.0, 1.0]])));
        assert!(!is_symmetric_by_sums(&dense(&[&[1.0, 2.0], &[NO, 1.0]])));
        assert!(!is_symmetric_by_sums(&dense(&[&[1.0, 0.0], &[NO, 1.0]])));
        assert!(is_symmetric_by_sums(&dense(&[&[1.0, 0.0], &[-0.0, 1.0]])));
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
