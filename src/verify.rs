//! How well a vector solves a system, measured more precisely than it was computed.

use rayon::prelude::*;
use serde::Serialize;

use crate::comm::Processes;
use crate::comm::processes::numbers;
use crate::error::Result;
use crate::matrix::{Complex64, Csr, Scalar};

/// Elements that are added up in one task, in order: fixed, so that the bits do not depend on the number of threads.
const CHUNK: usize = 4096;

/// The residual r = b − A x and what it says.
///
/// An infinity or a NaN in `x` or `b`, or a product beyond the range of `f64`, makes the norms of r NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Residual {
    /// ‖r‖₂
    pub norm_2: f64,
    /// ‖b‖₂
    pub rhs_norm_2: f64,
    /// ‖r‖₂ / ‖b‖₂; for b = 0, 0 if r = 0 and infinite if not. Correct also where a norm itself is out of range.
    pub relative_2: f64,
    /// ‖r‖∞
    pub norm_inf: f64,
    /// The normwise backward error ‖r‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞): the least ε for which x solves (A + E) x = b + f exactly
    /// with ‖E‖∞ ≤ ε ‖A‖∞ and ‖f‖∞ ≤ ε ‖b‖∞. About 10⁻¹⁶ is as good as double precision can ask for, whatever the
    /// condition of A. 0 for r = 0; NaN if the denominator is out of range, or A is a function.
    ///
    /// J. L. Rigal, J. Gaches, "On the compatibility of a given solution with the data of a linear system",
    /// J. ACM 14 (1967), doi 10.1145/321406.321416.
    pub backward_error: f64,
    /// ‖Aᵀ r‖₂ / (α ‖r‖₂), where it was measured: 0 if no other x has a smaller ‖r‖₂. α is the root mean square of the norms of A's
    /// columns, those of zeros left out, so that it is about 1 for an r at random, whatever the number of columns. E = −r (Aᵀ r)ᵀ / ‖r‖₂²,
    /// whose norm is ‖Aᵀ r‖₂ / ‖r‖₂, makes x a solution of least squares of A + E. 0 for r = 0.
    ///
    /// C. C. Paige, M. A. Saunders, "LSQR: an algorithm for sparse linear equations and sparse least squares", ACM Trans. Math. Softw.
    /// 8 (1982), doi 10.1145/355984.355989, after G. W. Stewart.
    pub optimality: Option<f64>,
}

impl Residual {
    /// What an iteration tells of its residual, in place of one that is measured.
    pub(crate) fn told(relative_2: f64, rhs_norm_2: f64) -> Self {
        let (norm_2, unknown) = (relative_2 * rhs_norm_2, f64::NAN);
        Self { norm_2, rhs_norm_2, relative_2, norm_inf: unknown, backward_error: unknown, optimality: None }
    }

    /// Whether it is such a one.
    pub(crate) fn is_told(&self) -> bool {
        self.norm_inf.is_nan() && self.norm_2.is_finite()
    }
}

/// Measures the residual of `x` in A x = b.
///
/// Every r_i = b_i − Σ a_ij x_j is summed as if in twice the precision and then rounded: for a row of m entries the
/// error is about u |r_i| + m² u² Σ |a_ij x_j| at most, with u = 2⁻⁵³. The nearer x is to the solution, the more these
/// sums cancel; in plain double precision the error would be m u Σ |a_ij x_j|, often more than r itself. Rows in
/// parallel; about 10 operations an entry and 8 bytes of memory a row. The same bits for any number of threads.
///
/// # Panics
/// If `b` has not one element a row, or `x` not one a column.
#[must_use]
pub fn residual(a: &Csr, b: &[f64], x: &[f64]) -> Residual {
    measured(a, b, x).0
}

/// The same, and how near x is to a solution of least squares: [`Residual::optimality`]. `transpose` is Aᵀ. The sums of Aᵀ r, too, are
/// formed in twice the precision, of r rounded.
///
/// # Panics
/// If `b` has not one element a row, or `x` not one a column, or `transpose` not the shape of Aᵀ.
#[must_use]
pub fn least_squares_residual(a: &Csr, transpose: &Csr, b: &[f64], x: &[f64]) -> Residual {
    assert_eq!((transpose.n_rows(), transpose.n_cols()), (a.n_cols(), a.n_rows()), "the shape of the transpose");
    let (found, r) = measured(a, b, x);
    Residual { optimality: Some(optimality(transpose, &r)), ..found }
}

