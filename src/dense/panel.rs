//! A block of columns, factorised on the host.

use std::result::Result as StdResult;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::{triangular_inverse, triangular_solve};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef, Par, Spec};

use super::element::Element;
use super::tall;

/// How a panel is factorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pivots {
    /// P A = L U with pivots from all rows of the panel.
    Partial,
    /// A = L Lᵀ.
    Definite,
}

/// Factorises a panel of m rows and w ≤ m columns in place, of which the first w rows are the diagonal block: with [`Pivots::Partial`] L
/// without its ones below and U above the diagonal; with [`Pivots::Definite`] L, and above the diagonal Lᵀ. Gives the rows that moved: where
/// to, and where from. m w² flops, or half of them.
///
/// # Errors
/// The column, counted from 0, that has no pivot: 0, not positive, or not finite.
pub(super) fn factorise<T: Element>(
    panel: &mut [T],
    [m, w]: [usize; 2],
    pivots: Pivots,
) -> StdResult<Vec<[u32; 2]>, usize> {
    match pivots {
        Pivots::Partial => lu(MatMut::from_column_major_slice_mut(panel, m, w)),
        Pivots::Definite => {
            cholesky(MatMut::from_column_major_slice_mut(panel, m, w))?;
            Ok(Vec::new())
        }
    }
}

fn lu<T: Element>(mut panel: MatMut<'_, T>) -> StdResult<Vec<[u32; 2]>, usize> {
    let (m, w) = (panel.nrows(), panel.ncols());
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

fn cholesky<T: Element>(panel: MatMut<'_, T>) -> StdResult<(), usize> {
    let (w, par) = (panel.ncols(), Par::rayon(0));
    let (mut top, below) = panel.split_at_row_mut(w);
    let mut work = MemBuffer::new(llt::cholesky_in_place_scratch::<T>(w, par, Spec::default()));
    let found = llt::cholesky_in_place(
        top.rb_mut(),
        llt::LltRegularization::default(),
        par,
        MemStack::new(&mut work),
        Spec::default(),
    );
    if let Err(llt::LltError::NonPositivePivot { index }) = found {
        return Err(index);
    }
    has_pivots(top.rb(), |pivot| pivot > 0.0)?;
    triangular_solve::solve_lower_triangular_in_place(top.rb(), below.transpose_mut(), par);
    for j in 1..w {
        for i in 0..j {
            top[(i, j)] = top[(j, i)];
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

/// L⁻¹ and U⁻¹, or L⁻¹ and L⁻ᵀ, of the diagonal block of a factorised panel, into w² elements each. 2 w³ / 3 flops.
pub(super) fn inverses<T: Element>(panel: &[T], [m, w]: [usize; 2], pivots: Pivots, lower: &mut [T], upper: &mut [T]) {
    let block = MatRef::from_column_major_slice(panel, m, w).subrows(0, w);
    let [mut lower, mut upper] = [lower, upper].map(|to| {
        to.fill(T::default());
        MatMut::from_column_major_slice_mut(to, w, w)
    });
    match pivots {
        Pivots::Partial => triangular_inverse::invert_unit_lower_triangular(lower.rb_mut(), block, Par::Seq),
        Pivots::Definite => triangular_inverse::invert_lower_triangular(lower.rb_mut(), block, Par::Seq),
    }
    triangular_inverse::invert_upper_triangular(upper.rb_mut(), block, Par::Seq);
    if pivots == Pivots::Partial {
        (0..w).for_each(|k| lower[(k, k)] = T::from_f64(1.0));
    }
}
