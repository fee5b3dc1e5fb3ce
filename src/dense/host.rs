//! Factors on the host's threads, by the crate `faer`.

use std::result::Result as StdResult;

use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::lblt::{factor as ldlt, solve as ldlt_solve};
use faer::linalg::triangular_solve as triangles;
use faer::perm::PermRef;
use faer::prelude::ReborrowMut;
use faer::{Conj, MatMut, MatRef, Par, Spec};

use super::butterfly::Butterflies;
use super::element::Element;
use super::factor::Kind;
use super::panel;
use super::room::Room;

/// Factors in the place of the matrix.
#[derive(Debug)]
pub(super) struct Host<T> {
    n: usize,
    kind: Kind,
    values: Vec<T>,
    /// Which row of A is row i of L, and where each row went.
    rows: Vec<usize>,
    places: Vec<usize>,
    /// Below the diagonal of D.
    below: Vec<T>,
    /// Where the factors are those that devices have of Uᵀ A U: L and D Lᵀ.
    butterflies: Option<Butterflies<T>>,
}

impl<T: Element> Host<T> {
    /// Factorises a matrix in place.
    ///
    /// # Errors
    /// The column, counted from 0, that has no pivot.
    pub(super) fn new(n: usize, mut values: Vec<T>, kind: Kind) -> StdResult<Self, usize> {
        let (mut rows, mut places): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
        let mut below = Vec::new();
        match kind {
            Kind::Lu => {
                let moves = panel::lu(&mut values, Room { m: n, w: n })?;
                moves.iter().for_each(|&[to, from]| rows[to as usize] = from as usize);
                rows.iter().enumerate().for_each(|(place, &row)| places[row] = place);
            }
            Kind::Cholesky => {
                panel::cholesky(&mut values, n)?;
            }
            Kind::Ldlt => {
                below = vec![T::default(); n];
                bunch_kaufman(&mut values, &mut below, &mut rows, &mut places)?;
            }
        }
        Ok(Self { n, kind, values, rows, places, below, butterflies: None })
    }

    /// L and U, or L and Lᵀ, with the row of A that is each of L; or L and D Lᵀ with butterflies.
    pub(super) fn of_factors(
        n: usize,
        values: Vec<T>,
        kind: Kind,
        rows: Vec<usize>,
        butterflies: Option<Butterflies<T>>,
    ) -> Self {
        let mut places = vec![0; n];
        rows.iter().enumerate().for_each(|(place, &row)| places[row] = place);
        Self { n, kind, values, rows, places, below: Vec::new(), butterflies }
    }

