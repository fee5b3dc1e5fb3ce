//! Plausible findings: a model of a device's time over groups and their sizes, with a little noise, always the same.

use declive::experiments::{Experiment, KernelTime};
use declive::tune::{Chosen, Curve, DeviceFacts, Found, KernelFound, Launch, Point, Search, Timing};

/// Kernels with the bytes of a row and of an entry, and whether they have row blocks.
const KERNELS: [(&str, [u64; 2], bool); 12] = [
    ("dot_partial", [16, 0], false),
    ("next_iterate", [24, 0], false),
    ("next_residual", [24, 0], false),
    ("next_direction", [24, 0], false),
    ("scale_diagonal", [24, 0], false),
    ("spmv_csr", [20, 12], true),
    ("spmv_dot_csr", [20, 12], true),
    ("residual_csr", [28, 12], true),
    ("cg_step", [56, 0], false),
    ("cg_step_weighted", [64, 0], false),
    ("halo_pack", [0, 0], false),
    ("stream_copy", [16, 0], false),
];
const ROWS: usize = 1 << 23;
const ENTRIES: usize = 7 * ROWS - 6 * (1 << 15) * 8;

/// What a device is like.
struct Model {
    units: u32,
    /// Bytes a second at best.
    bandwidth: f64,
    /// Of a launch, in seconds.
    latency: f64,
    /// Work-items a unit that keep half of the bandwidth busy.
    half: f64,
    sizes: &'static [usize],
    groups: Vec<usize>,
}

