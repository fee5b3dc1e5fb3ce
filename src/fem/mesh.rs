//! Meshes: nodes, elements of one shape with the region of each, and the parts of the boundary that have a name.

use rayon::prelude::*;

use super::adjacency::runs;
use super::cell::{Cell, Point};
use super::local::Geometry;
use crate::error::{Error, Result};

/// Elements, so that their edges and places of nodes are counted in 32 bits.
pub(super) const MOST_ELEMENTS: usize = 400_000_000;

/// A mesh of triangles in the plane z = 0, or of tetrahedra. Numbers in errors count from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    cell: Cell,
    points: Vec<[f64; 3]>,
    nodes: Vec<u32>,
    regions: Vec<u32>,
    facets: Vec<u32>,
    sides: Vec<u32>,
    region_names: Vec<String>,
    side_names: Vec<String>,
}

/// Elements, or parts of the boundary: the nodes of one after the other, and the group of each, by its place among the names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    /// Nodes, counted from 0.
    pub nodes: Vec<u32>,
    /// Groups.
    pub groups: Vec<u32>,
    /// Their names.
    pub names: Vec<String>,
}

/// The numbers that things have where they come from; without any they count from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub(super) nodes: Vec<u64>,
    pub(super) elements: Vec<u64>,
    pub(super) parts: Vec<u64>,
}

impl Numbers {
    /// Of the thing at a place.
    pub(super) fn of(all: &[u64], place: usize) -> u64 {
        all.get(place).copied().unwrap_or(place as u64 + 1)
    }
}

impl Mesh {
    /// A mesh of such elements, whose groups are regions, and parts of the boundary, whose groups are sides.
    ///
    /// # Errors
    /// [`Error::Usage`] for a node that is not there or belongs to no element, an element that is inverted or has no volume, a group
    /// without a name, or arrays that don't fit each other: with the number of the element.
    pub fn new(cell: Cell, points: Vec<[f64; 3]>, elements: Parts, boundary: Parts) -> Result<Self> {
        Self::numbered(cell, points, elements, boundary, &Numbers::default())
    }

    /// The same, with the numbers that nodes and elements have in errors.
    pub(super) fn numbered(
        cell: Cell,
        points: Vec<[f64; 3]>,
        elements: Parts,
        boundary: Parts,
        numbers: &Numbers,
    ) -> Result<Self> {
        if elements.groups.len() > MOST_ELEMENTS {
            let count = elements.groups.len();
            return Err(Error::Usage(format!("{count} elements are more than a mesh has, which is {MOST_ELEMENTS}")));
        }
        check(&elements, cell.nodes(), points.len(), "element", [&numbers.elements, &numbers.nodes])?;
        check(&boundary, cell.facet_nodes(), points.len(), "boundary part", [&numbers.parts, &numbers.nodes])?;
        let number = |place| Numbers::of(&numbers.nodes, place);
        if let Some(place) = points.iter().position(|point| point.iter().any(|x| !x.is_finite())) {
            return Err(Error::Usage(format!(
                "node {}: its coordinates {:?} are no numbers",
                number(place),
                points[place]
            )));
        }
        let is_out = |point: &[f64; 3]| cell.dimensions() == 2 && point[2] != 0.0;
        if let Some(place) = points.iter().position(is_out) {
            let z = points[place][2];
            return Err(Error::Usage(format!("node {}: z = {z}; triangles are in the plane z = 0", number(place))));
        }
        let mut is_used = vec![false; points.len()];
        elements.nodes.iter().for_each(|&node| is_used[node as usize] = true);
        if let Some(node) = is_used.iter().position(|is_used| !is_used) {
            return Err(Error::Usage(format!("node {} belongs to no element", number(node))));
        }
        let mesh = Self {
            cell,
            points,
            nodes: elements.nodes,
            regions: elements.groups,
            facets: boundary.nodes,
            sides: boundary.groups,
            region_names: elements.names,
            side_names: boundary.names,
        };
        let places = cell.points();
        let check = |element| mesh.check_volume(element, &places, Numbers::of(&numbers.elements, element));
        let wrong = (0..mesh.len()).into_par_iter().map(check).find_first(Result::is_err);
        wrong.unwrap_or(Ok(()))?;
        Ok(mesh)
    }

