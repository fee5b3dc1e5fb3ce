//! Facts about a matrix: shape, lengths of rows, symmetry, diagonal.

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::Csr;
use super::search::first;
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
}

impl Stats {
    /// Looks at every entry, rows in parallel: O(nnz log(longest row)), and 8 bytes a row of memory.
    #[must_use]
    pub fn of(a: &Csr) -> Self {
        Self::with(a, Symmetry::of_whole(a))
    }

    /// The same, where `reordered` is the matrix with rows and columns in another order: in one that has entries near
    /// the diagonal, the pairs across it are found several times faster.
    pub(crate) fn of_reordered(a: &Csr, reordered: &Csr) -> Self {
        Self::with(a, Symmetry::in_orders(a, reordered))
    }

    /// The same, where these are known of the matrix with other values.
    pub(crate) fn of_values(&self, a: &Csr, reordered: &Csr) -> Self {
        let Symmetry { structural, numerical, first } = Symmetry::in_orders(a, reordered);
        Self {
            structurally_symmetric: structural,
            numerically_symmetric: numerical,
            asymmetry: first,
            diagonal: Diagonal::of(a),
            ..*self
        }
    }

    fn with(a: &Csr, symmetry: Symmetry) -> Self {
        let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
        let rows = (0..n_rows).into_par_iter().map(|i| Rows::of(a, i)).reduce(Rows::none, Rows::and);
        Self {
            n_rows,
            n_cols,
            nnz: a.nnz(),
            row_min: if n_rows == 0 { 0 } else { rows.min },
            row_max: rows.max,
            row_mean: if n_rows == 0 { 0.0 } else { a.nnz() as f64 / n_rows as f64 },
            empty_rows: rows.empty,
            bandwidth: rows.bandwidth,
            structurally_symmetric: symmetry.structural,
            numerically_symmetric: symmetry.numerical,
            asymmetry: symmetry.first,
            diagonal: Diagonal::of(a),
        }
    }
}

impl Diagonal {
    fn of(a: &Csr) -> Self {
        let mut diagonal = a.diagonal();
        diagonal.truncate(a.n_cols()); // rows further down have none
        Self {
            missing_or_zero: first(diagonal.len(), |i| diagonal[i] == 0.0),
            negative: first(diagonal.len(), |i| diagonal[i] < 0.0),
        }
    }
}

/// Lengths and reach of some rows.
struct Rows {
    min: usize,
    max: usize,
    empty: usize,
    bandwidth: usize,
}

impl Rows {
    fn none() -> Self {
        Self { min: usize::MAX, max: 0, empty: 0, bandwidth: 0 }
    }

    fn of(a: &Csr, i: usize) -> Self {
        let (cols, _) = a.row(i);
        // the columns rise: the farthest from the diagonal is the first or the last
        let bandwidth = [cols.first(), cols.last()].into_iter().flatten().map(|&j| i.abs_diff(j as usize)).max();
        Self {
            min: cols.len(),
            max: cols.len(),
            empty: usize::from(cols.is_empty()),
            bandwidth: bandwidth.unwrap_or(0),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            empty: self.empty + other.empty,
            bandwidth: self.bandwidth.max(other.bandwidth),
        }
    }
}

/// Whether for every stored (i, j) there is a stored (j, i) of the same value: each entry above the diagonal has a partner, and there are
/// no more below. It takes half the time of a look at all entries, and ends at the first that has none.
fn is_equal_across(a: &Csr) -> bool {
    // where rows are alike, an entry is as far from the end of its row as its partner from the beginning of its own
    let partner = |row: usize, col: usize, place: usize| {
        let (cols, values) = a.row(row);
        if cols.get(place).is_some_and(|&j| j as usize == col) { Some(values[place]) } else { a.get(row, col) }
    };
    let row = |i: usize| {
        let (cols, values) = a.row(i);
        let mut more_above = 0_i64;
        for (place, (&j, v)) in cols.iter().zip(values).rev().enumerate() {
            let j = j as usize;
            more_above += (j > i) as i64 - (j < i) as i64;
            if j > i && partner(j, i, place) != Some(*v) {
                return None;
            }
        }
        Some(more_above)
    };
    let more_above =
        (0..a.n_rows()).into_par_iter().with_min_len(1 << 10).map(row).try_reduce(|| 0, |a, b| Some(a + b));
    more_above == Some(0)
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

    /// Of all rows.
    fn of_whole(a: &Csr) -> Self {
        let n = a.n_rows();
        if n != a.n_cols() {
            return Self { structural: false, numerical: false, first: None };
        }
        if is_equal_across(a) {
            return Self::whole();
        }
        let diagonal = a.diagonal();
        (0..n).into_par_iter().map(|i| Self::of(a, &diagonal, i)).reduce(Self::whole, Self::and)
    }

    /// Of a matrix that is also there in another order. Which pair is the first depends on the order.
    fn in_orders(a: &Csr, reordered: &Csr) -> Self {
        let symmetry = Self::of_whole(reordered);
        let is_one = std::ptr::eq(a, reordered);
        if is_one || symmetry.first.is_none() { symmetry } else { Self::of_whole(a) }
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
        assert_eq!((s.row_min, s.row_max, s.empty_rows, s.bandwidth), (3, 5, 0, 30));
        assert!((s.row_mean - 2900.0 / 600.0).abs() < 1e-15);
        assert!(s.structurally_symmetric && s.numerically_symmetric && s.asymmetry.is_none());
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: None, negative: None });
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
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: Some(2), negative: Some(1) });
        let s = Stats::of(&dense(&[&[0.0, 2.0], &[2.0, 1.0]]));
        assert_eq!(s.diagonal, Diagonal { missing_or_zero: Some(0), negative: None });
    }

    #[test]
    fn rectangles_are_not_symmetric() {
        for a in [dense(&[&[1.0, 0.0, 0.0], &[0.0, 1.0, 5.0]]), dense(&[&[1.0], &[2.0], &[3.0]])] {
            let s = Stats::of(&a);
            assert!(!s.structurally_symmetric && !s.numerically_symmetric && s.asymmetry.is_none());
            assert_eq!(s.diagonal, Diagonal { missing_or_zero: None, negative: None });
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
