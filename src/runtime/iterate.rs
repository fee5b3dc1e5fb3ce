//! Where a rank has the right-hand side and the iterate, and how it forms the true residual: in the precision of the
//! iteration, or in double precision beside an iteration in single precision.

use rayon::prelude::*;

use crate::backend::LinearOperator;
use crate::backend::deferred;
use crate::backend::machine::largest_halo;
use crate::backend::text::{MATRIX, TRANSPOSE};
use crate::backend::{Backend, Widens};
use crate::comm::Links;
use crate::error::Result;
use crate::krylov::{Iterate, Workspace};
use crate::partition::NewValues;
use crate::real::Real;

/// All in the precision of the iteration: the iterate is `w.x`.
pub(crate) struct Plain<O: Backend> {
    b: O::Vector,
    kept: O::Vector,
}

impl<O: Backend> Plain<O> {
    /// Allocates it.
    pub(crate) fn new(backend: &O) -> Result<Self> {
        Ok(Self { b: backend.vector(0, "b")?, kept: backend.vector(0, "the first iterate")? })
    }
}

impl<O: Backend<Vector: Send>> Iterate<O> for Plain<O> {
    fn connect(&mut self, backend: &mut O, links: Links) {
        backend.set_comm(O::Real::link(links));
    }

    fn write(&mut self, backend: &O, w: &mut Workspace<O>, b: &[f64], x: &[f64]) -> Result<()> {
        backend.write(&O::Real::scaled(b, 1.0), &mut self.b)?;
        backend.write(&O::Real::scaled(x, 1.0), &mut w.x)
    }

    fn residual(&mut self, backend: &O, a: &impl LinearOperator<O>, w: &mut Workspace<O>) -> Result<Option<f64>> {
        backend.copy(&w.x, &mut w.q)?; // which has room for the halo
        a.residual(backend, &self.b, &mut w.q, &mut w.r)?;
        Ok(None)
    }

    fn keep(&mut self, backend: &O, w: &Workspace<O>) -> Result<()> {
        backend.copy(&w.x, &mut self.kept)
    }

    fn restore(&mut self, backend: &O, w: &mut Workspace<O>) -> Result<()> {
        backend.copy(&self.kept, &mut w.x)
    }

    fn read(&mut self, backend: &O, w: &mut Workspace<O>, x: &mut [f64]) -> Result<()> {
        self.look(backend, w, 0.0, x)
    }

    fn look(&self, backend: &O, w: &Workspace<O>, deferred: f64, x: &mut [f64]) -> Result<()> {
        O::Real::fill(x, |x| read_completed(backend, w, deferred, x))
    }

    fn curvature(&mut self, _: &O, _: &mut Workspace<O>) -> Result<Option<f64>> {
        Ok(None)
    }

    fn takes_columns(&self) -> bool {
        true
    }

    fn stored(&self) -> u64 {
        0
    }
}

/// Gets the owned elements of `w.x`, with what is deferred of it.
fn read_completed<O: Backend>(backend: &O, w: &Workspace<O>, deferred: f64, to: &mut [O::Real]) -> Result<()> {
    backend.read(&w.x, to)?;
    if deferred != 0.0 {
        let [mut p, mut r] = [vec![O::Real::default(); to.len()], vec![O::Real::default(); to.len()]];
        backend.read(&w.p, &mut p)?;
        backend.read(&w.r, &mut r)?;
        deferred::complete(to, &p, &r, deferred);
    }
    Ok(())
}

/// Right-hand side, iterate and residual in double precision, by operations `W` and matrices `B` of their own:
/// reliable updates (Sleijpen and van der Vorst 1996, doi 10.1007/BF02309342; Clark et al. 2010, doi
/// 10.1016/j.cpc.2010.05.002). A run of a method gathers in `w.x` what is to be added to the iterate; the next
/// residual begins with adding it. So the iteration's rounding errors, which are relative to what a run adds, get
/// smaller with the residual; and, of a method that minimises ‖r‖, with Aᵀ r, which is formed here, too.
pub(crate) struct Mixed<W: Backend, B> {
    backend: W,
    /// A, and Aᵀ if the method multiplies by it.
    operators: Vec<B>,
    stored: u64,
    b: W::Vector,
    /// The iterate, with room for its halo.
    x: W::Vector,
    kept: W::Vector,
    r: W::Vector,
    /// Aᵀ r, if it is formed.
    s: Option<W::Vector>,
}