    /// The same in another order: no place is new.
    pub(super) fn renumbered(&self, points: Vec<[f64; 3]>, elements: Parts, boundary: Parts) -> Self {
        let (nodes, regions, facets, sides) = (elements.nodes, elements.groups, boundary.nodes, boundary.groups);
        let (region_names, side_names) = (self.region_names.clone(), self.side_names.clone());
        Self { cell: self.cell, points, nodes, regions, facets, sides, region_names, side_names }
    }

    /// The same elements by their corners alone. Nodes of edges stay, without an element; sides are gone.
    pub(super) fn first_order(&self) -> Self {
        let (cell, corners) = (self.cell.first_order(), self.cell.corners());
        let nodes = self.nodes.chunks_exact(self.cell.nodes()).flat_map(|own| &own[..corners]).copied().collect();
        Self { cell, nodes, facets: Vec::new(), sides: Vec::new(), ..self.clone() }
    }

    /// Its first elements, with their nodes in the same order; sides are gone.
    pub(crate) fn piece(&self, elements: usize) -> Self {
        let mut nodes = self.nodes[..elements.min(self.len()) * self.cell.nodes()].to_vec();
        let mut own = nodes.clone();
        own.par_sort_unstable();
        own.dedup();
        nodes.par_iter_mut().for_each(|node| *node = own.partition_point(|one| one < node) as u32);
        let points = own.iter().map(|&node| self.points[node as usize]).collect();
        let regions = self.regions[..elements.min(self.len())].to_vec();
        Self { points, nodes, regions, facets: Vec::new(), sides: Vec::new(), ..self.clone() }
    }

    /// The same with its nodes elsewhere.
    #[cfg(test)]
    pub(super) fn moved(&self, to: impl Fn([f64; 3]) -> [f64; 3]) -> Result<Self> {
        let points = self.points.iter().map(|&point| to(point)).collect();
        let elements =
            Parts { nodes: self.nodes.clone(), groups: self.regions.clone(), names: self.region_names.clone() };
        let boundary = Parts { nodes: self.facets.clone(), groups: self.sides.clone(), names: self.side_names.clone() };
        Self::new(self.cell, points, elements, boundary)
    }

    /// The element has a volume, and its corners go round as they should.
    fn check_volume(&self, element: usize, places: &[Point], number: u64) -> Result<()> {
        let corners = self.corners(element);
        let size = (0..3).map(|k| {
            let of = |pick: fn(f64, f64) -> f64| corners.iter().map(|point| point[k]).reduce(pick).unwrap_or(0.0);
            of(f64::max) - of(f64::min)
        });
        let size = size.fold(0.0, f64::max);
        let least = 1e-14 * size.powi(self.cell.dimensions() as i32);
        for point in places {
            let volume = Geometry::of(self, element, point).determinant;
            let what = if volume.abs() <= least || volume.is_nan() {
                "has no volume"
            } else if volume < 0.0 {
                "is inverted: its nodes go round the wrong way, or one has gone through the opposite side"
            } else {
                continue;
            };
            return Err(Error::Usage(format!("element {number} {what}; its corners are {corners:?}")));
        }
        Ok(())
    }

    fn corners(&self, element: usize) -> Vec<[f64; 3]> {
        self.element(element)[..self.cell.corners()].iter().map(|&node| self.points[node as usize]).collect()
    }

    /// The shape of its elements.
    #[must_use]
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// The coordinates of its nodes.
    #[must_use]
    pub fn points(&self) -> &[[f64; 3]] {
        &self.points
    }

    /// The nodes of an element.
    #[must_use]
    pub fn element(&self, element: usize) -> &[u32] {
        &self.nodes[element * self.cell.nodes()..][..self.cell.nodes()]
    }

