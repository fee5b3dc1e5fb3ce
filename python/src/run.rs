//! Work of the library, during which Python goes on: in a thread of its own, while the caller's thread waits for signals and calls what looks on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use declive::Error;
use declive::solve::Progress;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::errors::{defect, exception};
use crate::process;

/// How often Python is asked for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// What ends work from outside, and why: an exception of a signal's, or of a function that is called meanwhile.
#[derive(Default)]
pub(crate) struct Interruption {
    /// Set once it is to end.
    pub(crate) cancel: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Interruption {
    /// Ends the work; the first of several reasons counts.
    pub(crate) fn raise(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Why, if it was ended; from now on it is not.
    fn take(&self) -> Option<PyErr> {
        self.cancel.store(false, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What the caller's thread hears of.
pub(crate) enum Event {
    /// How far it is.
    Progress(Progress),
    /// An iterate, and its number of iterations.
    Iterate(Vec<f64>, u64),
}

/// Where work tells what happens.
pub(crate) type Events = SyncSender<Event>;

/// What is called, in the caller's thread.
pub(crate) struct Listeners {
    /// With iterations, the relative residual, its target and seconds.
    pub(crate) progress: Option<Py<PyAny>>,
    /// With x as a `bytearray`, and iterations.
    pub(crate) iterate: Option<Py<PyAny>>,
}

impl Listeners {
    /// Nobody.
    pub(crate) const NONE: Self = Self { progress: None, iterate: None };

    fn hear(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        match (event, &self.progress, &self.iterate) {
            (Event::Progress(at), Some(progress), _) => {
                progress.call1(py, (at.iterations, at.rel_residual_2, at.target, at.elapsed.as_secs_f64()))?;
            }
            (Event::Iterate(x, iterations), _, Some(iterate)) => {
                iterate.call1(py, (PyByteArray::new(py, as_bytes(x)), *iterations))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The bytes of numbers.
pub(crate) fn as_bytes(numbers: &[f64]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

/// Does `work` without the interpreter's lock. Ctrl-C ends it, and so does an exception of a listener.
///
/// # Errors
/// Those of `work` as exceptions; what has interrupted it.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    interruption: &Arc<Interruption>,
    listeners: &Listeners,
    work: impl FnOnce(&AtomicBool, Events) -> Result<R, Error> + Send,
) -> PyResult<R> {
    process::enter()?;
    let (events, heard) = sync_channel(0);
    let attend = |event: Option<&Event>| {
        if interruption.cancel.load(Ordering::Relaxed) {
            return;
        }
        let attended = Python::attach(|py| {
            py.check_signals()?;
            event.map_or(Ok(()), |event| listeners.hear(py, event))
        });
        attended.unwrap_or_else(|error| interruption.raise(error));
    };
    let ended = py.detach(move || {
        thread::scope(|scope| {
            let worker = scope.spawn(|| work(&interruption.cancel, events));
            loop {
                match heard.recv_timeout(PATIENCE) {
                    Ok(event) => attend(Some(&event)),
                    Err(RecvTimeoutError::Timeout) => attend(None),
                    Err(RecvTimeoutError::Disconnected) => break worker.join(),
                }
            }
        })
    });
    if let Some(error) = interruption.take() {
        return Err(error);
    }
    ended.map_err(|panic| defect(py, &*panic))?.map_err(|error| exception(py, &error))
}
