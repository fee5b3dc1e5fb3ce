//! The first error of any rank, which ends all.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Shared by the ranks of a solve.
#[derive(Debug, Default)]
pub struct Failure {
    failed: AtomicBool,
    first: Mutex<Option<Error>>,
}

impl Failure {
    /// Records a rank's error. The first counts; [`Error::PeerFailed`] is only its echo.
    pub fn report(&self, error: Error) {
        if !matches!(error, Error::PeerFailed) {
            self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The first error, once all ranks have ended.
    pub fn take(&self) -> Option<Error> {
        self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    /// An error if any rank has failed.
    ///
    /// # Errors
    /// [`Error::PeerFailed`].
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) { Err(Error::PeerFailed) } else { Ok(()) }
    }
}