    /// The region of each element, by its place among [names](Self::region_names).
    #[must_use]
    pub fn regions(&self) -> &[u32] {
        &self.regions
    }

    /// The names of regions.
    #[must_use]
    pub fn region_names(&self) -> &[String] {
        &self.region_names
    }

    /// The names of sides, which are parts of the boundary.
    #[must_use]
    pub fn side_names(&self) -> &[String] {
        &self.side_names
    }

    /// The nodes of each part of a side.
    pub fn side(&self, side: u32) -> impl Iterator<Item = &[u32]> {
        let parts = self.facets.chunks_exact(self.cell.facet_nodes()).zip(&self.sides);
        parts.filter(move |(_, of)| **of == side).map(|(nodes, _)| nodes)
    }

    /// The nodes of each part of all sides.
    pub(super) fn facets(&self) -> impl Iterator<Item = &[u32]> {
        self.facets.chunks_exact(self.cell.facet_nodes())
    }

    /// The same mesh with all coordinates times a factor, of millimetres, say.
    ///
    /// # Errors
    /// [`Error::Usage`] for a factor that is not positive, or coordinates beyond all numbers.
    pub fn scaled(&self, factor: f64) -> Result<Self> {
        let points: Vec<[f64; 3]> = self.points.iter().map(|point| point.map(|x| factor * x)).collect();
        if !(factor > 0.0 && points.iter().flatten().all(|x| x.is_finite())) {
            return Err(Error::Usage(format!("coordinates can't be scaled by {factor}")));
        }
        Ok(Self { points, ..self.clone() })
    }

    /// The same mesh with a node in the middle of each edge: straight ones stay straight.
    #[must_use]
    pub fn second_order(&self) -> Self {
        if self.cell.order() == 2 {
            return self.clone();
        }
        let (corners, cell) = (self.cell.corners(), self.cell.second_order());
        let of_elements = self
            .nodes
            .par_chunks_exact(corners)
            .flat_map_iter(|own| cell.edges().iter().map(|&[a, b]| [own[a].min(own[b]), own[a].max(own[b])]));
        let width = self.cell.facet_nodes();
        let edges_of_facet = if width == 2 { 1 } else { 3 };
        let of_facets = self.facets.par_chunks_exact(width).flat_map_iter(|own| {
            (0..edges_of_facet).map(|k| (own[k], own[(k + 1) % width])).map(|(a, b)| [a.min(b), a.max(b)])
        });
        let edges: Vec<[u32; 2]> = of_elements.chain(of_facets).collect();
        let (middles, firsts) = middles(&edges, self.points.len());
        let place = |&first: &usize| {
            let [a, b] = edges[first].map(|node| self.points[node as usize]);
            std::array::from_fn(|k| 0.5 * (a[k] + b[k]))
        };
        let mut points = self.points.clone();
        points.par_extend(firsts.par_iter().map(place));
        let interleaved = |of: &[u32], each: usize, middles: &[u32], more: usize| -> Vec<u32> {
            let both = of.par_chunks_exact(each).zip(middles.par_chunks_exact(more));
            both.flat_map_iter(|(own, middles)| own.iter().chain(middles).copied()).collect()
        };
        let (of_elements, of_facets) = middles.split_at(self.len() * cell.edges().len());
        let nodes = interleaved(&self.nodes, corners, of_elements, cell.edges().len());
        let facets = interleaved(&self.facets, width, of_facets, edges_of_facet);
        Self { cell, points, nodes, facets, ..self.clone() }
    }
}

