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
        let told = match (&self.processes, &error) {
            (None, _) | (_, Error::PeerFailed | Error::ProcessFailed { .. }) => None,
            (Some((processes, true)), error) if error.is_of_device() => Some((processes, None)),
            (Some((processes, _)), error) => Some((processes, Some(error.to_string()))),
        };
        if !matches!(error, Error::PeerFailed) {
            self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((Some(rank), error));
        }
        // only then: others may say so, too
        match told {
            Some((processes, Some(why))) => processes.fail(&why),
            Some((processes, None)) => processes.revoke(),
            None => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::gathered;
    use crate::comm::processes::simulated::processes;

    #[test]
    fn processes_go_on_only_after_the_failure_of_a_device() {
        let lost = || {
            let (device, doing, code) = ("a".to_owned(), "adding up".to_owned(), "CL_OUT_OF_RESOURCES".to_owned());
            Error::OpenCl { device, doing, call: "clFinish", code, meaning: "" }
        };
        let wrong = || Error::Usage("no such file".into());
        for (goes_on, error, is_end) in
            [(true, lost(), false), (false, lost(), true), (true, wrong(), true), (true, Error::PeerFailed, false)]
        {
            let ended = processes(2, |all| {
                let failure = Failure::among(Arc::clone(&all), goes_on);
                if all.process() == 1 {
                    failure.report(3, error.clone());
                    assert!(failure.check().is_err());
                    let told = failure.take().0;
                    assert_eq!(told.len(), usize::from(!matches!(error, Error::PeerFailed)));
                    if matches!(error, Error::PeerFailed) {
                        all.revoke(); // whoever it is the echo of has done so
                    }
                    return None;
                }
                gathered(&*all, 0).err()
            });
            let other = ended[0].as_ref().unwrap();
            assert_eq!(matches!(other, Error::ProcessFailed { process: 1, .. }), is_end, "{other}");
            assert_eq!(matches!(other, Error::PeerFailed), !is_end, "{other}");
        }
    }
}
