//! Which devices go on when some have failed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::comm::processes::{exchange, gathered};
use crate::comm::{Failed, Processes};
use crate::device::Info;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::runtime::{OnFailure, Placement, Ranks, Whole};

/// A device that failed, so that others have taken over its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFailure {
    /// Which process has it, of several.
    pub process: Option<usize>,
    /// Its name.
    pub device: String,
    /// Its number in `declive devices`.
    pub index: usize,
    /// What it was doing, and what went wrong.
    pub error: String,
    /// Iterations of the solve that were known to be done then; none if the solver was being built.
    pub iterations: Option<u64>,
    /// How many of them were done again, by the others: counted for the first of those that failed at the same time.
    pub lost_iterations: u64,
}

/// Opens ranks where `placement` says, for the matrix in their order. Devices that fail meanwhile are left out, if the set-up
/// says so, and told in `failures`. Of several processes, collective.
///
/// # Errors
/// As [`Ranks::open`]; [`Error::NoDeviceLeft`].
pub(crate) fn open(
    whole: &Whole,
    rows: Arc<Csr>,
    mut placement: Placement,
    failures: &mut Vec<DeviceFailure>,
    cancel: Option<&AtomicBool>,
) -> Result<Ranks<'static>> {
    loop {
        let open = || Ranks::open(whole, Some(Arc::clone(&rows)), placement.clone(), cancel);
        match together(whole, open) {
            Ok(ranks) => return Ok(ranks),
            Err(failed) => {
                let failed = settled(whole, failed)?;
                placement = without_failed(whole, &rows, &placement, failed, None, failures)?;
            }
        }
    }
}

/// Does something that may fail with a device. Where several processes go on then, none begins before all are here, and none goes away
/// before all have done it: if one fails, all have an error, after which all come to [`settled`].
///
/// # Errors
/// Those of `act`; [`Error::PeerFailed`] for those of other processes.
pub(crate) fn together<R>(
    whole: &Whole,
    act: impl FnOnce() -> std::result::Result<R, Failed>,
) -> std::result::Result<R, Failed> {
    let Some(processes) = whole.going_on_together() else { return act() };
    gathered(processes, 0)?;
    let done = act()?;
    gathered(processes, 0)?;
    Ok(done)
}

/// The errors of this process's devices, when all processes are here and nothing is under way among them any more.
///
/// # Errors
/// One that is of no device, which ends the solve: others have to be told.
pub(crate) fn settled(whole: &Whole, Failed(mut errors): Failed) -> Result<Failed> {
    let Some(processes) = whole.going_on_together() else { return Ok(Failed(errors)) };
    errors.retain(|(_, error)| !matches!(error, Error::PeerFailed));
    if let Some(other) = errors.iter().position(|(rank, error)| rank.is_none() || !error.is_of_device()) {
        return Err(errors.swap_remove(other).1);
    }
    processes.revoke(); // if nobody has
    processes.restore()?;
    if let Some(levels) = whole.given.as_ref().and_then(|given| given.levels()) {
        levels.begin_anew(processes)?;
    }
    Ok(Failed(errors))
}

/// Where the ranks are without the devices that failed, which are told in `failures`: `during` a solve that had done so
/// many iterations, so many of which are lost. The others have shares as before, in proportion to each other. If none failed, but
/// kernels missed each other, all go on by the host. Of several processes, each keeps its rows, and works on them with its own
/// threads if it has no device left. Collective.
///
/// # Errors
/// The first of `failed` if the set-up says so, or if one is not of a device; [`Error::NoDeviceLeft`].
pub(crate) fn without_failed(
    whole: &Whole,
    rows: &Csr,
    placement: &Placement,
    failed: Failed,
    during: Option<(u64, u64)>,
    failures: &mut Vec<DeviceFailure>,
) -> Result<Placement> {
    let devices = &placement.devices;
    let has_missed = |(_, error): &&(Option<usize>, Error)| matches!(error, Error::NotMet { .. });
    let goes_on = whole.setup.on_failure == OnFailure::Continue;
    let together = whole.going_on_together();
    let missed = failed.0.first().filter(|_| goes_on && failed.0.iter().all(|one| has_missed(&one)));
    if let Some((_, error)) = missed {
        let from = during.map_or(0, |(done, lost)| done - lost);
        log::warn!("{error}; all go on from iteration {from}, and from now on the host has a part in each");
        whole.set_missed();
        return Ok(placement.clone());
    }
    // who waited for one that failed is none of them
    let culprits: Option<Vec<(&Info, &Error)>> = failed
        .0
        .iter()
        .filter(|one| !has_missed(one))
        .map(|(rank, error)| Some((devices.get((*rank)?)?.as_ref()?, Some(error).filter(|e| e.is_of_device())?)))
        .collect();
    let Some(culprits) = culprits.filter(|culprits| goes_on && (!culprits.is_empty() || together.is_some())) else {
        return Err(failed.into());
    };
    let own: Vec<Culprit> = culprits.iter().map(|(device, error)| Culprit::new(device, error)).collect();
    let is_left =
        |device: &Option<Info>| device.as_ref().is_none_or(|device| own.iter().all(|one| one.index != device.index));
    let (mut left, mut shares): (Vec<_>, Vec<_>) = devices
        .iter()
        .zip(&placement.rows)
        .filter(|(device, _)| is_left(device))
        .map(|(device, own)| (device.clone(), whole.cost(rows, own) as f64))
        .unzip();
    let before = failures.len();
    note(told(together, own)?, during, failures);
    if before == failures.len() {
        return Err(failed.into()); // no device of any process
    }
    let by_host = left.is_empty() && together.is_some();
    if by_host {
        (left, shares) = (vec![None], vec![1.0]);
    }
    if left.is_empty() {
        return Err(match &failures[..] {
            [_] => failed.into(),
            all => Error::NoDeviceLeft(all.iter().map(|failure| failure.error.as_str()).collect::<Vec<_>>().join("; ")),
        });
    }
    let is_own = |failure: &&DeviceFailure| failure.process == together.map(Processes::process);
    let others = if by_host { "the host's threads" } else { "the other devices" };
    for DeviceFailure { error, .. } in failures[before..].iter().filter(is_own) {
        match during {
            Some((done, lost)) => {
                let from = done - lost;
                log::warn!("{error}; {others} go on without it, from iteration {from} of {done}");
            }
            None => log::warn!("{error}; {others} take over its rows"),
        }
    }
    if shares.iter().all(|share| *share == 0.0) {
        shares.fill(1.0); // those that failed had all rows
    }
    let rows = whole.row_ranges(rows, &shares, &left);
    Ok(Placement { devices: left, rows, source: placement.source })
}

