//! Tables of a study.

use std::fmt;

use declive::experiments::studies::{Panel, Study};
use declive::solve::Precision;
use serde::Serialize;

use super::layout::Text;
use super::units::{count, figure, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// `tridiagonal`, `lu` or `fdtd`.
    pub(crate) study: &'static str,
    /// What is compared.
    pub(crate) title: &'static str,
    pub(crate) precision: Precision,
    /// Measurements of each number.
    pub(crate) repeat: usize,
    /// Which of them counts.
    pub(crate) counts: &'static str,
    #[serde(flatten)]
    pub(crate) found: Study,
}

impl Report {
    /// The panels of each device.
    pub(super) fn by_device(&self) -> impl Iterator<Item = &[Panel]> {
        self.found.panels.chunk_by(|one, other| one.device == other.device)
    }

    /// What was done, in a sentence.
    pub(super) fn caption(&self) -> String {
        format!("{} in {}: the {} of {}.", self.title, self.precision, self.counts, plural(self.repeat, "measurement"))
    }
}

/// Sizes down, what is compared across, and then how many times the host's it is.
fn rows(panel: &Panel) -> Vec<Vec<String>> {
    let cell = |value: &Option<f64>| value.map(figure).unwrap_or_default();
    let compared = || panel.series.iter().filter(|series| !series.times_host.is_empty());
    let mut head = vec![panel.x.to_owned()];
    head.extend(panel.series.iter().map(|series| series.name.clone()));
    head.extend(compared().map(|series| format!("{} ×", series.name)));
    let of_size = |(k, &at): (usize, &usize)| {
        let mut row = vec![count(at)];
        row.extend(panel.series.iter().map(|series| cell(&series.values[k])));
        row.extend(compared().map(|series| cell(&series.times_host[k])));
        row
    };
    std::iter::once(head).chain(panel.at.iter().enumerate().map(of_size)).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.caption());
        let is_compared = |panel: &Panel| panel.series.iter().any(|series| !series.times_host.is_empty());
        if self.found.panels.iter().any(is_compared) {
            text.paragraph("Columns with × tell how many times the host's rate that is.");
        }
        for panels in self.by_device() {
            for panel in panels {
                text.section(&format!("{}, {}: {}", panel.device, panel.title, panel.y));
                text.columns(&rows(panel));
            }
        }
        if !self.found.notes.is_empty() {
            text.section("Notes");
        }
        self.found.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use declive::experiments::studies::Series;

    use super::*;

    /// A series of the host, or one that is compared with it.
    pub(crate) fn series(name: &str, values: &[Option<f64>], times_host: &[Option<f64>]) -> Series {
        let (values, times_host) = (values.to_vec(), times_host.to_vec());
        Series { name: name.into(), is_host: name == "host", values, times_host }
    }

    /// A report of one panel.
    pub(crate) fn report(at: &[usize], series: Vec<Series>) -> Report {
        let panel =
            Panel { device: "[0] <x>".into(), title: "a & b".into(), x: "n", y: "rows/s", at: at.to_vec(), series };
        let found = Study { panels: vec![panel], notes: Vec::new(), failure: None };
        Report { study: "lu", title: "Letters", precision: Precision::F64, repeat: 2, counts: "best", found }
    }

    #[test]
    fn a_table_by_hand() {
        let [fast, host] =
            [series("fast", &[Some(3.0), None], &[Some(1.5), None]), series("host", &[Some(2.0), Some(1000.0)], &[])];
        let mut report = report(&[64, 4096], vec![fast, host]);
        report.found.notes.push("no more".into());
        let expected = "Letters in f64: the best of 2 measurements.\n\
                        Columns with × tell how many times the host's rate that is.\n\n\
                        [0] <x>, a & b: rows/s\n  \
                        n      fast  host  fast ×\n  \
                        64     3.00  2.00    1.50\n  \
                        4,096        1000\n\nNotes\nno more\n";
        assert_eq!(report.to_string(), expected);
    }
}
