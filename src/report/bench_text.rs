//! What experiments found, for people.

use std::fmt;

use super::bench::{ALL, Entry, Report};
use super::distinct;
use super::layout::Text;
use super::units::{count, figure, percent, plural};

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

    /// Rows are kernels and what follows from their times, columns devices.
    fn table(&self, text: &mut Text, method: &str) {
        let entries: Vec<&Entry> = self.experiments.iter().filter(|entry| entry.experiment.method == method).collect();
        let names =
            distinct(entries.iter().flat_map(|entry| entry.experiment.kernels.iter().map(|kernel| &*kernel.kernel)));
        let decimals = decimals(entries.iter().flat_map(|e| e.experiment.kernels.iter().map(|kernel| kernel.seconds)));
        let seconds = |seconds: f64| format!("{seconds:.decimals$}");
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, of: &dyn Fn(&Entry) -> Option<String>| {
            let cells = entries.iter().map(|entry| of(entry).unwrap_or_default());
            rows.push([name.to_owned()].into_iter().chain(cells).collect());
        };
        row("kernel", &|entry| Some(entry.label.clone()));
        for name in names {
            let time = |entry: &Entry| {
                let kernel = entry.experiment.kernels.iter().find(|kernel| kernel.kernel == name)?;
                Some(seconds(kernel.seconds))
            };
            row(name, &time);
        }
        row("overhead", &|entry| Some(seconds(entry.overhead_seconds)));
        row("total", &|entry| Some(seconds(entry.experiment.total_seconds)));
        row("  fastest run", &|entry| Some(seconds(entry.experiment.least_seconds)));
        row("  slowest run", &|entry| Some(seconds(entry.experiment.most_seconds)));
        row("µs an iteration", &|entry| Some(figure(entry.microseconds_per_iteration)));
        row("GB/s", &|entry| Some(figure(entry.gigabytes_per_second)));
        row("of a copy", &|entry| entry.part_of_copy.map(|part| percent(part, 1.0)));
        if entries.iter().any(|entry| entry.speedup.is_some()) {
            row("speed-up", &|entry| entry.speedup.map(figure));
        }
        text.section(method);
        text.columns(&rows);
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
             take longest. Overhead is the total less the kernels: launches, waiting, and the first residual. GB/s are by the byte rule, and \
             beyond a copy where data fit into caches. cg-classic works on compressed rows, other methods on the format that is remembered for the rows, or reads the fewest bytes.",
        );
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
