//! Recordings made by hand.

use std::time::{Duration, Instant};

use declive::timeline::{Lane, Span, Timeline};
use declive::tune::DeviceFacts;

use super::super::super::recording::{Column, Phase, Recording};

/// Of an iteration.
pub(super) const PERIOD: u64 = 100;

/// So many iterations of 100 µs from 1 ms on: on rank k the product takes 40 + 10 k µs, the step 20 µs, the last kernel
/// a quarter of a microsecond; the host waits for 30 µs.
pub(super) fn timeline(rank: u64, iterations: u64) -> Timeline {
    let mut spans = Vec::new();
    let mut add = |lane, name, iteration, [start, end]: [u64; 2]| {
        let [start, end] = [start, end].map(Duration::from_nanos);
        spans.push(Span { lane, name, iteration, start, end });
    };
    add(Lane::Kernels, "residual_csr", None, [900_000, 950_000]);
    for k in 1..=iterations {
        let at = |nanos: u64| 1_000_000 + 1000 * PERIOD * (k - 1) + nanos;
        add(Lane::Kernels, "spmv_dot_csr", Some(k), [at(0), at(40_000 + 10_000 * rank)]);
        add(Lane::Kernels, "cg_step", Some(k), [at(75_000), at(95_000)]);
        add(Lane::Kernels, "halo_pack", Some(k), [at(98_000), at(98_250)]);
        add(Lane::Host, "sum over ranks", Some(k), [at(45_000), at(75_000)]);
    }
    spans.sort_by_key(|span| (span.lane, span.start));
    Timeline { origin: Some(Instant::now()), spans, runs: vec![iterations, iterations] }
}

/// The timelines of so many ranks.
pub(super) fn timelines(ranks: u64, iterations: u64) -> Vec<Timeline> {
    (0..ranks).map(|rank| timeline(rank, iterations)).collect()
}

/// A residual that falls by a tenth in each iteration.
pub(super) fn history(iterations: u64) -> Vec<f64> {
    (0..=iterations).map(|k| 0.9f64.powf(k as f64)).collect()
}

/// A recording of right-hand sides that all went the same way.
pub(super) fn recording<'a>(columns: usize, history: &'a [f64], timelines: &'a [Timeline]) -> Recording<'a> {
    let ms = Duration::from_millis;
    let driver = DeviceFacts {
        name: "NVIDIA H200".into(),
        kind: "GPU".into(),
        local_memory_bytes: 48 << 10,
        max_work_group: 1024,
        platform: "NVIDIA CUDA".into(),
        vendor: "NVIDIA Corporation".into(),
        driver: "580.159".into(),
        opencl: "OpenCL 3.0 CUDA".into(),
        compute_units: 132,
        clock_mhz: 1980,
        memory_bytes: 139 << 30,
    };
    Recording {
        drivers: vec![Some(driver); timelines.len()],
        phases: vec![Phase { name: "set up".into(), start: ms(0), end: ms(10), parts: Vec::new() }],
        columns: vec![Column { history, timelines, origin: Some(ms(12)) }; columns],
    }
}
