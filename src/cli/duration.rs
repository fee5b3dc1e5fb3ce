//! Durations on the command line.

use std::time::Duration;

/// Units, longest first within a common ending: `ms` must be tried before `s`.
const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads `60`, `60s`, `1.5m`, `500ms` or `2h`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1.0));
    number
        .trim_end()
        .parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value * unit).ok())
        .ok_or_else(|| "not a duration; write 60, 60s, 1.5m, 500ms or 2h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let ms = |s| parse(s).map(|d| d.as_millis());
        assert_eq!(ms("60"), Ok(60_000));
        assert_eq!(ms("60s"), Ok(60_000));
        assert_eq!(ms("1.5m"), Ok(90_000));
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("2h"), Ok(7_200_000));
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(ms("1 s"), Ok(1_000));
    }

    #[test]
    fn nonsense_is_refused() {
        for s in ["", "s", "-1", "1d", "nan", "inf", "1e400", "1h30m", "m"] {
            assert!(parse(s).is_err(), "{s}");
        }
    }
}
