//! Iterations with a matrix of finite elements: assembled, and by its elements in several ways.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use crate::device::{Choice, Info, Pick};
use crate::error::{Error, Result};
use crate::fem::{Cell, Colouring, ColouringFacts, Condition, Mesh, Physics, Problem, Summation, System};
use crate::matrix::gallery::random_vector;
use crate::named::named;
use crate::operator::distributed::Distributed;
use crate::solve::{Exchange, Method, Outcome, Precision, Precond, RankInfo, Reorder, Tune};
use crate::timeline::{Lane, Span, Timeline};
use crate::{Control, Csr, OperatorSolver, Setup, Solver, Stop};

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

/// A problem on the unit square or cube, or a capacitor.
#[derive(Debug)]
pub struct Case {
    mesh: Mesh,
    model: Model,
    /// Where values are known to be 0 and 1.
    sides: [&'static str; 2],
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
        Ok(Self::of_mesh(&first, cell, (model, ["left", "right"]), precision, start))
    }

    /// The potential round the plates of a [capacitor](Mesh::capacitor) with so many cells across the gap, in triangles.
    ///
    /// # Errors
    /// [`Error::Usage`] for none, or too many.
    pub fn capacitor(cell: Cell, across: usize, precision: Precision) -> Result<Self> {
        if cell.dimensions() != 2 {
            return Err(Error::Usage(format!("a capacitor is made of triangles, not {cell}")));
        }
        let (start, first) = (Instant::now(), Mesh::capacitor(across)?);
        Ok(Self::of_mesh(&first, cell, (Model::Diffusion, ["lower", "upper"]), precision, start))
    }

