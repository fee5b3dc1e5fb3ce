//! Errors as codes and texts, and panics as errors.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use declive::{Error, ErrorKind};

use crate::interface::{DECLIVE_INPUT, DECLIVE_INTERNAL, DECLIVE_MACHINE};

/// What a call ends with that did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A call that is wrong.
    pub(crate) fn input(text: impl Into<String>) -> Self {
        Self { code: DECLIVE_INPUT, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if error.kind() == ErrorKind::Input { DECLIVE_INPUT } else { DECLIVE_MACHINE };
        Self { code, text: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The text of this thread's last failure: empty if there was none.
pub(crate) fn last() -> *const c_char {
    // a thread that ends has none any more
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// A text for C, without the NULs that would end it.
pub(crate) fn c_text(text: impl Into<String>) -> CString {
    let mut bytes = text.into().into_bytes();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// Runs a call. What goes wrong is kept for this thread; no panic leaves.
pub(crate) fn run<T>(call: impl FnOnce() -> Result<T>) -> std::result::Result<T, c_int> {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(panic) => Failure { code: DECLIVE_INTERNAL, text: format!("internal error: {}", message(&*panic)) },
    };
    let _of_living_thread = LAST.try_with(|last| *last.borrow_mut() = c_text(failure.text));
    Err(failure.code)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn panics_are_errors() {
        let said = || unsafe_text(last());
        assert_eq!(run(|| -> Result<()> { panic!("row {}", 3) }), Err(DECLIVE_INTERNAL));
        assert_eq!(said(), "internal error: row 3");
        assert_eq!(run(|| -> Result<()> { panic!("of a text") }), Err(DECLIVE_INTERNAL));
        assert_eq!(said(), "internal error: of a text");
        assert_eq!(run(|| -> Result<()> { std::panic::panic_any(3) }), Err(DECLIVE_INTERNAL));
        assert_eq!(said(), "internal error: it panicked");
        assert_eq!(run(|| -> Result<()> { Err(Failure::input("a NUL \0 inside")) }), Err(DECLIVE_INPUT));
        assert_eq!(said(), "a NUL  inside");
    }

    fn unsafe_text(text: *const c_char) -> String {
        // SAFETY: it is this thread's, and stays until the next failure.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
