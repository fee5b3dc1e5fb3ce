//! A preconditioner that the caller has.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::amg::Hierarchy;
use super::amg::levels::Levels;
use crate::comm::Communicator;
use crate::error::Result;
use crate::matrix::reorder::Permutation;
use crate::memory::copy;
use crate::real::Real;

/// M ≈ A of the caller's own, whose inverse is applied on the host: a multigrid cycle of another library, say, factors of a matrix nearby,
/// or some iterations of another method. A function of r and z is one, too.
///
/// For [`Method::Cg`](crate::solve::Method::Cg), M should be symmetric and positive definite, or nearly so. It may be another one each time.
pub trait HostPreconditioner: Send + Sync {
    /// z = M⁻¹ r: all elements of the system, in the order that its matrix is given in. What is in `z` before has no meaning.
    ///
    /// It is called before the first iteration, and in each, by one thread at a time, which may be another one each time.
    fn apply(&self, r: &[f64], z: &mut [f64]);
}

impl<F: Fn(&[f64], &mut [f64]) + Send + Sync> HostPreconditioner for F {
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        self(r, z);
    }
}

/// It, and what the ranks exchange for it.
pub(crate) struct Given {
    m: Kind,
    /// The order of the rows on the ranks, if it is not that given.
    order: Option<Permutation>,
    shared: Mutex<Shared>,
}

enum Kind {
    /// The caller's.
    Function(Arc<dyn HostPreconditioner>),
    /// A multigrid cycle.
    Levels(Box<Levels>),
}

/// What the ranks of this process have.
struct Shared {
    /// r, then z, in the order of the ranks.
    v: Vec<f64>,
    /// What their matrix is multiplied by: a power of two.
    factor: f64,
}

impl Shared {
    fn of(n: usize) -> Mutex<Self> {
        Mutex::new(Self { v: vec![0.0; n], factor: 1.0 })
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

impl Given {
    /// For a system of `n` rows.
    pub(crate) fn new(m: Arc<dyn HostPreconditioner>, n: usize, order: Option<Permutation>) -> Self {
        Self { m: Kind::Function(m), order, shared: Shared::of(n) }
    }

    /// A multigrid cycle for a matrix in the order of the ranks.
    pub(crate) fn of_levels(levels: Levels) -> Self {
        let n = levels.a.n_rows();
        Self { m: Kind::Levels(Box::new(levels)), order: None, shared: Shared::of(n) }
    }

    /// The levels, if it is a multigrid cycle.
    pub(crate) fn levels(&self) -> Option<&Levels> {
        match &self.m {
            Kind::Levels(levels) => Some(levels),
            Kind::Function(_) => None,
        }
    }

    /// Makes the levels of a multigrid cycle on the host, if no device has; their numbers.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn prepare(&self) -> Result<Option<Hierarchy>> {
        self.levels().map(Levels::prepare).transpose()
    }

    /// From now on the ranks' matrix is `factor` times A.
    pub(crate) fn set_factor(&self, factor: f64) {
        self.shared().factor = factor;
    }

    /// What the caller gave.
    pub(crate) fn preconditioner(&self) -> Option<Arc<dyn HostPreconditioner>> {
        match &self.m {
            Kind::Function(m) => Some(Arc::clone(m)),
            Kind::Levels(_) => None,
        }
    }

    /// z = (factor M)⁻¹ r of a rank's rows; all ranks call this. 16 bytes a row to and from each, and what M takes.
    ///
    /// # Errors
    /// A failed rank.
    pub(crate) fn apply<T: Real>(
        &self,
        comm: &dyn Communicator<T>,
        rows: &Range<usize>,
        r: &[T],
        z: &mut [T],
    ) -> Result<()> {
        self.shared().v[rows.clone()].iter_mut().zip(r).for_each(|(to, r)| *to = r.to_f64());
        comm.sum(&mut [])?; // all of r is there
        if comm.is_first_of_process() {
            self.apply_to_all(&mut self.shared())?;
        }
        comm.sum(&mut [])?; // and all of z
        self.shared().v[rows.clone()].iter().zip(z).for_each(|(from, z)| *z = T::from_f64(*from));
        Ok(())
    }

    fn apply_to_all(&self, Shared { v, factor }: &mut Shared) -> Result<()> {
        let mut z = vec![0.0; v.len()];
        match (&self.m, &self.order) {
            (Kind::Levels(levels), _) => {
                levels.apply(v, &mut z)?;
                copy(&z, v);
            }
            (Kind::Function(m), Some(order)) => {
                let mut r = vec![0.0; v.len()];
                order.undo_into(v, &mut r);
                m.apply(&r, &mut z);
                copy(&order.apply(&z), v);
            }
            (Kind::Function(m), None) => {
                m.apply(v, &mut z);
                copy(&z, v);
            }
        }
        if *factor != 1.0 {
            let unit = factor.recip();
            v.par_iter_mut().with_min_len(1 << 14).for_each(|z| *z *= unit);
        }
        Ok(())
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
