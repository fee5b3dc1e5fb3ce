//! The time of something that was measured several times.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// Time of one launch, from several: seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The middle one.
    pub median: f64,
    /// A quarter took less.
    pub low: f64,
    /// A quarter took more.
    pub high: f64,
    /// How many launches.
    pub runs: usize,
}

/// The quartiles of some times, in seconds.
///
/// # Panics
/// Without any.
pub(crate) fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    Timing { median: at(0.5), low: at(0.25), high: at(0.75), runs: times.len() }
}

/// Serialises a time, if there is one, in seconds.
pub(crate) fn in_seconds<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| time.as_secs_f64()).serialize(serializer)
}

/// Serialises seconds, if there are any, as microseconds.
pub(crate) fn in_microseconds<S: Serializer>(
    seconds: &(impl Copy + Into<Option<f64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*seconds).into().map(|seconds| 1e6 * seconds).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let t = timing(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((t.low, t.median, t.high, t.runs), (2.0, 3.0, 4.0, 5));
        let one = timing(vec![7.0]);
        assert_eq!((one.low, one.median, one.high, one.runs), (7.0, 7.0, 7.0, 1));
    }
}
