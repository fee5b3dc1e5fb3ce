//! What is wrong with a line, or with the input as a whole, on its way to an error.

use std::io;

use super::source::Corrupt;
use super::unpack::refusal;
use super::{Error, ErrorKind};
use crate::error::matrix_market::quote;

/// What is wrong, and in which column of a line that somebody else knows.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) column: Option<u32>,
    pub(super) kind: ErrorKind,
}

impl Fault {
    pub(super) fn at(column: u32, kind: ErrorKind) -> Self {
        Self { column: Some(column), kind }
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self { column: None, kind }
    }
}

/// An error of the input, after so many lines of it.
pub(super) fn reading(file: &str, line: u64, error: io::Error) -> crate::Error {
    if let Some(refusal) = refusal(file, line, &error) {
        return refusal;
    }
    match Corrupt::behind(&error) {
        Some(Corrupt { format, cause }) => {
            Error::whole(file, line, ErrorKind::Corrupt { format, cause: quote(cause.as_bytes()) })
        }
        None => crate::Error::io(file, error),
    }
}
