//! What tuning found.

use declive::tune::store::{
    self, Entry, FormatEntry, IterationTimeEntry, Known, LatencyEntry, ProductEntry, SolveEntry,
};
use declive::tune::{Found, ProductTime};
use serde::Serialize;

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(super) devices: Vec<Device>,
    pub(super) products: Vec<Products>,
}

/// Products of dense matrices on one kind of device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Products {
    pub(super) device: String,
    /// The numbers of the devices of this kind, of which the first was measured.
    pub(super) indices: Vec<usize>,
    /// With all tiles that were tried, the fastest first.
    pub(super) times: Vec<ProductTime>,
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
    /// What was found on each kind of device.
    pub(crate) fn found(&self) -> Vec<Found> {
        self.devices.iter().map(|device| device.found.clone()).collect()
    }

    /// Adds the times of products on the devices of these numbers.
    pub(crate) fn add_products(&mut self, device: &str, indices: Vec<usize>, times: Vec<ProductTime>) {
        self.products.push(Products { device: device.into(), indices, times });
    }

    /// Adds what was found for the devices of these numbers.
    pub(crate) fn add(&mut self, found: Found, indices: Vec<usize>) {
        self.devices.push(Device { indices, found });
    }
}

/// What is kept from former runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Kept {
    /// How many devices' files were removed, if that was asked for.
    pub(super) removed: Option<usize>,
    pub(super) devices: Vec<KeptDevice>,
}

/// What is kept of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct KeptDevice {
    #[serde(flatten)]
    pub(super) device: store::Device,
    pub(super) kernels: Vec<Entry>,
    /// Formats that were measured on blocks of rows.
    pub(super) formats: Vec<FormatEntry>,
    /// How long this device and others take to synchronise.
    pub(super) latencies: Vec<LatencyEntry>,
    /// How fast this device and others were in solves.
    pub(super) iteration_times: Vec<IterationTimeEntry>,
    /// How long methods took for systems.
    pub(super) solves: Vec<SolveEntry>,
    /// The tiles of products of dense matrices.
    pub(super) products: Vec<ProductEntry>,
}

impl Kept {
    pub(crate) fn new(known: Vec<Known>, removed: Option<usize>) -> Self {
        let device = |known: Known| KeptDevice {
            device: known.device,
            kernels: known.entries,
            formats: known.formats,
            latencies: known.latencies,
            iteration_times: known.iteration_times,
            solves: known.solves,
            products: known.products,
        };
        let devices = if removed.is_some() { Vec::new() } else { known.into_iter().map(device).collect() };
        Self { removed, devices }
    }
}
