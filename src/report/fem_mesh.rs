//! The facts about a mesh.

use std::fmt;

use declive::fem::{Cell, Mesh, Quality};
use serde::Serialize;

use super::layout::Text;
use super::units::{count, number, plural, scientific};

/// A fact with its label.
pub(super) type Line = (&'static str, String);

/// All that is known about it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MeshReport {
    file: String,
    #[serde(flatten)]
    mesh: MeshFacts,
}

/// What it is made of.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MeshFacts {
    pub(super) element: Cell,
    pub(super) elements: usize,
    pub(super) nodes: usize,
    pub(super) regions: Vec<Group>,
    pub(super) sides: Vec<Group>,
    pub(super) quality: Quality,
}

/// A region and its elements, or a side and its parts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Group {
    pub(super) name: String,
    pub(super) count: usize,
}

impl MeshReport {
    /// Gathers the facts of a mesh from a file.
    pub(crate) fn new(file: &str, mesh: &Mesh) -> Self {
        Self { file: file.into(), mesh: MeshFacts::new(mesh) }
    }
}

impl MeshFacts {
    /// Gathers the facts.
    pub(super) fn new(mesh: &Mesh) -> Self {
        let mut of_regions = vec![0; mesh.region_names().len()];
        mesh.regions().iter().for_each(|&region| of_regions[region as usize] += 1);
        let regions = mesh.region_names().iter().zip(of_regions);
        let sides = mesh.side_names().iter().zip(0..).map(|(name, side)| (name, mesh.side(side).count()));
        let group = |(name, count): (&String, usize)| Group { name: name.clone(), count };
        Self {
            element: mesh.cell(),
            elements: mesh.len(),
            nodes: mesh.points().len(),
            regions: regions.map(group).collect(),
            sides: sides.map(group).collect(),
            quality: mesh.quality(),
        }
    }

    /// Labelled facts.
    pub(super) fn lines(&self) -> Vec<Line> {
        let is_flat = self.element.dimensions() == 2;
        let kinds = match (is_flat, self.elements) {
            (true, 1) => "triangle",
            (true, _) => "triangles",
            (false, 1) => "tetrahedron",
            (false, _) => "tetrahedra",
        };
        let order = if self.element.order() == 1 { "first" } else { "second" };
        let groups = |all: &[Group], what: &str| -> String {
            let name = |group: &Group| format!("{} ({})", group.name, plural(group.count, what));
            let names: Vec<_> = all.iter().map(name).collect();
            if names.is_empty() { "none".into() } else { names.join(", ") }
        };
        vec![
            ("elements", format!("{} {kinds} of {order} order", count(self.elements))),
            ("nodes", count(self.nodes)),
            ("regions", groups(&self.regions, "element")),
            ("sides", groups(&self.sides, if is_flat { "edge" } else { "face" })),
        ]
    }
}

impl fmt::Display for MeshReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut text, Quality { bounds, volume, worst_shape, mean_shape, worst_element, bandwidth }) =
            (Text::default(), &self.mesh.quality);
        text.paragraph(&format!("{} is a mesh of Gmsh.", self.file));
        text.section("Mesh");
        self.mesh.lines().iter().for_each(|(label, value)| text.line(label, value));
        let d = self.mesh.element.dimensions();
        let axes = ["x", "y", "z"].iter().zip(bounds).take(d);
        let axes: Vec<_> =
            axes.map(|(x, [from, to])| format!("{x} from {} to {}", number(*from), number(*to))).collect();
        text.line("bounds", &axes.join(", "));
        text.line(if d == 2 { "area" } else { "volume" }, &scientific(*volume));
        let shapes = format!(
            "1 is equilateral: {mean_shape:.2} in the mean, {worst_shape:.2} at the worst, \
             which is element {worst_element} in the order of the file"
        );
        text.line("shapes", &shapes);
        text.line("bandwidth", &format!("{}: nodes of an element are no further from each other", count(*bandwidth)));
        text.gap();
        text.paragraph(&format!("declive fem {} --template prints a problem on it, to start from.", self.file));
        f.write_str(&text.finish())
    }
}
