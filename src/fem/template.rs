//! A problem file to start from.

use std::fmt::Write;

use super::file::{Plan, key};
use super::mesh::Mesh;

impl Plan {
    /// A problem of diffusion on a mesh, with all of its regions and sides, as the text of a file. `name` is that of the mesh's file. The first side has the value 0;
    /// the second 1, or all regions a source.
    #[must_use]
    pub fn template(mesh: &Mesh, name: &str) -> String {
        let (sides, d) = (mesh.side_names(), mesh.cell().dimensions());
        let list = |value: &str| format!("[{}]", vec![value; d].join(", "));
        let name = serde_json::Value::from(name);
        let mut text = format!(
            "[mesh]\nfile = {name}\n# order = 2             # with the middles of edges\n\
             # scale = 1e-3          # of coordinates: from mm\n\n\
             [physics]\nkind = \"diffusion\"      # −∇·(κ ∇u) = f; or \"elasticity\"\n"
        );
        let source = if sides.len() < 2 { "1.0" } else { "0.0" };
        // writing to a text can't fail
        for region in mesh.region_names() {
            let _ = write!(
                text,
                "\n[regions.{}]\nconductivity = 1.0      # elasticity: young = 210e9, poisson = 0.3\n\
                 source = {source}            # elasticity: {}\n",
                key(region),
                list("0.0")
            );
        }
        for (k, side) in sides.iter().enumerate() {
            let condition = match k {
                0 => format!("value = 0.0             # elasticity: {}, or \"free\" in place of a number", list("0.0")),
                1 => "value = 1.0".into(),
                2 => format!("flux = 0.0              # what comes in; elasticity: a force by area, {}", list("0.0")),
                _ => "flux = 0.0".into(),
            };
            let _ = write!(text, "\n[sides.{}]\n{condition}\n", key(side));
        }
        if sides.is_empty() {
            text.push_str("\n# the mesh has no sides: name some in Gmsh, by Physical Curve or Physical Surface\n");
        }
        text
    }
}
