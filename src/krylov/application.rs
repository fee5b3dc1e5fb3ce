//! How a preconditioner is applied by a method that is a function.

use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

use crate::backend::LinearOperator;
use crate::backend::machine::{Machine, largest_halo};
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{OF_PRECONDITIONER, OWN};
use crate::error::Result;
use crate::precond::OnRank;
use crate::precond::given::Given;
use crate::real::Real;

/// M⁻¹ on a rank.
pub(crate) enum Application<O: PassBackend> {
    /// By a text, which may multiply by the operators,
    Text(Machine<O>),
    /// by kernels of its own,
    OnRank(Box<dyn OnRank<O>>),
    /// on the host by the caller's own, for the rank's rows,
    Given(Arc<Given>, Range<usize>),
    /// or through another space.
    Through(Box<Through<O>>),
}

/// M⁻¹ = D⁻¹ + P C⁻¹ Pᵀ, where C has an application of its own: the auxiliary space method (J. Xu, Computing 56 (1996), doi 10.1007/BF02238513).
/// Pᵀ and P are the operators behind A.
pub(crate) struct Through<O: PassBackend> {
    /// The diagonal of D⁻¹.
    diagonal: O::Vector,
    c: Application<O>,
    /// Pᵀ r, and C⁻¹ of that.
    inner: [O::Vector; 2],
    scaled: O::Vector,
}

impl<O: PassBackend> Through<O> {
    /// `diagonal` is the inverse of that of A, for the rank's rows.
    ///
    /// # Errors
    /// Not enough memory on the device.
    pub(crate) fn new(
        backend: &O,
        operators: &[impl LinearOperator<O>],
        diagonal: &[f64],
        c: Application<O>,
    ) -> Result<Self> {
        let diagonal: Vec<O::Real> = diagonal.iter().map(|&d| O::Real::from_f64(d)).collect();
        let vector = || backend.vector(largest_halo(operators), "the auxiliary space");
        Ok(Self {
            diagonal: backend.shared_vector(&diagonal, 0, "the diagonal")?,
            c,
            inner: [vector()?, vector()?],
            scaled: vector()?,
        })
    }

    fn apply(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        r: &mut O::Vector,
        z: &mut O::Vector,
    ) -> Result<()> {
        let Self { diagonal, c, inner: [g, h], scaled } = self;
        operators[OF_PRECONDITIONER].apply(backend, r, g)?; //      g = Pᵀ r
        c.apply(backend, operators, g, h)?; //                      h = C⁻¹ g
        operators[OF_PRECONDITIONER + 1].apply(backend, h, z)?; //  z = P h
        backend.multiply(diagonal, r, scaled)?;
        backend.axpy(1.0, scaled, z) //                             z += D⁻¹ r
    }
}

impl<O: PassBackend> Application<O> {
    /// What has kernels of its own.
    pub(crate) fn on_rank(&mut self) -> Option<&mut dyn OnRank<O>> {
        match self {
            Self::OnRank(m) => Some(&mut **m),
            Self::Through(m) => m.c.on_rank(),
            Self::Text(_) | Self::Given(..) => None,
        }
    }

    /// to = M⁻¹ from; both have room for a halo.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(super) fn apply(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        from: &mut O::Vector,
        to: &mut O::Vector,
    ) -> Result<()> {
        match self {
            Self::Text(machine) => {
                let mut lend = |machine: &mut Machine<O>| {
                    swap(&mut machine.v[OWN], from);
                    swap(&mut machine.v[OWN + 1], to);
                };
                lend(machine);
                let applied = machine.apply_once(backend, operators);
                lend(machine);
                applied
            }
            Self::OnRank(m) => m.apply(from, to),
            Self::Given(m, rows) => {
                let [mut r, mut z] = [vec![O::Real::default(); rows.len()], vec![O::Real::default(); rows.len()]];
                backend.read(from, &mut r)?;
                m.apply(backend.comm(), rows, &r, &mut z)?;
                backend.write(&z, to)
            }
            Self::Through(m) => m.apply(backend, operators, from, to),
        }
    }
}
