//! Meshes that Gmsh has written: [C. Geuzaine and J.-F. Remacle 2009](https://doi.org/10.1002/nme.2579), format MSH 4.1 or 2.2, as text or
//! binary.
//!
//! The crate `mshio` reads version 4.1 only; the format is small.

mod file;
mod input;
mod kind;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use file::{Block, File};
use kind::Kind;

use super::cell::Cell;
use super::conforming;
use super::mesh::{Mesh, Numbers, Parts};
use crate::error::{Error, Result};
use crate::matrix_market::unpacked;

/// The region of elements that are in no physical group.
const DEFAULT: &str = "default";
/// How far from the plane z = 0 nodes of triangles may be, as a part of the largest coordinate.
const FLAT: f64 = 1e-12;
/// Nodes to swap in an element that goes round the wrong way, after corners 2 and 3: middles of edges.
const TRIANGLE_SWAP: [[usize; 2]; 1] = [[3, 5]];
const TETRAHEDRON_SWAP: [[usize; 2]; 2] = [[4, 6], [8, 9]];

impl Mesh {
    /// Reads a mesh that Gmsh has written, version 4.1 or 2.2, as text or binary, perhaps compressed.
    ///
    /// The elements of the highest dimension are its elements, their physical groups its regions: `default` without one. Those of
    /// one dimension less that are in a physical group are parts of sides. Groups without a name are called by their number.
    /// Nodes that no element has are left out. Where all elements of a surface or volume go round the wrong way, they are turned.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for what is no such file, with the line, or byte, and for a mesh that is none, with the numbers
    /// of the file: other shapes than triangles and tetrahedra of first and second order, or several of them, elements that are inverted, have no volume or
    /// overlap, a node that is on the side of an element but not one of its nodes.
    pub fn from_gmsh(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_gmsh_bytes(&unpacked(path).map_err(|e| Error::io(path, e))?)
    }

    /// As [`from_gmsh`](Self::from_gmsh), of the content of a file that is not compressed.
    ///
    /// # Errors
    /// Those of [`from_gmsh`](Self::from_gmsh), but for the file's.
    pub fn from_gmsh_bytes(bytes: &[u8]) -> Result<Self> {
        let mut file = File::read(bytes)?;
        let cell = shape(&file.blocks)?;
        let of = |dimension: usize| move |block: &&Block| block.kind.dimension == dimension;
        let mut nodes = Nodes::new(&file, cell)?;
        if cell.dimensions() == 2 {
            nodes.flatten();
        }
        turn_round(&mut file.blocks, cell, &nodes);

        let mut numbers = Numbers { nodes: nodes.numbers.clone(), ..Numbers::default() };
        let mut regions = Groups::new(&file.names, cell.dimensions());
        let mut elements = Parts::default();
        for block in file.blocks.iter().filter(of(cell.dimensions())) {
            let group = match block.groups[..] {
                [] => regions.named(DEFAULT.into()),
                [group] => regions.numbered(group),
                [one, other, ..] => {
                    return Err(Error::Usage(format!(
                        "element {} is in the regions '{}' and '{}'; physical groups must not overlap",
                        block.numbers[0],
                        regions.name(one),
                        regions.name(other)
                    )));
                }
            };
            elements.groups.extend(block.numbers.iter().map(|_| group));
            nodes.add(block, &mut elements.nodes)?;
            numbers.elements.extend(&block.numbers);
        }
        elements.names = regions.all;

        let mut sides = Groups::new(&file.names, cell.dimensions() - 1);
        let mut boundary = Parts::default();
        for block in file.blocks.iter().filter(of(cell.dimensions() - 1)) {
            for &group in &block.groups {
                if block.kind.number != Kind::facet_of(cell) {
                    return Err(Error::Usage(format!(
                        "element {} of side '{}' is a {}, which no {cell} has on its side",
                        block.numbers[0],
                        sides.name(group),
                        block.kind.name
                    )));
                }
                let side = sides.numbered(group);
                boundary.groups.extend(block.numbers.iter().map(|_| side));
                nodes.add(block, &mut boundary.nodes)?;
                numbers.parts.extend(&block.numbers);
            }
        }
        boundary.names = sides.all;
        let mesh = Self::numbered(cell, nodes.points, elements, boundary, &numbers)?;
        conforming::check(&mesh, &numbers)?;
        Ok(mesh)
    }
}

/// The shape of the elements of the highest dimension.
fn shape(blocks: &[Block]) -> Result<Cell> {
    let dimension = blocks.iter().map(|block| block.kind.dimension).max().unwrap_or(0);
    let mut cell = None;
    for block in blocks.iter().filter(|block| block.kind.dimension == dimension) {
        let Some(own) = block.kind.cell() else {
            return Err(Error::Usage(format!(
                "element {} is a {}; a mesh is of triangles or of tetrahedra, of first or second order",
                block.numbers[0], block.kind.name
            )));
        };
        if *cell.get_or_insert(own) != own {
            let name = block.kind.name;
            return Err(Error::Usage(format!("element {} is a {name}, but others are not", block.numbers[0])));
        }
    }
    cell.ok_or_else(|| Error::Usage("the file has no elements; mesh it in Gmsh first".into()))
}