/// From −1 to 1, the same for the same numbers.
fn noise(seeds: [usize; 3]) -> f64 {
    let mix = |h: u64, s: &usize| (h ^ *s as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = seeds.iter().fold(0x1234_5678_9abc_def1, mix);
    (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn timing(median: f64, spread: f64) -> Timing {
    Timing { median, low: median * (1.0 - 0.6 * spread), high: median * (1.0 + spread), runs: 15 }
}

impl Model {
    fn timing(&self, kernel: usize, bytes: u64, groups: usize, size: usize, block: usize) -> Timing {
        let items = (groups * size) as f64;
        let busy = items / (items + self.half) / (1.0 + items / (400.0 * self.half));
        // rows of the last turn leave units idle
        let idle = 1.0 + 0.12 / groups as f64 * ((groups * 7 + kernel) % 3) as f64;
        let block = 1.0 + if block > 0 { 0.08 * (block as f64 / 2048.0).log2().abs() } else { 0.0 };
        let median = self.latency + bytes as f64 / (self.bandwidth * busy) * idle * block;
        let wobble = noise([kernel, groups, size]);
        timing(median * (1.0 + 0.015 * wobble), 0.02 + 0.02 * wobble.abs())
    }

    fn kernel(&self, index: usize) -> KernelFound {
        let (kernel, bytes, blocks) = KERNELS[index];
        let of = |[row, entry]: [u64; 2]| row * ROWS as u64 + entry * ENTRIES as u64;
        let (bytes, elements) = if kernel == "halo_pack" { (1_310_720, 65_536) } else { (of(bytes), ROWS) };
        let blocks: &[usize] = if blocks { &[1024, 2048, 4096] } else { &[0] };
        let time = |groups, size, block| self.timing(index, bytes, groups, size, block);
        let mut curves = Vec::new();
        for &group_size in self.sizes {
            for &block_nnz in blocks {
                let point = |&groups_per_unit: &usize| Point {
                    groups_per_unit,
                    groups: groups_per_unit * self.units as usize,
                    timing: time(groups_per_unit, group_size, block_nnz),
                };
                let points: Vec<Point> = self.groups.iter().map(point).collect();
                curves.push(Curve { group_size, block_nnz, points });
            }
        }
        let all = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
        let best = all.min_by(|a, b| a.1.timing.median.total_cmp(&b.1.timing.median)).unwrap();
        let launch = |groups_per_unit, group_size, block_nnz| Launch {
            group_size,
            groups_per_unit,
            block_nnz,
            items_per_row: 1,
        };
        let chosen = launch(best.1.groups_per_unit, best.0.group_size, best.0.block_nnz);
        let chosen = Chosen { launch: chosen, timing: timing(1.002 * best.1.timing.median, 0.015) };
        let largest = self.sizes[self.sizes.len() - 1];
        let default = launch(8, 256.min(largest), blocks[blocks.len() / 2]);
        let default_time = time(default.groups_per_unit, default.group_size, default.block_nnz);
        KernelFound {
            kernel: kernel.into(),
            bytes,
            elements,
            curves,
            default: Chosen { launch: default, timing: default_time },
            chosen,
        }
    }

    fn found(&self, device: DeviceFacts, search: Search, seconds: f64) -> Found {
        Found {
            device,
            precision: "f64".into(),
            matrix: "poisson3d:256,256,128".into(),
            order: ROWS,
            nnz: ENTRIES,
            halo: 0,
            search,
            limit_bytes_per_second: 0.985 * self.bandwidth,
            seconds,
            kernels: (0..KERNELS.len()).map(|index| self.kernel(index)).collect(),
        }
    }
}

fn facts(name: &str, vendor: &str, platform: &str, kind: &str, compute_units: u32) -> DeviceFacts {
    DeviceFacts {
        name: name.into(),
        vendor: vendor.into(),
        platform: platform.into(),
        driver: "580.159.03".into(),
        opencl: "OpenCL 3.0".into(),
        kind: kind.into(),
        compute_units,
        clock_mhz: 1980,
        memory_bytes: 139 << 30,
        local_memory_bytes: 48 << 10,
        max_work_group: 1024,
    }
}

/// A large GPU, every number of groups up to 64 at eight sizes: as much as a report ever has of a device.
pub(super) fn large_gpu() -> Found {
    let model = Model {
        units: 132,
        bandwidth: 3.96e12,
        latency: 3.1e-6,
        half: 620.0,
        sizes: &[8, 16, 32, 64, 128, 256, 512, 1024],
        groups: (1..=64).collect(),
    };
    model.found(facts("NVIDIA H200", "NVIDIA Corporation", "NVIDIA CUDA", "GPU", 132), Search::Refine, 212.4)
}

/// A small GPU, numbers of groups that double.
pub(super) fn small_gpu() -> Found {
    let model = Model {
        units: 6,
        bandwidth: 46e9,
        latency: 12e-6,
        half: 300.0,
        sizes: &[64, 128, 256],
        groups: vec![1, 2, 4, 6, 8, 12, 16, 32, 64],
    };
    model.found(facts("Radeon HD 6750M", "AMD", "Apple", "GPU", 6), Search::Refine, 18.7)
}

/// A CPU: groups of one work-item, few of them.
pub(super) fn cpu() -> Found {
    let model =
        Model { units: 16, bandwidth: 38e9, latency: 25e-6, half: 0.25, sizes: &[1], groups: (1..=8).collect() };
    let name = "cpu-skylake-avx512-Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz";
    model.found(facts(name, "GenuineIntel", "Portable Computing Language", "CPU", 16), Search::FirstMinimum, 40.3)
}

/// The devices of a report.
pub(super) fn three() -> Vec<Found> {
    vec![large_gpu(), small_gpu(), cpu()]
}

/// One device, four of its kind, and another method.
pub(super) fn experiments() -> Vec<Experiment> {
    let device = "NVIDIA H200";
    let cg = ["spmv_dot_csr", "cg_step"];
    let classic = ["spmv_csr", "dot_partial", "next_iterate", "next_residual", "next_direction"];
    let experiment = |name: &str, count, method: &str, total_seconds, kernels: &[&str], seconds: &[f64]| Experiment {
        name: name.into(),
        devices: vec![device.into(); count],
        method: method.into(),
        precision: "f64".into(),
        matrix: "poisson3d:256,256,128".into(),
        order: ROWS,
        nnz: ENTRIES,
        iterations: 100,
        total_seconds,
        least_seconds: 0.99 * total_seconds,
        most_seconds: 1.02 * total_seconds,
        bytes_per_iteration: 76 * ROWS as u64 + 12 * ENTRIES as u64,
        copy_bytes_per_second: Some(4e12 * count as f64),
        notes: Vec::new(),
        kernels: std::iter::zip(kernels, seconds)
            .map(|(kernel, &seconds)| KernelTime {
                kernel: (*kernel).into(),
                calls: if *kernel == "dot_partial" { 200 } else { 100 },
                seconds,
            })
            .collect(),
    };
    let with_halo: Vec<&str> = cg.into_iter().chain(["halo_pack"]).collect();
    vec![
        experiment("H200", 1, "cg", 0.0447, &cg, &[0.0249, 0.0180]),
        experiment("4 × H200", 4, "cg", 0.0235, &with_halo, &[0.0064, 0.0048, 0.0006]),
        experiment("H200, classic", 1, "cg-classic", 0.0583, &classic, &[0.0243, 0.0091, 0.0061, 0.0060, 0.0061]),
    ]
}
