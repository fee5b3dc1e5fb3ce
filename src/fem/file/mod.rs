//! Problems as files, in [TOML](https://toml.io): `docs/fem.md` has all that may be in one.

mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;
pub(super) use tables::key;
use tables::{File, Region, Side, Table, Values, at, known, tables};

use super::assembly::Problem;
use super::local::Physics;
use super::mesh::Mesh;
use super::picture::window_of;
use crate::error::{Error, Result};
use crate::named::named;

/// The table of all regions that have none of their own.
const ANY: &str = "*";

named! {
    /// What is solved.
    Kind, "physics":
    Diffusion = "diffusion", "−∇·(κ ∇u) = f.";
    Elasticity = "elasticity", "−∇·σ = f for displacements.";
}

/// What a file asks for.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it is called.
    pub title: Option<String>,
    /// What is solved.
    pub kind: Kind,
    /// The part of the plane that a picture shows: the lower left and the upper right corner.
    pub window: Option<[[f64; 2]; 2]>,
    source: Source,
    order: Option<usize>,
    scale: Option<f64>,
    regions: Vec<Table<Region>>,
    sides: Vec<Table<Side>>,
    probes: Vec<Table<Vec<f64>>>,
}

/// Where the mesh comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A file of Gmsh.
    File(PathBuf),
    /// [`Mesh::unit_square`].
    Square([usize; 2]),
    /// [`Mesh::unit_cube`].
    Cube([usize; 3]),
    /// [`Mesh::capacitor`].
    Capacitor(usize),
}

/// A place at which the solution is wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// What it is called; the number of the probe if it has no name.
    pub name: String,
    /// Where it is.
    pub point: [f64; 3],
}

