//! `declive solve`.

mod args;
mod checkpoint;
mod early;
mod near_null;
mod plan;
mod recorder;
mod results;
mod shared;
mod solver;
mod system;

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use declive::checkpoint::{Column, Saved};
use declive::device::open_ahead;
use declive::distributed::Processes;
use declive::solve::{Checkpoint, Checkpoints, Control, Progress, Tune};
use declive::timeline::stages::{self, stage};
use declive::{Error, Outcome};

pub(crate) use args::{Args, methods, precisions, preconds};
use checkpoint::Saver;
use early::Early;
use plan::Plan;
use recorder::Recorder;
use solver::AnySolver;
use system::System;

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::Target;
use super::progress::Screen;
use crate::report::recording::Recording;
use crate::report::solve::{Complex, Facts, Files, Report, Rhs};
use crate::report::{in_flags, solve_html, trace};

/// Runs the command,
/// as one of the processes of a job, if it is one.
pub(crate) fn run(args: Args, processes: Option<&Arc<dyn Processes>>) -> Result<Exit, Failure> {
    let start = Instant::now();
    stages::record();
    let plan = Plan::new(args);
    if let Some(processes) = processes {
        return shared::run(plan, processes, start);
    }
    let plan = plan?;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(plan.quiet);
    let mut recorder = Recorder::new(start);
    let _opening = open_ahead(&plan.setup.devices, plan.setup.precision.needs_f64(), plan.ahead());
    let saved = plan.resume.as_deref().map(Saved::read).transpose()?; // before anything larger is read
    let system = {
        let _reading = stage("read");
        System::read(&plan, screen)?
    };
    let identity = checkpoint::identity(&plan, &system);
    let from = checkpoint::columns(saved, identity.as_ref())?;
    let read = start.elapsed();

    let mut solver = distribute(&plan, &system, cancel, screen)?;
    let saver = Saver::new(&plan, identity, solver.real().method());
    recorder.set_up(read, solver.real());
    if let Some(note) = solver.real().note().filter(|_| !plan.quiet) {
        let _ = writeln!(stderr(), "note: {}", in_flags(note));
    }
    let early = Early::new(&plan, &system);
    let work = Work {
        plan: &plan,
        system: &system,
        from: &from,
        saver: saver.as_ref(),
        early: early.as_ref(),
        cancel,
        screen,
    };
    let outcomes = work.iterate(&mut solver, &mut recorder)?;
    let saved = saver.as_ref().map_or(Ok(()), |saver| saver.save(&outcomes, None));
    if plan.condition {
        let why = match solver.estimate_condition() {
            Ok(Some(_)) => None,
            Ok(None) => Some("it needs the factors of a dense matrix, and there are none".into()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why.filter(|_| !plan.quiet) {
            let _ = writeln!(stderr(), "note: no --condition: {}", in_flags(why));
        }
    }

    // a report is worth having even if the solution can't be written
    let writing = stage("write");
    let written = write_results(&plan, &system, early.as_ref(), &outcomes);
    let write = writing.end() + outcomes.iter().filter_map(|outcome| outcome.early).sum::<Duration>();
    let name = |target: &Option<Target>, written: &Result<(), Failure>| {
        target.as_ref().filter(|_| written.is_ok()).map(Target::name)
    };
    let mut report = Report::new(Facts {
        source: plan.source.to_string(),
        duplicates: system.duplicates,
        rhs: Rhs { source: system.rhs.0.clone(), default: system.rhs.1, columns: outcomes.len() },
        x0: plan.x0.as_ref().map(ToString::to_string),
        complex: system.complex.as_ref().map(|complex| Complex { is_symmetric: complex.is_symmetric }),
        solver: solver.real(),
        method_reason: solver.method_reason(),
        setup: &plan.setup,
        stop: &plan.stop,
        checkpoint_every: saver.as_ref().map(Saver::every).or(plan.checkpoint_every),
        files: Files {
            resumed: plan.resume.as_ref().map(|path| path.display().to_string()),
            checkpoint: name(&plan.checkpoint, &saved),
            output: name(&plan.output, &written),
            history: name(&plan.history, &written),
            report: None,
            trace: None,
        },
        outcomes: &outcomes,
        processes: Vec::new(),
        read,
        write,
        began: start,
        total: start.elapsed(),
    });
    report.lanes().iter().for_each(|lane| log::info!("{lane}"));
    let (page, trace) = if plan.records() {
        write_pages(&plan, &report, &recorder.finish(solver.real(), &outcomes))
    } else {
        (Ok(()), Ok(()))
    };
    (report.files.report, report.files.trace) = (name(&plan.page, &page), name(&plan.trace, &trace));
    plan.report.publish(&report)?;
    written.and(saved).and(page).and(trace)?;
    Ok(if report.converged() { Exit::Success } else { Exit::NotConverged })
}

fn distribute(plan: &Plan, system: &System, cancel: &AtomicBool, screen: Screen) -> Result<AnySolver, Failure> {
    let is_full = plan.setup.tune == Tune::Full;
    let _shown = screen.working(if is_full { "tuning and preparing the devices" } else { "preparing the devices" });
    let mut setup = plan.setup.clone();
    setup.near_null.clone_from(&system.near_null);
    AnySolver::new(system, &setup, cancel).map_err(|error| match error {
        Error::NotSquare { .. }
        | Error::Rectangular { .. }
        | Error::NotSymmetric { .. }
        | Error::NotHermitian { .. }
        | Error::NotFinite { .. }
        | Error::BeyondSingle { .. }
        | Error::InvalidCsr(_) => Failure::about(&plan.source, error),
        other => other.into(),
    })
}

/// What the columns of b have in common.
struct Work<'a> {
    plan: &'a Plan,
    system: &'a System,
    /// Columns of x to go on from.
    from: &'a [Column],
    saver: Option<&'a Saver<'a>>,
    early: Option<&'a Early<'a>>,
    cancel: &'a AtomicBool,
    screen: Screen,
}

impl Work<'_> {
    /// Solves for one column after the other. After an interruption the rest ends before its first iteration, so that
    /// each column has an outcome.
    fn iterate(&self, solver: &mut AnySolver, recorder: &mut Recorder) -> Result<Vec<Outcome>, Failure> {
        let goes_on = self.saver.is_some() || self.plan.checkpoint_every.is_some() || !self.from.is_empty();
        let is_each_apart = goes_on || self.plan.records();
        if self.system.b.len() > 1 && !is_each_apart {
            return self.side_by_side(solver);
        }
        let mut outcomes = Vec::new();
        for k in 0..self.system.b.len() {
            let outcome = self.column(k, &outcomes, solver, recorder)?;
            outcomes.push(outcome);
            if let Some(saver) = self.saver {
                saver.save_if_due(&outcomes);
            }
        }
        Ok(outcomes)
    }

    /// Solves for all columns, as many at a time as the solver takes.
    fn side_by_side(&self, solver: &mut AnySolver) -> Result<Vec<Outcome>, Failure> {
        let (system, count) = (self.system, self.system.b.len());
        log::info!("solving {count}");
        let bar = self.screen.solve(&format!("solving {count}"));
        let progress = |progress: &Progress| bar.update(progress);
        let control = Control::default().with_cancel(self.cancel).with_progress(&progress);
        let first = |k| system.x0(k).map_or_else(|| vec![0.0; system.a.n_cols()], <[f64]>::to_vec);
        let mut x: Vec<Vec<f64>> = (0..count).map(first).collect();
        let b: Vec<&[f64]> = system.b.iter().map(|b| &b[..]).collect();
        let mut to: Vec<&mut [f64]> = x.iter_mut().map(|x| &mut x[..]).collect();
        let outcomes = solver.solve_each(&b, &mut to, &self.plan.stop, control, &mut |k, outcome| {
            log::info!("{}: {} after {} iterations", k + 1, outcome.reason, outcome.iterations);
        })?;
        Ok(outcomes.into_iter().zip(x).map(|(outcome, x)| outcome.map_x(|()| x)).collect())
    }

    /// Solves for column `k`, after those that are `done`.
    fn column(
        &self,
        k: usize,
        done: &[Outcome],
        solver: &mut AnySolver,
        recorder: &mut Recorder,
    ) -> Result<Outcome, Failure> {
        let (plan, count) = (self.plan, self.system.b.len());
        let what = if count == 1 { "solving".into() } else { format!("solving {} of {count}", k + 1) };
        log::info!("{what}");
        let bar = self.screen.solve(&what);
        let progress = |progress: &Progress| bar.update(progress);
        let take = |at: &Checkpoint<'_>| {
            if let Some(saver) = self.saver {
                saver.try_to_save(done, Some(at));
            }
        };
        let every = self.saver.map(Saver::every).or(plan.checkpoint_every);
        let from = self.from.get(k);
        let mut control = Control::default()
            .with_cancel(self.cancel)
            .with_progress(&progress)
            .with_timeline(plan.records())
            .with_done(from.map_or(0, |from| from.iterations));
        let write = |x: &[f64]| self.early.iter().for_each(|early| early.write(x));
        control.early = self.early.map(|_| &write as _);
        control.checkpoint = every.map(|every| Checkpoints::new(every, &take));
        let x0 = from.map(|from| &*from.x).or_else(|| self.system.x0(k));
        let outcome = recorder.solve(k, || solver.solve(&self.system.b[k], x0, &plan.stop, control))?;
        log::info!("{} after {} iterations", outcome.reason, outcome.iterations);
        Ok(outcome)
    }
}

fn write_results(plan: &Plan, system: &System, early: Option<&Early<'_>>, outcomes: &[Outcome]) -> Result<(), Failure> {
    let written = early.and_then(|early| early.place(outcomes));
    let solution = written.unwrap_or_else(|| {
        plan.output.as_ref().map_or(Ok(()), |t| {
            t.write(|out| results::solution(out, plan, (&system.rhs.0, system.complex.is_some()), outcomes))
        })
    });
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
