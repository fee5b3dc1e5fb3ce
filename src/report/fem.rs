//! The facts about a field by finite elements.

use std::fmt;
use std::time::Duration;

use declive::Outcome;
use declive::fem::{ColouringFacts, Kind, Mesh, Plan, Probe, Problem, Reaction, Sample, Stress, von_mises};
use declive::solve::{Method, Precision, Precond};
use serde::Serialize;

use super::distinct;
use super::fem_mesh::{Line, MeshFacts};
use super::layout::Text;
use super::units::{count, number, plural, scientific};

const AXES: [&str; 3] = ["x", "y", "z"];

/// All that is known about it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    problem: String,
    title: Option<String>,
    physics: Kind,
    mesh: MeshFacts,
    unknowns: usize,
    /// Of these.
    known: usize,
    /// Of the matrix.
    entries: Option<usize>,
    operator: String,
    /// Why, if it was measured.
    operator_why: Option<String>,
    /// Of elements, if it goes by them.
    colours: Option<ColouringFacts>,
    method: Method,
    precond: Precond,
    precision: Precision,
    devices: Vec<String>,
    converged: bool,
    reason: &'static str,
    reason_text: String,
    iterations: u64,
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed.
    rel_residual_2: f64,
    backward_error: f64,
    #[serde(flatten)]
    solution: Solution,
    files: Files,
    seconds: Seconds,
}

/// What the solution says.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Solution {
    /// The least and the largest value of each unknown of nodes.
    extremes: Vec<[f64; 2]>,
    /// The largest |u|; of a number, too.
    largest: f64,
    /// The largest mean |∇u| of an element, of diffusion.
    largest_gradient: Option<f64>,
    /// The largest mean of an element, of elasticity.
    largest_von_mises: Option<f64>,
    /// What comes in through each side with known values.
    reactions: Vec<Reaction>,
    /// Where there are two known values, and nothing else gives or takes: what comes in at the larger one, by their difference.
    conductance: Option<f64>,
    energy: f64,
    probes: Vec<Seen>,
}

/// What is at a probe.
#[derive(Debug, Clone, Serialize)]
struct Seen {
    #[serde(flatten)]
    probe: Probe,
    value: Vec<f64>,
    /// A row for each unknown.
    gradient: Vec<Vec<f64>>,
    /// xx, yy, zz, xy, yz, xz, of elasticity.
    stress: Option<Stress>,
}

/// Files that were written.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Files {
    pub(crate) vtu: Option<String>,
    pub(crate) png: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) system: Option<[String; 2]>,
    pub(crate) report: Option<String>,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Serialize)]
struct Seconds {
    read: f64,
    assemble: f64,
    /// Opening devices, and moving the matrix to them.
    prepare: f64,
    solve: f64,
    /// What the solution says.
    fields: f64,
    total: f64,
}

/// What a report is made of.
pub(crate) struct Facts<'a> {
    pub(crate) file: &'a str,
    pub(crate) plan: &'a Plan,
    pub(crate) mesh: &'a Mesh,
    pub(crate) problem: &'a Problem<'a>,
    pub(crate) entries: Option<usize>,
    pub(crate) operator: String,
    pub(crate) operator_why: Option<String>,
    pub(crate) colours: Option<ColouringFacts>,
    pub(crate) known: usize,
    pub(crate) solution: Solution,
    pub(crate) outcome: &'a Outcome,
    pub(crate) method: Method,
    pub(crate) precond: Precond,
    pub(crate) precision: Precision,
    pub(crate) devices: Vec<String>,
    pub(crate) files: Files,
    /// In the order of [`Seconds`].
    pub(crate) seconds: [Duration; 6],
}

