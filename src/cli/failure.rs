//! Errors as the command reports them.

use std::fmt;
use std::io;

use declive::Error;
use declive::matrix_market::ErrorKind;

use super::exit::Exit;
use crate::report::in_flags;

/// An error of the library with the file it is about, or output that can't be written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error says it all.
    Plain(Error),
    /// The library's error doesn't know the file.
    About {
        /// The file, or what stands for it.
        name: String,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// The result is there, but it can't be written (a full disk, say).
    Write {
        /// Where to.
        name: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Failure {
    /// A request that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Plain(Error::Usage(message.into()))
    }

    /// Nothing was said about the matrix.
    pub(crate) fn no_matrix() -> Self {
        Self::usage("there is no matrix: name a file, or use --generate")
    }

    /// An error with the name of the file that it is about.
    pub(crate) fn about(name: impl ToString, error: Error) -> Self {
        Self::About { name: name.to_string(), error: Box::new(error) }
    }

    /// Whether it is another process's, which tells of it itself.
    pub(crate) fn is_of_other_process(&self) -> bool {
        matches!(self, Self::Plain(Error::ProcessFailed { .. } | Error::PeerFailed))
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Plain(error) => error.kind().into(),
            Self::About { error, .. } => error.kind().into(),
            Self::Write { .. } => Exit::Runtime,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Plain(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(error) => write!(f, "{}{}", in_flags(error), advice(error)),
            Self::About { name, error } => write!(f, "{name}: {}{}", in_flags(error), advice(error)),
            Self::Write { name, source } => write!(f, "{name}: {source}"),
        }
    }
}

/// What the command's user can do about an error that does not say so.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::OpenCl { .. } => "; in a solve on several devices, --on-failure continue lets the others take over",
        Error::NotMet { .. } => "; with --on-failure continue a solve goes on by the host",
        Error::MatrixMarket(error) if error.kind == ErrorKind::Complex => "; info and convert take it",
        Error::NoDevice { .. } => "; 'declive devices' shows what there is",
        _ => "",
    }
}
