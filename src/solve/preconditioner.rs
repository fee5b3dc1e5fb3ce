//! A preconditioner alone, for methods of the caller's own.

use std::fmt;
use std::sync::Arc;

use super::chain::check_precond;
use super::facts::Facts;
use super::session::check_levels;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::stats::Stats;
use crate::precond::on_host::{MatrixKind, OnHost};
use crate::precond::{HostPreconditioner, Precond};
use crate::runtime::Setup;

/// M⁻¹ for a matrix, made and applied on the host: for a method that the caller has, or for [`Solver::with_preconditioner`](super::Solver::with_preconditioner)
/// of a matrix nearby.
///
/// ```
/// use declive::matrix::gallery;
/// use declive::solve::{Precond, Preconditioner};
/// use declive::{HostPreconditioner, Setup};
///
/// # fn main() -> declive::Result<()> {
/// let a = gallery::poisson2d([30, 30])?;
/// let m = Preconditioner::new(a, &Setup::default().with_precond(Precond::Amg))?;
/// let (r, mut z) = (vec![1.0; 900], vec![0.0; 900]);
/// m.apply(&r, &mut z);
/// # assert!(z.iter().all(|z| *z > 0.0));
/// # Ok(())
/// # }
/// ```
pub struct Preconditioner {
    n: usize,
    m: OnHost,
}

impl fmt::Debug for Preconditioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preconditioner").field("n", &self.n).finish_non_exhaustive()
    }
}

impl Preconditioner {
    /// Makes it. Of `setup`, the preconditioner, what it has to interpolate, the method that it is for and `assume_symmetric` count. It takes what the set-up of a solve
    /// takes, and an application two products at the most beside a cycle of multigrid.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::Usage`] for one that is no matrix, or not for this matrix or method.
    pub fn new(a: impl Into<Arc<Csr>>, setup: &Setup) -> Result<Self> {
        let (a, precond) = (a.into(), setup.precond);
        let n = a.n_rows();
        if a.n_cols() != n {
            return Err(Error::NotSquare { rows: n, cols: a.n_cols() });
        }
        check_precond(setup)?;
        if let Some(near_null) = &setup.near_null {
            near_null.check(n)?;
        }
        let Facts { is_symmetric, obstacle, stats, .. } = Facts::of(&a, Stats::of(&a), setup, false)?;
        if precond == Precond::Amg {
            check_levels((is_symmetric, obstacle), &stats.diagonal, setup)?;
        }
        let is_definite = is_symmetric && obstacle.is_none();
        let kind = MatrixKind { is_symmetric, is_definite, is_complex: is_real_form(&a) };
        let m = OnHost::new(precond, &a, setup.near_null.as_ref(), kind)?;
        Ok(Self { n, m })
    }

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.n
    }
}

impl HostPreconditioner for Preconditioner {
    /// # Panics
    /// If `r` and `z` have not as many elements as the matrix has rows.
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        assert_eq!((r.len(), z.len()), (self.n, self.n), "elements of r and z");
        if let Err(e) = self.m.apply(r, z) {
            unreachable!("there are no other processes: {e}");
        }
    }
}
