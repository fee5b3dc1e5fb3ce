//! L U of a tall block of columns: the part of a factorisation that devices wait for.

use std::result::Result as StdResult;

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, Par};
use rayon::prelude::*;

use super::element::Element;

/// Columns that are compared at once.
const LANES: usize = 8;
/// Elements of a column that are worth a thread.
const CHUNK: usize = 4096;
/// Multiplications and additions of a product that are worth several.
const FEW: usize = 1 << 20;

/// P A = L U in place, by halves of the columns down to single ones, so that nearly all is products. Row k changes places with row
/// `swaps[k]`, one after the other.
///
/// S. Toledo, "Locality of reference in LU decomposition with partial pivoting", SIAM J. Matrix Anal. Appl. 18 (1997), doi
/// 10.1137/S0895479896297744.
///
/// # Errors
/// The column, counted from 0, whose pivot is 0 or not finite.
pub(super) fn lu<T: Element>(mut a: MatMut<'_, T>, swaps: &mut [usize]) -> StdResult<(), usize> {
    let w = a.ncols();
    if w == 0 {
        return Ok(());
    }
    if w == 1 {
        return column(a, swaps);
    }
    let half = w / 2;
    let (mut left, mut right) = a.rb_mut().split_at_col_mut(half);
    lu(left.rb_mut(), &mut swaps[..half])?;
    swap_rows(right.rb_mut(), &swaps[..half], 0);
    let (top, below) = left.rb().split_at_row(half);
    let (mut right_top, mut right_below) = right.split_at_row_mut(half);
    solve_unit_lower_triangular_in_place(top, right_top.rb_mut(), Par::Seq);
    let work = below.nrows() * half * right_top.ncols();
    let par = if work < FEW { Par::Seq } else { Par::rayon(0) };
    matmul(right_below.rb_mut(), Accum::Add, below, right_top, T::from_f64(-1.0), par);
    lu(right_below, &mut swaps[half..]).map_err(|column| half + column)?;
    swaps[half..].iter_mut().for_each(|row| *row += half);
    swap_rows(left, &swaps[half..], half);
    Ok(())
}

/// Row first + k changes places with row `swaps[k]`.
fn swap_rows<T: Element>(mut a: MatMut<'_, T>, swaps: &[usize], first: usize) {
    for j in 0..a.ncols() {
        let mut column = a.rb_mut().col_mut(j);
        for (k, &row) in swaps.iter().enumerate() {
            let (here, there) = (column[first + k], column[row]);
            column[first + k] = there;
            column[row] = here;
        }
    }
}

/// The largest element becomes the pivot, and divides the others.
fn column<T: Element>(a: MatMut<'_, T>, swaps: &mut [usize]) -> StdResult<(), usize> {
    let Some(column) = a.col_mut(0).try_as_col_major_mut() else { unreachable!("columns are contiguous") };
    let column = column.as_slice_mut();
    let row = largest(column);
    let pivot = column[row].to_f64();
    if pivot == 0.0 || !pivot.is_finite() {
        return Err(0);
    }
    column.swap(0, row);
    swaps[0] = row;
    let inverse = T::from_f64(1.0 / pivot);
    column[1..].iter_mut().for_each(|v| *v *= inverse);
    Ok(())
}

/// The first of the elements of the largest absolute value.
fn largest<T: Element>(column: &[T]) -> usize {
    if column.len() < 2 * CHUNK {
        return largest_of(column).1;
    }
    let found = column.par_chunks(CHUNK).map(largest_of).collect::<Vec<_>>();
    let first = (0..found.len()).reduce(|best, k| if found[k].0 > found[best].0 { k } else { best }).unwrap_or(0);
    first * CHUNK + found[first].1
}

/// The largest absolute value, and the first place where it is.
fn largest_of<T: Element>(column: &[T]) -> (T, usize) {
    let size = |v: T| if v < T::default() { T::default() - v } else { v };
    let mut lanes = [T::default(); LANES];
    let groups = column.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        lanes.iter_mut().zip(group).for_each(|(most, &v)| *most = if size(v) > *most { size(v) } else { *most });
    }
    let most = lanes.iter().chain(rest).fold(T::default(), |most, &v| if size(v) > most { size(v) } else { most });
    (most, column.iter().position(|&v| size(v) == most).unwrap_or(0))
}

/// Where rows are after all swaps: to which place each comes, from which, counted from the first row, for those that move.
pub(super) fn moves(m: usize, swaps: &[usize]) -> Vec<[u32; 2]> {
    let mut from: Vec<u32> = (0..m as u32).collect();
    swaps.iter().enumerate().for_each(|(k, &row)| from.swap(k, row));
    from.iter().zip(0..).filter(|(from, to)| *from != to).map(|(&from, to)| [to, from]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first() {
        let mut long = vec![0.5; 3 * CHUNK + 5];
        (long[CHUNK + 3], long[2 * CHUNK + 9]) = (-2.0, 2.0);
        assert_eq!(largest(&long), CHUNK + 3);
        long[3 * CHUNK + 4] = 3.0;
        assert_eq!(largest(&long), 3 * CHUNK + 4);
        assert_eq!([largest(&[0.0]), largest(&[1.0, -3.0, 3.0]), largest(&[0.0, 0.0])], [0, 1, 0]);
        assert_eq!(moves(4, &[2, 1, 3]), [[0, 2], [2, 3], [3, 0]]);
    }

    #[test]
    fn by_hand() {
        // columns (1, 2, 4) and (1, 6, 0)
        let mut a = [1.0, 2.0, 4.0, 1.0, 6.0, 0.0];
        let mut swaps = [0; 2];
        lu(MatMut::from_column_major_slice_mut(&mut a, 3, 2), &mut swaps).unwrap();
        assert_eq!((swaps, a), ([2, 1], [4.0, 0.5, 0.25, 0.0, 6.0, 1.0 / 6.0]));
        let mut singular = [1.0, 2.0, 4.0, 2.0, 4.0, 8.0];
        assert_eq!(lu(MatMut::from_column_major_slice_mut(&mut singular, 3, 2), &mut swaps), Err(1));
    }
}
