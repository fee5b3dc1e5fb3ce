//! Errors of the library as exceptions of Python.

use std::io;
use std::path::Path;

use declive::{Error, ErrorKind};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;

/// The exception for an error: `OSError` for files that can't be opened, else one of `declive._errors`, with the library's text.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    if let Error::Io { path, source } = error {
        return file_error(path, source);
    }
    let name = match error {
        Error::OutOfMemory { .. } | Error::OutOfDeviceMemory { .. } => "OutOfMemoryError",
        error if error.kind() == ErrorKind::Input => "InputError",
        _ => "DeviceError",
    };
    of_package(py, name, error.to_string())
}

/// An `InputError` of this package.
pub(crate) fn input_error(py: Python<'_>, text: String) -> PyErr {
    of_package(py, "InputError", text)
}

/// A defect of this package or the library.
pub(crate) fn defect(py: Python<'_>, panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    of_package(py, "DecliveError", format!("internal error: {}", text.unwrap_or("a panic")))
}

/// What the operating system says of a file, which by its number becomes `FileNotFoundError` and the like.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> PyErr {
    let (path, text) = (path.to_string_lossy().into_owned(), error.to_string());
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path))
        }
        None => PyOSError::new_err(format!("{path}: {text}")),
    }
}

fn of_package(py: Python<'_>, name: &str, text: String) -> PyErr {
    let made = py.import("declive._errors").and_then(|errors| errors.getattr(name)?.call1((text.as_str(),)));
    made.map_or_else(|_| PyRuntimeError::new_err(text), PyErr::from_value)
}

/// Results of the library for Python.
pub(crate) trait OrException<T> {
    /// The same with an exception.
    fn or_exception(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrException<T> for declive::Result<T> {
    fn or_exception(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}