/// ‖Aᵀ r‖₂ / (α ‖r‖₂): see [`Residual::optimality`].
fn optimality(transpose: &Csr, r: &[f64]) -> f64 {
    // powers of two keep all in range
    let (of_a, of_r) = (Norm::of(transpose.values()), Norm::of(r));
    let gradient = |j: usize| {
        let (rows, values) = transpose.row(j);
        difference(0.0, rows.iter().zip(values).map(|(&i, &v)| (v * of_a.scale, r[i as usize] * of_r.scale)))
    };
    let gradient: Vec<f64> = (0..transpose.n_rows()).into_par_iter().map(gradient).collect();
    match norm_2(&gradient) {
        0.0 => 0.0,
        norm => norm / (of_a.root / columns_that_count(transpose).sqrt()) / of_r.root,
    }
}

/// The root mean square of the norms of A's columns, those of zeros left out, from Aᵀ.
pub(crate) fn rms_column_norm(transpose: &Csr) -> f64 {
    norm_2(transpose.values()) / columns_that_count(transpose).sqrt()
}

/// Columns of A with an entry that is not 0, at least 1.
fn columns_that_count(transpose: &Csr) -> f64 {
    let counts = |column: &usize| transpose.row(*column).1.iter().any(|v| *v != 0.0);
    (0..transpose.n_rows()).into_par_iter().with_min_len(CHUNK).filter(counts).count().max(1) as f64
}

/// The residual of rows that lie in several processes: `a` has those of this one, and none of the elements of `b` are others'. The sums of
/// squares are added in the order of the processes. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn residual_among(processes: &dyn Processes, a: &Csr, b: &[f64], x: &[f64]) -> Result<Residual> {
    let (r, a_inf) = difference_of_rows(a, b, x);
    let mut all = vec![0; 4 * processes.count()];
    processes.gather(&[norm_inf(&r), a_inf, norm_inf(x), norm_inf(b)].map(f64::to_bits), &mut all)?;
    let largest = |k: usize| all.iter().skip(k).step_by(4).map(|bits| f64::from_bits(*bits)).fold(0.0, larger);
    let [of_r, a_inf, of_x, of_b] = [0, 1, 2, 3].map(largest);
    let mut squares = vec![0; 2 * processes.count()];
    processes
        .gather(&[(&r[..], of_r), (b, of_b)].map(|(v, largest)| squares_of(v, largest).to_bits()), &mut squares)?;
    let norm = |k: usize, largest: f64| {
        let sum = squares.iter().skip(k).step_by(2).map(|bits| f64::from_bits(*bits)).sum();
        Norm::of_squares(sum, largest)
    };
    let rhs = norm(1, of_b);
    let norm = if of_x.is_finite() { norm(0, of_r) } else { Norm { root: f64::NAN, scale: 1.0 } };
    let found = of_norms(&norm, &rhs, of_r);
    Ok(Residual { backward_error: backward_error(found.norm_inf, a_inf, of_x, of_b), ..found })
}

/// ‖v‖₂ of a vector that lies in several processes. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn norm_2_among(processes: &dyn Processes, v: &[f64]) -> Result<f64> {
    let largest = numbers(processes, norm_inf(v))?.into_iter().fold(0.0, larger);
    let sum = numbers(processes, squares_of(v, largest))?.into_iter().sum();
    Ok(Norm::of_squares(sum, largest).value())
}

/// What the residual says, and the residual.
fn measured(a: &Csr, b: &[f64], x: &[f64]) -> (Residual, Vec<f64>) {
    let (r, a_inf) = difference_of_rows(a, b, x);
    let [of_x, of_b] = [x, b].map(norm_inf);
    let found = of_sizes(&r, b, [of_x, of_b]);
    let backward_error = backward_error(found.norm_inf, a_inf, of_x, of_b);
    (Residual { backward_error, ..found }, r)
}

