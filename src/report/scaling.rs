//! Iterations on many GPUs, by the model, as tables and panels of a plot.

use std::fmt;

use declive::experiments::studies::{Panel, Series};
use declive::scaling::limits::{Limit, limits};
use declive::scaling::measured::{Comparison, comparisons};
use declive::scaling::{Iteration, Layout, Machine, Method, Parts, System, Way, iteration, multigrid};
use serde::Serialize;

use super::layout::Text;
use super::units::{count, figure, plural};

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sizes {
    /// So many for each GPU.
    Weak(u64),
    /// So many in all.
    Strong(u64),
}

/// All that the model says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) sizes: Sizes,
    pub(crate) stencil: u32,
    pub(crate) format: String,
    pub(crate) ways: Vec<OfWay>,
    /// What breaks first, and what no longer fits, in sentences.
    pub(crate) summary: Vec<String>,
}

/// What it says of a way to exchange.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct OfWay {
    pub(crate) way: Way,
    pub(crate) entries: Vec<Entry>,
}

/// So many GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    pub(crate) rows: f64,
    pub(crate) layout: Layout,
    pub(crate) cg: Iteration,
    pub(crate) single_reduction_seconds: f64,
    pub(crate) pipelined_seconds: f64,
    /// `cg` with a cycle of multigrid.
    pub(crate) amg: Iteration,
    /// Levels that ranks share.
    pub(crate) shared_levels: usize,
    /// Iterations with the diagonal, and with multigrid.
    pub(crate) iterations: [f64; 2],
    pub(crate) limits: Vec<Limit>,
}

impl Entry {
    fn new(machine: &Machine, system: &System, gpus: u64, way: Way) -> Self {
        let layout = Layout::of(machine, gpus);
        let of = |method| iteration::iteration(machine, system, &layout, method, way);
        let (amg, shared_levels) = multigrid::iteration_of(machine, system, &layout, way);
        Self {
            rows: system.rows,
            layout,
            cg: of(Method::Cg),
            single_reduction_seconds: of(Method::CgSingleReduction).seconds,
            pipelined_seconds: of(Method::CgPipelined).seconds,
            amg,
            shared_levels,
            iterations: [iteration::iterations(system), multigrid::iterations(system)],
            limits: limits(machine, system, &layout, way),
        }
    }

    /// Seconds to a residual of 10⁻⁸, with the diagonal and with multigrid.
    fn seconds(&self) -> [f64; 2] {
        [self.iterations[0] * self.cg.seconds, self.iterations[1] * self.amg.seconds]
    }
}

impl Report {
    /// Of a system like this one, but for its rows, on so many GPUs, by rising numbers.
    pub(crate) fn new(machine: Machine, system: System, sizes: Sizes, gpus: &[u64]) -> Self {
        let entry = |gpus: u64, way| {
            let rows = match sizes {
                Sizes::Weak(rows) => rows as f64 * gpus as f64,
                Sizes::Strong(rows) => rows as f64,
            };
            Entry::new(&machine, &System { rows, ..system }, gpus, way)
        };
        let entries = |way: Way| gpus.iter().map(|gpus| entry(*gpus, way)).collect();
        let ways: Vec<OfWay> = Way::ALL.iter().map(|way| OfWay { way: *way, entries: entries(*way) }).collect();
        let summary = ways.iter().flat_map(|one| summary(one, gpus.last().copied(), &entry)).collect();
        let (stencil, format) = (system.stencil, system.format.name().to_owned());
        Self { machine, sizes, stencil, format, ways, summary }
    }

