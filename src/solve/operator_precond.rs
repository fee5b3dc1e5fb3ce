//! What the preconditioner of a matrix without entries is made from.

use std::sync::Arc;

use super::any_operator::Operator;
use crate::device::Info;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::operator::distributed::AuxiliarySpace;
use crate::precond::amg::levels::Levels;
use crate::precond::given::Given;
use crate::precond::{Needs, Precond};
use crate::runtime::{OfPreconditioner, Setup};
use crate::solve::NearNull;

/// A preconditioner of the caller's own, or a matrix of the caller's to make one from.
#[derive(Debug, Clone, Default)]
pub(super) struct Brought {
    pub(super) given: Option<Arc<Given>>,
    pub(super) matrix: Option<Csr>,
}

impl Brought {
    /// What ranks on these devices need for the preconditioner of `a`.
    ///
    /// # Errors
    /// [`Error::Usage`] for a preconditioner that needs entries where there are none; what may be wrong with them.
    pub(super) fn for_ranks(
        &self,
        a: &Operator<'_>,
        setup: &Setup,
        devices: &[Option<Info>],
    ) -> Result<OfPreconditioner> {
        let a = a.to_ranks();
        let Setup { method, precond, ref near_null, .. } = *setup;
        let of_given = OfPreconditioner { given: self.given.clone(), ..OfPreconditioner::default() };
        if precond.is_diagonal() {
            let of_matrix = || self.matrix.as_ref().map(Csr::diagonal);
            let diagonal = a.diagonal().or_else(of_matrix).unwrap_or_default();
            return Ok(OfPreconditioner { diagonal, ..of_given });
        }
        if self.given.is_some() || !method.applies(precond) {
            return Ok(of_given);
        }
        let diagonal = a.diagonal().unwrap_or_default();
        match precond {
            Precond::Amg => {
                let of_caller = self.matrix.clone().map(|matrix| AuxiliarySpace { matrix, interpolation: None });
                let space = of_caller.map_or_else(|| a.auxiliary_space(), |space| Ok(Some(space)))?;
                let Some(AuxiliarySpace { matrix, interpolation }) = space else { return Err(no_entries(precond)) };
                let near_null = near_null.clone().unwrap_or_else(|| NearNull::of_matrix(&matrix));
                let given = Given::of_levels(Levels::new(matrix, near_null, true)?);
                let matrices = match interpolation {
                    Some(p) => vec![p.transposed()?, p],
                    None => Vec::new(),
                };
                Ok(OfPreconditioner {
                    is_through: !matrices.is_empty(),
                    matrices,
                    diagonal,
                    given: Some(Arc::new(given)),
                })
            }
            Precond::BlockJacobi | Precond::Fsai | Precond::Ilu0 => {
                let of_operator = match (&self.matrix, precond) {
                    (None, Precond::BlockJacobi) => a.block_diagonal()?,
                    _ => None,
                };
                let entries = self.matrix.as_ref().or(of_operator.as_ref()).ok_or_else(|| no_entries(precond))?;
                let unknowns = near_null.as_ref().map(NearNull::unknowns);
                let needs = Needs { is_definite: method.needs_symmetric(), is_complex: false, unknowns };
                let matrices = precond.matrices(entries, 1.0, needs, devices.iter().flatten())?;
                Ok(OfPreconditioner { matrices, diagonal, ..of_given })
            }
            _ => Ok(OfPreconditioner { diagonal, ..of_given }),
        }
    }
}

fn no_entries(precond: Precond) -> Error {
    Error::Usage(format!(
        "an operator without a matrix has no entries for precond = {precond}; give it a matrix nearby (OperatorSolver::with_matrix), or use precond = jacobi"
    ))
}
