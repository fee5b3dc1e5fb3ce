//! The nodes and elements of a rank.

use std::ops::Range;

use super::super::mesh::Mesh;

/// The nodes that a rank owns, those of others that its elements have, and these elements: all that have a node of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RankNodes {
    pub(super) own: Range<usize>,
    /// Sorted.
    pub(super) halo: Vec<u32>,
    /// None if they are all.
    elements: Option<Vec<u32>>,
}

impl RankNodes {
    pub(super) fn new(mesh: &Mesh, own: Range<usize>) -> Self {
        if own.len() == mesh.points().len() {
            return Self { own, halo: Vec::new(), elements: None };
        }
        let is_own = |node: &u32| own.contains(&(*node as usize));
        let touches = |element: &u32| mesh.element(*element as usize).iter().any(is_own);
        let elements: Vec<u32> = (0..mesh.len() as u32).filter(touches).collect();
        let nodes = elements.iter().flat_map(|&element| mesh.element(element as usize)).copied();
        let mut halo: Vec<u32> = nodes.filter(|node| !is_own(node)).collect();
        halo.sort_unstable();
        halo.dedup();
        Self { own, halo, elements: Some(elements) }
    }

    /// Elements.
    pub(super) fn len(&self, mesh: &Mesh) -> usize {
        self.elements.as_ref().map_or(mesh.len(), Vec::len)
    }

    /// The number in the mesh of an element.
    pub(super) fn element(&self, k: usize) -> usize {
        self.elements.as_ref().map_or(k, |elements| elements[k] as usize)
    }

    /// The rank's number of a node: its own from 0 on, and then those of the halo.
    pub(super) fn number(&self, node: u32) -> u32 {
        if self.own.contains(&(node as usize)) {
            return node - self.own.start as u32;
        }
        let (Ok(k) | Err(k)) = self.halo.binary_search(&node);
        (self.own.len() + k) as u32
    }

    /// Numbers in the mesh of its nodes, by its own numbers.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = usize> + Clone {
        let own = self.own.len();
        (0..own + self.halo.len()).map(move |k| if k < own { self.own.start + k } else { self.halo[k - own] as usize })
    }
}