/// Nodes of a mesh, by their numbers.
struct Nodes {
    points: Vec<[f64; 3]>,
    numbers: Vec<u64>,
    places: HashMap<u64, u32>,
}

impl Nodes {
    /// Those that elements have, in the order of the file.
    fn new(file: &File, cell: Cell) -> Result<Self> {
        let own = file.blocks.iter().filter(|block| block.kind.dimension == cell.dimensions());
        let mut places: HashMap<u64, u32> = own.flat_map(|block| &block.nodes).map(|&node| (node, u32::MAX)).collect();
        let (mut points, mut numbers) = (Vec::new(), Vec::new());
        for &(number, point) in &file.nodes {
            let Some(place) = places.get_mut(&number) else { continue };
            if *place != u32::MAX {
                return Err(Error::Usage(format!("there are two nodes with the number {number}")));
            }
            *place = points.len() as u32;
            points.push(point);
            numbers.push(number);
        }
        let left = file.nodes.len() - points.len();
        if left > 0 {
            log::info!("{left} nodes of the file belong to no element, and are left out");
        }
        Ok(Self { points, numbers, places })
    }

    /// Brings those into the plane z = 0 that are out of it by rounding.
    fn flatten(&mut self) {
        let size = self.points.iter().flat_map(|[x, y, _]| [x.abs(), y.abs()]).fold(0.0, f64::max);
        let near = self.points.iter_mut().map(|point| &mut point[2]).filter(|z| z.abs() <= FLAT * size);
        near.for_each(|z| *z = 0.0);
    }

    /// Adds the nodes of elements.
    fn add(&self, block: &Block, to: &mut Vec<u32>) -> Result<()> {
        for (k, number) in block.nodes.iter().enumerate() {
            let Some(&place) = self.places.get(number).filter(|place| **place != u32::MAX) else {
                let element = block.numbers[k / block.kind.nodes];
                return Err(Error::Usage(format!("element {element}: node {number} is not there, or of no element")));
            };
            to.push(place);
        }
        Ok(())
    }

    /// Whether the corners of an element go round the wrong way; none if it is flat, or nodes are missing.
    fn is_inverted(&self, nodes: &[u64], cell: Cell) -> Option<bool> {
        let corner = |k: usize| self.points.get(*self.places.get(&nodes[k])? as usize);
        let edge = |k: usize| -> Option<[f64; 3]> {
            let (from, to) = (corner(0)?, corner(k)?);
            Some(std::array::from_fn(|x| to[x] - from[x]))
        };
        let (a, b) = (edge(1)?, edge(2)?);
        let normal = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
        let volume = match cell.dimensions() {
            2 => normal[2],
            _ => normal.iter().zip(edge(3)?).map(|(n, c)| n * c).sum(),
        };
        (volume != 0.0).then_some(volume < 0.0)
    }
}

/// Turns the elements of each surface or volume all of which go round the wrong way: one that faces down, say.
fn turn_round(blocks: &mut [Block], cell: Cell, nodes: &Nodes) {
    let swaps: &[[usize; 2]] = match cell {
        Cell::Triangle6 => &TRIANGLE_SWAP,
        Cell::Tetrahedron10 => &TETRAHEDRON_SWAP,
        _ => &[],
    };
    let own = |block: &&mut Block| block.kind.dimension == cell.dimensions();
    let mut all_inverted: HashMap<i64, bool> = HashMap::new();
    for block in blocks.iter_mut().filter(own) {
        let of_entity = all_inverted.entry(block.entity).or_insert(true);
        *of_entity &= block.nodes.chunks_exact(cell.nodes()).all(|own| nodes.is_inverted(own, cell) == Some(true));
    }
    let mut turned = 0;
    for block in blocks.iter_mut().filter(own).filter(|block| all_inverted[&block.entity]) {
        for own in block.nodes.chunks_exact_mut(cell.nodes()) {
            [[1, 2]].iter().chain(swaps).for_each(|&[a, b]| own.swap(a, b));
            turned += 1;
        }
    }
    if turned > 0 {
        log::info!("{turned} elements go round the wrong way, as all of their surface or volume do, and are turned");
    }
}

/// Names of groups, in the order in which they are met.
struct Groups<'a> {
    names: &'a HashMap<(usize, i64), String>,
    dimension: usize,
    all: Vec<String>,
}

impl<'a> Groups<'a> {
    fn new(names: &'a HashMap<(usize, i64), String>, dimension: usize) -> Self {
        Self { names, dimension, all: Vec::new() }
    }

    /// What a group is called.
    fn name(&self, number: i64) -> String {
        self.names.get(&(self.dimension, number)).cloned().unwrap_or_else(|| number.to_string())
    }

    fn numbered(&mut self, number: i64) -> u32 {
        self.named(self.name(number))
    }

    fn named(&mut self, name: String) -> u32 {
        let place = self.all.iter().position(|other| *other == name).unwrap_or_else(|| {
            self.all.push(name);
            self.all.len() - 1
        });
        place as u32
    }
}
