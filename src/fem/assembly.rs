//! A problem on a mesh, and its matrix.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::adjacency::Adjacency;
use super::local::{self, Physics};
use super::mesh::Mesh;
use super::side;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::memory::zeros;

/// Elements that threads go through before what they give is added up.
const BATCH: usize = 1 << 14;

/// Goes through so many elements on all threads, and adds up what each gives in their order, so that equal meshes give equal bits.
pub(super) fn in_order<V: Send>(
    elements: usize,
    of_element: impl Fn(usize) -> V + Sync,
    mut add: impl FnMut(usize, &V),
) {
    let mut of_batch = Vec::new();
    for first in (0..elements).step_by(BATCH) {
        (first..elements.min(first + BATCH)).into_par_iter().map(&of_element).collect_into_vec(&mut of_batch);
        (first..).zip(&of_batch).for_each(|(element, own)| add(element, own));
    }
}

/// A function of a place.
pub type Field<'a> = Box<dyn Fn([f64; 3]) -> f64 + Sync + 'a>;

/// What holds on a side. Without any, nothing goes through it: κ ∂u/∂n = 0, or σ n = 0.
pub enum Condition<'a> {
    /// Unknown `component` of each node is known.
    Value {
        /// From 0 on; 0 for diffusion.
        component: usize,
        /// What it is.
        value: Field<'a>,
    },
    /// What comes in through the side: κ ∂u/∂n = g, or component of σ n, the force on it.
    Flux {
        /// From 0 on; 0 for diffusion.
        component: usize,
        /// g.
        value: Field<'a>,
    },
    /// In proportion to what is missing: κ ∂u/∂n = h (v − u), a film of air on a wall, or a spring.
    Robin {
        /// From 0 on; 0 for diffusion.
        component: usize,
        /// h ≥ 0.
        coefficient: f64,
        /// v.
        outside: f64,
    },
}

/// A boundary value problem.
pub struct Problem<'a> {
    pub(super) mesh: &'a Mesh,
    pub(super) physics: Physics,
    sources: Vec<Source<'a>>,
    pub(super) conditions: Vec<(u32, Condition<'a>)>,
}

/// A component of f in all regions, or in one.
struct Source<'a> {
    region: Option<u32>,
    component: usize,
    f: Field<'a>,
}

/// Some rows, in order, and entries of each.
pub(super) type EntriesOfRows = Vec<(u32, Vec<(u32, f64)>)>;

/// A row, and what a side gives to its entries and its load.
pub(super) type OnSide = (usize, Vec<(u32, f64)>, f64);

/// A x = b for the unknowns of all nodes: unknown a of node i is number b i + a, with b unknowns a node.
///
/// Known values may be larger than the other elements of b by any factor, as 1 V is to ε₀: then a small ‖b − A x‖ / ‖b‖ says nothing of the other rows. With
/// 0 in place of the known elements of b, and the [known values](Problem::known_values) put into x after the solve, it does.
#[derive(Debug, Clone)]
pub struct System {
    /// Symmetric. Known unknowns have a 1 on the diagonal, and nothing else in row and column.
    pub matrix: Csr,
    /// The right-hand side, with known values in their places.
    pub rhs: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// A problem without sources, and closed all around.
    ///
    /// # Errors
    /// [`Error::Usage`] for a region without properties, or with bad ones.
    pub fn new(mesh: &'a Mesh, physics: Physics) -> Result<Self> {
        physics.check(mesh)?;
        Ok(Self { mesh, physics, sources: Vec::new(), conditions: Vec::new() })
    }

    /// With component `component` of f.
    ///
    /// # Errors
    /// [`Error::Usage`] for a component that the problem has not.
    pub fn with_source(mut self, component: usize, f: impl Fn([f64; 3]) -> f64 + Sync + 'a) -> Result<Self> {
        self.check_component(component)?;
        self.sources.push(Source { region: None, component, f: Box::new(f) });
        Ok(self)
    }

    /// With component `component` of f in the region of this name alone.
    ///
    /// # Errors
    /// [`Error::Usage`] for a region or a component that is not there.
    pub fn with_source_in(
        mut self,
        region: &str,
        component: usize,
        f: impl Fn([f64; 3]) -> f64 + Sync + 'a,
    ) -> Result<Self> {
        self.check_component(component)?;
        let names = self.mesh.region_names();
        let Some(place) = names.iter().position(|name| name == region) else {
            return Err(Error::Usage(format!("the mesh has no region '{region}'; it has: {}", names.join(", "))));
        };
        self.sources.push(Source { region: Some(place as u32), component, f: Box::new(f) });
        Ok(self)
    }

