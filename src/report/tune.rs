//! What tuning found.

use declive::tune::Found;
use serde::Serialize;

use super::{DECLIVE, VERSION};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    version: u32,
    declive: &'static str,
    pub(super) devices: Vec<Device>,
}

/// One kind of device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Device {
    /// The numbers of the devices of this kind, of which the first was measured.
    pub(super) indices: Vec<usize>,
    #[serde(flatten)]
    pub(super) found: Found,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { version: VERSION, declive: DECLIVE, devices: Vec::new() }
    }

    /// Adds what was found for the devices of these numbers.
    pub(crate) fn add(&mut self, found: Found, indices: Vec<usize>) {
        self.devices.push(Device { indices, found });
    }
}
