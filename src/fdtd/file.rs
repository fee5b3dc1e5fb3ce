//! Problems as files, in [TOML](https://toml.io): `docs/fdtd.md` has all that may be in one.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::grid::{Component, Grid, Mode};
use super::material::{Material, Vacuum};
use super::pml::{Growth, Pml};
use super::problem::{Probe, Problem, TimeStep};
use super::shape::Shape;
use super::source::{Source, Waveform};
use crate::error::{Error, Result};

/// The name of what fills cells unless a file says otherwise.
const VACUUM: &str = "vacuum";

/// A component that is kept at intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Which component.
    pub component: Component,
    /// After each so many steps.
    pub every: u64,
    /// Of three dimensions, which plane is drawn: across this axis, at this cell.
    pub slice: (usize, usize),
    /// The value of the strongest colour; `None` is by the values.
    pub range: Option<f64>,
}

/// What a file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What it is called.
    pub title: Option<String>,
    /// What is to be computed,
    pub problem: Problem,
    /// for how many steps,
    pub steps: u64,
    /// and what is to be kept.
    pub snapshots: Vec<Snapshot>,
    /// After how many steps the energy is taken, again and again; `None` is never.
    pub energy_every: Option<u64>,
}

impl Plan {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for what is no problem, with the line where it is known.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let text = String::from_utf8(bytes).map_err(|_| Error::Usage("this is no text in UTF-8, as TOML is".into()))?;
        text.parse()
    }
}

impl FromStr for Plan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map_or_else(String::new, |line| format!("line {line}: "));
            Error::Usage(format!("{place}{}", e.message().replace('\n', "; ")))
        })?;
        file.plan()
    }
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    #[serde(deserialize_with = "by_name")]
    mode: Mode,
    cells: Vec<usize>,
    step: OneOrMany,
    steps: u64,
    dt: Option<f64>,
    courant: Option<f64>,
    energy_every: Option<u64>,
    vacuum: Option<Constants>,
    background: Option<String>,
    #[serde(default)]
    material: Vec<OfMaterial>,
    #[serde(default)]
    body: Vec<Body>,
    pml: Option<Layers>,
    #[serde(default)]
    source: Vec<OfSource>,
    #[serde(default)]
    probe: Vec<OfProbe>,
    #[serde(default)]
    snapshot: Vec<OfSnapshot>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a length, or a list of one for each axis")]
