//! Preconditioners M ≈ A, symmetric and positive definite, whose inverse is cheap to apply.
//!
//! A preconditioner is set up once for the rows of a rank, and then says in a method's own vocabulary how it is applied: so its
//! application is fused with the method's passes. The diagonal is applied by a [`scaling`] of the system wherever a method lets that
//! be, as an iteration then multiplies by nothing.

pub(crate) mod amg;
pub(crate) mod given;
pub(crate) mod near_null;
pub(crate) mod scaling;

pub use amg::{Hierarchy, LevelInfo};
pub use given::HostPreconditioner;
pub use near_null::NearNull;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::backend::Backend;
use crate::backend::text::{Preconditioner, Recorder, Vector};
use crate::comm::Communicator;
use crate::error::Result;
use crate::matrix::Csr;
use crate::named::named;

named! {
    /// The preconditioner.
    Precond, "preconditioner":
    None = "none", "No preconditioner.";
    Jacobi = "jacobi", "The inverse of the diagonal: the system is scaled by it, or the residual multiplied by it.";
    Amg = "amg", "A cycle of algebraic multigrid by smoothed aggregation, for positive definite matrices. For cg and gmres.";
    Transversal = "transversal", "Rows are permuted so that the diagonal has the largest product, and rows and columns scaled so that it is about 1; then jacobi. For bicgstab, bicgstab2 and idr.";
}

/// M⁻¹ where a rank's vectors are, in kernels of its own.
pub(crate) trait OnRank<O: Backend>: Send {
    /// to = M⁻¹ from.
    ///
    /// # Errors
    /// A failing device.
    fn apply(&mut self, from: &O::Vector, to: &mut O::Vector) -> Result<()>;
}

/// The rows of a rank, as a set-up gets them.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    /// Some of a matrix, which is multiplied by a factor.
    Matrix(Arc<Csr>, Range<usize>, f64),
    /// Those of a function, of which nothing is known but the diagonal.
    Function(Vec<f64>),
}

impl Rows {
    /// The diagonal; where it is 0, the largest |a_ij| of the row, or 1.
    fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Matrix(a, rows, factor) => {
                let largest = |row: usize| a.row(row).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                let of_row = |row: usize| factor * or(a.get(row, row).unwrap_or_default(), || largest(row));
                rows.clone().into_par_iter().map(|row| or(of_row(row), || 1.0)).collect()
            }
            Self::Function(diagonal) => diagonal.par_iter().map(|d| or(*d, || 1.0)).collect(),
        }
    }
}

/// `d`, or another number if that is 0.
fn or(d: f64, other: impl FnOnce() -> f64) -> f64 {
    if d == 0.0 { other() } else { d }
}

impl Precond {
    /// Whether M is diagonal, but for an order of the rows, so that a scaling of the system does what it does.
    pub(crate) fn is_diagonal(self) -> bool {
        matches!(self, Self::Jacobi | Self::Transversal)
    }

    /// Sets it up for the rows of a rank, together with the others that `comm` leads to. None if M is a multiple of 1.
    ///
    /// # Errors
    /// A failing rank.
    pub(crate) fn set_up<T>(self, rows: &Rows, comm: &dyn Communicator<T>) -> Result<Option<Arc<dyn Preconditioner>>> {
        match self {
            Self::None | Self::Amg | Self::Transversal => Ok(None),
            Self::Jacobi => Ok(Jacobi::set_up(rows, comm)?.map(|jacobi| Arc::new(jacobi) as Arc<dyn Preconditioner>)),
        }
    }

    /// One like it, for no rows: to see what its application takes.
    pub(crate) fn shape(self) -> Option<Arc<dyn Preconditioner>> {
        match self {
            Self::None | Self::Amg | Self::Transversal => None,
            Self::Jacobi => Some(Arc::new(Jacobi::default())),
        }
    }
}

/// M is the diagonal.
#[derive(Debug, Default)]
pub(crate) struct Jacobi {
    /// That of M⁻¹.
    inverse: Arc<Vec<f64>>,
}

impl Jacobi {
    fn set_up<T>(rows: &Rows, comm: &dyn Communicator<T>) -> Result<Option<Self>> {
        let diagonal = rows.diagonal();
        // one number if all are the same, none where there are no rows
        let own = diagonal.first().copied().unwrap_or(f64::INFINITY);
        let is_one = diagonal.par_iter().all(|d| *d == own);
        let mut of_ranks = comm.gather(if is_one { own } else { f64::NAN })?;
        of_ranks.retain(|d| *d != f64::INFINITY);
        if of_ranks.iter().all(|d| *d == of_ranks[0]) {
            return Ok(None);
        }
        Ok(Some(Self { inverse: Arc::new(diagonal.par_iter().map(|d| d.recip()).collect()) }))
    }
}

impl Preconditioner for Jacobi {
    fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
        vec![("d", Arc::clone(&self.inverse))]
    }

    fn apply<'k>(&self, _: &'k Recorder, vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) {
        z.set(vectors[0].times(r));
    }
}
