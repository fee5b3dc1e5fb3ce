//! Iterations with a matrix of finite elements: assembled, and by its elements in several ways.

use std::time::Instant;

use serde::Serialize;

use crate::device::Choice;
use crate::error::{Error, Result};
use crate::fem::{Cell, Colouring, ColouringFacts, Condition, Mesh, Physics, Problem, Summation};
use crate::named::named;
use crate::solve::{Method, Outcome, Precision, Precond, RankInfo, Reorder, Tune};
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

/// Iterations in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Which.
    pub way: Way,
    /// The devices.
    pub devices: Vec<String>,
    /// Seconds for loads, known values and, if it is assembled, the matrix,
    pub system: f64,
    /// and to open the devices, with what they get.
    pub open: f64,
    /// Bytes that the matrix, or what takes its place, takes on all devices.
    pub memory_bytes: u64,
    /// Elements of vectors that ranks receive for a product.
    pub halo: usize,
    /// Iterations that were made, and seconds of one.
    pub iterations: u64,
    /// Seconds of an iteration.
    pub iteration: f64,
    /// Bytes that an iteration moves.
    pub bytes_per_iteration: u64,
    /// Seconds of an iteration in which the first rank's device worked, waited for sums and for halos.
    pub split: [f64; 3],
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
        let mesh = mesh.ordered()?.0;
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

    /// Makes so many iterations of `cg` with `jacobi`, or fewer if the residual is 0, on these devices.
    ///
    /// # Errors
    /// Not enough memory; errors of devices.
    pub fn run(&self, way: Way, devices: &Choice, iterations: u64) -> Result<Measured> {
        let setup = Setup::default()
            .with_devices(devices.clone())
            .with_precision(self.precision)
            .with_method(Method::Cg)
            .with_precond(Precond::Jacobi)
            .with_reorder(Reorder::None)
            .with_tune(Tune::Off);
        let stop = Stop { max_iters: Some(iterations), rtol: 1e-300, ..Stop::default() };
        let problem = self.problem()?;
        let start = Instant::now();
        let (summation, is_stored) = match way {
            Way::Assembled => {
                let system = problem.assemble()?;
                let assembled = start.elapsed().as_secs_f64();
                let mut solver = Solver::new(system.matrix, &setup.with_assume_symmetric(true))?;
                let open = start.elapsed().as_secs_f64() - assembled;
                let outcome = solver.solve(&system.rhs, None, &stop, Control::default())?;
                return measured(way, solver.ranks(), &outcome, [assembled, open]);
            }
            Way::ByNode => (Summation::ByNode, false),
            Way::Coloured => (Summation::Coloured, false),
            Way::ByNodeStored => (Summation::ByNode, true),
            Way::ColouredStored => (Summation::Coloured, true),
        };
        let (operator, rhs) = problem.operator()?;
        let operator = operator.with_summation(summation);
        let operator = if is_stored { operator.with_stored_matrices() } else { operator };
        let made = start.elapsed().as_secs_f64();
        let mut solver = OperatorSolver::new(operator, &setup)?;
        let open = start.elapsed().as_secs_f64() - made;
        let outcome = solver.solve(&rhs, None, &stop, Control::default())?;
        measured(way, solver.ranks(), &outcome, [made, open])
    }
}

fn measured(way: Way, ranks: &[RankInfo], outcome: &Outcome, [system, open]: [f64; 2]) -> Result<Measured> {
    let iterations = outcome.iterations;
    if iterations == 0 {
        return Err(Error::Usage(format!("{way}: no iteration was made: {}", outcome.reason)));
    }
    let each = |time: std::time::Duration| time.as_secs_f64() / iterations as f64;
    let split = outcome.split.first().map_or([0.0; 3], |split| [split.kernels, split.sums, split.halos].map(each));
    Ok(Measured {
        way,
        devices: ranks.iter().map(|rank| rank.device.clone()).collect(),
        system,
        open,
        memory_bytes: ranks.iter().map(|rank| rank.bytes).sum(),
        halo: ranks.iter().map(|rank| rank.halo).sum(),
        iterations,
        iteration: outcome.iteration_seconds.unwrap_or_else(|| each(outcome.solve)),
        bytes_per_iteration: outcome.bytes_per_iteration,
        split,
        residual: outcome.residual.relative_2,
    })
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
            let found: Vec<Measured> =
                Way::ALL.iter().map(|&way| case.run(way, &"host".parse().unwrap(), 7).unwrap()).collect();
            for of_way in &found {
                assert_eq!((of_way.iterations, of_way.devices.len()), (7, 1));
                assert!((of_way.residual / found[0].residual - 1.0).abs() < 1e-6, "{of_way:?}");
                assert!(of_way.iteration > 0.0 && of_way.bytes_per_iteration > 0);
            }
        }
    }
}
