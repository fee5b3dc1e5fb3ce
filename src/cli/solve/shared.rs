//! `declive solve` as one of several processes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use declive::distributed::{self, Processes, Rows, agreed, gathered_in_first, scattered};
use declive::matrix_market::Zeros;
use declive::solve::{Control, OnFailure, Progress, SharedSolver};
use declive::timeline::stages::stage;
use declive::{Error, Outcome};

use super::plan::{Plan, Rhs};
use super::results;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::input::{Input, Source};
use crate::cli::interrupt;
use crate::cli::output::Target;
use crate::cli::progress::Screen;
use crate::cli::rhs::Recipe;
use crate::report::solve::Rhs as RhsFacts;
use crate::report::solve::{Facts, Files, Report};

/// Runs the command together with the other processes. Only the first one writes anything.
pub(super) fn run(
    plan: Result<Plan, Failure>,
    processes: &Arc<dyn Processes>,
    start: Instant,
) -> Result<Exit, Failure> {
    // a place may be writable on one host alone
    let plan = plan.and_then(|plan| check(&plan).map(|()| plan));
    let told = plan.as_ref().map(|_| ()).map_err(|failure| Error::Usage(failure.to_string()));
    let of_all = agreed(&**processes, told);
    let plan = plan?;
    of_all?;
    let ended = solve(&plan, processes, start);
    // whoever waits for this process learns why it comes no more; what is wrong with the request or the input is found together
    if let Err(failure) = &ended
        && failure.exit() != Exit::Input
        && !failure.is_of_other_process()
    {
        processes.fail(&failure.to_string());
    }
    ended
}

fn solve(plan: &Plan, processes: &Arc<dyn Processes>, start: Instant) -> Result<Exit, Failure> {
    let is_first = processes.process() == 0;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(plan.quiet || !is_first);
    let (rows, duplicates) = {
        let _reading = stage("read");
        let _shown = screen.working(&format!("reading {}", plan.source));
        read(plan, &**processes)?
    };
    let vectors = Vectors::new(plan, &**processes, &rows, screen)?;
    let read = start.elapsed();
    let mut solver = {
        let _shown = screen.working("preparing the devices");
        SharedSolver::new(Arc::clone(processes), rows, &plan.setup).map_err(|error| about(plan, error))?
    };
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (k, b) in vectors.b.iter().enumerate() {
        let count = vectors.b.len();
        let bar = screen.solve(&if count == 1 { "solving".into() } else { format!("solving {} of {count}", k + 1) });
        let progress = |progress: &Progress| bar.update(progress);
        let mut control = Control::default().with_cancel(cancel);
        if is_first {
            control = control.with_progress(&progress);
        }
        outcomes.push(solver.solve(b, vectors.x0(k), &plan.stop, control)?);
    }
    let writing = Instant::now();
    if plan.output.is_some() {
        for outcome in &mut outcomes {
            outcome.x = gathered_in_first(&**processes, std::mem::take(&mut outcome.x))?;
        }
    }
    let all = solver.processes()?;
    if !is_first {
        return Ok(Exit::Success);
    }
    let written = plan
        .output
        .as_ref()
        .map_or(Ok(()), |target| target.write(|out| results::solution(out, plan, (&vectors.source, false), &outcomes)));
    let history = plan.history.as_ref().map_or(Ok(()), |target| target.write(|out| results::history(out, &outcomes)));
    let name = |target: &Option<Target>, written: &Result<(), Failure>| {
        target.as_ref().filter(|_| written.is_ok()).map(Target::name)
    };
    let report = Report::new(Facts {
        source: plan.source.to_string(),
        duplicates,
        rhs: RhsFacts { source: vectors.source.clone(), default: vectors.is_default, columns: outcomes.len() },
        x0: plan.x0.as_ref().map(ToString::to_string),
        complex: None,
        solver: solver.solver(),
        method_reason: solver.solver().method_reason(),
        setup: &plan.setup,
        stop: &plan.stop,
        checkpoint_every: None,
        files: Files {
            resumed: None,
            checkpoint: None,
            output: name(&plan.output, &written),
            history: name(&plan.history, &history),
            report: None,
            trace: None,
        },
        outcomes: &outcomes,
        processes: all,
        read,
        write: writing.elapsed(),
        began: start,
        total: start.elapsed(),
    });
    plan.report.publish(&report)?;
    written.and(history)?;
    Ok(if report.converged() { Exit::Success } else { Exit::NotConverged })
}

