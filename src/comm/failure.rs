//! The errors of ranks, the first of which ends all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::Processes;
use crate::error::{Error, Result};

/// Shared by the ranks of a solve.
#[derive(Default)]
pub struct Failure {
    failed: AtomicBool,
    errors: Mutex<Vec<(Option<usize>, Error)>>,
    /// Other processes, which are told, and whether they go on when a device fails.
    processes: Option<(Arc<dyn Processes>, bool)>,
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
    /// That of the ranks of one of several processes, which may go on after the failure of a device.
    pub(crate) fn among(processes: Arc<dyn Processes>, goes_on: bool) -> Self {
        Self { processes: Some((processes, goes_on)), ..Self::default() }
    }

    /// Records a rank's error. [`Error::PeerFailed`] is only the echo of another one.
    pub fn report(&self, rank: usize, error: Error) {
        let is_echo = matches!(error, Error::PeerFailed);
        let told = (!matches!(error, Error::PeerFailed | Error::ProcessFailed { .. }))
            .then(|| (error.is_of_device(), error.to_string()));
        if !is_echo {
            self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((Some(rank), error));
        }
        // only then: others may say so, too
        match (&self.processes, told) {
            (Some((processes, true)), Some((true, _))) => processes.revoke(),
            (Some((processes, _)), Some((_, why))) => processes.fail(&why),
            _ => {}
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
