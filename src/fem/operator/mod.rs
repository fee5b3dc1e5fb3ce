//! A problem's matrix by its elements: it is never assembled.

mod blocks;
mod device;
mod element;
mod host;
mod nodes;
mod preconditioning;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rayon::prelude::*;

use self::element::Rule;
use self::nodes::RankNodes;
use super::assembly::{EntriesOfRows, Problem, in_order};
use super::cell::Cell;
use super::colour::Colouring;
use super::local::Physics;
use super::mesh::Mesh;
use crate::device::Context;
use crate::error::{Error, Result};
use crate::kernels::elements::NODE_BITS;
use crate::matrix::Csr;
use crate::named::named;
use crate::operator::device_rows::DeviceRows;
use crate::operator::distributed::{AuxiliarySpace, Distributed, HostRows, OwnRows, ProductsIn};
use crate::real::Real;
use crate::solve::Operator;

named! {
    /// How what elements give to a node is added up on devices.
    Summation, "summation":
    ByNode = "by-node", "Blocks of elements in local memory, where each node adds up what it gets; a second launch adds up nodes of several blocks.";
    Coloured = "coloured", "A launch for each colour, whose elements share no node, adds to the vector in memory.";
}

/// The matrix of a [`Problem`], which is known by its elements: q = Σ Lᵀ K L p, with L for the nodes of an element and K its matrix.
/// [`OperatorSolver`](crate::OperatorSolver) solves with it, on the host and on devices, several at once: each has runs of nodes and all
/// elements that have one of them, so that the nodes between the ranks alone travel.
///
/// Rows of known unknowns are those of the identity, as in [`System`](super::System).
///
/// ```
/// use declive::fem::{Condition, Mesh, Physics, Problem};
/// use declive::{OperatorSolver, Setup, Stop};
///
/// # fn main() -> declive::Result<()> {
/// let (mesh, _) = Mesh::unit_cube([4, 4, 4])?.second_order().ordered();
/// let problem = Problem::new(&mesh, Physics::Diffusion { conductivity: vec![1.0] })?
///     .with_condition("left", Condition::Value { component: 0, value: Box::new(|_| 0.0) })?
///     .with_condition("right", Condition::Value { component: 0, value: Box::new(|_| 1.0) })?;
/// let (operator, rhs) = problem.operator()?;
/// let mut solver = OperatorSolver::new(operator, &Setup::default())?;
/// let outcome = solver.solve(&rhs, None, &Stop::default(), Default::default())?;
/// assert!(outcome.x.iter().zip(mesh.points()).all(|(u, p)| (u - p[0]).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ElementOperator<'a> {
    mesh: &'a Mesh,
    is_elastic: bool,
    unknowns: usize,
    /// κ, or λ and μ, of each region.
    materials: Vec<[f64; 2]>,
    rule: Rule<f64>,
    /// Of each node, a bit for each of its unknowns that is known.
    known: Arc<Vec<u8>>,
    /// Entries of rows beside those of elements, in order.
    springs: Arc<EntriesOfRows>,
    summation: Summation,
    /// The physics, if matrices of elements are stored.
    stored: Option<Physics>,
    /// The diagonal, once somebody has asked for it.
    diagonal: Arc<OnceLock<Vec<f64>>>,
}

/// Calls a method that has dimensions, nodes of an element and unknowns of a node as parameters.
macro_rules! by_shape {
    ($operator:expr, $method:ident [$($type:ty,)?] ($($argument:expr),*)) => {
        match ($operator.mesh.cell(), $operator.is_elastic) {
            (Cell::Triangle3, false) => $operator.$method::<$($type,)? 2, 3, 1>($($argument),*),
            (Cell::Triangle6, false) => $operator.$method::<$($type,)? 2, 6, 1>($($argument),*),
            (Cell::Tetrahedron4, false) => $operator.$method::<$($type,)? 3, 4, 1>($($argument),*),
            (Cell::Tetrahedron10, false) => $operator.$method::<$($type,)? 3, 10, 1>($($argument),*),
            (Cell::Triangle3, true) => $operator.$method::<$($type,)? 2, 3, 2>($($argument),*),
            (Cell::Triangle6, true) => $operator.$method::<$($type,)? 2, 6, 2>($($argument),*),
            (Cell::Tetrahedron4, true) => $operator.$method::<$($type,)? 3, 4, 3>($($argument),*),
            (Cell::Tetrahedron10, true) => $operator.$method::<$($type,)? 3, 10, 3>($($argument),*),
        }
    };
}

