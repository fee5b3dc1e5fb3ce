//! The ranks' steps, and how halos are exchanged in them.
//!
//! In each half of a step a rank first updates the plane that a neighbour waits for, and sends it while it updates the others; the
//! halo that it needs for that plane was sent while the former half went on:
//!
//! ```text
//! H: take E of the plane behind ─ update the last plane of H ─ send it up ─── update the others
//! E: take H of the plane before ─ update the first plane of E ─ send it down ─ update the others
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::backend::{Backend, Driven, LOG_STEPS, OwnProbe};
use super::grid::Half;
use super::problem::Problem;
use crate::comm::{Failed, Failure, Message, Threads, in_threads};
use crate::error::Result;
use crate::real::Real;

/// A rank and what of the problem is in its slab.
pub(crate) struct Rank<T> {
    pub(crate) backend: Box<dyn Backend<T>>,
    pub(crate) probes: Vec<OwnProbe>,
}

/// A rank's communicators: of E, which goes down, and of H, which goes up; and its neighbours.
struct Neighbours<T> {
    e: Threads<T>,
    h: Threads<T>,
    below: Option<usize>,
    above: Option<usize>,
}

impl<T: Real> Rank<T> {
    /// A rank with its probes.
    pub(crate) fn new(backend: Box<dyn Backend<T>>, problem: &Problem) -> Self {
        let slab = backend.slab();
        let plane = slab.plane();
        let own = problem.probes.iter().enumerate().filter_map(|(number, probe)| {
            let at: usize = probe.at.iter().enumerate().map(|(axis, at)| at * slab.grid.stride(axis)).sum();
            let is_own = slab.planes.contains(&(at / plane));
            is_own.then(|| OwnProbe { number, component: probe.component, cell: at - slab.planes.start * plane })
        });
        let probes = own.collect();
        Self { backend, probes }
    }

    fn planes(&self) -> usize {
        self.backend.slab().planes.len()
    }

    /// Makes steps; none where it has no planes.
    fn run(&mut self, steps: Range<u64>, problem: &Problem, near: &Neighbours<T>) -> Result<()> {
        let planes = self.planes();
        if planes == 0 {
            return Ok(());
        }
        self.backend.send(Half::E)?;
        near.e.post(self.backend.sent(Half::E)?)?;
        for step in steps {
            let driven = driven(problem, step);
            self.half(
                Half::H,
                planes - 1..planes,
                [0..planes - 1, 0..planes],
                &driven,
                (&near.e, near.above),
                &near.h,
            )?;
            self.half(Half::E, 0..1, [1..planes, 0..planes], &driven, (&near.h, near.below), &near.e)?;
            self.backend.record(&self.probes)?;
        }
        Ok(())
    }

    /// A half of a step: `edge` is what a neighbour waits for if there is one, with the others behind, or all.
    fn half(
        &mut self,
        half: Half,
        edge: Range<usize>,
        [others, all]: [Range<usize>; 2],
        driven: &[Driven],
        (halo, from): (&Threads<T>, Option<usize>),
        to: &Threads<T>,
    ) -> Result<()> {
        let Some(from) = from else {
            self.backend.update(half, all, driven)?;
            return to.post(Message::Host(Arc::new(Vec::new())));
        };
        let other = if half == Half::H { Half::E } else { Half::H };
        self.backend.receive(other, halo.fetch(from)?)?;
        self.backend.update(half, edge, driven)?;
        self.backend.send(half)?;
        self.backend.update(half, others, driven)?;
        to.post(self.backend.sent(half)?)
    }
}

/// The sources in a step.
fn driven(problem: &Problem, step: u64) -> Vec<Driven> {
    let of = |(number, source): (usize, &super::source::Source)| {
        let (mut from, mut to) = ([0; 3], [0; 3]);
        from[..source.from.len()].copy_from_slice(&source.from);
        to[..source.to.len()].copy_from_slice(&source.to);
        let later = if source.component.is_electric() { 0.5 } else { 0.0 };
        let value = source.waveform.at((step as f64 + later) * problem.dt);
        Driven { number, component: source.component, from, to, hard: source.hard, value }
    };
    problem.sources.iter().enumerate().map(of).collect()
}

/// Lets all ranks make the steps from `begin` on, 256 at the most, and hands out what each probe has seen.
///
/// # Errors
/// Those of the ranks.
pub(crate) fn advance<T: Real>(
    ranks: &mut [Rank<T>],
    problem: &Problem,
    begin: u64,
    steps: usize,
) -> std::result::Result<Vec<Vec<f64>>, Failed> {
    assert!(steps <= LOG_STEPS, "{steps} steps without a stop");
    let steps = begin..begin + steps as u64;
    let there: Vec<usize> = (0..ranks.len()).filter(|&rank| ranks[rank].planes() > 0).collect();
    let place = |rank: usize| there.iter().position(|&other| other == rank);
    let below = |rank| place(rank).and_then(|k| there.get(k.checked_sub(1)?).copied());
    let above = |rank| place(rank).and_then(|k| there.get(k + 1).copied());
    let failure = Arc::new(Failure::default());
    let comms = |receiver: &dyn Fn(usize) -> Option<usize>| {
        let receivers: Vec<usize> = (0..ranks.len()).map(|rank| usize::from(receiver(rank).is_some())).collect();
        Threads::new(&receivers, &failure)
    };
    let (e, h): (Vec<Threads<T>>, Vec<Threads<T>>) = (comms(&below), comms(&above));
    let near = e.into_iter().zip(h).enumerate();
    let near = near.map(|(rank, (e, h))| Neighbours { e, h, below: below(rank), above: above(rank) });
    let jobs: Vec<_> = near.collect::<Vec<_>>().into_iter().zip(ranks).collect();
    let seen = in_threads(&failure, jobs, |(near, rank)| {
        rank.run(steps.clone(), problem, &near)?;
        let seen = rank.backend.recorded()?;
        Ok(rank.probes.iter().map(|probe| probe.number).zip(seen).collect::<Vec<_>>())
    })?;
    let mut all = vec![Vec::new(); problem.probes.len()];
    for (number, values) in seen.into_iter().flatten() {
        all[number] = values;
    }
    Ok(all)
}
