//! Iterations with a matrix of finite elements: assembled, and by its elements in several ways.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use crate::device::Choice;
use crate::error::{Error, Result};
use crate::fem::{Cell, Colouring, ColouringFacts, Condition, Mesh, Physics, Problem, Summation, System};
use crate::named::named;
use crate::solve::{Exchange, Method, Outcome, Precision, Precond, RankInfo, Reorder, Tune};
use crate::timeline::{Lane, Span, Timeline};
use crate::{Control, OperatorSolver, Setup, Solver, Stop};

named! {
    /// How products are formed.
    Way, "way":
    Assembled = "assembled", "With the assembled matrix.";
    ByNode = "by-node", "By elements in blocks, where each node adds up what it gets.";
    Coloured = "coloured", "By elements of one colour after the other.";
    ByNodeStored = "by-node-stored", "As by-node, with matrices of elements that are stored.";
    ColouredStored = "coloured-stored", "As coloured, with matrices of elements that are stored.";
}

named! {
    /// What is solved.
    Model, "model":
    Diffusion = "diffusion", "One unknown a node, 0 on one side of the mesh and 1 on the other.";
    Elasticity = "elasticity", "A displacement a node: a block that is held on one side and drawn on the other.";
}

/// A problem on the unit square or cube.
#[derive(Debug)]
pub struct Case {
    mesh: Mesh,
    model: Model,
    precision: Precision,
    /// Seconds to make the mesh, and to put it in order.
    pub mesh_seconds: f64,
}

/// Iterations in one way. The five stages are those of G. F. P. Pereira's comparison of ways in which several GPUs exchange vectors (CEFET-MG
/// 2019): input, adjacency, boundary, product, solver.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Which.
    pub way: Way,
    /// How halos were exchanged.
    pub exchange: Exchange,
    /// The devices.
    pub devices: Vec<String>,
    /// Seconds to open the devices, with what they get: the lists, or the matrix in a format;
    pub input: f64,
    /// for which elements have which nodes, on one rank that has all; none if it is assembled;
    pub adjacency: Option<f64>,
    /// for loads and known values, and the matrix, if it is assembled;
    pub boundary: f64,
    /// and of an iteration the kernels of the product, if they are apart from others, on the rank where they take longest.
    pub product: Option<f64>,
    /// Bytes that the matrix, or what takes its place, takes on all devices.
    pub memory_bytes: u64,
    /// Elements of vectors that ranks receive for a product.
    pub halo: usize,
    /// Iterations that were made.
    pub iterations: u64,
    /// Seconds of an iteration, with all that is the solver's.
    pub iteration: f64,
    /// Bytes that an iteration moves.
    pub bytes_per_iteration: u64,
    /// ‖b − A x‖₂ / ‖b‖₂ behind them.
    pub residual: f64,
}

impl Case {
    /// The square of so many squares along a side, or the cube of so many cubes, in elements of a shape.
    ///
    /// # Errors
    /// [`Error::Usage`] for too many nodes.
    pub fn new(cell: Cell, side: usize, model: Model, precision: Precision) -> Result<Self> {
        let start = Instant::now();
        let first = match cell.dimensions() {
            2 => Mesh::unit_square([side; 2])?,
            _ => Mesh::unit_cube([side; 3])?,
        };
        let mesh = if cell.order() == 2 { first.second_order() } else { first };
        let mesh = mesh.ordered().0;
        Ok(Self { mesh, model, precision, mesh_seconds: start.elapsed().as_secs_f64() })
    }

    /// Elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.mesh.len()
    }

    /// Unknowns.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        let each = if self.model == Model::Elasticity { self.mesh.cell().dimensions() } else { 1 };
        self.mesh.points().len() * each
    }

    /// Its colours, and the seconds that they take.
    #[must_use]
    pub fn colours(&self) -> (ColouringFacts, f64) {
        let start = Instant::now();
        let facts = Colouring::of(&self.mesh).facts(&self.mesh);
        (facts, start.elapsed().as_secs_f64())
    }

    fn problem(&self) -> Result<Problem<'_>> {
        let physics = match self.model {
            Model::Diffusion => Physics::Diffusion { conductivity: vec![1.0] },
            Model::Elasticity => Physics::Elasticity { young: vec![1.0], poisson: vec![0.3] },
        };
        let mut problem = Problem::new(&self.mesh, physics)?;
        for component in 0..problem.unknowns() {
            let value = |value: f64| Condition::Value { component, value: Box::new(move |_| value) };
            problem = problem.with_condition("left", value(0.0))?;
            if component == 0 {
                problem = problem.with_condition("right", value(1.0))?;
            }
        }
        Ok(problem)
    }

    /// Makes so many iterations of `cg` with `jacobi`, or fewer if the residual is 0, on these devices, and some more whose kernels are timed.
    ///
    /// # Errors
    /// Not enough memory; errors of devices.
    pub fn run(&self, way: Way, devices: &Choice, exchange: Exchange, iterations: u64) -> Result<Measured> {
        let setup = Setup::default()
            .with_devices(devices.clone())
            .with_precision(self.precision)
            .with_method(Method::Cg)
            .with_precond(Precond::Jacobi)
            .with_exchange(exchange)
            .with_reorder(Reorder::None)
            .with_tune(Tune::Off);
        let problem = self.problem()?;
        let start = Instant::now();
        let (summation, is_stored) = match way {
            Way::Assembled => {
                let System { matrix, rhs } = problem.assemble()?;
                let boundary = start.elapsed().as_secs_f64();
                let mut solver = Solver::new(matrix, &setup.with_assume_symmetric(true))?;
                let input = start.elapsed().as_secs_f64() - boundary;
                let runs = runs(way, iterations, |stop, control| solver.solve(&rhs, None, stop, control))?;
                return Ok(runs.measured((way, exchange), solver.ranks(), (input, None, boundary)));
            }
            Way::ByNode => (Summation::ByNode, false),
            Way::Coloured => (Summation::Coloured, false),
            Way::ByNodeStored => (Summation::ByNode, true),
            Way::ColouredStored => (Summation::Coloured, true),
        };
        let (operator, rhs) = problem.operator()?;
        let boundary = start.elapsed().as_secs_f64();
        let operator = operator.with_summation(summation);
        let adjacency = operator.lists_seconds();
        let operator = if is_stored { operator.with_stored_matrices() } else { operator };
        let start = Instant::now();
        let mut solver = OperatorSolver::new(operator, &setup)?;
        let input = start.elapsed().as_secs_f64();
        let runs = runs(way, iterations, |stop, control| solver.solve(&rhs, None, stop, control))?;
        Ok(runs.measured((way, exchange), solver.ranks(), (input, Some(adjacency), boundary)))
    }
}

