//! Solutions as files for ParaView: an unstructured grid of VTK in XML, with arrays as base64.
//!
//! The format is small, and the crate `vtkio` would bring parsers of it and of the legacy format.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;

use super::assembly::Problem;
use super::cell::Cell;
use super::field::{Gradient, von_mises};

/// The nodes of a tetrahedron in VTK's order: the middles of the last two edges are the other way round.
const TETRAHEDRON: [usize; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8];
const IN_ORDER: [usize; 6] = [0, 1, 2, 3, 4, 5];

impl Problem<'_> {
    /// Writes a solution as `.vtu`: of nodes `u`, a number or a vector; of elements `region`, the mean `gradient` of u, of a vector by rows, and
    /// −κ∇u as `flux`, or `stress` (xx, yy, zz, xy, yz, xz) and `von_mises`. The names of regions are in a comment.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If there is not a number for each unknown.
    pub fn write_vtu(&self, out: &mut dyn Write, x: &[f64]) -> io::Result<()> {
        let (mesh, b, gradients) = (self.mesh, self.unknowns(), self.gradients(x));
        let (cell, nodes, elements) = (mesh.cell(), mesh.points().len(), mesh.len());
        let names = mesh.region_names().iter().enumerate();
        let names: Vec<String> = names.map(|(k, name)| format!("{k} is {}", in_comment(name))).collect();
        writeln!(
            out,
            "<?xml version=\"1.0\"?>\n<!-- regions: {} -->\n\
             <VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
             <UnstructuredGrid>\n<Piece NumberOfPoints=\"{nodes}\" NumberOfCells=\"{elements}\">\n<Points>",
            names.join(", ")
        )?;
        reals(out, "Points", 3, mesh.points().as_flattened())?;
        writeln!(out, "</Points>\n<Cells>")?;
        let order = if cell == Cell::Tetrahedron10 { &TETRAHEDRON[..] } else { &IN_ORDER[..cell.nodes()] };
        let of_element = |element| order.iter().map(move |&k: &usize| i64::from(mesh.element(element)[k]));
        integers(out, "connectivity", &(0..elements).flat_map(of_element).collect::<Vec<_>>())?;
        integers(out, "offsets", &(1..=elements).map(|k| (k * order.len()) as i64).collect::<Vec<_>>())?;
        let kind = match cell {
            Cell::Triangle3 => 5,
            Cell::Triangle6 => 22,
            Cell::Tetrahedron4 => 10,
            Cell::Tetrahedron10 => 24,
        };
        array(out, "UInt8", "types", 1, &vec![kind; elements])?;
        writeln!(out, "</Cells>\n<PointData>")?;
        if b == 1 {
            reals(out, "u", 1, x)?;
        } else {
            // displacements in the plane have no third component
            let vector = |own: &[f64]| -> [f64; 3] { std::array::from_fn(|a| own.get(a).copied().unwrap_or(0.0)) };
            reals(out, "u", 3, x.chunks_exact(b).map(vector).collect::<Vec<_>>().as_flattened())?;
        }
        writeln!(out, "</PointData>\n<CellData>")?;
        integers(out, "region", &mesh.regions().iter().map(|&region| region.into()).collect::<Vec<_>>())?;
        if b == 1 {
            let rows: Vec<[f64; 3]> = gradients.iter().map(|gradient: &Gradient| gradient[0]).collect();
            reals(out, "gradient", 3, rows.as_flattened())?;
        } else {
            reals(out, "gradient", 9, gradients.as_flattened().as_flattened())?;
        }
        if let Some(fluxes) = self.fluxes(&gradients) {
            reals(out, "flux", 3, fluxes.as_flattened())?;
        }
        if let Some(stresses) = self.stresses(&gradients) {
            reals(out, "stress", 6, stresses.as_flattened())?;
            reals(out, "von_mises", 1, &stresses.iter().map(von_mises).collect::<Vec<_>>())?;
        }
        writeln!(out, "</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>")
    }
}

fn reals(out: &mut dyn Write, name: &str, components: usize, values: &[f64]) -> io::Result<()> {
    let bytes: Vec<[u8; 8]> = values.iter().map(|value| value.to_le_bytes()).collect();
    array(out, "Float64", name, components, bytes.as_flattened())
}

fn integers(out: &mut dyn Write, name: &str, values: &[i64]) -> io::Result<()> {
    let bytes: Vec<[u8; 8]> = values.iter().map(|value| value.to_le_bytes()).collect();
    array(out, "Int64", name, 1, bytes.as_flattened())
}

/// An array: its bytes behind the number of them, all as base64.
fn array(out: &mut dyn Write, kind: &str, name: &str, components: usize, bytes: &[u8]) -> io::Result<()> {
    writeln!(out, "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"binary\">")?;
    {
        let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
        encoder.write_all(&(bytes.len() as u64).to_le_bytes())?;
        encoder.write_all(bytes)?;
        encoder.finish()?;
    }
    writeln!(out, "\n</DataArray>")
}

/// Text within a comment of XML, which has no control characters and no two dashes.
fn in_comment(text: &str) -> String {
    text.replace(char::is_control, "?").replace('-', "‐")
}
