//! A Krylov basis: columns V = [v_0 v_1 …] that are orthonormal, and what is done with all of them at once.
//!
//! One more vector w is made orthogonal to them by classical Gram–Schmidt, twice, which is as good as it can be done in the
//! precision (Giraud, Langou, Rozložník and van den Eshof 2005, doi 10.1007/s00211-005-0615-4), in three passes over V:
//!
//! | pass | arrays, with j columns |
//! |---|---|
//! | h = Vᵀ w | j + 1 |
//! | w = w − V h; d = Vᵀ w, w·w | j + 2 |
//! | v = (w − V d) / ‖w − V d‖, which is the next column, and what is multiplied next; in a complex system also i v | j + 3 or 4 |
//!
//! The norm of the third follows from sums of the second: ‖w − V d‖² = w·w − d·d. So there are two sums over ranks, of j and of j + 1
//! values.

use super::vectors::Backend;
use crate::comm::MAX_SUMS;
use crate::error::Result;
use crate::real::Real;

/// Passes of Gram–Schmidt, at most: with more than two, w is all but in the span of V.
const PASSES: usize = 4;

/// Passes end once what is left in the direction of V is below this part of w, in squares: then w·w − d·d has lost no more than
/// a bit, and the last pass makes w orthogonal to rounding.
const LITTLE: f64 = 0.25;

/// The operations of a rank with a basis.
pub(crate) trait BasisBackend: Backend {
    /// The rank's rows of the columns.
    type Basis;

    /// Room for so many columns, of 8 bytes a row each in double precision.
    ///
    /// # Errors
    /// Not enough memory.
    fn basis(&self, columns: usize) -> Result<Self::Basis>;

    /// This rank's parts of Vᵀ w, for the first `columns` columns.
    ///
    /// # Errors
    /// A failing device.
    fn column_dots(&self, v: &mut Self::Basis, columns: usize, w: &Self::Vector) -> Result<Vec<f64>>;

    /// w = w − V f, and then this rank's parts of Vᵀ w, and of w·w behind them.
    ///
    /// # Errors
    /// A failing device.
    fn subtract_dots(&self, v: &mut Self::Basis, f: &[f64], w: &mut Self::Vector) -> Result<Vec<f64>>;

    /// Both at once, for a rank that is alone: h = Vᵀ w, and what [`subtract_dots`](Self::subtract_dots) leaves with f = h.
    ///
    /// # Errors
    /// A failing device.
    fn project(&self, v: &mut Self::Basis, columns: usize, w: &mut Self::Vector) -> Result<[Vec<f64>; 2]> {
        let h = self.column_dots(v, columns, w)?;
        let d = self.subtract_dots(v, &h, w)?;
        Ok([h, d])
    }

    /// to = scale (w − V f), and that as a column in this place, behind those that f goes with; if it is one of two, i times that
    /// comes behind it, where elements are pairs of real and imaginary parts.
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
    ) -> Result<()>;

    /// x = x + V f.
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

/// What orthogonalisation has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Projected {
    /// Vᵀ w of the w that was given.
    pub(crate) h: Vec<f64>,
    /// What is left of that in the w that is there now,
    pub(crate) rest: Vec<f64>,
    /// and the norm of w without it; 0 if that is no more than rounding errors.
    pub(crate) norm: f64,
}

/// Makes `w` orthogonal to the first `columns` columns of V, but for what [`next_column`](BasisBackend::next_column) takes from it.
///
/// # Errors
/// A failing device or rank.
pub(crate) fn orthogonalise<O: BasisBackend>(
    backend: &O,
    v: &mut O::Basis,
    columns: usize,
    w: &mut O::Vector,
) -> Result<Projected> {
    let over_ranks = |mut values: Vec<f64>| -> Result<Vec<f64>> {
        values.chunks_mut(MAX_SUMS).try_for_each(|values| backend.sum(values))?;
        Ok(values)
    };
    let [mut h, mut rest] = if backend.comm().size() == 1 {
        let [h, rest] = backend.project(v, columns, w)?;
        [over_ranks(h)?, over_ranks(rest)?]
    } else {
        let h = over_ranks(backend.column_dots(v, columns, w)?)?;
        let rest = over_ranks(backend.subtract_dots(v, &h, w)?)?;
        [h, rest]
    };
    for pass in 2.. {
        let square = rest.pop().unwrap_or_default();
        let of_rest: f64 = rest.iter().map(|d| d * d).sum();
        let is_little = of_rest <= LITTLE * square;
        if is_little || square.is_nan() || pass == PASSES {
            h.iter_mut().zip(&rest).for_each(|(h, d)| *h += d);
            let given = h.iter().map(|h| h * h).sum::<f64>() + square;
            let norm = (square - of_rest).max(0.0).sqrt();
            let is_noise = !is_little || norm <= epsilon::<O::Real>() * given.sqrt();
            return Ok(Projected { h, rest, norm: if is_noise { 0.0 } else { norm } });
        }
        h.iter_mut().zip(&rest).for_each(|(h, d)| *h += d);
        rest = over_ranks(backend.subtract_dots(v, &rest, w)?)?;
    }
    unreachable!("passes end")
}

/// The distance from 1 to the next element.
pub(crate) fn epsilon<T: Real>() -> f64 {
    if size_of::<T>() < size_of::<f64>() { f32::EPSILON.into() } else { f64::EPSILON }
}
