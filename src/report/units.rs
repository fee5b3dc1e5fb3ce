//! Numbers as people read them.

use declive::matrix::Scalar;

/// 1234567 as `1,234,567`.
pub(super) fn count(n: impl TryInto<u64>) -> String {
    let digits = n.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 row`, `2 rows`, `2 entries`.
pub(super) fn plural(n: impl TryInto<u64> + Copy, what: &str) -> String {
    match (n.try_into(), what.strip_suffix('y')) {
        (Ok(1), _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{} {stem}ies", count(n)),
        (_, None) => format!("{} {what}s", count(n)),
    }
}

/// A size with a binary unit: `512 B`, `47.7 MiB`.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let (mut size, mut unit) = (n as f64 / 1024.0, 0);
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// Three figures in scientific notation: `9.31e-9`.
pub(super) fn scientific(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.2e}") }
}

/// A number as it was given: `1e-8`, `0`.
pub(super) fn exact(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:e}") }
}

/// Short where that loses nothing: `4`, `-0.25`, `1.2345e-9`, `0 + 1i`.
pub(super) fn number<T: Scalar>(value: T) -> String {
    let real = |v: f64| {
        let (plain, scientific) = (v.to_string(), format!("{v:e}"));
        if plain.len() <= scientific.len() { plain } else { scientific }
    };
    if !T::IS_COMPLEX {
        return real(value.re());
    }
    let sign = if value.im().is_sign_negative() { '−' } else { '+' };
    format!("{} {sign} {}i", real(value.re()), real(value.im().abs()))
}

/// `part` of `whole` in percent: `49.9 %`.
pub(super) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { "–".into() }
}

/// A rate or another plain number with about three figures, however large.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let all = [0u64, 7, 999, 1000, 12_345, 1_234_567].map(count);
        assert_eq!(all, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([plural(1u64, "row"), plural(2000u64, "row")], ["1 row", "2,000 rows"]);
        assert_eq!([plural(1u64, "entry"), plural(0u64, "entry")], ["1 entry", "0 entries"]);
    }

    #[test]
    fn sizes() {
        let all = [0, 1023, 1024, 50_000_000, 1 << 30, (1 << 30) - 1, 1 << 50].map(bytes);
        assert_eq!(all, ["0 B", "1023 B", "1.0 KiB", "47.7 MiB", "1.0 GiB", "1.0 GiB", "1024.0 TiB"]);
    }

    #[test]
    fn figures() {
        assert_eq!(
            [0.0, 0.004_2, 1.0, 10.0, 99.9, 4321.9].map(figure),
            ["0.00", "4.20e-3", "1.00", "10.0", "99.9", "4322"]
        );
        assert_eq!([0.0, 9.312e-9, f64::NAN].map(scientific), ["0", "9.31e-9", "NaN"]);
        assert_eq!([0.0, 1e-8].map(exact), ["0", "1e-8"]);
        assert_eq!([percent(1.0, 3.0), percent(0.0, 0.0)], ["33.3 %", "–"]);
    }
}
