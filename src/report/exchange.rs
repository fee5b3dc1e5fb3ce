//! What ranks take to synchronise, by each model of exchange.

use std::fmt;

use declive::experiments::elements::Measured;
use declive::experiments::exchange::{HaloTime, Stages, SumTime};
use declive::experiments::live::Answers;
use declive::solve::{Exchange, Precision};
use declive::tune::Timing;
use serde::Serialize;

use super::bench::Matrix;
use super::layout::Text;
use super::units::{count, figure, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) matrix: Matrix,
    pub(crate) precision: Precision,
    /// In the order in which ranks take them.
    pub(crate) devices: Vec<String>,
    /// Of a solve.
    pub(crate) iterations: u64,
    /// Measurements of each time.
    pub(crate) repeat: usize,
    pub(crate) entries: Vec<Entry>,
    /// Of each OpenCL device, once.
    pub(crate) answers: Vec<Answers>,
    /// Sums of kernels that run.
    pub(crate) running: Vec<Running>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// A model of exchange among so many devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    pub(crate) model: Exchange,
    pub(crate) ranks: usize,
    pub(crate) devices: Vec<String>,
    /// None of a device alone, nor halos.
    pub(crate) sums: Vec<SumTime>,
    pub(crate) halos: Vec<HaloTime>,
    pub(crate) stages: Option<Stages>,
    /// The stages of iterations by finite elements.
    pub(crate) elements: Option<Measured>,
}

/// Sums among so many devices by kernels that run meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Running {
    pub(crate) ranks: usize,
    pub(crate) sums: Vec<SumTime>,
}

impl Entry {
    /// An entry that waits for its times.
    pub(crate) fn new(model: Exchange, ranks: usize, devices: Vec<String>) -> Self {
        Self { model, ranks, devices, sums: Vec::new(), halos: Vec::new(), stages: None, elements: None }
    }

    /// `host-staged, 2`; a device alone has no model.
    fn label(&self) -> String {
        if self.ranks == 1 { "alone".into() } else { format!("{}, {}", self.model, self.ranks) }
    }
}

impl Report {
    /// One row for each entry that has numbers of a kind, one column for each number.
    fn table<'a>(
        &'a self,
        text: &mut Text,
        title: &str,
        heads: impl IntoIterator<Item = String>,
        of: impl Fn(&'a Entry) -> Vec<String>,
    ) {
        let rows = self.entries.iter().map(|entry| (entry.label(), of(entry))).filter(|(_, cells)| !cells.is_empty());
        let rows: Vec<Vec<String>> = rows.map(|(label, cells)| [vec![label], cells].concat()).collect();
        if rows.is_empty() {
            return;
        }
        text.section(title);
        let head = [vec!["model, devices".to_owned()], heads.into_iter().collect()].concat();
        text.columns(&[vec![head], rows].concat());
    }

    fn halos(&self, text: &mut Text, scattered: bool) {
        let of = |entry: &Entry| -> Vec<HaloTime> {
            entry.halos.iter().copied().filter(|halo| halo.scattered == scattered).collect()
        };
        let sizes = self.entries.iter().map(of).find(|halos| !halos.is_empty()).unwrap_or_default();
        let order = if scattered { "every other element, packed by a kernel" } else { "elements side by side" };
        let title = format!("Halos, µs, {order}, from each neighbour");
        let heads = sizes.iter().map(|halo| count(halo.elements));
        self.table(text, &title, heads, |entry| of(entry).iter().map(|halo| micros(halo.time)).collect());
    }
}

impl Report {
    /// What kernels and the host tell each other while kernels run.
    fn live(&self, text: &mut Text) {
        if !self.answers.is_empty() {
            text.section("Answers of a running kernel to the host, µs");
        }
        for Answers { device, time, .. } in &self.answers {
            text.line(device, &time.map_or_else(|| "none: its memory is not live".into(), micros));
        }
        let Some(first) = self.running.first() else { return };
        text.section("Sums over running kernels, µs");
        let heads = first.sums.iter().map(|sum| plural(sum.values, "number"));
        let head = std::iter::once("devices".to_owned()).chain(heads).collect();
        let row = |Running { ranks, sums }: &Running| {
            std::iter::once(ranks.to_string()).chain(sums.iter().map(|sum| micros(sum.time))).collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(self.running.iter().map(row)).collect();
        text.columns(&rows);
    }
}

fn micros(time: Timing) -> String {
    figure(1e6 * time.median)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let runs = plural(self.repeat, "measurement");
        text.paragraph(&format!("Sums, halos and solves by models of exchange: medians of {runs}."));
        text.section("System");
        let Matrix { source, rows, nnz, .. } = &self.matrix;
        text.line("matrix", &format!("{source}, {}, {} entries", plural(*rows, "row"), count(*nnz)));
        text.line("precision", self.precision.name());
        for (k, device) in self.devices.iter().enumerate() {
            text.line(&format!("rank {k}"), device);
        }
        let sums = self.entries.iter().find(|entry| !entry.sums.is_empty());
        let values = sums.into_iter().flat_map(|entry| entry.sums.iter().map(|sum| plural(sum.values, "number")));
        self.table(&mut text, "Sums over the ranks, with the kernel before them, µs", values, |entry| {
            entry.sums.iter().map(|sum| micros(sum.time)).collect()
        });
        self.halos(&mut text, false);
        self.halos(&mut text, true);
        self.live(&mut text);
        let iterations = plural(self.iterations, "iteration");
        let heads = ["preparation s", "input s", "boundary µs", "product µs", "iteration µs"].map(String::from);
        self.table(&mut text, &format!("Stages of a solve of {iterations}"), heads, |entry| {
            let Some(stages) = entry.stages else { return Vec::new() };
            vec![
                format!("{:.3}", stages.preparation),
                format!("{:.3}", stages.input),
                stages.boundary.map_or_else(String::new, micros),
                micros(stages.product),
                micros(stages.iteration),
            ]
        });
        let heads = ["input s", "adjacency s", "boundary s", "product µs", "solver µs", "halo"].map(String::from);
        self.table(&mut text, &format!("Stages by elements, {iterations}"), heads, |entry| {
            let Some(stages) = &entry.elements else { return Vec::new() };
            let Measured { input, adjacency, boundary, product, iteration, halo, .. } = stages;
            let seconds = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.3}"));
            let micros = |time: Option<f64>| time.map_or_else(String::new, |time| figure(1e6 * time));
            vec![
                seconds(Some(*input)),
                seconds(*adjacency),
                seconds(Some(*boundary)),
                micros(*product),
                micros(product.map(|product| iteration - product)),
                count(*halo),
            ]
        });
        if !self.notes.is_empty() {
            text.section("Notes");
            for note in &self.notes {
                text.paragraph(note);
            }
        }
        f.write_str(&text.finish())
    }
}
