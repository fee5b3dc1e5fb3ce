//! Facts about a matrix.
