//! A system whose rows are permuted, and whose rows and columns are scaled, by a transversal of the largest product.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::cardinality::Matching;
use super::deficiency::{Deficiency, Shortage};
use super::product::Transversal;
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::assemble::assemble;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::power::{nearest, scaled};

/// A x = b as (R P A C) (C⁻¹ x) = R P b: P moves the entries of a [`Transversal`] to the diagonal, and R and C, of powers of two, make
/// them about 1 and no entry much larger than 1, between ½ and 2 in any case. Powers of two round nothing. That is what iterations have
/// of it where the diagonal has zeros, or entries of all sizes (M. Benzi, J. C. Haws, M. Tůma, "Preconditioning highly indefinite and
/// nonsymmetric matrices", SIAM J. Sci. Comput. 22 (2000), doi 10.1137/S1064827599361308).
///
/// A row whose entries are small beyond [`RANGE`] of those of the largest row stays smaller than the others: its part of ‖b − A x‖ is too
/// small to matter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Equilibration {
    /// Which row of A is in each place.
    order: Vec<u32>,
    /// log₂ of R for each row of A, from 0 on: `base` is added to all.
    rows: Vec<i32>,
    /// log₂ of C for each column.
    cols: Vec<i32>,
    base: i32,
}

/// Binary orders of magnitude among the rows of a system that squares of scaled residuals leave room for.
const RANGE: i32 = 400;

/// The same where vectors are in single precision.
const RANGE_OF_SINGLE: i32 = 48;

/// Exponents beyond this make 0 of any number, or infinity.
const MOST: i32 = 1 << 20;

/// What was done to a system: see [`Precond::Transversal`](crate::solve::Precond::Transversal).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Equilibrated {
    /// Rows that were moved.
    pub moved: usize,
    /// Binary logarithms of the least and the largest number that a row was multiplied by,
    pub rows: [i32; 2],
    /// and of those for columns.
    pub cols: [i32; 2],
}

impl fmt::Display for Equilibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { moved, rows, cols } = self;
        let by = |[least, most]: &[i32; 2]| format!("2^{least} to 2^{most}");
        write!(f, "{moved} rows moved; rows scaled by {}, columns by {}", by(rows), by(cols))
    }
}

impl Equilibration {
    /// Of a square matrix, for vectors in double or single precision. The real form of a complex matrix goes by the moduli of the
    /// complex entries, so that both parts of a number stay together. Takes what [`Transversal::maximum_product`] takes.
    ///
    /// # Errors
    /// [`Error::NotSquare`](crate::Error::NotSquare). The reason, if the matrix is structurally singular.
    pub(crate) fn of(a: &Csr, is_single: bool) -> Result<std::result::Result<Self, Shortage>> {
        let range = if is_single { RANGE_OF_SINGLE } else { RANGE };
        let is_complex = is_real_form(a);
        let found =
            if is_complex { Transversal::maximum_product(&moduli(a)?) } else { Transversal::maximum_product(a) }?;
        Ok(match found {
            Ok(found) if is_complex => Ok(Self::by(&found, range).of_pairs()),
            Ok(found) => Ok(Self::by(&found, range)),
            Err(deficiency) => Err(Deficiency::of(a, &Matching::maximum(a)).unwrap_or(deficiency).in_short()),
        })
    }

    fn by(transversal: &Transversal, range: i32) -> Self {
        let mut order = vec![0; transversal.col_of_row.len()];
        for (row, &place) in (0..).zip(&transversal.col_of_row) {
            order[place as usize] = row;
        }
        let exponents =
            |logs: &[f64]| -> Vec<i32> { logs.iter().map(|&log| nearest(log).clamp(-MOST, MOST)).collect() };
        let (mut rows, cols) = (exponents(&transversal.row_log2), exponents(&transversal.col_log2));
        let base = rows.iter().copied().min().unwrap_or(0);
        rows.iter_mut().for_each(|e| *e = (*e - base).min(range));
        Self { order, rows, cols, base }
    }

    /// The same for both parts of complex numbers.
    fn of_pairs(self) -> Self {
        let twice = |all: Vec<i32>| all.into_iter().flat_map(|e| [e, e]).collect();
        let order = self.order.iter().flat_map(|&row| [2 * row, 2 * row + 1]).collect();
        Self { order, rows: twice(self.rows), cols: twice(self.cols), base: self.base }
    }

    /// R P A C, with as many entries as A.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn matrix(&self, a: &Csr) -> Result<Csr> {
        let old = |place: usize| self.order[place] as usize;
        assemble(
            a.n_rows(),
            |place| a.row(old(place)).0.len(),
            |place, row| {
                let (columns, values) = a.row(old(place));
                let e = self.rows[old(place)] + self.base;
                for (&j, &v) in columns.iter().zip(values) {
                    row.push(j as usize, scaled(v, e + self.cols[j as usize]));
                }
            },
        )
    }

    /// 2^−base R P b.
    pub(crate) fn of_rhs(&self, b: &[f64]) -> Vec<f64> {
        self.order.par_iter().map(|&row| scaled(b[row as usize], self.rows[row as usize])).collect()
    }

    /// 2^−base C⁻¹ x, with 0 for what is out of range: x is but a guess.
    pub(crate) fn of_iterate(&self, x: &[f64]) -> Vec<f64> {
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        x.par_iter().zip(&self.cols).map(|(&x, &e)| finite(scaled(x, -(e + self.base)))).collect()
    }

    /// x from that, in place.
    pub(crate) fn undo(&self, x: &mut [f64]) {
        x.par_iter_mut().zip(&self.cols).for_each(|(x, &e)| *x = scaled(*x, e + self.base));
    }

    /// What a residual of the system at hand is multiplied by to be one of A x = b, squared: at most 1, in the order of its rows.
    pub(crate) fn weights(&self) -> Vec<f64> {
        self.order.par_iter().map(|&row| scaled(1.0, -2 * self.rows[row as usize])).collect()
    }

    /// What is done to the system.
    pub(crate) fn summary(&self) -> Equilibrated {
        let ends = |all: &[i32], base: i32| {
            let (least, most) = (all.iter().min(), all.iter().max());
            [least, most].map(|e| e.map_or(0, |e| e + base))
        };
        let moved = self.order.iter().zip(0..).filter(|(row, place)| *row != place).count();
        Equilibrated { moved, rows: ends(&self.rows, self.base), cols: ends(&self.cols, 0) }
    }
}

/// The moduli of the complex entries of a real form.
fn moduli(a: &Csr) -> Result<Csr> {
    assemble(
        a.n_rows() / 2,
        |row| a.row(2 * row).0.len() / 2,
        |row, to| {
            let (columns, values) = a.row(2 * row);
            for (j, [re, im]) in columns.as_chunks::<2>().0.iter().zip(values.as_chunks::<2>().0) {
                to.push(j[0] as usize / 2, re.hypot(*im));
            }
        },
    )
}
