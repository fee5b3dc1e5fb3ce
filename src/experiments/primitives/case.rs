//! A task with its numbers, and what the host makes of them in its own way.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::Task;
use crate::timing::{Timing, timing};

/// How long the host repeats what it does, at most, once it is done.
const ENOUGH: Duration = Duration::from_secs(1);

/// A task, numbers for it, and what comes of them. The host sorts with all threads, by a stable sort by key, or of keys alone; the rest
/// is a loop of one thread.
pub struct Case {
    /// The task.
    pub task: Task,
    /// Elements.
    pub rows: usize,
    /// The time that the host takes.
    pub host: Timing,
    pub(super) input: Arrays,
    pub(super) output: Arrays,
}

/// The arrays of a task; those of other tasks are empty.
#[derive(Default)]
pub(super) struct Arrays {
    /// Numbers to be summed, sums, values, indices, or keys of 32 bits.
    pub(super) narrow: Vec<u32>,
    /// Sums, or keys of 64 bits.
    pub(super) wide: Vec<u64>,
    pub(super) flags: Vec<u8>,
    /// The places of keys before they were sorted.
    pub(super) order: Vec<u32>,
}

impl Case {
    /// Numbers as if by chance, and what the host makes of them; the median of `repeat` runs, or of as many as there
    /// are in a second.
    #[must_use]
    pub fn new(task: Task, rows: usize, repeat: usize) -> Self {
        let input = input(task, rows);
        let (mut times, mut output) = (Vec::new(), Arrays::default());
        let begun = Instant::now();
        while times.is_empty() || times.len() < repeat && begun.elapsed() < ENOUGH {
            let seconds;
            (seconds, output) = run(task, &input);
            times.push(seconds);
        }
        Self { task, rows, host: timing(times), input, output }
    }
}

fn input(task: Task, rows: usize) -> Arrays {
    let numbers = |bits: u32| (0..rows as u64).into_par_iter().map(move |i| by_chance(i) >> (64 - bits));
    let narrow = |bits: u32| numbers(bits).map(|v| v as u32).collect();
    let none = Arrays::default();
    match task {
        // such as rows of a matrix have entries: the sum fits into 32 bits for 2 · 10⁸ rows
        Task::Scan | Task::WideScan => Arrays { narrow: narrow(5), ..none },
        Task::Indices => Arrays { flags: numbers(1).map(|v| v as u8).collect(), ..none },
        Task::Values => Arrays { flags: numbers(1).map(|v| v as u8).collect(), narrow: narrow(32), ..none },
        Task::Keys(bits) | Task::Pairs(bits) | Task::Permutation(bits) if bits > 32 => {
            Arrays { wide: numbers(bits).collect(), ..none }
        }
        Task::Keys(bits) | Task::Pairs(bits) | Task::Permutation(bits) => Arrays { narrow: narrow(bits), ..none },
    }
}