/// What only one process can do.
fn check(plan: &Plan) -> Result<(), Failure> {
    let options = [
        ("--checkpoint", plan.checkpoint.is_some()),
        ("--resume", plan.resume.is_some()),
        ("--report", plan.page.is_some()),
        ("--trace", plan.trace.is_some()),
        ("--condition", plan.condition),
        ("--on-failure continue", plan.setup.on_failure == OnFailure::Continue),
        (
            "--coordinates, --near-null and --block-size",
            plan.near.inputs().next().is_some() || plan.near.unknowns.is_some(),
        ),
        ("a system from standard input", matches!(plan.source, Source::Input(Input::Stdin))),
    ];
    match options.iter().find(|(_, is)| *is) {
        Some((what, _)) => Err(Failure::usage(format!("{what}: not possible with several processes; run one"))),
        None => Ok(()),
    }
}

/// This process's rows, and how many entries of the file were added to others.
fn read(plan: &Plan, processes: &dyn Processes) -> Result<(Rows, u64), Failure> {
    match &plan.source {
        Source::Generated(spec) => Ok((distributed::generated(processes, spec)?, 0)),
        Source::Input(Input::File(path)) => Ok(distributed::read(processes, path, Zeros::Keep)?),
        Source::Input(Input::Stdin) => Err(Failure::no_matrix()),
    }
}

fn about(plan: &Plan, error: Error) -> Failure {
    match error {
        Error::NotSquare { .. } | Error::NotSymmetric { .. } | Error::NotFinite { .. } | Error::BeyondSingle { .. } => {
            Failure::about(&plan.source, error)
        }
        other => other.into(),
    }
}

/// This process's parts of vectors.
struct Vectors {
    b: Vec<Vec<f64>>,
    /// None, one for all columns, or one for each.
    x0: Vec<Vec<f64>>,
    /// Where b comes from, and whether that was nobody's choice.
    source: String,
    is_default: bool,
}

impl Vectors {
    fn new(plan: &Plan, processes: &dyn Processes, rows: &Rows, screen: Screen) -> Result<Self, Failure> {
        let own = rows.own(processes);
        let (b, is_default) = match &plan.rhs {
            Rhs::Input(input) => (from_first(input, processes, rows, screen)?, false),
            Rhs::Made(recipe) => (made(*recipe, rows, own), false),
            Rhs::Default => (made(Recipe::default(), rows, own), true),
        };
        let x0 = plan.x0.as_ref().map_or(Ok(Vec::new()), |input| from_first(input, processes, rows, screen))?;
        if x0.len() > 1 && x0.len() != b.len() {
            return Err(Failure::usage(format!(
                "the initial guess has {} columns, but the right-hand side {}; give one, or one for each",
                x0.len(),
                b.len()
            )));
        }
        Ok(Self { b, x0, source: plan.rhs.to_string(), is_default })
    }

    fn x0(&self, k: usize) -> Option<&[f64]> {
        self.x0.get(k).or(self.x0.first()).map(Vec::as_slice)
    }
}

/// The right-hand sides of a recipe.
fn made(recipe: Recipe, rows: &Rows, own: Range<u64>) -> Vec<Vec<f64>> {
    recipe.make_part(own, |x| rows.product(x))
}

/// Vectors that the first process reads, and of which it gives the others their parts.
fn from_first(input: &Input, processes: &dyn Processes, rows: &Rows, screen: Screen) -> Result<Vec<Vec<f64>>, Failure> {
    let read = || {
        let vectors = input.columns(screen)?.into_real();
        let complex = || Failure::usage(format!("{input} is complex, but the matrix is real"));
        let (vectors, n) = (vectors.ok_or_else(complex)?, rows.n_rows());
        match vectors.iter().find(|v| v.len() as u64 != n) {
            Some(wrong) => Err(Failure::usage(format!("{input} has {} rows, but the matrix has {n}", wrong.len()))),
            None => Ok(vectors),
        }
    };
    let whole = if processes.process() == 0 { read() } else { Ok(Vec::new()) };
    let told = whole.as_ref().map(Vec::len).map_err(|failure| Error::Usage(failure.to_string()));
    let told = agreed(processes, told);
    let whole = whole?;
    let mut counts = vec![0; processes.count()];
    processes.gather(&[told? as u64], &mut counts)?;
    let count = counts[0] as usize;
    let part = |k: usize| scattered(processes, rows.starts(), whole.get(k).map_or(&[], Vec::as_slice));
    Ok((0..count).map(part).collect::<Result<_, _>>()?)
}
