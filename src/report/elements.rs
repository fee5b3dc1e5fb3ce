//! Iterations with finite elements, assembled and not.

use std::fmt;

use declive::device::Choice;
use declive::experiments::elements::{Case, Measured, Model};
use declive::fem::{Cell, ColouringFacts};
use declive::solve::Precision;
use serde::Serialize;

use super::layout::Text;
use super::units::{bytes, count, figure, plural};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    element: Cell,
    model: Model,
    precision: Precision,
    elements: usize,
    unknowns: usize,
    mesh_seconds: f64,
    iterations: u64,
    colours: Option<Colours>,
    pub(crate) entries: Vec<Entry>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// The colours of the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Colours {
    #[serde(flatten)]
    facts: ColouringFacts,
    seconds: f64,
}

/// A way on some devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    /// As in `--devices`.
    on: String,
    #[serde(flatten)]
    measured: Measured,
    gigabytes_per_second: f64,
}

impl Entry {
    pub(crate) fn new(devices: &Choice, measured: Measured) -> Self {
        let gigabytes_per_second = 1e-9 * measured.bytes_per_iteration as f64 / measured.iteration;
        Self { on: devices.to_string(), measured, gigabytes_per_second }
    }

    fn cells(&self) -> Vec<String> {
        let Measured { way, exchange, input, adjacency, boundary, product, iteration, .. } = &self.measured;
        let Measured { memory_bytes, halo, residual, .. } = &self.measured;
        let micros = |seconds: f64| figure(1e6 * seconds);
        let or_none = |value: Option<String>| value.unwrap_or_default();
        let mut cells = vec![way.to_string(), self.on.clone(), exchange.to_string(), micros(*iteration)];
        cells.push(or_none(product.map(micros)));
        cells.push(or_none(product.map(|product| micros(iteration - product))));
        cells.extend([figure(self.gigabytes_per_second), bytes(*memory_bytes), figure(*input)]);
        cells.extend([or_none(adjacency.map(figure)), figure(*boundary), count(*halo), format!("{residual:.3e}")]);
        cells
    }
}

impl Report {
    /// A report without measurements.
    pub(crate) fn new(case: &Case, (element, model, precision): (Cell, Model, Precision), iterations: u64) -> Self {
        Self {
            element,
            model,
            precision,
            elements: case.elements(),
            unknowns: case.unknowns(),
            mesh_seconds: case.mesh_seconds,
            iterations,
            colours: None,
            entries: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes note of the mesh's colours.
    pub(crate) fn take_colours(&mut self, (facts, seconds): (ColouringFacts, f64)) {
        self.colours = Some(Colours { facts, seconds });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let Self { element, model, precision, elements, unknowns, mesh_seconds, iterations, .. } = self;
        let iterations = plural(*iterations, "iteration");
        let (elements, unknowns, seconds) = (count(*elements), count(*unknowns), figure(*mesh_seconds));
        text.paragraph(&format!(
            "{model} in {elements} elements {element}, {unknowns} unknowns, {precision}: {iterations} of cg with jacobi. The mesh took {seconds} s."
        ));
        if let Some(Colours { facts: ColouringFacts { colours, smallest, largest, least, .. }, seconds }) =
            &self.colours
        {
            let sizes = format!("{} to {} elements", count(*smallest), count(*largest));
            text.paragraph(&format!(
                "{colours} colours of {sizes}, where {least} elements share a node: {} s.",
                figure(*seconds)
            ));
        }
        let head = [
            "way",
            "devices",
            "exchange",
            "µs",
            "product",
            "solver",
            "GB/s",
            "memory",
            "input s",
            "adjacency",
            "boundary",
            "halo",
            "residual",
        ];
        let rows = std::iter::once(head.map(String::from).to_vec()).chain(self.entries.iter().map(Entry::cells));
        text.section("Iterations");
        text.columns(&rows.collect::<Vec<_>>());
        if !self.notes.is_empty() {
            text.section("Notes");
        }
        self.notes.iter().for_each(|note| text.paragraph(note));
        f.write_str(&text.finish())
    }
}
