//! Problems as files, in [TOML](https://toml.io): `docs/fem.md` has all that may be in one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::assembly::{Condition, Problem};
use super::local::Physics;
use super::mesh::Mesh;
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

/// A part of the file with a name, and the line where it is.
#[derive(Debug, Clone)]
struct Table<T> {
    name: String,
    line: usize,
    content: T,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    mesh: Spanned<OfMesh>,
    physics: OfPhysics,
    #[serde(default)]
    regions: BTreeMap<Spanned<String>, Region>,
    #[serde(default)]
    sides: BTreeMap<Spanned<String>, Side>,
    #[serde(default)]
    probes: Vec<Spanned<OfProbe>>,
    picture: Option<OfPicture>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfMesh {
    file: Option<PathBuf>,
    square: Option<[usize; 2]>,
    cube: Option<[usize; 3]>,
    capacitor: Option<usize>,
    order: Option<usize>,
    scale: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfPhysics {
    #[serde(deserialize_with = "by_name")]
    kind: Kind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Region {
    conductivity: Option<f64>,
    young: Option<f64>,
    poisson: Option<f64>,
    source: Option<Values>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    value: Option<Values>,
    flux: Option<Values>,
    robin: Option<Robin>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Robin {
    coefficient: Values,
    outside: Option<Values>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfProbe {
    name: Option<String>,
    point: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfPicture {
    from: [f64; 2],
    to: [f64; 2],
}

/// A number, or one for each unknown of a node, of which some may be free.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a number, or a list of one for each unknown of a node, or \"free\"")]
enum Values {
    One(f64),
    Many(Vec<Entry>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number, or \"free\"")]
enum Entry {
    Number(f64),
    Free(Free),
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Free {
    #[serde(rename = "free")]
    Free,
}

fn by_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Kind, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
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
        self.scale.map_or_else(|| Ok(mesh.clone()), |factor| mesh.scaled(factor))
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
                        "there is no table [regions.{}], but the mesh has that region; [regions.\"*\"] is for all others",
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

impl<T> Table<T> {
    fn error(&self, of: &str, message: &str) -> Error {
        at(self.line, format!("{of}.{}: {message}", key(&self.name)))
    }
}

impl Table<Side> {
    /// The conditions for each of b unknowns.
    fn conditions<'m>(&self, b: usize) -> Result<Vec<Condition<'m>>> {
        let numbers = |what: &str, values: &Values, may_be_free: bool| {
            values.numbers(b, may_be_free).map_err(|message| self.error("sides", &format!("{what} {message}")))
        };
        let Side { value, flux, robin } = &self.content;
        let (mut all, mut is_known) = (Vec::new(), [false; 3]);
        if let Some(value) = value {
            for (component, v) in numbers("value", value, true)? {
                is_known[component] = true;
                all.push(Condition::Value { component, value: Box::new(move |_| v) });
            }
        }
        let both = |what: &str| {
            let message = format!("{what} where the value is known; give the unknown a value, or a flux, or a film");
            self.error("sides", &message)
        };
        if let Some(flux) = flux {
            for (component, g) in numbers("flux", flux, true)? {
                // a flux of 0 is a place in the list
                if is_known[component] && g != 0.0 {
                    return Err(both("flux"));
                }
                all.push(Condition::Flux { component, value: Box::new(move |_| g) });
            }
        }
        if let Some(Robin { coefficient, outside }) = robin {
            let outside = outside.as_ref().map_or_else(|| Ok(Vec::new()), |v| numbers("robin.outside", v, true))?;
            for (component, coefficient) in numbers("robin.coefficient", coefficient, true)? {
                if is_known[component] && coefficient != 0.0 {
                    return Err(both("robin"));
                }
                let outside = outside.iter().find(|(own, _)| *own == component).map_or(0.0, |(_, v)| *v);
                all.push(Condition::Robin { component, coefficient, outside });
            }
        }
        Ok(all)
    }
}

impl Values {
    /// Numbers of components, but for those that are free.
    fn numbers(&self, b: usize, may_be_free: bool) -> std::result::Result<Vec<(usize, f64)>, String> {
        let entries = match self {
            Self::One(number) => &[Entry::Number(*number)][..],
            Self::Many(entries) => entries,
        };
        if entries.len() != b {
            let found = if entries.len() == 1 { "1 number".into() } else { format!("{} numbers", entries.len()) };
            return Err(format!("has {found}, but a node has {b} unknowns: one is needed for each"));
        }
        let mut numbers = Vec::new();
        for (component, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Number(number) if number.is_finite() => numbers.push((component, *number)),
                Entry::Number(number) => return Err(format!("is {number}, which is no number")),
                Entry::Free(_) if may_be_free => {}
                Entry::Free(_) => return Err("can't be \"free\"; write 0".into()),
            }
        }
        Ok(numbers)
    }

    fn is_zero(&self) -> bool {
        match self {
            Self::One(number) => *number == 0.0,
            Self::Many(entries) => entries.iter().all(|entry| matches!(entry, Entry::Free(_) | Entry::Number(0.0))),
        }
    }
}

/// Tables by their names, in the order of the file.
fn tables<T>(all: BTreeMap<Spanned<String>, T>, line: impl Fn(usize) -> usize) -> Vec<Table<T>> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    let table = |(name, content): (Spanned<String>, T)| Table {
        line: line(name.span().start),
        name: name.into_inner(),
        content,
    };
    all.into_iter().map(table).collect()
}

/// All tables are of things that the mesh has.
fn known<T>(tables: &[Table<T>], of: &str, what: &str, names: &[String]) -> Result<()> {
    let is_known = |name: &String| names.contains(name) || what == "region" && name == ANY;
    tables.iter().find(|table| !is_known(&table.name)).map_or(Ok(()), |table| {
        let there = if names.is_empty() { "none".into() } else { names.join(", ") };
        Err(at(table.line, format!("{of}.{}: the mesh has no such {what}; it has: {there}", key(&table.name))))
    })
}

fn at(line: usize, message: String) -> Error {
    Error::Usage(format!("line {line}: {message}"))
}

/// A name as a key of TOML.
pub(super) fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare { name.into() } else { serde_json::Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        [mesh]
        square = [4, 4]
        [physics]
        kind = "diffusion"
        [regions."*"]
        conductivity = 2
        [sides.left]
        value = 1.0
    "#;

    fn read(text: &str) -> Result<()> {
        let plan = Plan::parse(text, Path::new(""))?;
        let mesh = plan.mesh()?;
        plan.problem(&mesh)?;
        plan.probes(&mesh).map(|_| ())
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_everything() {
        let text = r#"
            title = "all"
            [mesh]
            cube = [2, 2, 2]
            order = 2
            scale = 1e-3
            [physics]
            kind = "elasticity"
            [regions.cube]
            young = 2e11
            poisson = 0.3
            source = [0, 0, -9.81]
            [sides.left]
            value = [0, "free", 0.5]
            flux = ["free", 2, "free"]
            [sides.bottom]
            robin = { coefficient = [0, 0, 5], outside = [0, 0, 1] }
            [sides.right]
            flux = [1, 2, 3]
            [[probes]]
            point = [0, 0, 1e-3]
            [[probes]]
            name = "corner"
            point = [1e-3, 0, 0]
            [picture]
            from = [0, 0]
            to = [1, 0.5]
        "#;
        let plan = Plan::parse(text, Path::new("")).unwrap();
        let mesh = plan.mesh().unwrap();
        assert_eq!((mesh.points().len(), mesh.quality().bounds), (125, [[0.0, 1e-3]; 3]));
        let problem = plan.problem(&mesh).unwrap();
        let kinds: Vec<_> = problem
            .conditions
            .iter()
            .map(|(side, condition)| match condition {
                Condition::Value { component, value } => (*side, *component, value([0.0; 3])),
                Condition::Flux { component, value } => (*side, 10 + component, value([0.0; 3])),
                Condition::Robin { component, coefficient, outside } => (*side, 20 + component, coefficient * outside),
            })
            .collect();
        let expected = [(0, 0, 0.0), (0, 2, 0.5), (0, 11, 2.0), (4, 20, 0.0), (4, 21, 0.0), (4, 22, 5.0)];
        assert_eq!(kinds[..6], expected);
        assert_eq!(kinds[6..], [(1, 10, 1.0), (1, 11, 2.0), (1, 12, 3.0)]);
        let probes = plan.probes(&mesh).unwrap();
        assert_eq!((probes[0].name.as_str(), probes[1].name.as_str()), ("1", "corner"));
        assert_eq!((plan.window, plan.title.as_deref()), (Some([[0.0, 0.0], [1.0, 0.5]]), Some("all")));
        assert_eq!(plan.only_values(), None);
        let small = Plan::parse(SMALL, Path::new("")).unwrap();
        assert_eq!(small.only_values(), Some(vec![("left".to_string(), 1.0)]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let more = |more: &str| error(&format!("{SMALL}{more}"));
        let other = |from: &str, to: &str| {
            assert!(SMALL.contains(from));
            error(&SMALL.replace(from, to))
        };
        let cases = [
            (more("colour = 3"), "line 10: unknown field `colour`"),
            (other("value = 1.0", "value = \"x\""), "line 9: a number, or a list"),
            (other("square = [4, 4]", "square = [4]"), "line 3"),
            (other("square = [4, 4]", ""), "line 2: mesh: one of file, square, cube and capacitor"),
            (other("square = [4, 4]", "square = [4, 4]\ncapacitor = 1"), "line 2: mesh: one of"),
            (other("[4, 4]", "[4, 4]\norder = 3"), "line 2: mesh: order is 1 or 2"),
            (other("[4, 4]", "[4, 4]\nscale = -1"), "can't be scaled by -1"),
            (other("[4, 4]", "[0, 4]"), "a cell in each direction"),
            (other("\"diffusion\"", "\"waves\""), "line 5: unknown physics 'waves'; there are: diffusion, elasticity"),
            (
                other("sides.left", "sides.lid"),
                "line 8: sides.lid: the mesh has no such side; it has: left, right, bottom, top",
            ),
            (other("regions.\"*\"", "regions.air"), "line 6: regions.air: the mesh has no such region; it has: square"),
            (
                other("[regions.\"*\"]\n        conductivity = 2", ""),
                "no table [regions.square], but the mesh has that region",
            ),
            (other("conductivity = 2", ""), "line 6: regions.\"*\": conductivity is missing"),
            (other("conductivity = 2", "young = 2"), "line 6: regions.\"*\": young is nothing of diffusion"),
            (other("conductivity = 2", "conductivity = -2"), "conductivity = -2 of region square"),
            (
                other("conductivity = 2", "conductivity = 2\nsource = [1, 2]"),
                "line 6: regions.\"*\": source has 2 numbers, but a node has 1",
            ),
            (other("conductivity = 2", "conductivity = 2\nsource = [\"free\"]"), "can't be \"free\""),
            (other("value = 1.0", "value = [1, 2]"), "line 8: sides.left: value has 2 numbers"),
            (other("value = 1.0", "value = nan"), "line 8: sides.left: value is NaN"),
            (other("value = 1.0", "value = 1\nflux = 1"), "line 8: sides.left: flux where the value is known"),
            (other("value = 1.0", "robin = { coefficient = -1 }"), "line 8: side 'left': h = -1"),
            (more("[[probes]]\npoint = [0, 0, 0]"), "line 10: probes: point has 3 coordinates; the mesh has 2"),
            (more("[sides.left]"), "line 10"),
            (other("square = [4, 4]", "file = \"no-such.msh\""), "no-such.msh"),
        ];
        for (message, part) in cases {
            assert!(message.contains(part), "{message}\nwithout {part}");
        }
    }
}
