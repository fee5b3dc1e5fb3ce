//! The facts about a simulation of fields.

use std::fmt;
use std::time::Duration;

use declive::fdtd::{Component, Grid, Material, Mode, Options, Plan, Pml, RankInfo, Simulation};
use declive::solve::Precision;
use serde::Serialize;

use super::layout::Text;
use super::units::{count, exact, figure, number, plural, scientific};

/// Snapshots that the text names, at the most.
const NAMED: usize = 4;

/// All that is known about it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// The problem.
    pub(super) file: String,
    pub(super) title: Option<String>,
    pub(super) grid: Grid,
    /// In s.
    pub(super) time_step: f64,
    /// Of the largest stable step.
    pub(super) courant: f64,
    pub(super) materials: Vec<Filling>,
    pub(super) pml: Pml,
    pub(super) sources: usize,
    /// Whether all steps were made.
    pub(super) finished: bool,
    /// Made in all, those before a checkpoint among them.
    pub(super) steps: u64,
    pub(super) planned_steps: u64,
    /// Made before the checkpoint that this went on from.
    pub(super) resumed_steps: u64,
    pub(super) options: Options,
    pub(super) ranks: Vec<RankInfo>,
    pub(super) probes: Vec<Seen>,
    pub(super) energy: Vec<Energy>,
    pub(super) snapshots: Vec<SnapshotFiles>,
    #[serde(flatten)]
    pub(super) files: Files,
    pub(super) seconds: Seconds,
    /// Cells times steps a second.
    pub(super) cells_per_second: Option<f64>,
    /// By the bytes that a step moves at the least.
    pub(super) gigabytes_per_second: Option<f64>,
}

/// A material, and how many cells are filled with it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Filling {
    #[serde(flatten)]
    pub(super) material: Material,
    pub(super) cells: usize,
}

/// What a probe has seen.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Seen {
    pub(super) name: String,
    pub(super) component: Component,
    pub(super) at: Vec<usize>,
    pub(super) largest: f64,
    pub(super) last: Option<f64>,
}

/// The energy after a step, in J or J/m.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Energy {
    pub(super) step: u64,
    pub(super) energy: f64,
}

/// A snapshot, and the files that have it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SnapshotFiles {
    pub(crate) component: Component,
    pub(crate) step: u64,
    /// The largest value of all cells.
    pub(crate) largest: f64,
    pub(crate) files: Vec<String>,
}

/// A picture for the page.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) component: Component,
    pub(crate) step: u64,
    pub(crate) time: f64,
    pub(crate) range: f64,
    pub(crate) png: Vec<u8>,
}

/// Files that were read or written, beside snapshots.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Files {
    pub(crate) resumed: Option<String>,
    pub(crate) checkpoint: Option<String>,
    #[serde(rename = "probes_file")]
    pub(crate) probes: Option<String>,
    pub(crate) report: Option<String>,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Seconds {
    pub(super) read: f64,
    /// Opening devices, measuring their speed, moving the problem to them.
    pub(super) prepare: f64,
    pub(super) stepping: f64,
    pub(super) total: f64,
}

/// What a report is made of.
pub(crate) struct Facts<'a> {
    pub(crate) file: String,
    pub(crate) plan: &'a Plan,
    pub(crate) simulation: &'a Simulation,
    pub(crate) options: &'a Options,
    pub(crate) begun: u64,
    pub(crate) energy: Vec<(u64, f64)>,
    pub(crate) snapshots: Vec<SnapshotFiles>,
    pub(crate) files: Files,
    pub(crate) read: Duration,
    pub(crate) prepare: Duration,
    pub(crate) total: Duration,
}

