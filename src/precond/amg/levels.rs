//! The levels of a matrix, made where the cycle is applied: by GPUs, or by the host.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Amg, Hierarchy};
use crate::error::Result;
use crate::matrix::{Csr, blocks};
use crate::precond::given::HostPreconditioner;
use crate::precond::near_null::NearNull;

/// A cycle for a matrix, in the order of its ranks.
pub(crate) struct Levels {
    /// The matrix, with zeros where blocks of nodes are not full.
    pub(crate) a: Csr,
    /// Whether that is what was given.
    pub(super) is_as_given: bool,
    pub(super) near_null: NearNull,
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
        Ok(Self { a, is_as_given, near_null, on_host: OnceLock::new(), on_device: Mutex::default() })
    }

    /// Those on the host, made now if they are not there.
    pub(super) fn on_host(&self) -> &Amg {
        self.on_host.get_or_init(|| Amg::of(&self.a, &self.near_null))
    }

    /// A device has them: these.
    pub(crate) fn are_on_device(&self, hierarchy: Hierarchy) {
        *self.on_device.lock().unwrap_or_else(PoisonError::into_inner) = Some(hierarchy);
    }

    /// Makes them on the host, if no device has them; their numbers.
    pub(crate) fn prepare(&self) -> Hierarchy {
        let on_device = self.on_device.lock().unwrap_or_else(PoisonError::into_inner).clone();
        on_device.unwrap_or_else(|| self.on_host().hierarchy().clone())
    }
}

impl HostPreconditioner for Levels {
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        self.on_host().apply(r, z);
    }
}
