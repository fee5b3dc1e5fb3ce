//! Transversals: entries of a matrix of which no two share a row or a column.
//!
//! | module | what it finds |
//! |---|---|
//! | [`cardinality`] | one of as many entries as possible: the structural rank |
//! | [`deficiency`] | why there is none of n entries: k rows whose entries lie in fewer than k columns |
//! | [`product`] | the one of n entries with the largest product, with scalings that make all of them 1 and no entry larger |
//!
//! Entries that are stored as 0 count as absent.

mod cardinality;
mod deficiency;
mod product;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use cardinality::Matching;
pub(crate) use deficiency::Deficiency;
pub use deficiency::Shortage;
pub(crate) use product::Transversal;

/// No row, or no column.
const NONE: u32 = u32::MAX;
