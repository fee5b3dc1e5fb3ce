//! A block of columns, factorised on the host, or what is left for the host where a device did it.

use std::result::Result as StdResult;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::ldlt::factor as ldlt;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::triangular_inverse;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef, Par, Spec};

use super::element::Element;
use super::room::Room;
use super::tall;
use crate::kernels::lu_panel::HEAD;

/// The order from which on threads share a matrix.
const LEAST_FOR_THREADS: usize = 512;

/// P A = L U in place, with pivots from all of m rows, of w ≤ m columns: L without its ones below, U above. Gives the rows that moved: where
/// to, and where from. m w² flops.
///
/// # Errors
/// The column, counted from 0, whose pivot is 0 or not finite.
pub(super) fn lu<T: Element>(panel: &mut [T], Room { m, w }: Room) -> StdResult<Vec<[u32; 2]>, usize> {
    let mut panel = MatMut::from_column_major_slice_mut(panel, m, w);
    if m > w {
        let mut swaps = vec![0; w];
        tall::lu(panel, &mut swaps)?;
        return Ok(tall::moves(m, &swaps));
    }
    let (mut from, mut to) = (vec![0u32; m], vec![0u32; m]);
    let par = Par::rayon(0);
    let mut work = MemBuffer::new(lu_in_place_scratch::<u32, T>(m, w, par, Spec::default()));
    lu_in_place(panel.rb_mut(), &mut from, &mut to, par, MemStack::new(&mut work), Spec::default());
    has_pivots(panel.rb(), |pivot| pivot != 0.0)?;
    Ok(from.iter().zip(0..).filter(|(from, to)| *from != to).map(|(&from, to)| [to, from]).collect())
}

/// The rows that moved in a panel which a [device](crate::kernels::lu_panel) has factorised, by what it tells.
///
/// # Errors
/// The column, counted from 0, whose pivot is 0 or not finite.
pub(super) fn moves_told<T: Element>(told: &[T], m: usize) -> StdResult<Vec<[u32; 2]>, usize> {
    let (head, swaps) = told.split_at(HEAD);
    let failed = head[1].to_f64() as usize;
    if failed > 0 {
        return Err(failed - 1);
    }
    let swaps: Vec<usize> = swaps.iter().map(|row| row.to_f64() as usize).collect();
    Ok(tall::moves(m, &swaps))
}

/// A = L Lᵀ in place of w × w elements, with Lᵀ above the diagonal. w³ / 3 flops.
///
/// # Errors
/// The column, counted from 0, whose pivot is not positive, or not finite.
pub(super) fn cholesky<T: Element>(block: &mut [T], w: usize) -> StdResult<(), usize> {
    let mut block = MatMut::from_column_major_slice_mut(block, w, w);
    let par = if w < LEAST_FOR_THREADS { Par::Seq } else { Par::rayon(0) };
    let mut work = MemBuffer::new(llt::cholesky_in_place_scratch::<T>(w, par, Spec::default()));
    let found = llt::cholesky_in_place(
        block.rb_mut(),
        llt::LltRegularization::default(),
        par,
        MemStack::new(&mut work),
        Spec::default(),
    );
    if let Err(llt::LltError::NonPositivePivot { index }) = found {
        return Err(index);
    }
    has_pivots(block.rb(), |pivot| pivot > 0.0)?;
    for j in 1..w {
        for i in 0..j {
            block[(i, j)] = block[(j, i)];
        }
    }
    Ok(())
}

/// A = L D Lᵀ in place of w × w elements, without exchanges of rows: L without its ones below the diagonal, D Lᵀ from there on up. w³ / 3 flops.
///
/// # Errors
/// The column, counted from 0, whose pivot is not above `least` in size, or not finite.
pub(super) fn ldlt<T: Element>(block: &mut [T], w: usize, least: f64) -> StdResult<(), usize> {
    let mut block = MatMut::from_column_major_slice_mut(block, w, w);
    let mut work = MemBuffer::new(ldlt::cholesky_in_place_scratch::<T>(w, Par::Seq, Spec::default()));
    let found = ldlt::cholesky_in_place(
        block.rb_mut(),
        ldlt::LdltRegularization::default(),
        Par::Seq,
        MemStack::new(&mut work),
        Spec::default(),
    );
    let until = match found {
        Ok(_) => w,
        Err(ldlt::LdltError::ZeroPivot { index }) => index,
    };
    has_pivots(block.rb().submatrix(0, 0, until, until), |pivot| pivot.abs() > least)?;
    if until < w {
        return Err(until);
    }
    for j in 1..w {
        for i in 0..j {
            block[(i, j)] = block[(i, i)] * block[(j, i)];
        }
    }
    Ok(())
}

/// Whether all pivots are finite, and good; or the first column whose pivot is not.
fn has_pivots<T: Element>(panel: MatRef<'_, T>, is_good: impl Fn(f64) -> bool) -> StdResult<(), usize> {
    let is_pivot = |k: &usize| {
        let pivot = panel[(*k, *k)].to_f64();
        pivot.is_finite() && is_good(pivot)
    };
    (0..panel.ncols().min(panel.nrows())).find(|k| !is_pivot(k)).map_or(Ok(()), Err)
}

/// L⁻¹ and U⁻¹, or L⁻¹ and L⁻ᵀ, of the factors of the diagonal block, to their places; the diagonal of L is that of ones if it `is_unit`.
/// 2 w³ / 3 flops.
pub(super) fn inverses<T: Element>(head: &mut [T], room: Room, is_unit: bool) {
    let w = room.w;
    let (before, rest) = head.split_at_mut(room.lower().start);
    let block = MatRef::from_column_major_slice(&before[room.block()], w, w);
    let (lower, upper) = rest[..2 * w * w].split_at_mut(w * w);
    let [mut lower, mut upper] = [lower, upper].map(|to| {
        to.fill(T::default());
        MatMut::from_column_major_slice_mut(to, w, w)
    });
    if is_unit {
        triangular_inverse::invert_unit_lower_triangular(lower.rb_mut(), block, Par::Seq);
        (0..w).for_each(|k| lower[(k, k)] = T::from_f64(1.0));
    } else {
        triangular_inverse::invert_lower_triangular(lower.rb_mut(), block, Par::Seq);
    }
    triangular_inverse::invert_upper_triangular(upper.rb_mut(), block, Par::Seq);
}
