//! `declive bench precond`: what each preconditioner takes and saves, for one matrix.

use std::sync::Arc;
use std::time::Duration;

use declive::device::select;
use declive::matrix::gallery::random_vector;
use declive::solve::{Method, Precond, Setup, Solver, Stop, Tune};
use declive::{Control, Csr, Error, ErrorKind, Outcome};

use crate::cli::exit::Exit;
use crate::cli::experiments::{Team, kinds};
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::measured::{Measured, grid, load};
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::bench::Matrix;
use crate::report::precond::{Entry, Report};
use crate::report::{distinct, in_flags};

/// Time preconditioners: their set-up, an application, and a solve with each
///
/// A system with a random right-hand side is solved by each preconditioner that the matrix can have, on each device alone and on all
/// together. The report has the time to set it up, of multigrid level by level; what an application adds to an iteration; iterations and
/// time to the tolerance; and the residual, recomputed. Devices that are alike are measured once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    measured: Measured,

    /// Preconditioners: a list of those that a solve has [default: all that the method and the matrix can have]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    preconds: Vec<Precond>,

    /// Krylov method: one that a solve has, or auto, the first that suits the matrix
    #[arg(long, default_value = Method::Auto.name())]
    method: Method,

    /// Tolerance of ‖b − A x‖ / ‖b‖
    #[arg(long, value_name = "TOL", default_value_t = Stop::default().rtol)]
    rtol: f64,

    /// The most iterations of a solve
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    max_iters: u64,

    /// Set-ups and solves whose medians are printed
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

const EXAMPLES: &str = "\
Examples:
  declive bench precond A.mtx
  declive bench precond --generate reservoir:60 --devices gpu --json
  declive bench precond A.mtx --preconds jacobi,amg --rtol 1e-6";

/// The order of the system, if nothing is said of it.
const ORDER: u64 = 1_000_000;

/// Iterations without a preconditioner that one is compared with.
const BARE: u64 = 100;

/// The seed of the right-hand side.
const SEED: u64 = 1;

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let Args { measured, .. } = &args;
    if args.method.factorises() || args.method == Method::Lsmr {
        return Err(Failure::usage("--method direct, tridiagonal, dense and lsmr have no preconditioners to compare"));
    }
    let source = measured.source().map_or_else(|| grid(measured.order.unwrap_or(ORDER)), Ok)?;
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&measured.devices, measured.precision.needs_f64())?;
    let (a, name) = load(&source, screen)?;
    let matrix = Matrix { source: name, rows: a.n_rows(), nnz: a.nnz() };
    let kinds = kinds(&selection.ranks);
    let teams: Vec<Team> = kinds.iter().map(Team::alone).chain(Team::all(&selection.ranks, &kinds)).collect();
    let mut notes: Vec<String> = selection.note.into_iter().map(in_flags).collect();
    let setup = Setup::default().with_precision(measured.precision).with_tune(Tune::Stored);
    let stop = Stop::default().with_rtol(args.rtol).with_max_iters(args.max_iters);
    let series = Series { b: random_vector(a.n_rows(), SEED), a: Arc::new(a), stop, repeat: args.repeat.into() };

    let mut entries = Vec::new();
    let mut first_error = None;
    for team in &teams {
        let setup = setup.clone().with_devices(team.choice.clone());
        let bare = series.bare(&setup.clone().with_method(args.method));
        let (method, bare) = bare.map_err(|error| Failure::about(&source, error))?;
        for precond in preconds(&args.preconds, method) {
            let what = format!("{method} by {precond} on {}", team.label);
            log::info!("{what}");
            let shown = screen.working(&what);
            let measured = series.run(&setup.clone().with_method(method).with_precond(precond));
            drop(shown);
            match measured {
                Ok((solver, runs)) => entries.push(Entry::new(&team.label, &solver, &runs, bare)),
                Err(error) => {
                    notes.push(in_flags(format!("{what} is left out: {error}")));
                    first_error.get_or_insert(error);
                }
            }
        }
    }
    let exit = match first_error {
        Some(error) if entries.is_empty() => return Err(error.into()),
        Some(error) if error.kind() == ErrorKind::Runtime => error.kind().into(),
        _ => Exit::Success,
    };
    let Series { stop, repeat, .. } = series;
    let report = Report {
        matrix,
        precision: measured.precision,
        devices: measured.devices.to_string(),
        rtol: stop.rtol,
        max_iters: args.max_iters,
        repeat,
        entries,
        notes,
    };
    print(&report, measured.json)?;
    Ok(exit)
}

/// Those that were asked for, or that a method takes.
fn preconds(asked: &[Precond], method: Method) -> Vec<Precond> {
    match asked {
        [] => Precond::ALL.iter().copied().filter(|precond| method.takes(*precond)).collect(),
        asked => distinct(asked.iter().copied()),
    }
}

/// What solves have in common.
struct Series {
    a: Arc<Csr>,
    b: Vec<f64>,
    stop: Stop,
    repeat: usize,
}

impl Series {
    /// The method, and what an iteration takes without a preconditioner.
    fn bare(&self, setup: &Setup) -> Result<(Method, Option<Duration>), Error> {
        let mut solver = Solver::new(Arc::clone(&self.a), &setup.clone().with_precond(Precond::None))?;
        let method = solver.method();
        let stop = self.stop.clone().with_max_iters(BARE.min(self.stop.max_iters.unwrap_or(BARE)));
        // kernels are compiled in the first run
        let mut run = || solver.solve(&self.b, None, &stop, Control::default());
        run()?;
        Ok((method, an_iteration(&run()?)))
    }

    /// A solver that has set a preconditioner up, and how long that and solves took, each time anew.
    fn run(&self, setup: &Setup) -> Result<(Solver, Vec<(Duration, Outcome)>), Error> {
        let once = || -> Result<(Solver, Outcome), Error> {
            let mut solver = Solver::new(Arc::clone(&self.a), setup)?;
            let outcome = solver.solve(&self.b, None, &self.stop, Control::default())?;
            Ok((solver, outcome))
        };
        let (mut solver, outcome) = once()?;
        let mut runs = vec![(solver.times().precond, outcome)];
        while runs.len() < self.repeat {
            drop(solver);
            let (next, outcome) = once()?;
            runs.push((next.times().precond, outcome));
            solver = next;
        }
        Ok((solver, runs))
    }
}

/// The time of an iteration, if there was one.
pub(crate) fn an_iteration(outcome: &Outcome) -> Option<Duration> {
    u32::try_from(outcome.iterations).ok().filter(|count| *count > 0).map(|count| outcome.solve / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_compared() {
        use Precond::{Amg, BlockJacobi, Chebyshev, Fsai, Ilu0, Jacobi, None, Transversal};
        assert_eq!(preconds(&[], Method::Cg), [None, Jacobi, Amg, BlockJacobi, Fsai, Chebyshev]);
        assert_eq!(preconds(&[], Method::Idr), [None, Jacobi, BlockJacobi, Ilu0, Transversal]);
        assert_eq!(preconds(&[Amg, Jacobi, Amg], Method::Idr), [Amg, Jacobi]);
    }
}
