//! Transversals: entries of a matrix of which no two share a row or a column.
//!
//! | module | what it finds |
//! |---|---|
//! | [`cardinality`] | one of as many entries as possible: the structural rank |
//! | [`deficiency`] | why there is none of n entries: k rows whose entries lie in fewer than k columns |
//! | [`equilibration`] | a system permuted and scaled by that |
//! | [`product`] | the one of n entries with the largest product, with scalings that make all of them 1 and no entry larger |
//!
//! Entries that are stored as 0 count as absent.

mod cardinality;
mod deficiency;
mod equilibration;
mod product;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use cardinality::Matching;
pub(crate) use deficiency::Deficiency;
pub use deficiency::Shortage;
pub use equilibration::Equilibrated;
pub(crate) use equilibration::Equilibration;
pub(crate) use product::Transversal;

use super::{Complex64, Csr, Scalar};

/// Why a complex matrix is singular whatever the values of its entries, if it is: O(√n nnz) at worst.
pub(crate) fn shortage(a: &Csr<Complex64>) -> Option<Shortage> {
    let moduli = a.values().iter().map(|v| v.modulus()).collect();
    let a = Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), moduli).ok()?;
    Shortage::of(&a)
}

/// No row, or no column.
const NONE: u32 = u32::MAX;