impl<W: Backend, B: LinearOperator<W>> Mixed<W, B> {
    /// Allocates it, for matrices whose rows take `stored` bytes.
    pub(crate) fn new(backend: W, operators: Vec<B>, stored: u64) -> Result<Self> {
        let halo = largest_halo(&operators);
        let b = backend.vector(0, "b")?;
        let x = backend.vector(halo, "x in double precision")?;
        let kept = backend.vector(0, "the first iterate")?;
        let r = backend.vector(halo, "r in double precision")?;
        let s = operators.get(TRANSPOSE).map(|_| backend.vector(0, "Aᵀ r in double precision")).transpose()?;
        Ok(Self { backend, operators, stored, b, x, kept, r, s })
    }
}

impl<O, W, B> Iterate<O> for Mixed<W, B>
where
    O: Backend<Real = f32> + Widens<W>,
    W: Backend<Real = f64, Vector: Send> + Send,
    B: LinearOperator<W> + Send,
{
    fn connect(&mut self, backend: &mut O, links: Links) {
        backend.set_comm(links.single);
        self.backend.set_comm(links.double);
    }

    fn write(&mut self, backend: &O, w: &mut Workspace<O>, b: &[f64], x: &[f64]) -> Result<()> {
        self.backend.write(b, &mut self.b)?;
        backend.add_wide(&mut w.x, &mut self.x)?; // leaves zeros
        self.backend.write(x, &mut self.x)
    }

    fn residual(&mut self, backend: &O, _: &impl LinearOperator<O>, w: &mut Workspace<O>) -> Result<Option<f64>> {
        backend.add_wide(&mut w.x, &mut self.x)?;
        self.operators[MATRIX].residual(&self.backend, &self.b, &mut self.x, &mut self.r)?;
        backend.narrow(&self.r, &mut w.r)?;
        let Some(s) = &mut self.s else { return Ok(None) };
        self.operators[TRANSPOSE].apply(&self.backend, &mut self.r, s)?;
        backend.narrow(s, &mut w.p)?;
        self.backend.dot(s, s).map(Some)
    }

    fn keep(&mut self, _: &O, _: &Workspace<O>) -> Result<()> {
        self.backend.copy(&self.x, &mut self.kept)
    }

    fn restore(&mut self, backend: &O, w: &mut Workspace<O>) -> Result<()> {
        backend.add_wide(&mut w.x, &mut self.x)?; // leaves zeros
        self.backend.copy(&self.kept, &mut self.x)
    }

    fn read(&mut self, backend: &O, w: &mut Workspace<O>, x: &mut [f64]) -> Result<()> {
        backend.add_wide(&mut w.x, &mut self.x)?;
        self.backend.read(&self.x, x)
    }

    fn look(&self, backend: &O, w: &Workspace<O>, deferred: f64, x: &mut [f64]) -> Result<()> {
        self.backend.read(&self.x, x)?;
        let mut added = vec![0.0; x.len()];
        read_completed(backend, w, deferred, &mut added)?;
        x.par_iter_mut().with_min_len(1 << 14).zip(&added).for_each(|(x, d)| *x += f64::from(*d));
        Ok(())
    }

    fn curvature(&mut self, backend: &O, w: &mut Workspace<O>) -> Result<Option<f64>> {
        let Self { backend: wide, operators, x, r, .. } = self;
        wide.write(&vec![0.0; wide.n_owned()], x)?;
        backend.add_wide(&mut w.p, x)?; // where there is room for the halo
        operators[MATRIX].apply(wide, x, r)?;
        let curvature = wide.dot(x, r)?;
        Iterate::<O>::restore(self, backend, w)?;
        Ok(Some(curvature))
    }

    fn take_values(&mut self, values: &NewValues<'_>) -> Result<bool> {
        let [a] = &mut self.operators[..] else { return Ok(false) };
        a.take_values(&self.backend, values)
    }

    fn stored(&self) -> u64 {
        self.stored
    }
}
