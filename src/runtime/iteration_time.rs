//! How long an iteration takes when nothing disturbs it.
//!
//! The mean of a short solve says little of the next one: in its first iterations drivers load kernels, some are timed, and
//! others try launch parameters. So the iterations are timed in windows, whose median counts.

use std::time::Duration;

/// Iterations of a window, at least, at first.
const WINDOW: u64 = 32;

/// When there are so many windows, neighbours are joined.
const MAX_WINDOWS: usize = 128;

/// The windows of a run.
#[derive(Debug)]
pub(crate) struct IterationTime {
    /// When the window began that is open, and after which iteration; none before the first one.
    since: Option<(Duration, u64)>,
    window: u64,
    /// Seconds of an iteration in each of the others.
    times: Vec<f64>,
}

impl Default for IterationTime {
    fn default() -> Self {
        Self { since: None, window: WINDOW, times: Vec::new() }
    }
}

impl IterationTime {
    /// What comes next is no iteration.
    pub(crate) fn pause(&mut self) {
        self.since = None;
    }

    /// So many iterations were done at the time `now`.
    pub(crate) fn see(&mut self, now: Duration, iterations: u64) {
        let Some((since, before)) = self.since else {
            self.since = Some((now, iterations));
            return;
        };
        let count = iterations.saturating_sub(before);
        if count < self.window {
            return;
        }
        self.times.push(now.saturating_sub(since).as_secs_f64() / count as f64);
        self.since = Some((now, iterations));
        if self.times.len() == MAX_WINDOWS {
            self.times = self.times.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
            self.window *= 2;
        }
    }

    /// Seconds of an iteration: the median of the windows, if there are any.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen of iterations that take so many microseconds each, seen one by one.
    fn iteration_time(times: impl IntoIterator<Item = u64>) -> IterationTime {
        let (mut iteration_time, mut now) = (IterationTime::default(), Duration::from_secs(1));
        iteration_time.see(now, 0);
        for (k, time) in times.into_iter().enumerate() {
            now += Duration::from_micros(time);
            iteration_time.see(now, k as u64 + 1);
        }
        iteration_time
    }

    fn micros(iteration_time: &IterationTime) -> Option<f64> {
        iteration_time.seconds().map(|seconds| (1e9 * seconds).round() / 1e3)
    }

    #[test]
    fn the_median_leaves_the_start_and_outliers_alone() {
        // 32 iterations to warm up, then 70 µs each but for some of 150 µs
        let times = (0..400).map(|k| if k < 32 || (100..130).contains(&k) { 150 } else { 70 });
        assert_eq!(micros(&iteration_time(times)), Some(70.0));
        assert_eq!(micros(&iteration_time([5; 31])), None);
        assert_eq!(micros(&iteration_time([5; 32])), Some(5.0));
        // 32 of 2 µs, 32 of 4 µs: no middle, so the larger one
        assert_eq!(micros(&iteration_time((0..64).map(|k| 2 + 2 * u64::from(k >= 32)))), Some(4.0));
    }

    #[test]
    fn what_is_seen_late_is_one_window() {
        let mut iteration_time = IterationTime::default();
        let mut see = |micros: u64, iterations| iteration_time.see(Duration::from_micros(micros), iterations);
        see(100, 0);
        see(150, 10);
        see(500, 100);
        see(501, 110);
        assert_eq!(micros(&iteration_time), Some(4.0));
        iteration_time.pause();
        iteration_time.see(Duration::from_secs(9), 110);
        assert_eq!(micros(&iteration_time), Some(4.0), "the time between runs does not count");
    }

    #[test]
    fn long_solves_have_long_windows() {
        let iteration_time = iteration_time(std::iter::repeat_n(3, 1_000_000));
        assert!(iteration_time.times.len() < MAX_WINDOWS && iteration_time.window > WINDOW);
        assert_eq!(micros(&iteration_time), Some(3.0));
    }
}
