//! Whether elements meet side to side: in a mesh from outside they may not.

use std::collections::HashMap;

use super::mesh::{Mesh, Numbers};
use crate::error::{Error, Result};

/// How near to the side of an element a node lies on it, as a part of its size.
const NEAR: f64 = 1e-8;

/// Corners of a side in ascending order; the third is missing in the plane.
type Key = [u32; 3];

/// A side: an element that has it, and whether its corners go round an even way there.
type Owner = (u32, bool);

/// No two elements overlap beside each other, each named part of the boundary is the side of one, and no node is on a side whose node it is
/// not. Takes some 50 bytes for each side.
///
/// # Errors
/// [`Error::Usage`] with the numbers of elements and nodes.
pub(super) fn check(mesh: &Mesh, numbers: &Numbers) -> Result<()> {
    let number = |element: u32| Numbers::of(&numbers.elements, element as usize);
    let mut sides: HashMap<Key, (Owner, bool)> = HashMap::new();
    let d = mesh.cell().dimensions();
    for element in 0..mesh.len() {
        for left_out in 0..=d {
            let corners = (0..=d).filter(|&k| k != left_out).map(|k| mesh.element(element)[k]);
            let (key, is_even) = key(corners);
            let own = (element as u32, is_even ^ (left_out % 2 == 1));
            let Some((first, is_inside)) = sides.get_mut(&key) else {
                sides.insert(key, (own, false));
                continue;
            };
            // of two, one is on either side
            if *is_inside || first.1 == own.1 {
                return Err(Error::Usage(format!(
                    "elements {} and {} overlap: they have a side in common, and both are on the same side of it",
                    number(first.0),
                    number(own.0)
                )));
            }
            *is_inside = true;
        }
    }
    for (place, part) in mesh.facets().enumerate() {
        if !sides.contains_key(&key(part[..d].iter().copied()).0) {
            let number = Numbers::of(&numbers.parts, place);
            return Err(Error::Usage(format!("boundary part {number} is not on the side of an element")));
        }
    }
    let outside = sides.into_iter().filter(|(_, (_, is_inside))| !is_inside);
    let mut outside: Vec<(Key, u32)> = outside.map(|(key, ((element, _), _))| (key, element)).collect();
    outside.sort_unstable();
    no_node_between(mesh, numbers, &outside)?;
    tell_doubled(mesh, outside.iter().flat_map(|(key, _)| key[..d].to_vec()).collect());
    Ok(())
}

/// Corners in ascending order, and whether an even number of exchanges brings them there.
fn key(corners: impl Iterator<Item = u32>) -> (Key, bool) {
    let mut key = [u32::MAX; 3];
    key.iter_mut().zip(corners).for_each(|(place, corner)| *place = corner);
    let exchanges = [[0, 1], [1, 2], [0, 2]].iter().filter(|&&[a, b]| key[a] > key[b]).count();
    key.sort_unstable();
    (key, exchanges % 2 == 0)
}

/// No side that one element has goes through a corner of others. Where smaller elements lie along such a side, one of them shares a corner with it.
fn no_node_between(mesh: &Mesh, numbers: &Numbers, sides: &[(Key, u32)]) -> Result<()> {
    let d = mesh.cell().dimensions();
    let mut beside: HashMap<u32, Vec<u32>> = HashMap::new();
    for (key, _) in sides {
        for &corner in &key[..d] {
            beside.entry(corner).or_default().extend(key[..d].iter().filter(|other| **other != corner));
        }
    }
    for (key, element) in sides {
        let corners = &key[..d];
        let places: Vec<[f64; 3]> = corners.iter().map(|&node| mesh.points()[node as usize]).collect();
        for &node in corners.iter().flat_map(|corner| &beside[corner]).filter(|node| !corners.contains(node)) {
            if is_within(mesh.points()[node as usize], &places) {
                return Err(Error::Usage(format!(
                    "node {} hangs: it is on the side of element {}, but not one of its nodes; \
                     elements must meet side to side",
                    Numbers::of(&numbers.nodes, node as usize),
                    Numbers::of(&numbers.elements, *element as usize)
                )));
            }
        }
    }
    Ok(())
}

/// Whether a place is on an edge, or a triangle, but for its corners: nodes of a crack are there.
fn is_within(place: [f64; 3], corners: &[[f64; 3]]) -> bool {
    let from = |to: [f64; 3]| -> [f64; 3] { std::array::from_fn(|x| to[x] - corners[0][x]) };
    let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (a, p) = (from(corners[1]), from(place));
    // the weights of the second and third corner at the nearest place of the line or plane
    let weights = match corners {
        [_, _, third] => {
            let b = from(*third);
            let (aa, ab, bb, pa, pb) = (dot(a, a), dot(a, b), dot(b, b), dot(p, a), dot(p, b));
            let determinant = aa * bb - ab * ab;
            [(pa * bb - pb * ab) / determinant, (pb * aa - pa * ab) / determinant]
        }
        _ => [dot(p, a) / dot(a, a), 0.0],
    };
    let b = corners.get(2).map_or([0.0; 3], |third| from(*third));
    let off: [f64; 3] = std::array::from_fn(|x| p[x] - weights[0] * a[x] - weights[1] * b[x]);
    let size = dot(a, a).max(dot(b, b));
    let inside = [1.0 - weights[0] - weights[1], weights[0], weights[1]];
    dot(off, off) <= NEAR * NEAR * size && inside.iter().all(|weight| (-NEAR..1.0 - NEAR).contains(weight))
}

/// Nodes of the boundary at the same place are a crack, or parts of a geometry that were never joined.
fn tell_doubled(mesh: &Mesh, mut nodes: Vec<u32>) {
    nodes.sort_unstable();
    nodes.dedup();
    let mut places: Vec<[u64; 3]> =
        nodes.iter().map(|&node| mesh.points()[node as usize].map(|x| (x + 0.0).to_bits())).collect();
    places.sort_unstable();
    let count = places.windows(2).filter(|pair| pair[0] == pair[1]).count();
    if count > 0 {
        log::warn!(
            "{count} nodes of the boundary are where others are: elements that touch there are not connected, \
             as at a crack; 'Coherence' in Gmsh joins parts of a geometry"
        );
    }
}