enum OneOrMany {
    One(f64),
    Many(Vec<f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Constants {
    epsilon: f64,
    mu: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfMaterial {
    name: String,
    epsilon: Option<f64>,
    mu: Option<f64>,
    sigma: Option<f64>,
    sigma_star: Option<f64>,
    conductor: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    material: String,
    shape: Shape,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    cells: Option<usize>,
    x: Option<[usize; 2]>,
    y: Option<[usize; 2]>,
    z: Option<[usize; 2]>,
    order: Option<f64>,
    sigma: Option<f64>,
    kappa: Option<f64>,
    alpha: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfSource {
    #[serde(deserialize_with = "by_name")]
    component: Component,
    at: Option<Vec<usize>>,
    from: Option<Vec<usize>>,
    to: Option<Vec<usize>>,
    #[serde(default)]
    hard: bool,
    waveform: Waveform,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfProbe {
    name: String,
    #[serde(deserialize_with = "by_name")]
    component: Component,
    at: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfSnapshot {
    #[serde(deserialize_with = "by_name")]
    component: Component,
    every: u64,
    slice: Option<Slice>,
    range: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slice {
    axis: String,
    at: usize,
}

/// What has a name, by that.
fn by_name<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(deserializer: D) -> std::result::Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl File {
    fn plan(self) -> Result<Plan> {
        let step = match self.step {
            OneOrMany::One(step) => vec![step; self.mode.dimensions()],
            OneOrMany::Many(steps) => steps,
        };
        let grid = Grid::new(self.mode, &self.cells, &step)?;
        let vacuum = self.vacuum.map_or_else(Vacuum::default, |Constants { epsilon, mu }| Vacuum { epsilon, mu });
        let materials = materials(self.material, self.background)?;
        let mut problem = Problem::new(grid, vacuum, materials)?;
        for (k, body) in self.body.iter().enumerate() {
            problem.paint(&body.shape, &body.material).map_err(|e| Error::Usage(format!("body {}: {e}", k + 1)))?;
        }
        match (self.dt, self.courant) {
            (Some(_), Some(_)) => return Err(Error::Usage("both dt and courant are there; leave one out".into())),
            (Some(dt), None) => problem.set_time_step(TimeStep::Seconds(dt))?,
            (None, Some(part)) => problem.set_time_step(TimeStep::Courant(part))?,
            (None, None) => {}
        }
        if let Some(layers) = self.pml {
            problem.set_pml(layers.pml(&grid)?)?;
        }
        for source in self.source {
            problem.add_source(source.source()?)?;
        }
        for OfProbe { name, component, at } in self.probe {
            problem.add_probe(Probe { name, component, at })?;
        }
        let snapshots = self.snapshot.into_iter().map(|snapshot| snapshot.snapshot(&problem)).collect::<Result<_>>()?;
        if self.steps == 0 || self.energy_every == Some(0) {
            return Err(Error::Usage("steps, and energy_every, are numbers from 1 up".into()));
        }
        Ok(Plan { title: self.title, problem, steps: self.steps, snapshots, energy_every: self.energy_every })
    }
}

/// Those of the file, that of the background first; and the vacuum, unless the file has one of its own.
fn materials(given: Vec<OfMaterial>, background: Option<String>) -> Result<Vec<Material>> {
    let mut all: Vec<Material> = Vec::new();
    for OfMaterial { name, epsilon, mu, sigma, sigma_star, conductor } in given {
        if all.iter().any(|other| other.name == name) {
            return Err(Error::Usage(format!("there are two materials with the name '{name}'")));
        }
        all.push(Material {
            epsilon: epsilon.unwrap_or(1.0),
            mu: mu.unwrap_or(1.0),
            sigma: sigma.unwrap_or(0.0),
            sigma_star: sigma_star.unwrap_or(0.0),
            conductor: conductor.unwrap_or(false),
            name,
        });
    }
    let background = background.unwrap_or_else(|| VACUUM.into());
    if !all.iter().any(|material| material.name == VACUUM) {
        all.insert(0, Material::vacuum(VACUUM));
    }
    let Some(first) = all.iter().position(|material| material.name == background) else {
        let names: Vec<_> = all.iter().map(|material| material.name.as_str()).collect();
        return Err(Error::Usage(format!(
            "background: there is no material '{background}'; there are: {}",
            names.join(", ")
        )));
    };
    let first = all.remove(first);
    all.insert(0, first);
    Ok(all)
}

impl Layers {
    fn pml(self, grid: &Grid) -> Result<Pml> {
        let usual = Growth::default();
        let growth = Growth {
            order: self.order.unwrap_or(usual.order),
            sigma: self.sigma.unwrap_or(usual.sigma),
            kappa: self.kappa.unwrap_or(usual.kappa),
            alpha: self.alpha.unwrap_or(usual.alpha),
        };
        let mut layers = Pml::all_around(grid, self.cells.unwrap_or(0)).layers;
        for (axis, own) in [self.x, self.y, self.z].into_iter().enumerate() {
            layers[axis] = own.unwrap_or(layers[axis]);
        }
        if self.cells.is_none() && layers == [[0; 2]; 3] {
            return Err(Error::Usage(
                "pml has no layers; say how thick they are, by cells = 10 or, before and behind, by x = [10, 10] and so on".into(),
            ));
        }
        Ok(Pml { layers, growth })
    }
}

impl OfSource {
    fn source(self) -> Result<Source> {
        let Self { component, at, from, to, hard, waveform } = self;
        let (from, to) = match (at, from, to) {
            (Some(at), None, None) => (at.clone(), at),
            (None, Some(from), Some(to)) => (from, to),
            _ => {
                return Err(Error::Usage(format!(
                    "a source of {component} has to say where it is: at = a cell, or from and to = the first and the last one"
                )));
            }
        };
        Ok(Source { component, from, to, hard, waveform })
    }
}

impl OfSnapshot {
    fn snapshot(self, problem: &Problem) -> Result<Snapshot> {
        let Self { component, every, slice, range } = self;
        let what = format!("snapshot of {component}");
        problem.check_component(component, &what)?;
        if every == 0 {
            return Err(Error::Usage(format!("{what}: every is 0; it is a number of steps from 1 up")));
        }
        if let Some(bad) = range.filter(|range| !(range.is_finite() && *range > 0.0)) {
            return Err(Error::Usage(format!("{what}: range is {bad}; it must be above 0")));
        }
        let cells = problem.grid.cells;
        let slice = match slice {
            None => (2, cells[2] / 2),
            Some(Slice { axis, at }) => {
                let axis = ["x", "y", "z"].iter().position(|name| *name == axis);
                let axis = axis.filter(|&axis| problem.grid.mode() == Mode::Full && at < cells[axis]);
                let bad = || Error::Usage(format!("{what}: its slice is no plane of a grid of three dimensions"));
                (axis.ok_or_else(bad)?, at)
            }
        };
        Ok(Snapshot { component, every, slice, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "mode = 'te'\ncells = [30, 20]\nstep = 0.01\nsteps = 5\n";

    fn error(more: &str) -> String {
        format!("{SMALL}{more}").parse::<Plan>().unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_everything() {
        let text = r#"
            title = "all"
            mode = "3d"
            cells = [20, 22, 24]
            step = [1e-3, 1e-3, 2e-3]
            steps = 100
            courant = 0.5
            energy_every = 10
            vacuum = { epsilon = 1, mu = 1 }
            background = "air"
            material = [{ name = "air", epsilon = 1.0006 }, { name = "metal", conductor = true }]
            [[body]]
            material = "metal"
            shape = { kind = "ball", centre = [10, 11, 12], radius = 3 }
            [pml]
            cells = 4
            z = [0, 5]
            kappa = 2
            [[source]]
            component = "ez"
            from = [5, 1, 5]
            to = [5, 20, 5]
            waveform = { kind = "sine", frequency = 1e-2, rise = 10 }
            [[probe]]
            name = "p"
            component = "hx"
            at = [1, 2, 3]
            [[snapshot]]
            component = "ez"
            every = 50
            slice = { axis = "y", at = 7 }
        "#;
        let plan: Plan = text.parse().unwrap();
        let problem = &plan.problem;
        assert_eq!((plan.steps, plan.energy_every, plan.snapshots[0].slice), (100, Some(10), (1, 7)));
        assert_eq!(problem.pml().layers, [[4, 4], [4, 4], [0, 5]]);
        let names: Vec<_> = problem.materials().iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["air", "vacuum", "metal"]);
        assert_eq!(problem.index().iter().filter(|m| **m == 2).count(), 136);
        assert_eq!(problem.sources()[0].to, [5, 20, 5]);
        assert!((problem.time_step() - 0.5 * problem.largest_step()).abs() < 1e-18);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(error("colour = 3").contains("line 5: unknown field `colour`"));
        assert!(error("mode = 'te'").contains("line 5: duplicate key"));
        assert!(
            "mode = 'tem'"
                .parse::<Plan>()
                .unwrap_err()
                .to_string()
                .contains("unknown mode 'tem'; there are: te, tm, 3d")
        );
        assert!(error("dt = 1.0").contains("largest stable step"));
        assert!(error("dt = 1e-12\ncourant = 0.5").contains("leave one out"));
        assert!(error("background = 'fog'").contains("no material 'fog'"));
        let source = "[[source]]\ncomponent = 'hz'\nwaveform = { kind = 'gaussian', delay = 1, width = 1 }\n";
        assert!(error(source).contains("at = a cell"));
        assert!(error(&format!("{source}at = [30, 0]")).contains("outside the grid"));
        assert!(error(&source.replace("width", "breadth")).contains("breadth"));
        assert!(error(&source.replace("gaussian", "square")).contains("square"));
        assert!(error("[pml]\norder = 3").contains("no layers"));
        assert!(error("[[snapshot]]\ncomponent = 'ez'\nevery = 1").contains("no ez"));
        assert!(error("[[snapshot]]\ncomponent = 'hz'\nevery = 0").contains("every is 0"));
        assert!(
            error("[[body]]\nmaterial = 'x'\nshape = { kind = 'ball', centre = [1, 1], radius = 1 }")
                .contains("body 1")
        );
        assert!(error("x = [").contains("line 5"));
    }
}
