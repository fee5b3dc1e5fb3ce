//! What the fuzz targets have in common: inputs in several ways, a reader to compare with, and what must hold of
//! whatever is read.

#![forbid(unsafe_code)]

pub mod check;
pub mod input;
pub mod model;
