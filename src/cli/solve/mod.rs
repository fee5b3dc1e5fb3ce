//! `declive solve`.

mod args;
mod plan;
mod recorder;
mod results;
mod system;

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use declive::solver::{Control, Progress, Tune};
use declive::{Error, Outcome, Solver};

pub(crate) use args::Args;
use plan::{Form, Plan};
use recorder::Recorder;
use system::System;

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::{Target, write_stdout};
use super::progress::Screen;
use crate::report::recording::Recording;
use crate::report::solve::{Facts, Report};
use crate::report::{json, solve_html, trace};

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let start = Instant::now();
    let plan = Plan::new(args)?;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(plan.quiet);
    let mut recorder = Recorder::new(start);
    let system = recorder.phase("read", || System::read(&plan, screen))?;
    let read = start.elapsed();

    let mut solver = distribute(&plan, &system, cancel, screen)?;
    recorder.set_up(read, &solver);
    if let Some(note) = solver.note().filter(|_| !plan.quiet) {
        let _ = writeln!(stderr(), "note: {note}");
    }
    let outcomes = iterate(&plan, &system, &mut solver, cancel, screen, &mut recorder)?;

    // a report is worth having even if the solution can't be written
    let (written, write) = timed(|| recorder.phase("write", || write_results(&plan, &system, &outcomes)));
    let mut report = Report::new(&Facts {
        source: plan.source.to_string(),
        stats: solver.stats(),
        duplicates: system.duplicates,
        rhs: system.rhs.0.clone(),
        rhs_default: system.rhs.1,
        x0: plan.x0.as_ref().map(ToString::to_string),
        setup: &plan.setup,
        reordering: solver.reordering(),
        stop: &plan.stop,
        ranks: solver.ranks(),
        rejected: solver.rejected(),
        note: solver.note(),
        forecast: solver.forecast(),
        output: plan.output.as_ref().filter(|_| written.is_ok()).map(Target::name),
        history: plan.history.as_ref().filter(|_| written.is_ok()).map(Target::name),
        outcomes: &outcomes,
        read,
        times: solver.times(),
        write,
        total: start.elapsed(),
    });
    let (page, trace) = if plan.records() {
        write_pages(&plan, &report, &recorder.finish(&solver, &outcomes))
    } else {
        (Ok(()), Ok(()))
    };
    let name = |target: &Option<Target>, written: &Result<(), Failure>| {
        target.as_ref().filter(|_| written.is_ok()).map(Target::name)
    };
    report.shown_in(name(&plan.page, &page), name(&plan.trace, &trace));
    publish(&report, plan.report)?;
    written.and(page).and(trace)?;
    Ok(if report.converged() { Exit::Success } else { Exit::NotConverged })
}

fn distribute(plan: &Plan, system: &System, cancel: &AtomicBool, screen: Screen) -> Result<Solver, Failure> {
    let is_full = plan.setup.tune == Tune::Full;
    let _shown = screen.working(if is_full { "tuning and preparing the devices" } else { "preparing the devices" });
    Solver::cancellable(Arc::clone(&system.a), &plan.setup, cancel).map_err(|error| match error {
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
    recorder: &mut Recorder,
) -> Result<Vec<Outcome>, Failure> {
    let count = system.b.len();
    let column = |(k, b): (usize, &Vec<f64>)| {
        let what = if count == 1 { "solving".into() } else { format!("solving {} of {count}", k + 1) };
        log::info!("{what}");
        let bar = screen.solve(&what);
        let progress = |progress: &Progress| bar.update(progress);
        let control = Control { cancel: Some(cancel), progress: Some(&progress), timeline: plan.records() };
        let outcome = recorder.solve(k, || solver.solve(b, system.x0(k), &plan.stop, control))?;
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

/// Writes what was made of the report: the page, and the trace.
fn write_pages(plan: &Plan, report: &Report, recording: &Recording<'_>) -> (Result<(), Failure>, Result<(), Failure>) {
    let page = plan
        .page
        .as_ref()
        .map_or(Ok(()), |target| target.write(|out| out.write_all(solve_html::page(report, recording).as_bytes())));
    let trace = plan.trace.as_ref().map_or(Ok(()), |target| target.write(|out| trace::write(out, report, recording)));
    (page, trace)
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
