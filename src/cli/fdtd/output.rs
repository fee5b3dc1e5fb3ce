//! Where results of `declive fdtd` go.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use declive::Error;
use declive::fdtd::{Picture, Plan, Simulation, Snapshot};
use declive::npz;

use super::args::Args;
use crate::cli::failure::Failure;
use crate::cli::output::Target;
use crate::report::fdtd::Files;

/// How often a checkpoint is written, if nothing was said.
const EVERY: Duration = Duration::from_secs(60);

/// Files that can be written.
pub(super) struct Outputs {
    folder: Option<PathBuf>,
    probes: Option<Target>,
    pub(super) report: Option<Target>,
    checkpoint: Option<Target>,
    pub(super) checkpoint_every: Duration,
}

impl Outputs {
    /// Makes sure, before long work, that they can be.
    pub(super) fn probe(args: &Args, plan: &Plan) -> Result<Self, Failure> {
        let probe = |path: &Option<PathBuf>| path.as_deref().map(Target::probe).transpose();
        let [probes, report, checkpoint] = [probe(&args.probes)?, probe(&args.report)?, probe(&args.checkpoint)?];
        for (option, target) in [("--probes", &probes), ("--report", &report), ("--checkpoint", &checkpoint)] {
            let Some(target) = target else { continue };
            target.keeps(option, Some(&args.problem), "which is an input")?;
            if option != "--checkpoint" {
                target.keeps(option, args.resume.as_deref(), "which --resume reads")?;
            }
        }
        let named: Vec<String> = [&probes, &report, &checkpoint].into_iter().flatten().map(Target::name).collect();
        if named.iter().enumerate().any(|(k, name)| named[..k].contains(name)) {
            return Err(Failure::usage("two of --probes, --report and --checkpoint name the same file"));
        }
        if checkpoint == Some(Target::Stdout) {
            return Err(Failure::usage("--checkpoint needs a file of its own, not standard output"));
        }
        if probes.is_some() && plan.problem.probes().is_empty() {
            return Err(Failure::usage(format!(
                "--probes: {} has no probes; add one by [[probe]]",
                args.problem.display()
            )));
        }
        if let Some(folder) = &args.output {
            if plan.snapshots.is_empty() {
                return Err(Failure::usage(format!(
                    "-o: {} asks for no snapshots; add one by [[snapshot]]",
                    args.problem.display()
                )));
            }
            fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
            let file = folder.join(snapshot_name(plan, &plan.snapshots[0], 0) + ".npy");
            Target::probe(&file)?;
        }
        let checkpoint_every = args.checkpoint_every.unwrap_or(EVERY);
        Ok(Self { folder: args.output.clone(), probes, report, checkpoint, checkpoint_every })
    }

    /// Whether a result goes to standard output, which then has no report.
    pub(super) fn to_stdout(&self) -> bool {
        [&self.probes, &self.report].into_iter().flatten().any(|target| *target == Target::Stdout)
    }

    /// Whether there are checkpoints.
    pub(super) fn has_checkpoints(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Writes a field and its picture, if there is a folder for them; gives their names.
    pub(super) fn snapshot(
        &self,
        plan: &Plan,
        snapshot: &Snapshot,
        step: u64,
        field: &[f64],
        picture: &Picture,
    ) -> Result<Vec<String>, Failure> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let name = snapshot_name(plan, snapshot, step);
        let array = Target::probe(&folder.join(format!("{name}.npy")))?;
        array.write(|out| npz::write_array(out, plan.problem.grid().cells(), field))?;
        let drawn = Target::probe(&folder.join(format!("{name}.png")))?;
        drawn.write(|out| picture.write_png(out))?;
        Ok(vec![array.name(), drawn.name()])
    }

    /// Writes what probes have seen.
    pub(super) fn write_probes(&self, simulation: &Simulation) -> Result<(), Failure> {
        self.probes.as_ref().map_or(Ok(()), |target| target.write(|out| write_probes(out, simulation)))
    }

    /// Writes a checkpoint.
    pub(super) fn save(&self, simulation: &mut Simulation) -> Result<(), Failure> {
        let Some(target) = &self.checkpoint else { return Ok(()) };
        let state = simulation.state()?;
        target.write_durably(|out| state.write(out))
    }

    /// The names of all files but snapshots.
    pub(super) fn names(&self, resumed: Option<&Path>) -> Files {
        let name = |target: &Option<Target>| target.as_ref().map(Target::name);
        Files {
            resumed: resumed.map(|path| path.display().to_string()),
            checkpoint: name(&self.checkpoint),
            probes: name(&self.probes),
            report: name(&self.report),
        }
    }
}

/// What the files of a snapshot are called, but for the ending: planes of the same component have their place in the name.
fn snapshot_name(plan: &Plan, snapshot: &Snapshot, step: u64) -> String {
    let component = snapshot.component;
    let are_several = plan.snapshots.iter().filter(|other| other.component == component).count() > 1;
    let (axis, at) = snapshot.slice;
    let place = if are_several { format!("-{}{at}", ["x", "y", "z"][axis]) } else { String::new() };
    format!("{component}{place}-{step:06}")
}

fn write_probes(out: &mut dyn Write, simulation: &Simulation) -> io::Result<()> {
    let problem = simulation.problem();
    write!(out, "step,time")?;
    for probe in problem.probes() {
        let is_plain = !probe.name.contains([',', '"', '\n', '\r']);
        let name = if is_plain { probe.name.clone() } else { format!("\"{}\"", probe.name.replace('"', "\"\"")) };
        write!(out, ",{name}")?;
    }
    writeln!(out)?;
    for k in 0..simulation.step() as usize {
        write!(out, "{},{:e}", k + 1, (k + 1) as f64 * problem.time_step())?;
        for seen in simulation.seen() {
            write!(out, ",{:e}", seen[k])?;
        }
        writeln!(out)?;
    }
    Ok(())
}
