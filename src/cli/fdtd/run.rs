//! The steps of `declive fdtd`, and what is kept on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use declive::fdtd::{Picture, Plan, Simulation, Snapshot};

use super::output::Outputs;
use crate::cli::failure::Failure;
use crate::cli::progress::Screen;
use crate::report::fdtd::{Drawn, SnapshotFiles};

/// Between looks at Ctrl-C, and pictures of the progress.
const LOOK: Duration = Duration::from_millis(200);
/// Pictures of a snapshot in the report, about.
const MOST_PICTURES: u64 = 8;

/// What was kept.
pub(super) struct Run<'a> {
    plan: &'a Plan,
    outputs: &'a Outputs,
    /// Whether pictures are kept for the report.
    draws: bool,
    pub(super) pictures: Vec<Drawn>,
    pub(super) snapshots: Vec<SnapshotFiles>,
    /// By the steps made.
    pub(super) energy: Vec<(u64, f64)>,
}

impl<'a> Run<'a> {
    /// Nothing so far.
    pub(super) fn new(plan: &'a Plan, outputs: &'a Outputs, draws: bool) -> Self {
        Self { plan, outputs, draws, pictures: Vec::new(), snapshots: Vec::new(), energy: Vec::new() }
    }

    /// Makes all steps that are left, or those until an interruption.
    pub(super) fn steps(
        &mut self,
        simulation: &mut Simulation,
        cancel: &AtomicBool,
        screen: Screen,
    ) -> Result<(), Failure> {
        log::info!("stepping from {} to {}", simulation.step(), self.plan.steps);
        let bar = screen.steps("stepping");
        let (end, mut saved, mut most) = (self.plan.steps, Instant::now(), 1);
        while simulation.step() < end && !cancel.load(Ordering::Relaxed) {
            let start = Instant::now();
            let some = self.next_stop(simulation.step()).min(simulation.step() + most) - simulation.step();
            simulation.advance(some)?;
            // as many as take about the time between looks, but not at once
            let each = start.elapsed().as_secs_f64().max(1e-7) / some as f64;
            most = ((LOOK.as_secs_f64() / each) as u64).clamp(1, 4 * most);
            bar.update(simulation.step(), end);
            self.keep(simulation)?;
            if self.outputs.has_checkpoints() && saved.elapsed() >= self.outputs.checkpoint_every {
                if let Err(failure) = self.outputs.save(simulation) {
                    log::warn!("no checkpoint: {failure}");
                }
                saved = Instant::now();
            }
        }
        Ok(())
    }

    /// The step after this one at which something is kept, or the last one.
    fn next_stop(&self, step: u64) -> u64 {
        let intervals = self.plan.snapshots.iter().map(|snapshot| snapshot.every).chain(self.plan.energy_every);
        let stops = intervals.map(|every| (step / every).saturating_add(1).saturating_mul(every));
        stops.min().unwrap_or(u64::MAX).min(self.plan.steps)
    }

    fn keep(&mut self, simulation: &mut Simulation) -> Result<(), Failure> {
        let step = simulation.step();
        if self.plan.energy_every.is_some_and(|every| step.is_multiple_of(every)) {
            self.energy.push((step, simulation.energy()?));
        }
        for snapshot in self.plan.snapshots.iter().filter(|snapshot| step.is_multiple_of(snapshot.every)) {
            self.snapshot(snapshot, simulation)?;
        }
        Ok(())
    }

    fn snapshot(&mut self, snapshot: &Snapshot, simulation: &mut Simulation) -> Result<(), Failure> {
        let (plan, step) = (self.plan, simulation.step());
        let field = simulation.field(snapshot.component)?;
        let picture = Picture::of(&plan.problem, &field, snapshot.slice, snapshot.range);
        let files = self.outputs.snapshot(plan, snapshot, step, &field, &picture)?;
        let all = plan.steps / snapshot.every;
        let is_drawn = (step / snapshot.every).is_multiple_of(all.div_ceil(MOST_PICTURES).max(1));
        if self.draws && is_drawn {
            let mut png = Vec::new();
            let drawn = picture.write_png(&mut png);
            drawn.map_err(|source| Failure::Write { name: "a picture".into(), source })?;
            let time = step as f64 * plan.problem.time_step();
            self.pictures.push(Drawn { component: snapshot.component, step, time, range: picture.range(), png });
        }
        let largest = field.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        self.snapshots.push(SnapshotFiles { component: snapshot.component, step, largest, files });
        Ok(())
    }
}
