//! What part of a system each rank gets.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::device::Info;
use crate::error::{Error, Result};
use crate::named::named;

named! {
    /// Where the shares of ranks come from.
    ShareSource, "source of shares":
    Even = "even", "All alike.";
    Measured = "measured", "As fast as each was measured to be on rows of the system.";
    Remembered = "remembered", "As fast as each was in a former solve.";
    ByHand = "by hand", "As asked for.";
}

/// Shares of ranks, in proportion to each other: finite, not negative, not all 0.
///
/// ```
/// use declive::solve::Shares;
///
/// let shares: Shares = "3:1".parse()?;
/// assert_eq!((shares.parts(), shares.to_string().as_str()), ([3.0, 1.0].as_slice(), "3:1"));
/// assert!("0:0".parse::<Shares>().is_err());
/// # Ok::<(), declive::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct Shares(Vec<f64>);

impl Shares {
    /// One number for each rank.
    ///
    /// # Errors
    /// [`Error::Usage`] for none, numbers below 0 or beyond all bounds, and if all are 0.
    pub fn new(parts: Vec<f64>) -> Result<Self> {
        if let Some(bad) = parts.iter().find(|part| !(part.is_finite() && **part >= 0.0)) {
            return Err(Error::Usage(format!("a share is {bad}; shares are numbers from 0 on, such as 3:1")));
        }
        let whole: f64 = parts.iter().sum();
        if whole <= 0.0 || !whole.is_finite() {
            return Err(Error::Usage(
                "all shares are 0, so that no rank would have rows; give one, at least, more".into(),
            ));
        }
        Ok(Self(parts))
    }

    /// The number of each rank.
    #[must_use]
    pub fn parts(&self) -> &[f64] {
        &self.0
    }

    /// The same for `ranks` ranks, of which there must be as many.
    pub(crate) fn of_ranks(&self, ranks: usize) -> Result<&[f64]> {
        if self.0.len() == ranks {
            return Ok(&self.0);
        }
        let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let (given, there) = (count(self.0.len(), "number"), count(ranks, "rank"));
        Err(Error::Usage(format!("shares = {self} has {given}, but there are {there}; give one number for each rank")))
    }
}

/// The shares of ranks: those given by hand; the same for devices that are alike; else their speeds, of each kind measured once.
///
/// # Errors
/// Shares for another number of ranks; those of `speed`.
pub(crate) fn by_speed(
    devices: &[Option<Info>],
    by_hand: Option<&Shares>,
    mut speed: impl FnMut(Option<&Info>) -> Result<f64>,
) -> Result<(Vec<f64>, ShareSource)> {
    if let Some(shares) = by_hand {
        return Ok((shares.of_ranks(devices.len())?.to_vec(), ShareSource::ByHand));
    }
    let kind = |device: &Option<Info>| {
        device.as_ref().map_or_else(|| "host".to_owned(), |device| format!("{}, {}", device.name, device.driver))
    };
    let kinds: Vec<String> = devices.iter().map(kind).collect();
    if kinds.iter().all(|kind| *kind == kinds[0]) {
        return Ok((vec![1.0; devices.len()], ShareSource::Even));
    }
    let mut speeds: Vec<f64> = Vec::new();
    for (k, device) in devices.iter().enumerate() {
        let known = kinds[..k].iter().position(|kind| *kind == kinds[k]);
        let found = known.map_or_else(|| speed(device.as_ref()), |known| Ok(speeds[known]))?;
        log::info!("{}: {found:.3e} a second", kinds[k]);
        speeds.push(found);
    }
    Ok((speeds, ShareSource::Measured))
}

impl FromStr for Shares {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let part = |text: &str| {
            let wrong = || Error::Usage(format!("unknown share '{text}'; shares are numbers from 0 on, such as 3:1"));
            text.trim().parse::<f64>().map_err(|_| wrong())
        };
        Self::new(s.split(':').map(part).collect::<Result<_>>()?)
    }
}

impl From<Shares> for String {
    fn from(shares: Shares) -> Self {
        shares.to_string()
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if k == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_parse_and_print() {
        for text in ["3:1", "0:1", "1", "0.25:0.75:0", "1e-3:2"] {
            let shares: Shares = text.parse().unwrap();
            assert_eq!(shares.to_string().parse::<Shares>().unwrap(), shares, "{text}");
        }
        for (text, words) in [
            ("", "unknown share"),
            ("3:", "unknown share"),
            ("3,1", "unknown share '3,1'"),
            ("1:-1", "a share is -1"),
            ("inf:1", "a share is inf"),
            ("nan", "a share is NaN"),
            ("0:0", "all shares are 0"),
            ("1e308:1e308", "all shares"),
        ] {
            let error = text.parse::<Shares>().unwrap_err();
            assert!(matches!(&error, Error::Usage(why) if why.contains(words)), "{text}: {error}");
        }
    }

    #[test]
    fn a_wrong_count_names_both() {
        let shares: Shares = "3:1".parse().unwrap();
        assert_eq!(shares.of_ranks(2).unwrap(), [3.0, 1.0]);
        let error = shares.of_ranks(1).unwrap_err().to_string();
        assert!(error.contains("2 numbers") && error.contains("1 rank;"), "{error}");
    }
}
