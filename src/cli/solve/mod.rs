//! `declive solve`.

mod args;
mod plan;
mod results;
mod system;

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use declive::solver::{Control, Progress};
use declive::{Error, Outcome, Solver};

pub(crate) use args::Args;
use plan::{Form, Plan};
use system::System;

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::{Target, write_stdout};
use super::progress::Screen;
use crate::report::json;
use crate::report::solve::{Facts, Report};

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let start = Instant::now();
    let plan = Plan::new(args)?;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(plan.quiet);
    let system = System::read(&plan, screen)?;
    let read = start.elapsed();

    let mut solver = distribute(&plan, &system, screen)?;
    if let Some(note) = solver.note().filter(|_| !plan.quiet) {
        let _ = writeln!(stderr(), "note: {note}");
    }
    let outcomes = iterate(&plan, &system, &mut solver, cancel, screen)?;

    // a report is worth having even if the solution can't be written
    let (written, write) = timed(|| write_results(&plan, &system, &outcomes));
    let report = Report::new(&Facts {
        source: plan.source.to_string(),
        stats: solver.stats(),
        duplicates: system.duplicates,
        rhs: system.rhs.0.clone(),
        rhs_default: system.rhs.1,
        x0: plan.x0.as_ref().map(ToString::to_string),
        setup: &plan.setup,
        stop: &plan.stop,
        ranks: solver.ranks(),
        rejected: solver.rejected(),
        note: solver.note(),
        output: plan.output.as_ref().filter(|_| written.is_ok()).map(Target::name),
        history: plan.history.as_ref().filter(|_| written.is_ok()).map(Target::name),
        outcomes: &outcomes,
        read,
        times: solver.times(),
        write,
        total: start.elapsed(),
    });
    publish(&report, plan.report)?;
    written?;
    Ok(if report.converged() { Exit::Success } else { Exit::NotConverged })
}

fn distribute(plan: &Plan, system: &System, screen: Screen) -> Result<Solver, Failure> {
    let _shown = screen.working("preparing the devices");
    Solver::new(Arc::clone(&system.a), &plan.setup).map_err(|error| match error {
        Error::NotSquare { .. }
        | Error::NotSymmetric { .. }
        | Error::NotFinite { .. }
        | Error::BeyondSingle { .. }
        | Error::InvalidCsr(_) => Failure::about(&plan.source, error),
        other => other.into(),
    })
}

/// Solves for one column after the other. After an interruption the rest ends before its first iteration, so that
/// each column has an outcome.
fn iterate(
    plan: &Plan,
    system: &System,
    solver: &mut Solver,
    cancel: &AtomicBool,
    screen: Screen,
) -> Result<Vec<Outcome>, Failure> {
    let count = system.b.len();
    let column = |(k, b): (usize, &Vec<f64>)| {
        let what = if count == 1 { "solving".into() } else { format!("solving {} of {count}", k + 1) };
        log::info!("{what}");
        let bar = screen.solve(&what);
        let progress = |progress: &Progress| bar.update(progress);
        let control = Control { cancel: Some(cancel), progress: Some(&progress), ..Control::default() };
        let outcome = solver.solve(b, system.x0(k), &plan.stop, control)?;
        log::info!("{} after {} iterations", outcome.reason, outcome.iterations);
        Ok(outcome)
    };
    system.b.iter().enumerate().map(column).collect()
}

fn write_results(plan: &Plan, system: &System, outcomes: &[Outcome]) -> Result<(), Failure> {
    let solution =
        plan.output.as_ref().map_or(Ok(()), |t| t.write(|out| results::solution(out, plan, &system.rhs.0, outcomes)));
    let history = plan.history.as_ref().map_or(Ok(()), |t| t.write(|out| results::history(out, outcomes)));
    solution.and(history)
}

fn publish(report: &Report, form: Form) -> Result<(), Failure> {
    match form {
        Form::Json => write_stdout(|out| out.write_all(json(report).as_bytes())),
        Form::Text => write_stdout(|out| out.write_all(report.to_string().as_bytes())),
        Form::TextToStderr => {
            let _ = stderr().write_all(report.to_string().as_bytes());
            Ok(())
        }
        Form::Nothing => Ok(()),
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}
