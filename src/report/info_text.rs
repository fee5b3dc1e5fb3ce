//! The facts about a matrix for people.

use std::fmt;

use declive::device::together;
use declive::matrix::Scalar;
use declive::matrix::band::Band;
use declive::matrix::stats::Tally;
use declive::matrix::symmetry::Likeness;
use declive::matrix::values::Range;

use super::info::{Report, both};
use super::info_formats;
use super::layout::Text;
use super::units::{bytes, count, figure, number, percent, plural, scientific};

/// Characters of the longest bar.
const BAR: usize = 30;

impl<T: Scalar> fmt::Display for Report<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.headline());
        self.matrix(&mut text);
        self.symmetry(&mut text);
        self.definiteness(&mut text);
        self.pattern(&mut text);
        self.histogram(&mut text);
        if let Some(formats) = &self.formats {
            info_formats::describe(formats, &mut text);
        }
        self.solve(&mut text);
        self.time(&mut text);
        f.write_str(&text.finish())
    }
}

impl<T: Scalar> Report<T> {
    fn headline(&self) -> String {
        let (kind, not) = if T::IS_COMPLEX { ("Hermitian", "Not Hermitian") } else { ("Symmetric", "Not symmetric") };
        match &self.positive_definite {
            None => format!("Rectangular: declive solve finds the least squares, by {}.", self.solve.method),
            Some(definite) if definite.verdict == "yes" => {
                format!("{kind} positive definite: a matrix for declive solve.")
            }
            Some(definite) if definite.by == Some("empty-row") => {
                format!("{kind}, but singular: declive solve finds an x where b is 0 in the rows without entries.")
            }
            Some(definite) if definite.by == Some("hermitian") => {
                format!("{not}: a matrix for declive solve.")
            }
            Some(definite) if definite.verdict == "no" => {
                format!("{kind}, but not positive definite: a matrix for declive solve.")
            }
            Some(_) => format!("{kind} and perhaps positive definite: if it is, a matrix for declive solve."),
        }
    }

    fn matrix(&self, text: &mut Text) {
        let matrix = &self.matrix;
        text.section("Matrix");
        text.line("matrix", &matrix.source);
        if let Some(header) = &self.header {
            text.line(
                "header",
                &format!(
                    "{} {} {}, {} × {}, {}, {}",
                    header.layout,
                    header.field,
                    header.symmetry,
                    count(header.rows as u64),
                    count(header.cols),
                    plural(header.entries, "entry"),
                    plural(header.comments.len(), "comment")
                ),
            );
        }
        let kind = if matrix.complex { "complex" } else { "real" };
        let symmetry = match &self.symmetry {
            Some(symmetry) => symmetry.kind,
            None => "rectangular",
        };
        let (rows, columns) = (count(matrix.rows as u64), count(matrix.columns as u64));
        text.line("found", &format!("{kind} {symmetry}, {rows} × {columns}, {}", plural(matrix.nnz, "entry")));
        let duplicates = match matrix.duplicates {
            0 => "none".into(),
            n => format!("{} of the file, added up", count(n)),
        };
        text.line("duplicates", &duplicates);
        let values = self.values.range.map_or_else(|| "none but zeros".into(), |found| format!("|a| {}", range(found)));
        text.line("values", &values);
        text.line("zeros stored", &listed(self.values.zeros, "in row"));
        let (rows, columns) = (listed(self.rows.empty, "row"), listed(self.empty_columns, "column"));
        text.line("empty rows", &rows);
        text.line("empty columns", &columns);
    }

    fn symmetry(&self, text: &mut Text) {
        let Some(symmetry) = &self.symmetry else { return };
        text.section("Symmetry");
        let found = &symmetry.found;
        let pattern = match found.unmatched.first {
            None => "symmetric".into(),
            Some(first) => format!(
                "not symmetric: {} without a mirror image, the first in row {}",
                plural(found.unmatched.count, "entry"),
                count(first + 1)
            ),
        };
        text.line("pattern", &pattern);
        let mut likeness = |label: &str, like: &Likeness<T>| {
            let difference = like.largest;
            let words = match (like.holds, like.first) {
                (true, _) if difference == 0.0 => "yes, to the last bit".into(),
                (true, _) => format!("yes; relative differences up to {}", scientific(difference)),
                (false, None) => "no".into(),
                (false, Some(pair)) => {
                    let values = both(&pair, ", ");
                    format!("no; {values}; relative differences up to {}", scientific(difference))
                }
            };
            text.line(label, &words);
        };
        likeness("symmetric", &found.symmetric);
        if self.matrix.complex {
            likeness("hermitian", &found.hermitian);
        }
        if found.skew.holds {
            likeness("skew-symmetric", &found.skew);
        }
    }

