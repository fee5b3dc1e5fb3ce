//! Chebyshev polynomials of the fourth kind as smoothers, with the weights that are best for a cycle (Lottes 2023, doi
//! 10.1002/nla.2518), of a matrix whose diagonal is 1: they need no more than a bound of its eigenvalues.

use super::sparse::Sparse;
use super::strength::par_rows;

/// Products with the matrix to estimate its largest eigenvalue.
const PRODUCTS: usize = 8;

/// What the estimate is multiplied by, as it is from below.
const SAFETY: f64 = 1.1;

/// A bound from above that is this or less is good enough.
const GOOD: f64 = 2.1;

/// A step: d = `keep` d + `add` r, x += `weight` d.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) keep: f32,
    pub(super) add: f32,
    pub(super) weight: f32,
}

/// The two steps of a polynomial of degree 2, for eigenvalues up to `largest`.
pub(super) fn steps(largest: f64) -> [Step; 2] {
    const WEIGHTS: [f64; 2] = [1.023_872_875_703_13, 1.264_089_053_710_85];
    [0, 1].map(|k| {
        let i = k as f64;
        // of the first step, d is not there yet
        let (keep, add) = ((2.0 * i - 1.0).max(0.0) / (2.0 * i + 3.0), (8.0 * i + 4.0) / ((2.0 * i + 3.0) * largest));
        Step { keep: keep as f32, add: add as f32, weight: WEIGHTS[k] as f32 }
    })
}

/// A number that hardly any eigenvalue of a matrix is above: by its rows (Gershgorin, weighted by `b` or not), and if that says little by
/// Lanczos' process.
pub(super) fn largest_eigenvalue(a: &Sparse, b: &[f32]) -> f64 {
    let rows = a.rows();
    let sums = par_rows(a.n_rows(), |i| {
        let (mut plain, mut weighted) = (0f32, 0f32);
        for (j, v) in rows.row(i) {
            plain += v.abs();
            weighted += v.abs() * b[j];
        }
        [plain, weighted / b[i]]
    });
    let largest = sums.into_iter().fold([0f32; 2], |m, s| [m[0].max(s[0]), m[1].max(s[1])]);
    let bound = f64::from(largest[0].min(largest[1]));
    if bound <= GOOD { bound } else { bound.min(SAFETY * estimate(a)) }
}

/// The largest eigenvalue of what Lanczos' process makes of a random vector.
fn estimate(a: &Sparse) -> f64 {
    let rows = a.rows();
    let n = a.n_rows();
    let mut v = par_rows(n, random);
    let norm = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    let mut before = vec![0f32; n];
    let (mut diagonal, mut off) = (Vec::new(), Vec::new());
    let mut beta = 0f64;
    for _ in 0..PRODUCTS.min(n) {
        let mut w = par_rows(n, |i| rows.times(i, &v) - beta as f32 * before[i]);
        let alpha = dot(&w, &v);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= alpha as f32 * v);
        diagonal.push(alpha);
        beta = dot(&w, &w).sqrt();
        if beta < 1e-6 {
            break;
        }
        off.push(beta);
        w.iter_mut().for_each(|w| *w = (f64::from(*w) / beta) as f32);
        before = std::mem::replace(&mut v, w);
    }
    off.truncate(diagonal.len().saturating_sub(1));
    largest_of_tridiagonal(&diagonal, &off)
}

fn dot(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// A number from −1 to 1 for a row.
fn random(row: usize) -> f32 {
    let mut x = (row as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    (x as u32 as f64 / f64::from(u32::MAX) * 2.0 - 1.0) as f32
}

/// By bisection: all eigenvalues are below where all pivots of T − λ are negative.
fn largest_of_tridiagonal(diagonal: &[f64], off: &[f64]) -> f64 {
    let side = |k: usize| off.get(k).copied().unwrap_or(0.0);
    let reach = |k: usize| diagonal[k].abs() + side(k) + if k > 0 { side(k - 1) } else { 0.0 };
    let mut high = (0..diagonal.len()).map(reach).fold(0.0, f64::max);
    let mut low = -high;
    let is_above = |lambda: f64| {
        let mut pivot = diagonal[0] - lambda;
        let rest = diagonal[1..].iter().zip(off).all(|(d, e)| {
            let is_negative = pivot < 0.0;
            pivot = d - lambda - e * e / pivot;
            is_negative
        });
        rest && pivot < 0.0
    };
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if is_above(middle) { high = middle } else { low = middle }
    }
    high
}
