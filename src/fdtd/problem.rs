//! What is to be computed: checked once, so that nothing after has to.

use serde::Serialize;

use super::grid::{Component, Grid};
use super::material::{MOST_MATERIALS, Material, Vacuum};
use super::pml::Pml;
use super::shape::Shape;
use super::source::Source;
use crate::cache::Digest;
use crate::error::{Error, Result};

/// The part of the largest stable step that is taken where nothing else is said.
pub const COURANT: f64 = 0.99;

/// How long a step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeStep {
    /// In s.
    Seconds(f64),
    /// As a part of the largest one that is stable.
    Courant(f64),
}

/// A cell whose field is recorded in each step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// What it is called.
    pub name: String,
    /// Which component.
    pub component: Component,
    /// The cell.
    pub at: Vec<usize>,
}

/// A grid, what is in its cells, and what drives the fields, which are 0 at first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    pub(crate) grid: Grid,
    pub(crate) vacuum: Vacuum,
    pub(crate) materials: Vec<Material>,
    /// The material of each cell.
    #[serde(skip)]
    pub(crate) index: Vec<u8>,
    pub(crate) dt: f64,
    pub(crate) pml: Pml,
    pub(crate) sources: Vec<Source>,
    pub(crate) probes: Vec<Probe>,
}

impl Problem {
    /// A grid that is filled with the first of the materials, without layers, sources and probes, in steps of [`COURANT`].
    ///
    /// # Errors
    /// [`Error::Usage`] for materials that are not passive, none, or more than 256; [`Error::OutOfMemory`] for a byte a cell.
    pub fn new(grid: Grid, vacuum: Vacuum, materials: Vec<Material>) -> Result<Self> {
        for (what, value) in [("epsilon", vacuum.epsilon), ("mu", vacuum.mu)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Usage(format!("{what} of the vacuum is {value}; it must be a number above 0")));
            }
        }
        if materials.is_empty() || materials.len() > MOST_MATERIALS {
            return Err(Error::Usage(format!(
                "there are {} materials; there may be from 1 to {MOST_MATERIALS}",
                materials.len()
            )));
        }
        materials.iter().try_for_each(Material::check)?;
        let index = crate::memory::zeros(grid.len()).map_err(|e| e.into_error("the material of each cell"))?;
        let (pml, sources, probes) = (Pml::none(), Vec::new(), Vec::new());
        let mut problem = Self { grid, vacuum, materials, index, dt: 0.0, pml, sources, probes };
        problem.dt = COURANT * problem.largest_step();
        Ok(problem)
    }

    /// Fills a body with the material of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such material, or the body is none.
    pub fn paint(&mut self, shape: &Shape, material: &str) -> Result<()> {
        shape.check(&self.grid)?;
        let material = self.material(material)?;
        shape.paint(&self.grid, material, &mut self.index);
        Ok(())
    }

    fn material(&self, name: &str) -> Result<u8> {
        let found = self.materials.iter().position(|material| material.name == name);
        found.map(|k| k as u8).ok_or_else(|| {
            let names: Vec<_> = self.materials.iter().map(|material| material.name.as_str()).collect();
            Error::Usage(format!("there is no material '{name}'; there are: {}", names.join(", ")))
        })
    }

    /// Sets the time step.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is not stable, with the largest one that is.
    pub fn set_time_step(&mut self, step: TimeStep) -> Result<()> {
        let largest = self.largest_step();
        let name = &self.fastest().name;
        self.dt = match step {
            TimeStep::Seconds(dt) if dt.is_finite() && dt > 0.0 && dt <= largest => dt,
            TimeStep::Courant(part) if part.is_finite() && part > 0.0 && part <= 1.0 => part * largest,
            TimeStep::Seconds(dt) if dt > largest => {
                return Err(Error::Usage(format!(
                    "dt is {dt:e} s, beyond the largest stable step of {largest:e} s, which is \
                     1 / (v √(1/Δx² + 1/Δy² + …)) with the speed v in '{name}'; take courant = {COURANT} in its place, \
                     which makes {:e} s",
                    COURANT * largest
                )));
            }
            TimeStep::Seconds(dt) => return Err(Error::Usage(format!("dt is {dt}; it must be above 0, in s"))),
            TimeStep::Courant(part) => {
                return Err(Error::Usage(format!(
                    "courant is {part}; it must be above 0 and at most 1, where steps of {largest:e} s are at the limit \
                     of stability"
                )));
            }
        };
        Ok(())
    }

    /// The fastest material: steps must be short enough for all.
    fn fastest(&self) -> &Material {
        let speed = |material: &Material| material.speed(self.vacuum);
        let moving = self.materials.iter().filter(|material| !material.conductor);
        let fastest = moving.max_by(|a, b| speed(a).total_cmp(&speed(b)));
        fastest.unwrap_or(&self.materials[0])
    }

    /// The condition of Courant, Friedrichs and Lewy: 1 / (v √(1/Δx² + 1/Δy² + 1/Δz²)), in s, v the largest speed of all materials.
    #[must_use]
    pub fn largest_step(&self) -> f64 {
        let sum: f64 = self.grid.step().iter().map(|step| 1.0 / (step * step)).sum();
        1.0 / (self.fastest().speed(self.vacuum) * sum.sqrt())
    }

    /// Puts layers in front of the walls.
    ///
    /// # Errors
    /// [`Error::Usage`] if they don't fit.
    pub fn set_pml(&mut self, pml: Pml) -> Result<()> {
        pml.check(&self.grid)?;
        self.pml = pml;
        Ok(())
    }

    /// Adds a source.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is outside, on a wall, or of a component that is not there.
    pub fn add_source(&mut self, source: Source) -> Result<()> {
        let name = format!("source {} of {}", self.sources.len() + 1, source.component);
        source.check().map_err(|e| Error::Usage(format!("{name}: {e}")))?;
        self.check_place(source.component, &source.from, &name)?;
        self.check_place(source.component, &source.to, &name)?;
        if source.from.iter().zip(&source.to).any(|(from, to)| from > to) {
            return Err(Error::Usage(format!("{name} is from {:?} to {:?}, where nothing is", source.from, source.to)));
        }
        let walls = self.grid.walls(source.component);
        if let Some(axis) = (0..source.from.len()).find(|&axis| walls[axis] && source.from[axis] == 0) {
            return Err(Error::Usage(format!(
                "{name} is on the wall before the first cells along {}, where {} is 0; begin at 1",
                ["x", "y", "z"][axis],
                source.component
            )));
        }
        self.sources.push(source);
        Ok(())
    }

    /// Adds a probe.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is outside, of a component that is not there, or has the name of another one.
    pub fn add_probe(&mut self, probe: Probe) -> Result<()> {
        let name = format!("probe '{}'", probe.name);
        self.check_place(probe.component, &probe.at, &name)?;
        if self.probes.iter().any(|other| other.name == probe.name) {
            return Err(Error::Usage(format!("there are two probes with the name '{}'", probe.name)));
        }
        self.probes.push(probe);
        Ok(())
    }

    /// The component, if there is one.
    ///
    /// # Errors
    /// [`Error::Usage`] with `what` if the mode has none.
    pub fn check_component(&self, component: Component, what: &str) -> Result<()> {
        let there = self.grid.mode().components();
        if there.contains(&component) {
            return Ok(());
        }
        let names: Vec<_> = there.iter().map(|component| component.name()).collect();
        let mode = self.grid.mode();
        Err(Error::Usage(format!("{what}: mode {mode} has no {component}; there are: {}", names.join(", "))))
    }

    fn check_place(&self, component: Component, at: &[usize], what: &str) -> Result<()> {
        self.check_component(component, what)?;
        self.grid.place(at, what).map(|_| ())
    }

    /// The grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The materials.
    #[must_use]
    pub fn materials(&self) -> &[Material] {
        &self.materials
    }

    /// The material of each cell, as its place among the materials; x runs fastest.
    #[must_use]
    pub fn index(&self) -> &[u8] {
        &self.index
    }

    /// Δt, in s.
    #[must_use]
    pub fn time_step(&self) -> f64 {
        self.dt
    }

    /// The layers.
    #[must_use]
    pub fn pml(&self) -> &Pml {
        &self.pml
    }

    /// The sources.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The probes.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// What tells it from others, to the last bit.
    pub(crate) fn identity(&self) -> Digest {
        let facts = serde_json::to_vec(self).unwrap_or_default();
        Digest::of([&facts[..], &self.index])
    }
}