/// A number as if by chance, for each `i` another (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195).
fn by_chance(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Does it once: seconds, and what came of it.
fn run(task: Task, input: &Arrays) -> (f64, Arrays) {
    let none = Arrays::default();
    let set = || input.flags.iter().enumerate().filter(|(_, flag)| **flag != 0).map(|(i, _)| i);
    match task {
        Task::Scan => {
            let (seconds, narrow) = timed(|| sums(&input.narrow, u32::wrapping_add));
            (seconds, Arrays { narrow, ..none })
        }
        Task::WideScan => {
            let (seconds, wide) = timed(|| sums(&input.narrow, |sum, v| sum + u64::from(v)));
            (seconds, Arrays { wide, ..none })
        }
        Task::Indices => {
            let (seconds, narrow) = timed(|| set().map(|i| i as u32).collect());
            (seconds, Arrays { narrow, ..none })
        }
        Task::Values => {
            let (seconds, narrow) = timed(|| set().map(|i| input.narrow[i]).collect());
            (seconds, Arrays { narrow, ..none })
        }
        Task::Keys(bits) if bits > 32 => {
            let (seconds, wide) = sorted(&input.wide);
            (seconds, Arrays { wide, ..none })
        }
        Task::Keys(_) => {
            let (seconds, narrow) = sorted(&input.narrow);
            (seconds, Arrays { narrow, ..none })
        }
        Task::Pairs(bits) | Task::Permutation(bits) if bits > 32 => {
            let (seconds, (wide, order)) = sorted_pairs(&input.wide);
            (seconds, Arrays { wide, order, ..none })
        }
        Task::Pairs(_) | Task::Permutation(_) => {
            let (seconds, (narrow, order)) = sorted_pairs(&input.narrow);
            (seconds, Arrays { narrow, order, ..none })
        }
    }
}

fn timed<R>(run: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = run();
    (start.elapsed().as_secs_f64(), result)
}

/// The sums of all numbers before each, and of all.
fn sums<S: Copy + Default>(v: &[u32], add: impl Fn(S, u32) -> S) -> Vec<S> {
    let mut all = Vec::with_capacity(v.len() + 1);
    let mut sum = S::default();
    for &v in v {
        all.push(sum);
        sum = add(sum, v);
    }
    all.push(sum);
    all
}

fn sorted<K: Copy + Ord + Send + Sync>(keys: &[K]) -> (f64, Vec<K>) {
    let mut keys = keys.to_vec();
    let (seconds, ()) = timed(|| keys.par_sort_unstable());
    (seconds, keys)
}

/// Keys in order, and the places where they were; only sorting is timed.
fn sorted_pairs<K: Copy + Ord + Send + Sync>(keys: &[K]) -> (f64, (Vec<K>, Vec<u32>)) {
    let mut pairs: Vec<(K, u32)> = keys.par_iter().enumerate().map(|(i, key)| (*key, i as u32)).collect();
    let (seconds, ()) = timed(|| pairs.par_sort_by_key(|(key, _)| *key));
    (seconds, pairs.into_par_iter().unzip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_by_hand() {
        let of = |task, narrow: &[u32], flags: &[u8]| {
            run(task, &Arrays { narrow: narrow.to_vec(), flags: flags.to_vec(), ..Arrays::default() }).1
        };
        assert_eq!(of(Task::Scan, &[3, 0, 4], &[]).narrow, [0, 3, 3, 7]);
        assert_eq!(of(Task::WideScan, &[u32::MAX, 1], &[]).wide, [0, 0xFFFF_FFFF, 1 << 32]);
        assert_eq!(of(Task::Indices, &[], &[1, 0, 0, 1]).narrow, [0, 3]);
        assert_eq!(of(Task::Values, &[5, 6, 7], &[0, 1, 1]).narrow, [6, 7]);
        let sorted = of(Task::Pairs(8), &[2, 1, 2, 0], &[]);
        assert_eq!((&sorted.narrow[..], &sorted.order[..]), (&[0, 1, 2, 2][..], &[3, 1, 0, 2][..]));
    }

    #[test]
    fn keys_have_the_bits_that_are_looked_at() {
        for task in Task::ALL {
            let Case { input, output, host, .. } = Case::new(task, 2000, 3);
            assert!(host.runs == 3 && host.median > 0.0);
            match task {
                Task::Keys(bits) | Task::Pairs(bits) | Task::Permutation(bits) => {
                    let most = input.wide.iter().copied().chain(input.narrow.iter().map(|&key| key.into())).max();
                    assert_eq!(64 - most.unwrap().leading_zeros(), bits, "{task}");
                }
                Task::Indices | Task::Values => assert!((800..1200).contains(&output.narrow.len())),
                Task::Scan => assert_eq!(output.narrow.len(), 2001),
                Task::WideScan => assert_eq!(output.wide.len(), 2001),
            }
        }
    }
}
