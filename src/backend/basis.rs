//! A Krylov basis: columns W = [w_0 w_1 …] that are orthogonal to each other, and what is done with all of them at once.
//!
//! One more vector w is made orthogonal to them in two passes over W, by the sums of one:
//!
//! | pass | arrays, with j columns |
//! |---|---|
//! | Wᵀ w, Wᵀ w_(j−1), w·w | j + 1 |
//! | w_j = s (w − W c), which is also what is multiplied next, and w_j·w_j | j + 3, or 4 in a complex system |
//!
//! with c from L c = Wᵀ w, where L is the lower triangle of Wᵀ W, of which a row comes along with each vector: that is what modified Gram–Schmidt
//! subtracts, column by column, in one sum (Björck 1967; Świrydowicz, Langou, Ananthan, Yang and Thomas 2021, doi
//! 10.1002/nla.2343). Columns are then as orthogonal as the vectors are independent, which is what GMRES needs to be backward stable
//! (Paige, Rozložník and Strakoš 2006, doi 10.1137/050630416). With s = 1 / ‖w‖ columns are no longer than 1, and need no pass of their own to be of
//! length 1: their lengths go into c.

use super::vectors::Backend;
use crate::comm::MAX_SUMS;
use crate::error::Result;
use crate::real::Real;

/// The operations of a rank with a basis.
pub(crate) trait BasisBackend: Backend {
    /// The rank's rows of the columns.
    type Basis;

    /// Room for so many columns, of 8 bytes a row each in double precision.
    ///
    /// # Errors
    /// Not enough memory.
    fn basis(&self, columns: usize) -> Result<Self::Basis>;

    /// This rank's parts of Wᵀ w, Wᵀ u and w·w, for so many first columns, of which u has that number.
    ///
    /// # Errors
    /// A failing device.
    fn column_dots(&self, v: &mut Self::Basis, columns: (usize, usize), w: &Self::Vector) -> Result<Vec<f64>>;

    /// to = scale (w − W f), and that as a column in this place, behind those that f goes with; if it is one of two, i times that
    /// comes behind it, where elements are pairs of real and imaginary parts. Gives this rank's part of to·to.
    ///
    /// # Errors
    /// A failing device.
    fn next_column(
        &self,
        v: &mut Self::Basis,
        f: &[f64],
        from: (f64, &Self::Vector),
        place: (usize, bool),
        to: &mut Self::Vector,
    ) -> Result<f64>;

    /// x = x + W f.
    ///
    /// # Errors
    /// A failing device.
    fn add_columns(&self, v: &mut Self::Basis, f: &[f64], x: &mut Self::Vector) -> Result<()>;

    /// Replaces values by their sums over all ranks, at most [`MAX_SUMS`] of them.
    ///
    /// # Errors
    /// A failing rank.
    fn sum(&self, values: &mut [f64]) -> Result<()>;
}

/// What all ranks know of the columns of a basis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gram {
    /// Whether columns come in pairs, v and i v.
    has_pairs: bool,
    /// w_k·w_i for i < k, and w_k·w_k.
    lower: Vec<Vec<f64>>,
}

/// What orthogonalisation has found: A v = Σ h v + norm v', in terms of columns of length 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Projected {
    /// What w has of each column,
    pub(crate) h: Vec<f64>,
    /// and the norm of what is left; 0 if that is no more than rounding errors.
    pub(crate) norm: f64,
}

impl Gram {
    /// No column; of a complex system they come in pairs.
    pub(crate) fn new(has_pairs: bool) -> Self {
        Self { has_pairs, lower: Vec::new() }
    }

    /// How many columns there are.
    fn len(&self) -> usize {
        self.lower.len()
    }

    /// Columns of a step.
    fn width(&self) -> usize {
        if self.has_pairs { 2 } else { 1 }
    }

    /// The length of column k.
    pub(crate) fn length(&self, k: usize) -> f64 {
        self.lower[k][k].sqrt()
    }

    /// Takes what the newest column, the first of a pair if there are pairs, is with those before.
    fn know(&mut self, products: &[f64]) {
        let first = self.len() - self.width();
        self.lower[first][..first].copy_from_slice(&products[..first]);
        if self.has_pairs {
            // (i u)·v = −u·(i v), (i u)·(i v) = u·v, and (i u)·u = 0
            for k in (0..first).step_by(2) {
                (self.lower[first + 1][k], self.lower[first + 1][k + 1]) = (-products[k + 1], products[k]);
            }
        }
    }

    /// Takes a column with this square, the products of which are not known yet.
    fn grow(&mut self, square: f64) {
        for _ in 0..self.width() {
            let mut row = vec![0.0; self.len()];
            row.push(square);
            self.lower.push(row);
        }
    }

    /// c of L c = Wᵀ w.
    fn solve(&self, products: &[f64]) -> Vec<f64> {
        let mut c: Vec<f64> = Vec::with_capacity(self.len());
        for (row, product) in self.lower.iter().zip(products) {
            let rest = row.iter().zip(&c).fold(*product, |rest, (l, c)| rest - l * c);
            c.push(rest / row[c.len()]);
        }
        c
    }
}

/// Makes w orthogonal to all columns, and a column of what is left, also in `to`.
///
/// # Errors
/// A failing device or rank.
pub(crate) fn orthogonalise<O: BasisBackend>(
    backend: &O,
    (v, gram): (&mut O::Basis, &mut Gram),
    w: &O::Vector,
    to: &mut O::Vector,
) -> Result<Projected> {
    let columns = gram.len();
    let mut sums = backend.column_dots(v, (columns, columns.saturating_sub(gram.width())), w)?;
    sums.chunks_mut(MAX_SUMS).try_for_each(|sums| backend.sum(sums))?;
    if columns > 0 {
        gram.know(&sums[columns..]);
    }
    let (c, length) = (gram.solve(&sums[..columns]), sums[2 * columns].sqrt());
    let scale = if length > 0.0 { 1.0 / length } else { 1.0 };
    let mut square = [backend.next_column(v, &c, (scale, w), (columns, gram.has_pairs), to)?];
    backend.sum(&mut square)?;
    let h = c.iter().enumerate().map(|(k, c)| c * gram.length(k)).collect();
    gram.grow(square[0]);
    let left = square[0].sqrt();
    Ok(Projected { h, norm: if left <= NOISE * epsilon::<O::Real>() { 0.0 } else { left / scale } })
}

/// What is left of a vector in the span of the columns, in units of the last place.
const NOISE: f64 = 4.0;

/// The distance from 1 to the next element.
pub(crate) fn epsilon<T: Real>() -> f64 {
    if size_of::<T>() < size_of::<f64>() { f32::EPSILON.into() } else { f64::EPSILON }
}
