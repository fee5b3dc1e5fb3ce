//! A problem on its devices.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::backend::LOG_STEPS;
use super::energy;
use super::grid::Component;
use super::placement;
use super::problem::Problem;
use super::ranks::Rank;
use super::slab::Slab;
use super::state::State;
use super::team::{Ranks, Team};
use crate::device::{self, Choice, Info, Kind};
use crate::error::{Error, Result};
use crate::named::as_text;
use crate::real::{Precision, Real};
use crate::setters::setters;
use crate::solve::{ShareSource, Shares};

/// What is fixed when a [`Simulation`] is made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Options {
    /// Which devices work. With [`Choice::Auto`], GPUs, one for each 2²² cells; without one, the processor through OpenCL; without
    /// OpenCL, the host's threads.
    #[serde(serialize_with = "as_text")]
    pub devices: Choice,
    /// Of the fields: `f64` or `f32`.
    pub precision: Precision,
    /// Which part of the planes each rank gets; `None` is by their speed in some steps on a part of the grid.
    pub shares: Option<Shares>,
}

impl Default for Options {
    fn default() -> Self {
        Self { devices: Choice::Auto, precision: Precision::F64, shares: None }
    }
}

setters! {
    Options:
    with_devices = devices: Choice;
    with_precision = precision: Precision;
    with_shares = shares: Shares as Some;
}

/// A device and its planes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankInfo {
    /// The device's name.
    pub device: String,
    /// What it is.
    #[serde(serialize_with = "as_text")]
    pub kind: Kind,
    /// Its number in `declive devices`; none for the host.
    pub index: Option<usize>,
    /// The first of its planes,
    pub first: usize,
    /// and how many it has.
    pub planes: usize,
    /// Its cells.
    pub cells: usize,
    /// Where its share comes from.
    pub share_source: ShareSource,
}

/// Fields that are computed step by step.
///
/// ```
/// use declive::fdtd::{Component, Grid, Material, Mode, Options, Probe, Problem, Simulation, Source, Vacuum, Waveform};
///
/// # fn main() -> declive::Result<()> {
/// // 60 × 60 cells of 1 cm, with a pulse in the middle
/// let grid = Grid::new(Mode::Te, &[60, 60], &[0.01, 0.01])?;
/// let mut problem = Problem::new(grid, Vacuum::default(), vec![Material::vacuum("air")])?;
/// problem.add_source(Source {
///     component: Component::Hz,
///     from: vec![30, 30],
///     to: vec![30, 30],
///     hard: false,
///     waveform: Waveform::Gaussian { amplitude: 1.0, delay: 4e-10, width: 1e-10 },
/// })?;
/// problem.add_probe(Probe { name: "right".into(), component: Component::Hz, at: vec![45, 30] })?;
///
/// let options = Options::default().with_devices("host".parse()?);
/// let mut simulation = Simulation::new(problem, &options)?;
/// simulation.advance(50)?;
/// let field = simulation.field(Component::Hz)?; // cell (i, j) is element i + 60 j
/// assert!(field[30 + 60 * 45] == field[45 + 60 * 30] && simulation.seen()[0].len() == 50);
/// # Ok(())
/// # }
/// ```
pub struct Simulation {
    problem: Problem,
    team: Box<dyn Team>,
    ranks: Vec<RankInfo>,
    note: Option<String>,
    step: u64,
    seen: Vec<Vec<f64>>,
    stepping: Duration,
}

impl Simulation {
    /// Opens the devices and divides the planes of the grid among them: rows of cells, or in three dimensions layers of one cell. Their memory is
    /// three or six arrays with an element for each cell, a byte for each cell, and twice or four times the cells of absorbing layers.
    ///
    /// # Errors
    /// [`Error::Usage`] for `precision = mixed`, or shares for another number of ranks; [`Error::NoDevice`]; a slab that its
    /// device can't hold; a failing device.
    pub fn new(problem: Problem, options: &Options) -> Result<Self> {
        match options.precision {
            Precision::F64 => Self::of::<f64>(problem, options),
            Precision::F32 => Self::of::<f32>(problem, options),
            Precision::Mixed => {
                Err(Error::Usage("precision = mixed is for linear systems; fields are in f64 or f32".into()))
            }
        }
    }

    /// On one device in groups of so many work-items, whatever is usual there; 1 is the shape of CPUs.
    ///
    /// # Errors
    /// Those of [`new`](Self::new); groups that the device does not take.
    pub(crate) fn in_groups(problem: Problem, device: &Info, precision: Precision, group_size: usize) -> Result<Self> {
        match precision.of_vectors() {
            Precision::F64 => Self::in_groups_of::<f64>(problem, device, group_size),
            _ => Self::in_groups_of::<f32>(problem, device, group_size),
        }
    }

    fn in_groups_of<T: Real>(problem: Problem, device: &Info, group_size: usize) -> Result<Self> {
        let grid = problem.grid;
        let slab = Slab { grid, planes: 0..grid.planes() };
        let infos = vec![info(Some(device), &slab, ShareSource::Even)];
        let rank = Rank::new(placement::open_in_groups::<T>(&problem, slab, device, group_size)?, &problem);
        Ok(Self::with(problem, vec![rank], infos, None))
    }

