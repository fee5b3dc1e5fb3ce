//! Chebyshev polynomials of the fourth kind as smoothers, with the weights that are best for a cycle (Lottes 2023, doi
//! 10.1002/nla.2518), of a matrix whose diagonal is 1: they need no more than a bound of its eigenvalues.

use std::convert::Infallible;

use super::exchanged::Halo;
use super::sparse::Sparse;
use super::strength::par_rows;
use crate::comm::processes;
use crate::error::Error;

/// Products with the matrix to estimate its largest eigenvalue.
const PRODUCTS: usize = 8;

/// What the estimate is multiplied by, as it is from below.
pub(super) const SAFETY: f64 = 1.1;

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

/// What a damped diagonal is multiplied by where eigenvalues are not real.
const DAMPED: f32 = 0.7;

/// Two steps of a damped diagonal: no eigenvalue grows that is as near to 1 as those of an M-matrix, at most 1 from it.
pub(super) fn damped() -> [Step; 2] {
    [Step { keep: 0.0, add: DAMPED, weight: 1.0 }; 2]
}

/// A number that hardly any eigenvalue of a matrix is above: by its rows (Gershgorin, not weighted or weighted by `b`), and if that says
/// little by Lanczos' process.
pub(super) fn largest_eigenvalue<L: Lanczos>(bounds: [f32; 2], process: &mut L) -> Result<f64, L::Error> {
    let bound = f64::from(bounds[0].min(bounds[1]));
    Ok(if bound <= GOOD { bound } else { bound.min(SAFETY * estimate(process)?) })
}

/// Bounds of the eigenvalues by rows, not weighted and weighted by `b`.
pub(super) fn bounds(a: &Sparse, b: &[f32]) -> [f32; 2] {
    let rows = a.rows();
    let sums = par_rows(a.n_rows(), |i| {
        let (mut plain, mut weighted) = (0f32, 0f32);
        for (j, v) in rows.row(i) {
            plain += v.abs();
            weighted += v.abs() * b[j];
        }
        [plain, weighted / b[i]]
    });
    sums.into_iter().fold([0f32; 2], |m, s| [m[0].max(s[0]), m[1].max(s[1])])
}

/// Lanczos' process, step by step, with vectors wherever they are.
pub(super) trait Lanczos {
    /// Why it may fail.
    type Error;
    /// Rows of the matrix.
    fn n(&self) -> usize;
    /// w as if by chance; w·w.
    fn begin(&mut self) -> Result<f64, Self::Error>;
    /// v = `factor` w, as there was a v before.
    fn advance(&mut self, factor: f32) -> Result<(), Self::Error>;
    /// w = A v − β times the v before; w·v.
    fn product(&mut self, beta: f32) -> Result<f64, Self::Error>;
    /// w −= α v; w·w.
    fn remove(&mut self, alpha: f32) -> Result<f64, Self::Error>;
}

/// The largest eigenvalue of what the process makes of a vector.
fn estimate<L: Lanczos>(process: &mut L) -> Result<f64, L::Error> {
    let (mut diagonal, mut off) = (Vec::new(), Vec::new());
    let mut norm = process.begin()?.sqrt();
    for step in 0..PRODUCTS.min(process.n()) {
        process.advance(norm.recip() as f32)?;
        let alpha = process.product(if step == 0 { 0.0 } else { norm as f32 })?;
        diagonal.push(alpha);
        norm = process.remove(alpha as f32)?.sqrt();
        if norm < 1e-6 {
            break;
        }
        off.push(norm);
    }
    off.truncate(diagonal.len().saturating_sub(1));
    Ok(largest_of_tridiagonal(&diagonal, &off))
}

/// The process on the host.
pub(super) struct OnHost<'a> {
    a: &'a Sparse,
    v: Vec<f32>,
    before: Vec<f32>,
    w: Vec<f32>,
}

impl<'a> OnHost<'a> {
    pub(super) fn new(a: &'a Sparse) -> Self {
        let zeros = || vec![0.0; a.n_rows()];
        Self { a, v: zeros(), before: zeros(), w: zeros() }
    }
}

impl Lanczos for OnHost<'_> {
    type Error = Infallible;

    fn n(&self) -> usize {
        self.a.n_rows()
    }

    fn begin(&mut self) -> Result<f64, Infallible> {
        self.w = par_rows(self.n(), |i| random(i as u64));
        Ok(dot(&self.w, &self.w))
    }

    fn advance(&mut self, factor: f32) -> Result<(), Infallible> {
        std::mem::swap(&mut self.v, &mut self.before);
        self.v.iter_mut().zip(&self.w).for_each(|(v, w)| *v = factor * w);
        Ok(())
    }

    fn product(&mut self, beta: f32) -> Result<f64, Infallible> {
        let Self { a, v, before, w } = self;
        let rows = a.rows();
        *w = par_rows(a.n_rows(), |i| rows.times(i, v) - beta * before[i]);
        Ok(dot(w, v))
    }

    fn remove(&mut self, alpha: f32) -> Result<f64, Infallible> {
        let Self { v, w, .. } = self;
        w.iter_mut().zip(v).for_each(|(w, v)| *w -= alpha * *v);
        Ok(dot(w, w))
    }
}

/// The process for a matrix whose rows processes share: this one has those from `first` on.
pub(super) struct OnProcesses<'a> {
    own: OnHost<'a>,
    first: u64,
    halo: &'a Halo,
}

impl<'a> OnProcesses<'a> {
    pub(super) fn new(a: &'a Sparse, first: u64, halo: &'a Halo) -> Self {
        Self { own: OnHost::new(a), first, halo }
    }

    fn of_all(&self, Ok(own): Result<f64, Infallible>) -> Result<f64, Error> {
        processes::sum(&*self.halo.processes, own)
    }
}

impl Lanczos for OnProcesses<'_> {
    type Error = Error;

    fn n(&self) -> usize {
        usize::MAX // all take the same steps, whatever they have
    }

    fn begin(&mut self) -> Result<f64, Error> {
        self.own.w = par_rows(self.own.n(), |i| random(self.first + i as u64));
        self.of_all(Ok(dot(&self.own.w, &self.own.w)))
    }

    fn advance(&mut self, factor: f32) -> Result<(), Error> {
        let Ok(()) = self.own.advance(factor);
        self.halo.extend(&mut self.own.v)
    }

    fn product(&mut self, beta: f32) -> Result<f64, Error> {
        let own = self.own.product(beta);
        self.of_all(own)
    }

    fn remove(&mut self, alpha: f32) -> Result<f64, Error> {
        let own = self.own.remove(alpha);
        self.of_all(own)
    }
}

fn dot(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// A number from −1 to 1 for a row.
fn random(row: u64) -> f32 {
    let mut x = row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