impl<'a> Problem<'a> {
    /// The matrix by its elements, and the right-hand side, with known values in their places. A byte a node, beside what ranks take.
    ///
    /// # Errors
    /// [`Error::Usage`] for more nodes than 2²⁹, nodes of all elements than 2³², or regions than 2¹⁶; [`Error::NotFinite`] for a function without a value.
    pub fn operator(&self) -> Result<(ElementOperator<'a>, Vec<f64>)> {
        let (mesh, b) = (self.mesh, self.unknowns());
        if mesh.points().len() >= 1 << NODE_BITS {
            return Err(Error::Usage(format!("{} nodes are more than products by elements take", mesh.points().len())));
        }
        let [regions, places] = [mesh.region_names().len(), mesh.len().saturating_mul(mesh.cell().nodes())];
        if regions > 1 << 16 || places > u32::MAX as usize {
            let elements = mesh.len();
            let message = format!("{elements} elements in {regions} regions are more than products by elements take");
            return Err(Error::Usage(message));
        }
        let values = self.known_values();
        let is_known = |node: usize| (0..b).map(|a| u8::from(values[b * node + a].is_some()) << a).sum();
        let mut operator = self.elements();
        let (mut rhs, springs) = self.loads_and_springs();
        // what known values take from the other rows
        let given: Vec<f64> = values.iter().map(|value| value.unwrap_or(0.0)).collect();
        if given.iter().any(|&value| value != 0.0) {
            let mut taken = operator.product(&given);
            for (row, entries) in &springs {
                taken[*row as usize] += entries.iter().map(|&(column, v)| v * given[column as usize]).sum::<f64>();
            }
            rhs.iter_mut().zip(taken).for_each(|(rhs, taken)| *rhs -= taken);
        }
        rhs.iter_mut().zip(&values).for_each(|(rhs, value)| *rhs = value.unwrap_or(*rhs));
        if let Some(index) = rhs.iter().position(|load| !load.is_finite()) {
            return Err(Error::NotFinite { what: "the right-hand side".into(), index: index + 1, value: rhs[index] });
        }
        operator.known = Arc::new((0..mesh.points().len()).map(is_known).collect());
        let is_free = |unknown: u32| values[unknown as usize].is_none();
        let springs = springs.into_iter().filter(|(row, _)| is_free(*row));
        let of_free = |(row, entries): (u32, Vec<(u32, f64)>)| {
            (row, entries.into_iter().filter(|&(column, _)| is_free(column)).collect())
        };
        operator.springs = Arc::new(springs.map(of_free).collect());
        Ok((operator, rhs))
    }

    /// The matrix of the elements alone, as if nothing was known, and without what sides give.
    pub(super) fn elements(&self) -> ElementOperator<'a> {
        let mesh = self.mesh;
        let materials = match &self.physics {
            Physics::Diffusion { conductivity } => conductivity.iter().map(|&of| [of, 0.0]).collect(),
            Physics::Elasticity { young, poisson } => {
                young.iter().zip(poisson).map(|(&young, &poisson)| super::local::lame(young, poisson)).collect()
            }
        };
        ElementOperator {
            mesh,
            is_elastic: matches!(self.physics, Physics::Elasticity { .. }),
            unknowns: self.unknowns(),
            materials,
            rule: Rule::of(mesh.cell(), is_curved(mesh)),
            known: Arc::new(vec![0; mesh.points().len()]),
            springs: Arc::default(),
            summation: Summation::ByNode,
            stored: None,
            diagonal: Arc::default(),
        }
    }
}

