//! What the exit code says.

use std::process::ExitCode;

use declive::ErrorKind;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done; a solve converged, and its true residual was verified.
    Success = 0,
    /// The solve ended without converging; the best approximation was written all the same.
    NotConverged = 1,
    /// The request or its input is wrong.
    Input = 2,
    /// A device, or the machine, failed.
    Runtime = 3,
    /// Killed by a second Ctrl-C: 128 + SIGINT, as shells do.
    Killed = 130,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Input => Self::Input,
            _ => Self::Runtime,
        }
    }
}

#[cfg(test)]
mod tests {
    use declive::Error;

    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let all = [Exit::Success, Exit::NotConverged, Exit::Input, Exit::Runtime, Exit::Killed];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 130]);
    }

    #[test]
    fn errors_tell_input_from_machine() {
        let of = |e: Error| Exit::from(e.kind());
        assert_eq!(of(Error::Usage("no".into())), Exit::Input);
        assert_eq!(of(Error::NotSquare { rows: 1, cols: 2 }), Exit::Input);
        assert_eq!(of(Error::PeerFailed), Exit::Runtime);
        assert_eq!(of(Error::NoDevice { wanted: "gpu".into(), found: "none".into() }), Exit::Runtime);
    }
}
