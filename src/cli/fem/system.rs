//! Solving the system of a problem.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use declive::fem::{Colouring, ColouringFacts, Mesh, Plan, Problem, Summation, System};
use declive::solve::{Control, Method, NearNull, Precond, Progress, Setup, Stop};
use declive::{OperatorSolver, Outcome, Solver};

use super::args::Args;
use crate::cli::failure::Failure;
use crate::cli::progress::Screen;

/// What a solve gave, and how.
pub(super) struct Solved {
    pub(super) outcome: Outcome,
    pub(super) method: Method,
    pub(super) precond: Precond,
    /// Unknowns that are known.
    pub(super) known: usize,
    /// The device of each rank.
    pub(super) devices: Vec<String>,
    pub(super) note: Option<String>,
    pub(super) prepare: Duration,
    /// Of elements, if products go by them.
    pub(super) colours: Option<ColouringFacts>,
}

/// Solves by an assembled matrix.
///
/// What is solved for is 0 where a value is known, so that the norm of b is that of loads, and of what known values
/// do to their neighbours. Known values themselves may be larger than these by any factor, as 1 V is to ε₀, and the test on the residual would say nothing.
pub(super) fn solve(
    args: &Args,
    mesh: &Mesh,
    problem: &Problem<'_>,
    system: &System,
    cancel: &AtomicBool,
    screen: Screen,
) -> Result<Solved, Failure> {
    let (mut setup, stop) = wanted(args);
    if problem.unknowns() > 1 {
        setup = setup.with_near_null(rigid_motions(mesh, problem.unknowns())?);
    }
    let preparing = Instant::now();
    let mut solver = {
        let _shown = screen.working("preparing the devices");
        Solver::cancellable(system.matrix.clone(), &setup, cancel)?
    };
    let prepare = preparing.elapsed();
    let known = problem.known_values();
    let rhs: Vec<f64> =
        system.rhs.iter().zip(&known).map(|(b, known)| if known.is_some() { 0.0 } else { *b }).collect();
    let bar = screen.solve("solving");
    let progress = |progress: &Progress| bar.update(progress);
    let control = Control::default().with_cancel(cancel).with_progress(&progress);
    let mut outcome = solver.solve(&rhs, None, &stop, control)?;
    let given = outcome.x.iter_mut().zip(&known).filter_map(|(x, known)| Some((x, (*known)?)));
    given.for_each(|(x, known)| *x = known);
    log::info!("{} after {} iterations", outcome.reason, outcome.iterations);
    Ok(Solved {
        method: solver.method(),
        precond: solver.precond(),
        devices: solver.ranks().iter().map(|rank| rank.device.clone()).collect(),
        note: solver.note().map(String::from),
        known: known.iter().flatten().count(),
        prepare,
        colours: None,
        outcome,
    })
}

/// Solves without a matrix, by elements in an order of their own, for unknowns in the order of the mesh.
pub(super) fn solve_by_elements(
    args: &Args,
    plan: &Plan,
    mesh: &Mesh,
    summation: Summation,
    cancel: &AtomicBool,
    screen: Screen,
) -> Result<Solved, Failure> {
    let (mut setup, stop) = wanted(args);
    // of first order, the matrix that levels need is the one that is not assembled
    if args.precond.is_none() && args.method == Method::Auto && mesh.cell().order() == 2 {
        setup = setup.with_precond(Precond::Amg);
    }
    let preparing = Instant::now();
    let (ordered, former) = mesh.ordered();
    let problem = plan.problem(&ordered)?;
    if problem.unknowns() > 1 {
        setup = setup.with_near_null(rigid_motions(&ordered, problem.unknowns())?);
    }
    let (operator, mut rhs) = problem.operator()?;
    let mut solver = {
        let _shown = screen.working("preparing the devices");
        OperatorSolver::new(operator.with_summation(summation), &setup)?
    };
    let prepare = preparing.elapsed();
    let known = problem.known_values();
    rhs.iter_mut().zip(&known).filter(|(_, known)| known.is_some()).for_each(|(b, _)| *b = 0.0);
    let bar = screen.solve("solving");
    let progress = |progress: &Progress| bar.update(progress);
    let control = Control::default().with_cancel(cancel).with_progress(&progress);
    let outcome = solver.solve(&rhs, None, &stop, control)?;
    log::info!("{} after {} iterations", outcome.reason, outcome.iterations);
    let b = problem.unknowns();
    let as_given = |x: Vec<f64>| {
        let mut given = vec![0.0; x.len()];
        for (node, &former) in former.iter().enumerate() {
            for a in 0..b {
                given[b * former as usize + a] = known[b * node + a].unwrap_or(x[b * node + a]);
            }
        }
        given
    };
    Ok(Solved {
        method: solver.method(),
        precond: solver.precond(),
        devices: solver.ranks().iter().map(|rank| rank.device.clone()).collect(),
        note: solver.note().map(String::from),
        known: known.iter().flatten().count(),
        prepare,
        colours: (summation == Summation::Coloured).then(|| Colouring::of(&ordered).facts(&ordered)),
        outcome: outcome.map_x(as_given),
    })
}

/// What is asked for.
fn wanted(args: &Args) -> (Setup, Stop) {
    let mut setup =
        Setup::default().with_method(args.method).with_precision(args.precision).with_devices(args.devices.clone());
    if let Some(precond) = args.precond {
        setup = setup.with_precond(precond);
    }
    let mut stop = Stop::default().with_rtol(args.rtol).with_atol(args.atol);
    (stop.max_iters, stop.time_limit) = (args.max_iters, args.time_limit);
    (setup, stop)
}

/// What costs a body no energy, which multigrid has to interpolate exactly.
fn rigid_motions(mesh: &Mesh, axes: usize) -> Result<NearNull, Failure> {
    let coordinate = |axis: usize| mesh.points().iter().map(|point| point[axis]).collect::<Vec<f64>>();
    Ok(NearNull::of_coordinates(axes, &(0..axes).map(coordinate).collect::<Vec<_>>())?)
}
