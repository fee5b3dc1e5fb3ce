//! The matrix of the coarsest level: its factor L of L Lᵀ, or its inverse if it is not symmetric.

use rayon::prelude::*;

use super::sparse::Sparse;

/// A pivot of less than this part of the diagonal is 0 but for rounding: the matrix is singular, and its row is left out.
const TINY: f64 = 1e-6;

/// The matrix, as it is solved with.
#[derive(Debug)]
pub(super) struct Dense {
    n: usize,
    by: By,
}

/// What it is solved by.
#[derive(Debug)]
enum By {
    /// L by rows, whose diagonal has the reciprocals of pivots; 0 where a row is left out.
    Factor(Vec<f64>),
    /// A⁻¹ by rows, with 0 in rows and columns that are left out.
    Inverse(Vec<f32>),
}

impl Dense {
    /// Factors a symmetric matrix whose diagonal is 1.
    pub(super) fn of(a: &Sparse) -> Self {
        let (n, rows) = (a.n_rows(), a.rows());
        let mut factor = vec![0f64; n * n];
        for i in 0..n {
            let (before, rest) = factor.split_at_mut(i * n);
            let own = &mut rest[..=i];
            rows.row(i).filter(|&(j, _)| j <= i).for_each(|(j, v)| own[j] = f64::from(v));
            for j in 0..i {
                let other = &before[j * n..j * n + j + 1];
                own[j] = (own[j] - dot(&own[..j], &other[..j])) * other[j];
            }
            let pivot = own[i] - dot(&own[..i], &own[..i]);
            if pivot > TINY {
                own[i] = pivot.sqrt().recip();
            } else {
                own.fill(0.0);
            }
        }
        Self { n, by: By::Factor(factor) }
    }

    /// Inverts a matrix whose diagonal is 1, by elimination down the diagonal (Gauß and Jordan): those of levels need no other pivots.
    pub(super) fn inverted(a: &Sparse) -> Self {
        let (n, rows) = (a.n_rows(), a.rows());
        let mut all = vec![0f64; n * n];
        for (i, to) in all.chunks_mut(n.max(1)).enumerate() {
            rows.row(i).for_each(|(j, v)| to[j] = f64::from(v));
        }
        for k in 0..n {
            let (before, rest) = all.split_at_mut(k * n);
            let (own, behind) = rest.split_at_mut(n);
            let pivot = std::mem::replace(&mut own[k], 1.0);
            let factor = if pivot.abs() > TINY { pivot.recip() } else { 0.0 };
            own.iter_mut().for_each(|v| *v *= factor);
            before.par_chunks_mut(n).chain(behind.par_chunks_mut(n)).for_each(|row| {
                let of_row = std::mem::replace(&mut row[k], 0.0);
                if factor != 0.0 {
                    row.iter_mut().zip(&*own).for_each(|(v, w)| *v -= of_row * w);
                }
            });
        }
        Self { n, by: By::Inverse(all.into_iter().map(|v| v as f32).collect()) }
    }

    /// Rows of the matrix.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// A⁻¹, with 0 in rows and columns that are left out.
    pub(super) fn inverse(&self) -> Vec<f32> {
        let n = self.n;
        if let By::Inverse(all) = &self.by {
            return all.clone();
        }
        let mut all = vec![0f32; n * n];
        all.par_chunks_mut(n.max(1)).enumerate().for_each(|(i, row)| {
            let mut unit = vec![0f32; n];
            unit[i] = 1.0;
            self.solve(&unit, row);
        });
        all
    }

    /// x = A⁻¹ b, with 0 in rows that are left out.
    pub(super) fn solve(&self, b: &[f32], x: &mut [f32]) {
        let n = self.n;
        let factor = match &self.by {
            By::Factor(factor) => factor,
            By::Inverse(all) => {
                let times = |row: &[f32]| row.iter().zip(b).map(|(v, b)| f64::from(*v) * f64::from(*b)).sum::<f64>();
                return x.iter_mut().zip(all.chunks(n)).for_each(|(x, row)| *x = times(row) as f32);
            }
        };
        let mut y = vec![0f64; n];
        for i in 0..n {
            let row = &factor[i * n..=i * n + i];
            y[i] = (f64::from(b[i]) - dot(&row[..i], &y[..i])) * row[i];
        }
        for i in (0..n).rev() {
            let row = &factor[i * n..=i * n + i];
            let value = y[i] * row[i];
            y[i] = value;
            y[..i].iter_mut().zip(row).for_each(|(y, l)| *y -= l * value);
        }
        x.iter_mut().zip(y).for_each(|(x, y)| *x = y as f32);
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<4>(), y.as_chunks::<4>());
    let mut sums = [0f64; 4];
    for (x, y) in x.iter().zip(y) {
        for k in 0..4 {
            sums[k] += x[k] * y[k];
        }
    }
    sums.iter().sum::<f64>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
}
