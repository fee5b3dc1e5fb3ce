//! The host as a device of its own.

use std::time::Instant;

use rayon::prelude::*;

/// Elements of each of the two arrays copied: beyond any cache, together 512 MiB.
const LENGTH: usize = 1 << 25;
/// The best of so many copies counts; the first also pays for the pages.
const TRIES: usize = 7;

/// Threads that a host rank has.
pub(crate) fn threads() -> usize {
    rayon::current_num_threads()
}

/// Measures how fast all threads together copy memory: bytes read and written a second.
pub(crate) fn measure_copy_bandwidth() -> f64 {
    let from = vec![1.0f64; LENGTH];
    let mut to = vec![0.0f64; LENGTH];
    let chunk = LENGTH / (8 * threads().next_power_of_two()).min(LENGTH);
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        to.par_chunks_mut(chunk).zip(from.par_chunks(chunk)).for_each(|(to, from)| to.copy_from_slice(from));
        best = best.min(start.elapsed().as_secs_f64());
        std::hint::black_box(&to);
    }
    (2 * LENGTH * size_of::<f64>()) as f64 / best
}