impl Report {
    /// Gathers the facts.
    pub(crate) fn new(facts: Facts<'_>) -> Self {
        let (plan, simulation) = (facts.plan, facts.simulation);
        let problem = simulation.problem();
        let mut cells = vec![0; problem.materials().len()];
        problem.index().iter().for_each(|material| cells[usize::from(*material)] += 1);
        let materials = problem.materials().iter().cloned().zip(cells);
        let seen = problem.probes().iter().zip(simulation.seen()).map(|(probe, values)| Seen {
            name: probe.name.clone(),
            component: probe.component,
            at: probe.at.clone(),
            largest: values.iter().fold(0.0, |most: f64, v| most.max(v.abs())),
            last: values.last().copied(),
        });
        let (made, seconds) = (simulation.step() - facts.begun, simulation.stepping().as_secs_f64());
        let all = (problem.grid().len() as f64) * made as f64;
        let real = if facts.options.precision == Precision::F32 { 4 } else { 8 };
        let rate = (made > 0 && seconds > 0.0).then(|| all / seconds);
        Self {
            file: facts.file,
            title: plan.title.clone(),
            grid: *problem.grid(),
            time_step: problem.time_step(),
            courant: problem.time_step() / problem.largest_step(),
            materials: materials.map(|(material, cells)| Filling { material, cells }).collect(),
            pml: *problem.pml(),
            sources: problem.sources().len(),
            finished: simulation.step() >= plan.steps,
            steps: simulation.step(),
            planned_steps: plan.steps,
            resumed_steps: facts.begun,
            options: facts.options.clone(),
            ranks: simulation.ranks().to_vec(),
            probes: seen.collect(),
            energy: facts.energy.into_iter().map(|(step, energy)| Energy { step, energy }).collect(),
            snapshots: facts.snapshots,
            files: facts.files,
            seconds: Seconds {
                read: facts.read.as_secs_f64(),
                prepare: facts.prepare.as_secs_f64(),
                stepping: seconds,
                total: facts.total.as_secs_f64(),
            },
            cells_per_second: rate,
            gigabytes_per_second: rate.map(|rate| rate * 1e-9 * problem.grid().mode().bytes_per_cell(real) as f64),
        }
    }

    /// Whether all steps were made.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes back the names of files that were not written.
    pub(crate) fn forget_unwritten(&mut self, probes: bool, checkpoint: bool, report: bool) {
        self.files.probes.take_if(|_| !probes);
        self.files.checkpoint.take_if(|_| !checkpoint);
        self.files.report.take_if(|_| !report);
    }

    /// The outcome in a sentence.
    pub(super) fn outcome(&self) -> String {
        let steps = plural(self.steps, "step");
        let time = format!("{} s", scientific(self.steps as f64 * self.time_step));
        if self.finished {
            format!("Made {steps}: the fields are those after {time}.")
        } else {
            format!("Interrupted after {steps} of {}: the fields are those after {time}.", count(self.planned_steps))
        }
    }

    /// Labelled facts of the problem.
    pub(super) fn problem(&self) -> Vec<(&'static str, String)> {
        let [cells, steps] = [
            self.grid.cells().iter().map(|&n| count(n)).collect::<Vec<_>>(),
            self.grid.step().iter().map(|&step| number(step)).collect(),
        ]
        .map(|all| all.join(" × "));
        let mut all = vec![("problem", self.file.clone())];
        all.extend(self.title.clone().map(|title| ("title", title)));
        all.push((
            "mode",
            format!("{}: {}", self.grid.mode(), self.grid.mode().describe().trim_end_matches('.').to_lowercase()),
        ));
        all.push(("cells", format!("{cells}, of {steps} m")));
        let courant = format!("{} s, {} of the largest stable one", scientific(self.time_step), figure(self.courant));
        all.push(("time step", courant));
        let material =
            |filling: &Filling| format!("{} in {}", described(&filling.material), plural(filling.cells, "cell"));
        let there = self.materials.iter().filter(|filling| filling.cells > 0).map(material);
        all.push(("materials", there.collect::<Vec<_>>().join("; ")));
        all.push((
            "walls",
            if self.pml.is_none() {
                "perfect conductors".into()
            } else {
                format!("perfect conductors behind {}", self.layers())
            },
        ));
        all.push(("sources", count(self.sources)));
        all
    }

    fn layers(&self) -> String {
        let layers = &self.pml.layers[..self.grid.mode().dimensions()];
        let first = layers[0];
        if layers.iter().flatten().all(|n| *n == first[0]) {
            return format!("absorbing layers of {}", plural(first[0], "cell"));
        }
        let axis = |(name, [low, high]): (&str, &[usize; 2])| format!("{low} and {high} along {name}");
        let all: Vec<String> = ["x", "y", "z"].into_iter().zip(layers).map(axis).collect();
        format!("absorbing layers of cells: {}", all.join(", "))
    }

