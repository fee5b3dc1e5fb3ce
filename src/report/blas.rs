//! How fast products and factorisations of dense matrices are.

use std::fmt;

use declive::Error;
use declive::experiments::blas::{Factorisation, OnVectors, Product, amdahl, gustafson};
use declive::solve::Precision;
use declive::tune::Timing;
use serde::Serialize;

use super::in_flags;
use super::layout::Text;
use super::units::{count, figure, percent, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Measurements of each time.
    repeat: usize,
    precision: Precision,
    /// By sizes.
    pub(crate) hosts: Vec<Host>,
    pub(crate) devices: Vec<Device>,
    /// Of each order the host's first.
    pub(crate) factorisations: Vec<Factorised>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// A factorisation of a matrix of one order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Factorised {
    n: usize,
    #[serde(flatten)]
    found: Factorisation,
    gigaflops_per_second: f64,
    gigaflops_per_second_with_transfers: f64,
    /// What panels take, on devices and the host.
    serial_share: f64,
}

impl Factorised {
    pub(crate) fn new(n: usize, found: Factorisation) -> Self {
        let rate = |seconds: f64| 1e-9 * found.flops / seconds;
        Self {
            n,
            gigaflops_per_second: rate(found.times.factorise),
            gigaflops_per_second_with_transfers: rate(found.with_transfers()),
            serial_share: found.serial_share(),
            found,
        }
    }
}

/// The host's threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Host {
    pub(crate) n: usize,
    /// In seconds.
    pub(crate) product: Timing,
    /// With as many elements as the matrix, or almost.
    pub(crate) vectors: Vec<OnVectors>,
}

/// A device with matrices of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Device {
    label: String,
    n: usize,
    /// What a plain copy reaches, read and written.
    copy_gigabytes_per_second: f64,
    products: Vec<Product>,
    /// With as many elements as the matrix, or almost.
    vectors: Vec<OnVectors>,
}

impl Device {
    pub(crate) fn new(label: &str, n: usize, copy: f64, products: Vec<Product>, vectors: Vec<OnVectors>) -> Self {
        Self { label: label.into(), n, copy_gigabytes_per_second: 1e-9 * copy, products, vectors }
    }
}