    fn of<T: Real>(problem: Problem, options: &Options) -> Result<Self> {
        let selection = device::select(&options.devices, options.precision.needs_f64())?;
        let devices = placement::worthwhile(selection.ranks, &options.devices, problem.grid.len());
        let (planes, source) = placement::planes::<T>(&problem, &devices, options.shares.as_ref())?;
        let grid = problem.grid;
        let mut ranks = Vec::new();
        let mut infos = Vec::new();
        for (device, planes) in devices.iter().zip(planes) {
            let slab = Slab { grid, planes };
            infos.push(info(device.as_ref(), &slab, source));
            ranks.push(Rank::new(placement::open::<T>(&problem, slab, device.as_ref())?, &problem));
        }
        Ok(Self::with(problem, ranks, infos, selection.note))
    }

    fn with<T: Real>(problem: Problem, ranks: Vec<Rank<T>>, infos: Vec<RankInfo>, note: Option<String>) -> Self {
        let seen = vec![Vec::new(); problem.probes.len()];
        let team = Box::new(Ranks { ranks, grid: problem.grid });
        Self { problem, team, ranks: infos, note, step: 0, seen, stepping: Duration::ZERO }
    }

    /// Makes so many steps. In step n, from 1 on, H goes to the time n Δt, and E to (n + ½) Δt.
    ///
    /// # Errors
    /// A failing device. The fields are in no known state then.
    pub fn advance(&mut self, steps: u64) -> Result<()> {
        let end = self.step + steps;
        while self.step < end {
            let some = (end - self.step).min(LOG_STEPS as u64);
            let start = Instant::now();
            let seen = self.team.advance(&self.problem, self.step + 1, some as usize)?;
            self.stepping += start.elapsed();
            self.seen.iter_mut().zip(seen).for_each(|(all, new)| all.extend(new));
            self.step += some;
        }
        Ok(())
    }

    /// Steps made so far.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The time that steps took, without what was read in between.
    #[must_use]
    pub fn stepping(&self) -> Duration {
        self.stepping
    }

    /// A component in all cells: that of cell (i, j, k) is element i + nx (j + ny k). Takes 8 bytes a cell on the host.
    ///
    /// # Errors
    /// [`Error::Usage`] if the mode has no such component; a failing device.
    pub fn field(&mut self, component: Component) -> Result<Vec<f64>> {
        self.problem.check_component(component, "the field that was asked for")?;
        self.team.field(component)
    }

    /// What each probe has seen in each step.
    #[must_use]
    pub fn seen(&self) -> &[Vec<f64>] {
        &self.seen
    }

    /// `V Σ (½ ε E² + ½ μ Hⁿ Hⁿ⁺¹)` in J, or in two dimensions in J/m, n the steps made so far: what a closed box without losses and sources
    /// keeps to rounding. On the host: it takes the memory of all fields in double precision, and about a step.
    ///
    /// # Errors
    /// A failing device; [`Error::OutOfMemory`].
    pub fn energy(&mut self) -> Result<f64> {
        energy::energy(&self.problem, |component| self.team.field(component))
    }

    /// All that a simulation can go on from.
    ///
    /// # Errors
    /// A failing device; [`Error::OutOfMemory`].
    pub fn state(&mut self) -> Result<State> {
        let components = self.problem.grid.mode().components();
        let fields = components.iter().map(|&component| self.team.field(component)).collect::<Result<_>>()?;
        let layers = self.team.layers()?;
        Ok(State { identity: self.problem.identity(), step: self.step, fields, layers, seen: self.seen.clone() })
    }

    /// Goes on from a state of the same problem, on whatever devices it was.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is one of another problem; a failing device.
    pub fn restore(&mut self, state: &State) -> Result<()> {
        if state.identity != self.problem.identity() {
            return Err(Error::Usage(
                "it is of another problem: grid, materials, layers, sources, probes and dt must be the same".into(),
            ));
        }
        let (components, cells) = (self.problem.grid.mode().components(), self.problem.grid.len());
        let are_all = state.fields.len() == components.len() && state.fields.iter().all(|field| field.len() == cells);
        let of_steps = |seen: &Vec<f64>| seen.len() as u64 == state.step;
        if !are_all || state.seen.len() != self.seen.len() || !state.seen.iter().all(of_steps) {
            return Err(Error::Usage("it is not whole: fields or probes are missing".into()));
        }
        for (&component, values) in components.iter().zip(&state.fields) {
            self.team.set_field(component, values)?;
        }
        self.team.set_layers(&state.layers)?;
        self.step = state.step;
        self.seen.clone_from(&state.seen);
        Ok(())
    }

    /// The problem.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The devices and their planes.
    #[must_use]
    pub fn ranks(&self) -> &[RankInfo] {
        &self.ranks
    }

    /// What the user should know about the choice of devices.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

fn info(device: Option<&Info>, slab: &Slab, share_source: ShareSource) -> RankInfo {
    RankInfo {
        device: device.map_or_else(|| "host".into(), |device| device.name.clone()),
        kind: device.map_or(Kind::Host, |device| device.kind),
        index: device.map(|device| device.index),
        first: slab.planes.start,
        planes: slab.planes.len(),
        cells: slab.cells(),
        share_source,
    }
}
