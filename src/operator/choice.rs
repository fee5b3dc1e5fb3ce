//! Which format a block of rows takes: the judgement alone, by bytes or by times, wherever these come from.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::Format;
use crate::timing::Timing;

/// Formats that read at most so many times the fewest bytes are worth measuring. What a format saves in bytes, it may
/// lose in work for each entry. Beyond, fewer bytes took less time on GPUs wherever both were measured
/// (docs/measurements.md).
const BAND: f64 = 1.6;

/// Why a block of rows has its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Why {
    /// It was asked for.
    Forced,
    /// It reads the fewest bytes of those that suit the device.
    #[serde(rename = "fewest bytes")]
    FewestBytes,
    /// It was the fastest on this very block, or reads fewer bytes than others that are as fast.
    Measured,
    /// A former run has measured it on the same block.
    Remembered,
}

impl Why {
    /// In a word or two.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::FewestBytes => "fewest bytes",
            Self::Measured => "measured",
            Self::Remembered => "remembered",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that was considered for a block of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FormatCandidate {
    /// The format.
    #[serde(serialize_with = "by_name")]
    pub format: Format,
    /// Bytes that a product reads and writes, each array counted once.
    pub bytes: u64,
    /// Time of a product with both of its sums, the median, if it was measured. In JSON, microseconds.
    #[serde(rename = "microseconds", serialize_with = "in_microseconds")]
    pub time: Option<Duration>,
}

fn by_name<S: Serializer>(format: &Format, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

fn in_microseconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_some(&(time.as_nanos() as f64 / 1e3)),
        None => serializer.serialize_none(),
    }
}

impl FormatCandidate {
    /// A format that was not measured.
    pub(crate) fn new(format: Format, bytes: u64) -> Self {
        Self { format, bytes, time: None }
    }
}

/// How a rank came to the format of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FormatChoice {
    /// The reason.
    #[serde(rename = "format_why")]
    pub why: Why,
    /// What was considered, the format taken first.
    #[serde(rename = "formats")]
    pub candidates: Vec<FormatCandidate>,
}

impl FormatChoice {
    /// The choice of `format`, one of the candidates.
    pub(crate) fn new(why: Why, format: Format, mut candidates: Vec<FormatCandidate>) -> Self {
        candidates.sort_by_key(|candidate| candidate.format != format);
        Self { why, candidates }
    }

    /// Before there is any.
    pub(crate) fn unknown() -> Self {
        Self { why: Why::FewestBytes, candidates: Vec::new() }
    }

    /// What was considered alone.
    pub(crate) fn only(why: Why, candidate: FormatCandidate) -> Self {
        Self { why, candidates: vec![candidate] }
    }
}

/// What the rule of bytes knows of a format that is possible for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rated {
    pub(crate) format: Format,
    pub(crate) bytes: u64,
    /// Whether its bytes tell its time on this kind of device. If not, it is taken only if it was measured.
    pub(crate) is_trusted: bool,
}

/// The formats that are worth measuring: those within [`BAND`] of the fewest bytes of a trusted one.
pub(crate) fn contenders(rated: &[Rated]) -> Vec<Format> {
    let trusted = rated.iter().filter(|one| one.is_trusted).map(|one| one.bytes);
    let Some(fewest) = trusted.min() else { return Vec::new() };
    rated.iter().filter(|one| is_near(one.bytes, fewest)).map(|one| one.format).collect()
}

/// Whether a format of so many bytes is worth measuring beside one of `fewest`.
pub(crate) fn is_near(bytes: u64, fewest: u64) -> bool {
    bytes as f64 <= BAND * fewest as f64
}

