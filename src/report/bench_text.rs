//! What experiments found, for people.

use std::fmt;

use super::bench::{ALL, Entry, Report};
use super::bench_published::{ITERATIONS, METHOD, ORDER, PUBLISHED, Published, SOURCE};
use super::distinct;
use super::layout::Text;
use super::units::{count, figure, percent, plural};

/// Between what was measured and what was published.
const BAR: &str = "|";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let iterations = plural(self.iterations, "iteration");
        text.paragraph(&format!(
            "{iterations} of conjugate gradients: seconds, medians of {}.",
            plural(self.repeat, "run")
        ));
        self.system(&mut text);
        self.devices(&mut text);
        for method in distinct(self.experiments.iter().map(|entry| &*entry.experiment.method)) {
            self.table(&mut text, method);
        }
        self.remarks(&mut text);
        f.write_str(&text.finish())
    }
}

impl Report {
    fn system(&self, text: &mut Text) {
        let matrix = &self.matrix;
        text.section("System");
        let entries = count(matrix.nnz);
        text.line("matrix", &format!("{}, {}, {entries} entries", matrix.source, plural(matrix.rows, "row")));
        if matrix.default {
            text.line(
                "",
                "the 7-point operator: the dissertation does not say which matrix it used, only that an element of \
                 its product reads 44 bytes",
            );
        }
        text.line("precision", self.precision.name());
        let launch = format!("{}: {}", self.tune, self.tune.describe().trim_end_matches('.'));
        text.line("launch", &launch);
    }

    fn devices(&self, text: &mut Text) {
        text.section("Devices");
        for kind in &self.kinds {
            let alike = match kind.indices.len() {
                0 | 1 => String::new(),
                n => format!(", one of {n} that are alike"),
            };
            let copies = kind.copy_gigabytes_per_second.map_or_else(String::new, copies);
            text.line(&kind.label, &format!("{} ({}){alike}{copies}", kind.name, kind.kind));
        }
        if let Some(all) = self.experiments.iter().find(|entry| entry.label == ALL) {
            let rate = all.experiment.copy_bytes_per_second.map(|rate| 1e-9 * rate);
            let copies = rate.map_or_else(String::new, copies);
            text.line(ALL, &format!("{}{copies}", all.experiment.name));
        }
    }

    /// Rows are kernels and what follows from their times, columns devices, and those of the dissertation.
    fn table(&self, text: &mut Text, method: &str) {
        let entries: Vec<&Entry> = self.experiments.iter().filter(|entry| entry.experiment.method == method).collect();
        let published: &[Published] = if method == METHOD { &PUBLISHED } else { &[] };
        let names =
            distinct(entries.iter().flat_map(|entry| entry.experiment.kernels.iter().map(|kernel| &*kernel.kernel)));
        let decimals = decimals(entries.iter().flat_map(|e| e.experiment.kernels.iter().map(|kernel| kernel.seconds)));
        let seconds = |seconds: f64| format!("{seconds:.decimals$}");
        let hundredths = |seconds: f64| format!("{seconds:.2}");
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row =
            |name: &str, of: &dyn Fn(&Entry) -> Option<String>, then: &dyn Fn(&Published) -> Option<String>| {
                let mut cells = vec![name.to_owned()];
                cells.extend(entries.iter().map(|entry| of(entry).unwrap_or_default()));
                if !published.is_empty() {
                    cells.push(BAR.into());
                    cells.extend(published.iter().map(|one| then(one).unwrap_or_default()));
                }
                rows.push(cells);
            };
        row("kernel", &|entry| Some(entry.label.clone()), &|one| Some(one.short.into()));
        for name in names {
            let time = |entry: &Entry| {
                let kernel = entry.experiment.kernels.iter().find(|kernel| kernel.kernel == name)?;
                Some(seconds(kernel.seconds))
            };
            row(name, &time, &|one| one.kernel(name).map(hundredths));
        }
        row("overhead", &|entry| Some(seconds(entry.overhead_seconds)), &|one| Some(hundredths(one.overhead)));
        row("total", &|entry| Some(seconds(entry.experiment.total_seconds)), &|one| Some(hundredths(one.total)));
        row("  fastest run", &|entry| Some(seconds(entry.experiment.least_seconds)), &|_| None);
        row("  slowest run", &|entry| Some(seconds(entry.experiment.most_seconds)), &|_| None);
        let micros = |one: &Published| Some(figure(1e6 * one.seconds_per_iteration()));
        row("µs an iteration", &|entry| Some(figure(entry.microseconds_per_iteration)), &micros);
        row("GB/s", &|entry| Some(figure(entry.gigabytes_per_second)), &|_| None);
        let of_copy = |entry: &Entry| entry.part_of_copy.map(|part| percent(part, 1.0));
        row("of a copy", &of_copy, &|_| None);
        row("GFLOP/s", &|entry| Some(figure(entry.gigaflops)), &|_| None);
        if !published.is_empty() {
            let counted = |one: &Published| Some(figure(1e-9 * one.flops_per_second()));
            row("GFLOP/s, 10 n", &|entry| entry.gigaflops_counted.map(figure), &counted);
        }
        if entries.iter().any(|entry| entry.speedup.is_some()) {
            row("speed-up", &|entry| entry.speedup.map(figure), &|one| one.speedup().map(figure));
        }
        text.section(method);
        let title = (!published.is_empty()).then_some((entries.len() + 2, "published 2013, f32"));
        text.columns(title, &rows);
    }

    fn remarks(&self, text: &mut Text) {
        for entry in &self.experiments {
            for note in &entry.experiment.notes {
                text.gap();
                text.paragraph(&format!("Note: {} on {}: {note}.", entry.experiment.method, entry.label));
            }
        }
        for note in &self.notes {
            text.gap();
            text.paragraph(&format!("Note: {note}."));
        }
        text.gap();
        text.paragraph(
            "Kernels are timed in a run of their own, by the device's clock; of several devices, those of the one where they \
             take longest. Overhead is the total less the kernels: launches, waiting, and the first residual. GB/s are by the byte rule, and beyond a copy where data fit \
             into caches; GFLOP/s count 2 nnz + 10 n operations an iteration. cg-classic works on compressed rows, other methods \
             on the format that is remembered for the rows, or reads the fewest bytes.",
        );
        if self.experiments.iter().any(|entry| entry.experiment.method == METHOD) {
            text.gap();
            text.paragraph(&format!(
                "Published: {SOURCE}, {ITERATIONS} iterations of order {} in single precision; dot_partial is its inner \
                 product (two of them), spmv_csr its product of matrix and vector. It counts 10 n operations an iteration: one \
                 for each row of a sum, two for each of an update or of the product.",
                count(ORDER)
            ));
        }
    }
}

fn copies(rate: f64) -> String {
    format!(", copies {} GB/s", figure(rate))
}

/// Decimals that give the shortest time three figures, as far as they mean something: from 10⁻² to 10⁻⁶ s.
fn decimals(seconds: impl Iterator<Item = f64>) -> usize {
    let least = seconds.filter(|&s| s > 0.0).fold(1.0, f64::min);
    (2.0 - least.log10().floor()).clamp(2.0, 6.0) as usize
}

#[cfg(test)]
mod tests {
    use super::decimals;

    #[test]
    fn three_figures_for_the_shortest() {
        let of = |times: &[f64]| decimals(times.iter().copied());
        assert_eq!([of(&[0.43, 2.0]), of(&[0.0123]), of(&[1e-9]), of(&[0.0]), of(&[])], [3, 4, 6, 2, 2]);
    }
}