    /// With a condition on the side of this name. Where sides meet, the last known value holds.
    ///
    /// # Errors
    /// [`Error::Usage`] for a side or component that is not there, or a bad coefficient.
    pub fn with_condition(mut self, side: &str, condition: Condition<'a>) -> Result<Self> {
        let names = self.mesh.side_names();
        let Some(place) = names.iter().position(|name| name == side) else {
            return Err(Error::Usage(format!("the mesh has no side '{side}'; it has: {}", names.join(", "))));
        };
        match condition {
            Condition::Value { component, .. } | Condition::Flux { component, .. } => {
                self.check_component(component)?
            }
            Condition::Robin { component, coefficient, outside } => {
                self.check_component(component)?;
                if !(coefficient >= 0.0 && coefficient.is_finite() && outside.is_finite()) {
                    return Err(Error::Usage(format!(
                        "side '{side}': h = {coefficient}, v = {outside} have to be numbers, and h not negative"
                    )));
                }
            }
        }
        self.conditions.push((place as u32, condition));
        Ok(self)
    }

    fn check_component(&self, component: usize) -> Result<()> {
        let b = self.unknowns();
        if component < b {
            Ok(())
        } else {
            Err(Error::Usage(format!("component {component} is not there: nodes have {b}")))
        }
    }

    /// The mesh.
    #[must_use]
    pub fn mesh(&self) -> &'a Mesh {
        self.mesh
    }

    /// What is solved.
    #[must_use]
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    /// Unknowns of a node.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        self.physics.unknowns(self.mesh.cell())
    }

    /// The matrix and the right-hand side, on all threads. Sums are in the order of elements, so that equal meshes give equal bits. Beside the system
    /// it takes 8 (b n)² bytes for each element of n nodes while it is made, and 16 for each entry.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a function without a value; [`Error::OutOfMemory`].
    pub fn assemble(&self) -> Result<System> {
        let known = self.known_values();
        let on_sides = self.on_sides();
        let mut rhs = self.loads();
        on_sides.iter().for_each(|&(row, _, load)| rhs[row] += load);
        let mut springs = vec![Vec::new(); rhs.len()];
        on_sides.iter().for_each(|&(row, ref entries, _)| springs[row].extend_from_slice(entries));
        assembled(self.mesh, &self.physics, &known, &springs, rhs)
    }

    /// What sources and sides give to each unknown, and the entries that sides give to rows, in order.
    pub(super) fn loads_and_springs(&self) -> (Vec<f64>, EntriesOfRows) {
        let mut loads = self.loads();
        let mut springs = BTreeMap::new();
        for (row, entries, load) in self.on_sides() {
            loads[row] += load;
            let of_row: &mut BTreeMap<u32, f64> = springs.entry(row as u32).or_default();
            entries.into_iter().for_each(|(column, value)| *of_row.entry(column).or_default() += value);
        }
        let springs = springs.into_iter().filter(|(_, entries)| !entries.is_empty());
        (loads, springs.map(|(row, entries)| (row, entries.into_iter().collect())).collect())
    }

    /// The known values, by unknowns.
    #[must_use]
    pub fn known_values(&self) -> Vec<Option<f64>> {
        let b = self.unknowns();
        let mut known = vec![None; b * self.mesh.points().len()];
        for (side, condition) in &self.conditions {
            let Condition::Value { component, value } = condition else { continue };
            for &node in self.mesh.side(*side).flatten() {
                known[b * node as usize + component] = Some(value(self.mesh.points()[node as usize]));
            }
        }
        known
    }

    /// What sources give to each unknown.
    pub(super) fn loads(&self) -> Vec<f64> {
        let (mesh, b) = (self.mesh, self.unknowns());
        let points = mesh.cell().points();
        let mut loads = vec![0.0; b * mesh.points().len()];
        if self.sources.is_empty() {
            return loads;
        }
        let of_element = |element: usize| {
            let (region, nodes) = (mesh.regions()[element], mesh.element(element));
            let mut own = [0.0; 30];
            for point in &points {
                let (volume, shapes) = (local::volume(mesh, element, point), &point.shapes);
                let place = std::array::from_fn(|x| {
                    nodes.iter().zip(shapes).map(|(&node, shape)| shape * mesh.points()[node as usize][x]).sum()
                });
                for Source { component, f, .. } in
                    self.sources.iter().filter(|one| one.region.is_none_or(|of| of == region))
                {
                    let value = volume * f(place);
                    (0..nodes.len()).for_each(|i| own[b * i + component] += shapes[i] * value);
                }
            }
            own
        };
        in_order(mesh.len(), of_element, |element, own| {
            for (i, &node) in mesh.element(element).iter().enumerate() {
                (0..b).for_each(|a| loads[b * node as usize + a] += own[b * i + a]);
            }
        });
        loads
    }

    /// What sides give.
    pub(super) fn on_sides(&self) -> Vec<OnSide> {
        let (mesh, b) = (self.mesh, self.unknowns());
        let mut all = Vec::new();
        for (side, condition) in &self.conditions {
            let (component, springs) = match condition {
                Condition::Value { .. } => continue,
                Condition::Flux { component, .. } => (*component, 0.0),
                Condition::Robin { component, coefficient, .. } => (*component, *coefficient),
            };
            for nodes in mesh.side(*side) {
                let places: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points()[node as usize]).collect();
                let unknown = |k: usize| b * nodes[k] as usize + component;
                for at in side::points(mesh.cell(), &places) {
                    let load = match condition {
                        Condition::Flux { value, .. } => value(at.place),
                        Condition::Robin { outside, .. } => springs * outside,
                        Condition::Value { .. } => 0.0,
                    };
                    for i in 0..nodes.len() {
                        let own = at.measure * at.shapes[i];
                        let entries = (0..nodes.len()).filter(|_| springs > 0.0);
                        let entries = entries.map(|j| (unknown(j) as u32, own * springs * at.shapes[j])).collect();
                        all.push((unknown(i), entries, own * load));
                    }
                }
            }
        }
        all
    }
}