    /// What the plot shows.
    pub(crate) fn title(&self) -> &'static str {
        match self.sizes {
            Sizes::Weak(_) => "Weak scaling, by a model",
            Sizes::Strong(_) => "Strong scaling, by a model",
        }
    }

    /// The system and the machine.
    fn setting(&self) -> String {
        let rows = match self.sizes {
            Sizes::Weak(rows) => format!("{} rows a GPU", count(rows)),
            Sizes::Strong(rows) => format!("{} rows", count(rows)),
        };
        let Self { stencil, format, machine, .. } = self;
        format!("{rows}, {stencil} points in a row, stored as {format}, on {}", machine.name)
    }

    /// What was done, in a sentence.
    pub(crate) fn caption(&self) -> String {
        format!("{}: {}. Not measured.", self.title(), self.setting())
    }

    /// The panels of the plot: µs over the number of GPUs.
    pub(crate) fn panels(&self) -> Vec<Panel> {
        let at: Vec<usize> = self.ways[0].entries.iter().map(|entry| entry.layout.gpus as usize).collect();
        let device = self.setting();
        let panel = |title: &str, of: &dyn Fn(&Entry) -> f64, kernels: &dyn Fn(&Entry) -> f64| {
            let line = |name: &str, entries: &[Entry], of: &dyn Fn(&Entry) -> f64| Series {
                name: name.into(),
                is_host: name == "kernels",
                values: entries.iter().map(|entry| Some(1e6 * of(entry))).collect(),
                times_host: Vec::new(),
            };
            let mut series: Vec<Series> = self.ways.iter().map(|one| line(one.way.name(), &one.entries, of)).collect();
            series.push(line("kernels", &self.ways[0].entries, kernels));
            Panel {
                device: device.clone(),
                title: title.into(),
                x: "GPUs",
                y: "µs an iteration",
                at: at.clone(),
                series,
            }
        };
        let cg = |entry: &Entry| entry.cg.seconds;
        let of_cg = |entry: &Entry| entry.cg.parts.kernels;
        let amg = |entry: &Entry| entry.amg.seconds;
        let of_amg = |entry: &Entry| entry.amg.parts.kernels;
        vec![panel("cg", &cg, &of_cg), panel("cg with multigrid", &amg, &of_amg)]
    }
}

/// Where a way breaks: from how many GPUs on the rest takes longer than kernels and their launches, and what no longer fits.
fn summary(one: &OfWay, most: Option<u64>, entry: &dyn Fn(u64, Way) -> Entry) -> Vec<String> {
    let Some(most) = most else { return Vec::new() };
    let mut sentences = Vec::new();
    let numbers = || std::iter::successors(Some(1u64), |gpus| Some(gpus * 2)).take_while(move |gpus| *gpus < most);
    let entries: Vec<Entry> = numbers().chain([most]).map(|gpus| entry(gpus, one.way)).collect();
    for (name, of) in [("cg", (|entry| entry.cg) as fn(&Entry) -> Iteration), ("cg with multigrid", |entry| entry.amg)]
    {
        let is_half = |parts: &Parts| parts.kernels + parts.launches < 0.5 * parts.total();
        let first = entries.iter().find(|entry| is_half(&of(entry).parts));
        sentences.push(match first {
            Some(entry) => {
                let Iteration { seconds, parts, .. } = of(entry);
                let rest = Parts { kernels: 0.0, launches: 0.0, ..parts };
                let (what, of_it) = rest.largest();
                format!(
                    "{}, {name}: from {} GPUs on more than half of an iteration is not kernels: {what} takes {} of {} µs.",
                    one.way,
                    count(entry.layout.gpus),
                    figure(1e6 * of_it),
                    figure(1e6 * seconds)
                )
            }
            None => format!("{}, {name}: kernels are at least half of an iteration up to {} GPUs.", one.way, count(most)),
        });
    }
    if one.way == Way::Today {
        sentences.extend((0..entries[entries.len() - 1].limits.len()).filter_map(|k| fits(&entries, k)));
    }
    sentences
}

/// From how many GPUs on something no longer fits, or fits, if there are such; the last numbers of GPUs have all limits.
fn fits(entries: &[Entry], limit: usize) -> Option<String> {
    let what = entries[entries.len() - 1].limits[limit].what;
    let of = |entry: &Entry| entry.limits.iter().find(|limit| limit.what == what).copied();
    let is_exceeded = |entry: &Entry| of(entry).is_some_and(|limit| limit.is_exceeded());
    let first = entries.iter().position(is_exceeded)?;
    let last = entries.iter().rposition(is_exceeded)?;
    let gpus = |entry: &Entry| plural(entry.layout.gpus, "GPU");
    if let Some(next) = entries.get(last + 1) {
        return Some(format!("{what}: fits from {} on.", gpus(next)));
    }
    let Limit { needs, most, unit, .. } = of(&entries[first])?;
    Some(format!("{what}: does not fit with {} or more: {needs:.2e} {unit} of {most:.2e}.", gpus(&entries[first])))
}

fn micros(seconds: f64) -> String {
    if seconds == 0.0 { "0".into() } else { figure(1e6 * seconds) }
}