    fn definiteness(&self, text: &mut Text) {
        let (Some(diagonal), Some(dominance), Some(definite)) =
            (&self.diagonal, &self.dominance, &self.positive_definite)
        else {
            return;
        };
        text.section("Definiteness");
        let faults = [
            (diagonal.missing, "not stored"),
            (diagonal.zero, "zero"),
            (diagonal.negative, "negative"),
            (diagonal.not_real, "not real"),
        ];
        let fault = |(tally, what): (Tally, &str)| {
            Some(format!("{} {what}, first in row {}", count(tally.count), count(tally.first? + 1)))
        };
        let faults: Vec<_> = faults.into_iter().filter_map(fault).collect();
        let mut words = if faults.is_empty() { "positive".to_owned() } else { faults.join("; ") };
        if let Some(found) = diagonal.range {
            words += &format!("; |a(i,i)| {}", range(found));
        }
        text.line("diagonal", &words);
        let mut rows = vec![format!("strict in {}", plural(dominance.strict as u64, "row"))];
        for (n, what) in [
            (dominance.equal, "equality in"),
            (dominance.close, "equality up to rounding in"),
            (dominance.violated.count, "violated in"),
        ] {
            if n > 0 {
                rows.push(format!("{what} {}", count(n as u64)));
            }
        }
        if let Some(first) = dominance.violated.first {
            rows.push(format!("first in row {}", count(first + 1)));
        }
        if let Some((row, ratio)) = dominance.worst {
            let ratio = if ratio < 10.0 { format!("{ratio:.4}") } else { short(ratio) };
            rows.push(format!("largest Σ|a(i,j)| / |a(i,i)| {ratio} in row {}", count(row + 1)));
        }
        text.line("dominance", &rows.join(", "));
        text.line("pos. definite", &format!("{}: {}", definite.verdict, definite.reason));
    }

    fn pattern(&self, text: &mut Text) {
        text.section("Pattern");
        let band = |band: &Band| {
            let width = if band.lower == band.upper {
                count(band.lower as u64)
            } else {
                format!("{} below, {} above the diagonal", count(band.lower as u64), count(band.upper as u64))
            };
            let profile = if band.lower_profile == band.upper_profile {
                count(band.lower_profile)
            } else {
                format!("{} below, {} above", count(band.lower_profile), count(band.upper_profile))
            };
            format!("{width}; profile {profile}")
        };
        text.line("bandwidth", &band(&self.band));
        let after = match &self.band_after_rcm {
            Some(after) => format!("{}, by reverse Cuthill–McKee", band(after)),
            None => "none: reverse Cuthill–McKee is for square matrices".into(),
        };
        text.line("reordered", &after);
        if let Some(spy) = &self.spy {
            text.line("picture", spy);
        }
        let rows = &self.rows;
        let lengths = if rows.min == rows.max {
            format!("{} in each", plural(rows.min, "entry"))
        } else {
            format!("{} to {}, mean {}", count(rows.min as u64), plural(rows.max, "entry"), figure(rows.mean))
        };
        text.line("row lengths", &lengths);
    }

    fn histogram(&self, text: &mut Text) {
        let most = self.rows.histogram.iter().map(|b| b.rows).max().unwrap_or(0);
        if most == 0 {
            return;
        }
        let rows: Vec<_> = self
            .rows
            .histogram
            .iter()
            .map(|b| {
                let lengths = if b.from == b.to {
                    count(b.from as u64)
                } else {
                    format!("{}–{}", count(b.from as u64), count(b.to as u64))
                };
                let length = (BAR as f64 * b.rows as f64 / most as f64).round() as usize;
                let bar = if length == 0 && b.rows > 0 { "▏".into() } else { "█".repeat(length) };
                [lengths, count(b.rows as u64), percent(b.rows as f64, self.matrix.rows as f64), bar]
            })
            .collect();
        text.gap();
        text.table(["entries", "rows", "", ""], [false, false, false, true], &rows);
    }

