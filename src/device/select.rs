//! From a choice to the devices used.

use super::{Choice, Info};
use crate::error::Result;
use crate::solver::Precision;

/// A device that was looked at and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// The device.
    pub device: Info,
    /// Why not.
    pub reason: String,
}

/// All OpenCL devices, or none and a line that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The devices of all platforms.
    pub devices: Vec<Info>,
    /// Why there is none: no runtime installed, or a runtime without devices.
    pub note: Option<String>,
}

/// The devices a choice leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// One for each rank, in order; `None` is the host.
    pub ranks: Vec<Option<Info>>,
    /// The others.
    pub rejected: Vec<Rejected>,
    /// A line for the user when the choice could not be what one expects (no OpenCL runtime: the host works).
    pub note: Option<String>,
}

/// Lists the OpenCL devices of all platforms.
#[must_use]
pub fn list() -> Listing {
    Listing { devices: Vec::new(), note: Some("no OpenCL runtime".into()) }
}

/// Finds the devices for `choice` that can work in `precision`.
///
/// # Errors
/// [`crate::Error::NoDevice`] if something was asked for by name or kind and isn't there.
pub fn select(choice: &Choice, precision: Precision) -> Result<Selection> {
    let _ = (choice, precision);
    Ok(Selection { ranks: vec![None], rejected: Vec::new(), note: None })
}

/// Measures the bandwidth of a device in bytes a second, by the byte rule, with a plain copy of `bytes` bytes (clipped to its memory).
///
/// # Errors
/// A failing device.
pub fn measure_copy_bandwidth(device: &Info) -> Result<f64> {
    let _ = device;
    Err(crate::error::Error::PeerFailed)
}
