//! The levels of a matrix, made where the cycle is applied: by GPUs, or by the host.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::among::SHARED_LEVEL;
use super::{Amg, Hierarchy};
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
    pub(super) near_null: NearNull,
    /// Where that window is.
    pub(crate) share: Option<Arc<Share>>,
    on_host: OnceLock<Amg>,
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
        Ok(Self { a, is_as_given, near_null, share: None, on_host: OnceLock::new(), on_device: Mutex::default() })
    }

    /// The same of several processes, of which this one has a window. A constant is what is near the null space.
    pub(crate) fn among(share: &Arc<Share>, a: Csr) -> Self {
        let (on_host, on_device) = (OnceLock::new(), Mutex::default());
        Self {
            a,
            is_as_given: true,
            near_null: NearNull::default(),
            share: Some(Arc::clone(share)),
            on_host,
            on_device,
        }
    }

    /// Those on the host, made now if they are not there.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn on_host(&self) -> Result<&Amg> {
        if let Some(made) = self.on_host.get() {
            return Ok(made);
        }
        let made = match &self.share {
            Some(share) => Amg::among(share, &self.a, SHARED_LEVEL)?,
            None => Amg::of(&self.a, &self.near_null),
        };
        Ok(self.on_host.get_or_init(|| made))
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
