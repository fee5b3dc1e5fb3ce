//! The time of something that was measured several times.

use serde::{Deserialize, Serialize};

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