impl Solution {
    /// Gathers what a solution says. Probes are within the mesh.
    pub(crate) fn new(problem: &Problem<'_>, plan: &Plan, probes: &[Probe], x: &[f64]) -> Self {
        let b = problem.unknowns();
        let of = |a: usize| x.iter().skip(a).step_by(b).copied();
        let extremes = (0..b).map(|a| [of(a).fold(f64::INFINITY, f64::min), of(a).fold(f64::NEG_INFINITY, f64::max)]);
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let most = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, f64::max);
        let gradients = problem.gradients(x);
        let is_diffusion = plan.kind == Kind::Diffusion;
        let (reactions, energy) = problem.reactions_and_energy(x);
        let d = problem.mesh().cell().dimensions();
        let seen = probes.iter().filter_map(|probe| {
            let Sample { value, gradient, stress, .. } = problem.sample(x, probe.point)?;
            let gradient = gradient[..b].iter().map(|row| row[..d].to_vec()).collect();
            Some(Seen { probe: probe.clone(), value: value[..b].to_vec(), gradient, stress })
        });
        Self {
            extremes: extremes.collect(),
            largest: most(&mut x.chunks_exact(b).map(size)),
            largest_gradient: is_diffusion.then(|| most(&mut gradients.iter().map(|g| size(&g[0])))),
            largest_von_mises: problem.stresses(&gradients).map(|all| most(&mut all.iter().map(von_mises))),
            conductance: conductance(plan, &reactions),
            reactions,
            energy,
            probes: seen.collect(),
        }
    }
}

/// See [`Solution::conductance`].
fn conductance(plan: &Plan, reactions: &[Reaction]) -> Option<f64> {
    let values = plan.only_values()?;
    let mut levels = distinct(values.iter().map(|(_, value)| *value));
    levels.sort_by(f64::total_cmp);
    let &[low, high] = &levels[..] else { return None };
    let is_high = |reaction: &&Reaction| values.iter().any(|(side, value)| *side == reaction.side && *value == high);
    Some(reactions.iter().filter(is_high).map(|reaction| reaction.total).sum::<f64>() / (high - low))
}

impl Report {
    /// Takes back the name of the page if it was not written.
    pub(crate) fn forget_unwritten(&mut self, report: bool) {
        self.files.report.take_if(|_| !report);
    }

    /// Gathers the facts.
    pub(crate) fn new(facts: Facts<'_>) -> Self {
        let outcome = facts.outcome;
        let [read, assemble, prepare, solve, fields, total] = facts.seconds.map(|time| time.as_secs_f64());
        Self {
            problem: facts.file.into(),
            title: facts.plan.title.clone(),
            physics: facts.plan.kind,
            mesh: MeshFacts::new(facts.mesh),
            unknowns: facts.problem.unknowns() * facts.mesh.points().len(),
            known: facts.known,
            entries: facts.entries,
            operator: facts.operator,
            operator_why: facts.operator_why,
            colours: facts.colours,
            method: facts.method,
            precond: facts.precond,
            precision: facts.precision,
            devices: facts.devices,
            converged: outcome.reason.converged(),
            reason: outcome.reason.name(),
            reason_text: outcome.reason.to_string(),
            iterations: outcome.iterations,
            rel_residual_2: outcome.residual.relative_2,
            backward_error: outcome.residual.backward_error,
            solution: facts.solution,
            files: facts.files,
            seconds: Seconds { read, assemble, prepare, solve, fields, total },
        }
    }

    /// The outcome in a sentence.
    pub(super) fn outcome(&self) -> String {
        let iterations = plural(self.iterations, "iteration");
        if self.converged {
            format!("Converged in {iterations}, true relative residual {}.", scientific(self.rel_residual_2))
        } else {
            format!("Not converged after {iterations}. {}.", self.reason_text)
        }
    }

    /// Labelled facts of the problem,
    pub(super) fn problem(&self) -> Vec<Line> {
        let mut all = vec![("problem", self.problem.clone())];
        all.extend(self.title.clone().map(|title| ("title", title)));
        all.push(("physics", format!("{}: {}", self.physics, self.physics.describe().trim_end_matches('.'))));
        all.extend(self.mesh.lines());
        let [unknowns, known] = [self.unknowns, self.known].map(count);
        let entries = self.entries.map_or_else(
            || format!("by elements, {}", self.operator),
            |entries| format!("{} of the matrix", plural(entries, "entry")),
        );
        all.push(("unknowns", format!("{unknowns}, of which {known} are known; {entries}")));
        all.extend(self.operator_why.as_ref().map(|why| ("operator", format!("{}: {why}", self.operator))));
        all.extend(self.colours.map(|ColouringFacts { colours, smallest, largest, least, .. }| {
            let sizes = format!("{} to {} elements", count(smallest), count(largest));
            ("colours", format!("{colours} of {sizes}, where {least} elements share a node"))
        }));
        all
    }

