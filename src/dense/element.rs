//! The elements of dense matrices.

use faer::traits::RealField;

use crate::real::Real;

/// What is inside.
pub(crate) trait Number: Real + RealField {}
impl Number for f32 {}
impl Number for f64 {}

/// An element of a dense matrix: `f32` or `f64`.
#[allow(private_bounds)] // nobody else's
pub trait Element: Number {}
impl Element for f32 {}
impl Element for f64 {}

/// The distance from 1 to the next number.
pub(super) fn epsilon<T: Element>() -> f64 {
    if size_of::<T>() == size_of::<f64>() { f64::EPSILON } else { f32::EPSILON.into() }
}