/// b − A x, and ‖A‖∞.
fn difference_of_rows(a: &Csr, b: &[f64], x: &[f64]) -> (Vec<f64>, f64) {
    assert_eq!(b.len(), a.n_rows(), "b must have one element a row");
    assert_eq!(x.len(), a.n_cols(), "x must have one element a column");
    let mut r = vec![0.0; a.n_rows()];
    // the row sums in the same pass: the matrix is read from memory once
    let row = |i: usize, r: &mut f64| {
        let (cols, values) = a.row(i);
        *r = difference(b[i], cols.iter().zip(values).map(|(&j, &v)| (v, x[j as usize])));
        values.iter().map(|v| v.abs()).sum::<f64>()
    };
    let rows = r
        .par_chunks_mut(CHUNK)
        .enumerate()
        .map(|(k, r)| r.iter_mut().enumerate().map(|(i, r)| row(k * CHUNK + i, r)).fold(0.0, larger));
    let a_inf = max_propagating_nan(rows);
    (r, a_inf)
}

/// Measures the residual of `x` in a complex A x = b: [`residual`] in complex numbers, where |z| is the modulus. Real and imaginary
/// parts of each r_i are summed as if in twice the precision. About 40 operations an entry and 16 bytes of memory a row.
///
/// # Panics
/// If `b` has not one element a row, or `x` not one a column.
#[must_use]
pub fn complex_residual(a: &Csr<Complex64>, b: &[Complex64], x: &[Complex64]) -> Residual {
    assert_eq!(b.len(), a.n_rows(), "b must have one element a row");
    assert_eq!(x.len(), a.n_cols(), "x must have one element a column");
    let (r, row_sums): (Vec<Complex64>, Vec<f64>) = (0..a.n_rows())
        .into_par_iter()
        .map(|i| {
            let (cols, values) = a.row(i);
            let entries = || cols.iter().zip(values).map(|(&j, &v)| (v, x[j as usize]));
            let re = difference(b[i].re, entries().flat_map(|(v, x)| [(v.re, x.re), (-v.im, x.im)]));
            let im = difference(b[i].im, entries().flat_map(|(v, x)| [(v.im, x.re), (v.re, x.im)]));
            (Complex64::new(re, im), values.iter().map(|v| v.modulus()).sum::<f64>())
        })
        .unzip();
    let largest = |v: &[Complex64]| max_propagating_nan(v.par_iter().map(|z| z.modulus()));
    let a_inf = max_propagating_nan(row_sums.into_par_iter());
    let parts = of_difference(bytemuck::cast_slice(&r), bytemuck::cast_slice(b), bytemuck::cast_slice(x));
    let norm_inf = if parts.norm_inf.is_nan() { f64::NAN } else { largest(&r) };
    Residual { norm_inf, backward_error: backward_error(norm_inf, a_inf, largest(x), largest(b)), ..parts }
}

/// What a residual `r` = b − A x says that was formed elsewhere, by an A whose norm is not known: the backward error is NaN.
pub(crate) fn of_difference(r: &[f64], b: &[f64], x: &[f64]) -> Residual {
    of_sizes(r, b, [x, b].map(norm_inf))
}

/// The same, where the ∞-norms of x and of b are known.
fn of_sizes(r: &[f64], b: &[f64], [of_x, of_b]: [f64; 2]) -> Residual {
    let (rhs, of_r) = (Norm::scaled(b, of_b), norm_inf(r));
    // the bad element of an x that is not finite may meet no entry of the matrix
    let norm = if of_x.is_finite() { Norm::scaled(r, of_r) } else { Norm { root: f64::NAN, scale: 1.0 } };
    of_norms(&norm, &rhs, of_r)
}

/// What the norms of r and b say, and ‖r‖∞.
fn of_norms(norm: &Norm, rhs: &Norm, of_r: f64) -> Residual {
    Residual {
        norm_2: norm.value(),
        rhs_norm_2: rhs.value(),
        relative_2: norm.relative_to(rhs),
        norm_inf: if norm.root.is_nan() { f64::NAN } else { of_r },
        backward_error: f64::NAN,
        optimality: None,
    }
}

/// ‖v‖₂, without overflow or underflow on the way; NaN if an element is NaN, otherwise infinite if one is infinite.
///
/// Elements are scaled by a power of two so that the largest is near 1, and summed in chunks of fixed size: the same
/// bits for any number of threads. O(n), two passes.
#[must_use]
pub fn norm_2(v: &[f64]) -> f64 {
    Norm::of(v).value()
}

/// s − Σ aᵢ xᵢ in twice the working precision, rounded once: algorithm `Dot2` of T. Ogita, S. M. Rump, S. Oishi,
/// "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), doi 10.1137/030601818.
pub(crate) fn difference(s: f64, products: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut low) = (s, 0.0);
    for (a, x) in products {
        let product = -a * x;
        let product_error = (-a).mul_add(x, -product); // TwoProd: exact unless it underflows
        let (next, sum_error) = two_sum(sum, product);
        sum = next;
        low += sum_error + product_error;
    }
    sum + low
}

