//! The levels of a matrix, made where the cycle is applied: by GPUs, or by the host.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use super::among::SHARED_LEVEL;
use super::{Amg, Hierarchy};
use crate::comm::Processes;
use crate::comm::processes::any;
use crate::distributed::share::Share;
use crate::error::Result;
use crate::matrix::{Csr, blocks};
use crate::precond::near_null::NearNull;

/// A cycle for a matrix, in the order of its ranks.
pub(crate) struct Levels {
    /// The matrix, with zeros where blocks of nodes are not full; of one of several processes, its window.
    pub(crate) a: Csr,
    /// Whether that is what was given.
    pub(super) is_as_given: bool,
    pub(crate) near_null: NearNull,
    /// Where that window is, and its diagonal, with that of others' rows.
    pub(crate) share: Option<(Arc<Share>, Vec<f64>)>,
    on_host: Mutex<Option<Arc<Amg>>>,
    /// Of the levels that a device has.
    on_device: Mutex<Option<Hierarchy>>,
}

impl Levels {
    /// Of a symmetric matrix whose diagonal is positive, with these near-null vectors. None is made yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn new(a: Csr, near_null: NearNull) -> Result<Self> {
        let unknowns = near_null.unknowns();
        let is_as_given = unknowns == 1 || blocks::is_full(&a, unknowns);
        let a = if is_as_given { a } else { blocks::filled(&a, unknowns)? };
        Ok(Self { a, is_as_given, near_null, share: None, on_host: Mutex::default(), on_device: Mutex::default() })
    }

    /// The same of several processes, of which this one has a window; no node is cut, and none has blocks that are not full. What is near the null
    /// space are constants. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn among(share: &Arc<Share>, a: Csr, near_null: NearNull) -> Result<Self> {
        let mut diagonal = a.diagonal();
        share.fill(&mut diagonal)?;
        let (share, on_host, on_device) = (Some((Arc::clone(share), diagonal)), Mutex::default(), Mutex::default());
        Ok(Self { a, is_as_given: true, near_null, share, on_host, on_device })
    }

    /// The number of a row of the matrix among those of all processes; rows and entries of all.
    pub(crate) fn among_all(&self, row: usize) -> (usize, (usize, usize)) {
        match &self.share {
            Some((share, _)) => (share.row_before(row) as usize, (share.n as usize, share.nnz as usize)),
            None => (row, (self.a.n_rows(), self.a.nnz())),
        }
    }

    /// The diagonal of the matrix; of a window, with that of others' rows.
    pub(super) fn diagonal(&self) -> Cow<'_, [f64]> {
        match &self.share {
            Some((_, diagonal)) => diagonal.into(),
            None => self.a.diagonal().into(),
        }
    }

    /// Those on the host, made now if they are not there.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn on_host(&self) -> Result<Arc<Amg>> {
        let mut on_host = self.on_host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*on_host {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(match &self.share {
            Some((share, diagonal)) => Amg::among(share, (&self.a, diagonal), self.near_null.unknowns(), SHARED_LEVEL)?,
            None => Amg::of(&self.a, &self.near_null),
        });
        Ok(Arc::clone(on_host.insert(made)))
    }

    /// Forgets those of devices, which are to be opened anew, and those on the host unless all processes have made theirs. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn begin_anew(&self, processes: &dyn Processes) -> Result<()> {
        *self.on_device.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut on_host = self.on_host.lock().unwrap_or_else(PoisonError::into_inner);
        if any(processes, on_host.is_none())? {
            *on_host = None;
        }
        Ok(())
    }

    /// A device has them: these.
    pub(crate) fn are_on_device(&self, hierarchy: Hierarchy) {
        *self.on_device.lock().unwrap_or_else(PoisonError::into_inner) = Some(hierarchy);
    }

    /// Makes them on the host, if no device has them; their numbers. Collective if several processes share them.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn prepare(&self) -> Result<Hierarchy> {
        let on_device = self.on_device.lock().unwrap_or_else(PoisonError::into_inner).clone();
        on_device.map_or_else(|| Ok(self.on_host()?.hierarchy().clone()), Ok)
    }

    /// z = M⁻¹ r.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn apply(&self, r: &[f64], z: &mut [f64]) -> Result<()> {
        self.on_host()?.apply(r, z)
    }
}
