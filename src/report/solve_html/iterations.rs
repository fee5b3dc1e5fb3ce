//! Which iterations were recorded, and how long they took.

use std::collections::BTreeMap;
use std::time::Duration;

use declive::timeline::{Lane, Timeline};

use super::super::recording::Column;

/// The recorded iterations of a solve with their beginnings: the first kernel on any rank, or, where no device tells
/// times, the first that a host did.
pub(super) fn begins(timelines: &[Timeline]) -> BTreeMap<u64, Duration> {
    let all = || timelines.iter().flat_map(|timeline| &timeline.spans);
    let kernels = all().any(|span| span.lane == Lane::Kernels && span.iteration.is_some());
    let mut begins: BTreeMap<u64, Duration> = BTreeMap::new();
    for span in all().filter(|span| !kernels || span.lane == Lane::Kernels) {
        if let Some(iteration) = span.iteration {
            let begin = begins.entry(iteration).or_insert(span.start);
            *begin = span.start.min(*begin);
        }
    }
    begins
}

/// Up to `most` iterations that follow each other, from the middle of those recorded without a gap.
pub(super) fn middle(recorded: &BTreeMap<u64, Duration>, most: usize) -> Vec<u64> {
    let iterations: Vec<u64> = recorded.keys().copied().collect();
    let without_gap = iterations.chunk_by(|a, b| a + 1 == *b).max_by_key(|chunk| chunk.len()).unwrap_or_default();
    let skipped = without_gap.len().saturating_sub(most) / 2;
    without_gap.iter().copied().skip(skipped).take(most).collect()
}

/// The mean time, in seconds, from the beginning of a recorded iteration to that of the next one, where the solve did
/// not begin again between them.
pub(super) fn mean_time(columns: &[Column<'_>]) -> Option<f64> {
    let (mut sum, mut count) = (Duration::ZERO, 0);
    for column in columns {
        let begins = begins(column.timelines);
        let restarts = column.timelines.first().map(Timeline::restarts).unwrap_or_default();
        for (iteration, begin) in &begins {
            if let Some(next) = begins.get(&(iteration + 1))
                && !restarts.contains(iteration)
            {
                sum += next.saturating_sub(*begin);
                count += 1;
            }
        }
    }
    (count > 0).then(|| sum.as_secs_f64() / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(iterations: impl IntoIterator<Item = u64>) -> BTreeMap<u64, Duration> {
        iterations.into_iter().map(|k| (k, Duration::from_micros(k))).collect()
    }

    #[test]
    fn the_middle_has_no_gap() {
        assert_eq!(middle(&at((1..=100).chain([128, 192, 256])), 4), [49, 50, 51, 52]);
        assert_eq!(middle(&at(1..=3), 4), [1, 2, 3]);
        assert_eq!(middle(&at([64, 128]), 4).len(), 1);
        assert!(middle(&at([]), 4).is_empty());
    }
}
