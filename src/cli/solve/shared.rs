//! `declive solve` as one of several processes.

mod checkpoint;
mod vectors;

use std::sync::Arc;
use std::time::Instant;

use declive::distributed::{self, Columns, Processes, Rows, agreed};
use declive::matrix_market::Zeros;
use declive::solve::{Checkpoint, Checkpoints, Control, Cut, Progress, SharedSolver};
use declive::timeline::stages::stage;
use declive::{Error, Outcome};

use self::checkpoint::Saver;
use self::vectors::Vectors;
use super::plan::Plan;
use super::recorder::Recorder;
use super::{results, write_pages};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::input::{Input, Source};
use crate::cli::interrupt;
use crate::cli::output::Target;
use crate::cli::progress::Screen;
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
    let mut recorder = Recorder::new(start);
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(plan.quiet || !is_first);
    let (rows, duplicates) = {
        let _reading = stage("read");
        let _shown = screen.working(&format!("reading {}", plan.source));
        read(plan, &**processes)?
    };
    // where rows are decides which parts of vectors are read
    let cut = Cut::by_speed(&**processes, rows, &plan.setup).map_err(|error| about(plan, error))?;
    let vectors = Vectors::new(plan, &**processes, cut.rows(), screen)?;
    let starts = cut.rows().starts().to_vec();
    let identity = checkpoint::identity(plan, &**processes, cut.rows(), &vectors.b)?;
    let from = checkpoint::columns(plan, &**processes, &starts, identity.as_ref())?;
    let read = start.elapsed();
    let mut solver = {
        let _shown = screen.working("preparing the devices");
        SharedSolver::of_cut(Arc::clone(processes), cut, &plan.setup).map_err(|error| about(plan, error))?
    };
    recorder.set_up(read, solver.solver());
    let saver = Saver::new(plan, (&**processes, &starts), identity, solver.solver().method());
    let every = saver.as_ref().map(Saver::every).or(plan.checkpoint_every);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (k, b) in vectors.b.iter().enumerate() {
        let count = vectors.b.len();
        let bar = screen.solve(&if count == 1 { "solving".into() } else { format!("solving {} of {count}", k + 1) });
        let progress = |progress: &Progress| bar.update(progress);
        let take = |at: &Checkpoint<'_>| saver.iter().for_each(|saver| saver.try_to_save(&outcomes, Some(at)));
        let from = from.get(k);
        let done = from.map_or(0, |from| from.iterations);
        let mut control = Control::default().with_cancel(cancel).with_timeline(plan.records()).with_done(done);
        if is_first {
            control = control.with_progress(&progress);
        }
        control.checkpoint = every.map(|every| Checkpoints::new(every, &take));
        let x0 = from.map(|from| &*from.x).or_else(|| vectors.x0(k));
        let outcome = recorder.solve(k, || solver.solve(b, x0, &plan.stop, control))?;
        outcomes.push(outcome);
        saver.as_ref().map_or(Ok(()), |saver| saver.save_if_due(&outcomes))?;
    }
    let writing = Instant::now();
    let saved = saver.as_ref().map_or(Ok(()), |saver| saver.save(&outcomes, None));
    let written = write_solution(plan, (&**processes, &starts), &vectors.source, &outcomes)?;
    let all = solver.processes()?;
    if !is_first {
        return saved.map(|()| Exit::Success);
    }
    let history = plan.history.as_ref().map_or(Ok(()), |target| target.write(|out| results::history(out, &outcomes)));
    let name = |target: &Option<Target>, written: &Result<(), Failure>| {
        target.as_ref().filter(|_| written.is_ok()).map(Target::name)
    };
    let mut report = Report::new(Facts {
        source: plan.source.to_string(),
        duplicates,
        rhs: RhsFacts { source: vectors.source.clone(), default: vectors.is_default, columns: outcomes.len() },
        x0: plan.x0.as_ref().map(ToString::to_string),
        complex: None,
        solver: solver.solver(),
        method_reason: solver.solver().method_reason(),
        setup: &plan.setup,
        stop: &plan.stop,
        checkpoint_every: every,
        files: Files {
            resumed: plan.resume.as_ref().map(|path| path.display().to_string()),
            checkpoint: name(&plan.checkpoint, &saved),
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
    let (page, trace) = if plan.records() {
        write_pages(plan, &report, &recorder.finish(solver.solver(), &outcomes))
    } else {
        (Ok(()), Ok(()))
    };
    (report.files.report, report.files.trace) = (name(&plan.page, &page), name(&plan.trace, &trace));
    plan.report.publish(&report)?;
    written.and(history).and(saved).and(page).and(trace)?;
    Ok(if report.converged() { Exit::Success } else { Exit::NotConverged })
}

/// Writes the solutions, in the first process; in others, lets them go.
fn write_solution(
    plan: &Plan,
    (processes, starts): (&dyn Processes, &[u64]),
    rhs: &str,
    outcomes: &[Outcome],
) -> Result<Result<(), Failure>, Error> {
    let Some(target) = &plan.output else { return Ok(Ok(())) };
    let mut columns = Columns::new(processes, starts, outcomes.iter().map(|outcome| &*outcome.x).collect());
    let written = match processes.process() {
        0 => target.write(|out| results::solution_of_several(out, plan, rhs, outcomes, &mut columns)),
        _ => Ok(()),
    };
    columns.finish()?;
    Ok(written)
}

/// What only one process can do.
fn check(plan: &Plan) -> Result<(), Failure> {
    let options = [
        ("--condition", plan.condition),
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
