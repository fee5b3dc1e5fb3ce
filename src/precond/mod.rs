//! Preconditioners M ≈ A whose inverse is cheap to apply: symmetric and positive definite for methods that need it.
//!
//! A preconditioner is set up once for the rows of a rank, and then says in a method's own vocabulary how it is applied: so its
//! application is fused with the method's passes. The diagonal is applied by a [`scaling`] of the system wherever a method lets that
//! be, as an iteration then multiplies by nothing. Some multiply by matrices of their own, which are made for all rows together: each is then
//! a further operator of the ranks.

pub(crate) mod amg;
mod block_jacobi;
mod chebyshev;
mod dense;
mod fsai;
pub(crate) mod given;
mod ilu;
pub(crate) mod near_null;
pub(crate) mod on_host;
pub(crate) mod scaling;

use self::chebyshev::Chebyshev;
pub use amg::{Hierarchy, LevelInfo};
pub use given::HostPreconditioner;
use near_null::MOST_VECTORS;
pub use near_null::NearNull;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::backend::Backend;
use crate::backend::text::{Preconditioner, Recorder, Scalar, Vector};
use crate::comm::Communicator;
use crate::device::Info;
use crate::error::Result;
use crate::matrix::Csr;
use crate::named::named;

named! {
    /// The preconditioner.
    Precond, "preconditioner":
    None = "none", "No preconditioner.";
    Jacobi = "jacobi", "The inverse of the diagonal: the system is scaled by it, or the residual multiplied by it.";
    Amg = "amg", "A cycle of algebraic multigrid by smoothed aggregation, for positive definite matrices, and others near M-matrices. For cg and gmres.";
    BlockJacobi = "block-jacobi", "The inverses of blocks of neighbouring rows on the diagonal: of the unknowns of a point, or else of 4 rows.";
    Fsai = "fsai", "A factorised sparse approximate inverse, for positive definite matrices: two products. For cg, cg-textbook and minres.";
    Ilu0 = "ilu0", "Incomplete LU factors in the pattern of the matrix, by approximations of their inverses: two products. For bicgstab, bicgstab2, idr and gmres.";
    Chebyshev = "chebyshev", "A polynomial of degree 3 of the matrix, for positive definite ones: two products more. For cg and cg-textbook.";
    Transversal = "transversal", "Rows are permuted so that the diagonal has the largest product, and rows and columns scaled so that it is about 1; then jacobi. For bicgstab, bicgstab2 and idr.";
}

/// What a method needs of M.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// That it is symmetric and positive definite.
    pub(crate) is_definite: bool,
    /// That it is the real form of a complex matrix, as A is.
    pub(crate) is_complex: bool,
    /// Unknowns of a node, if they are told.
    pub(crate) unknowns: Option<usize>,
}

/// M⁻¹ where a rank's vectors are, in kernels of its own.
pub(crate) trait OnRank<O: Backend>: Send {
    /// From now on that is what leads to the other ranks.
    fn connect(&mut self, comm: Box<dyn Communicator<f32>>);

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
    /// Those of a function, of which nothing is known but the diagonal D, and a bound of the largest eigenvalue of D⁻¹ A.
    Function(Vec<f64>, f64),
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
            Self::Function(diagonal, _) => diagonal.par_iter().map(|d| or(*d, || 1.0)).collect(),
        }
    }
}

/// `d`, or another number if that is 0.
fn or(d: f64, other: impl FnOnce() -> f64) -> f64 {
    if d == 0.0 { other() } else { d }
}

/// Matrices whose numbers are rounded to single precision, unless that has no room for them: formats then store four bytes of each, and an
/// approximation doesn't tell the difference.
fn in_single(matrices: [Csr; 2]) -> Vec<Csr> {
    let has_room = |v: &f64| *v == 0.0 || (1e-30..1e30).contains(&v.abs());
    let round = |a: Csr| match a.values().par_iter().all(has_room) {
        true => a.with_values(a.values().par_iter().map(|v| f64::from(*v as f32)).collect()),
        false => a,
    };
    matrices.map(round).into()
}

impl Precond {
    /// Whether M is diagonal, but for an order of the rows, so that a scaling of the system does what it does.
    pub(crate) fn is_diagonal(self) -> bool {
        matches!(self, Self::Jacobi | Self::Transversal)
    }