    /// of the method,
    pub(super) fn method(&self) -> Vec<Line> {
        let has_precond = !self.method.factorises();
        let precond = if has_precond { format!(", preconditioner {}", self.precond) } else { String::new() };
        let devices = if self.devices.is_empty() { "the host".into() } else { self.devices.join(", ") };
        vec![("method", format!("{}{precond}, in {}", self.method, self.precision)), ("devices", devices)]
    }

    /// of the solution and the files that have it,
    pub(super) fn solution(&self) -> Vec<Line> {
        let Solution { extremes, largest, largest_gradient, largest_von_mises, reactions, conductance, energy, probes } =
            &self.solution;
        let is_number = extremes.len() == 1;
        let labels = if is_number { ["u"; 3] } else { ["u x", "u y", "u z"] };
        let range = |(label, [least, most]): (&'static str, &[f64; 2])| {
            (label, format!("from {} to {}", digits(*least), digits(*most)))
        };
        let mut all: Vec<Line> = labels.into_iter().zip(extremes).map(range).collect();
        if !is_number {
            all.push(("largest |u|", digits(*largest)));
        }
        all.extend(largest_gradient.map(|value| ("largest |∇u|", digits(value))));
        all.extend(largest_von_mises.map(|value| ("von Mises", format!("{} at the most", digits(value)))));
        all.extend(reactions.iter().map(|Reaction { side, component, total }| {
            if is_number {
                ("flux", format!("{} comes in through {side}", digits(*total)))
            } else {
                ("force", format!("{} along {} on {side}", digits(*total), AXES[*component]))
            }
        }));
        all.extend(conductance.map(|value| ("Q / ΔV", digits(value))));
        all.push(("energy", digits(*energy)));
        all.extend(probes.iter().map(|seen| ("probe", self.seen(seen))));
        let Files { vtu, png, output, system, report } = &self.files;
        let files = [("ParaView", vtu), ("picture", png), ("unknowns", output), ("report", report)];
        all.extend(files.into_iter().filter_map(|(label, name)| Some((label, name.clone()?))));
        all.extend(system.iter().map(|[a, b]| ("system", format!("{a}, {b}"))));
        all
    }

    fn seen(&self, Seen { probe, value, gradient, stress }: &Seen) -> String {
        let list = |all: &[f64]| all.iter().map(|v| digits(*v)).collect::<Vec<_>>().join(", ");
        let point: Vec<_> = probe.point[..self.mesh.element.dimensions()].iter().map(|x| number(*x)).collect();
        let second = match stress {
            Some(stress) => format!("σ = ({}) for xx, yy, zz, xy, yz, xz", list(stress)),
            None => format!("∇u = ({})", list(&gradient[0])),
        };
        let value = if value.len() == 1 { list(value) } else { format!("({})", list(value)) };
        format!("{} at ({}): u = {value}, {second}", probe.name, point.join(", "))
    }

    /// and of the time.
    pub(super) fn time(&self) -> Vec<Line> {
        let Seconds { read, assemble, prepare, solve, fields, total } = self.seconds;
        let all = [
            ("read", read),
            ("assemble", assemble),
            ("prepare", prepare),
            ("solve", solve),
            ("fields", fields),
            ("total", total),
        ];
        all.map(|(label, time)| (label, format!("{time:9.4} s"))).to_vec()
    }

    /// What the problem is called.
    pub(super) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or("Finite elements")
    }
}

/// Seven figures, of which comparisons of meshes need some.
fn digits(value: f64) -> String {
    let plain = value == 0.0 || (1e-3..1e6).contains(&value.abs());
    if plain { format!("{}", (value * 1e6).round() / 1e6) } else { format!("{value:.6e}") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.outcome());
        let sections = [
            ("Problem", self.problem()),
            ("Method", self.method()),
            ("Solution", self.solution()),
            ("Time", self.time()),
        ];
        for (title, lines) in sections {
            text.section(title);
            lines.iter().for_each(|(label, value)| text.line(label, value));
        }
        f.write_str(&text.finish())
    }
}
