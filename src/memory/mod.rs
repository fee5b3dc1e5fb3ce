//! Large arrays and large files in memory.
//!
//! Beside `device` and `kernels` this is the only place with `unsafe`: a call of the operating system each, behind a
//! safe function, the allocator of the command, and which numbers are `Plain`.

mod array;
mod available;
mod elements;
mod map;
mod pages;
mod peak;
mod plain;

pub(crate) use array::{NoMemory, copied, copy, zeros};
pub(crate) use available::available_bytes;
pub(crate) use elements::Elements;
pub(crate) use map::Map;
pub use pages::{HugePages, exit_when_short};
pub use peak::peak_bytes;
pub(crate) use plain::Plain;