    /// Each rank in a line.
    pub(super) fn rank_lines(&self) -> Vec<String> {
        let planes = if self.grid.mode() == Mode::Full { "plane" } else { "row" };
        let of = |rank: &RankInfo| {
            let name = rank
                .index
                .map_or_else(|| rank.device.clone(), |index| format!("{} ({} {index})", rank.device, rank.kind));
            let share = if self.ranks.len() > 1 { format!(", share {}", rank.share_source) } else { String::new() };
            format!(
                "{name}, {} from {} on, {}{share}",
                plural(rank.planes, planes),
                rank.first,
                plural(rank.cells, "cell")
            )
        };
        self.ranks.iter().map(of).collect()
    }

    /// The rate in words.
    pub(super) fn rate(&self) -> Option<String> {
        let (cells, bytes) = self.cells_per_second.zip(self.gigabytes_per_second)?;
        Some(format!("{} million cells a second, {} GB/s", figure(1e-6 * cells), figure(bytes)))
    }
}

/// A material in words.
fn described(material: &Material) -> String {
    let Material { name, epsilon, mu, sigma, sigma_star, conductor } = material;
    if *conductor {
        return format!("{name} (conductor)");
    }
    let mut facts = Vec::new();
    let numbers = [("ε", *epsilon, 1.0), ("μ", *mu, 1.0), ("σ", *sigma, 0.0), ("σ*", *sigma_star, 0.0)];
    for (what, value, usual) in numbers {
        if value != usual {
            facts.push(format!("{what} {}", number(value)));
        }
    }
    if facts.is_empty() { name.clone() } else { format!("{name} ({})", facts.join(", ")) }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.outcome());
        text.section("Problem");
        self.problem().iter().for_each(|(label, value)| text.line(label, value));
        text.section("Devices");
        self.rank_lines().iter().enumerate().for_each(|(k, line)| text.line(&format!("rank {k}"), line));
        text.line("precision", self.options.precision.name());
        if !self.probes.is_empty() || !self.energy.is_empty() || !self.snapshots.is_empty() {
            text.section("Results");
        }
        for Seen { name, component, at, largest, last } in &self.probes {
            let last = last.map_or_else(|| "–".into(), scientific);
            text.line(name, &format!("{component} at {at:?}: largest {}, last {last}", scientific(*largest)));
        }
        if let (Some(first), Some(last)) = (self.energy.first(), self.energy.last()) {
            let unit = if self.grid.mode() == Mode::Full { "J" } else { "J/m" };
            let line = format!(
                "{:.6e} {unit} after step {}, {:.6e} after step {}",
                first.energy,
                count(first.step),
                last.energy,
                count(last.step)
            );
            text.line("energy", &line);
        }
        for snapshot in self.snapshots.iter().take(NAMED) {
            let files =
                if snapshot.files.is_empty() { String::new() } else { format!(": {}", snapshot.files.join(", ")) };
            text.line("snapshot", &format!("{} after step {}{files}", snapshot.component, count(snapshot.step)));
        }
        if self.snapshots.len() > NAMED {
            text.line("", &format!("and {} more", self.snapshots.len() - NAMED));
        }
        let files = [
            ("resumed", &self.files.resumed),
            ("checkpoint", &self.files.checkpoint),
            ("probes", &self.files.probes),
            ("report", &self.files.report),
        ];
        for (label, name) in files {
            name.iter().for_each(|name| text.line(label, name));
        }
        text.section("Time");
        let Seconds { read, prepare, stepping, total } = self.seconds;
        text.line("read", &format!("{read:9.4} s"));
        text.line("prepare", &format!("{prepare:9.4} s"));
        let rate = self.rate().map_or_else(String::new, |rate| format!("   {rate}"));
        text.line("steps", &format!("{stepping:9.4} s{rate}"));
        text.line("total", &format!("{total:9.4} s"));
        f.write_str(&text.finish())
    }
}

/// A time step or a time for a caption.
pub(super) fn seconds(value: f64) -> String {
    let units = [("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9), ("ps", 1e12)];
    let fitting = units.into_iter().find(|(_, per_second)| value * per_second >= 1.0);
    match fitting {
        Some((unit, per_second)) => format!("{} {unit}", figure(value * per_second)),
        None => format!("{} s", exact(value)),
    }
}