/// The fastest of some formats by their times; where the quartiles of others overlap with its own, the one of them that
/// reads the fewest bytes. `None` without any time: formats that failed have none.
pub(crate) fn fastest(measured: &[(Format, u64, Option<Timing>)]) -> Option<Format> {
    let timed = || measured.iter().filter_map(|(format, bytes, timing)| Some((*format, *bytes, timing.as_ref()?)));
    let (.., best) = timed().min_by(|a, b| a.2.median.total_cmp(&b.2.median))?;
    timed().filter(|(.., timing)| timing.low <= best.high).min_by_key(|(_, bytes, _)| *bytes).map(|(format, ..)| format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Format::{Csr, Dictionary, Pattern, Sell};

    fn rated(all: &[(Format, u64, bool)]) -> Vec<Rated> {
        all.iter().map(|&(format, bytes, is_trusted)| Rated { format, bytes, is_trusted }).collect()
    }

    /// Quartiles in µs.
    fn timing([low, median, high]: [f64; 3]) -> Option<Timing> {
        Some(Timing { median: 1e-6 * median, low: 1e-6 * low, high: 1e-6 * high, runs: 9 })
    }

    #[test]
    fn what_is_near_the_fewest_bytes_is_measured() {
        let of = |all: &[(Format, u64, bool)]| contenders(&rated(all));
        assert_eq!(of(&[(Sell, 100, true), (Csr, 160, true)]), [Sell, Csr]);
        assert_eq!(of(&[(Sell, 100, true), (Csr, 161, true)]), [Sell]);
        assert_eq!(of(&[(Dictionary, 18, true), (Sell, 37, true), (Csr, 104, true)]), [Dictionary]);
        assert_eq!(of(&[(Csr, 104, true)]), [Csr]);
        assert_eq!(of(&[]), []);
        // what is not trusted rules nothing out, but is measured
        assert_eq!(of(&[(Dictionary, 18, false), (Pattern, 74, true), (Csr, 104, true)]), [Dictionary, Pattern, Csr]);
        assert_eq!(of(&[(Sell, 170, false), (Csr, 100, true)]), [Csr]);
    }

    #[test]
    fn the_fastest_is_taken() {
        let (fast, slow) = (timing([19.0, 19.7, 20.0]), timing([23.0, 23.5, 24.0]));
        assert_eq!(fastest(&[(Csr, 160, slow), (Sell, 100, fast)]), Some(Sell));
        assert_eq!(fastest(&[(Csr, 160, fast), (Sell, 100, slow)]), Some(Csr));
        assert_eq!(fastest(&[(Csr, 160, slow)]), Some(Csr));
    }

    #[test]
    fn a_tie_goes_to_fewer_bytes() {
        // the slow quarter of the fastest is as slow as the fast quarter of the other
        let (one, other) = (timing([19.0, 19.7, 21.0]), timing([21.0, 21.5, 22.0]));
        assert_eq!(fastest(&[(Csr, 160, one), (Sell, 100, other)]), Some(Sell));
        assert_eq!(fastest(&[(Csr, 100, one), (Sell, 160, other)]), Some(Csr));
        // one that is clearly slower has no part in it, whatever it reads
        let slower = timing([30.0, 31.0, 32.0]);
        assert_eq!(fastest(&[(Pattern, 50, slower), (Csr, 160, one), (Sell, 100, other)]), Some(Sell));
    }

    #[test]
    fn one_that_failed_is_not_taken() {
        let slow = timing([23.0, 23.5, 24.0]);
        assert_eq!(fastest(&[(Sell, 100, None), (Csr, 160, slow)]), Some(Csr));
        assert_eq!(fastest(&[(Sell, 100, None), (Csr, 160, None)]), None);
        assert_eq!(fastest(&[]), None);
    }

    #[test]
    fn the_format_taken_comes_first() {
        let all = [Dictionary, Sell, Csr].map(|format| FormatCandidate::new(format, 1)).to_vec();
        let choice = FormatChoice::new(Why::Measured, Sell, all);
        assert_eq!(choice.candidates.iter().map(|one| one.format).collect::<Vec<_>>(), [Sell, Dictionary, Csr]);
    }
}
