//! Matrices from and to other crates' types.
//!
//! | type | to [`Csr`] | from it |
//! |---|---|---|
//! | arrays of compressed rows | [`Csr::new`], [`Csr::from_owner`], [`Csr::from_slices`] | [`Csr::into_raw_parts`] |
//! | triplets | [`Csr::from_triplets`] | [`Csr::to_triplets`] |
//! | [`sprs::CsMatI`], by rows or by columns, any index types | `try_from` | `from`, indices `u32` or `usize` |
//! | [`sprs::CsMatViewI`], the same | `try_from`, a copy | `from` a borrowed one: a view, indices `u32` and `usize` |
//! | [`sprs::TriMatI`], any index type | `try_from` | `from`, indices `u32` or `usize` |
//! | [`matrix_market_rs::MtxData`] | `try_from` | `from`, [`to_mtx_sparse`], [`to_mtx_dense`] |
//!
//! All of them for real and for complex numbers. What a `Csr` can't hold (an index beyond 32 bits, an infinite value,
//! arrays whose lengths disagree) is an [`Error`]; nothing here panics. Triplets that share a place are added in the
//! order given. Each conversion is O(nnz), but for sorting rows that are not sorted.
//!
//! ```
//! use declive::Csr;
//!
//! # fn main() -> declive::Result<()> {
//! // assembled with sprs, solved here, handed back
//! let mut triplets = sprs::TriMat::new((2, 2));
//! triplets.add_triplet(0, 0, 3.0);
//! triplets.add_triplet(1, 1, 2.0);
//! triplets.add_triplet(0, 0, 1.0);
//! let a = Csr::try_from(triplets)?;
//! assert_eq!(a.diagonal(), [4.0, 2.0]);
//!
//! let by_columns: sprs::CsMat<f64> = sprs::CsMat::from(a.clone()).into_csc();
//! assert_eq!(Csr::try_from(by_columns)?, a);
//!
//! // raw arrays: no copy in either direction
//! let (rows, cols, row_ptr, col_idx, values) = a.into_raw_parts();
//! let a = Csr::new(rows, cols, row_ptr, col_idx, values)?;
//! # assert_eq!(a.nnz(), 2);
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;

use matrix_market_rs::{MtxData, SymInfo};
use num_traits::Num;
use rayon::prelude::*;
use sprs::{CsMatI, CsMatViewI, SpIndex, TriMatI};

use super::{Csr, Scalar};
use crate::error::{Error, Result};
use crate::memory::{NoMemory, zeros};

/// A foreign index as one of ours.
fn index(i: impl SpIndex) -> Result<u32> {
    i.try_index()
        .and_then(|i| u32::try_from(i).ok())
        .ok_or_else(|| Error::InvalidCsr(format!("index {i:?} is not within 32 bits")))
}

fn indices<I: SpIndex>(from: &[I]) -> Result<Vec<u32>> {
    from.par_iter().map(|&i| index(i)).collect()
}

/// Takes compressed rows or columns; columns are turned into rows. Duplicates are impossible by sprs's own rules.
impl<T: Scalar, I: SpIndex, P: SpIndex> TryFrom<CsMatI<T, I, P>> for Csr<T> {
    type Error = Error;

    fn try_from(a: CsMatI<T, I, P>) -> Result<Self> {
        let a = if a.is_csr() { a } else { a.into_csr() };
        let (n_rows, n_cols) = a.shape();
        let col_idx = indices(a.indices())?;
        let row_ptr = a.proper_indptr().iter().map(|p| p.index()).collect();
        Self::new(n_rows, n_cols, row_ptr, col_idx, a.into_raw_storage().2)
    }
}

/// Copies compressed rows or columns that are borrowed; columns are turned into rows.
impl<T: Scalar, I: SpIndex, P: SpIndex> TryFrom<CsMatViewI<'_, T, I, P>> for Csr<T> {
    type Error = Error;

    fn try_from(a: CsMatViewI<'_, T, I, P>) -> Result<Self> {
        if !a.is_csr() {
            return a.to_csr().try_into();
        }
        let (n_rows, n_cols) = a.shape();
        let row_ptr = a.proper_indptr().iter().map(|p| p.index()).collect();
        Self::new(n_rows, n_cols, row_ptr, indices(a.indices())?, a.data().to_vec())
    }
}

/// A view of the compressed rows, which are checked once more, but not copied.
impl<'a, T: Scalar> From<&'a Csr<T>> for CsMatViewI<'a, T, u32, usize> {
    fn from(a: &'a Csr<T>) -> Self {
        Self::new((a.n_rows(), a.n_cols()), a.row_ptr(), a.col_idx(), a.values())
    }
}

/// Gives compressed rows without copying them.
impl<T: Scalar> From<Csr<T>> for CsMatI<T, u32, usize> {
    fn from(a: Csr<T>) -> Self {
        let (n_rows, n_cols, row_ptr, col_idx, values) = a.into_raw_parts();
        Self::new((n_rows, n_cols), row_ptr, col_idx, values)
    }
}