    /// Whether its application has products: with A, or with matrices of its own.
    pub(crate) fn multiplies(self) -> bool {
        matches!(self, Self::BlockJacobi | Self::Fsai | Self::Ilu0 | Self::Chebyshev)
    }

    /// The matrices of its own that it multiplies by, for `factor` times a matrix that a method needs it for. One of these devices may make
    /// them.
    ///
    /// # Errors
    /// What may be wrong with the matrix.
    pub(crate) fn matrices<'a>(
        self,
        a: &Csr,
        factor: f64,
        needs: Needs,
        devices: impl IntoIterator<Item = &'a Info>,
    ) -> Result<Vec<Csr>> {
        Ok(match self {
            Self::BlockJacobi => vec![block_jacobi::inverse(a, factor, needs)?],
            Self::Fsai => in_single(fsai::factors(a, factor, fsai::USUAL, devices)?),
            Self::Ilu0 => in_single(ilu::inverses(a, factor, ilu::USUAL)?),
            Self::None | Self::Jacobi | Self::Amg | Self::Chebyshev | Self::Transversal => Vec::new(),
        })
    }

    /// The most entries of each of them, or about that, for a matrix with so many rows and entries.
    pub(crate) fn most_entries(self, rows: u64, entries: u64) -> Vec<u64> {
        match self {
            Self::BlockJacobi => vec![MOST_VECTORS as u64 * rows],
            Self::Fsai => vec![entries.min((fsai::USUAL.entries as u64 + 1) * rows); 2],
            Self::Ilu0 => vec![entries.min((ilu::USUAL.entries as u64 + 1) * rows); 2],
            Self::None | Self::Jacobi | Self::Amg | Self::Chebyshev | Self::Transversal => Vec::new(),
        }
    }

    /// Sets it up for the rows of a rank, together with the others that `comm` leads to. None if M is a multiple of 1.
    ///
    /// # Errors
    /// A failing rank.
    pub(crate) fn set_up<T>(self, rows: &Rows, comm: &dyn Communicator<T>) -> Result<Option<Arc<dyn Preconditioner>>> {
        match self {
            Self::None | Self::Amg | Self::Transversal => Ok(None),
            Self::Chebyshev => Ok(Some(Arc::new(Chebyshev::set_up(rows, comm)?))),
            Self::BlockJacobi | Self::Fsai | Self::Ilu0 => Ok(self.shape()),
            Self::Jacobi => Ok(Jacobi::set_up(rows, comm)?.map(|jacobi| Arc::new(jacobi) as Arc<dyn Preconditioner>)),
        }
    }

    /// One like it, for no rows: to see what its application takes.
    pub(crate) fn shape(self) -> Option<Arc<dyn Preconditioner>> {
        match self {
            Self::None | Self::Amg | Self::Transversal => None,
            Self::Chebyshev => Some(Arc::new(Chebyshev::default())),
            Self::BlockJacobi => Some(Arc::new(OneProduct)),
            Self::Fsai => Some(Arc::new(TwoProducts { are_transposes: true })),
            Self::Ilu0 => Some(Arc::new(TwoProducts { are_transposes: false })),
            Self::Jacobi => Some(Arc::new(Jacobi::default())),
        }
    }
}

/// M⁻¹ is a matrix.
#[derive(Debug)]
struct OneProduct;

impl Preconditioner for OneProduct {
    fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
        Vec::new()
    }

    fn apply<'k>(&self, k: &'k Recorder, _: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) {
        z.set(k.of_preconditioner(0) * r);
    }
}

/// M⁻¹ is the product of two matrices, the second one times the first one.
#[derive(Debug)]
struct TwoProducts {
    /// Whether they are G and Gᵀ, so that r·z = ‖G r‖².
    are_transposes: bool,
}

impl Preconditioner for TwoProducts {
    fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
        Vec::new()
    }

    fn between(&self) -> Vec<&'static str> {
        vec!["g"]
    }

    fn apply<'k>(&self, k: &'k Recorder, vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) {
        let [g, ..] = vectors else { return };
        g.set(k.of_preconditioner(0) * r);
        if self.are_transposes {
            g.dot(*g); // which the product leaves
        }
        z.set(k.of_preconditioner(1) * *g);
    }

    fn dot<'k>(&self, vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) -> Scalar<'k> {
        match vectors {
            [g, ..] if self.are_transposes => g.dot(*g),
            _ => r.dot(z),
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
