//! Colours of elements: no two of a colour share a node.

use rayon::prelude::*;
use serde::Serialize;

use super::adjacency::Adjacency;
use super::mesh::Mesh;

/// Elements by colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colouring {
    /// The colour of each element, from 0 on.
    pub of_element: Vec<u32>,
    /// How many elements each colour has.
    pub sizes: Vec<usize>,
}

/// What a colouring is like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColouringFacts {
    /// Colours.
    pub colours: usize,
    /// Elements of the smallest and of the largest.
    pub smallest: usize,
    /// Elements of the largest.
    pub largest: usize,
    /// The most elements that share a node: there can't be fewer colours.
    pub least: usize,
}

/// Elements that threads colour without looking at each other: then those that meet are coloured anew.
const PIECE: usize = 1 << 15;

impl Colouring {
    /// Colours elements, by pieces of 32,768 side by side, each element in the colour that has the fewest so far of those that are free; where
    /// elements of two pieces meet in a colour, the later one is coloured once more, until none do. So colours are about alike in size,
    /// and depend on the mesh alone. O(elements × nodes of an element × elements of a node).
    ///
    /// After A. H. Gebremedhin, F. Manne, "Scalable parallel graph coloring algorithms", Concurrency 12 (2000), doi
    /// 10.1002/1096-9128(200010)12:12<1131::AID-CPE528>3.0.CO;2-2.
    #[must_use]
    pub fn of(mesh: &Mesh) -> Self {
        Self::by_pieces(mesh, PIECE)
    }

    fn by_pieces(mesh: &Mesh, piece: usize) -> Self {
        let neighbours = Neighbours::of(mesh);
        let none = u32::MAX;
        let mut colours = vec![none; mesh.len()];
        let mut left: Vec<u32> = (0..mesh.len() as u32).collect();
        while !left.is_empty() {
            let known = &colours;
            let of_piece = |own: &[u32]| {
                let (mut chosen, mut sizes): (Vec<u32>, Vec<usize>) = (Vec::with_capacity(own.len()), Vec::new());
                let mut is_taken = Vec::new();
                for &element in own {
                    is_taken.clear();
                    is_taken.resize(sizes.len() + 1, false);
                    for other in neighbours.of_element(mesh, element) {
                        // elements of the piece are known before others have them
                        let colour = match own.binary_search(&other) {
                            Ok(place) => chosen.get(place).copied().unwrap_or(none),
                            Err(_) => known[other as usize],
                        };
                        if colour as usize >= is_taken.len() && colour != none {
                            is_taken.resize(colour as usize + 1, false);
                        }
                        if let Some(is_taken) = is_taken.get_mut(colour as usize) {
                            *is_taken = true;
                        }
                    }
                    let free = (0..sizes.len()).filter(|&colour| !is_taken[colour]);
                    let colour = free.min_by_key(|&colour| sizes[colour]).unwrap_or_else(|| {
                        (sizes.len()..).find(|&colour| is_taken.get(colour) != Some(&true)).unwrap_or(sizes.len())
                    });
                    sizes.resize(sizes.len().max(colour + 1), 0);
                    sizes[colour] += 1;
                    chosen.push(colour as u32);
                }
                chosen
            };
            let chosen: Vec<u32> = left.par_chunks(piece).flat_map_iter(of_piece).collect();
            left.iter().zip(chosen).for_each(|(&element, colour)| colours[element as usize] = colour);
            let meets = |&element: &u32| {
                let own = colours[element as usize];
                neighbours.of_element(mesh, element).any(|other| other < element && colours[other as usize] == own)
            };
            left = left.par_iter().copied().filter(meets).collect();
            left.iter().for_each(|&element| colours[element as usize] = none);
        }
        let mut sizes = vec![0; colours.iter().map(|&colour| colour as usize + 1).max().unwrap_or(0)];
        colours.iter().for_each(|&colour| sizes[colour as usize] += 1);
        Self { of_element: colours, sizes }
    }

    /// What it is like.
    #[must_use]
    pub fn facts(&self, mesh: &Mesh) -> ColouringFacts {
        let mut counts = vec![0_usize; mesh.points().len()];
        (0..mesh.len()).flat_map(|element| mesh.element(element)).for_each(|&node| counts[node as usize] += 1);
        ColouringFacts {
            colours: self.sizes.len(),
            smallest: self.sizes.iter().copied().min().unwrap_or(0),
            largest: self.sizes.iter().copied().max().unwrap_or(0),
            least: counts.into_iter().max().unwrap_or(0),
        }
    }
}

/// The elements of each corner: elements that share a node share a corner of it, or an edge, whose ends are corners.
struct Neighbours(Adjacency);

impl Neighbours {
    fn of(mesh: &Mesh) -> Self {
        let corner = |element: usize, place: usize| mesh.element(element)[place] as usize;
        Self(Adjacency::new(mesh.points().len(), mesh.len(), mesh.cell().corners(), corner))
    }

    /// Others that share a corner with an element; some more than once.
    fn of_element(&self, mesh: &Mesh, element: u32) -> impl Iterator<Item = u32> {
        let each = mesh.cell().corners();
        let corners = &mesh.element(element as usize)[..each];
        let of_corner = move |&node: &u32| self.0.of(node as usize).iter().map(move |&place| place / each as u32);
        corners.iter().flat_map(of_corner).filter(move |&other| other != element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether no two elements of a colour share a node, and sizes are those.
    fn check(mesh: &Mesh, found: &Colouring) {
        let mut seen = vec![Vec::new(); mesh.points().len()];
        for (element, &colour) in found.of_element.iter().enumerate() {
            for &node in mesh.element(element) {
                assert!(!seen[node as usize].contains(&colour), "element {element}");
                seen[node as usize].push(colour);
            }
        }
        for (colour, &size) in found.sizes.iter().enumerate() {
            assert_eq!(found.of_element.iter().filter(|&&of| of as usize == colour).count(), size);
        }
    }

    #[test]
    fn no_colour_meets_itself() {
        let meshes = [
            Mesh::unit_square([1, 1]).unwrap(),
            Mesh::unit_square([9, 13]).unwrap(),
            Mesh::unit_square([9, 13]).unwrap().second_order(),
            Mesh::unit_cube([3, 4, 5]).unwrap(),
            Mesh::unit_cube([3, 2, 2]).unwrap().second_order(),
        ];
        for mesh in &meshes {
            for piece in [1, 7, 50, PIECE] {
                let found = Colouring::by_pieces(mesh, piece);
                check(mesh, &found);
                let facts = found.facts(mesh);
                assert!(facts.colours >= facts.least && facts.colours <= 4 * facts.least, "{facts:?}");
            }
            // a few elements fit no other colour
            let ColouringFacts { smallest, largest, .. } = Colouring::of(mesh).facts(mesh);
            assert!(largest - smallest <= largest / 2 + 2, "{smallest} to {largest}");
        }
        // both triangles of a square share two corners
        assert_eq!(Colouring::of(&meshes[0]).sizes, [1, 1]);
    }
}
