//! A V-cycle: z = M⁻¹ r from z = 0, symmetric, as both sides smooth by the same polynomial.

use std::mem::swap;

use rayon::prelude::*;

use super::dense::Dense;
use super::smoother::Step;
use super::sparse::{BLOCK, Sparse};

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
    d: Vec<f32>,
    next: Vec<f32>,
}

impl Vectors {
    /// For so many rows.
    pub(super) fn new(n: usize) -> Self {
        let [b, x, r, d, next] = [(); 5].map(|()| vec![0.0; n]);
        Self { b, x, r, d, next }
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
    // what is left of b
    let (rows, d) = (level.a.rows(), &own.d);
    elements(&mut own.r, |i, r| *r -= rows.times(i, d));
    if let [next, ..] = below {
        let (restriction, r) = (level.restriction.rows(), &own.r);
        elements(&mut next.b, |i, b| *b = restriction.times(i, r));
        cycle(rest, coarsest, below);
    }
    if let [next, ..] = below {
        let (p, e) = (level.p.rows(), &next.x);
        elements(&mut own.x, |i, x| *x += p.times(i, e));
    }
    smooth(&level.a, &level.steps, own);
}

/// Smooths from x = 0: r is what is left of b but for the last step, d that step.
fn smooth_from_zero(a: &Sparse, [first, second]: &[Step; 2], v: &mut Vectors) {
    let rows = a.rows();
    let Vectors { b, x, r, next, .. } = v;
    let b = &b[..];
    (x, r, next).into_par_iter().with_min_len(BLOCK).enumerate().for_each(|(i, (x, r, d))| {
        let of_first = first.add * b[i];
        *r = b[i] - first.add * rows.times(i, b);
        *d = second.keep * of_first + second.add * *r;
        *x = first.weight * of_first + second.weight * *d;
    });
    swap(&mut v.d, &mut v.next);
}

/// Smooths from the x that is there.
fn smooth(a: &Sparse, [first, second]: &[Step; 2], v: &mut Vectors) {
    let rows = a.rows();
    {
        let Vectors { b, x, r, d, .. } = v;
        let (b, x) = (&b[..], &x[..]);
        (r, d).into_par_iter().with_min_len(BLOCK).enumerate().for_each(|(i, (r, d))| {
            *r = b[i] - rows.times(i, x);
            *d = first.add * *r;
        });
    }
    let Vectors { x, r, d, .. } = v;
    let d = &d[..];
    (x, r).into_par_iter().with_min_len(BLOCK).enumerate().for_each(|(i, (x, r))| {
        let of_second = second.keep * d[i] + second.add * (*r - rows.times(i, d));
        *x += first.weight * d[i] + second.weight * of_second;
    });
}

fn elements(v: &mut [f32], act: impl Fn(usize, &mut f32) + Sync + Send) {
    v.par_iter_mut().with_min_len(BLOCK).enumerate().for_each(|(i, v)| act(i, v));
}
