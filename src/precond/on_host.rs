//! M⁻¹ of a whole matrix, made and applied on the host, for methods of whoever asks for it.

use std::sync::Arc;

use rayon::prelude::*;

use super::amg::levels::Levels;
use super::chebyshev::Chebyshev;
use super::{NearNull, Needs, Precond, Rows};
use crate::comm::Alone;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::memory::copy;

/// How M⁻¹ is applied.
pub(crate) enum OnHost {
    /// By its diagonal.
    Diagonal(Vec<f64>),
    /// By a cycle of multigrid.
    Cycle(Box<Levels>),
    /// By products with these matrices, one after the other.
    Products(Vec<Csr>),
    /// By a polynomial of the matrix.
    Polynomial(Arc<Csr>, Chebyshev),
}

/// What is known of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixKind {
    pub(crate) is_symmetric: bool,
    /// Whether M has to be symmetric and positive definite.
    pub(crate) is_definite: bool,
    /// Whether it is the real form of a complex one.
    pub(crate) is_complex: bool,
}

impl OnHost {
    /// That of a square matrix. `near_null` is for multigrid, and its unknowns of a node for blocks.
    ///
    /// # Errors
    /// What may be wrong with the matrix; [`Error::Usage`] for a transversal, which is no M.
    pub(crate) fn new(
        precond: Precond,
        a: &Arc<Csr>,
        near_null: Option<&NearNull>,
        MatrixKind { is_symmetric, is_definite, is_complex }: MatrixKind,
    ) -> Result<Self> {
        let rows = || Rows::Matrix(Arc::clone(a), 0..a.n_rows(), 1.0);
        Ok(match precond {
            Precond::None => Self::Products(Vec::new()),
            Precond::Jacobi => Self::Diagonal(rows().diagonal().into_par_iter().map(f64::recip).collect()),
            Precond::Amg => {
                let found = || if is_symmetric { NearNull::of_matrix(a) } else { NearNull::default() };
                let near_null = near_null.cloned().unwrap_or_else(found);
                let levels = Levels::new(Csr::clone(a), near_null, is_symmetric)?;
                levels.prepare()?;
                Self::Cycle(Box::new(levels))
            }
            Precond::BlockJacobi | Precond::Fsai | Precond::Ilu0 => {
                let needs = Needs { is_definite, is_complex, unknowns: near_null.map(NearNull::unknowns) };
                Self::Products(precond.matrices(a, 1.0, needs, [])?)
            }
            Precond::Chebyshev => {
                let polynomial = Chebyshev::set_up::<f64>(&rows(), &Alone::default())?;
                Self::Polynomial(Arc::clone(a), polynomial)
            }
            Precond::Transversal => {
                return Err(Error::Usage(
                    "precond = transversal moves and scales the system, and is no matrix to multiply by; use precond = ilu0".into(),
                ));
            }
        })
    }

    /// z = M⁻¹ r.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn apply(&self, r: &[f64], z: &mut [f64]) -> Result<()> {
        match self {
            Self::Diagonal(inverse) => {
                z.par_iter_mut().zip(r).zip(inverse).with_min_len(1 << 14).for_each(|((z, r), d)| *z = d * r);
            }
            Self::Cycle(levels) => levels.apply(r, z)?,
            Self::Products(matrices) => match matrices.split_first() {
                None => copy(r, z),
                Some((first, others)) => {
                    let product = others.iter().fold(first.mul_vec(r), |v, matrix| matrix.mul_vec(&v));
                    copy(&product, z);
                }
            },
            Self::Polynomial(a, polynomial) => polynomial.apply_on_host(a, r, z),
        }
        Ok(())
    }
}
