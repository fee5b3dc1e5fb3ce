//! L U factors of a banded matrix.

use super::band::Band;
use super::size;
use crate::real::Real;

/// P A = L U of a [`Band`]: U has lower + upper diagonals above the main one, L has `lower` below it.
#[derive(Debug, Clone, PartialEq)]
pub struct BandFactor<T> {
    n: usize,
    lower: usize,
    /// Diagonals of U.
    width: usize,
    /// Row k of U from its diagonal on.
    u: Vec<T>,
    /// 1 / the diagonal of U.
    inverse: Vec<T>,
    /// Column k of L below its diagonal.
    l: Vec<T>,
    /// How far below row k its pivot was.
    exchanges: Vec<u32>,
    replaced: Vec<u32>,
}

impl<T: Real> BandFactor<T> {
    /// Factorises. Where all that is left of a column is 0, or not above `least` in size, that takes the place of the pivot; if there is no
    /// `least`, the number of the column is the error.
    pub(crate) fn new(band: &Band<T>, least: Option<T>) -> Result<Self, usize> {
        let Band { n, lower, upper, .. } = *band;
        let width = lower + upper + 1;
        // the rows that a column reaches, each from that column on
        let mut window = vec![vec![T::default(); width]; lower + 1];
        let load = |to: &mut Vec<T>, i: usize, column: usize| {
            for (k, to) in to.iter_mut().enumerate() {
                *to = band.get(i, column + k);
            }
        };
        for (i, row) in window.iter_mut().enumerate().take(n) {
            load(row, i, 0);
        }
        let mut all = Self {
            n,
            lower,
            width,
            u: vec![T::default(); n * width],
            inverse: vec![T::default(); n],
            l: vec![T::default(); n * lower],
            exchanges: vec![0; n],
            replaced: Vec::new(),
        };
        for k in 0..n {
            let below = lower.min(n - 1 - k);
            let mut pivot = 0;
            for i in 1..=below {
                if size(window[i][0]) > size(window[pivot][0]) {
                    pivot = i;
                }
            }
            window.swap(0, pivot);
            all.exchanges[k] = pivot as u32;
            let (first, others) = window.split_at_mut(1);
            let first = &mut first[0];
            let floor = least.map_or(0.0, size);
            if size(first[0]) <= floor || !first[0].to_f64().is_finite() {
                let Some(least) = least else { return Err(k) };
                first[0] = if first[0].to_f64() < 0.0 { -least } else { least };
                all.replaced.push(k as u32);
            }
            let inverse = T::from_f64(1.0) / first[0];
            all.inverse[k] = inverse;
            all.u[k * width..(k + 1) * width].copy_from_slice(first);
            for (i, row) in others.iter_mut().enumerate().take(below) {
                let factor = row[0] * inverse;
                all.l[k * lower + i] = factor;
                for j in 1..width {
                    row[j - 1] = row[j] - factor * first[j];
                }
                row[width - 1] = T::default();
            }
            // the next row comes in
            window.rotate_left(1);
            if k + 1 + lower < n {
                load(&mut window[lower], k + 1 + lower, k + 1);
            }
        }
        Ok(all)
    }

    /// Columns whose pivot was replaced.
    pub(crate) fn replaced(&self) -> &[u32] {
        &self.replaced
    }

    /// Solves `A x = b` from and to `x`: n (2 lower + upper) multiplications and as many additions.
    ///
    /// # Panics
    /// If `x` has another length.
    pub fn solve(&self, x: &mut [T]) {
        let Self { n, lower, width, .. } = *self;
        assert_eq!(x.len(), n, "elements of x");
        for k in 0..n {
            x.swap(k, k + self.exchanges[k] as usize);
            let value = x[k];
            for (x, l) in x[k + 1..].iter_mut().zip(&self.l[k * lower..(k + 1) * lower]) {
                *x -= *l * value;
            }
        }
        for k in (0..n).rev() {
            let row = &self.u[k * width + 1..(k + 1) * width];
            let sum = row.iter().zip(&x[k + 1..]).fold(x[k], |sum, (u, x)| sum - *u * *x);
            x[k] = sum * self.inverse[k];
        }
    }
}
