//! The sizes of values, and what stands on the diagonal.

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::stats::Tally;
use super::{Csr, Scalar};

/// The range of moduli: the smallest that is not 0, and the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// min |v| over all v ≠ 0.
    pub min: f64,
    /// max |v|.
    pub max: f64,
}

impl Range {
    /// The range of one value; none of 0.
    fn of(modulus: f64) -> Option<Self> {
        (modulus > 0.0).then_some(Self { min: modulus, max: modulus })
    }

    fn and(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(Self { min: a.min.min(b.min), max: a.max.max(b.max) }),
            (a, b) => a.or(b),
        }
    }

    /// max / min, at least 1.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.max / self.min
    }
}

/// Serialises the ends of a range, which are null if there is none.
fn ends<S: Serializer>(range: &Option<Range>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Ends {
        min: Option<f64>,
        max: Option<f64>,
    }
    Ends { min: range.map(|range| range.min), max: range.map(|range| range.max) }.serialize(serializer)
}

/// The stored values of a matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Values {
    /// Stored entries whose value is 0, and the first row with one.
    pub zeros: Tally,
    /// The range of the others; none if there are no others.
    #[serde(flatten, serialize_with = "ends")]
    pub range: Option<Range>,
}

impl Values {
    /// Looks at every value, rows in parallel: O(nnz).
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let row = |i: usize| {
            let mut row = Self::default();
            for v in a.row(i).1 {
                let range = Range::of(v.modulus());
                if range.is_none() {
                    row.zeros.add(i);
                }
                row.range = Range::and(row.range, range);
            }
            row
        };
        let and = |a: Self, b: Self| Self { zeros: a.zeros.and(b.zeros), range: Range::and(a.range, b.range) };
        (0..a.n_rows()).into_par_iter().map(row).reduce(Self::default, and)
    }
}

/// The main diagonal. All its entries are real and positive if the matrix is positive definite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MainDiagonal {
    /// Entries that are not stored.
    pub missing: Tally,
    /// Entries that are stored and 0.
    pub zero: Tally,
    /// Entries that are real and below 0.
    pub negative: Tally,
    /// Entries that are not real.
    pub not_real: Tally,
    /// The range of the entries other than 0; none if there are no others.
    #[serde(flatten, serialize_with = "ends")]
    pub range: Option<Range>,
}

impl MainDiagonal {
    /// Looks for the diagonal entry of each row that has one, rows in parallel: O(rows log(longest row)).
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let row = |i: usize| {
            let (d, stored) = (a.get(i, i).unwrap_or_default(), a.get(i, i).is_some());
            let real = d.im() == 0.0;
            Self {
                missing: Tally::of(i, !stored),
                zero: Tally::of(i, stored && real && d.re() == 0.0),
                negative: Tally::of(i, real && d.re() < 0.0),
                not_real: Tally::of(i, !real),
                range: Range::of(d.modulus()),
            }
        };
        let and = |a: Self, b: Self| Self {
            missing: a.missing.and(b.missing),
            zero: a.zero.and(b.zero),
            negative: a.negative.and(b.negative),
            not_real: a.not_real.and(b.not_real),
            range: Range::and(a.range, b.range),
        };
        (0..a.n_rows().min(a.n_cols())).into_par_iter().map(row).reduce(Self::default, and)
    }

    /// The first row, from 0, whose entry is not stored or not a positive real number.
    #[must_use]
    pub fn first_not_positive(&self) -> Option<usize> {
        [self.missing, self.zero, self.negative, self.not_real].iter().filter_map(|t| t.first).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Complex64;
    use super::*;

    fn tally(count: usize, first: usize) -> Tally {
        Tally { count, first: Some(first) }
    }

    #[test]
    fn moduli() {
        let a = Csr::new(3, 3, vec![0, 2, 4, 5], vec![0, 1, 0, 2, 2], vec![-8.0, 0.5, 0.0, 0.0, 2.0]).unwrap();
        assert_eq!(Values::of(&a), Values { zeros: tally(2, 1), range: Some(Range { min: 0.5, max: 8.0 }) });
        assert_eq!(Values::of(&a).range.unwrap().ratio(), 16.0);
        let zeros = Csr::new(1, 1, vec![0, 1], vec![0], vec![-0.0]).unwrap();
        assert_eq!(Values::of(&zeros), Values { zeros: tally(1, 0), range: None });
        let z = Complex64::new(3.0, -4.0);
        let complex = Csr::new(1, 1, vec![0, 1], vec![0], vec![z]).unwrap();
        assert_eq!(Values::of(&complex).range, Some(Range { min: 5.0, max: 5.0 }));
    }

    #[test]
    fn diagonals() {
        let at = [0, 1, 3, 5];
        let a = Csr::from_triplets(6, 6, &at, &at, &[2.0, -8.0, 0.0, -1.0]).unwrap();
        let d = MainDiagonal::of(&a);
        assert_eq!((d.missing, d.zero, d.negative), (tally(2, 2), tally(1, 3), tally(2, 1)));
        assert_eq!((d.not_real.count, d.range), (0, Some(Range { min: 1.0, max: 8.0 })));
        assert_eq!(d.first_not_positive(), Some(1));
        let c = Complex64::new;
        let z = Csr::from_triplets(3, 3, &at[..2], &at[..2], &[c(1.0, 0.0), c(0.0, 1.0)]).unwrap();
        let d = MainDiagonal::of(&z);
        assert_eq!((d.missing, d.zero.count, d.negative.count, d.not_real), (tally(1, 2), 0, 0, tally(1, 1)));
    }

    #[test]
    fn a_rectangle_has_as_many_diagonal_entries_as_its_short_side() {
        let tall = Csr::new(3, 1, vec![0, 1, 1, 1], vec![0], vec![1.0]).unwrap();
        assert_eq!(MainDiagonal::of(&tall).first_not_positive(), None);
        let wide = Csr::new(1, 3, vec![0, 1], vec![1], vec![1.0]).unwrap();
        assert_eq!(MainDiagonal::of(&wide).missing, tally(1, 0));
        let nothing = Csr::new(0, 0, vec![0], vec![], Vec::<f64>::new()).unwrap();
        assert_eq!(MainDiagonal::of(&nothing).range, None);
    }
}
