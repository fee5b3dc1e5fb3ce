//! A V-cycle: z = M⁻¹ r from z = 0, symmetric, as both sides smooth by the same polynomial.

use std::sync::Arc;

use rayon::prelude::*;

use super::dense::Dense;
use super::exchanged::Exchanged;
use super::lattice::tables::Tables;
use super::smoother::Step;
use super::sparse::{BLOCK, Rows, Sparse};
use crate::error::Result;

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
    /// or, where nothing can be made coarser, by the smoother;
    Smoothed(Sparse, [Step; 2]),
    /// or there are levels of a lattice, and no others.
    Lattice(Arc<Tables>),
}

/// Vectors of a level.
pub(super) struct Vectors {
    /// Rows that this process has.
    n: usize,
    pub(super) b: Vec<f32>,
    pub(super) x: Vec<f32>,
    pub(super) r: Vec<f32>,
    pub(super) exchanged: Exchanged,
}

impl Vectors {
    /// For a level of which the process has `n` rows, and elements of others.
    pub(super) fn new(n: usize, exchanged: Exchanged) -> Self {
        let len = n + exchanged.halo();
        let [b, x, r] = [(); 3].map(|()| vec![0.0; len]);
        Self { n, b, x, r, exchanged }
    }

    /// Sets the elements of b that this process makes, and brings the others that it needs.
    pub(super) fn set_b(&mut self, element: impl Fn(usize) -> f32 + Sync + Send) -> Result<()> {
        let own = self.exchanged.own(self.n);
        by_blocks(&mut self.b[own], |i, b| *b = element(i));
        self.exchanged.gather(&mut self.b)
    }

    /// The elements of x in the rows whose b this process makes.
    pub(super) fn own_x(&self) -> &[f32] {
        &self.x[self.exchanged.own(self.n)]
    }

    /// r = b − A x.
    fn residual(&mut self, a: &Sparse) -> Result<()> {
        let (rows, Self { n, b, x, r, exchanged }) = (a.rows(), self);
        exchanged.fill(x)?;
        by_blocks(&mut r[..*n], |i, r| *r = b[i] - rows.times(i, x));
        Ok(())
    }

    /// Smooths from x = 0.
    fn smooth_from_zero(&mut self, a: &Sparse, steps: &[Step; 2]) -> Result<()> {
        let (rows, Self { n, b, x, exchanged, .. }) = (a.rows(), self);
        exchanged.fill(b)?;
        by_blocks(&mut x[..*n], |i, x| *x = polynomial(rows, steps, b, i));
        Ok(())
    }

    /// Smooths from the x that is there.
    fn smooth(&mut self, a: &Sparse, steps: &[Step; 2]) -> Result<()> {
        self.residual(a)?;
        let (rows, Self { n, x, r, exchanged, .. }) = (a.rows(), self);
        exchanged.fill(r)?;
        by_blocks(&mut x[..*n], |i, x| *x += polynomial(rows, steps, r, i));
        Ok(())
    }
}

/// x = M⁻¹ b of the first of these levels.
///
/// # Errors
/// A failed process.
pub(super) fn cycle(levels: &[Level], coarsest: &Coarsest, vectors: &mut [Vectors]) -> Result<()> {
    let Some((Level { a, steps, p, restriction }, rest)) = levels.split_first() else {
        match (coarsest, vectors) {
            (Coarsest::Exact(dense), [own, ..]) => dense.solve(&own.b, &mut own.x),
            (Coarsest::Smoothed(a, steps), [own, ..]) => own.smooth_from_zero(a, steps)?,
            (Coarsest::Lattice(tables), all) => tables.cycle(all),
            (_, []) => {}
        }
        return Ok(());
    };
    let [own, below @ ..] = vectors else { return Ok(()) };
    own.smooth_from_zero(a, steps)?;
    own.residual(a)?;
    if let [next, ..] = below {
        own.exchanged.fill(&mut own.r)?;
        next.set_b(|i| restriction.rows().times(i, &own.r))?;
        cycle(rest, coarsest, below)?;
    }
    if let [next, ..] = below {
        next.exchanged.fill(&mut next.x)?;
        let (p, e) = (p.rows(), &next.x);
        by_blocks(&mut own.x[..own.n], |i, x| *x += p.times(i, e));
    }
    own.smooth(a, steps)
}

/// Element i of q(A) r, the sum of two weighted steps from 0: d₁ = c₁ r, d₂ = k d₁ + c₂ (r − A d₁).
#[inline]
fn polynomial(a: Rows<'_>, [first, second]: &[Step; 2], r: &[f32], i: usize) -> f32 {
    let of_first = first.add * r[i];
    let of_second = second.keep * of_first + second.add * (r[i] - first.add * a.times(i, r));
    first.weight * of_first + second.weight * of_second
}

/// Sets the elements of a vector, by all threads.
fn by_blocks(v: &mut [f32], set: impl Fn(usize, &mut f32) + Sync + Send) {
    v.par_chunks_mut(BLOCK).enumerate().for_each(|(k, v)| {
        for (i, v) in (k * BLOCK..).zip(v) {
            set(i, v);
        }
    });
}
