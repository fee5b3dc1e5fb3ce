//! Which process the library works in: threads and devices don't come along when it forks.

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The process that has begun to use the library; 0 if none has.
static USER: AtomicU32 = AtomicU32::new(0);

/// To be called before anything that may start threads or open devices.
///
/// # Errors
/// `RuntimeError` in a process that was forked from one that did: it would wait for threads that are not there.
pub(crate) fn enter() -> PyResult<()> {
    if is_forked() {
        return Err(PyRuntimeError::new_err(
            "this process was forked from one that has used declive, whose threads and devices are not here; start processes by \
             multiprocessing.get_context('spawn'), or before declive is used",
        ));
    }
    Ok(())
}

/// Whether this process was forked from one that has used the library.
pub(crate) fn is_forked() -> bool {
    let own = id();
    matches!(USER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed), Err(user) if user != own)
}