/// Iterations of a run before the one that counts, and at the most in the one whose kernels are timed.
const WARM_UP: u64 = 10;
const TIMED: u64 = 40;

/// What the names of the kernels of products begin with.
const PRODUCTS: [&str; 7] = ["spmv", "blocks", "shared", "zero", "colour", "summed", "operator"];

/// The run that counts, and the seconds of a product in another.
struct Runs {
    outcome: Outcome,
    product: Option<f64>,
}

fn runs(way: Way, iterations: u64, mut solve: impl FnMut(&Stop, Control<'_>) -> Result<Outcome>) -> Result<Runs> {
    let mut run = |iterations: u64, timeline: bool| {
        let stop = Stop { max_iters: Some(iterations), rtol: 1e-300, ..Stop::default() };
        let outcome = solve(&stop, Control { timeline, ..Control::default() })?;
        match outcome.iterations {
            0 => Err(Error::Usage(format!("{way}: no iteration was made: {}", outcome.reason))),
            _ => Ok(outcome),
        }
    };
    run(iterations.min(WARM_UP), false)?;
    let outcome = run(iterations, false)?;
    let timed = run(iterations.min(TIMED), true)?;
    let of_rank = |timeline: &Timeline| {
        let kernels = timeline.spans.iter().filter(|span| span.lane == Lane::Kernels && span.iteration.is_some());
        let is_product = |span: &&Span| PRODUCTS.iter().any(|start| span.name.starts_with(start));
        let products: f64 = kernels.clone().filter(is_product).map(|span| span.duration().as_secs_f64()).sum();
        let recorded = kernels.filter_map(|span| span.iteration).collect::<BTreeSet<u64>>().len();
        products / recorded.max(1) as f64
    };
    let product = timed.timelines.iter().map(of_rank).fold(0.0, f64::max);
    Ok(Runs { outcome, product: Some(product).filter(|seconds| *seconds > 0.0) })
}

impl Runs {
    fn measured(
        &self,
        (way, exchange): (Way, Exchange),
        ranks: &[RankInfo],
        (input, adjacency, boundary): (f64, Option<f64>, f64),
    ) -> Measured {
        let Self { outcome, product } = self;
        let each = || outcome.solve.as_secs_f64() / outcome.iterations as f64;
        Measured {
            way,
            exchange,
            devices: ranks.iter().map(|rank| rank.device.clone()).collect(),
            input,
            adjacency,
            boundary,
            product: *product,
            memory_bytes: ranks.iter().map(|rank| rank.bytes).sum(),
            halo: ranks.iter().map(|rank| rank.halo).sum(),
            iterations: outcome.iterations,
            iteration: outcome.iteration_seconds.unwrap_or_else(each),
            bytes_per_iteration: outcome.bytes_per_iteration,
            residual: outcome.residual.relative_2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_make_the_same_iterations() {
        for (cell, side, model) in
            [(Cell::Triangle3, 12, Model::Diffusion), (Cell::Tetrahedron10, 2, Model::Elasticity)]
        {
            let case = Case::new(cell, side, model, Precision::F64).unwrap();
            assert_eq!(case.elements(), if side == 12 { 288 } else { 48 });
            assert_eq!(case.unknowns(), if side == 12 { 169 } else { 375 });
            let found: Vec<Measured> = Way::ALL
                .iter()
                .map(|&way| case.run(way, &"host".parse().unwrap(), Exchange::Auto, 7).unwrap())
                .collect();
            for of_way in &found {
                assert_eq!((of_way.iterations, of_way.devices.len()), (7, 1));
                assert!((of_way.residual / found[0].residual - 1.0).abs() < 1e-6, "{of_way:?}");
                assert!(of_way.iteration > 0.0 && of_way.bytes_per_iteration > 0 && of_way.product.is_some());
            }
        }
    }
}
