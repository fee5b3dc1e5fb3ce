//! A V-cycle: z = M⁻¹ r from z = 0, symmetric, as both sides smooth by the same polynomial.

use rayon::prelude::*;

use super::dense::Dense;
use super::smoother::Step;
use super::sparse::{BLOCK, Rows, Sparse};

/// A level that has one below it.
#[derive(Debug)]
pub(super) struct Level {
    /// With a diagonal of 1.
    pub(super) a: Sparse,
    pub(super) steps: [Step; 2],
    /// From the next level to this one, and back.
    pub(super) p: Sparse,
    pub(super) restriction: Sparse,
}

/// What ends the cycle.
#[derive(Debug)]
pub(super) enum Coarsest {
    /// By a factor,
    Exact(Dense),
    /// or, where nothing can be made coarser, by the smoother.
    Smoothed(Sparse, [Step; 2]),
}

/// Vectors of a level.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    pub(super) b: Vec<f32>,
    pub(super) x: Vec<f32>,
    r: Vec<f32>,
}

impl Vectors {
    /// For so many rows.
    pub(super) fn new(n: usize) -> Self {
        let [b, x, r] = [(); 3].map(|()| vec![0.0; n]);
        Self { b, x, r }
    }
}

/// x = M⁻¹ b of the first of these levels.
pub(super) fn cycle(levels: &[Level], coarsest: &Coarsest, vectors: &mut [Vectors]) {
    let [own, below @ ..] = vectors else { return };
    let Some((level, rest)) = levels.split_first() else {
        match coarsest {
            Coarsest::Exact(dense) => dense.solve(&own.b, &mut own.x),
            Coarsest::Smoothed(a, steps) => smooth_from_zero(a, steps, own),
        }
        return;
    };
    smooth_from_zero(&level.a, &level.steps, own);
    let Vectors { b, x, r, .. } = own;
    residual(&level.a, b, x, r);
    if let [next, ..] = below {
        let (restriction, r) = (level.restriction.rows(), &own.r);
        by_blocks(&mut next.b, |i, b| *b = restriction.times(i, r));
        cycle(rest, coarsest, below);
    }
    if let [next, ..] = below {
        let (p, e) = (level.p.rows(), &next.x);
        by_blocks(&mut own.x, |i, x| *x += p.times(i, e));
    }
    smooth(&level.a, &level.steps, own);
}

/// Smooths from x = 0.
fn smooth_from_zero(a: &Sparse, steps: &[Step; 2], v: &mut Vectors) {
    let (rows, Vectors { b, x, .. }) = (a.rows(), v);
    by_blocks(x, |i, x| *x = polynomial(rows, steps, b, i));
}

/// Smooths from the x that is there.
fn smooth(a: &Sparse, steps: &[Step; 2], v: &mut Vectors) {
    let (rows, Vectors { b, x, r }) = (a.rows(), v);
    residual(a, b, x, r);
    by_blocks(x, |i, x| *x += polynomial(rows, steps, r, i));
}

/// Element i of q(A) r, the sum of two weighted steps from 0: d₁ = c₁ r, d₂ = k d₁ + c₂ (r − A d₁).
#[inline]
fn polynomial(a: Rows<'_>, [first, second]: &[Step; 2], r: &[f32], i: usize) -> f32 {
    let of_first = first.add * r[i];
    let of_second = second.keep * of_first + second.add * (r[i] - first.add * a.times(i, r));
    first.weight * of_first + second.weight * of_second
}

/// r = b − A x.
fn residual(a: &Sparse, b: &[f32], x: &[f32], r: &mut [f32]) {
    let rows = a.rows();
    by_blocks(r, |i, r| *r = b[i] - rows.times(i, x));
}

/// Sets the elements of a vector, by all threads.
fn by_blocks(v: &mut [f32], set: impl Fn(usize, &mut f32) + Sync + Send) {
    v.par_chunks_mut(BLOCK).enumerate().for_each(|(k, v)| {
        for (i, v) in (k * BLOCK..).zip(v) {
            set(i, v);
        }
    });
}
