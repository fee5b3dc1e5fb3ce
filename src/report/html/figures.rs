//! Numbers of the page: three figures, with a dash for what is no number.

use crate::report::units::count;

/// Stands for what can't be said.
pub(in crate::report) const NONE: &str = "–";

/// What a column of numbers is padded with on the right, so that its decimal points stand in a line: blanks as wide as
/// a digit and as a point.
const DIGIT: char = '\u{2007}';
const POINT: char = '\u{2008}';

/// Decimals that make three figures.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 || v == 0.0 => 2,
        v => (2.0 - v.log10().floor()).min(6.0) as usize,
    }
}

/// A number with so many decimals, and commas between thousands.
fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((&*text, ""), |(whole, fraction)| (whole, fraction));
    let whole = whole.parse().map_or_else(|_| whole.into(), |whole: u64| count(whole));
    let sign = if value < 0.0 && text.contains(|c| ('1'..='9').contains(&c)) { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// Three figures, or all of a larger number's whole part: `4.20`, `47.1`, `1,234`.
pub(in crate::report) fn three(value: f64) -> String {
    fixed(value, decimals(value))
}

/// The same for numbers that stand under each other, padded so that their decimal points do so too.
pub(in crate::report) fn column(values: &[f64]) -> Vec<String> {
    let finite = values.iter().filter(|value| value.is_finite());
    let most = finite.map(|&value| decimals(value)).max().unwrap_or(0);
    let padded = |&value: &f64| {
        let decimals = if value.is_finite() { decimals(value) } else { 0 };
        let mut text = fixed(value, decimals);
        if decimals == 0 && most > 0 {
            text.push(POINT);
        }
        text.extend(std::iter::repeat_n(DIGIT, most - decimals));
        text
    };
    values.iter().map(padded).collect()
}

/// A round number beside an axis, without zeros at its end: `0.5`, `2,000`.
pub(in crate::report) fn tick_label(tick: f64) -> String {
    if tick >= 1000.0 { three(tick) } else { ((1e6 * tick).round() / 1e6).to_string() }
}

/// A factor: `1.24`.
pub(in crate::report) fn factor(value: f64) -> String {
    fixed(value, 2)
}

/// A part in percent: `87 %`.
pub(in crate::report) fn percent(part: f64) -> String {
    if part.is_finite() { format!("{} %", fixed(100.0 * part, 0)) } else { NONE.into() }
}

/// A part in percent, with a decimal if it is small: `5.1 %`.
pub(in crate::report) fn fine_percent(part: f64) -> String {
    let percent = 100.0 * part;
    if percent.is_finite() { format!("{} %", fixed(percent, usize::from(percent < 9.95))) } else { NONE.into() }
}

/// A part in percent without the sign, for a column that has it in its head.
pub(in crate::report) fn hundredths(part: f64) -> String {
    fixed(100.0 * part, 0)
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Unit {
    /// `µs`.
    pub(in crate::report) name: &'static str,
    /// How many there are in a second.
    pub(in crate::report) per_second: f64,
}

impl Unit {
    /// The largest of which `seconds` is at least one.
    pub(in crate::report) fn of(seconds: f64) -> Self {
        let units = [("s", 1.0), ("ms", 1e3), ("µs", 1e6)];
        let fits = units.into_iter().find(|(_, per_second)| seconds * per_second >= 1.0);
        let (name, per_second) = fits.unwrap_or(("ns", 1e9));
        Self { name, per_second }
    }

    /// The one for numbers that stand under each other: the smallest time is at least one.
    pub(in crate::report) fn of_all(seconds: impl IntoIterator<Item = f64>) -> Self {
        let least = seconds.into_iter().filter(|s| s.is_finite() && *s > 0.0).reduce(f64::min);
        Self::of(least.unwrap_or(1.0))
    }
}

/// A time with its unit: `512 µs`.
pub(in crate::report) fn time(seconds: f64) -> String {
    let unit = Unit::of(seconds);
    format!("{} {}", three(seconds * unit.per_second), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures() {
        let all = [0.0, 0.0123, 0.5, 0.9996, 4.2, 9.996, 47.06, 99.96, 512.3, 20123.4, -3.0].map(three);
        let expected = ["0.00", "0.0123", "0.500", "1.00", "4.20", "10.0", "47.1", "100", "512", "20,123", "−3.00"];
        assert_eq!(all, expected);
        assert_eq!([f64::NAN, f64::INFINITY].map(three), [NONE, NONE]);
        assert_eq!([0.0, 0.1 + 0.2, 20.0, 2000.0].map(tick_label), ["0", "0.3", "20", "2,000"]);
    }

    #[test]
    fn points_stand_in_a_line() {
        let column = column(&[3.1, 45.6, 512.0, f64::NAN]);
        assert_eq!(column, ["3.10", "45.6\u{2007}", "512\u{2008}\u{2007}\u{2007}", "–\u{2008}\u{2007}\u{2007}"]);
        assert_eq!(super::column(&[100.0, 2000.0]), ["100", "2,000"]);
    }

    #[test]
    fn percents() {
        assert_eq!([0.874, -0.001, -0.25, f64::NAN].map(percent), ["87 %", "0 %", "−25 %", "–"]);
        assert_eq!([0.0514, 0.25, 14.781].map(fine_percent), ["5.1 %", "25 %", "1,478 %"]);
        assert_eq!([hundredths(0.5), factor(1.236)], ["50", "1.24"]);
    }

    #[test]
    fn units() {
        assert_eq!([2.0, 0.5, 0.001, 5.12e-4, 3e-9].map(time), ["2.00 s", "500 ms", "1.00 ms", "512 µs", "3.00 ns"]);
        assert_eq!(Unit::of_all([0.0, 2e-3, 4e-6, f64::NAN]).name, "µs");
        assert_eq!(Unit::of_all([]).name, "s");
    }
}
