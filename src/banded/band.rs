//! The diagonals of a matrix.

use rayon::prelude::*;

use super::lu::BandFactor;
use crate::error::{Error, Result};
use crate::real::Real;

/// A square matrix whose entries a(i, j) have −`lower` ≤ j − i ≤ `upper`: n (lower + upper + 1) numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Band<T> {
    pub(super) n: usize,
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) rows: Vec<T>,
}

impl<T: Real> Band<T> {
    /// A matrix of zeros of order `n`, with so many diagonals below and above the main one; more than n − 1 are of no use, and left out.
    #[must_use]
    pub fn zeros(n: usize, lower: usize, upper: usize) -> Self {
        let [lower, upper] = [lower, upper].map(|count| count.min(n.saturating_sub(1)));
        Self { n, lower, upper, rows: vec![T::default(); n * (lower + upper + 1)] }
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> usize {
        self.n
    }

    /// Diagonals below and above the main one.
    #[must_use]
    pub fn widths(&self) -> (usize, usize) {
        (self.lower, self.upper)
    }

    /// Where an entry is, if it is in the band.
    fn place(&self, i: usize, j: usize) -> Option<usize> {
        let is_inside = i < self.n && j < self.n && i <= j + self.lower && j <= i + self.upper;
        is_inside.then(|| i * (self.lower + self.upper + 1) + j + self.lower - i)
    }

    /// The entry in row `i` and column `j`, both from 0; outside of the band it is 0.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> T {
        self.place(i, j).map_or(T::default(), |place| self.rows[place])
    }

    /// Sets an entry.
    ///
    /// # Panics
    /// Outside of the band.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        let place = self.place(i, j);
        assert!(place.is_some(), "entry ({i}, {j}) is outside of the band");
        if let Some(place) = place {
            self.rows[place] = value;
        }
    }

    /// y = A x, rows in parallel.
    ///
    /// # Panics
    /// If x has another length.
    #[must_use]
    pub fn times(&self, x: &[T]) -> Vec<T> {
        assert_eq!(x.len(), self.n, "elements of x");
        let width = self.lower + self.upper + 1;
        let row = |i: usize| {
            let first = i.saturating_sub(self.lower);
            let entries = &self.rows[i * width + first + self.lower - i..(i + 1) * width];
            entries.iter().zip(&x[first..]).fold(T::default(), |sum, (a, x)| sum + *a * *x)
        };
        (0..self.n).into_par_iter().with_min_len(1 << 12).map(row).collect()
    }

    /// P A = L U by rows that are exchanged with at most `lower` later ones. Takes n · lower (lower + upper) multiplications and as many
    /// additions, and n (3 lower + upper + 1) numbers of memory.
    ///
    /// # Errors
    /// [`Error::SingularSystem`] where no pivot is left, as system 0.
    pub fn factorise(&self) -> Result<BandFactor<T>> {
        BandFactor::new(self, None).map_err(|row| Error::SingularSystem { system: 0, row })
    }
}

/// Solves a batch of systems, several at a time: that of `bands[k]` with the right-hand side in the k-th part of `x`, which becomes its
/// solution.
///
/// # Errors
/// [`Error::SingularSystem`] with the number of the first one that is singular; what x has then is of no use.
///
/// # Panics
/// If `x` has not an element for each row of all systems.
pub fn solve_all<T: Real>(bands: &[Band<T>], x: &mut [T]) -> Result<()> {
    assert_eq!(x.len(), bands.iter().map(Band::order).sum::<usize>(), "elements of x");
    let mut rest = x;
    let mut parts = Vec::with_capacity(bands.len());
    for band in bands {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(band.n);
        parts.push(own);
        rest = others;
    }
    let solve = |(system, (band, x)): (usize, (&Band<T>, &mut [T]))| match BandFactor::new(band, None) {
        Ok(factor) => {
            factor.solve(x);
            None
        }
        Err(row) => Some((system, row)),
    };
    let failed = bands.par_iter().zip(parts).enumerate().filter_map(solve).min();
    failed.map_or(Ok(()), |(system, row)| Err(Error::SingularSystem { system, row }))
}
