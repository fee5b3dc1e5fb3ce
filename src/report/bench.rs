//! What experiments found: where the time of an iteration goes, on each device and on all together.

use declive::device::Kind;
use declive::tune::Experiment;
use serde::Serialize;

use super::bench_published::{ITERATIONS, METHOD, ORDER, PUBLISHED, Published, SOURCE};
use super::{DECLIVE, VERSION};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    version: u32,
    declive: &'static str,
    pub(super) matrix: Matrix,
    pub(super) precision: &'static str,
    /// Where launch parameters came from.
    pub(super) tune: &'static str,
    /// As they were asked for.
    pub(super) devices: String,
    /// As many as were asked for.
    pub(super) iterations: u64,
    /// Runs whose median is the total.
    pub(super) repeat: usize,
    /// Each kind of device once.
    pub(super) kinds: Vec<DeviceKind>,
    pub(super) experiments: Vec<Entry>,
    pub(super) published: AsPublished,
    /// What could not be measured, or is not as one expects.
    pub(super) notes: Vec<String>,
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    pub(crate) source: String,
    /// Whether nothing was said about it: the 7-point operator of some order.
    pub(crate) default: bool,
    pub(crate) rows: usize,
    pub(crate) nnz: usize,
}

/// Devices that are alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeviceKind {
    /// `[0]` or `host`: the one that was measured.
    pub(crate) label: String,
    pub(crate) name: String,
    #[serde(serialize_with = "display")]
    pub(crate) kind: Kind,
    /// The numbers of all that are like it.
    pub(crate) indices: Vec<usize>,
    /// What a plain copy reaches on one of them, read and written.
    pub(crate) copy_gigabytes_per_second: Option<f64>,
}

/// An experiment, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Entry {
    /// `[0]`, `host`, or `all`.
    pub(super) label: String,
    #[serde(flatten)]
    pub(super) experiment: Experiment,
    pub(super) kernel_seconds: f64,
    /// Total less kernels.
    pub(super) overhead_seconds: f64,
    pub(super) microseconds_per_iteration: f64,
    /// By the byte rule.
    pub(super) gigabytes_per_second: f64,
    /// The same as a part of what copies reach on all devices at once.
    pub(super) part_of_copy: Option<f64>,
    /// All operations.
    pub(super) gigaflops: f64,
    /// Operations as the dissertation counts them, for its method.
    pub(super) gigaflops_counted: Option<f64>,
    /// Of all together: how many times as fast an iteration as on the fastest device alone.
    pub(super) speedup: Option<f64>,
}

/// The figures of the dissertation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct AsPublished {
    source: &'static str,
    method: &'static str,
    precision: &'static str,
    order: usize,
    iterations: usize,
    experiments: Vec<PublishedEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct PublishedEntry {
    name: &'static str,
    kernels: Vec<PublishedKernel>,
    overhead_seconds: f64,
    total_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct PublishedKernel {
    kernel: &'static str,
    seconds: f64,
}

/// What a [`Report`] is made from.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) matrix: Matrix,
    pub(crate) precision: &'static str,
    pub(crate) tune: &'static str,
    pub(crate) devices: String,
    pub(crate) iterations: u64,
    pub(crate) repeat: usize,
    pub(crate) kinds: Vec<DeviceKind>,
    /// With the labels of their devices.
    pub(crate) experiments: Vec<(String, Experiment)>,
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Puts the facts in order.
    pub(crate) fn new(facts: Facts) -> Self {
        let Facts { matrix, precision, tune, devices, iterations, repeat, kinds, experiments, notes } = facts;
        let fastest_alone = |method: &str| {
            let alone = experiments.iter().filter(|(label, one)| label != ALL && one.method == method);
            alone.map(|(_, one)| one.seconds_per_iteration()).reduce(f64::min)
        };
        let entry = |(label, experiment): &(String, Experiment)| {
            let one = experiment.clone();
            let seconds = one.seconds_per_iteration();
            Entry {
                kernel_seconds: one.kernel_seconds(),
                overhead_seconds: one.overhead_seconds(),
                microseconds_per_iteration: 1e6 * seconds,
                gigabytes_per_second: 1e-9 * one.bytes_per_second(),
                part_of_copy: one.copy_bytes_per_second.map(|copy| one.bytes_per_second() / copy),
                gigaflops: 1e-9 * one.flops_per_second(),
                gigaflops_counted: one.counted_flops_per_second().map(|rate| 1e-9 * rate),
                speedup: fastest_alone(&one.method).filter(|_| label == ALL).map(|alone| alone / seconds),
                label: label.clone(),
                experiment: one,
            }
        };
        Self {
            version: VERSION,
            declive: DECLIVE,
            experiments: experiments.iter().map(entry).collect(),
            matrix,
            precision,
            tune,
            devices,
            iterations,
            repeat,
            kinds,
            published: AsPublished::new(),
            notes,
        }
    }

    /// The experiments, for the page.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        self.experiments.iter().map(|entry| entry.experiment.clone()).collect()
    }

    /// What could not be measured, for the page.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The label of all devices together.
pub(crate) const ALL: &str = "all";

impl AsPublished {
    fn new() -> Self {
        let kernels = |one: &Published| {
            let kernels = super::bench_published::KERNELS.into_iter().zip(one.kernels);
            kernels.map(|(kernel, seconds)| PublishedKernel { kernel, seconds }).collect()
        };
        let entry = |one: &Published| PublishedEntry {
            name: one.name,
            kernels: kernels(one),
            overhead_seconds: one.overhead,
            total_seconds: one.total,
        };
        Self {
            source: SOURCE,
            method: METHOD,
            precision: "f32",
            order: ORDER,
            iterations: ITERATIONS,
            experiments: PUBLISHED.iter().map(entry).collect(),
        }
    }
}

fn display<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}
