//! Large arrays and large files in memory.
//!
//! Beside `device` and `kernels` this is the only place with `unsafe`: a call of the operating system each, behind a
//! safe function, and which numbers are [`Plain`].

mod array;
mod elements;
mod map;
mod plain;

pub(crate) use array::{NoMemory, zeros};
pub(crate) use elements::Elements;
pub(crate) use map::Map;
pub(crate) use plain::Plain;