    fn solve(&self, text: &mut Text) {
        let advice = &self.solve;
        text.section("Solve");
        let why = self.positive_definite.as_ref().filter(|definite| definite.verdict == "no");
        let why = why.map_or_else(String::new, |definite| format!(": {}", definite.reason));
        text.line("method", &format!("{}{why}", advice.method));
        if advice.dense_first {
            text.line("at first", "dense, as a tenth of all elements or more are entries");
        }
        if advice.direct_first {
            let first = format!("{}, if no devices are named: factorised sooner than one is opened", advice.first);
            text.line("at first", &first);
        }
        text.line("precond", &format!("{}: {}", advice.precond, advice.precond_reason));
        if let Some(look) = &advice.first_look {
            let (gpu, cpu) = (count(look.on_gpu), count(look.on_cpu));
            let words = format!(
                "amg, if more iterations are left than it takes with its set-up: it is looked first after {gpu} on a GPU \
                 alone, after {cpu} on processors"
            );
            text.line("if slow", &words);
        }
        for known in &advice.remembered {
            let devices = together(known.devices.iter().map(String::as_str));
            text.line("remembered", &format!("auto begins with {}, on {devices}", known.remembered));
        }
        if T::IS_COMPLEX {
            text.line("solved as", "a real system of twice the order");
        }
        if let Some(formats) = &self.formats {
            text.line("format", &format!("{}: {}", advice.format, info_formats::auto(formats)));
        }
        let memory = &advice.device_bytes;
        let words =
            format!("{} on a device alone as csr, {} with --precision f32", bytes(memory.f64), bytes(memory.f32));
        text.line("memory", &words);
    }

    fn time(&self, text: &mut Text) {
        let seconds = &self.seconds;
        text.section("Time");
        let mut line = |label: &str, value: f64| text.line(label, &format!("{value:>10.4} s"));
        line("read", seconds.read);
        line("analysis", seconds.analysis);
        if self.spy.is_some() {
            line("picture", seconds.spy);
        }
        line("total", seconds.total);
    }
}

/// `3, the first in row 7`, or `none`.
fn listed(tally: Tally, what: &str) -> String {
    match tally.first {
        None => "none".into(),
        Some(first) if tally.count == 1 => format!("1, {what} {}", count(first + 1)),
        Some(first) => format!("{}, the first {what} {}", count(tally.count), count(first + 1)),
    }
}

/// `from 1 to 9e4`, to a few figures.
fn range(Range { min, max }: Range) -> String {
    if min == max { format!("is {} throughout", short(min)) } else { format!("from {} to {}", short(min), short(max)) }
}

/// A number in full if that is short, else to three figures.
fn short(v: f64) -> String {
    match number(v) {
        exact if exact.len() <= 8 => exact,
        _ if (0.1..1e5).contains(&v.abs()) => figure(v),
        _ => scientific(v),
    }
}

#[cfg(test)]
mod tests {
    use declive::matrix::Complex64;

    use super::*;

    #[test]
    fn numbers_are_short() {
        let real = [4.0, -0.25, 1e-9, 1e300, 0.1].map(number);
        assert_eq!(real, ["4", "-0.25", "1e-9", "1e300", "0.1"]);
        assert_eq!([0.25, 123_456.0, 1.0 / 3.0, f64::INFINITY].map(short), ["0.25", "123456", "0.33", "inf"]);
        assert_eq!(number(Complex64::new(1.5, -2.0)), "1.5 − 2i");
        assert_eq!(number(Complex64::new(0.0, 1.0)), "0 + 1i");
    }

    #[test]
    fn tallies() {
        let of = |count, first| listed(Tally { count, first }, "in row");
        assert_eq!(of(0, None), "none");
        assert_eq!(of(1, Some(6)), "1, in row 7");
        assert_eq!(of(2000, Some(6)), "2,000, the first in row 7");
    }
}