impl ElementOperator<'_> {
    /// The same, which adds up nodes on devices in another way.
    #[must_use]
    pub fn with_summation(mut self, summation: Summation) -> Self {
        self.summation = summation;
        self
    }

    /// The same, whose matrices of elements are made once and stored on devices, by their lower triangles: (b n)² / 2 numbers an element of
    /// n nodes.
    #[must_use]
    pub fn with_stored_matrices(mut self) -> Self {
        self.stored = Some(self.physics());
        self
    }

    /// A x on the host.
    pub(crate) fn product(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        let all = OwnRows { rows: 0..x.len(), halo: Vec::new() };
        ProductsIn::<'_, f64>::on_host(self, &all).multiply(x, &mut y);
        y
    }

    /// Seconds to find which elements have which nodes, as a rank with all of them does it.
    pub(crate) fn lists_seconds(&self) -> f64 {
        let start = Instant::now();
        match self.summation {
            Summation::ByNode => {
                let rank = self.rank(&(0..self.order()));
                std::hint::black_box(self.block_lists(&rank, device::BLOCK_SIZES[0]));
            }
            Summation::Coloured => {
                std::hint::black_box(Colouring::of(self.mesh));
            }
        }
        start.elapsed().as_secs_f64()
    }

    /// Rows, and columns: unknowns of all nodes.
    #[must_use]
    pub fn order(&self) -> usize {
        self.unknowns * self.mesh.points().len()
    }

    fn physics(&self) -> Physics {
        if !self.is_elastic {
            return Physics::Diffusion { conductivity: self.materials.iter().map(|of| of[0]).collect() };
        }
        let poisson = |&[lambda, mu]: &[f64; 2]| 0.5 * lambda / (lambda + mu);
        let young = |of: &[f64; 2]| 2.0 * of[1] * (1.0 + poisson(of));
        Physics::Elasticity {
            young: self.materials.iter().map(young).collect(),
            poisson: self.materials.iter().map(poisson).collect(),
        }
    }

    /// The nodes and elements of a rank with these rows.
    fn rank(&self, rows: &Range<usize>) -> RankNodes {
        let b = self.unknowns;
        RankNodes::new(self.mesh, rows.start / b..rows.end / b)
    }

    fn is_known(&self, unknown: usize) -> bool {
        self.known[unknown / self.unknowns] >> (unknown % self.unknowns) & 1 == 1
    }

    /// The nodes of an element relative to its first.
    fn shape<T: Real, const N: usize>(&self, element: usize) -> [[T; 3]; N] {
        let nodes = self.mesh.element(element);
        let points = self.mesh.points();
        let first = points[nodes[0] as usize];
        std::array::from_fn(|n| {
            let place = points[nodes[n] as usize];
            std::array::from_fn(|k| T::from_f64(place[k] - first[k]))
        })
    }

    fn material<T: Real>(&self, element: usize) -> [T; 2] {
        self.materials[self.mesh.regions()[element] as usize].map(T::from_f64)
    }

    /// Over all rows of elements, the largest sum of the absolute values of a row by its diagonal element.
    fn largest_in<const D: usize, const N: usize, const B: usize>(&self) -> f64 {
        let of_element = |element: usize| {
            let (shape, material) = (self.shape::<f64, N>(element), self.material(element));
            let (mut sums, mut diagonal, mut column) = ([[0.0; B]; N], [[0.0; B]; N], [[0.0; B]; N]);
            for (n, a) in (0..N).flat_map(|n| (0..B).map(move |a| (n, a))) {
                let mut unit = [[0.0; B]; N];
                unit[n][a] = 1.0;
                self.rule.product::<D, N, B>(&shape, material, &unit, &mut column);
                sums.as_flattened_mut().iter_mut().zip(column.as_flattened()).for_each(|(sum, v)| *sum += v.abs());
                diagonal[n][a] = column[n][a];
            }
            let all = sums.as_flattened().iter().zip(diagonal.as_flattened());
            all.map(|(sum, d)| sum / d).fold(0.0, f64::max)
        };
        (0..self.mesh.len()).into_par_iter().map(of_element).reduce(|| 0.0, f64::max)
    }

    fn diagonal_in<const D: usize, const N: usize, const B: usize>(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.order()];
        let of_element = |element: usize| {
            let mut own = [[0.0; B]; N];
            self.rule.diagonal::<D, N, B>(&self.shape(element), self.material(element), &mut own);
            own
        };
        in_order(self.mesh.len(), of_element, |element, own| {
            for (&node, of_node) in self.mesh.element(element).iter().zip(own) {
                of_node.iter().enumerate().for_each(|(a, d)| diagonal[B * node as usize + a] += d);
            }
        });
        for (row, entries) in self.springs.iter() {
            diagonal[*row as usize] += entries.iter().filter(|(column, _)| column == row).map(|(_, v)| v).sum::<f64>();
        }
        diagonal.iter_mut().enumerate().filter(|(row, _)| self.is_known(*row)).for_each(|(_, d)| *d = 1.0);
        diagonal
    }
}