    fn of_mesh(
        first: &Mesh,
        cell: Cell,
        (model, sides): (Model, [&'static str; 2]),
        precision: Precision,
        start: Instant,
    ) -> Self {
        let mesh = if cell.order() == 2 { first.second_order().ordered() } else { first.ordered() }.0;
        Self { mesh, model, sides, precision, mesh_seconds: start.elapsed().as_secs_f64() }
    }

    /// The assembled matrix.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn matrix(&self) -> Result<Csr> {
        Ok(self.problem()?.assemble()?.matrix)
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
            problem = problem.with_condition(self.sides[0], value(0.0))?;
            if component == 0 {
                problem = problem.with_condition(self.sides[1], value(1.0))?;
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
        made(way, solve(&stop, Control { timeline, ..Control::default() })?)
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

/// An outcome after some iterations.
fn made(way: Way, outcome: Outcome) -> Result<Outcome> {
    match outcome.iterations {
        0 => Err(Error::Usage(format!("{way}: no iteration was made: {}", outcome.reason))),
        _ => Ok(outcome),
    }
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

/// What a problem costs by its assembled matrix and by elements, measured on pieces of its mesh.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compared {
    /// By the assembled matrix.
    pub assembled: Cost,
    /// By elements, as [`Way::ByNode`] has it.
    pub by_node: Cost,
}

/// Seconds for an element, and of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// To assemble, or to make lists, and the matrix that levels are for, on the host.
    pub element: f64,
    /// Of an iteration: what it takes for no element, and for each. A straight line through two measurements.
    pub iteration: [f64; 2],
}

impl Cost {
    fn of([few, many]: [usize; 2], host: f64, iterations: [f64; 2]) -> Self {
        let each = ((iterations[1] - iterations[0]) / (many - few).max(1) as f64).max(0.0);
        Self { element: host / many.max(1) as f64, iteration: [(iterations[0] - each * few as f64).max(0.0), each] }
    }

    /// Seconds of so many iterations for so many elements, with what comes before.
    #[must_use]
    pub fn seconds(&self, elements: usize, iterations: f64) -> f64 {
        let [fixed, each] = self.iteration;
        self.element * elements as f64 + iterations * (fixed + each * elements as f64)
    }
}

/// Iterations that are compared.
const COMPARED: u64 = 20;

/// Elements of the small piece, by the large one.
const SMALL: usize = 16;

/// Compares both on the first elements of a mesh, at most so many, on one device, or the host where there is none, in iterations of `cg` with
/// this preconditioner.
///
/// # Errors
/// Not enough memory; errors of devices.
pub fn compare(
    mesh: &Mesh,
    physics: &Physics,
    (device, precision, precond): (Option<&Info>, Precision, Precond),
    most: usize,
) -> Result<Compared> {
    let pick = device.map_or(Pick::Host, |device| Pick::Index(device.index));
    let setup = Setup::default()
        .with_devices(Choice::List(vec![pick]))
        .with_precision(precision)
        .with_method(Method::Cg)
        .with_precond(precond)
        .with_assume_symmetric(true)
        .with_reorder(Reorder::None)
        .with_tune(Tune::Off);
    let pieces = [(most / SMALL).max(1), most].map(|most| mesh.piece(most).ordered().0);
    let problem = |k: usize| Problem::new(&pieces[k], physics.clone());
    let [small, large] = [problem(0)?, problem(1)?];
    let host = by_host(&large, precond)?;
    // what is compiled for it is compiled
    measured(&large, &setup)?;
    let [of_small, of_large] = [measured(&small, &setup)?, measured(&large, &setup)?];
    let counts = [pieces[0].len(), pieces[1].len()];
    let cost = |way: usize| Cost::of(counts, host[way], [of_small[way], of_large[way]]);
    Ok(Compared { assembled: cost(0), by_node: cost(1) })
}

/// Seconds that the host takes, by the matrix and by elements.
fn by_host(problem: &Problem<'_>, precond: Precond) -> Result<[f64; 2]> {
    let start = Instant::now();
    drop(problem.assemble()?);
    let assembled = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let (operator, _) = problem.operator()?;
    if precond == Precond::Amg {
        drop(operator.auxiliary_space()?);
    }
    Ok([assembled, start.elapsed().as_secs_f64() + operator.lists_seconds()])
}

/// Seconds of an iteration, by the matrix and by elements.
fn measured(problem: &Problem<'_>, setup: &Setup) -> Result<[f64; 2]> {
    let (operator, _) = problem.operator()?;
    // nothing is known, and the matrix is singular: b is in its range
    let b = operator.product(&random_vector(operator.order(), 1));
    let each = |way: Way, solve: &mut dyn FnMut(&Stop, Control<'_>) -> Result<Outcome>| -> Result<f64> {
        let mut run = |iterations: u64| {
            let stop = Stop { max_iters: Some(iterations), rtol: 1e-300, ..Stop::default() };
            made(way, solve(&stop, Control::default())?)
        };
        run(2)?;
        let outcome = run(COMPARED)?;
        Ok(outcome.solve.as_secs_f64() / outcome.iterations as f64)
    };
    let mut solver = OperatorSolver::new(operator, setup)?;
    let by_node = each(Way::ByNode, &mut |stop, control| solver.solve(&b, None, stop, control))?;
    drop(solver);
    let mut solver = Solver::new(problem.assemble()?.matrix, setup)?;
    let assembled = each(Way::Assembled, &mut |stop, control| solver.solve(&b, None, stop, control))?;
    Ok([assembled, by_node])
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

    #[test]
    fn pieces_tell_what_both_cost() {
        let mesh = Mesh::unit_cube([3, 3, 3]).unwrap().second_order().ordered().0;
        for physics in [
            Physics::Diffusion { conductivity: vec![2.0] },
            Physics::Elasticity { young: vec![1.0], poisson: vec![0.3] },
        ] {
            for (most, precond) in [(150, Precond::Jacobi), (1000, Precond::Amg)] {
                let found = compare(&mesh, &physics, (None, Precision::F64, precond), most).unwrap();
                for cost in [found.assembled, found.by_node] {
                    assert!(cost.element > 0.0 && cost.iteration.iter().all(|part| *part >= 0.0), "{found:?}");
                    assert!(cost.seconds(162, 10.0) > cost.seconds(0, 10.0));
                }
            }
        }
        let by_hand = Cost::of([10, 30], 15.0, [1.0, 2.0]);
        assert_eq!((by_hand.element, by_hand.iteration), (0.5, [0.5, 0.05]));
        assert_eq!(by_hand.seconds(100, 4.0), 72.0);
        assert_eq!(Cost::of([10, 30], 15.0, [2.0, 1.0]).iteration, [2.0, 0.0]);
    }

    /// Plates, and the air round them.
    #[test]
    fn a_capacitor_in_both_ways() {
        let case = Case::capacitor(Cell::Triangle3, 1, Precision::F64).unwrap();
        assert_eq!((case.elements(), case.unknowns(), case.matrix().unwrap().n_rows()), (1076, 594, 594));
        let of = |way| case.run(way, &"host".parse().unwrap(), Exchange::Auto, 20).unwrap();
        let [assembled, by_node] = [of(Way::Assembled), of(Way::ByNode)];
        assert!((by_node.residual / assembled.residual - 1.0).abs() < 1e-6);
        assert!(Case::capacitor(Cell::Tetrahedron4, 1, Precision::F64).is_err());
    }
}
