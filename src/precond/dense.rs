//! Small dense matrices, row by row: what is solved for a row or a block of a sparse preconditioner.

/// A pivot below this part of what was there before elimination is one of rounding.
const TINY: f64 = 1e-14;

/// Puts the Cholesky factor L, A = L Lᵀ, in the place of the lower triangle of A; tells whether A is positive definite. The upper triangle
/// is not looked at.
pub(super) fn cholesky(a: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        let diagonal = a[i * n + i];
        for j in 0..=i {
            let (row_i, row_j) = (&a[i * n..i * n + j], &a[j * n..j * n + j]);
            let left = a[i * n + j] - row_i.iter().zip(row_j).map(|(x, y)| x * y).sum::<f64>();
            if i > j {
                a[i * n + j] = left / a[j * n + j];
            } else if left > TINY * diagonal && left.is_finite() {
                a[i * n + i] = left.sqrt();
            } else {
                return false;
            }
        }
    }
    true
}

/// Puts y with L y = b in the place of b.
pub(super) fn forward(l: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        let known: f64 = l[i * n..i * n + i].iter().zip(&*b).map(|(l, b)| l * b).sum();
        b[i] = (b[i] - known) / l[i * n + i];
    }
}

/// Puts y with Lᵀ y = b in the place of b.
pub(super) fn backward(l: &[f64], n: usize, b: &mut [f64]) {
    for i in (0..n).rev() {
        b[i] /= l[i * n + i];
        for j in 0..i {
            b[j] -= l[i * n + j] * b[i];
        }
    }
}

/// The inverse of a symmetric positive definite matrix, symmetric to the last bit; none of others.
pub(super) fn inverse_definite(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = a.to_vec();
    if !cholesky(&mut l, n) {
        return None;
    }
    let (mut inverse, mut column) = (vec![0.0; n * n], vec![0.0; n]);
    for j in 0..n {
        column.fill(0.0);
        column[j] = 1.0;
        forward(&l, n, &mut column);
        backward(&l, n, &mut column);
        for i in j..n {
            (inverse[i * n + j], inverse[j * n + i]) = (column[i], column[i]);
        }
    }
    Some(inverse)
}

/// The inverse of any matrix, by elimination with row pivots; none of one that is singular but for rounding.
pub(super) fn inverse(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut a = a.to_vec();
    let mut inverse: Vec<f64> = (0..n * n).map(|k| if k % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let largest = a.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    for k in 0..n {
        let size = |row: &usize| a[row * n + k].abs();
        let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j)))?;
        let head = a[pivot * n + k];
        if head.abs() <= TINY * largest || !head.is_finite() {
            return None;
        }
        for matrix in [&mut a, &mut inverse] {
            for column in 0..n {
                matrix.swap(k * n + column, pivot * n + column);
                matrix[k * n + column] /= head;
            }
        }
        for row in (0..n).filter(|row| *row != k) {
            let times = a[row * n + k];
            for matrix in [&mut a, &mut inverse] {
                for column in 0..n {
                    matrix[row * n + column] -= times * matrix[k * n + column];
                }
            }
        }
    }
    inverse.iter().all(|v| v.is_finite()).then_some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // [4 2; 2 5] = [2 0; 1 2] [2 1; 0 2]
        let mut a = [4.0, f64::NAN, 2.0, 5.0];
        assert!(cholesky(&mut a, 2));
        assert_eq!([a[0], a[2], a[3]], [2.0, 1.0, 2.0]);
        let mut b = [2.0, 5.0];
        forward(&a, 2, &mut b);
        assert_eq!(b, [1.0, 2.0]);
        backward(&a, 2, &mut b);
        assert_eq!(b, [0.0, 1.0]);
        assert_eq!(inverse_definite(&[4.0, 2.0, 2.0, 5.0], 2).unwrap(), [5.0 / 16.0, -0.125, -0.125, 0.25]);
        assert_eq!(inverse_definite(&[1.0, 2.0, 2.0, 4.0], 2), None);
        assert_eq!(inverse_definite(&[-1.0], 1), None);
        assert_eq!(inverse(&[0.0, 2.0, -4.0, 0.0], 2).unwrap(), [0.0, -0.25, 0.5, 0.0]);
        assert_eq!(inverse(&[1.0, 2.0, 2.0, 4.0], 2), None);
        assert_eq!(inverse(&[0.0], 1), None);
    }

    #[test]
    fn inverses_of_random_matrices() {
        for n in 1..9 {
            let b: Vec<f64> = crate::matrix::gallery::random_vector(n * n, n as u64);
            let product = |x: &[f64], y: &[f64]| -> Vec<f64> {
                (0..n * n).map(|k| (0..n).map(|l| x[k / n * n + l] * y[l * n + k % n]).sum()).collect()
            };
            let transposed: Vec<f64> = (0..n * n).map(|k| b[k % n * n + k / n]).collect();
            let mut definite = product(&b, &transposed);
            (0..n).for_each(|i| definite[i * (n + 1)] += 0.1);
            for (a, inverse) in [(&b, inverse(&b, n)), (&definite, inverse_definite(&definite, n))] {
                let one = product(a, &inverse.unwrap());
                let wrong = one.iter().enumerate().map(|(k, v)| (v - f64::from(k % (n + 1) == 0)).abs());
                assert!(wrong.fold(0.0, f64::max) < 1e-9, "{n}");
            }
        }
    }
}