impl Plan {
    /// Reads a file. The mesh's file is beside it, unless its path is a whole one.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for what is no problem, with the line where it is known.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let text = String::from_utf8(bytes).map_err(|_| Error::Usage("this is no text in UTF-8, as TOML is".into()))?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("")))
    }

    /// The same of a text, with the folder of the mesh's file.
    ///
    /// # Errors
    /// [`Error::Usage`], as above.
    pub fn parse(text: &str, folder: &Path) -> Result<Self> {
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let file: File = toml::from_str(text).map_err(|e| {
            let place = e.span().map_or_else(String::new, |span| format!("line {}: ", line(span.start)));
            Error::Usage(format!("{place}{}", e.message().replace('\n', "; ")))
        })?;
        let mesh_line = line(file.mesh.span().start);
        let mesh = file.mesh.into_inner();
        let of_mesh = |message: &str| Err(at(mesh_line, format!("mesh: {message}")));
        let source = match (mesh.file, mesh.square, mesh.cube, mesh.capacitor) {
            (Some(file), None, None, None) => Source::File(folder.join(file)),
            (None, Some(cells), None, None) => Source::Square(cells),
            (None, None, Some(cells), None) => Source::Cube(cells),
            (None, None, None, Some(across)) => Source::Capacitor(across),
            _ => return of_mesh("one of file, square, cube and capacitor says which"),
        };
        if !matches!(mesh.order, None | Some(1 | 2)) {
            return of_mesh("order is 1 or 2");
        }
        let kind = file.physics.kind;
        let regions = tables(file.regions, line);
        for table in &regions {
            let Region { conductivity, young, poisson, .. } = &table.content;
            let foreign = match kind {
                Kind::Diffusion => young.map(|_| "young").or(poisson.map(|_| "poisson")),
                Kind::Elasticity => conductivity.map(|_| "conductivity"),
            };
            if let Some(key) = foreign {
                return Err(table.error("regions", &format!("{key} is nothing of {kind}")));
            }
        }
        let probes = file.probes.into_iter().enumerate().map(|(k, probe)| {
            let (line, probe) = (line(probe.span().start), probe.into_inner());
            Table { name: probe.name.unwrap_or_else(|| (k + 1).to_string()), line, content: probe.point }
        });
        Ok(Self {
            title: file.title,
            kind,
            window: file.picture.map(|picture| [picture.from, picture.to]),
            source,
            order: mesh.order,
            scale: mesh.scale,
            regions,
            sides: tables(file.sides, line),
            probes: probes.collect(),
        })
    }

    /// Where the mesh comes from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether there is something of the mesh in the window.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check_window(&self, mesh: &Mesh) -> Result<()> {
        window_of(mesh, self.window).map(|_| ())
    }

    /// Reads or makes the mesh.
    ///
    /// # Errors
    /// Those of [`Mesh::from_gmsh`] and the like.
    pub fn mesh(&self) -> Result<Mesh> {
        let mesh = match &self.source {
            Source::File(path) => Mesh::from_gmsh(path).map_err(|error| match error {
                Error::Usage(message) => Error::Usage(format!("{}: {message}", path.display())),
                other => other,
            })?,
            Source::Square(cells) => Mesh::unit_square(*cells)?,
            Source::Cube(cells) => Mesh::unit_cube(*cells)?,
            Source::Capacitor(across) => Mesh::capacitor(*across)?,
        };
        if self.order.is_some_and(|order| order < mesh.cell().order()) {
            return Err(Error::Usage(format!(
                "mesh: order is 1, but the file has elements of second order, {}",
                mesh.cell()
            )));
        }
        let mesh = if self.order == Some(2) { mesh.second_order() } else { mesh };
        match self.scale {
            Some(factor) => mesh.scaled(factor),
            None => Ok(mesh),
        }
    }

    /// The problem on its mesh.
    ///
    /// # Errors
    /// [`Error::Usage`] for regions and sides that the mesh has not, or the file, and for other counts of numbers than nodes have
    /// unknowns.
    pub fn problem<'m>(&self, mesh: &'m Mesh) -> Result<Problem<'m>> {
        known(&self.regions, "regions", "region", mesh.region_names())?;
        known(&self.sides, "sides", "side", mesh.side_names())?;
        let of_regions: Vec<&Table<Region>> = mesh
            .region_names()
            .iter()
            .map(|name| {
                let own = self.regions.iter().find(|table| table.name == *name);
                own.or_else(|| self.regions.iter().find(|table| table.name == ANY)).ok_or_else(|| {
                    Error::Usage(format!(
                        "there is no table [regions.{}], but the mesh has that region; \
                         [regions.\"*\"] is for all others",
                        key(name)
                    ))
                })
            })
            .collect::<Result<_>>()?;
        let number = |what: &str, of: fn(&Region) -> Option<f64>| -> Result<Vec<f64>> {
            let missing = |table: &Table<Region>| table.error("regions", &format!("{what} is missing"));
            of_regions.iter().map(|table| of(&table.content).ok_or_else(|| missing(table))).collect()
        };
        let physics = match self.kind {
            Kind::Diffusion => {
                Physics::Diffusion { conductivity: number("conductivity", |region| region.conductivity)? }
            }
            Kind::Elasticity => Physics::Elasticity {
                young: number("young", |region| region.young)?,
                poisson: number("poisson", |region| region.poisson)?,
            },
        };
        let mut problem = Problem::new(mesh, physics)?;
        let b = problem.unknowns();
        for (name, table) in mesh.region_names().iter().zip(of_regions) {
            let Some(source) = &table.content.source else { continue };
            for (component, f) in
                source.numbers(b, false).map_err(|m| table.error("regions", &format!("source {m}")))?
            {
                problem = problem.with_source_in(name, component, move |_| f)?;
            }
        }
        for table in &self.sides {
            for condition in table.conditions(b)? {
                problem = problem.with_condition(&table.name, condition).map_err(|error| match error {
                    Error::Usage(message) => at(table.line, message),
                    other => other,
                })?;
            }
        }
        Ok(problem)
    }

    /// The probes, which are in the mesh's coordinates after scaling.
    ///
    /// # Errors
    /// [`Error::Usage`] for other numbers of coordinates.
    pub fn probes(&self, mesh: &Mesh) -> Result<Vec<Probe>> {
        let d = mesh.cell().dimensions();
        let probe = |Table { name, line, content }: &Table<Vec<f64>>| {
            if content.len() != d {
                return Err(at(*line, format!("probes: point has {} coordinates; the mesh has {d}", content.len())));
            }
            let point = std::array::from_fn(|x| content.get(x).copied().unwrap_or(0.0));
            Ok(Probe { name: name.clone(), point })
        };
        self.probes.iter().map(probe).collect()
    }

    /// The known values of sides, where all of them are numbers of diffusion, and nothing else gives or takes: then what comes in at one value leaves
    /// at the other.
    #[must_use]
    pub fn only_values(&self) -> Option<Vec<(String, f64)>> {
        let is_zero = |values: &Option<Values>| values.as_ref().is_none_or(Values::is_zero);
        let is_closed = self.regions.iter().all(|table| is_zero(&table.content.source))
            && self.sides.iter().all(|table| table.content.robin.is_none() && is_zero(&table.content.flux));
        if self.kind != Kind::Diffusion || !is_closed {
            return None;
        }
        let value = |table: &Table<Side>| {
            let values = table.content.value.as_ref()?.numbers(1, false).ok()?;
            Some((table.name.clone(), values.first()?.1))
        };
        Some(self.sides.iter().filter_map(value).collect())
    }
}