    /// The elements of the factors.
    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// The column of A, counted from 0, with the smallest pivot, and its size, or that of both of a block of order 2; none of a matrix that was
    /// transformed, whose columns are not those of A.
    pub(super) fn least_pivot(&self) -> Option<(usize, f64)> {
        if self.butterflies.is_some() {
            return None;
        }
        let diagonal = |k: usize| self.values[k + k * self.n].to_f64();
        let below = |k: usize| self.below.get(k).map_or(0.0, |below| below.to_f64());
        let size = |k: usize| match self.kind {
            Kind::Lu => diagonal(k).abs(),
            Kind::Cholesky => diagonal(k) * diagonal(k),
            // of a block of order 2, |det D| / ‖D‖∞
            Kind::Ldlt => {
                let first = if k > 0 && below(k - 1) != 0.0 { k - 1 } else { k };
                let beside = below(first);
                if beside == 0.0 {
                    return diagonal(k).abs();
                }
                let [a, b] = [diagonal(first), diagonal(first + 1)];
                (a * b - beside * beside).abs() / (a.abs().max(b.abs()) + beside.abs())
            }
        };
        let column = |k: usize| if self.kind == Kind::Ldlt { self.rows[k] } else { k };
        (0..self.n).map(|k| (column(k), size(k))).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// x = A⁻¹ b in place, column by column.
    pub(super) fn solve(&self, x: &mut [T]) {
        let n = self.n;
        let columns = x.len() / n.max(1);
        let factors = MatRef::from_column_major_slice(&self.values, n, n);
        let par = Par::rayon(0);
        if self.kind == Kind::Lu {
            let mut y = vec![T::default(); n];
            for x in x.chunks_exact_mut(n) {
                y.iter_mut().zip(&self.rows).for_each(|(y, &row)| *y = x[row]);
                x.copy_from_slice(&y);
            }
        }
        if let Some(butterflies) = &self.butterflies {
            x.chunks_exact_mut(n).for_each(|x| butterflies.down(x));
        }
        let mut of_x = MatMut::from_column_major_slice_mut(x, n, columns);
        match self.kind {
            Kind::Ldlt if self.butterflies.is_none() => return self.solve_by_blocks(of_x),
            Kind::Lu | Kind::Ldlt => triangles::solve_unit_lower_triangular_in_place(factors, of_x.rb_mut(), par),
            Kind::Cholesky => triangles::solve_lower_triangular_in_place(factors, of_x.rb_mut(), par),
        }
        triangles::solve_upper_triangular_in_place(factors, of_x, par);
        if let Some(butterflies) = &self.butterflies {
            x.chunks_exact_mut(n).for_each(|x| butterflies.up(x));
        }
    }

    fn solve_by_blocks(&self, x: MatMut<'_, T>) {
        let (n, columns, par) = (self.n, x.ncols(), Par::rayon(0));
        let factors = MatRef::from_column_major_slice(&self.values, n, n);
        let mut work = MemBuffer::new(ldlt_solve::solve_in_place_scratch::<usize, T>(n, columns, par));
        ldlt_solve::solve_in_place_with_conj(
            factors,
            factors.diagonal(),
            DiagRef::from_slice(&self.below),
            Conj::No,
            PermRef::new_checked(&self.rows, &self.places, n),
            x,
            par,
            MemStack::new(&mut work),
        );
    }

    /// x = A⁻ᵀ b in place, of one column.
    pub(super) fn solve_transposed(&self, x: &mut [T]) {
        if self.kind != Kind::Lu {
            return self.solve(x);
        }
        let (n, par) = (self.n, Par::rayon(0));
        let factors = MatRef::from_column_major_slice(&self.values, n, n).transpose();
        let mut y = x.to_vec();
        let mut column = MatMut::from_column_major_slice_mut(&mut y, n, 1);
        triangles::solve_lower_triangular_in_place(factors, column.rb_mut(), par);
        triangles::solve_unit_upper_triangular_in_place(factors, column, par);
        self.rows.iter().zip(&y).for_each(|(&row, &y)| x[row] = y);
    }
}

fn bunch_kaufman<T: Element>(
    values: &mut [T],
    below: &mut [T],
    rows: &mut [usize],
    places: &mut [usize],
) -> StdResult<(), usize> {
    let (n, par) = (below.len(), Par::rayon(0));
    let mut work = MemBuffer::new(ldlt::cholesky_in_place_scratch::<usize, T>(n, par, Spec::default()));
    let mut matrix = MatMut::from_column_major_slice_mut(values, n, n);
    ldlt::cholesky_in_place(
        matrix.rb_mut(),
        DiagMut::from_slice_mut(below),
        rows,
        places,
        par,
        MemStack::new(&mut work),
        Spec::default(),
    );
    let mut k = 0;
    while k < n {
        let pivot = matrix[(k, k)].to_f64();
        let off = below[k].to_f64();
        let (determinant, width) = match off {
            0.0 => (pivot, 1),
            _ => (pivot * matrix[(k + 1, k + 1)].to_f64() - off * off, 2),
        };
        if determinant == 0.0 || !determinant.is_finite() {
            return Err(rows[k]);
        }
        k += width;
    }
    Ok(())
}
