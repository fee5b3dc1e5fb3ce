//! The solver as its callers see it.

use std::sync::Arc;
use std::time::Duration;

use super::{Control, Outcome, Setup, Stop};
use crate::device::{Kind, Rejected};
use crate::error::Result;
use crate::matrix::Csr;

/// One rank: a device and its share of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankInfo {
    /// The device's name.
    pub device: String,
    /// What it is.
    pub kind: Kind,
    /// Its number in `declive devices`; none for the host.
    pub index: Option<usize>,
    /// Rows that it owns.
    pub rows: usize,
    /// Entries in those rows.
    pub nnz: usize,
    /// Elements of a vector that it receives from other ranks for each product.
    pub halo: usize,
    /// Memory that the rank takes on its device.
    pub bytes: u64,
}

/// Where the time before the first iteration went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SetupTimes {
    /// Checks, partition, halo plans, building kernels.
    pub prepare: Duration,
    /// Moving the matrix to the devices.
    pub upload: Duration,
    /// Finding launch parameters.
    pub tune: Duration,
}

/// A system's matrix on its ranks, ready to solve for many right-hand sides.
#[derive(Debug)]
pub struct Solver {
    ranks: Vec<RankInfo>,
    rejected: Vec<Rejected>,
    note: Option<String>,
}

impl Solver {
    /// Distributes `a` over the devices that `setup` asks for.
    ///
    /// # Errors
    /// Unusable matrix or devices.
    pub fn new(a: impl Into<Arc<Csr>>, setup: &Setup) -> Result<Self> {
        let _ = (a.into(), setup);
        Ok(Self { ranks: Vec::new(), rejected: Vec::new(), note: None })
    }

    /// Solves `A x = b` from `x0` (zero if none).
    ///
    /// # Errors
    /// Wrong lengths, or a failing device. Not converging is not an error: see [`Outcome::reason`].
    pub fn solve(&mut self, b: &[f64], x0: Option<&[f64]>, stop: &Stop, control: Control<'_>) -> Result<Outcome> {
        let _ = (b, x0, stop, control);
        Err(crate::error::Error::PeerFailed)
    }

    /// The ranks, in order of their rows.
    #[must_use]
    pub fn ranks(&self) -> &[RankInfo] {
        &self.ranks
    }

    /// Devices that were looked at and not used, with the reason.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// A line for the user when the devices could not be what one expects.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Where the time of [`Solver::new`] went.
    #[must_use]
    pub fn times(&self) -> SetupTimes {
        SetupTimes::default()
    }
}
