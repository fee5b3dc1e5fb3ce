//! The levels of a matrix, made where the cycle is applied: by a device that works alone, or by the host.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Amg, Hierarchy};
use crate::matrix::Csr;
use crate::precond::given::HostPreconditioner;

/// A cycle for a matrix, in the order of its ranks.
pub(crate) struct Levels {
    pub(crate) a: Csr,
    on_host: OnceLock<Amg>,
    /// Of the levels that a device has.
    on_device: Mutex<Option<Hierarchy>>,
}

impl Levels {
    /// Of a symmetric matrix whose diagonal is positive. None is made yet.
    pub(crate) fn new(a: Csr) -> Self {
        Self { a, on_host: OnceLock::new(), on_device: Mutex::default() }
    }

    /// Those on the host, made now if they are not there.
    pub(super) fn on_host(&self) -> &Amg {
        self.on_host.get_or_init(|| Amg::of(&self.a))
    }

    /// A device has them: these.
    pub(super) fn are_on_device(&self, hierarchy: Hierarchy) {
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
