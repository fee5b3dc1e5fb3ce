//! How fast products of dense matrices are.

use std::fmt;

use declive::experiments::blas::Product;
use declive::solve::Precision;
use declive::tune::Timing;
use serde::Serialize;

use super::layout::Text;
use super::units::{count, figure, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Measurements of each time.
    repeat: usize,
    precision: Precision,
    /// By sizes.
    pub(crate) hosts: Vec<Host>,
    pub(crate) devices: Vec<Device>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// The host's threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Host {
    pub(crate) n: usize,
    /// In seconds.
    pub(crate) product: Timing,
}

/// A device with matrices of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Device {
    label: String,
    n: usize,
    /// What a plain copy reaches, read and written.
    copy_gigabytes_per_second: f64,
    products: Vec<Product>,
}

impl Device {
    pub(crate) fn new(label: &str, n: usize, copy: f64, products: Vec<Product>) -> Self {
        Self { label: label.into(), n, copy_gigabytes_per_second: 1e-9 * copy, products }
    }
}

impl Report {
    pub(crate) fn new(repeat: usize, precision: Precision) -> Self {
        Self { repeat, precision, hosts: Vec::new(), devices: Vec::new(), notes: Vec::new() }
    }

    fn host(&self, n: usize) -> Option<&Host> {
        self.hosts.iter().find(|host| host.n == n)
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
        }
        text.section("The host");
        let mut rows = vec![["order", "µs", "GFLOP/s"].map(String::from).to_vec()];
        for host in &self.hosts {
            let seconds = host.product.median;
            rows.push(vec![count(host.n), figure(1e6 * seconds), figure(1e-9 * flops(host.n) / seconds)]);
        }
        text.columns(&rows);
        if !self.notes.is_empty() {
            text.section("Notes");
        }
        self.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}
