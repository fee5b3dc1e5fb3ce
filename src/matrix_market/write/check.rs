//! Whether a matrix is what its file would say.

use rayon::prelude::*;

use super::super::{Field, Layout, Symmetry, header};
use super::{Unwritable, WriteOptions};
use crate::Csr;
use crate::matrix::Scalar;

/// Beyond it, not every whole number is a double.
const WHOLE: f64 = (1u64 << 53) as f64;

/// Values that a thread looks at in one go.
const CHUNK: usize = 1 << 14;

/// What can be told without a look at the entries.
pub(super) fn words(options: &WriteOptions, field: Field, rows: usize, cols: usize) -> Result<(), Unwritable> {
    let WriteOptions { layout, symmetry, precision, .. } = *options;
    let contradiction = |first, second| Err(Unwritable::Contradiction { first, second });
    match (layout, field, symmetry) {
        (Layout::Array, Field::Pattern, _) => return contradiction("array", "pattern"),
        (_, Field::Pattern, Symmetry::SkewSymmetric) => return contradiction("pattern", "skew-symmetric"),
        (_, field, Symmetry::Hermitian) if field != Field::Complex => return contradiction(field.word(), "hermitian"),
        _ => {}
    }
    if let Some(found) = precision.filter(|digits| !(1..=super::nearest::MAX_DIGITS).contains(digits)) {
        return Err(Unwritable::Precision { found });
    }
    if symmetry.mirrors() && rows != cols {
        return Err(Unwritable::NotSquare { symmetry, rows, cols });
    }
    Ok(())
}

/// Whether the field has words for every entry. O(nnz).
pub(super) fn values<T: Scalar>(a: &Csr<T>, field: Field) -> Result<(), Unwritable> {
    let whole = |v: T| v.im() == 0.0 && v.re().fract() == 0.0 && v.re().abs() < WHOLE;
    let fits = |v: T| match field {
        Field::Real => v.im() == 0.0,
        Field::Integer => whole(v),
        Field::UnsignedInteger => whole(v) && v.re().is_sign_positive(),
        Field::Complex => true,
        Field::Pattern => v == T::ONE,
    };
    if field == Field::Complex || field == Field::Real && !T::IS_COMPLEX {
        return Ok(());
    }
    match first_misfit(a, fits) {
        None => Ok(()),
        Some((row, col, value)) => {
            let (value, hint) = (spelled(value), if T::IS_COMPLEX { "complex" } else { "real" });
            Err(Unwritable::Value { row, col, value, field, hint })
        }
    }
}

/// The first entry, by rows, whose value does not fit: row and column from 1, value.
fn first_misfit<T: Scalar>(a: &Csr<T>, fits: impl Fn(T) -> bool + Sync) -> Option<(usize, usize, T)> {
    // by chunks, since a search that may end at each element is slow
    let chunks = a.values().par_chunks(CHUNK).enumerate();
    let k = chunks.find_map_first(|(c, chunk)| chunk.iter().position(|&v| !fits(v)).map(|k| c * CHUNK + k))?;
    let row = a.row_ptr().partition_point(|&start| start <= k);
    Some((row, a.col_idx()[k] as usize + 1, a.values()[k]))
}

/// Whether no entry rounds to more than a double can hold. O(nnz).
pub(super) fn rounding<T: Scalar>(a: &Csr<T>, field: Field, precision: Option<usize>) -> Result<(), Unwritable> {
    let Some(digits) = precision.filter(|_| matches!(field, Field::Real | Field::Complex)) else { return Ok(()) };
    // what is not above a power of ten rounds to no more than it
    let holds = |v: f64| v.abs() <= 1e308 || format!("{v:.*e}", digits - 1).parse().is_ok_and(f64::is_finite);
    match first_misfit(a, |v| holds(v.re()) && holds(v.im())) {
        None => Ok(()),
        Some((row, col, value)) => Err(Unwritable::Rounding { row, col, value: spelled(value), digits }),
    }
}

/// Whether the entries have the symmetry, zeros of either sign being equal. O(nnz log(longest row)).
pub(super) fn mirrored<T: Scalar>(a: &Csr<T>, symmetry: Symmetry) -> Result<(), Unwritable> {
    if !symmetry.mirrors() {
        return Ok(());
    }
    // a pair is compared once, from above the diagonal; that finds all there is to find, unless there are entries
    // below that have no mirror image, which are then too many
    let (above, diagonal) = upper(a);
    let below_too = 2 * above + diagonal != a.nnz();
    let misfit = |i: usize| {
        let (cols, values) = a.row(i);
        let from = if below_too { 0 } else { cols.partition_point(|&j| (j as usize) < i) };
        let k = (from..cols.len()).find(|&k| !fits(a, symmetry, (i, cols[k] as usize), values[k]))?;
        Some((i, cols[k] as usize, values[k]))
    };
    match (0..a.n_rows()).into_par_iter().find_map_first(misfit) {
        None => Ok(()),
        Some((i, j, value)) => Err(explain(a, symmetry, (i, j), value)),
    }
}

/// How many entries there are above the diagonal, and on it.
pub(super) fn upper<T: Scalar>(a: &Csr<T>) -> (usize, usize) {
    let of_row = |i: usize| {
        let (cols, _) = a.row(i);
        let from = cols.partition_point(|&j| (j as usize) < i);
        let diagonal = usize::from(cols.get(from).is_some_and(|&j| j as usize == i));
        (cols.len() - from - diagonal, diagonal)
    };
    (0..a.n_rows()).into_par_iter().map(of_row).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// Whether an entry and its mirror image have the symmetry.
#[inline]
fn fits<T: Scalar>(a: &Csr<T>, symmetry: Symmetry, (i, j): (usize, usize), value: T) -> bool {
    if i == j {
        match symmetry {
            Symmetry::SkewSymmetric => value == T::default(),
            Symmetry::Hermitian => value.im() == 0.0,
            _ => true,
        }
    } else {
        a.get(j, i).is_some_and(|mirror| mirror == header::mirrored(symmetry, value))
    }
}

/// What is wrong with an entry that does not fit.
fn explain<T: Scalar>(a: &Csr<T>, symmetry: Symmetry, (i, j): (usize, usize), value: T) -> Unwritable {
    let (row, col, value) = (i + 1, j + 1, spelled(value));
    if i == j {
        let must = if symmetry == Symmetry::Hermitian { "real" } else { "0" };
        return Unwritable::Diagonal { symmetry, index: row, value, must };
    }
    let mirror = a.get(j, i).map_or_else(|| "not stored".to_string(), spelled);
    Unwritable::NotMirrored { symmetry, row, col, value, mirror }
}

/// A number in messages.
pub(super) fn spelled<T: Scalar>(value: T) -> String {
    if T::IS_COMPLEX { format!("{:e}{:+e}i", value.re(), value.im()) } else { format!("{:e}", value.re()) }
}