/// Whether nodes of edges are elsewhere than in their middles.
fn is_curved(mesh: &Mesh) -> bool {
    let (cell, points) = (mesh.cell(), mesh.points());
    if cell.order() == 1 {
        return false;
    }
    let is_out = |element: usize| {
        let nodes = mesh.element(element);
        let middles = cell.edges().iter().zip(&nodes[cell.corners()..]);
        middles.into_iter().any(|(&[a, b], &middle)| {
            let [a, b, middle] = [nodes[a], nodes[b], middle].map(|node| points[node as usize]);
            let size = (0..3).map(|k| (a[k] - b[k]).abs()).fold(0.0, f64::max);
            (0..3).any(|k| (middle[k] - 0.5 * (a[k] + b[k])).abs() > STRAIGHT * size)
        })
    };
    (0..mesh.len()).into_par_iter().any(is_out)
}

/// What a middle may be beside its place, by the length of the edge.
const STRAIGHT: f64 = 1e-12;

impl<'a> From<ElementOperator<'a>> for Operator<'a> {
    fn from(a: ElementOperator<'a>) -> Self {
        Self::of_ranks(a)
    }
}

impl<'a, T: Real> ProductsIn<'a, T> for ElementOperator<'a> {
    fn on_host(&self, own: &OwnRows) -> Box<dyn HostRows<T> + 'a> {
        by_shape!(self, host_rows[T,](own))
    }

    fn on_device(&self, ctx: &Context, own: &OwnRows, scale: Option<&[T]>) -> Result<(DeviceRows<T>, u64)> {
        device::rows(self, ctx, own, scale)
    }
}

impl<'a> Distributed<'a> for ElementOperator<'a> {
    fn order(&self) -> usize {
        self.order()
    }

    fn unit(&self) -> usize {
        self.unknowns
    }

    fn halo(&self, rows: &Range<usize>) -> Vec<u32> {
        let (b, halo) = (self.unknowns as u32, self.rank(rows).halo);
        halo.into_iter().flat_map(|node| (0..b).map(move |a| b * node + a)).collect()
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.diagonal.get_or_init(|| by_shape!(self, diagonal_in[]())).clone())
    }

    /// The largest Σ |k_ij| / k_ii of all rows of elements: xᵀ A x is a sum over elements, each of which is at most so many times its
    /// xᵀ D x (A. J. Wathen, IMA J. Numer. Anal. 7 (1987), doi 10.1093/imanum/7.4.449).
    fn largest_of_scaled(&self) -> Option<f64> {
        Some(by_shape!(self, largest_in[]()).max(2.0)) // of parts of sides, at most
    }

    fn block_diagonal(&self) -> Result<Option<Csr>> {
        self.block_diagonal().map(Some)
    }

    fn auxiliary_space(&self) -> Result<Option<AuxiliarySpace>> {
        self.first_order().map(Some)
    }
}
