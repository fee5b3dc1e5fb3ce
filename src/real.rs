//! The precisions of the iteration, and the two kinds of elements.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use rayon::prelude::*;

use crate::comm::{Communicator, Links};
use crate::named::named;

named! {
    /// The precision of the matrix and the vectors on the ranks. The answer is checked in more than double precision
    /// in any case.
    Precision, "precision":
    F64 = "f64", "Double precision.";
    F32 = "f32", "Single precision; sums in double precision where the device has it.";
    Mixed = "mixed", "Single precision in the iteration; the residuals it goes on from, and the iterate, in double.";
}

impl Precision {
    /// Between 1 and the next number.
    pub(crate) fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 | Self::Mixed => f64::from(f32::EPSILON),
        }
    }

    /// Bytes of an element in the iteration.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::Mixed => 4,
        }
    }

    /// The precision of the matrix and the vectors of the iteration.
    pub(crate) fn of_vectors(self) -> Self {
        match self {
            Self::F64 => Self::F64,
            Self::F32 | Self::Mixed => Self::F32,
        }
    }

    /// Whether devices must compute in double precision.
    #[must_use]
    pub fn needs_f64(self) -> bool {
        self != Self::F32
    }
}

/// An element of a vector on a rank: `f32` or `f64`.
pub trait Real:
    Sealed
    + Copy
    + Default
    + Debug
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// Its name in OpenCL C.
    const CL_NAME: &'static str;

    /// Rounds to nearest.
    fn from_f64(v: f64) -> Self;

    /// Exact.
    fn to_f64(self) -> f64;

    /// All of `v` times `factor`, rounded to nearest; what stays the same is passed through without a copy.
    fn scaled(v: &[f64], factor: f64) -> Cow<'_, [Self]>;

    /// Lets `fill` set as many elements as `to` has, and leaves them there: where they are of this type, without a
    /// copy.
    fn fill<R>(to: &mut [f64], fill: impl FnOnce(&mut [Self]) -> R) -> R;

    /// The communicator for messages of such elements.
    fn link(links: Links) -> Box<dyn Communicator<Self>>;

    /// The number with these low bits and zeros above: an integer that travels among numbers.
    fn with_low_word(word: i32) -> Self;

    /// Its bits, with zeros above.
    fn to_word(self) -> u64;

    /// The number of these bits.
    fn of_word(word: u64) -> Self;
}

/// Only `f32` and `f64` have it.
pub trait Sealed: crate::memory::Plain + bytemuck::Zeroable {}
impl Sealed for f32 {}
impl Sealed for f64 {}

impl Real for f32 {
    const CL_NAME: &'static str = "float";

    fn with_low_word(word: i32) -> Self {
        Self::from_bits(word.cast_unsigned())
    }

    fn to_word(self) -> u64 {
        self.to_bits().into()
    }

    fn of_word(word: u64) -> Self {
        Self::from_bits(word as u32)
    }

    fn from_f64(v: f64) -> Self {
        v as f32
    }

    fn to_f64(self) -> f64 {
        self.into()
    }

    fn scaled(v: &[f64], factor: f64) -> Cow<'_, [Self]> {
        Cow::Owned(v.par_iter().with_min_len(1 << 14).map(|&v| (v * factor) as f32).collect())
    }

    fn fill<R>(to: &mut [f64], fill: impl FnOnce(&mut [Self]) -> R) -> R {
        let mut own = vec![0.0; to.len()];
        let result = fill(&mut own);
        to.par_iter_mut().with_min_len(1 << 14).zip(&own).for_each(|(to, &own)| *to = own.into());
        result
    }

    fn link(links: Links) -> Box<dyn Communicator<Self>> {
        links.single
    }
}

impl Real for f64 {
    const CL_NAME: &'static str = "double";

    fn with_low_word(word: i32) -> Self {
        Self::from_bits(word.cast_unsigned().into())
    }

    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn of_word(word: u64) -> Self {
        Self::from_bits(word)
    }

    fn from_f64(v: f64) -> Self {
        v
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn scaled(v: &[f64], factor: f64) -> Cow<'_, [Self]> {
        if factor == 1.0 {
            return Cow::Borrowed(v);
        }
        Cow::Owned(v.par_iter().with_min_len(1 << 14).map(|&v| v * factor).collect())
    }

    fn fill<R>(to: &mut [f64], fill: impl FnOnce(&mut [Self]) -> R) -> R {
        fill(to)
    }

    fn link(links: Links) -> Box<dyn Communicator<Self>> {
        links.double
    }
}