/// Gives compressed rows with sprs's default type of indices.
impl<T: Scalar> From<Csr<T>> for CsMatI<T, usize, usize> {
    fn from(a: Csr<T>) -> Self {
        let (n_rows, n_cols, row_ptr, col_idx, values) = a.into_raw_parts();
        Self::new((n_rows, n_cols), row_ptr, col_idx.par_iter().map(|&j| j as usize).collect(), values)
    }
}

/// Takes triplets; those that share a place are added in the order given.
impl<T: Scalar, I: SpIndex> TryFrom<TriMatI<T, I>> for Csr<T> {
    type Error = Error;

    fn try_from(a: TriMatI<T, I>) -> Result<Self> {
        Self::from_triplets(a.rows(), a.cols(), &indices(a.row_inds())?, &indices(a.col_inds())?, a.data())
    }
}

/// Gives the entries row by row.
impl<T: Scalar> From<Csr<T>> for TriMatI<T, u32> {
    fn from(a: Csr<T>) -> Self {
        let (rows, cols, values) = a.to_triplets();
        Self::from_triplets((a.n_rows(), a.n_cols()), rows, cols, values)
    }
}

/// Gives the entries row by row, with sprs's default type of indices.
impl<T: Scalar> From<Csr<T>> for TriMatI<T, usize> {
    fn from(a: Csr<T>) -> Self {
        let (rows, cols, values) = a.to_triplets();
        let wide = |indices: Vec<u32>| indices.into_par_iter().map(|i| i as usize).collect();
        Self::from_triplets((a.n_rows(), a.n_cols()), wide(rows), wide(cols), values)
    }
}

/// Takes what the `matrix-market-rs` crate read: sparse data with duplicates added, dense data in full, zeros included.
/// Of a symmetric matrix, sparse data have each pair of entries once, in either triangle, and dense data the lower
/// triangle column by column, as files do.
impl<T: Scalar + Num> TryFrom<MtxData<T>> for Csr<T> {
    type Error = Error;

    fn try_from(data: MtxData<T>) -> Result<Self> {
        let (rows, cols, values, shape, symmetry) = match data {
            MtxData::Sparse(shape, places, values, symmetry) => {
                if places.len() != values.len() {
                    let what = format!("{} places, but {} values", places.len(), values.len());
                    return Err(Error::InvalidCsr(what));
                }
                let part = |k: usize| places.par_iter().map(|place| index(place[k])).collect::<Result<Vec<u32>>>();
                (part(0)?, part(1)?, values, shape, symmetry)
            }
            MtxData::Dense(shape, values, symmetry) => {
                let (rows, cols) = dense_places(shape, symmetry, values.len())?;
                (rows, cols, values, shape, symmetry)
            }
        };
        match symmetry {
            SymInfo::General => Self::from_triplets(shape[0], shape[1], &rows, &cols, &values),
            SymInfo::Symmetric => from_one_triangle(shape, rows, cols, values),
        }
    }
}

/// Rows and columns of the elements of dense data.
fn dense_places([n_rows, n_cols]: [usize; 2], symmetry: SymInfo, found: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let (count, what) = match symmetry {
        SymInfo::General => (n_rows.checked_mul(n_cols), "array"),
        SymInfo::Symmetric => {
            (n_rows.checked_add(1).and_then(|n| n.checked_mul(n_cols)).map(|n| n / 2), "lower triangle")
        }
    };
    if count != Some(found) {
        return Err(Error::InvalidCsr(format!(
            "{found} values do not make the {what} of a {n_rows} × {n_cols} matrix"
        )));
    }
    // in range: whoever has both, has no more rows and columns than values in memory
    let (n_rows, n_cols) = if found == 0 { (0, 0) } else { (index(n_rows)?, index(n_cols)?) };
    let first = |j| if symmetry == SymInfo::Symmetric { j } else { 0 };
    Ok((0..n_cols).flat_map(|j| (first(j)..n_rows).map(move |i| (i, j))).unzip())
}

/// The symmetric matrix of which `rows`, `cols` and `values` hold each pair of entries once.
fn from_one_triangle<T: Scalar>(
    [n_rows, n_cols]: [usize; 2],
    mut rows: Vec<u32>,
    mut cols: Vec<u32>,
    mut values: Vec<T>,
) -> Result<Csr<T>> {
    if n_rows != n_cols {
        return Err(Error::InvalidCsr(format!("a symmetric matrix can't be {n_rows} × {n_cols}")));
    }
    let in_both = rows.iter().zip(&cols).any(|(i, j)| i < j) && rows.iter().zip(&cols).any(|(i, j)| i > j);
    if in_both && let Some((i, j)) = first_in_both_triangles(&rows, &cols) {
        let what = format!("a symmetric matrix has an entry at ({i}, {j}), and another one at ({j}, {i}); give one");
        return Err(Error::InvalidCsr(what));
    }
    for k in 0..values.len() {
        if rows[k] != cols[k] {
            rows.push(cols[k]);
            cols.push(rows[k]);
            values.push(values[k]);
        }
    }
    Csr::from_triplets(n_rows, n_cols, &rows, &cols, &values)
}