impl Report {
    pub(crate) fn new(repeat: usize, precision: Precision) -> Self {
        Self {
            repeat,
            precision,
            hosts: Vec::new(),
            devices: Vec::new(),
            factorisations: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// What was measured, or else nothing and a note.
    pub(crate) fn or_note(&mut self, found: Result<Vec<OnVectors>, Error>, what: &str) -> Vec<OnVectors> {
        found.unwrap_or_else(|error| {
            self.notes.push(in_flags(format!("{what} are left out: {error}")));
            Vec::new()
        })
    }

    fn host(&self, n: usize) -> Option<&Host> {
        self.hosts.iter().find(|host| host.n == n)
    }
}

impl Report {
    fn table(&self, text: &mut Text) {
        let head = [
            "factors",
            "order",
            "s",
            "GFLOP/s",
            "with transfers",
            "of product",
            "× host",
            "panels s",
            "waits s",
            "solve s",
            "64 solves s",
            "error",
            "Amdahl 8",
            "Gustafson 8",
            "on",
        ];
        let mut rows = vec![head.map(String::from).to_vec()];
        for factorised in &self.factorisations {
            let Factorised { n, found, gigaflops_per_second: rate, serial_share: serial, .. } = factorised;
            let is_host =
                |one: &&Factorised| one.n == *n && one.found.devices.is_empty() && one.found.kind == found.kind;
            let host = self.factorisations.iter().find(is_host).map(|host| host.found.times.factorise);
            let of_devices = |value: f64| if found.devices.is_empty() { String::new() } else { figure(value) };
            rows.push(vec![
                found.kind.to_string(),
                count(*n),
                figure(found.times.factorise),
                figure(*rate),
                figure(factorised.gigaflops_per_second_with_transfers),
                self.fastest_product(*n, &found.devices).map_or_else(String::new, |most| percent(1e9 * rate, most)),
                host.map_or_else(String::new, |host| figure(host / found.times.factorise)),
                of_devices(found.times.panels),
                of_devices(found.times.waits),
                figure(found.solves[0]),
                figure(found.solves[1]),
                format!("{:.0e}", found.backward_error),
                of_devices(amdahl(*serial, 8.0)),
                of_devices(gustafson(*serial, 8.0)),
                if found.devices.is_empty() { "the host".into() } else { found.devices.join(", ") },
            ]);
        }
        text.columns(&rows);
    }

    /// What is done with vectors on a device, or on the host, which has no transfers.
    fn vectors(&self, text: &mut Text, n: usize, vectors: &[OnVectors], copy: Option<f64>) {
        if vectors.is_empty() {
            return;
        }
        let elements = format!("{} elements", count(vectors.first().map_or(0, |one| one.n)));
        let head = [&elements, "µs", "GFLOP/s", "GB/s", "of copy", "× host", "with transfers", "× host"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for one in vectors {
            let OnVectors { task, time, with_transfers, flops, bytes, is_right, .. } = one;
            let host = self.host(n).and_then(|host| host.vectors.iter().find(|host| host.task == *task));
            let host = host.filter(|_| copy.is_some()).map(|host| host.time.median);
            let faster = |seconds: f64| host.map_or_else(String::new, |host| figure(host / seconds));
            let transferred = with_transfers.map(|timing| timing.median);
            let rate = *bytes as f64 / time.median;
            rows.push(vec![
                if *is_right { task.to_string() } else { format!("{task} (wrong)") },
                figure(1e6 * time.median),
                figure(1e-9 * flops / time.median),
                figure(1e-9 * rate),
                copy.map_or_else(String::new, |copy| percent(1e-9 * rate, copy)),
                faster(time.median),
                transferred.map_or_else(String::new, |seconds| figure(1e6 * seconds)),
                transferred.map_or_else(String::new, faster),
            ]);
        }
        text.columns(&rows);
    }

    /// Multiplications and additions a second of the fastest product on these devices together, or on the host: the measured limit.
    fn fastest_product(&self, n: usize, devices: &[String]) -> Option<f64> {
        if devices.is_empty() {
            return self.host(n).map(|host| flops(n) / host.product.median);
        }
        let of = |label: &String| {
            let device = self.devices.iter().find(|device| device.n == n && device.label == *label)?;
            device.products.iter().map(|product| product.measured.flops_per_second).reduce(f64::max)
        };
        devices.iter().map(of).sum()
    }
}

/// Multiplications and additions of a product.
fn flops(n: usize) -> f64 {
    256.0 * n as f64 * n as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let runs = plural(self.repeat, "measurement");
        text.paragraph(&format!("Products C − A B of depth 128 in {}: medians of {runs}.", self.precision));
        for device in &self.devices {
            let copies = figure(device.copy_gigabytes_per_second);
            text.section(&format!("{}, order {}, copies {copies} GB/s", device.label, count(device.n)));
            let host = self.host(device.n).map(|host| host.product.median);
            let mut rows = vec![["product", "µs", "GFLOP/s", "× host", "tiles"].map(String::from).to_vec()];
            for Product { name, measured, .. } in &device.products {
                let seconds = measured.time.median;
                rows.push(vec![
                    name.clone(),
                    figure(1e6 * seconds),
                    figure(1e-9 * measured.flops_per_second),
                    host.map_or_else(String::new, |host| figure(host / seconds)),
                    if measured.is_naive { String::new() } else { measured.tiles.to_string() },
                ]);
            }
            text.columns(&rows);
            self.vectors(&mut text, device.n, &device.vectors, Some(device.copy_gigabytes_per_second));
        }
        text.section("The host");
        let mut rows = vec![["order", "µs", "GFLOP/s"].map(String::from).to_vec()];
        for host in &self.hosts {
            let seconds = host.product.median;
            rows.push(vec![count(host.n), figure(1e6 * seconds), figure(1e-9 * flops(host.n) / seconds)]);
        }
        text.columns(&rows);
        self.hosts.iter().for_each(|host| self.vectors(&mut text, host.n, &host.vectors, None));
        if !self.factorisations.is_empty() {
            text.section("Factorisations");
            self.table(&mut text);
        }
        if !self.notes.is_empty() {
            text.section("Notes");
        }
        self.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}
