//! The errors of ranks, the first of which ends all.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Shared by the ranks of a solve.
#[derive(Debug, Default)]
pub struct Failure {
    failed: AtomicBool,
    errors: Mutex<Vec<(Option<usize>, Error)>>,
}

/// What went wrong on which ranks, in the order of time; on none, if it was before there were any.
#[derive(Debug, Clone)]
pub struct Failed(pub Vec<(Option<usize>, Error)>);

impl From<Error> for Failed {
    /// An error of no rank.
    fn from(error: Error) -> Self {
        Self(vec![(None, error)])
    }
}

impl From<Failed> for Error {
    /// The first error.
    fn from(Failed(errors): Failed) -> Self {
        errors.into_iter().next().map_or(Self::PeerFailed, |(_, error)| error)
    }
}

impl Failure {
    /// Records a rank's error. [`Error::PeerFailed`] is only the echo of another one.
    pub fn report(&self, rank: usize, error: Error) {
        if !matches!(error, Error::PeerFailed) {
            self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((Some(rank), error));
        }
        self.failed.store(true, Ordering::Release);
    }

    /// All errors, once all ranks have ended.
    pub fn take(&self) -> Failed {
        Failed(std::mem::take(&mut self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner())))
    }

    /// An error if any rank has failed.
    ///
    /// # Errors
    /// [`Error::PeerFailed`].
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) { Err(Error::PeerFailed) } else { Ok(()) }
    }
}
