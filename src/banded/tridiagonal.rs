//! One tridiagonal system, by Gaussian elimination with partial pivoting.

use super::size;
use crate::real::Real;

/// Arrays that an elimination changes, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Work<T> {
    /// U: its diagonal, and the two above it.
    diagonal: Vec<T>,
    upper: Vec<T>,
    second: Vec<T>,
}

/// Solves `lower(i) x_{i−1} + diagonal(i) x_i + upper(i) x_{i+1} = x(i)` from and to `x`: the algorithm of LAPACK's `gtsv`. Rows are
/// exchanged with the next one only, so that U has one more diagonal. Some 14 n operations.
///
/// # Errors
/// The row for which no pivot is left.
pub(crate) fn eliminate<T: Real>(
    row: impl Fn(usize) -> [T; 3],
    x: &mut [T],
    Work { diagonal, upper, second }: &mut Work<T>,
) -> Result<(), usize> {
    let (n, zero) = (x.len(), T::default());
    for array in [&mut *diagonal, upper, second] {
        array.clear();
        array.resize(n, zero);
    }
    // what is left of the row that the next one is eliminated by
    let Some(mut current) = (n > 0).then(|| row(0)).map(|[_, b, c]| [b, c, zero]) else { return Ok(()) };
    for i in 0..n {
        if i + 1 < n {
            let [a, b, c] = row(i + 1);
            let mut next = [a, b, c];
            if size(next[0]) > size(current[0]) {
                std::mem::swap(&mut current, &mut next);
                x.swap(i, i + 1);
            }
            if is_no_pivot(current[0]) {
                return Err(i);
            }
            let factor = next[0] / current[0];
            let value = x[i];
            x[i + 1] -= factor * value;
            next = [next[1] - factor * current[1], next[2] - factor * current[2], zero];
            (diagonal[i], upper[i], second[i]) = (current[0], current[1], current[2]);
            current = next;
        } else {
            if is_no_pivot(current[0]) {
                return Err(i);
            }
            diagonal[i] = current[0];
        }
    }
    for i in (0..n).rev() {
        let [one, two] = [1, 2].map(|k| x.get(i + k).copied().unwrap_or(zero));
        x[i] = (x[i] - upper[i] * one - second[i] * two) / diagonal[i];
    }
    Ok(())
}

fn is_no_pivot<T: Real>(v: T) -> bool {
    v == T::default() || !v.to_f64().is_finite()
}