/// A device that failed, as its process tells others.
#[derive(Serialize, Deserialize)]
struct Culprit {
    index: usize,
    device: String,
    error: String,
}

impl Culprit {
    fn new(device: &Info, error: &Error) -> Self {
        Self { index: device.index, device: device.name.clone(), error: in_a_line(error) }
    }
}

/// What all processes tell, each with its number, if there are several.
fn told(processes: Option<&dyn Processes>, own: Vec<Culprit>) -> Result<Vec<(Option<usize>, Culprit)>> {
    let Some(processes) = processes else { return Ok(own.into_iter().map(|one| (None, one)).collect()) };
    let text = serde_json::to_vec(&own).unwrap_or_default();
    let told = exchange(processes, vec![text; processes.count()])?;
    let of = |(process, text): (usize, Vec<u8>)| {
        let told: Vec<Culprit> = serde_json::from_slice(&text).unwrap_or_default();
        told.into_iter().map(move |one| (Some(process), one))
    };
    Ok(told.into_iter().enumerate().flat_map(of).collect())
}

/// Adds devices that failed at the same time to those of before.
fn note(culprits: Vec<(Option<usize>, Culprit)>, during: Option<(u64, u64)>, failures: &mut Vec<DeviceFailure>) {
    let mut lost = during.map_or(0, |(_, lost)| lost);
    let before = failures.len();
    for (process, Culprit { index, device, error }) in culprits {
        // several ranks of a device fail for one reason
        if failures[before..].iter().all(|failure| (failure.process, failure.index) != (process, index)) {
            let iterations = during.map(|(iterations, _)| iterations);
            let lost_iterations = std::mem::take(&mut lost);
            failures.push(DeviceFailure { process, device, index, error, iterations, lost_iterations });
        }
    }
}

/// An error without the compiler's log.
fn in_a_line(error: &Error) -> String {
    match error {
        Error::KernelBuild { device, code, log } => {
            log::info!("{device}: the build log: {log}");
            Error::KernelBuild { device: device.clone(), code: code.clone(), log: String::new() }.to_string()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::matrix::gallery;
    use crate::operator::Exchange;
    use crate::runtime::{Setup, ShareSource};
    use crate::tune::store::Store;

    fn missed() -> Error {
        Error::NotMet { ranks: "both".into(), sums: 3, why: "one did not come".into() }
    }

    fn lost(device: &str) -> Error {
        let (device, doing, code) = (device.to_owned(), "adding up".to_owned(), "CL_OUT_OF_RESOURCES".to_owned());
        Error::OpenCl { device, doing, call: "clFinish", code, meaning: "" }
    }

    /// Where two ranks are, and how they exchange, after these errors.
    fn after(errors: Vec<(usize, Error)>, on_failure: OnFailure) -> Result<(Vec<Option<usize>>, Exchange)> {
        let devices = [7, 8].map(|index| {
            let mut device = list().devices.remove(0);
            device.index = index;
            Some(device)
        });
        let a = Arc::new(gallery::poisson2d([4, 4]).unwrap());
        let setup = Setup { on_failure, ..Setup::default() };
        let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, Store::none());
        let placement = Placement { devices: devices.to_vec(), rows: vec![0..8, 8..16], source: ShareSource::Even };
        let failed = Failed(errors.into_iter().map(|(rank, error)| (Some(rank), error)).collect());
        let mut failures = Vec::new();
        let left = without_failed(&whole, &a, &placement, failed, Some((9, 2)), &mut failures)?;
        let indices: Vec<_> = left.devices.iter().map(|device| device.as_ref().map(|device| device.index)).collect();
        assert_eq!(failures.len(), 2 - indices.len());
        assert_eq!(left.rows.iter().map(ExactSizeIterator::len).sum::<usize>(), 16);
        Ok((indices, whole.setup_of_ranks().exchange))
    }

    #[test]
    fn ranks_that_miss_each_other_go_on_by_the_host() {
        let both = || vec![(1, missed()), (0, missed())];
        assert_eq!(after(both(), OnFailure::Continue).unwrap(), (vec![Some(7), Some(8)], Exchange::HostStaged));
        let error = after(both(), OnFailure::Stop).unwrap_err();
        assert_eq!(error.to_string(), missed().to_string());
    }

    #[test]
    fn who_waited_for_a_device_that_failed_goes_on() {
        let errors = vec![(0, missed()), (1, lost("b"))];
        assert_eq!(after(errors, OnFailure::Continue).unwrap(), (vec![Some(7)], Exchange::Auto));
        assert!(after(vec![(0, lost("a")), (1, lost("b"))], OnFailure::Continue).is_err());
    }
}
