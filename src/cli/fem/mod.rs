//! `declive fem`.

mod args;
mod choice;
mod output;
mod system;

use std::fs::File;
use std::io::{Read, Write, stderr};
use std::path::Path;
use std::time::Instant;

use declive::Error;
use declive::fem::{Mesh, Plan, Summation};

pub(crate) use args::Args;
use args::Operator;
use choice::Chosen;
use output::Outputs;

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::output::{Form, Target, print};
use super::progress::Screen;
use crate::report::fem::{Facts, Report, Solution};
use crate::report::fem_mesh::MeshReport;
use crate::report::in_flags;

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let name = args.problem.display().to_string();
    if is_mesh(&args.problem)? {
        return of_mesh(&args, &name);
    }
    if args.template {
        return Err(Failure::usage(format!("--template is for a mesh of Gmsh, and {name} is none")));
    }
    let start = Instant::now();
    let about =
        |error: Error| if matches!(error, Error::Usage(_)) { Failure::about(&name, error) } else { error.into() };
    let plan = Plan::read(&args.problem).map_err(about)?;
    let cancel = interrupt::cancel_then_kill();
    let screen = Screen::new(args.quiet);
    let mesh = {
        let _shown = screen.working("reading the mesh");
        plan.mesh().map_err(about)?
    };
    let problem = plan.problem(&mesh).map_err(about)?;
    let probes = plan.probes(&mesh).map_err(about)?;
    let nothing = vec![0.0; problem.unknowns() * mesh.points().len()];
    if let Some(probe) = probes.iter().find(|probe| problem.sample(&nothing, probe.point).is_none()) {
        let message = format!("probe {} at {:?} is outside of the mesh", probe.name, probe.point);
        return Err(about(Error::Usage(message)));
    }
    let outputs = Outputs::probe(&args, &plan, &mesh)?;
    let read = start.elapsed();

    let chosen = match args.operator {
        Some(operator) => Chosen { operator, why: None },
        None => {
            let _shown = screen.working("comparing operators");
            choice::operator(&args, &mesh, problem.physics())?
        }
    };
    let mut operator = chosen.operator;
    let assembling = Instant::now();
    let system = match operator {
        Operator::Assembled => {
            let _shown = screen.working("assembling");
            match problem.assemble() {
                Err(error @ Error::OutOfMemory { .. })
                    if args.operator.is_none() && choice::may_be_by_elements(&args) =>
                {
                    log::warn!("{error}; the solve goes on by elements, without a matrix");
                    operator = Operator::ByElements(Summation::ByNode);
                    None
                }
                system => Some(system?),
            }
        }
        Operator::ByElements(_) => None,
    };
    let assemble = assembling.elapsed();
    let solved = match (&system, operator) {
        (None, Operator::ByElements(_)) if args.write_system.is_some() => {
            return Err(Failure::usage(format!("--write-system needs --operator assembled, not {operator}")));
        }
        (None, Operator::ByElements(way)) => system::solve_by_elements(&args, &plan, &mesh, way, cancel, screen)?,
        (Some(system), _) => {
            outputs.write_system(system, &name)?;
            system::solve(&args, &mesh, &problem, system, cancel, screen)?
        }
        (None, Operator::Assembled) => unreachable!("the matrix is assembled"),
    };
    if let Some(why) = &chosen.why {
        log::info!("{operator}: {why}");
    }
    if let Some(note) = solved.note.as_deref().filter(|_| !args.quiet) {
        let _ = writeln!(stderr(), "note: {}", in_flags(note));
    }

    let reckoning = Instant::now();
    let solution = Solution::new(&problem, &plan, &probes, &solved.outcome.x);
    let fields = reckoning.elapsed();
    let (written, files) = outputs.write(&problem, &plan, &solved.outcome.x, &name);
    let mut report = Report::new(Facts {
        file: &name,
        plan: &plan,
        mesh: &mesh,
        problem: &problem,
        entries: system.as_ref().map(|system| system.matrix.nnz()),
        operator: operator.to_string(),
        operator_why: chosen.why.filter(|_| operator == chosen.operator),
        colours: solved.colours,
        known: solved.known,
        solution,
        outcome: &solved.outcome,
        method: solved.method,
        precond: solved.precond,
        precision: args.precision,
        devices: solved.devices,
        files,
        seconds: [read, assemble, solved.prepare, solved.outcome.solve, fields, start.elapsed()],
    });
    let page = outputs.write_report(&report, &problem, &plan, &solved.outcome.x);
    report.forget_unwritten(page.is_ok());
    Form::of(args.json, args.quiet, false).publish(&report)?;
    written.and(page)?;
    Ok(if solved.outcome.reason.converged() { Exit::Success } else { Exit::NotConverged })
}

/// Whether a file is a mesh, as far as its first bytes tell: no TOML begins with a dollar sign, or is compressed.
fn is_mesh(path: &Path) -> Result<bool, Error> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(6).read_to_end(&mut start));
    read.map_err(|e| Error::io(path, e))?;
    let packed: [&[u8]; 4] = [b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"];
    let text = start.trim_ascii_start();
    Ok(text.starts_with(b"$") || packed.iter().any(|mark| start.starts_with(mark)))
}

/// What a mesh is like, or a problem to start from.
fn of_mesh(args: &Args, name: &str) -> Result<Exit, Failure> {
    let outputs = [("--vtu", args.vtu.is_some()), ("--png", args.png.is_some()), ("-o", args.output.is_some())];
    let more = [("--report", args.report.is_some()), ("--write-system", args.write_system.is_some())];
    if let Some((option, _)) = outputs.iter().chain(&more).find(|(_, is_there)| *is_there) {
        return Err(Failure::usage(format!(
            "{option} needs a problem, and {name} is a mesh alone; --template prints a problem file to start from"
        )));
    }
    let mesh = Mesh::from_gmsh(&args.problem).map_err(|error| match error {
        Error::Usage(_) => Failure::about(name, error),
        other => other.into(),
    })?;
    if args.template {
        // the problem file is likely to be beside the mesh
        let file = args.problem.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = Plan::template(&mesh, &file);
        Target::Stdout.write(|out| out.write_all(text.as_bytes()))?;
    } else if !args.quiet || args.json {
        print(&MeshReport::new(name, &mesh), args.json)?;
    }
    Ok(Exit::Success)
}