/// a + b rounded, and exactly what the rounding lost (D. E. Knuth).
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// A 2-norm as `root / scale`, the scale a power of two.
struct Norm {
    root: f64,
    scale: f64,
}

impl Norm {
    fn of(v: &[f64]) -> Self {
        Self::scaled(v, norm_inf(v))
    }

    /// Of a vector with this largest element.
    fn scaled(v: &[f64], largest: f64) -> Self {
        Self::of_squares(squares_of(v, largest), largest)
    }

    /// Of this sum of [`squares_of`].
    fn of_squares(sum: f64, largest: f64) -> Self {
        if largest == 0.0 || !largest.is_finite() {
            return Self { root: largest, scale: 1.0 };
        }
        Self { root: sum.sqrt(), scale: reciprocal_power_of_two(largest) }
    }

    fn value(&self) -> f64 {
        self.root / self.scale
    }

    /// The ratio of two norms, in range even if they are not.
    fn relative_to(&self, whole: &Self) -> f64 {
        if self.root == 0.0 && whole.root == 0.0 {
            return 0.0;
        }
        (self.root / whole.root) * (whole.scale / self.scale)
    }
}

/// Σ v² in a scale in which this largest element is near 1; 0 where it is 0 or not finite.
fn squares_of(v: &[f64], largest: f64) -> f64 {
    if largest == 0.0 || !largest.is_finite() {
        return 0.0;
    }
    let scale = reciprocal_power_of_two(largest);
    let squares = |chunk: &[f64]| chunk.iter().map(|x| (x * scale) * (x * scale)).sum();
    let sums: Vec<f64> = v.par_chunks(CHUNK).map(squares).collect();
    sums.iter().sum()
}

/// 2⁻ᵉ for a finite v of about 2ᵉ, kept within the range where it and its reciprocal are normal numbers.
fn reciprocal_power_of_two(v: f64) -> f64 {
    let exponent = (v.abs().to_bits() >> 52).clamp(1, 2045);
    f64::from_bits((2046 - exponent) << 52)
}

/// ‖v‖∞, NaN if an element is NaN.
fn norm_inf(v: &[f64]) -> f64 {
    max_propagating_nan(v.par_chunks(CHUNK).map(|chunk| chunk.iter().map(|x| x.abs()).fold(0.0, larger)))
}

/// The largest of some numbers ≥ 0, 0 if there are none, NaN if one is NaN (which [`f64::max`] would ignore).
fn max_propagating_nan(numbers: impl ParallelIterator<Item = f64>) -> f64 {
    numbers.reduce(|| 0.0, larger)
}