/// The first place whose mirror image comes before it.
fn first_in_both_triangles(rows: &[u32], cols: &[u32]) -> Option<(u32, u32)> {
    let mut is_above = HashMap::new();
    let places = || rows.iter().copied().zip(cols.iter().copied());
    places().find(|&(i, j)| i != j && *is_above.entry((i.min(j), i.max(j))).or_insert(i < j) != (i < j))
}

/// Gives all entries, row by row, as sparse data.
impl<T: Scalar + Num> From<Csr<T>> for MtxData<T> {
    fn from(a: Csr<T>) -> Self {
        let (shape, places) = ([a.n_rows(), a.n_cols()], places(&a, |_, _| true));
        let (.., values) = a.into_raw_parts();
        Self::Sparse(shape, places, values, SymInfo::General)
    }
}

/// The entries of `a` as sparse data of `matrix-market-rs`, of a symmetric matrix those on and below the diagonal.
///
/// ```
/// use declive::matrix::interchange::to_mtx_sparse;
/// use matrix_market_rs::{MtxData, SymInfo};
///
/// # fn main() -> declive::Result<()> {
/// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![4.0, 0.1, 0.1])?;
/// let data = to_mtx_sparse(&a, SymInfo::Symmetric)?;
/// assert_eq!(data, MtxData::Sparse([2, 2], vec![[0, 0], [1, 0]], vec![4.0, 0.1], SymInfo::Symmetric));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::InvalidCsr`] if `a` should be symmetric and is not exactly so.
pub fn to_mtx_sparse<T: Scalar + Num>(a: &Csr<T>, symmetry: SymInfo) -> Result<MtxData<T>> {
    check(a, symmetry)?;
    let takes = |i: usize, j: usize| symmetry == SymInfo::General || i >= j;
    let places = places(a, takes);
    let values = entries(a).filter(|&(i, j, _)| takes(i, j)).map(|(.., value)| value).collect();
    Ok(MtxData::Sparse([a.n_rows(), a.n_cols()], places, values, symmetry))
}

/// All elements of `a` as dense data of `matrix-market-rs`, column by column, of a symmetric matrix those on and below
/// the diagonal. It takes n_rows · n_cols elements of memory.
///
/// ```
/// use declive::matrix::interchange::to_mtx_dense;
/// use matrix_market_rs::{MtxData, SymInfo};
///
/// # fn main() -> declive::Result<()> {
/// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![4.0, 0.1, 0.1])?;
/// assert_eq!(
///     to_mtx_dense(&a, SymInfo::General)?,
///     MtxData::Dense([2, 2], vec![4.0, 0.1, 0.1, 0.0], SymInfo::General)
/// );
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::InvalidCsr`] if `a` should be symmetric and is not exactly so;
/// [`Error::OutOfMemory`].
pub fn to_mtx_dense<T: Scalar + Num>(a: &Csr<T>, symmetry: SymInfo) -> Result<MtxData<T>> {
    check(a, symmetry)?;
    let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
    // where column j would begin if it began with row 0, and the end
    let column = |j: usize| match symmetry {
        SymInfo::General => j * n_rows,
        SymInfo::Symmetric => j * n_rows - (j * (j + 1)) / 2,
    };
    let len = match symmetry {
        SymInfo::General => n_rows as u128 * n_cols as u128,
        SymInfo::Symmetric => n_rows as u128 * (n_rows as u128 + 1) / 2,
    };
    let room = usize::try_from(len).map_err(|_| NoMemory(u64::MAX)).and_then(zeros);
    let mut values = room.map_err(|e| e.into_error(&format!("a dense matrix of {n_rows} × {n_cols}")))?;
    for (i, j, value) in entries(a).filter(|&(i, j, _)| symmetry == SymInfo::General || i >= j) {
        values[column(j) + i] = value;
    }
    Ok(MtxData::Dense([n_rows, n_cols], values, symmetry))
}

/// The entries, row by row.
fn entries<T: Scalar>(a: &Csr<T>) -> impl Iterator<Item = (usize, usize, T)> {
    (0..a.n_rows()).flat_map(|i| {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).map(move |(&j, &value)| (i, j as usize, value))
    })
}

/// The places of those entries that `takes` takes.
fn places<T: Scalar>(a: &Csr<T>, takes: impl Fn(usize, usize) -> bool) -> Vec<[usize; 2]> {
    entries(a).filter(|&(i, j, _)| takes(i, j)).map(|(i, j, _)| [i, j]).collect()
}

/// Whether `a` is symmetric, if it should be.
fn check<T: Scalar>(a: &Csr<T>, symmetry: SymInfo) -> Result<()> {
    if symmetry == SymInfo::General {
        return Ok(());
    }
    if a.n_rows() != a.n_cols() {
        return Err(Error::InvalidCsr(format!("a symmetric matrix can't be {} × {}", a.n_rows(), a.n_cols())));
    }
    match entries(a).find(|&(i, j, value)| a.get(j, i) != Some(value)) {
        None => Ok(()),
        Some((i, j, _)) => {
            let what = format!("the matrix is not symmetric: the entries at ({i}, {j}) and ({j}, {i}) differ");
            Err(Error::InvalidCsr(what))
        }
    }
}
