//! How a preconditioner is applied by a method that is a function.

use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

use crate::backend::LinearOperator;
use crate::backend::machine::Machine;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::OWN;
use crate::error::Result;
use crate::precond::OnRank;
use crate::precond::given::Given;

/// M⁻¹ on a rank.
pub(crate) enum Application<O: PassBackend> {
    /// By a text, which may multiply by the operators,
    Text(Machine<O>),
    /// by kernels of its own,
    OnRank(Box<dyn OnRank<O>>),
    /// or on the host by the caller's own, for the rank's rows.
    Given(Arc<Given>, Range<usize>),
}

impl<O: PassBackend> Application<O> {
    /// What has kernels of its own.
    pub(crate) fn on_rank(&mut self) -> Option<&mut dyn OnRank<O>> {
        match self {
            Self::OnRank(m) => Some(&mut **m),
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
        }
    }
}
