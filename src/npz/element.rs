//! The numbers of a matrix as a file holds them.

use crate::matrix::{Complex64, Scalar};

/// A number that a `.npz` file can hold bit by bit: one or two doubles.
pub trait Element: Scalar + bytemuck::Pod {
    /// NumPy's name of the type, without the byte order.
    const NAME: &'static str;
}

impl Element for f64 {
    const NAME: &'static str = "f8";
}

impl Element for Complex64 {
    const NAME: &'static str = "c16";
}
