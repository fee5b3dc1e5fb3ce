//! `declive fdtd`.

mod args;
mod output;
mod run;

use std::io::{Write, stderr};
use std::time::Instant;

use declive::Error;
use declive::fdtd::{Options, Plan, Simulation, State};

pub(crate) use args::Args;
use output::Outputs;
use run::Run;

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::Form;
use super::progress::Screen;
use crate::report::fdtd::{Facts, Report};
use crate::report::{fdtd_html, in_flags};

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let start = Instant::now();
    let name = args.problem.display().to_string();
    let mut plan = Plan::read(&args.problem).map_err(|error| match error {
        Error::Usage(_) => Failure::about(&name, error),
        other => other.into(),
    })?;
    plan.steps = args.steps.unwrap_or(plan.steps);
    let outputs = Outputs::probe(&args, &plan)?;
    let saved = args.resume.as_deref().map(State::read).transpose()?;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(args.quiet);
    let read = start.elapsed();

    let mut options = Options::default().with_devices(args.devices.clone()).with_precision(args.precision);
    options.shares.clone_from(&args.shares);
    let preparing = Instant::now();
    let mut simulation = {
        let _shown = screen.working("preparing the devices");
        Simulation::new(plan.problem.clone(), &options)?
    };
    if let (Some(saved), Some(path)) = (&saved, &args.resume) {
        simulation.restore(saved).map_err(|error| match error {
            Error::Usage(reason) => Error::Checkpoint { path: path.clone(), reason },
            other => other,
        })?;
    }
    if let Some(note) = simulation.note().filter(|_| !args.quiet) {
        let _ = writeln!(stderr(), "note: {}", in_flags(note));
    }
    let prepare = preparing.elapsed();

    let begun = simulation.step();
    let mut run = Run::new(&plan, &outputs, args.report.is_some());
    run.steps(&mut simulation, cancel, screen)?;
    let probes = outputs.write_probes(&simulation);
    let saved = outputs.save(&mut simulation);

    let mut report = Report::new(Facts {
        file: name,
        plan: &plan,
        simulation: &simulation,
        options: &options,
        begun,
        energy: run.energy,
        snapshots: run.snapshots,
        files: outputs.names(args.resume.as_deref()),
        read,
        prepare,
        total: start.elapsed(),
    });
    let page = outputs.report.as_ref().map_or(Ok(()), |target| {
        let page = fdtd_html::page(&report, &run.pictures, simulation.seen());
        target.write(|out| out.write_all(page.as_bytes()))
    });
    report.forget_unwritten(probes.is_ok(), saved.is_ok(), page.is_ok());
    Form::of(args.json, args.quiet, outputs.to_stdout()).publish(&report)?;
    probes.and(saved).and(page)?;
    Ok(if report.is_finished() { Exit::Success } else { Exit::NotConverged })
}