fn rows(rows: f64) -> String {
    format!("{rows:.2e}")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.caption());
        for OfWay { way, entries } in &self.ways {
            text.section(&format!("{way}: {}", way.describe()));
            table(&mut text, "cg, µs", entries, &|entry| (entry.cg, None));
            text.gap();
            table(&mut text, "cg and multigrid, µs", entries, &|entry| (entry.amg, Some(entry.shared_levels)));
            text.gap();
            let head = ["GPUs", "single-reduction, µs", "pipelined, µs", "cg: iterations", "s", "multigrid", "s"];
            let row = |entry: &Entry| {
                let [by_diagonal, by_levels] = entry.seconds();
                vec![
                    count(entry.layout.gpus),
                    micros(entry.single_reduction_seconds),
                    micros(entry.pipelined_seconds),
                    count(entry.iterations[0] as u64),
                    figure(by_diagonal),
                    count(entry.iterations[1] as u64),
                    figure(by_levels),
                ]
            };
            let head = head.map(String::from).to_vec();
            text.columns(&std::iter::once(head).chain(entries.iter().map(row)).collect::<Vec<_>>());
        }
        text.section("What breaks first");
        self.summary.iter().for_each(|sentence| text.paragraph(sentence));
        f.write_str(&text.finish())
    }
}

/// The parts of an iteration, one row for each number of GPUs.
fn table(text: &mut Text, title: &str, entries: &[Entry], of: &dyn Fn(&Entry) -> (Iteration, Option<usize>)) {
    let has_levels = entries.iter().any(|entry| of(entry).1.is_some());
    let mut head = vec!["GPUs", "rows", title, "kernels", "launches", "meeting", "sums", "halo"];
    if has_levels {
        head.extend(["coarse", "shared"]);
    }
    head.push("limited by");
    let row = |entry: &Entry| {
        let (Iteration { seconds, limited_by, parts }, shared) = of(entry);
        let mut row = vec![count(entry.layout.gpus), rows(entry.rows), micros(seconds)];
        row.extend([parts.kernels, parts.launches, parts.meeting, parts.sums, parts.halo].map(micros));
        if let Some(shared) = shared {
            row.extend([micros(parts.coarse), shared.to_string()]);
        }
        row.push(limited_by.into());
        row
    };
    let head = head.into_iter().map(String::from).collect();
    text.columns(&std::iter::once(head).chain(entries.iter().map(row)).collect::<Vec<_>>());
}

/// The model beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) machine: String,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Measured {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self { machine: machine.name.clone(), comparisons: comparisons(machine) }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let name = &self.machine;
        text.paragraph(&format!("The model of {name}, and what NVIDIA H200s took, µs an iteration."));
        text.section("Model and measurement");
        let head = ["system", "method", "GPUs", "together", "measured", "model", "ratio"].map(String::from).to_vec();
        let row = |one: &Comparison| {
            let [least, most] = one.measured.map(figure);
            vec![
                one.system.clone(),
                one.method.into(),
                one.gpus.to_string(),
                one.together.into(),
                if least == most { least } else { format!("{least} to {most}") },
                figure(one.model),
                format!("{:.2}", one.ratio),
            ]
        };
        text.columns(&std::iter::once(head).chain(self.comparisons.iter().map(row)).collect::<Vec<_>>());
        f.write_str(&text.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sizes: Sizes, gpus: &[u64]) -> Report {
        Report::new(Machine::default(), System::poisson3d(1.0), sizes, gpus)
    }

    #[test]
    fn rows_of_weak_and_strong_scaling() {
        let of = |sizes| report(sizes, &[1, 16]).ways[0].entries.iter().map(|entry| entry.rows).collect::<Vec<_>>();
        assert_eq!(of(Sizes::Weak(1000)), [1000.0, 16_000.0]);
        assert_eq!(of(Sizes::Strong(1000)), [1000.0, 1000.0]);
    }

    #[test]
    fn what_breaks_first_is_said() {
        let text = report(Sizes::Weak(100_000_000), &[1, 10_000]).to_string().replace('\n', " ");
        for part in
            ["today, cg: from ", "halo takes", "direct, cg: kernels are at least half", "b or x in the first process"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn panels_have_a_line_for_each_way_and_the_kernels() {
        let panels = report(Sizes::Strong(1_000_000_000), &[1, 8, 100]).panels();
        assert_eq!(panels.len(), 2);
        for panel in panels {
            let names: Vec<_> = panel.series.iter().map(|series| series.name.as_str()).collect();
            assert_eq!((names, panel.at), (vec!["today", "blocks", "direct", "kernels"], vec![1, 8, 100]));
        }
    }
}