/// The node in the middle of each edge, which is one of a mesh with so many nodes before, in the order in which edges come first; and where each of
/// them comes first. 16 bytes an edge meanwhile.
fn middles(edges: &[[u32; 2]], nodes: usize) -> (Vec<u32>, Vec<usize>) {
    assert!(u32::try_from(nodes + edges.len()).is_ok(), "nodes are counted in 32 bits");
    // edges of each lower end, in order
    let mut start = vec![0_usize; nodes + 1];
    edges.iter().for_each(|edge| start[edge[0] as usize + 1] += 1);
    (0..nodes).for_each(|node| start[node + 1] += start[node]);
    let (mut next, mut sorted) = (start.clone(), vec![(0_u32, 0_u32); edges.len()]);
    for (k, edge) in edges.iter().enumerate() {
        sorted[next[edge[0] as usize]] = (edge[1], k as u32);
        next[edge[0] as usize] += 1;
    }
    runs(&mut sorted, &start).into_par_iter().for_each(<[(u32, u32)]>::sort_unstable);
    let is_first = |k: usize| k == 0 || sorted[k - 1].0 != sorted[k].0;
    let mut first_of = vec![0_u32; edges.len()];
    for node in 0..nodes {
        let mut first = 0;
        for k in start[node]..start[node + 1] {
            if k == start[node] || is_first(k) {
                first = sorted[k].1;
            }
            first_of[sorted[k].1 as usize] = first;
        }
    }
    let mut firsts = Vec::new();
    let mut middles = first_of;
    for k in 0..middles.len() {
        // what comes first is before its others, and has its number already
        middles[k] = if middles[k] as usize == k {
            firsts.push(k);
            (nodes + firsts.len() - 1) as u32
        } else {
            middles[middles[k] as usize]
        };
    }
    (middles, firsts)
}

/// All nodes are there, and all groups have names.
fn check(parts: &Parts, each: usize, nodes: usize, what: &str, [own, of_nodes]: [&[u64]; 2]) -> Result<()> {
    let number = |place| Numbers::of(own, place);
    let Parts { nodes: all, groups, names } = parts;
    if all.len() != each * groups.len() {
        let message = format!("{} nodes are not {each} for each of {} {what}s", all.len(), groups.len());
        return Err(Error::Usage(message));
    }
    if let Some(place) = all.iter().position(|&node| node as usize >= nodes) {
        let message =
            format!("{what} {}: node {} is not there; there are {nodes}", number(place / each), all[place] + 1);
        return Err(Error::Usage(message));
    }
    if let Some(place) = groups.iter().position(|&group| group as usize >= names.len()) {
        return Err(Error::Usage(format!(
            "{what} {} is in group {}, which has no name",
            number(place),
            groups[place] + 1
        )));
    }
    let mut seen = vec![usize::MAX; nodes];
    for (k, own) in all.chunks_exact(each).enumerate() {
        for &node in own {
            if std::mem::replace(&mut seen[node as usize], k) == k {
                return Err(Error::Usage(format!(
                    "{what} {} has node {} twice",
                    number(k),
                    Numbers::of(of_nodes, node as usize)
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_by_hand() {
        // of two triangles 0 1 2 and 1 3 2, and of a side 2 3
        let edges = [[0, 1], [1, 2], [0, 2], [1, 3], [2, 3], [1, 2], [2, 3]];
        assert_eq!(middles(&edges, 4), (vec![4, 5, 6, 7, 8, 5, 8], vec![0, 1, 2, 3, 4]));
        assert_eq!(middles(&[], 3), (vec![], vec![]));
        assert_eq!(middles(&[[1, 2], [0, 2], [1, 2], [0, 1]], 3), (vec![3, 4, 3, 5], vec![0, 1, 3]));
    }

    #[test]
    fn pieces_by_hand() {
        let mesh = Mesh::unit_square([2, 1]).unwrap();
        assert_eq!(mesh.len(), 4);
        let piece = mesh.piece(1);
        assert_eq!((piece.len(), piece.points().len(), piece.element(0)), (1, 3, &[0, 1, 2][..]));
        let expected: Vec<[f64; 3]> = mesh.element(0).iter().map(|&node| mesh.points()[node as usize]).collect();
        let mut found: Vec<[f64; 3]> = piece.element(0).iter().map(|&node| piece.points()[node as usize]).collect();
        assert_eq!(found, expected);
        found = mesh.piece(9).points().to_vec();
        assert_eq!(found, mesh.points());
    }
}
