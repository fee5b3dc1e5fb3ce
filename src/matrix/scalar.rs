//! The two kinds of numbers that a matrix may hold.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{AddAssign, Mul, Neg};

pub use num_complex::Complex64;

/// An entry of a matrix: [`f64`] or [`Complex64`].
///
/// Complex systems are solved as real ones of twice the order: [`equivalent`](super::equivalent).
pub trait Scalar:
    Copy
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + AddAssign
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Sum
    + bytemuck::Pod
{
    /// The number 1.
    const ONE: Self;

    /// Whether this is the complex kind.
    const IS_COMPLEX: bool;

    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool;

    /// The complex conjugate; of a real number, itself.
    #[must_use]
    fn conj(self) -> Self;

    /// |z|, without overflow in between.
    fn modulus(self) -> f64;

    /// The real part.
    fn re(self) -> f64;

    /// The imaginary part; 0 of a real number.
    fn im(self) -> f64;
}

impl Scalar for f64 {
    const ONE: Self = 1.0;
    const IS_COMPLEX: bool = false;

    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    #[inline]
    fn conj(self) -> Self {
        self
    }

    #[inline]
    fn modulus(self) -> f64 {
        self.abs()
    }

    #[inline]
    fn re(self) -> f64 {
        self
    }

    #[inline]
    fn im(self) -> f64 {
        0.0
    }
}

impl Scalar for Complex64 {
    const ONE: Self = Self::new(1.0, 0.0);
    const IS_COMPLEX: bool = true;

    #[inline]
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    #[inline]
    fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }

    #[inline]
    fn modulus(self) -> f64 {
        self.re.hypot(self.im)
    }

    #[inline]
    fn re(self) -> f64 {
        self.re
    }

    #[inline]
    fn im(self) -> f64 {
        self.im
    }
}
