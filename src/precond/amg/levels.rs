//! The levels of a matrix, made where the cycle is applied: by GPUs, or by the host.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::among::SHARED_LEVEL;
use super::lattice::Lattice;
use super::lattice::tables::Tables;
use super::{Amg, FEW_ROWS, Hierarchy};
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
    pub(super) is_symmetric: bool,
    /// Where that window is, and its diagonal, with that of others' rows.
    pub(crate) share: Option<(Arc<Share>, Vec<f64>)>,
    /// Those of the lattice that the rows have, if they do, once that was asked.
    lattice: OnceLock<Option<Arc<Tables>>>,
    on_host: Mutex<Option<Arc<Amg>>>,
    /// Of the levels that a device has.
    on_device: Mutex<Option<Hierarchy>>,
}

impl Levels {
    /// Of a matrix whose diagonal is positive, with these near-null vectors, which are a constant if it is not symmetric. None is made yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn new(a: Csr, near_null: NearNull, is_symmetric: bool) -> Result<Self> {
        let unknowns = near_null.unknowns();
        let is_as_given = unknowns == 1 || blocks::is_full(&a, unknowns);
        let a = if is_as_given { a } else { blocks::filled(&a, unknowns)? };
        let (lattice, on_host, on_device) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Ok(Self { a, is_as_given, near_null, is_symmetric, share: None, lattice, on_host, on_device })
    }

    /// The same of a symmetric matrix of several processes, of which this one has a window; no node is cut, and none has blocks that are not full. What is near the null
    /// space are constants. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn among(share: &Arc<Share>, a: Csr, near_null: NearNull) -> Result<Self> {
        let mut diagonal = a.diagonal();
        share.fill(&mut diagonal)?;
        let share = Some((Arc::clone(share), diagonal));
        let (lattice, on_host, on_device) = (OnceLock::from(None), Mutex::default(), Mutex::default());
        Ok(Self { a, is_as_given: true, near_null, is_symmetric: true, share, lattice, on_host, on_device })
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

    /// Those of a lattice, if the rows of the matrix are such that it has them, and a process has all of them.
    pub(super) fn lattice(&self) -> Option<&Arc<Tables>> {
        let find = || {
            let (start, is_of_use) =
                (Instant::now(), self.is_symmetric && self.near_null.is_constant() && self.a.n_rows() > FEW_ROWS);
            let lattice = Lattice::of(self.a.patterns().filter(|_| is_of_use)?)?;
            let sides = lattice.sides();
            let tables = Arc::new(Tables::of(lattice)?);
            log::info!("amg: levels of a lattice of {sides:?} points, {:?}", start.elapsed());
            Some(tables)
        };
        self.lattice.get_or_init(find).as_ref()
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
            None => match self.lattice() {
                Some(tables) => Amg::of_lattice(&self.a, tables),
                None => Amg::of(&self.a, &self.near_null, self.is_symmetric),
            },
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
