//! Ctrl-C, and the other ways of asking a process to end.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;
use super::output;

/// Set by the first signal. A signal handler is a global thing, and so is its flag.
static CANCEL: AtomicBool = AtomicBool::new(false);

/// From here on the first Ctrl-C sets the flag that is returned, and the second one kills the process.
///
/// One rule for all phases: a signal that comes while the system is still being read lets the solve end before its
/// first iteration.
pub(crate) fn cancel_then_kill() -> &'static AtomicBool {
    install(|| {
        if CANCEL.swap(true, Ordering::Relaxed) {
            kill();
        }
        let _ = writeln!(std::io::stderr(), "interrupted: stopping at the next check (once more to quit at once)");
    });
    &CANCEL
}

/// From here on Ctrl-C kills the process, but leaves no half-written files behind.
pub(crate) fn kill_cleanly() {
    install(kill);
}

fn kill() {
    output::remove_unfinished();
    std::process::exit(Exit::Killed.code().into());
}

fn install(handler: impl FnMut() + Send + 'static) {
    if let Err(e) = ctrlc::set_handler(handler) {
        log::warn!("Ctrl-C will end the program without a result: {e}");
    }
}
