//! The facts about the devices of a machine.

use declive::Result;
use declive::device::{Info, Listing, Selection};
use serde::Serialize;

use super::in_flags;

/// All devices, used or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(super) devices: Vec<Device>,
    pub(super) host: Host,
    /// Why there is no device, or why the choice is not what one expects.
    pub(super) note: Option<String>,
}

/// An OpenCL device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Device {
    #[serde(flatten)]
    pub(super) info: Info,
    #[serde(flatten)]
    pub(super) auto: Auto,
    #[serde(flatten)]
    pub(super) copy: Copy,
}

/// This program's own threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Host {
    pub(super) threads: usize,
    #[serde(flatten)]
    pub(super) auto: Auto,
    #[serde(flatten)]
    pub(super) copy: Copy,
}

/// Whether `--devices auto` takes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Auto {
    #[serde(rename = "auto")]
    pub(super) used: bool,
    /// Why not.
    #[serde(rename = "auto_reason")]
    pub(super) reason: Option<String>,
}

/// How fast it copies memory, if that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Copy {
    /// Bytes read and written.
    #[serde(rename = "copy_gigabytes_per_second")]
    pub(super) gigabytes_per_second: Option<f64>,
    /// What went wrong.
    #[serde(rename = "copy_error")]
    pub(super) error: Option<String>,
}

impl Auto {
    /// Whether what `auto` comes to has a device, or the host if there is none.
    fn of(selected: &Result<Selection>, device: Option<&Info>) -> Self {
        let selection = match selected {
            Ok(selection) => selection,
            Err(error) => return Self { used: false, reason: Some(in_flags(error)) },
        };
        let index = |device: Option<&Info>| device.map(|device| device.index);
        let used = selection.ranks.iter().any(|rank| index(rank.as_ref()) == index(device));
        let reason = match device {
            Some(device) => {
                selection.rejected.iter().find(|r| r.device.index == device.index).map(|r| in_flags(&r.reason))
            }
            None => Some("an OpenCL device is there".into()),
        };
        Self { used, reason: reason.filter(|_| !used) }
    }
}

impl Report {
    /// Puts the facts in order; nothing is measured yet.
    pub(crate) fn new(listing: &Listing, selected: &Result<Selection>, host_threads: usize) -> Self {
        let device =
            |info: &Info| Device { info: info.clone(), auto: Auto::of(selected, Some(info)), copy: Copy::default() };
        Self {
            devices: listing.devices.iter().map(device).collect(),
            host: Host { threads: host_threads, auto: Auto::of(selected, None), copy: Copy::default() },
            note: listing.note.clone().or_else(|| selected.as_ref().ok()?.note.as_ref().map(in_flags)),
        }
    }

    /// Adds the speed of a device, in bytes a second.
    pub(crate) fn measured(&mut self, index: usize, speed: Result<f64>) {
        if let Some(device) = self.devices.iter_mut().find(|d| d.info.index == index) {
            device.copy = match speed {
                Ok(speed) => Copy::at(speed),
                // its first line: the log of a compiler has no place in a list
                Err(error) => Copy { error: in_flags(error).lines().next().map(str::to_owned), ..Copy::default() },
            };
        }
    }

    /// Adds the speed of the host, in bytes a second.
    pub(crate) fn host_measured(&mut self, speed: f64) {
        self.host.copy = Copy::at(speed);
    }
}

impl Copy {
    fn at(bytes_per_second: f64) -> Self {
        Self { gigabytes_per_second: Some(1e-9 * bytes_per_second), error: None }
    }
}
