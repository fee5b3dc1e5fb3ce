//! What experiments found: where the time of an iteration goes, on each device and on all together.

use declive::experiments::Experiment;
use declive::solve::{Precision, Tune};
use serde::Serialize;

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) matrix: Matrix,
    pub(crate) precision: Precision,
    /// Where launch parameters came from.
    pub(crate) tune: Tune,
    /// As they were asked for.
    pub(crate) devices: String,
    /// As many as were asked for.
    pub(crate) iterations: u64,
    /// Runs whose median is the total.
    pub(crate) repeat: usize,
    /// Each kind of device once.
    pub(crate) kinds: Vec<DeviceKind>,
    pub(crate) experiments: Vec<Entry>,
    /// What could not be measured, or is not as one expects.
    pub(crate) notes: Vec<String>,
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    pub(crate) source: String,
    pub(crate) rows: usize,
    pub(crate) nnz: usize,
}

/// Devices that are alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeviceKind {
    /// `[0]` or `host`: the one that was measured.
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    /// The numbers of all that are like it.
    pub(crate) indices: Vec<usize>,
    /// What a plain copy reaches on one of them, read and written.
    pub(crate) copy_gigabytes_per_second: Option<f64>,
}

/// An experiment, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
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
    /// Of all together: how many times as fast an iteration as on the fastest device alone.
    pub(super) speedup: Option<f64>,
}

impl Report {
    /// The experiments, for the page.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        self.experiments.iter().map(|entry| entry.experiment.clone()).collect()
    }
}

impl Entry {
    /// Experiments with the labels of their devices.
    pub(crate) fn all(experiments: Vec<(String, Experiment)>) -> Vec<Self> {
        let all: Vec<Experiment> = experiments.iter().map(|(_, one)| one.clone()).collect();
        let entry = |(label, one): (String, Experiment)| Self {
            kernel_seconds: one.kernel_seconds(),
            overhead_seconds: one.overhead_seconds(),
            microseconds_per_iteration: 1e6 * one.seconds_per_iteration(),
            gigabytes_per_second: 1e-9 * one.bytes_per_second(),
            part_of_copy: one.copy_bytes_per_second.map(|copy| one.bytes_per_second() / copy),
            speedup: speedup(&one, &all),
            label,
            experiment: one,
        };
        experiments.into_iter().map(entry).collect()
    }
}

/// How many times as fast an iteration on several devices is as on the fastest one alone, by the same method with the same
/// matrix; none for a device alone, or if none was measured alone.
pub(super) fn speedup(one: &Experiment, among: &[Experiment]) -> Option<f64> {
    let same =
        |other: &&Experiment| other.devices.len() == 1 && [&other.method, &other.matrix] == [&one.method, &one.matrix];
    let alone = among.iter().filter(same).map(Experiment::seconds_per_iteration).reduce(f64::min)?;
    (one.devices.len() > 1).then(|| alone / one.seconds_per_iteration())
}

/// The label of all devices together.
pub(crate) const ALL: &str = "all";

#[cfg(test)]
mod tests {
    use super::*;
    use declive::experiments::KernelTime;
    use serde_json::Value;

    fn experiment(method: &str, devices: usize, total: f64) -> Experiment {
        let kernel =
            |kernel: &str, calls, part: f64| KernelTime { kernel: kernel.into(), calls, seconds: part * total };
        Experiment {
            name: format!("{devices} × GPU"),
            devices: vec!["GPU".into(); devices],
            method: method.into(),
            precision: "f64".into(),
            matrix: "poisson3d:215".into(),
            order: 10_000_000,
            nnz: 70_000_000,
            iterations: 100,
            total_seconds: total,
            least_seconds: 0.9 * total,
            most_seconds: 1.5 * total,
            bytes_per_iteration: 2_000_000_000,
            copy_bytes_per_second: Some(4e12),
            kernels: vec![kernel("spmv_csr", 100, 0.5), kernel("dot_partial", 200, 0.25)],
            notes: vec!["an odd thing".into()],
        }
    }

    fn report() -> Report {
        Report {
            matrix: Matrix { source: "poisson3d:215".into(), rows: 10_000_000, nnz: 70_000_000 },
            precision: Precision::F64,
            tune: Tune::Stored,
            devices: "auto".into(),
            iterations: 100,
            repeat: 3,
            kinds: vec![DeviceKind {
                label: "[0]".into(),
                name: "GPU".into(),
                kind: "GPU".into(),
                indices: vec![0, 1, 2, 3],
                copy_gigabytes_per_second: Some(4000.0),
            }],
            experiments: Entry::all(vec![
                ("[0]".into(), experiment("cg-classic", 1, 0.08)),
                (ALL.into(), experiment("cg-classic", 4, 0.04)),
                ("[0]".into(), experiment("cg", 1, 0.06)),
            ]),
            notes: vec!["cg on all is left out: why".into()],
        }
    }

    #[test]
    fn rates_by_hand() {
        let report: Value = serde_json::from_str(&crate::report::json(&report())).unwrap();
        let one = &report["experiments"][1];
        let close = |field: &str, value: f64| {
            let found = one[field].as_f64().unwrap();
            assert!((found - value).abs() < 1e-9 * value, "{field}: {found}");
        };
        close("kernel_seconds", 0.03);
        close("overhead_seconds", 0.01);
        close("microseconds_per_iteration", 400.0);
        close("gigabytes_per_second", 5000.0);
        close("part_of_copy", 1.25);
        close("speedup", 2.0);
        assert!(report["experiments"][0]["speedup"].is_null() && report["experiments"][2]["speedup"].is_null());
    }

    #[test]
    fn the_text_has_what_the_json_has() {
        let text = report().to_string();
        let row = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            line.trim_start()[name.len()..].split_whitespace().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(row("spmv_csr"), ["0.0400", "0.0200"]);
        assert_eq!(row("overhead"), ["0.0200", "0.0100"]);
        assert_eq!(row("total"), ["0.0800", "0.0400"]);
        assert_eq!([row("fastest run"), row("slowest run")], [["0.0720", "0.0360"], ["0.1200", "0.0600"]]);
        assert_eq!(row("µs an iteration"), ["800", "400"]);
        assert_eq!(row("GB/s"), ["2500", "5000"]);
        assert_eq!(row("of a copy"), ["62.5", "%", "125.0", "%"]);
        assert_eq!(row("speed-up"), ["2.00"]);
        for part in
            ["[0]             GPU (GPU), one of 4 that are alike, copies 4000 GB/s", "poisson3d:215", "left out: why."]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(text.matches("an odd thing").count(), 3);
    }
}