/// The system of the elements of a mesh, with more entries for each row, and these loads. What is known takes its part from the loads.
///
/// # Errors
/// [`Error::NotFinite`] for loads that are not; [`Error::OutOfMemory`].
pub(super) fn assembled(
    mesh: &Mesh,
    physics: &Physics,
    known: &[Option<f64>],
    more: &[Vec<(u32, f64)>],
    loads: Vec<f64>,
) -> Result<System> {
    let (cell, b) = (mesh.cell(), physics.unknowns(mesh.cell()));
    let width = b * cell.nodes();
    let points = cell.points();
    let elements = mesh.len().saturating_mul(width * width);
    let mut matrices: Vec<f64> = zeros(elements).map_err(|e| e.into_error("matrices of elements"))?;
    // rows by themselves and behind each other, of entries that are some two fifths of those of elements
    let of_rows = elements.saturating_mul(size_of::<(u32, f64)>() + size_of::<u32>() + size_of::<f64>()) / 5 * 2;
    drop(zeros::<u8>(of_rows).map_err(|e| e.into_error("the rows of the matrix"))?);
    matrices.par_chunks_mut((width * width).max(1)).enumerate().for_each(|(element, matrix)| {
        physics.matrix(mesh, element, &points, matrix);
    });
    let nodes = mesh.points().len();
    let of_nodes =
        Adjacency::new(nodes, mesh.len(), cell.nodes(), |element, place| mesh.element(element)[place] as usize);
    let rows: Vec<(Vec<(u32, f64)>, f64)> = loads
        .par_iter()
        .enumerate()
        .map(|(row, &load)| {
            if let Some(value) = known[row] {
                return (vec![(row as u32, 1.0)], value);
            }
            let (node, a) = (row / b, row % b);
            let mut entries: Vec<(u32, f64)> = more[row].clone();
            for &place in of_nodes.of(node) {
                let (element, i) = (place as usize / cell.nodes(), place as usize % cell.nodes());
                let own = &matrices[element * width * width + (b * i + a) * width..][..width];
                let columns =
                    mesh.element(element).iter().flat_map(|&other| (0..b).map(move |c| b * other as usize + c));
                entries.extend(columns.map(|column| column as u32).zip(own.iter().copied()));
            }
            entries.sort_by_key(|(column, _)| *column);
            entries.dedup_by(|later, first| {
                let is_same = later.0 == first.0;
                first.1 += if is_same { later.1 } else { 0.0 };
                is_same
            });
            let mut load = load;
            entries.retain(|&(column, value)| match known[column as usize] {
                Some(known) => {
                    load -= value * known;
                    false
                }
                None => true,
            });
            entries.shrink_to_fit();
            (entries, load)
        })
        .collect();
    let mut row_ptr = vec![0];
    row_ptr.extend(rows.iter().scan(0, |sum, (entries, _)| {
        *sum += entries.len();
        Some(*sum)
    }));
    let entries = || rows.par_iter().flat_map_iter(|(entries, _)| entries);
    let col_idx = entries().map(|(column, _)| *column).collect();
    let values = entries().map(|(_, value)| *value).collect();
    let rhs: Vec<f64> = rows.iter().map(|(_, load)| *load).collect();
    if let Some(index) = rhs.iter().position(|load| !load.is_finite()) {
        return Err(Error::NotFinite { what: "the right-hand side".into(), index: index + 1, value: rhs[index] });
    }
    Ok(System { matrix: Csr::new(rhs.len(), rhs.len(), row_ptr, col_idx, values)?, rhs })
}