/// The larger of two numbers ≥ 0, or NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// r / (a x + b) for the ∞-norms of the residual, the matrix, the solution and the right-hand side.
fn backward_error(r: f64, a: f64, x: f64, b: f64) -> f64 {
    if r == 0.0 {
        return 0.0;
    }
    let whole = a * x + b;
    if whole < f64::INFINITY {
        return r / whole;
    }
    // If the product overflowed, x > 1, and dividing by it is safe.
    let whole = a + b / x;
    if whole < f64::INFINITY { r / x / whole } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;
    use proptest::prelude::*;

    fn rows(rows: &[&[f64]]) -> Csr {
        let n_cols = rows[0].len();
        let row_ptr = (0..=rows.len()).map(|i| i * n_cols).collect();
        let cols = rows.iter().flat_map(|_| 0..n_cols as u32).collect();
        Csr::new(rows.len(), n_cols, row_ptr, cols, rows.concat()).unwrap()
    }

    #[test]
    fn small_integers_are_exact() {
        let a = rows(&[&[2.0, 1.0], &[1.0, 3.0]]);
        let r = residual(&a, &[7.0, 8.0], &[1.0, 1.0]); // r = (4, 4)
        assert_eq!((r.norm_2, r.norm_inf), (32f64.sqrt(), 4.0));
        assert_eq!(r.rhs_norm_2, 113f64.sqrt());
        assert_eq!(r.relative_2, 32f64.sqrt() / 113f64.sqrt());
        assert_eq!(r.backward_error, 4.0 / (4.0 * 1.0 + 8.0));
        let r = residual(&a, &[3.0, 4.0], &[1.0, 1.0]);
        assert_eq!((r.norm_2, r.relative_2, r.norm_inf, r.backward_error), (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn how_far_from_least_squares() {
        // r = (1, 0) − (3, 4) x; from x = 3 / 25 on, r is orthogonal to the column
        for scale in [1.0, 2f64.powi(500), 2f64.powi(-500)] {
            let a = rows(&[&[3.0 * scale], &[4.0 * scale]]);
            let transpose = a.transposed().unwrap();
            let of = |b: f64, x: f64| least_squares_residual(&a, &transpose, &[b / scale, 0.0], &[x / scale / scale]);
            assert_eq!(of(1.0, 0.0).optimality, Some(0.6));
            let least = of(25.0, 3.0);
            assert_eq!((least.optimality, least.norm_2), (Some(0.0), 20.0 / scale));
            assert_eq!((of(0.0, 0.0).optimality, residual(&a, &[1.0, 0.0], &[0.0]).optimality), (Some(0.0), None));
        }
        // more columns alike change nothing, nor do columns of zeros
        let twice = rows(&[&[3.0, 0.0, 0.0], &[4.0, 0.0, 0.0], &[0.0, 0.0, 5.0]]);
        let found = least_squares_residual(&twice, &twice.transposed().unwrap(), &[1.0, 0.0, 0.0], &[0.0; 3]);
        assert!((found.optimality.unwrap() - 0.6).abs() < 1e-15, "{found:?}");
        let nothing = Csr::new(2, 1, vec![0; 3], vec![], vec![]).unwrap();
        let found = least_squares_residual(&nothing, &nothing.transposed().unwrap(), &[1.0, 2.0], &[1.0]);
        assert_eq!((found.optimality, found.relative_2), (Some(0.0), 1.0));
    }

    #[test]
    fn what_a_plain_sum_loses_is_found() {
        let a = rows(&[&[1e16, 1.0, -1e16]]);
        let x = [1.0, 1.0, 1.0];
        assert_eq!(a.mul_vec(&x), [0.0]);
        assert_eq!(residual(&a, &[1.0], &x).norm_inf, 0.0);
        assert_eq!(residual(&a, &[0.0], &x).norm_inf, 1.0);
    }

    #[test]
    fn what_a_plain_product_loses_is_found() {
        // (1 + ε)² = 1 + 2ε + ε²: the last term is below the precision
        let e = f64::EPSILON;
        let a = rows(&[&[1.0 + e]]);
        assert_eq!(residual(&a, &[1.0 + 2.0 * e], &[1.0 + e]).norm_inf, e * e);
    }

    #[test]
    fn a_right_hand_side_of_zero() {
        let a = rows(&[&[2.0, 0.0], &[0.0, 2.0]]);
        let r = residual(&a, &[0.0, 0.0], &[0.0, 0.0]);
        assert_eq!((r.relative_2, r.backward_error, r.rhs_norm_2), (0.0, 0.0, 0.0));
        let r = residual(&a, &[0.0, 0.0], &[1.0, 0.0]);
        assert_eq!((r.norm_2, r.relative_2, r.backward_error), (2.0, f64::INFINITY, 1.0));
    }

    #[test]
    fn nothing_to_solve() {
        let r = residual(&Csr::new(0, 0, vec![0], vec![], vec![]).unwrap(), &[], &[]);
        assert_eq!((r.norm_2, r.relative_2, r.norm_inf, r.backward_error), (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn norms_at_the_ends_of_the_range() {
        assert!((norm_2(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm_2(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert_eq!(norm_2(&[f64::MAX]), f64::MAX);
        assert_eq!(norm_2(&[f64::MIN_POSITIVE]), f64::MIN_POSITIVE);
        let least = f64::from_bits(1);
        assert_eq!((norm_2(&[least]), norm_2(&[3.0 * least, 4.0 * least])), (least, 5.0 * least));
        assert_eq!(norm_2(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(norm_2(&[1e300, 1e-300]), 1e300);
        assert_eq!((norm_2(&[]), norm_2(&[0.0, -0.0])), (0.0, 0.0));
    }

    #[test]
    fn measures_do_not_change_with_the_scale() {
        let a = rows(&[&[2.0, 1.0], &[1.0, 3.0]]);
        let base = residual(&a, &[7.0, 8.0], &[1.0, 1.0]);
        for s in [2f64.powi(664), 2f64.powi(-664)] {
            let r = residual(&a, &[7.0 * s, 8.0 * s], &[s, s]);
            assert_eq!((r.norm_2, r.rhs_norm_2), (base.norm_2 * s, base.rhs_norm_2 * s));
            assert_eq!((r.relative_2, r.backward_error), (base.relative_2, base.backward_error));
        }
    }

    #[test]
    fn ratios_of_norms_that_are_out_of_range() {
        // ‖b‖₂ overflows; the ratio is 1/2 all the same
        let a = rows(&[&[1.0, 0.0], &[0.0, 1.0]]);
        let big = f64::MAX * 0.9;
        let r = residual(&a, &[big, big], &[big / 2.0, big / 2.0]);
        assert_eq!((r.rhs_norm_2, r.relative_2), (f64::INFINITY, 0.5));
        // ‖A‖∞ ‖x‖∞ overflows although no product does
        let a = rows(&[&[1e300, 0.0], &[0.0, 1e-300]]);
        let r = residual(&a, &[1e300, 1.0], &[1.0, 1e10]);
        assert_eq!(r.norm_inf, 1.0); // to rounding: 1e-290 is nothing
        assert!(r.backward_error > 0.0 && r.backward_error < 1e-305);
        assert!(backward_error(1.0, f64::INFINITY, 1.0, 1.0).is_nan());
    }

    #[test]
    fn nothing_finite_comes_of_infinities_and_nans() {
        let a = gallery::poisson2d([90, 90]).unwrap();
        let n = a.n_rows();
        let b = vec![1.0; n];
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in [0, 17, n / 2, n - 1] {
                let mut x = vec![1.0; n];
                x[at] = bad;
                let r = residual(&a, &b, &x);
                for v in [r.norm_2, r.relative_2, r.norm_inf, r.backward_error] {
                    assert!(!v.is_finite(), "{bad} at {at}: {r:?}");
                }
                let mut b = b.clone();
                b[at] = bad;
                let r = residual(&a, &b, &vec![1.0; n]);
                for v in [r.norm_2, r.rhs_norm_2, r.relative_2, r.norm_inf, r.backward_error] {
                    assert!(!v.is_finite(), "{bad} at {at} of b: {r:?}");
                }
                assert!(!norm_2(&x).is_finite() && norm_2(&x).is_nan() == bad.is_nan());
            }
        }
        // in a column without entries
        let a = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert!(residual(&a, &[1.0], &[1.0, f64::NAN]).norm_2.is_nan());
        // a product out of range
        assert!(!residual(&rows(&[&[1e200]]), &[1.0], &[1e200]).norm_2.is_finite());
    }

    #[test]
    fn the_same_bits_for_any_number_of_threads() {
        let a = gallery::variable([25; 3], 2.0, 1).unwrap();
        let (b, x) = (gallery::random_vector(a.n_rows(), 1), gallery::random_vector(a.n_rows(), 2));
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| residual(&a, &b, &x))
        };
        let one = with(1);
        for threads in [2, 3, 8] {
            assert_eq!(with(threads), one);
        }
    }

    proptest! {
        #[test]
        fn sums_in_fractions_of_one_grid_are_exact(
            entries in prop::collection::vec((-(1i64 << 30)..1 << 30, -(1i64 << 30)..1 << 30, -20i32..20), 1..40),
            b in -(1i64 << 50)..1 << 50,
        ) {
            // multiples of 2⁻⁴⁰ below 2⁸⁸ in all, summed exactly in 128 bits
            let exact = ((b as i128) << 40)
                - entries.iter().map(|&(a, x, e)| ((a * x) as i128) << (e + 40)).sum::<i128>();
            let got = difference(b as f64, entries.iter().map(|&(a, x, e)| (a as f64 * 2f64.powi(e), x as f64)));
            let expected = exact as f64 * 2f64.powi(-40);
            prop_assert!((got - expected).abs() <= expected.abs() * f64::EPSILON, "{got} {expected}");
        }

        #[test]
        fn the_norm_is_that_of_a_plain_sum_where_that_is_safe(v in prop::collection::vec(-1e3..1e3f64, 0..300)) {
            let plain = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!((norm_2(&v) - plain).abs() <= 1e-13 * plain);
        }
    }
}
